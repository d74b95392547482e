r"""Descend to the minimum of a perturbed objective where the fast solver does not arrive.

Points and residuals are pairs of numbers, so that rounding does not stop the descent above the
tolerance, and every step goes down by at least what a short step against the gradient does for
certain. So the number of steps is bounded, whatever the data are (docs/proofs/objective.md,
Section 6). Nothing here is private or has to be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fastmix._types import FloatArray
from fastmix.data import Rows, TransformedRows
from fastmix.data.reductions import Block, Pass, add_slopes
from fastmix.errors import InvalidValueError
from fastmix.kernels.losses import Loss
from fastmix.releases.distance import Objective, rounding_distance

#: Splits a number of 53 bits into two of at most 26.
_SPLIT = 2.0**27 + 1.0
#: Length of a sure step in units of one over the largest curvature, and its gain at least, in units
#: of that length times the squared gradient; gradients up to `ENOUGH` times their error are enough.
_SHORT, _SURE, ENOUGH = 0.25, 0.075, 1.25
#: A gradient that is this much of the least so far is progress, whatever the objective does.
_HALF = 0.5
#: Evaluations along one direction, and the share of the slope there that ends them.
_TRIALS, _FLAT = 30, 0.1
#: Ridges that are tried in turn, in units of the curvature, where a Newton step does not gain.
_DAMPED = (0.0, 1e-8, 1e-4)
#: How far a computed norm of a Gram matrix can be below that of the exact one, with room to spare.
_NORM = 1.01


def product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return products in two parts whose sum is exact (Dekker)."""
    high = a * b
    a1, b1 = _SPLIT * a, _SPLIT * b
    a1, b1 = a1 - (a1 - a), b1 - (b1 - b)
    a2, b2 = a - a1, b - b1
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


def total(terms: FloatArray, low: FloatArray | float = 0.0) -> FloatArray:
    """Return the sums of columns in two parts, and ``low`` added: in pairs, as Knuth does it."""
    while len(terms) > 1:
        odd, paired = terms[len(terms) & ~1 :], terms[: len(terms) & ~1]
        a, b = paired[0::2], paired[1::2]
        high = a + b
        z = high - a
        low = low + ((a - (high - z)) + (b - z)).sum(axis=0)
        terms = np.concatenate((high, odd))
    high = terms.sum(axis=0)  # of one row or none
    whole = high + low
    return np.stack([whole, low - (whole - high)])


def times(A: FloatArray, pair: FloatArray, start: FloatArray) -> FloatArray:
    """Return ``start + A v`` in two parts, for a vector v in two parts."""
    high, low = product(A, pair[0])
    return total(np.vstack((start, high.T)), (low + A * pair[1]).sum(axis=1))


def precise_slopes(
    block: Block, theta: FloatArray, loss: Loss
) -> tuple[FloatArray, FloatArray, int]:
    """Return what `slopes` does, for coefficients in two parts and residuals without rounding."""
    totals, start = (np.zeros((2, theta.shape[1])), np.empty((0, 0)), 0), 0
    for weights, A, y in block.weighted():
        at = None if block.lengths is None else block.lengths[start : start + len(y)]
        slope = loss.slope(times(A, -theta, y)[0], at, y)
        if block.weights is not None:
            slope = slope * weights
        totals = add_slopes(totals, (total(A * slope[:, None]), totals[1], 0))
        start += len(y)
    return totals


@dataclass(frozen=True)
class _Point:
    """A point in two parts, its gradient, the norm of that over the ridge, and what it errs by."""

    pair: FloatArray
    gradient: FloatArray
    computed: float
    rounding: float


def descend(
    rows: Rows | TransformedRows, objective: Objective, tolerance: float, guess: FloatArray
) -> FloatArray:
    """Return coefficients within ``tolerance`` of the minimiser, or as near as rounding allows.

    That is nearer than the tolerance of a release, unless its noise is longer than it can be.
    """
    with np.errstate(all="ignore"):
        descent = _Descent(rows, objective, tolerance)
        points = [descent.at(np.stack([each, 0.0 * each])) for each in (objective.center, guess)]
        point = min(points, key=lambda each: (math.isnan(each.computed), each.computed))
        while not descent.ends(point):
            if not math.isfinite(point.computed):
                raise InvalidValueError  # the data have changed since they were checked
            point = descent.step(point)
        return np.asarray(point.pair[0])


