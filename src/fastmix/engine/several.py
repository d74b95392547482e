"""Several fits of the same rows and target that share one first look, under one account."""

import math
from collections.abc import Callable
from dataclasses import replace

from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.plan import Target, joint
from fastmix.releases import SECOND_MOMENTS, TARGET_MEAN, TOTAL_WEIGHT

#: The releases of the first look, by the names of their noise: drawn once for all fits.
FIRST = {"weight_sigma": TOTAL_WEIGHT, "mean_sigma": TARGET_MEAN, "moment_sigma": SECOND_MOMENTS}
#: Halvings of the share of epsilon that each fit gets.
HALVINGS = 12


def several_plan(
    planned: Callable[[Target], AdaptivePlan], count: int, target: Target
) -> AdaptivePlan:
    """Plan so many fits, each with the largest share of epsilon that one account allows.

    ``planned`` plans one fit. The noise levels of the plan are those of each fit.
    """
    share = target.delta / count * (1.0 - 1e-9)

    def at(part: float) -> AdaptivePlan:
        return _shared(planned(Target(part * target.epsilon, share)), count, target.delta)

    low, high = 0.5 / count, 1.0
    best = at(low)
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        tried = at(middle)
        if tried.spent.epsilon <= target.epsilon:
            low, best = middle, tried
        else:
            high = middle
    return best


def _shared(one: AdaptivePlan, count: int, delta: float) -> AdaptivePlan:
    """Return a plan that draws the first look once, and all that follows for each fit.

    The first look keeps its share of the budget of all fits together.
    """
    first, own, noise = [], list(one.spent.events), {}
    for name, release in FIRST.items():
        sigma, repeats = getattr(one, name), one.n_rounds if name == "moment_sigma" else 1
        if sigma is not None:
            own.remove(release.event(sigma, repeats))
            noise[name] = sigma / math.sqrt(count)
            first.append(release.event(noise[name], repeats))
    return replace(one, spent=joint([*first, *own * count], delta), **noise)
