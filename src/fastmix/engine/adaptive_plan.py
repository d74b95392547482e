"""The plan of an adaptive fit: which releases it draws, and with how much noise."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastmix._validation import value_error
from fastmix.accounting import PrivacyEvent
from fastmix.engine.choice import chosen_split
from fastmix.engine.objective import OUTPUT_SHARE, WEIGHT_SHARE
from fastmix.engine.plan import Plan, Sizes, Target, joint
from fastmix.engine.scores import Scoring
from fastmix.releases import (
    CURVATURE,
    LEVEL_COUNTS,
    LINE,
    MINIMISER,
    NUMBER_MOMENTS,
    RESIDUAL_COUNTS,
    SECOND_MOMENTS,
    SLOPES,
    SQUARES,
    TARGET_MEAN,
    TOTAL_WEIGHT,
    Gaussian,
)

#: Gaussian releases before the minimiser and after it, by the name of their share, in the order in
#: which they are drawn. `RESIDUAL_COUNTS` stands for all counts of records in bins. The curvature
#: of a table is drawn before its minimiser.
BEFORE = {
    "weight": TOTAL_WEIGHT,
    "mean": TARGET_MEAN,
    "level": LEVEL_COUNTS,
    "moment": SECOND_MOMENTS,
    "number": NUMBER_MOMENTS,
    "step": SLOPES,
    "count": RESIDUAL_COUNTS,
}
AFTER = {
    "line": LINE,
    "curvature": CURVATURE,
    "square": SQUARES,
}


@dataclass(frozen=True, kw_only=True)
class AdaptivePlan(Plan):
    """Noise levels of all releases, and how many rounds of second moments there are."""

    mu: float
    eps_c: float
    mu_output: float
    n_rounds: int
    moment_sigma: float | None
    count_sigma: float | None
    mean_sigma: float | None
    line_sigma: float | None
    preconditioner: str
    #: Noise of the curvature and of the squares of gradients, for intervals.
    curvature_sigma: float | None = None
    square_sigma: float | None = None
    #: Noise of counts of levels and of gradient steps, for a table with categories.
    level_sigma: float | None = None
    step_sigma: float | None = None
    #: Whether intervals are wanted and no noise that the budget allows would let any be identified.
    intervals_hidden: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """Sizes and noise levels by name; those of intervals and tables if there are any."""
        settings = super().settings
        for first, second in (("curvature_sigma", "square_sigma"), ("level_sigma", "step_sigma")):
            if settings[first] is None:
                del settings[first], settings[second]
        if not self.intervals_hidden:
            del settings["intervals_hidden"]
        return settings


def divided(
    sizes: Sizes,
    target: Target,
    shares: Mapping[str, float],
    *,
    repeats: Mapping[str, int],
    scoring: Scoring,
    one_sided: bool,
    rounds: int,
    preconditioner: str,
) -> AdaptivePlan:
    r"""Divide the budget among the releases of a fit.

    A release that is drawn ``repeats`` times and has the share w of :math:`\mu^2` in all gets noise
    of standard deviation :math:`\sqrt{\text{repeats}/w}/\mu` in units of its sensitivity; the
    minimiser gets the rest of the budget.
    """
    form: dict[str, Any] = {"one_sided": one_sided, "rows_per_person": sizes.rows_per_person or 1}
    shares = {
        **shares,
        "weight": WEIGHT_SHARE if sizes.weighted else 0.0,
        "score": target.reserved,
        "output": OUTPUT_SHARE,
    }
    whole = math.fsum(shares.values())
    if whole >= 1.0:  # only a score can be that large
        other = whole - target.reserved
        condition = f"leave a part of the budget to the coefficients: the rest takes {other:.0%}"
        raise value_error("score_share", condition, target.reserved)
    mu, eps_c, mu_gaussian, order = chosen_split(target, whole, **form)
    total = math.hypot(mu, mu_gaussian)
    sigma = {
        name: math.sqrt(repeats.get(name, 1) / share) / total
        for name, share in shares.items()
        if share
    }

    def events_of(releases: Mapping[str, Gaussian]) -> list[PrivacyEvent]:
        return [
            release.event(sigma[name], repeats.get(name, 1))
            for name, release in releases.items()
            if name in sigma
        ]

    mu_output = 1.0 / sigma["output"]
    minimiser = MINIMISER.events(mu, eps_c, mu_output, **form)
    events = [*events_of(BEFORE), *minimiser, *events_of(AFTER)]
    if "score" in sigma:
        events += scoring.events(scoring.scored, sigma["score"])
    return AdaptivePlan(
        spent=joint(events, target.delta),
        rows_per_person=sizes.rows_per_person,
        budget_order=order,
        mu=mu,
        eps_c=eps_c,
        mu_output=mu_output,
        n_rounds=rounds,
        preconditioner=preconditioner,
        moment_sigma=sigma.get("moment", sigma.get("number")),
        weight_sigma=sigma.get("weight"),
        level_sigma=sigma.get("level"),
        step_sigma=sigma.get("step"),
        count_sigma=sigma.get("count"),
        mean_sigma=sigma.get("mean"),
        line_sigma=sigma.get("line"),
        score_sigma=sigma.get("score"),
        curvature_sigma=sigma.get("curvature"),
        square_sigma=sigma.get("square"),
    )
