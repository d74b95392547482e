"""Several sets of columns under one budget: ranked privately, the best refitted with the rest.

Second moments of all columns are released once; first coefficients of every set of columns follow
from them, and one vector of squared residuals ranks them. Labels are ranked by the same squares of
least squares, of more than two classes by their sum over the classes. The account is joint: all of
this is Gaussian, and the refit has its objective releases (docs/proofs/scores.md).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.accounting import PrivacyEvent, PrivacySpent, objective_mu
from fastmix.engine.adaptive import useful_rounds
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.families.logistic import LogisticObjective
from fastmix.engine.families.squares import AdaptiveObjective
from fastmix.engine.family import Family
from fastmix.engine.first_stage import first_stage
from fastmix.engine.fit import plan_fit
from fastmix.engine.plan import Draws, Method, Plan, Sizes, Target, joint
from fastmix.engine.scores import WIDEST, most_below
from fastmix.releases import CONTRASTS, RESIDUAL_COUNTS, SECOND_MOMENTS

#: Shares of the budget for second moments, counts of residuals, and the ranking.
MOMENTS_SHARE, COUNTS_SHARE, RANK_SHARE = 0.15, 0.02, 0.13
SHARE = MOMENTS_SHARE + COUNTS_SHARE + RANK_SHARE
#: Residuals are clipped at this many times the size that most are below.
REACH = 1.8
#: Rounds of second moments: at least so many, or nothing could be ranked.
LEAST_ROUNDS = 2


class Ranking(NamedTuple):
    """Noise of the ranking, and of what it needs, in units of the sensitivities.

    ``targets`` counts targets that are ranked: one, or one for each of more than two classes.
    """

    targets: int
    rounds: int
    moment_sigma: float
    count_sigma: float
    rank_sigma: float

    def events(self) -> list[PrivacyEvent]:
        """Return the events of `ranked`."""
        return [
            SECOND_MOMENTS.event(self.moment_sigma, count=self.targets * self.rounds),
            RESIDUAL_COUNTS.event(self.count_sigma, count=self.targets),
            CONTRASTS.event(self.rank_sigma, count=self.targets),
        ]


def comparing_method(family: Family, sizes: Sizes, target: Target) -> Family:
    """Return the method of the refit: its rounds are those for all columns, whatever wins."""
    rounds = useful_rounds(sizes, objective_mu(target.epsilon, target.delta))
    return replace(family, rounds=max(rounds, LEAST_ROUNDS))


def comparing_plan(
    method: Method,
    sizes: Sizes,
    target: Target,
    *,
    inference: bool = False,
    min_listed: float = 0.0,
) -> tuple[Plan, Ranking]:
    """Plan the ranking and the refit; the account does not depend on which set of columns wins."""
    if not isinstance(method, (AdaptiveObjective, LogisticObjective)):
        raise value_error("method", "be 'adaptive' or 'logistic' in a comparison", method.name)
    plan: AdaptivePlan = plan_fit(  # type: ignore[assignment]
        method, sizes, target, inference=inference, score_share=SHARE, min_listed=min_listed
    )
    assert plan.score_sigma is not None
    assert method.rounds is not None
    targets = ranked_targets(method)
    unit = plan.score_sigma * math.sqrt(SHARE * targets)
    ranking = Ranking(
        targets,
        method.rounds,
        unit / math.sqrt(MOMENTS_SHARE / method.rounds),
        unit / math.sqrt(COUNTS_SHARE),
        unit / math.sqrt(RANK_SHARE),
    )
    # What would pay for a score pays for the ranking; what comes first has parts of its own.
    *counting, part = plan.spent.parts
    kept, scoring = list(part.events), method.scoring()
    for event in scoring.events(scoring.scored, plan.score_sigma):
        kept.remove(event)
    parts = joint([*ranking.events(), *kept], target.delta).parts
    return replace(plan, spent=PrivacySpent([*counting, *parts]), score_sigma=None), ranking


def ranked_targets(method: Method) -> int:
    """Return how many targets a ranking is of: one, or one for each of more than two classes."""
    classes = getattr(method, "n_classes", 2)
    return 1 if classes == 2 else classes


def ranked(
    rows: Any, sets: Sequence[Sequence[int]], ranking: Ranking, draws: Draws
) -> tuple[FloatArray, float]:
    """Return mean squared errors of the sets less their mean, with the noise of each.

    The columns of a set are those of the rows; that of the intercept is in all of them. Errors of
    several targets add up.
    """
    found = [_ranked(each, sets, ranking, draws) for each in getattr(rows, "targets", (rows,))]
    errors, noise = zip(*found, strict=True)
    return np.sum(errors, axis=0), math.hypot(*noise)


def _ranked(
    rows: Any, sets: Sequence[Sequence[int]], ranking: Ranking, draws: Draws
) -> tuple[FloatArray, float]:
    """Return mean squared errors of the sets for one target, with the noise of each."""
    guess = first_stage(rows, ranking.rounds, ranking.moment_sigma, None, draws)
    back = np.linalg.inv(guess.transform)
    whole = back.T @ back
    moment = whole @ guess.center
    thetas = np.zeros((rows.d, len(sets)))
    for k, columns in enumerate(sets):
        at = [*columns, rows.d - 1] if rows.constant else [*columns]
        thetas[at, k] = np.linalg.solve(whole[np.ix_(at, at)], moment[at])
    counts = draws.noise.release(
        RESIDUAL_COUNTS, rows, theta=guess.center, clip=WIDEST, sigma=ranking.count_sigma
    )
    level = min(REACH * most_below(counts, rows.n), WIDEST)
    sums = draws.noise.release(
        CONTRASTS, rows, thetas=thetas, level=level, sigma=ranking.rank_sigma
    )
    noise = ranking.rank_sigma * level**2 * math.sqrt(len(sets)) / 2.0
    return sums / rows.n, noise / rows.n
