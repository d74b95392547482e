r"""The adaptive fit of a table with categories, from top to bottom.

Levels are counted once, numbers have second moments of their own, and both make coordinates in
which the blocks of columns are round (`geometry`). A few noisy gradient steps from the fit of the
numbers alone give a first fit; counts of gradients around it give the clipping level; the minimiser
of a perturbed objective is the fit. With intervals, its curvature is released last
(docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

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
)
from fastmix.engine.first_stage import (
    FIRST,
    LEAST_VARIANCE,
    ROOM,
    Guess,
    least_eigenvalue,
    rounded,
)
from fastmix.engine.geometry import Geometry, geometry
from fastmix.engine.plan import Draws, Sizes, Solution, Target
from fastmix.engine.table_inference import (
    Released,
    inferred,
    pooled,
    posterior,
    ranged,
    seen_columns,
    shrunk,
)
from fastmix.releases import (
    CURVATURES,
    GRADIENT_COUNTS,
    LEVEL_COUNTS,
    MINIMISER,
    NUMBER_MOMENTS,
    SLOPES,
    TARGET_MEAN,
)
from fastmix.schema.categories import Categories

if TYPE_CHECKING:
    from fastmix.engine.family import Family

#: Shares of the budget (of mu^2): counts of levels, moments of numbers, steps, counts of gradients;
#: with intervals, curvature and squares of gradients. Chosen on Black Friday, King County and
#: Rossmann.
LEVELS_SHARE, NUMBERS_SHARE, STEPS_SHARE, COUNTS_SHARE = 0.03, 0.06, 0.10, 0.03
CURVATURE_SHARE, SQUARES_SHARE = 0.20, 0.03
#: Moments of the target alone, where there are no numbers.
TARGET_SHARE = 0.02
#: Rounds of moments of numbers, and steps of the first fit with their length and momentum.
ROUNDS, STEPS, STEP, MOMENTUM = 3, 3, 0.6, 0.3
#: The noise of a step in units of the target's spread, up to which steps pay: for least squares,
#: which can do without steps, and for losses that cannot. The first, `MOST_COLUMNS` and `ALIGNED`
#: were chosen on Black Friday, King County and Rossmann.
MOST_NOISE, MOST_WITH_STEPS = 0.8, 1.1
#: Columns in units of rows times mu up to which the fit of a table pays.
MOST_COLUMNS = 0.6
#: Without steps, the mean of the target has this standard deviation if its share of the budget is
#: between these two; it is not released if a smaller share would do.
MEAN_ERROR, MEAN_SHARES = 1.0 / 26.0, (0.05, 0.3)
#: Variance of the sum of all steps, in units of the noise of one: where rows have half of the
#: curvature, and where they have none (docs/proofs/tables.md, Section 6).
GAIN, FLAT = 2.5, 4.6
#: Without intervals, the share of clipped gradients that is taken to point the same way.
ALIGNED = 0.5
#: Bins of gradients count up to the last whose count, or sum with all above it, is this many
#: standard deviations of noise.
EVIDENT = 2.5
#: A ridge in units of squared lengths, so large that a loss is limited by its clipping level only.
STIFF = 1e6
#: Lengths of rows that bins of gradients reach to, in units of sqrt(d), for a loss without a limit.
LONGEST = 10.0
#: Squared lengths up to which curvatures count in full, in units of their mean.
SQUARE_LENGTHS = 1.5


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
        shares |= {"curvature": CURVATURE_SHARE, "square": SQUARES_SHARE}
    return divided(
        sizes,
        target,
        shares,
        repeats={"number": rounds, "step": STEPS},
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
    look = _look(family, rows, rows.categories, plan, draws)
    guess = look.guess
    levels = family.first_levels(plan, guess, residual_clip, n, d)
    first, first_noise = guess.center, 0.0
    if plan.step_sigma is not None:
        first, first_noise = _steps(family, rows, guess, levels, plan, draws)
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
    released = Released(first, theta, noise, levels.ridge, n, look.count_noise, first_noise)
    bent = family.expected(guess, look.coordinates, theta, loss)
    coordinates, intervals = look.coordinates._replace(expected=bent), None
    if plan.curvature_sigma is not None and plan.square_sigma is not None:
        weights = coordinates.weights
        square = family.bend * SQUARE_LENGTHS * float(np.sum(weights**2))
        curvatures, gradients = draws.noise.release(
            CURVATURES,
            rows,
            theta=theta,
            loss=family.curvature_loss(plan, levels),
            transform=guess.transform,
            least=least,
            square=square,
            weights=weights,
            sigma=(plan.curvature_sigma, plan.square_sigma),
        )
        noisy = curvatures, plan.curvature_sigma * square, n
        scale = plan.square_sigma * levels.clip**2
        moved = theta
        for _ in range(family.passes):
            J = family.table_curvature(*noisy, look.coordinates, bent)
            moved, intervals = inferred(
                released,
                coordinates,
                J,
                gradients,
                scale,
                family.least_variance,
                robust=rows.persons is not None,
            )
            # The curvature half way from the minimiser to what it is moved to.
            bent = family.expected(guess, look.coordinates, 0.5 * (theta + moved), loss)
            coordinates = coordinates._replace(expected=bent)
        theta = moved
        assert intervals is not None
        known = seen_columns(released, coordinates, rows.categories)
        intervals = intervals._replace(known=known)
        if rows.persons is not None:  # squares of sums of residuals tell no variance of one
            intervals = intervals._replace(sure=False)
    if not family.squares:
        theta = pooled(theta, released, coordinates, rows.categories)
    elif intervals is not None:
        theta, intervals = posterior(theta, intervals, released, coordinates)
        theta = ranged(theta, released, coordinates, rows.categories, intervals.covariance)
    else:
        theta = shrunk(theta, released, coordinates)
        theta = ranged(theta, released, coordinates, rows.categories)
    return Solution(
        theta,
        gradient_noise=noise,
        chosen={"rounds": plan.n_rounds, **family.chosen(guess, levels), "kept": 1.0},
        intervals=intervals,
        levels=tuple(n * p for p in coordinates.shares),
        level_noise=look.count_noise,
    )


class Look(NamedTuple):
    """Coordinates from the released counts and moments, and a first guess from the numbers alone.

    ``count_noise`` is the standard deviation of the noise of the count of a level.
    """

    coordinates: Geometry
    guess: Guess
    count_noise: float


def _look(
    family: Family, rows: Rows, categories: Categories, plan: AdaptivePlan, draws: Draws
) -> Look:
    """Release counts of levels and second moments of numbers and target, and read them."""
    assert plan.level_sigma is not None
    d, mean = rows.d, 0.0
    if plan.mean_sigma is not None:
        mean = draws.noise.release(TARGET_MEAN, rows, sigma=plan.mean_sigma)
    counts = draws.noise.release(LEVEL_COUNTS, rows, categories=categories, sigma=plan.level_sigma)
    ends = np.cumsum([1 + len(columns) for columns in categories.columns])[:-1]
    noise = plan.level_sigma * math.sqrt(len(categories.columns))
    shares = tuple(level_shares(each, noise) for each in np.split(counts, ends))
    columns = [*categories.numbers(d), d - 1]
    moments = _number_moments(rows, [*columns, d], categories.unit, mean, plan, draws)
    coordinates = geometry(categories, shares, moments[:-1, :-1], rows.constant, d)
    center, baseline = np.zeros(d), np.zeros(d)
    center[columns] = np.linalg.solve(moments[:-1, :-1], moments[:-1, -1])
    baseline[-1] = moments[-2, -1] / moments[-2, -2]
    variance = float(moments[-1, -1] - moments[-1, :-1] @ center[columns])
    spread = math.sqrt(min(max(variance, 1e-6), 1.0))
    K = coordinates.transform
    guess = Guess(center, K, np.asarray(np.linalg.inv(K), np.float64), np.ones(d), baseline, spread)
    return Look(coordinates, family.guess(guess, rows, plan.n_rounds), noise)


def level_shares(counts: FloatArray, noise: float = 0.0) -> FloatArray:
    """Return the shares of the levels of a category; equal ones where noise hides all counts.

    Counts with noise of this standard deviation are moved towards their mean by what noise explains
    (the positive part of James and Stein's estimator).
    """
    mean = float(np.mean(counts))
    rest = counts - mean
    expected = (len(counts) - 1) * noise**2
    kept = max(0.0, 1.0 - expected / max(float(rest @ rest), 1e-300))
    known = np.maximum(mean + kept * rest, 0.0)
    return np.asarray(known / known.sum() if known.any() else np.full(len(known), 1.0 / len(known)))


def _number_moments(
    rows: Rows, columns: list[int], unit: float, mean: float, plan: AdaptivePlan, draws: Draws
) -> FloatArray:
    """Release mean second moments of some columns and the target, in ever rounder coordinates.

    The constant is the last column; the first coordinates have targets around ``mean``.
    """
    assert plan.moment_sigma is not None
    size, n = len(columns), rows.n
    floor = least_eigenvalue(plan.moment_sigma, size)
    # No entry is larger than the unit, so that rows with their target are shorter than 1.
    units = np.full(size, FIRST / math.sqrt(2.0 * (size - 1)) / unit)
    units[-1] = FIRST / math.sqrt(2.0)
    inner = np.diag(units)
    inner[-2, -1] = -units[-1] * mean / rows.constant
    for step in range(plan.n_rounds):
        draws.progress(step + 1, plan.n_rounds + 2)
        transform = np.zeros((rows.d + 1, rows.d + 1))
        transform[np.ix_(columns, columns)] = inner
        moments = draws.noise.release(
            NUMBER_MOMENTS, rows, transform=transform, columns=columns, sigma=plan.moment_sigma
        )
        values, vectors = np.linalg.eigh(moments)
        evident = np.maximum(values, 0.0)
        back = solve_triangular(inner, vectors, trans=1)
        whole = (back * (evident + floor)) @ back.T / n + LEAST_VARIANCE * np.eye(size)
        directions = max(1.0, float(np.sum(evident / (evident + floor))))
        inner = rounded(whole) / math.sqrt(ROOM * directions)
    return np.asarray(whole)


def _steps(
    family: Family, rows: Rows, guess: Guess, levels: Levels, plan: AdaptivePlan, draws: Draws
) -> tuple[FloatArray, float]:
    r"""Release a few gradients from the fit of the numbers on.

    Return a first fit and the standard deviation of its noise where rows have no curvature.

    In coordinates where the curvature of n rows is about :math:`n c I`, a step is
    :math:`\phi \gets \phi + 0.6\,g/(nc)` with some momentum.
    """
    assert plan.step_sigma is not None
    n, d, K = rows.n, rows.d, guess.transform
    curved = n * family.curvature(guess)
    stiff = STIFF * max(min(levels.longest, 1e3), math.sqrt(d)) ** 2
    # Rows longer than that may need more, which the ridge of the levels has.
    loss = family.loss(plan, levels._replace(ridge=max(stiff, levels.ridge)))
    phi, move = np.zeros(d), np.zeros(d)
    for _ in range(STEPS):
        gradient = draws.noise.release(
            SLOPES,
            rows,
            theta=guess.center + K @ phi,
            loss=loss,
            transform=K,
            least=SHORTEST * math.sqrt(d),
            sigma=plan.step_sigma,
        )
        move = MOMENTUM * move + STEP * gradient / curved
        phi = phi + move
    # The positive part of James and Stein's estimator: noise of the steps is taken off.
    noise = STEP * plan.step_sigma * levels.clip / curved
    gain = GAIN if family.squares else 1.0 + MOMENTUM
    expected = d * gain * noise**2
    kept = max(0.0, 1.0 - expected / max(float(phi @ phi), 1e-300))
    return np.asarray(guess.center + kept * (K @ phi)), kept * math.sqrt(FLAT) * noise


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
    if family.counted is None:
        typical = typical_gradient(counts, edges, n) / root
        guess = guess._replace(spread=min(typical, guess.spread))
    return guess, max(LEAST_CLIP * levels.clip, levels.clip if best is None else best)
