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
from fastmix.engine.geometry import Curvature, Geometry, shrunk_towards
from fastmix.engine.inference import Intervals
from fastmix.schema.categories import Categories

#: A coefficient is identified if what the ridge may have left of it is at most this share of the
#: rest of its variance.
MOST_BIAS = 0.25
#: Ends of groups of directions, by curvature, that have one size of coefficients.
GROUPS = (3, 8, 16, 32, 64, 128)
#: Noise on the minimiser in units of what the noise of the objective does to it.
OUTPUT = 0.1
#: The variance of errors counts as identified if noise is at most this share of its sum.
MOST_UNSURE = 0.1
#: A level is seen if its count is this many standard deviations of its noise.
SEEN = 2.0
#: Effects of more than this many standard deviations of noise are more than noise.
CLEAR = 2.0


class Released(NamedTuple):
    """How a minimiser came about: first fit, noise, ridge, sizes."""

    first: FloatArray
    theta: FloatArray
    noise: float
    ridge: float
    n: int
    count_noise: float

    def seen(self, p: FloatArray) -> BoolArray:
        """Return which levels have more rows than noise explains; at least the largest one."""
        return np.asarray((self.n * p >= SEEN * self.count_noise) | (p == p.max()))


def inferred(
    released: Released,
    coordinates: Geometry,
    J: Curvature,
    gradients: FloatArray,
    gradient_scale: float,
    least_variance: float = 0.0,
    *,
    robust: bool = False,
) -> tuple[FloatArray, Intervals]:
    """Return coefficients without most of the pull of the ridge, and how far off they may be.

    With ``robust``, for persons of several rows, the sampling of records has the covariance of the
    released squares of gradients, as far as noise lets it be seen, in place of :math:`mJ`.
    """
    n, ridge, K = released.n, released.ridge, coordinates.transform
    d, weights = len(K), coordinates.weights
    phi = np.linalg.solve(K, released.theta - released.first)
    pull = ridge / (J.values + ridge)
    along = J.vectors.T @ phi
    gain = 1.0 + pull + pull**2 + pull**3
    theta = released.first + K @ (J.vectors @ (gain * along))
    expected = n * np.diag(coordinates.expected) * weights**2
    total, unsure = float(np.trace(gradients)), gradient_scale * math.sqrt(d)
    m = max(total, gradient_scale) / (J.share * float(np.sum(expected)))
    m = max(m, least_variance)
    sure = unsure <= MOST_UNSURE * total
    G = gain / (J.values + ridge)
    output = (OUTPUT * released.noise / (n + ridge)) ** 2
    noise = J.of(G**2 * released.noise**2 + output)
    sampling = J.of(G**2 * m * J.values)
    if robust:
        middle = _middle(gradients, gradient_scale, m * J.of(J.values), weights)
        sampling = J.of(G) @ middle @ J.of(G)
    left = J.of(pull**8 * _sizes(gain * along))
    scale = J.allowance
    noise, sampling = (K @ (scale[:, None] * C * scale) @ K.T for C in (noise, sampling))
    bias = K @ left @ K.T
    return theta, Intervals(noise + sampling, noise, m, None, sure, bias)


def _middle(
    released: FloatArray, scale: float, expected: FloatArray, weights: FloatArray
) -> FloatArray:
    """Move an expected covariance of gradients towards the released one as noise permits."""
    expected = expected * np.outer(weights, weights)
    values, vectors = np.linalg.eigh(shrunk_towards(released, expected, scale))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T / np.outer(weights, weights))


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
        clear = 1.0 - CLEAR**2 * v / np.maximum(squares, 1e-300)
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
