"""How far a computed minimiser of a perturbed objective can be from the exact one.

Everything here follows from public sizes and from what was released before, but for the length of
the coefficients that `rounding_distance` is asked about.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fastmix._types import FloatArray
from fastmix.kernels.losses import Loss
from fastmix.kernels.mapped import summation_error
from fastmix.kernels.sigmoids import Logistic

#: Unit of rounding.
_UNIT = 2.0**-53
#: The least tolerance in units of what rounding can do at the longest minimiser, and the most that
#: this may grow with the length for such a tolerance to be reached.
_ROOM, _STEEPEST = 2.5, 0.01


@dataclass(frozen=True)
class Frame:
    """What rounding needs to know of coordinates phi with ``theta = center + T phi``.

    The norms of T, of its inverse and of the centre, and the least length that rows count with.
    """

    stretch: float
    squeeze: float
    offset: float
    least: float


@dataclass(frozen=True)
class Objective:
    r""":math:`\sum_i f(y_i - x_i^\top\theta) + \frac\lambda2\|\theta - c\|^2 + b^\top\theta`.

    ``frame`` tells in which coordinates, if not in those of the rows; rows that are ``weighted``
    have larger rounding errors.
    """

    loss: Loss
    ridge: float
    center: FloatArray
    b: FloatArray
    frame: Frame | None = None
    weighted: bool = False


def _rounding(objective: Objective, n: int) -> tuple[float, float]:
    """Return what rounding does at coefficients of length 0, and what it does more per length."""
    d, ridge, frame = len(objective.center), objective.ridge, objective.frame
    loss, center = objective.loss, float(np.linalg.norm(objective.center))
    stretch, offset, shortest = 1.0, 0.0, 1.0
    if frame is not None:
        stretch, offset, shortest = frame.stretch, frame.offset, frame.least
    most = max(loss.lipschitz, loss.size * shortest)  # of a slope times the least length
    share = summation_error(loss, weighted=objective.weighted) + 16.0 * _UNIT
    fixed, growth = share * n * most / ridge, 8.0 * _UNIT
    residual = (d + 4) * _UNIT * math.sqrt(n * loss.bend / ridge) / 2.0
    pairs = (16.0 * d + 2.0**20) * _UNIT**2 * (n * loss.bend * max(1.0, stretch) ** 2 / ridge + 1.0)
    if frame is not None:
        fixed = (share + d * _UNIT) * n * most / ridge * (stretch / shortest)
        own = 2.0 * d * _UNIT * frame.squeeze
        fixed, growth = fixed + own * offset, growth + own * stretch
    fixed += 8.0 * _UNIT * center + residual * (1.0 + offset) + pairs * (1.0 + offset)
    return fixed, growth + residual * stretch + pairs


def rounding_distance(objective: Objective, n: int, length: float) -> float:
    r"""Return how far rounding can move the minimiser, for coefficients of a given length.

    Paper: beyond it; docs/proofs/objective.md, Section 6. Errors of the sums and of the slopes
    move the gradient, and the minimiser by as much over the ridge; errors of the residuals act as
    other targets do, and move it by :math:`\sqrt{nB} \max|\delta| / (2\sqrt\lambda)`, B the
    largest curvature. In other coordinates the sums are multiplied by T', and the point is rounded
    once more. What pairs of numbers leave of rounding is a share of the squared unit.
    """
    fixed, growth = _rounding(objective, n)
    return fixed + growth * length


def longest_minimiser(objective: Objective, n: int, noise: float) -> float:
    r"""Return a bound on the length of the minimiser of any data, if b is no longer than ``noise``.

    At the minimiser the objective is no larger than at the centre, where it is at most n times the
    largest loss of a record, and the ridge pulls no more than gradients and noise.

    Paper: beyond it; docs/proofs/objective.md, Section 6.
    """
    loss, ridge, frame = objective.loss, objective.ridge, objective.frame
    center = float(np.linalg.norm(objective.center))
    offset, shortest = (center, 1.0) if frame is None else (frame.offset, frame.least)
    most = math.inf  # of a loss at the centre, above its least value
    if loss.squares:
        most = (1.0 + offset) * min(0.5 * loss.bend * (1.0 + offset), loss.lipschitz / shortest)
    elif isinstance(loss, Logistic):
        most = math.log(2.0) + offset
    by_value = (noise + math.sqrt(noise**2 + 2.0 * ridge * n * most)) / ridge
    return center + min(by_value, (n * loss.lipschitz + noise) / ridge)


def least_tolerance(objective: Objective, n: int, noise: float) -> float:
    r"""Return a tolerance that can be reached with any data, if b is no longer than ``noise``.

    Where rounding grows too fast with the length of coefficients, that is where ridges are absurd,
    it is one that the centre meets.

    Paper: beyond it; docs/proofs/objective.md, Section 6.
    """
    length = longest_minimiser(objective, n, noise)
    fixed, growth = _rounding(objective, n)
    rounding = fixed + growth * length
    if not growth <= _STEEPEST:
        rounding += (n * objective.loss.lipschitz + noise) / objective.ridge
    return _ROOM * rounding
