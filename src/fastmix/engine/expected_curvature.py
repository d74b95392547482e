r"""The curvature of a logistic model that released coefficients lead to expect in a table.

The log-odds of a row are :math:`s = z^\top\phi` in the coordinates of a table. If its blocks are
independent and numbers are normal, the mean of :math:`\sigma'(s) z z^\top` follows from the shares
of levels: given the levels of one or two categories, the rest of s is about normal with a known
mean and variance (docs/proofs/tables.md, Section 7). Only released values enter.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import expit

from fastmix._types import FloatArray
from fastmix.engine.geometry import Geometry, level_codes
from fastmix.kernels.sigmoids import Logistic

#: Nodes and weights of a quadrature for the normal distribution.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
WEIGHTS = WEIGHTS / math.sqrt(2.0 * math.pi)


def expected_logistic(
    coordinates: Geometry, theta: FloatArray, loss: Logistic | None = None
) -> FloatArray:
    r"""Return the mean of :math:`f'' z z^\top` if the blocks were independent.

    f'' is the curvature of ``loss``, whose limits depend on the length of a row, or by default that
    of the logistic loss without limits.
    """
    phi, blocks = np.linalg.solve(coordinates.transform, theta), coordinates.blocks
    shares = coordinates.shares
    categories = blocks[len(blocks) - 1 - len(shares) : -1]
    numbers = blocks[0] if len(blocks) > len(categories) + 1 else slice(0, 0)
    constant, b = slice(len(phi) - 1, len(phi)), phi[numbers]
    codes = [level_codes(p) for p in shares]
    # What each level adds to the log-odds and to the squared length, less their means.
    odds = [C @ phi[block] for C, block in zip(codes, categories, strict=True)]
    sizes = [np.sum(C**2, axis=1) for C in codes]
    length = len(b) + 1.0 + sum(float(p @ size) for p, size in zip(shares, sizes, strict=True))
    sizes = [size - float(p @ size) for p, size in zip(shares, sizes, strict=True)]
    spreads = [float(p @ a**2) for p, a in zip(shares, odds, strict=True)]
    mean, total = float(phi[-1]), float(b @ b) + sum(spreads)
    J = np.zeros((len(phi), len(phi)))

    def put(rows: slice, columns: slice, part: FloatArray) -> None:
        J[rows, columns], J[columns, rows] = part, part.T

    def means(order: int, odds: Any, size: Any, variance: float) -> FloatArray:
        return _mean(order, mean + odds, length + size, variance, loss)

    put(constant, constant, np.array([[means(0, 0.0, 0.0, total)]]))
    curved = means(2, 0.0, 0.0, total)
    put(numbers, numbers, J[-1, -1] * np.eye(len(b)) + curved * np.outer(b, b))
    put(numbers, constant, means(1, 0.0, 0.0, total) * b[:, None])
    parts = list(zip(categories, shares, codes, odds, sizes, spreads, strict=True))
    for block, p, C, a, size, v in parts:
        bent = p * means(0, a, size, total - v)
        put(block, block, (C * bent[:, None]).T @ C)
        put(block, constant, (C.T @ bent)[:, None])
        put(numbers, block, np.outer(b, C.T @ (p * means(1, a, size, total - v))))
    for (block, p, C, a, size, v), (other, q, D, c, more, w) in combinations(parts, 2):
        bent = means(0, a[:, None] + c, size[:, None] + more, total - v - w)
        put(block, other, C.T @ (bent * np.outer(p, q)) @ D)
    return J


def _mean(
    order: int, mean: Any, squared: Any, variance: float, loss: Logistic | None
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
