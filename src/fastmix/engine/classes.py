"""Several classes: one fit of each class against the rest, under one account."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fastmix.accounting import Part, PrivacyEvent, PrivacySpent, gaussian_sigma
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.class_scores import ClassScores
from fastmix.engine.objective import WEIGHT_SHARE
from fastmix.engine.plan import Sizes, Solution, Target, joint
from fastmix.errors import CalibrationError
from fastmix.releases import TOTAL_WEIGHT

#: The least part of epsilon, in units of an equal part, that the fit of a class may have.
LEAST_PART = 1e-3
#: Steps of the search for the largest part.
STEPS = 12


def plan_classes(
    plan: Callable[[Sizes, Target], AdaptivePlan],
    sizes: Sizes,
    target: Target,
    scoring: ClassScores,
) -> AdaptivePlan:
    """Plan one fit for two classes; for more, one for each, and what they share.

    The sum of the weights and the scores are released once. The fits of the classes get the
    largest part of epsilon that the joint account allows.
    """
    count = scoring.n_classes
    if count == 2:
        return plan(sizes, target)
    epsilon, delta = target.epsilon, target.delta
    share = delta / count * (1.0 - 1e-9)
    unit = gaussian_sigma(epsilon, delta)
    weight = unit / math.sqrt(WEIGHT_SHARE) if sizes.weighted else None
    score = unit / math.sqrt(target.reserved) if target.reserved else None
    beside: list[PrivacyEvent] = [] if weight is None else [TOTAL_WEIGHT.event(weight)]
    if score is not None:
        beside += scoring.events(scoring.scored, score)

    def planned(part: float) -> AdaptivePlan | None:
        """Return the plan that gives each class this part of epsilon, None if it costs more."""
        one = plan(sizes, Target(part * epsilon, share, order=target.order))
        events = list(one.spent.events)
        if one.weight_sigma is not None:
            events.remove(TOTAL_WEIGHT.event(one.weight_sigma))
        spent = joint([*beside, *events * count], delta)
        made = replace(one, spent=spent, weight_sigma=weight, score_sigma=score)
        return made if spent.epsilon <= epsilon else None

    low, high = (1.0 - 1e-9) / count, 1.0
    equal = Target(low * epsilon, share, order=target.order)
    best = None if beside else _apart(plan(sizes, equal), share, count)
    while best is None and low > LEAST_PART / count:
        best = planned(low)
        low, high = (low, high) if best is not None else (low / 2.0, low)
    if best is None:
        raise CalibrationError(
            f"the fits of {count} classes must have a budget beside scores and weights; none was "
            f"found at epsilon={epsilon:g}. Use a smaller score_share."
        )
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        if (tried := planned(middle)) is not None:
            low, best = middle, tried
        else:
            high = middle
    return best


def _apart(one: AdaptivePlan, delta: float, count: int) -> AdaptivePlan:
    """Return the plan of several fits, each with an account of its own."""
    parts = [Part(f"class {k + 1}", one.spent.events, delta) for k in range(count)]
    return replace(one, spent=PrivacySpent(parts))


def all_classes(found: list[Solution]) -> Solution:
    """Return the solutions of the classes as one, their settings as lists.

    Each fit counted the levels of a table; their mean has less noise.
    """
    settings = [each.chosen or {} for each in found]
    chosen: dict[str, Any] = {name: [each[name] for each in settings] for name in settings[0]}
    theta, levels, errors = np.concatenate([each.theta for each in found]), None, None
    if found[0].levels is not None:
        counts = zip(*(each.levels or () for each in found), strict=True)
        levels = tuple(np.mean(own, axis=0) for own in counts)
        noise = zip(*(each.level_errors or () for each in found), strict=True)
        errors = tuple(np.linalg.norm(own, axis=0) / len(found) for own in noise)
    return Solution(theta, chosen=chosen, levels=levels, level_errors=errors, parts=tuple(found))
