r"""The adaptive fit of a table with categories, from top to bottom.

Levels are counted once, numbers have second moments of their own, and both make coordinates in
which the blocks of columns are round (`geometry`). With intervals, second moments of all columns
make rows round across blocks, too. A few noisy gradient steps from the fit of the numbers alone
give a first fit; counts of gradients around it give the clipping level; the minimiser of a
perturbed objective is the fit (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.accounting import objective_mu
from fastmix.data import Rows
from fastmix.engine.adaptive_plan import AdaptivePlan, divided
from fastmix.engine.clipping import (
    CLIP,
    EDGES,
    LEAST_CLIP,
    SHORTEST,
    Levels,
    best_clip,
    typical_gradient,
    unbiased_clip,
)
from fastmix.engine.first_stage import Guess, rounded
from fastmix.engine.minimiser_inference import inferred
from fastmix.engine.plan import Draws, Sizes, Solution, Target
from fastmix.engine.table_inference import (
    Released,
    pooled,
    posterior,
    ranged,
    sampling,
    seen_columns,
    shrunk,
)
from fastmix.engine.table_look import STEP, STEPS, first_look, first_steps, row_moments
from fastmix.engine.table_spread import spread_at
from fastmix.releases import (
    GRADIENT_COUNTS,
    MINIMISER,
    SQUARES,
)

if TYPE_CHECKING:
    from fastmix.engine.family import Family

#: Shares of the budget (of mu^2): counts of levels, moments of numbers, steps, counts of gradients;
#: with intervals, curvature and squares of gradients. Chosen on Black Friday, King County and
#: Rossmann.
LEVELS_SHARE, NUMBERS_SHARE, STEPS_SHARE, COUNTS_SHARE = 0.03, 0.06, 0.10, 0.03
CURVATURE_SHARE, SQUARES_SHARE, INFERRING_COUNTS = 0.20, 0.015, 0.045
#: Moments of the target alone, where there are no numbers.
TARGET_SHARE = 0.02
#: Rounds of moments of numbers.
ROUNDS = 3
#: The noise of a step in units of the target's spread, up to which steps pay: for least squares,
#: which can do without steps, and for losses that cannot. The first, `MOST_COLUMNS` and `ALIGNED`
#: were chosen on Black Friday, King County and Rossmann.
MOST_NOISE, MOST_WITH_STEPS = 0.8, 1.1
#: Columns in units of rows times mu up to which the fit of a table pays.
MOST_COLUMNS = 0.6
#: Without steps, the mean of the target has this standard deviation if its share of the budget is
#: between these two; it is not released if a smaller share would do.
MEAN_ERROR, MEAN_SHARES = 1.0 / 26.0, (0.05, 0.3)
#: Without intervals, the share of clipped gradients that is taken to point the same way.
ALIGNED = 0.5
#: Bins of gradients count up to the last whose count, or sum with all above it, is this many
#: standard deviations of noise.
EVIDENT = 3.5
#: Lengths of rows that bins of gradients reach to, in units of sqrt(d), for a loss without a limit.
LONGEST = 10.0
#: The least share of rows that are taken to have curvature.
LEAST_CURVED = 0.1


def pays(sizes: Sizes, mu: float, *, squares: bool = True) -> bool:
    """Whether a table has categories and, by its public sizes, rows enough for this fit."""
    if not sizes.categories or not sizes.intercept:
        return False
    if squares:
        return sizes.d <= MOST_COLUMNS * mu * sizes.n
    return step_noise(sizes, mu) <= MOST_WITH_STEPS


def step_noise(sizes: Sizes, mu: float) -> float:
    """Return the noise of a step in units of the target's spread, from public sizes."""
    return STEP * CLIP * sizes.d * math.sqrt(STEPS / STEPS_SHARE) / (mu * sizes.n)


def mean_share(n: int, mu: float) -> float:
    """Return the share of the budget for the mean of the target, from public sizes.

    Where there are rows enough, the moments of numbers tell the mean at no extra cost.
    """
    share = (1.0 / (MEAN_ERROR * n * mu)) ** 2
    return 0.0 if share < MEAN_SHARES[0] else min(share, MEAN_SHARES[1])


def table_plan(family: Family, sizes: Sizes, target: Target, *, inferring: bool) -> AdaptivePlan:
    """Plan the releases of `solve_table` from public sizes."""
    numbers = sizes.d - 1 - sum(sizes.categories)
    rounds = ROUNDS if numbers else 1
    form: Any = {"one_sided": family.one_sided, "rows_per_person": sizes.rows_per_person or 1}
    mu = objective_mu(target.epsilon, target.delta, **form)
    stepping = not family.squares or step_noise(sizes, mu) <= MOST_NOISE
    shares = {
        "mean": 0.0 if stepping else mean_share(sizes.n, mu),
        "level": LEVELS_SHARE,
        "number": NUMBERS_SHARE if numbers else TARGET_SHARE,
        "step": STEPS_SHARE if stepping else 0.0,
        "count": COUNTS_SHARE,
    }
    if inferring:
        shares |= {"curvature": CURVATURE_SHARE, "square": SQUARES_SHARE, "count": INFERRING_COUNTS}
    return divided(
        sizes,
        target,
        shares,
        repeats={"number": rounds, "step": STEPS, "count": family.table_counts if inferring else 1},
        scoring=family.scoring(),
        one_sided=family.one_sided,
        rounds=rounds,
        preconditioner="gram",
    )


