r"""Intervals of a table's fit, and one estimate for levels with few rows.

In the coordinates of `geometry`, with the first fit as origin, the minimiser solves
:math:`\sum_i f'_i z_i = \lambda W\hat\phi + b`, where the rows of the objective were made round by
the mean second moments W, and b has the covariance :math:`s^2 W`. J is the curvature, e the
sampling of records and m the mean square of a slope over its curvature (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastmix._types import BoolArray, FloatArray
from fastmix.engine.first_stage import rounded
from fastmix.engine.geometry import Curvature, Geometry, shrunk_towards
from fastmix.engine.inference import Intervals
from fastmix.engine.level_counts import LevelCounts
from fastmix.schema.categories import Categories

#: A coefficient is identified if what the ridge may have left of it is at most this share of the
#: rest of its variance.
MOST_BIAS = 0.25
#: No coefficient is identified if the squared error of the curvature between blocks is more than
#: this share of it: intervals are of first order in that error. Chosen on Black Friday, King County
#: and Rossmann.
MOST_UNSURE = 0.35
#: Noise on the minimiser in units of what the noise of the objective does to it.
OUTPUT = 0.1
#: A level is seen if its count is this many standard deviations of its noise.
SEEN = 2.0
#: A level that is not seen keeps an effect that is more than `CLEAR` standard deviations of noise
#: outside the range of the levels that are seen, or `SURE` standard errors with intervals, if
#: levels of the share `MATTERS` of all rows, or more, may be not seen.
CLEAR, SURE, MATTERS = 4.0, 3.0, 0.005
#: In `pooled`, effects of more than this many standard deviations of noise are more than noise.
BEYOND = 2.0
#: The variance of coefficients of a block is raised by this many standard errors of its estimate.
RAISED = 1.0
#: The share of the posterior variance that counts as bias, per share that the prior adds to it: by
#: `MOST_BIAS`, a coefficient that the data tell a quarter of, or less, is not identified.
LEFT_OUT = MOST_BIAS / (1.0 + MOST_BIAS) / 0.75
#: The least share of the truth that a minimiser is taken to hold.
LEAST_LEFT = 0.1
#: Steps in which the variances of coefficients are raised.
STEPS = 3
#: The variance of the constant, far above noise.
LARGE = 100.0


class Released(NamedTuple):
    """How a minimiser came about: first fit, noise, ridge, sizes."""

    first: FloatArray
    theta: FloatArray
    noise: float
    ridge: float
    n: int
    counts: LevelCounts
    #: Standard deviation of the noise of the first fit, per coordinate.
    first_noise: float
    #: Mean second moments by which the rows of the objective were made round.
    metric: FloatArray

    def seen(self, number: int) -> BoolArray:
        """Return which levels of a category have more rows than noise explains.

        At least the largest one has.
        """
        rows, errors = self.counts.rows[number], self.counts.errors[number]
        return np.asarray((rows >= SEEN * errors) | (rows == rows.max()))


def through(A: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the covariance of A times independent numbers of these variances."""
    return np.asarray((A * variances) @ A.T)


def sampling(
    squared: FloatArray,
    scale: float,
    squares: float,
    J: Curvature,
    metric: FloatArray,
    least: float,
) -> tuple[float, FloatArray]:
    """Return the mean square of a slope over its curvature, and what unequal ones add.

    ``squared`` are squares of gradients with noise of a scale, in coordinates in which ``metric``
    is the identity, and ``squares`` is their sum. What differs from the mean times the curvature
    counts by the share that noise does not explain.
    """
    T = rounded(metric)
    curved = T.T @ J.of(J.values) @ T
    m = max(squares / float(np.trace(curved)), least)
    values, vectors = np.linalg.eigh(shrunk_towards(squared, m * curved, scale))
    rest, back = (vectors * np.maximum(values, 0.0)) @ vectors.T - m * curved, np.linalg.inv(T)
    return m, np.asarray(back.T @ rest @ back)


