"""Sums over predictions and residuals, clipped: what scores and lines are made of."""

import numpy as np

from fastmix._types import FloatArray
from fastmix.data.reductions import Block


def line(
    block: Block, *, center: FloatArray, move: FloatArray, widths: tuple[float, float]
) -> FloatArray:
    """Return the sums of p, e, p r and p^2 for ``a' move`` and ``y - a' center``, clipped."""
    total, start = np.zeros(4), 0
    for A, y in block.formed():
        adds, misses = A @ move, y - A @ center
        p, r = np.clip(adds / widths[0], -1.0, 1.0), np.clip(misses / widths[1], -1.0, 1.0)
        own = block.weights_of(start, len(y))
        total += own @ np.column_stack((p, np.clip(misses - adds, -1.0, 1.0), p * r, p * p))
        start += len(y)
    return total


def score_sums(
    block: Block,
    *,
    theta: FloatArray,
    base: FloatArray,
    level: float,
    base_level: float,
    weight: float,
) -> FloatArray:
    """Return sums of squared residuals, less those of a baseline, and of absolute ones, clipped.

    A record adds ``min(r^2, C^2) - w min(u^2, D^2)``, ``min(r^2, C^2)`` and ``min(|r|, C)``.
    """
    totals = np.zeros(3)
    for A, y in block.unweighted().formed():
        sizes = np.minimum(np.abs(y - A @ theta), level)
        others = np.minimum(np.abs(y - A @ base), base_level)
        squares = sizes**2
        totals += (squares - weight * others**2).sum(), squares.sum(), sizes.sum()
    return totals


def contrasts(block: Block, *, thetas: FloatArray, level: float) -> FloatArray:
    """Return sums of ``min(r_k^2, C^2)`` less their mean over the models k, one column each."""
    total = np.zeros(thetas.shape[1])
    for A, y in block.unweighted().formed():
        squares = np.minimum(np.abs(y[:, None] - A @ thetas), level) ** 2
        total += (squares - squares.mean(axis=1)[:, None]).sum(axis=0)
    return total