def solve_table(
    family: Family, rows: Rows, plan: AdaptivePlan, residual_clip: float, draws: Draws
) -> Solution:
    """Look, decide, release the minimiser, and with intervals its curvature.

    ``residual_clip`` is the user's clipping level of residuals, in scaled units.
    """
    assert rows.categories is not None
    n, d, least = rows.n, rows.d, SHORTEST * math.sqrt(rows.d)
    look = first_look(family, rows, rows.categories, plan, draws)
    guess, moments, metric = look.guess, None, np.eye(d)
    counts = look.counts._replace(rows=tuple(n * p for p in look.coordinates.shares))
    levels = family.first_levels(plan, guess, residual_clip, n, d)
    if plan.curvature_sigma is not None:
        moments, counts = row_moments(family, rows, look, levels, plan, draws)
        metric = moments.metric(look.flat(family), n)
        guess = guess._replace(transform=guess.transform @ rounded(metric))
    first, first_noise = guess.center, 0.0
    if plan.step_sigma is not None:
        first, first_noise = first_steps(family, rows, guess, levels, plan, draws)
    guess = family.refined(guess._replace(center=first), look.coordinates)
    guess, level = _counted(family, rows, guess, levels, plan, draws)
    levels = family.raised(plan, guess, levels, level, n, d)
    loss = family.loss(plan, levels)
    theta: FloatArray = draws.noise.release(
        MINIMISER,
        rows,
        loss=loss,
        ridge=levels.ridge,
        mu=plan.mu,
        eps_c=plan.eps_c,
        mu_output=plan.mu_output,
        center=first,
        transform=guess.transform,
        least=least,
        rows_per_person=plan.rows_per_person or 1,
    )
    noise = levels.clip / plan.mu
    released = Released(first, theta, noise, levels.ridge, n, counts, first_noise, metric)
    mean = None if moments is None else moments.of(moments.values) / (family.bend * n)
    bent = family.expected(guess, look.coordinates, theta, loss, mean)
    coordinates, intervals = look.coordinates._replace(expected=bent), None
    clipping: dict[str, float] = {}
    if moments is not None and plan.square_sigma is not None:
        spread = spread_at(family, rows, theta, guess, levels, plan, draws)
        squared = draws.noise.release(
            SQUARES,
            rows,
            theta=theta,
            loss=loss,
            transform=guess.transform,
            least=least,
            square=1.0,
            weights=None,
            sigma=plan.square_sigma,
        )
        scale, unclipped = plan.square_sigma * levels.clip**2, 1.0 - spread.clipped / n
        # Gradients of persons are sums, and squares of weighted ones have squared weights.
        single = rows.persons is None and plan.weight_sigma is None
        squares = spread.squares if single else max(float(np.trace(squared)), scale)
        J = family.table_curvature(moments, look.coordinates, bent, max(unclipped, LEAST_CURVED))
        if single:
            J = family.lowered(J, moments, look.coordinates, released, loss, spread)
        m, unequal = sampling(squared, scale, squares, J, metric, family.least_variance)
        estimate = posterior if family.squares else inferred
        theta, intervals = estimate(released, coordinates, J, m, unequal)
        intervals = family.doubted(intervals, released, coordinates, J, rows.categories)
        known = seen_columns(released, rows.categories)
        # Squares of sums of residuals of a person tell no variance of one residual.
        sure = spread.sure and rows.persons is None
        intervals = intervals._replace(known=known, variance=spread.variance, sure=sure)
        clipping = {"clipped": spread.clipped / n, "clipping_bias": spread.bias(d, noise)}
    if not family.squares:
        theta = pooled(theta, released, coordinates, rows.categories)
    elif intervals is not None:
        theta = ranged(theta, released, coordinates, rows.categories, intervals.covariance)
    else:
        theta = shrunk(theta, released, coordinates)
        theta = ranged(theta, released, coordinates, rows.categories)
    return Solution(
        theta,
        gradient_noise=noise,
        chosen={"rounds": plan.n_rounds, **family.chosen(guess, levels), "kept": 1.0, **clipping},
        intervals=intervals,
        levels=counts.rows,
        level_errors=counts.errors,
    )


def _counted(
    family: Family, rows: Rows, guess: Guess, levels: Levels, plan: AdaptivePlan, draws: Draws
) -> tuple[Guess, float]:
    """Release counts of gradients, and read the spread of residuals and a clipping level."""
    assert plan.count_sigma is not None
    n, d, root = rows.n, rows.d, math.sqrt(rows.d)
    edges = EDGES * (root * guess.spread)
    # Targets are in [-1, 1], so that hardly any gradient is longer: empty bins add noise only.
    longest = min(levels.longest, LONGEST * root)
    edges = edges[: max(3, int(np.searchsorted(edges, 2.0 * longest)) + 1)]
    counts = draws.noise.release(
        GRADIENT_COUNTS,
        rows,
        theta=guess.center,
        transform=guess.transform,
        least=SHORTEST * root,
        longest=min(levels.longest, 1e100),
        edges=edges,
        loss=family.counted,
        sigma=plan.count_sigma,
    )
    aligned = family.aligned
    if plan.curvature_sigma is None:
        aligned = min(aligned, ALIGNED)
    given = plan.count_sigma, n, d, plan.mu, aligned
    best = best_clip(counts, edges[1:], *given, evident=EVIDENT, single=True)
    if best is not None and family.counted is not None and plan.curvature_sigma is not None:
        best = unbiased_clip(best, counts, edges[1:], plan.count_sigma, d, plan.mu)
    if family.counted is None:
        typical = typical_gradient(counts, edges, n) / root
        guess = guess._replace(spread=min(typical, guess.spread))
    return guess, max(LEAST_CLIP * levels.clip, levels.clip if best is None else best)
