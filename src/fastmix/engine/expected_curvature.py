r"""The curvature of a logistic model that released coefficients lead to expect in a table.

The log-odds of a row are :math:`s = z^\top\phi` in the coordinates of a table. The mean of
:math:`\sigma'(s) z z^\top` follows from the shares of levels and the second moments of rows: given
the levels of one or two categories, we assume that s is normal, with the mean that a linear
regression on these levels has, and the variance that it leaves. Only released values enter
(docs/proofs/tables.md, Section 7).
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from fastmix._types import FloatArray
from fastmix.engine.geometry import Geometry, level_codes
from fastmix.kernels.sigmoids import Logistic

#: Nodes and weights of a quadrature for the normal distribution.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
WEIGHTS = WEIGHTS / math.sqrt(2.0 * math.pi)
#: The least share of the expected second moments that a direction of some blocks is taken to have:
#: below it, noise decides.
LEAST_SHARE = 0.3


class Squares(NamedTuple):
    """Squares of slopes in place of curvatures, gradients limited to a length as counts see them.

    Their mean over the labels of a true model is its curvature where nothing is limited.
    """

    longest: float

    def curvature(self, u: FloatArray, lengths: FloatArray, y: FloatArray) -> FloatArray:
        """Return the squares."""
        return np.asarray(np.minimum(np.abs(Logistic.free(u, y)), self.longest / lengths) ** 2)


def expected_logistic(
    coordinates: Geometry,
    theta: FloatArray,
    loss: Logistic | Squares | None = None,
    moments: FloatArray | None = None,
) -> FloatArray:
    r"""Return the mean of :math:`f'' z z^\top` inside blocks, and between independent ones.

    f'' is the curvature of ``loss``, whose limits depend on the length of a row, or by default that
    of the logistic loss without limits, or `Squares` of slopes. ``moments`` are the mean second
    moments of rows, which tell how the log-odds of a level's rows depend on other blocks; by
    default blocks are independent.
    """
    phi, blocks = np.linalg.solve(coordinates.transform, theta), coordinates.blocks
    shares = coordinates.shares
    categories = blocks[len(blocks) - 1 - len(shares) : -1]
    numbers = blocks[0] if len(blocks) > len(categories) + 1 else slice(0, 0)
    constant, count = slice(len(phi) - 1, len(phi)), numbers.stop
    codes = [level_codes(p) for p in shares]
    # What each level adds to the squared length, less its mean.
    sizes = [np.sum(C**2, axis=1) for C in codes]
    length = count + 1.0 + sum(float(p @ size) for p, size in zip(shares, sizes, strict=True))
    sizes = [size - float(p @ size) for p, size in zip(shares, sizes, strict=True)]
    S = (coordinates.expected if moments is None else moments)[:-1, :-1]
    along, mean = S @ phi[:-1], float(phi[-1])
    total, b = float(phi[:-1] @ along), along[numbers]
    J = np.zeros((len(phi), len(phi)))

    def put(rows: slice, columns: slice, part: FloatArray) -> None:
        J[rows, columns], J[columns, rows] = part, part.T

    def means(order: int, odds: Any, size: Any, variance: float) -> FloatArray:
        return _mean(order, mean + odds, length + size, variance, loss)

    def line(*known: slice) -> tuple[FloatArray, float, FloatArray]:
        """Return the line of log-odds in some blocks, the variance and what numbers share."""
        at = np.concatenate([np.arange(block.start, block.stop) for block in known])
        slopes = _inverse(S[np.ix_(at, at)], coordinates.expected[np.ix_(at, at)]) @ along[at]
        left = max(total - float(slopes @ along[at]), 0.0)
        return slopes, left, b - S[numbers][:, at] @ slopes

    put(constant, constant, np.array([[means(0, 0.0, 0.0, total)]]))
    curved = means(2, 0.0, 0.0, total)
    put(numbers, numbers, J[-1, -1] * np.eye(count) + curved * np.outer(b, b))
    put(numbers, constant, means(1, 0.0, 0.0, total) * b[:, None])
    parts = list(zip(categories, shares, codes, sizes, strict=True))
    for block, p, C, size in parts:
        slopes, left, rest = line(block)
        bent = p * means(0, C @ slopes, size, left)
        put(block, block, (C * bent[:, None]).T @ C)
        put(block, constant, (C.T @ bent)[:, None])
        put(numbers, block, np.outer(rest, C.T @ (p * means(1, C @ slopes, size, left))))
    for (block, p, C, size), (other, q, D, more) in combinations(parts, 2):
        slopes, left, _ = line(block, other)
        odds = (C @ slopes[: C.shape[1]])[:, None] + D @ slopes[C.shape[1] :]
        bent = means(0, odds, size[:, None] + more, left)
        put(block, other, C.T @ (bent * np.outer(p, q)) @ D)
    return J


def _inverse(moments: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the inverse of noisy second moments, each a share of the expected ones or more.

    Directions in which no rows are expected have none.
    """
    values, vectors = np.linalg.eigh(expected)
    seen = values > 1e-6 * values[-1]
    root = vectors[:, seen] / np.sqrt(values[seen])
    values, vectors = np.linalg.eigh(root.T @ moments @ root)
    root = root @ vectors
    return np.asarray((root / np.maximum(values, LEAST_SHARE)) @ root.T)


def _mean(
    order: int, mean: Any, squared: Any, variance: float, loss: Logistic | Squares | None
) -> FloatArray:
    r"""Return the mean of a derivative of the curvature at normal log-odds, by Stein's identity.

    ``squared`` are squared lengths of rows.
    """
    root = math.sqrt(max(variance, 1e-12))
    s = np.asarray(mean)[..., None] + root * NODES
    p = expit(s)
    if loss is None:
        bent = p * (1.0 - p)
    else:
        lengths = np.sqrt(np.maximum(np.asarray(squared), 1.0))[..., None] + np.zeros_like(s)
        one = np.ones_like(s)
        bent = p * loss.curvature(1.0 - s, lengths, one)
        bent += (1.0 - p) * loss.curvature(-1.0 - s, lengths, -one)
    factor = (1.0, NODES / root, (NODES**2 - 1.0) / root**2)[order]
    return np.asarray((bent * factor) @ WEIGHTS)
