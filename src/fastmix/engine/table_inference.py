r"""Intervals of a table's fit, and one estimate for levels with few rows.

In the coordinates of `geometry`, with the first fit as origin, the minimiser solves
:math:`\sum_i f'_i z_i = \lambda\hat\phi + b`. To first order
:math:`\hat\phi = V (J\phi^* + e - b)` with :math:`V = (J + \lambda)^{-1}`, J the curvature and e
the sampling of records. So :math:`\sum_{k=0}^3 (\lambda V)^k\hat\phi` has the bias
:math:`-\lambda^4 V^4\phi^*` and the covariance :math:`G (mJ + s^2 I) G^\top`,
:math:`G = \sum_{k=0}^3 (\lambda V)^k V`: m is the mean square of a slope over its curvature, and s
the scale of b. J is estimated by `curvature_estimate` (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fastmix._types import BoolArray, FloatArray
from fastmix.engine.geometry import Curvature, Geometry
from fastmix.engine.inference import Intervals
from fastmix.schema.categories import Categories

#: A coefficient is identified if what the ridge may have left of it is at most this share of the
#: rest of its variance.
MOST_BIAS = 0.25
#: Ends of groups of directions, by curvature, that have one size of coefficients.
GROUPS = (3, 8, 16, 32, 64, 128)
#: Noise on the minimiser in units of what the noise of the objective does to it.
OUTPUT = 0.1
#: A level is seen if its count is this many standard deviations of its noise.
SEEN = 2.0
#: A level that is not seen keeps an effect that is more than this many standard deviations of its
#: noise outside the range of the levels that are seen, if levels of this share of all rows, or
#: more, may be not seen.
CLEAR, MATTERS = 4.0, 0.005
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
    count_noise: float
    #: Standard deviation of the noise of the first fit, per coordinate.
    first_noise: float = 0.0

    def seen(self, p: FloatArray) -> BoolArray:
        """Return which levels have more rows than noise explains; at least the largest one."""
        return np.asarray((self.n * p >= SEEN * self.count_noise) | (p == p.max()))


def inferred(
    released: Released, coordinates: Geometry, J: Curvature, middle: FloatArray
) -> tuple[FloatArray, Intervals]:
    r"""Return the minimiser, and how far off it may be.

    The ridge pulls it by :math:`\lambda V\phi^*`. Taking an estimate of that off would move the
    curvature of the loss, too, and noise would grow with each step, so it counts as bias.
    ``middle`` is the covariance of the sampling of gradients, and E is the error of J.
    """
    ridge, K = released.ridge, coordinates.transform
    phi = np.linalg.solve(K, released.theta - released.first)
    pull = ridge / (J.values + ridge)
    along, V = J.vectors.T @ phi, J.of(1.0 / (J.values + ridge))
    pulled = J.vectors @ (pull * (1.0 + pull) * along)  # of the minimiser without its own pull
    noise = released.noise**2 * (V @ V)
    spread = V @ middle @ V + noise
    wrong = _through(V, J.error @ (pulled**2 + np.diag(spread)))
    wrong += (OUTPUT * released.noise / (released.n + ridge)) ** 2 * np.eye(len(K))
    bias = np.outer(pulled, pulled) + J.of(pull**4 * _sizes(along))
    spread, noise, bias = (K @ each @ K.T for each in (spread + wrong, noise + wrong, bias))
    return released.theta, Intervals(spread, noise, 1.0, False, bias)


def _through(A: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the covariance of A times independent numbers of these variances."""
    return np.asarray((A * variances) @ A.T)


def sampling(
    gradients: FloatArray, scale: float, expected: FloatArray, coordinates: Geometry
) -> FloatArray:
    """Move an expected covariance of gradients towards the released one, block by block.

    The released one is in coordinates times their weights and has noise of a scale. A block moves
    by the share of the difference that noise does not explain.
    """
    weights = np.outer(coordinates.weights, coordinates.weights)
    rest, kept = gradients - expected * weights, np.zeros_like(weights)
    for number, block in enumerate(coordinates.blocks):
        for other in coordinates.blocks[number:]:
            part = rest[block, other]
            entries = part.size + (len(part) if block == other else 0)
            noise = 0.5 * scale**2 * entries
            share = max(0.0, 1.0 - noise / max(float(np.sum(part**2)), 1e-300))
            kept[block, other] = kept[other, block] = share
    values, vectors = np.linalg.eigh(expected * weights + kept * rest)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T / weights)


def _sizes(along: FloatArray) -> FloatArray:
    """Return the mean square of coefficients in groups of directions, none below the next group's.

    Directions are in ascending order of curvature; a mean of few squares is raised by its standard
    error.
    """
    d = len(along)
    ends = [0, *(end for end in GROUPS if end < d), d]
    sizes = np.empty(d)
    for low, high in pairwise(ends):
        mean = float(np.mean(along[low:high] ** 2))
        sizes[low:high] = mean * (1.0 + math.sqrt(2.0 / (high - low)))
    return np.maximum.accumulate(sizes[::-1])[::-1]


