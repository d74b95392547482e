"""A plan with counts of residuals, from which standard errors take the spread of the errors."""

import math
from collections.abc import Callable
from dataclasses import replace

from fastmix.accounting import Part, PrivacySpent, gaussian_epsilon, gaussian_sigma
from fastmix.errors import CalibrationError
from fastmix.mechanisms import residual_event
from fastmix.methods.plan import Plan, Target

#: Share of the squared signal-to-noise ratio that pays for the residuals.
SHARE = 0.05


def plan_residuals(plan: Callable[[Target], Plan], target: Target) -> Plan:
    """Return a plan within a target that also releases counts of residuals.

    A method with a joint account takes their event into it; one with several parts gets one part
    more, of a tenth of the budget.
    """
    epsilon, delta, _ = target
    # The Gaussian release that would spend the same stands for the method when shares are set.
    ratio = 1.0 / gaussian_sigma(epsilon, delta)
    sigma = 1.0 / (math.sqrt(SHARE) * ratio)
    level = gaussian_epsilon(1.0, delta, math.sqrt(1.0 - SHARE) * ratio) * (1.0 - 1e-3)
    least = 1e-3 * epsilon  # below it delta alone allows nearly all of the noise
    for attempt in range(30):
        planned = plan(target._replace(epsilon=max(level, least)))
        if len(planned.spent.parts) > 1:
            return _split(plan, target)
        (part,) = planned.spent.parts
        spent = PrivacySpent([Part(part.name, [*part.events, residual_event(sigma)], delta)])
        if spent.epsilon <= epsilon and (spent.epsilon >= 0.99 * epsilon or attempt > 5):
            return replace(planned, spent=spent, residual_sigma=sigma)
        if level < least:
            break
        level *= epsilon / spent.epsilon * (1.0 - 1e-3)
    raise CalibrationError(
        f"inference must leave a budget for the method; none was found at epsilon={epsilon:g}."
    )


def _split(plan: Callable[[Target], Plan], target: Target) -> Plan:
    """Return a plan with the residuals as one part more, of a tenth of the budget."""
    share = math.nextafter(target.delta / 10.0, 0.0)
    sigma = gaussian_sigma(target.epsilon / 10.0 * (1.0 - 1e-9), share)
    rest = plan(target._replace(epsilon=target.epsilon * 0.9, delta=target.delta * 0.9))
    spent = PrivacySpent([*rest.spent.parts, Part("residuals", [residual_event(sigma)], share)])
    return replace(rest, spent=spent, residual_sigma=sigma)
