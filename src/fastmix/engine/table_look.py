r"""The first look at a table: counts of levels, moments of numbers, and steps to a first fit.

Levels are counted once, numbers have second moments of their own, and both make coordinates in
which the blocks of columns are round (`geometry`). A few noisy gradient steps from the fit of the
numbers alone give a first fit (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.clipping import SHORTEST, Levels
from fastmix.engine.first_stage import (
    FIRST,
    LEAST_VARIANCE,
    Guess,
    least_eigenvalue,
    rounder,
)
from fastmix.engine.geometry import (
    Curvature,
    Geometry,
    curvature_estimate,
    geometry,
)
from fastmix.engine.level_counts import LevelCounts
from fastmix.engine.plan import Draws
from fastmix.releases import CURVATURE, LEVEL_COUNTS, NUMBER_MOMENTS, SLOPES, TARGET_MEAN
from fastmix.schema.categories import Categories

if TYPE_CHECKING:
    from fastmix.engine.family import Family

#: Steps of the first fit with their length and momentum.
STEPS, STEP, MOMENTUM = 3, 0.6, 0.3
#: Variance of the sum of all steps, in units of the noise of one: where rows have half of the
#: curvature, and where they have none (docs/proofs/tables.md, Section 6).
GAIN, FLAT = 2.5, 4.6
#: A ridge in units of squared lengths, so large that a loss is limited by its clipping level only.
STIFF = 1e6
#: Squared lengths up to which rows count in full in their second moments, in units of the mean.
SQUARE_LENGTHS = 1.5


class Look(NamedTuple):
    """Coordinates from the released counts and moments, and a first guess from the numbers alone.

    ``counts`` are the rows of the levels as far as they are known.
    """

    coordinates: Geometry
    guess: Guess
    counts: LevelCounts

    def flat(self, family: Family) -> Geometry:
        """Return the coordinates with what independent blocks have of the largest curvature."""
        return self.coordinates._replace(expected=family.bend * self.coordinates.expected)


def first_look(
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
    known = [level_rows(each, noise) for each in np.split(counts, ends)]
    shares = tuple(level_shares(each) for each, _ in known)
    columns = [*categories.numbers(d), d - 1]
    moments = _number_moments(family, rows, [*columns, d], categories.unit, mean, plan, draws)
    coordinates = geometry(categories, shares, moments[:-1, :-1], rows.constant, d)
    center, baseline = np.zeros(d), np.zeros(d)
    center[columns] = np.linalg.solve(moments[:-1, :-1], moments[:-1, -1])
    baseline[-1] = moments[-2, -1] / moments[-2, -2]
    variance = float(moments[-1, -1] - moments[-1, :-1] @ center[columns])
    spread = math.sqrt(min(max(variance, 1e-6), 1.0))
    K = coordinates.transform
    guess = Guess(center, K, np.asarray(np.linalg.inv(K), np.float64), np.ones(d), baseline, spread)
    # Persons and weights leave the sum of all counts to be estimated; shares are of n.
    units = [rows.n / max(float(each.sum()), noise) for each, _ in known]
    known_rows = tuple(unit * each for unit, (each, _) in zip(units, known, strict=True))
    errors = tuple(np.full(len(each), std) for each, std in known)
    counts = LevelCounts(known_rows, errors)
    return Look(coordinates, family.guess(guess, rows, plan.n_rounds), counts)


def level_rows(counts: FloatArray, noise: float) -> tuple[FloatArray, float]:
    """Move noisy counts towards their mean by what noise explains, and return their error.

    That is the positive part of James and Stein's estimator. The squared error of a count is the
    share of the noise that is kept, raised by one standard error of that share.
    """
    mean, k = float(np.mean(counts)), len(counts)
    rest = counts - mean
    expected = (k - 1) * noise**2
    kept = max(0.0, 1.0 - expected / max(float(rest @ rest), 1e-300))
    unsure = min(1.0, kept + math.sqrt(2.0 / (k - 1)))
    return np.asarray(mean + kept * rest), noise * math.sqrt(unsure)


def level_shares(counts: FloatArray) -> FloatArray:
    """Return the shares of the levels of a category; equal ones where no count is positive."""
    known = np.maximum(counts, 0.0)
    return np.asarray(known / known.sum() if known.any() else np.full(len(known), 1.0 / len(known)))


def _number_moments(
    family: Family,
    rows: Rows,
    columns: list[int],
    unit: float,
    mean: float,
    plan: AdaptivePlan,
    draws: Draws,
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
        inner = rounder(whole, directions, rows.constant, family.labels)
    return np.asarray(whole)


def row_moments(
    family: Family, rows: Rows, look: Look, levels: Levels, plan: AdaptivePlan, draws: Draws
) -> tuple[Curvature, LevelCounts]:
    """Release second moments of all coordinates, times the largest curvature of a row.

    They are the curvature of a loss that clips nothing, and do not depend on coefficients. They
    tell the rows of levels, too.
    """
    assert plan.curvature_sigma is not None
    flat, weights = look.flat(family), look.coordinates.weights
    square = family.bend * SQUARE_LENGTHS * float(np.sum(weights**2))
    stiff = levels._replace(clip=STIFF * levels.clip, ridge=STIFF**2 * levels.ridge)
    moments = draws.noise.release(
        CURVATURE,
        rows,
        theta=look.guess.center,
        loss=family.curvature_loss(plan, stiff),
        transform=flat.transform,
        least=SHORTEST * math.sqrt(rows.d),
        square=square,
        weights=weights,
        sigma=plan.curvature_sigma,
    )
    # Weights of persons, and a number of rows that was released, leave the mean to be estimated.
    known = rows.persons is None and plan.weight_sigma is None
    given = moments, plan.curvature_sigma * square, rows.n, flat, look.counts
    return curvature_estimate(*given, 1.0 if known else None, square / family.bend)


def first_steps(
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