def posterior(
    released: Released, coordinates: Geometry, J: Curvature, m: float, unequal: FloatArray
) -> tuple[FloatArray, Intervals]:
    r"""Return the posterior mean of coefficients, and intervals of its spread.

    With :math:`\delta` the way from the minimiser to the truth and E the error of J,
    :math:`J\delta = \lambda\hat\phi - e + b - E\delta`. We assume that the coordinates of a block
    are draws of variance :math:`\tau^2` around 0; the constant can be any number. The sampling of
    gradients, e, has the covariance :math:`mJ`. What ``unequal`` variances add to it is known with
    much noise, so it widens intervals and leaves the estimate alone.
    """
    K, metric = coordinates.transform, released.metric
    psi, first = (np.linalg.solve(K, each) for each in (released.theta, released.first))
    curved, noise = J.of(J.values), released.noise**2 * metric
    weight = np.linalg.solve(m * curved + noise, curved)
    told = curved @ weight
    target = told @ psi + weight.T @ (released.ridge * (metric @ (psi - first)))
    prior = _prior(told, target, _block_sizes(released, coordinates, curved, RAISED), coordinates)
    spread = np.linalg.inv(told + np.diag(1.0 / prior))
    gain, moved = spread @ weight.T, spread @ target - psi
    bias = LEFT_OUT * through(spread / prior, prior)
    wrong = through(gain, J.error @ moved**2 + J.hidden @ np.diag(spread))
    # The prior's part is in the posterior variance, so that both together are it.
    spread, noise = spread - bias + wrong + gain @ unequal @ gain.T, gain @ noise @ gain.T + wrong
    noise += (OUTPUT * released.noise / released.n) ** 2 * np.linalg.inv(metric)
    if J.unsure(coordinates.blocks) > MOST_UNSURE:
        bias = spread
    spread, noise, bias = (K @ each @ K.T for each in (spread, noise, bias))
    return K @ (psi + moved), Intervals(spread, noise, 1.0, False, bias)


def _prior(
    told: FloatArray, target: FloatArray, start: FloatArray, coordinates: Geometry
) -> FloatArray:
    """Raise the variances of coordinates to the mean squares of the posterior means of a block.

    The data have the information ``told``, and ``target`` is it times what they estimate. The
    minimiser, which the first variances come from, is too small where the ridge pulls most.
    """
    prior = start.copy()
    for _ in range(STEPS):
        mean = np.linalg.solve(told + np.diag(1.0 / prior), target)
        for block in coordinates.blocks[:-1]:
            prior[block] = np.maximum(prior[block], float(np.mean(mean[block] ** 2)))
    return prior


def shrunk(theta: FloatArray, released: Released, coordinates: Geometry) -> FloatArray:
    r"""Shrink the coordinates of each block by what noise explains of their size.

    A minimiser :math:`a\psi` plus noise of variance v has the best linear estimate
    :math:`a\tau^2/(a^2\tau^2 + v)` times itself; it is never stretched.
    """
    left, v = _left(released, released.n * coordinates.expected)
    psi, K = np.linalg.solve(coordinates.transform, theta), coordinates.transform
    for block in coordinates.blocks[:-1]:
        size = max(float(np.mean(psi[block] ** 2 - v[block])), 0.0)
        kept = size / ((size + v[block] + 1e-300) * np.maximum(left[block], LEAST_LEFT))
        psi[block] *= np.minimum(kept, 1.0)
    return np.asarray(K @ psi)