def posterior(
    released: Released, coordinates: Geometry, J: Curvature, middle: FloatArray
) -> tuple[FloatArray, Intervals]:
    r"""Return the posterior mean of coefficients, and intervals of its spread.

    With :math:`\delta` the way from the minimiser to the truth and E the error of J,
    :math:`J\delta = \lambda\hat\phi - e + b - E\delta`. We assume that the coordinates of a block
    are draws of variance :math:`\tau^2` around 0; the constant can be any number. ``middle`` is
    the covariance of e, the sampling of gradients.
    """
    ridge, K = released.ridge, coordinates.transform
    psi, first = (np.linalg.solve(K, each) for each in (released.theta, released.first))
    curved, noise = J.of(J.values), released.noise**2 * np.eye(len(K))
    weight = np.linalg.solve(middle + noise, curved)
    told = curved @ weight
    target = told @ psi + weight.T @ (ridge * (psi - first))
    prior = _prior(told, target, _block_sizes(released, coordinates, RAISED), coordinates)
    spread = np.linalg.inv(told + np.diag(1.0 / prior))
    gain, moved = spread @ weight.T, spread @ target - psi
    bias = LEFT_OUT * _through(spread / prior, prior)
    wrong = _through(gain, J.error @ (moved**2 + np.diag(spread)))
    # The prior's part is in the posterior variance, so that both together are it.
    spread, noise = spread - bias + wrong, gain @ noise @ gain.T + wrong
    noise += (OUTPUT * released.noise / (released.n + ridge)) ** 2 * np.eye(len(K))
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
    left, v = _left(released, coordinates), _variances(released, coordinates)
    psi, K = np.linalg.solve(coordinates.transform, theta), coordinates.transform
    for block in coordinates.blocks[:-1]:
        size = max(float(np.mean(psi[block] ** 2 - v[block])), 0.0)
        kept = size / ((size + v[block] + 1e-300) * np.maximum(left[block], LEAST_LEFT))
        psi[block] *= np.minimum(kept, 1.0)
    return np.asarray(K @ psi)


def _left(released: Released, coordinates: Geometry) -> FloatArray:
    """Return the share of the truth that the ridge leaves if blocks are independent."""
    expected = released.n * np.diag(coordinates.expected)
    return np.asarray(expected / (expected + released.ridge))


def _variances(released: Released, coordinates: Geometry) -> FloatArray:
    """Return the variances of the noise of the minimiser and the first fit, likewise."""
    expected = released.n * np.diag(coordinates.expected)
    square = released.noise**2 + (released.ridge * released.first_noise) ** 2
    return np.asarray(square / (expected + released.ridge) ** 2)


def _block_sizes(released: Released, coordinates: Geometry, raised: float) -> FloatArray:
    r"""Return the mean square :math:`\tau^2` of the coordinates of each block beyond noise.

    It is raised by so many standard errors of itself. The constant may have any size.
    """
    psi = np.linalg.solve(coordinates.transform, released.theta)
    left, v = _left(released, coordinates), _variances(released, coordinates)
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
    if covariance is None:
        covariance = (K * _variances(released, coordinates)) @ K.T
    for columns, p in zip(categories.columns, coordinates.shares, strict=True):
        effects, seen = np.append(0.0, theta[list(columns)]), released.seen(p)
        q = np.where(seen, p, 0.0) / float(p[seen].sum())
        C = np.zeros((len(p), len(K)))
        C[range(1, len(p)), list(columns)] = 1.0
        C -= q @ C
        reach = CLEAR * np.sqrt(np.maximum(np.sum((C @ covariance) * C, axis=1), 0.0))
        nearest = np.clip(effects, effects[seen].min(), effects[seen].max())
        unsure = SEEN * released.count_noise
        own = seen | (released.n * (1.0 / len(p) - p) < unsure)
        if unsure >= MATTERS * released.n:
            own |= np.abs(effects - nearest) > reach
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
    for columns, p in zip(categories.columns, coordinates.shares, strict=True):
        effects, seen = np.append(0.0, theta[list(columns)]), released.seen(p)
        q = np.where(seen, p, 0.0) / float(p[seen].sum())
        mean = float(q @ effects)
        C = np.zeros((len(p), d))
        C[range(1, len(p)), list(columns)] = 1.0
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


def seen_columns(released: Released, coordinates: Geometry, categories: Categories) -> BoolArray:
    """Return which coefficients compare two levels that are seen, or belong to numbers."""
    known = np.ones(len(released.theta), dtype=bool)
    for columns, p in zip(categories.columns, coordinates.shares, strict=True):
        seen = released.seen(p)
        known[list(columns)] = seen[1:] & seen[0]
    return known


def _constant(coordinates: Geometry) -> float:
    """Return the value of the constant column."""
    return 1.0 / float(coordinates.transform[-1, -1])


def _noise_variances(released: Released, coordinates: Geometry) -> FloatArray:
    """Return the covariance of the noise of coefficients if blocks were independent."""
    K, expected = coordinates.transform, released.n * coordinates.expected
    V = np.linalg.inv(expected + released.ridge * np.eye(len(K)))
    return np.asarray(released.noise**2 * (K @ V @ V @ K.T))
