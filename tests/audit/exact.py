r"""The exact privacy profile of a Gaussian sketch between two given neighbours.

Given the spectral releases, a sketch is K independent rows of N(0, Sigma0) on one data set and of
N(0, Sigma1) on the other.  The privacy loss L = log p0/p1 is then a difference of quadratic
forms, that is a weighted sum of chi-square variables, and its profile

    delta(epsilon) = E_0[(1 - e^{epsilon - L})_+]

is a one-dimensional integral of the moment generating function M of L under the first law,

    delta(epsilon) = 1/(2 pi i) int M(z) e^{-z epsilon} / (z (z + 1)) dz,    Re z > 0.

No bound of the paper is used, so that certified profiles can be held against it.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.optimize import brentq

from fastmix._types import FloatArray
from fastmix._validation import check_integer, check_real, value_error

#: Two successive refinements of the quadrature must agree to this, relative to delta.
_AGREE = 1e-10

#: Variance ratios this close to 1 are directions that the two data sets share.
_SHARED = 1e-13


class ExactDelta(NamedTuple):
    """A value of the profile and a bound on its numerical error."""

    delta: float
    error: float


def loss_weights(first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
    r"""Return how two positive definite covariances differ: :math:`\rho_j - 1`, without the zeros.

    The :math:`\rho_j` are generalised eigenvalues, :math:`\Sigma_0 v = \rho \Sigma_1 v`. Zero-out
    neighbours differ in rank two at most, so there are at most two.
    """
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.ndim != 2 or first.shape != second.shape or first.shape[0] != first.shape[1]:
        raise value_error("first", "be a square matrix of the shape of second", first)
    weights: FloatArray = np.asarray(eigh(first - second, second, eigvals_only=True))
    return np.asarray(weights[np.abs(weights) > _SHARED])


def exact_delta(
    first: npt.ArrayLike, second: npt.ArrayLike, rows: int, epsilon: float, mu: float = 0.0
) -> ExactDelta:
    r"""Return the exact delta at ``epsilon`` of K rows of N(0, first) against N(0, second).

    Covariances are those of a row on the two data sets, noise included; ``mu`` is the total ratio
    of sensitivity to noise of Gaussian releases besides the sketch. The error is the last change
    under refinement of the quadrature, with rounding.

    With :math:`w_j = \rho_j - 1` the loss is :math:`-\frac K2 \sum_j \log(1 + w_j) + \frac12 \sum_j
    w_j \chi^2_{K,j}` under the first law, so that :math:`\log M(z) = -\frac K2 \sum_j [z \log(1 +
    w_j) + \log(1 - z w_j)]`; Gaussian releases add :math:`\frac12 \mu^2 z(z + 1)`. The line of
    integration goes through the saddle point, which leaves nothing to cancel, and is bent so that
    the integrand falls fast.
    """
    rows = check_integer("rows", rows, at_least=1)
    epsilon = check_real("epsilon", epsilon, at_least=0.0)
    square = check_real("mu", mu, at_least=0.0) ** 2
    w = loss_weights(first, second)
    # log M(z) - z epsilon = -z u + mu^2 z^2 / 2 - (K/2) sum log(1 - z w).
    u = epsilon + 0.5 * rows * float(np.log1p(w).sum()) - 0.5 * square
    if square == 0.0 and w.max(initial=0.0) == 0.0 and u >= 0.0:
        return ExactDelta(0.0, 0.0)  # the loss never exceeds epsilon

    def exponent(z: Any) -> Any:
        logs = np.log1p(-np.multiply.outer(z, w)).sum(axis=-1)
        return (0.5 * square * z - u) * z - 0.5 * rows * logs - np.log(z) - np.log1p(z)

    saddle = _saddle(w, rows, u, square)
    height = float(exponent(saddle))
    r = w / (1.0 - saddle * w)
    curvature = square + 0.5 * rows * float((r**2).sum())
    curvature += saddle**-2 + (1.0 + saddle) ** -2
    spread = 1.0 / math.sqrt(curvature)
    # Along the steepest descent of M(z) e^{-zu}, but always to the side where e^{-zu} falls. With
    # Gaussian releases the integrand falls fast enough on a straight line.
    side = math.copysign(1.0, u)
    steepest = side * rows * float((r**3).sum()) * spread**3 / 6.0
    least = 0.125 / (rows * max(w.size, 1))
    bend = 0.0 if square > 0.0 else side * min(max(steepest, least), 0.125)
    value, error = _line_integral(exponent, saddle, height, spread, bend)
    scale = math.exp(height) * spread / math.pi
    rounding = 1e-14 * (1.0 + abs(saddle * u) + rows * w.size)
    return ExactDelta(scale * value, scale * (error + rounding * abs(value)))


def exact_epsilon(
    first: npt.ArrayLike, second: npt.ArrayLike, rows: int, delta: float, largest: float = 100.0
) -> float:
    """Return the exact epsilon at ``delta`` of K rows between two neighbours, both ways round.

    It is the least epsilon up to ``largest`` whose exact delta, with its numerical error, is at
    most ``delta``.
    """
    delta = check_real("delta", delta, above=0.0)

    def excess(epsilon: float) -> float:
        both = exact_delta(first, second, rows, epsilon), exact_delta(second, first, rows, epsilon)
        return max(each.delta + each.error for each in both) - delta

    if excess(0.0) <= 0.0:
        return 0.0
    return float(brentq(excess, 0.0, largest, xtol=1e-9))


def _saddle(w: FloatArray, rows: int, u: float, square: float) -> float:
    """Return the point of the positive axis where the integrand is least."""

    def slope(z: float) -> float:
        loss = 0.5 * rows * float((w / (1.0 - z * w)).sum())
        return square * z - u + loss - 1.0 / z - 1.0 / (1.0 + z)

    top = float(w.max(initial=0.0))
    end = 1.0 / top if top > 0.0 else math.inf
    low, high = min(1.0, end / 2.0), min(1.0, end / 2.0)
    while slope(low) > 0.0:
        low /= 2.0
    while slope(high) <= 0.0:
        high = 2.0 * high if math.isinf(end) else 0.5 * (high + end)
    return float(brentq(slope, low, high, rtol=1e-12)) if low < high else low


def _line_integral(
    exponent: Any, saddle: float, height: float, spread: float, bend: float
) -> tuple[float, float]:
    """Integrate e^{exponent - height} along a curve through the saddle, in units of the spread.

    The curve ``saddle + spread (i s + bend s^2)``, ``s = sinh(t)``, meets the real axis in the
    saddle alone, so it passes no pole and no cut. Both ends fall off at least like an
    exponential of t, where the trapezoidal rule converges geometrically.
    """

    def integrand(t: FloatArray) -> FloatArray:
        s = np.sinh(t)
        z = saddle + spread * (1j * s + bend * s**2)
        slope = 1j + 2.0 * bend * s
        with np.errstate(under="ignore", over="ignore", invalid="ignore"):
            values = np.exp(exponent(z) - height) * slope * np.cosh(t) / 1j
        return np.where(np.isfinite(values), values, 0.0).real

    top, step = 12.0, 0.125
    total = step * (0.5 * float(integrand(np.zeros(1))[0]) + _sum(integrand, step, step, top))
    error = math.inf
    for _ in range(9):
        step /= 2.0
        finer = 0.5 * total + step * _sum(integrand, step, 2.0 * step, top)
        total, error = finer, abs(finer - total)
        if error <= _AGREE * abs(total):
            break
    return total, error


def _sum(integrand: Any, start: float, step: float, top: float) -> float:
    return float(integrand(np.arange(start, top, step)).sum())
