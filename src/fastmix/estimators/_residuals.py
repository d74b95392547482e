"""Counts of residuals, from which standard errors take the spread of the errors.

They are one more release of a fit: planned within its budget, and drawn after its coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from fastmix.accounting import (
    ComposedEvent,
    GaussianEvent,
    Part,
    PrivacySpent,
    gaussian_epsilon,
    gaussian_sigma,
)
from fastmix.errors import CalibrationError
from fastmix.estimators._plan import Plan, Solution
from fastmix.mechanisms import noisy_residual_counts, residual_event
from fastmix.rows import Rows

__all__ = ["plan_residuals", "release_residuals"]

#: Share of the squared signal-to-noise ratio that pays for the residuals.
SHARE = 0.05


def plan_residuals(plan: Callable[[float, float], Plan], epsilon: float, delta: float) -> Plan:
    """Return a plan within (epsilon, delta) that also releases counts of residuals.

    Parameters
    ----------
    plan : callable
        Plans the method itself for an epsilon and a delta.
    epsilon, delta : float
        Target of everything together.

    Returns
    -------
    Plan
        The method's plan with the additional event and its noise ``residual_sigma``.

    Notes
    -----
    A method with a joint account takes the event into it; one with several parts gets one part
    more, of a tenth of the budget.
    Sensitive inputs: none.
    """
    # The Gaussian release that would spend the same stands for the method when shares are set.
    ratio = 1.0 / gaussian_sigma(epsilon, delta)
    event = residual_event(1.0 / (math.sqrt(SHARE) * ratio))
    level = gaussian_epsilon(1.0, delta, math.sqrt(1.0 - SHARE) * ratio) * (1.0 - 1e-3)
    for attempt in range(30):
        planned = plan(level, delta)
        if len(planned.spent.parts) > 1:
            return _split(plan, epsilon, delta)
        (part,) = planned.spent.parts
        joint = _joined(planned, [Part(part.name, [*part.events, event], delta)])
        spent = _epsilon(joint.spent)
        if spent <= epsilon and (spent >= 0.99 * epsilon or attempt > 5):
            return joint
        level *= epsilon / spent * (1.0 - 1e-3)
    raise CalibrationError(
        f"inference must leave a budget for the method; none was found at epsilon={epsilon:g}."
    )


def _split(plan: Callable[[float, float], Plan], epsilon: float, delta: float) -> Plan:
    """Return a plan with the residuals as one part more, of a tenth of the budget."""
    share = math.nextafter(delta / 10.0, 0.0)
    sigma = gaussian_sigma(epsilon / 10.0 * (1.0 - 1e-9), share)
    rest = plan(epsilon * 0.9, delta * 0.9)
    return _joined(rest, [*rest.spent.parts, Part("residuals", [residual_event(sigma)], share)])


@lru_cache(maxsize=256)
def _epsilon(spent: PrivacySpent) -> float:
    """Return the epsilon of an account, remembered: fits of one size ask for the same ones."""
    return spent.epsilon


def _joined(planned: Plan, parts: list[Part]) -> Plan:
    sigmas = [event.sigma for event in parts[-1].events[-1:] if isinstance(event, GaussianEvent)]
    return Plan(PrivacySpent(parts), {**planned.parameters, "residual_sigma": sigmas[0]})


def release_residuals(
    solution: Solution, rows: Rows, plan: Plan, clip: float, rng: np.random.Generator
) -> Solution:
    """Return a solution with noisy counts of its residuals, which were planned and charged."""
    sigma = plan["residual_sigma"]
    counts = noisy_residual_counts(rows, solution.theta, clip=clip, sigma=sigma, rng=rng)
    event = ComposedEvent([solution.event, residual_event(sigma)])
    return replace(solution, event=event, residuals=counts)