class _Descent:
    """Newton steps that surely gain, and steps against the gradient where none does."""

    def __init__(
        self, rows: Rows | TransformedRows, objective: Objective, tolerance: float
    ) -> None:
        self._rows, self._transform, self._offset = rows.parts()
        self._seen, self._objective, self._tolerance = rows, objective, tolerance
        gram = objective.loss.bend * np.linalg.norm(rows.moments()[0])
        self._least = math.inf  # gradient so far
        self._short = _SHORT / (_NORM * float(gram) + objective.ridge)

    def ends(self, point: _Point) -> bool:
        """Whether a point is near enough, or no step is sure to gain."""
        return point.computed <= max(self._tolerance - point.rounding, ENOUGH * point.rounding)

    def at(self, pair: FloatArray) -> _Point:
        """Return the point with its gradient."""
        objective, theta = self._objective, pair
        if self._transform is not None:
            theta = times(self._transform, pair, self._offset)
        slopes = partial(precise_slopes, theta=theta, loss=objective.loss)
        (high, low), _, _ = self._rows.run(Pass("objective", slopes, add_slopes, quiet=True))
        if self._transform is not None:
            high, low = high @ self._transform, low @ self._transform
        own = objective.ridge * ((pair[0] - objective.center) + pair[1]) + objective.b
        gradient = (own - high) - low
        length = float(np.linalg.norm(pair[0]))
        rounding = rounding_distance(objective, self._seen.most, length)
        return _Point(pair, gradient, _norm(gradient) / objective.ridge, rounding)

    def step(self, point: _Point) -> _Point:
        """Return a point with half the least gradient so far, or one that is surely lower.

        Lower by at least what a short step against the gradient gains.
        """
        self._least = min(self._least, point.computed)
        for direction in self._directions(point):
            trial = self._along(point, direction)
            if trial is not None:
                return trial
        return self.at(_moved(point.pair, -self._short * point.gradient))

    def _directions(self, point: _Point) -> Iterator[FloatArray]:
        """Yield Newton directions, the later the shorter; none where a factorisation fails."""
        objective = self._objective
        curvature = self._seen.sampled_curvature(point.pair[0], objective.loss, 1)
        for share in _DAMPED:
            matrix = curvature.copy()
            matrix[np.diag_indices_from(matrix)] += objective.ridge + share / self._short
            try:
                factor = cho_factor(matrix, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            direction = np.asarray(cho_solve(factor, -point.gradient, check_finite=False))
            if np.isfinite(direction).all():
                yield direction

    def _along(self, point: _Point, direction: FloatArray) -> _Point | None:
        r"""Return the best point found along a direction, None if it may not be low enough.

        Slopes along the direction do not fall, so the objective changes by at most
        :math:`\sum (t_i - t_{i-1})\,s_i` over points :math:`t_i` with slopes :math:`s_i`.
        """
        ridge, size = self._objective.ridge, _norm(direction)
        needed = -_SURE * self._short * (ridge * point.computed) ** 2
        first = float(direction @ point.gradient)
        low, high, share, change, best = 0.0, math.inf, 1.0, 0.0, None
        for _ in range(_TRIALS):
            if share * size <= self._short * ridge * point.computed:
                break  # a sure step is longer
            trial = self.at(_moved(point.pair, share * direction))
            if trial.computed <= _HALF * self._least or self.ends(trial):
                return trial
            slope = float(direction @ trial.gradient) + size * ridge * trial.rounding
            after, flat = change + (share - low) * slope, abs(slope) <= -_FLAT * first
            if slope <= 0.0 or (flat and after <= needed):
                low, change, best = share, after, trial
                if flat and change <= needed:
                    break
            else:
                high = share
            share = 2.0 * low if math.isinf(high) else 0.5 * (low + high) if low else high / 8.0
        return best if change <= needed else None


def _moved(pair: FloatArray, step: FloatArray) -> FloatArray:
    """Return a point in two parts, moved."""
    return total(np.stack([pair[0], step]), pair[1])


def _norm(v: FloatArray) -> float:
    return float(np.linalg.norm(v))