def _left(released: Released, curved: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of each coordinate that the ridge leaves, and the variance of its noise."""
    e, r = np.diag(curved), np.diag(released.metric)
    square = released.noise**2 + (released.ridge * released.first_noise) ** 2
    return e / (e + released.ridge * r), square * r / (e + released.ridge * r) ** 2


def _block_sizes(
    released: Released, coordinates: Geometry, curved: FloatArray, raised: float
) -> FloatArray:
    r"""Return the mean square :math:`\tau^2` of the coordinates of each block beyond noise.

    It is raised by so many standard errors of itself. The constant may have any size.
    """
    psi = np.linalg.solve(coordinates.transform, released.theta)
    left, v = _left(released, curved)
    sizes = np.full(len(psi), LARGE)
    for block in coordinates.blocks[:-1]:
        noise, k = float(np.mean(v[block])), block.stop - block.start
        beyond = max(float(np.mean(psi[block] ** 2)) - noise, 0.0)
        beyond += raised * math.sqrt(2.0 / k) * noise
        sizes[block] = beyond / max(float(np.mean(left[block] ** 2)), LEAST_LEFT**2)
    return sizes


def ranged(
    theta: FloatArray,
    released: Released,
    coordinates: Geometry,
    categories: Categories,
    covariance: FloatArray | None = None,
) -> FloatArray:
    """Move levels without rows into the range of the levels that have some.

    A level is moved if noise may have made up its rows and its count is evidently below the mean
    count of its category. Where noise hides many rows, an effect that noise cannot have made up
    stays. ``covariance`` is that of the errors of the coefficients, if it is known.
    """
    theta, K = theta.copy(), coordinates.transform
    clear = CLEAR if covariance is None else SURE
    if covariance is None:
        covariance = (K * _left(released, released.n * coordinates.expected)[1]) @ K.T
    for number, (columns, rows, errors) in enumerate(
        zip(categories.columns, *released.counts, strict=True)
    ):
        effects, seen = np.append(0.0, theta[list(columns)]), released.seen(number)
        q = np.where(seen, rows, 0.0) / float(rows[seen].sum())
        C = np.zeros((len(rows), len(K)))
        C[range(1, len(rows)), list(columns)] = 1.0
        C -= q @ C
        reach = clear * np.sqrt(np.maximum(np.sum((C @ covariance) * C, axis=1), 0.0))
        nearest = np.clip(effects, effects[seen].min(), effects[seen].max())
        unsure = SEEN * errors
        own = seen | (float(np.mean(rows)) - rows < unsure)
        own |= (unsure >= MATTERS * released.n) & (np.abs(effects - nearest) > reach)
        effects = np.where(own, effects, nearest)
        theta[list(columns)] = effects[1:] - effects[0]
        theta[-1] += effects[0] * categories.unit / _constant(coordinates)
    return theta


def pooled(
    theta: FloatArray,
    released: Released,
    coordinates: Geometry,
    categories: Categories,
) -> FloatArray:
    r"""Pull the effects of levels towards the mean of their category by what noise explains.

    An effect with noise of variance v is kept by the share :math:`\tau^2/(\tau^2 + v)`, where
    :math:`\tau^2` is the variance of the effects of a category beyond their noise, weighted by the
    released counts. Effects far beyond their noise stay nearly as they are. A level whose rows
    noise may have made up predicts within the range of the levels that are seen.
    """
    theta, d = theta.copy(), len(theta)
    variances = _noise_variances(released, coordinates)
    for number, (columns, rows) in enumerate(
        zip(categories.columns, released.counts.rows, strict=True)
    ):
        effects, seen = np.append(0.0, theta[list(columns)]), released.seen(number)
        q = np.where(seen, rows, 0.0) / float(rows[seen].sum())
        mean = float(q @ effects)
        C = np.zeros((len(rows), d))
        C[range(1, len(rows)), list(columns)] = 1.0
        C -= q @ C
        v = np.sum((C @ variances) * C, axis=1)
        squares = (effects - mean) ** 2
        spread = max(float(q @ (squares - v)), 0.0)
        clear = 1.0 - BEYOND**2 * v / np.maximum(squares, 1e-300)
        kept = np.maximum(spread / (spread + v + 1e-300), clear)
        shrunk = mean + kept * (effects - mean)
        shrunk = np.where(seen, shrunk, np.clip(shrunk, shrunk[seen].min(), shrunk[seen].max()))
        theta[list(columns)] = shrunk[1:] - shrunk[0]
        theta[-1] += shrunk[0] * categories.unit / _constant(coordinates)
    return theta


def seen_columns(released: Released, categories: Categories) -> BoolArray:
    """Return which coefficients compare two levels that are seen, or belong to numbers."""
    known = np.ones(len(released.theta), dtype=bool)
    for number, columns in enumerate(categories.columns):
        seen = released.seen(number)
        known[list(columns)] = seen[1:] & seen[0]
    return known


def _constant(coordinates: Geometry) -> float:
    """Return the value of the constant column."""
    return 1.0 / float(coordinates.transform[-1, -1])


def _noise_variances(released: Released, coordinates: Geometry) -> FloatArray:
    """Return the covariance of the noise of coefficients if blocks were independent."""
    K, expected = coordinates.transform, released.n * coordinates.expected
    V = np.linalg.inv(expected + released.ridge * released.metric)
    return np.asarray(released.noise**2 * (K @ V @ released.metric @ V @ K.T))
