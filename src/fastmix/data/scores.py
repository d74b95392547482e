"""Sums over predictions and residuals, clipped: what scores and lines are made of."""

import numpy as np
from scipy.special import log_expit, logsumexp

from fastmix._types import FloatArray
from fastmix.data.reductions import Block


def line(
    block: Block, *, center: FloatArray, move: FloatArray, widths: tuple[float, float]
) -> FloatArray:
    """Return the sums of p, e, p r and p^2 for ``a' move`` and ``y - a' center``, clipped."""
    total, start = np.zeros(4), 0
    for before, after in block.residuals(center, center + move):
        p = np.clip((before - after) / widths[0], -1.0, 1.0)
        r = np.clip(before / widths[1], -1.0, 1.0)
        own = block.weights_of(start, len(p))
        total += own @ np.column_stack((p, np.clip(after, -1.0, 1.0), p * r, p * p))
        start += len(p)
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
    for own, others in block.unweighted().residuals(theta, base):
        sizes = np.minimum(np.abs(own), level)
        squares, baseline = sizes**2, np.minimum(np.abs(others), base_level) ** 2
        totals += (squares - weight * baseline).sum(), squares.sum(), sizes.sum()
    return totals


def contrasts(block: Block, *, thetas: FloatArray, level: float) -> FloatArray:
    """Return sums of ``min(r_k^2, C^2)`` less their mean over the models k, one column each."""
    total = np.zeros(thetas.shape[1])
    for A, y in block.unweighted().formed():
        squares = np.minimum(np.abs(y[:, None] - A @ thetas), level) ** 2
        total += (squares - squares.mean(axis=1)[:, None]).sum(axis=0)
    return total


def quantile_sums(block: Block, *, theta: FloatArray, quantile: float, level: float) -> FloatArray:
    """Return how many targets are at most their predictions, and the sum of pinball losses.

    The loss is that of residuals clipped to ``[-level, level]``.
    """
    totals = np.zeros(2)
    for A, y in block.unweighted().formed():
        r = np.clip(y - A @ theta, -level, level)
        totals += np.sum(r <= 0.0), np.maximum(quantile * r, (quantile - 1.0) * r).sum()
    return totals


def label_counts(block: Block, *, theta: FloatArray, edges: FloatArray) -> FloatArray:
    """Return how many log-odds lie between the edges, for each of two labels.

    A target is a label by its sign, and 0 is that of an absent record, which counts nowhere.
    """
    counts = np.zeros((2, len(edges) + 1))
    for A, y in block.unweighted().formed():
        at = np.searchsorted(edges, A @ theta, side="right")
        for label, own in enumerate((y < 0.0, y > 0.0)):
            counts[label] += np.bincount(at[own], minlength=len(edges) + 1)
    return counts


def class_hits(block: Block, *, thetas: FloatArray, own: int) -> FloatArray:
    """Return how many rows of a class are predicted to be of another one, and of it.

    The rows are those with positive targets; the columns of ``thetas`` are log-odds of the classes.
    """
    counts = np.zeros(2)
    for A, y in block.unweighted().formed():
        # Not by BLAS, whose rounding depends on where a row stands among those of its class.
        right = np.einsum("ij,jk->ik", A[y > 0.0], thetas).argmax(axis=1) == own
        counts += np.sum(~right), np.sum(right)
    return counts


def log_losses(block: Block, *, thetas: FloatArray, own: int, level: float) -> FloatArray:
    """Return the sum of ``min(-log p, level)``, p being the probability of the label.

    With one column of ``thetas`` the labels are two, by the sign of the target; otherwise rows of
    the class ``own`` are those with positive targets. Absent records have a target of 0.
    """
    total = 0.0
    for A, y in block.unweighted().formed():
        if thetas.shape[1] == 1:
            losses = -log_expit(np.sign(y) * (A @ thetas[:, 0]))[y != 0.0]
        else:
            likely = log_expit(A[y > 0.0] @ thetas)
            losses = logsumexp(likely, axis=1) - likely[:, own]
        total += np.minimum(losses, level).sum()
    return np.array([total])
