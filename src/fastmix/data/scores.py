"""Sums over predictions and residuals, clipped: what scores and lines are made of."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce

import numpy as np
from scipy.special import log_expit

from fastmix._types import FloatArray
from fastmix.data.reductions import Block
from fastmix.kernels.mapped import Targets, map_targets
from fastmix.kernels.reference import added, weighted_counts


def line(
    block: Block, center: FloatArray, move: FloatArray, widths: tuple[float, float]
) -> FloatArray:
    """Return the sums of p, e, p r and p^2 for ``a' move`` and ``y - a' center``, clipped."""
    total = np.zeros(4)
    for rows, (before, after) in block.residuals(center, center + move):
        p = np.clip((before - after) / widths[0], -1.0, 1.0)
        r = np.clip(before / widths[1], -1.0, 1.0)
        terms = np.column_stack((p, np.clip(after, -1.0, 1.0), p * r, p * p))
        total += added(block.weights_of(rows)[:, None] * terms)
    return total


def layer_weights(edges: FloatArray) -> FloatArray:
    """Return weights of norm 1 of the layers between 0 and the edges: low ones weigh more."""
    shares = np.sqrt(np.diff(edges, prepend=0.0))
    return np.asarray(np.sqrt(shares / shares.sum()))


def layers(terms: FloatArray, edges: FloatArray, own: FloatArray) -> FloatArray:
    """Return how far terms fill each layer between 0 and the edges, times `layer_weights`.

    A term fills a layer by a part in [0, 1], so it adds a vector of norm 1 at most. ``own`` are the
    weights of the rows, at most 1 in all for each person.
    """
    below = np.append(0.0, edges[:-1])
    filled = [
        (own * (np.clip(terms, low, high) - low)).sum() / (high - low)
        for low, high in zip(below, edges, strict=True)
    ]
    return np.asarray(layer_weights(edges) * filled)


def residual_layers(
    block: Block, theta: FloatArray, term: Callable[[FloatArray], FloatArray], edges: FloatArray
) -> FloatArray:
    """Return the layers of terms of residuals, with predictions clipped to [-1, 1]."""
    total = np.zeros(len(edges))
    for own, r in _bounded(block, theta):
        total += layers(term(r), edges, own)
    return total


def _bounded(block: Block, theta: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield weights, and residuals of predictions clipped to the range of targets, [-1, 1]."""
    for rows, (r, y) in block.residuals(theta, np.zeros_like(theta)):
        prediction = y - r
        outside = np.abs(prediction) > 1.0
        yield block.weights_of(rows), np.where(outside, y - np.sign(prediction), r)


def below(block: Block, theta: FloatArray) -> FloatArray:
    """Return how many targets are at most their predictions, clipped to [-1, 1]."""
    return np.array([sum(float(np.sum(own[r <= 0.0])) for own, r in _bounded(block, theta))])


def contrasts(block: Block, thetas: FloatArray, level: float) -> FloatArray:
    """Return sums of ``min(r_k^2, C^2)`` less their mean over the models k, one column each."""
    total = np.zeros(thetas.shape[1])
    for rows, residuals in block.residuals(*thetas.T):
        squares = np.minimum(np.abs(np.column_stack(residuals)), level) ** 2
        terms = squares - (sum(squares.T) / len(residuals))[:, None]
        total += added(block.weights_of(rows)[:, None] * terms)
    return total


def label_counts(block: Block, theta: FloatArray, edges: FloatArray) -> FloatArray:
    """Return how many log-odds lie between the edges, for each of two labels.

    A target is a label by its sign, and 0 is that of an absent record, which counts nowhere.
    """
    counts = np.zeros((2, len(edges) + 1))
    for weights, y, (odds,) in _predicted(block, theta):
        at = np.searchsorted(edges, odds, side="right")
        for label, own in enumerate((y < 0.0, y > 0.0)):
            counts[label] += weighted_counts(at[own], weights[own], len(edges) + 1)
    return counts


def class_hits(block: Block, thetas: FloatArray, own: int) -> FloatArray:
    """Return how many rows of a class are predicted to be of another one, and of it.

    The rows are those with positive targets; the columns of ``thetas`` are log-odds of the classes.
    """
    counts = np.zeros(2)
    for weights, y, odds in _predicted(block, *thetas.T):
        right = np.column_stack(odds).argmax(axis=1) == own
        there = y > 0.0
        counts += weighted_counts(right[there].astype(np.int64), weights[there], 2)
    return counts


def loss_layers(block: Block, thetas: FloatArray, own: int, edges: FloatArray) -> FloatArray:
    """Return the layers of ``-log p``, p being the probability of the label.

    With one column of ``thetas`` the labels are two, by the sign of the target; otherwise rows of
    the class ``own`` are those with positive targets. Absent records have a target of 0.
    """
    total = np.zeros(len(edges))
    for weights, y, odds in _predicted(block, *thetas.T):
        if len(odds) == 1:
            there = y != 0.0
            losses = -log_expit(np.sign(y) * odds[0])[there]
        else:
            there = y > 0.0
            likely = [log_expit(each[there]) for each in odds]
            losses = reduce(np.logaddexp, likely) - likely[own]
        total += layers(losses, edges, weights[there])
    return total


def _predicted(
    block: Block, *thetas: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray, list[FloatArray]]]:
    """Yield weights, targets, and ``a' theta`` for each of the coefficients, of each row alone."""
    plain = replace(block, targets=Targets(np.zeros(len(block.targets.y))))
    for rows, residuals in plain.residuals(*thetas):
        y = map_targets(block.targets, rows.start, rows.stop)
        yield block.weights_of(rows), y, [-each for each in residuals]
