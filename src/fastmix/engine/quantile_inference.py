r"""Intervals of quantile regressions: the density of the errors at the quantile, and what follows.

The minimiser of the smoothed loss has the covariance :math:`J^{-1} (M + s^2 I) J^{-1}` around the
truth, where :math:`J = \sum_i w_i f_i(0) z_i z_i^\top` has the densities of the errors at the
quantile. A wide kernel tells the shape of J in spite of noise, and signed counts of residuals tell
how much higher the density is at the quantile itself (docs/proofs/quantiles.md).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from fastmix._types import FloatArray
from fastmix.engine.adaptive_inference import shrunk
from fastmix.engine.first_stage import Guess
from fastmix.engine.inference import Intervals
from fastmix.releases import CurvatureRelease

#: Least and largest width of the kernel of the released curvature, in units of the residuals'
#: spread, and the widths that counts tell the density with, in units of it.
KERNEL, WIDEST, NARROWER = 0.2, 0.5, (0.125, 0.25, 0.5, 1.0)
#: The kernel is so wide that noise is at most this share of the curvature.
HIDDEN = 0.15
#: Counts tell the density if their noise is at most this share of it.
SURE = 0.04
#: Half the window that counts tell the slope of the density in: in units of the residuals' spread,
#: and of the width of the smoothing.
WINDOW, WIDTHS = 0.25, 3.0
#: An axis of the first stage counts as identified if its curvature is this many times the noise,
#: and this share of the median; none does if noise is more than this share of the median.
EVIDENT, LEAST_CURVATURE, NOISY = 3.0, 0.05, 0.25
#: The curvature of an axis is its own beyond this many standard deviations from the median.
APART = 2.0
#: What is not identified is taken to be no longer than this: rows of length 1 with coefficients of
#: this length move the target across its bounds.
SIZE = 2.0
#: The share of what is not identified that counts as bias, the rest as variance: by the rule of a
#: quarter, a coefficient is then identified if what is hidden of it is at most its standard error.
AS_BIAS = 0.4
#: Noise on the minimiser in units of what the noise of the objective does to it.
OUTPUT = 0.1


class Counted(NamedTuple):
    """What released counts tell: the density at 0 relative to the kernel's, and its slope."""

    #: The density in units of that which the kernel sees, and the relative error of its noise.
    ratio: float
    error: float
    #: The derivative of the logarithm of the density.
    slope: float


class Known(NamedTuple):
    """How a released minimiser came about, and the scale of the noise of two matrices."""

    noise: float
    ridge: float
    curvature_noise: float
    square_noise: float
    #: Widths of the smoothing, and of the kernel of the curvature.
    width: float
    kernel: float
    #: Value of the constant column; 0 if there is none.
    constant: float


def kernel_width(counts: FloatArray, edges: FloatArray, noise: float, spread: float) -> float:
    """Return the width of the kernel of the curvature, from noisy counts of residuals.

    The noise of the curvature is ``noise`` over the width: where the density is low, a kernel of
    the least width would see noise only.
    """
    least, most = KERNEL * spread, WIDEST * spread
    density = float(np.diff(expit(edges / least)) / np.diff(edges) @ counts)
    return min(max(least, noise / max(HIDDEN * density, noise / most)), most)


def counted(
    below: FloatArray, above: FloatArray, edges: FloatArray, sigma: float, known: Known
) -> Counted:
    """Read the density of residuals around 0 off noisy signed counts of them.

    We assume that residuals are spread evenly in each bin. The narrowest kernel whose noise is
    small counts.
    """
    both, sizes = below + above, np.diff(edges)
    weights = [np.diff(expit(edges / (share * known.kernel))) / sizes for share in NARROWER]
    found = [(float(w @ both), math.sqrt(2.0) * sigma * float(np.linalg.norm(w))) for w in weights]
    whole = found[-1][0]
    ratio, error = 1.0, found[-1][1] / max(whole, 1e-300)
    for value, noise in found:
        if 0.0 < noise <= SURE * value and whole > 0.0:
            ratio, error = value / whole, noise / value
            break
    at = int(np.searchsorted(edges[1:-2], max(WINDOW * edges[-1] / 4.0, WIDTHS * known.width)))
    most, inside = float(edges[at + 1]), float(both[: at + 1].sum())
    tilt = float(above[: at + 1].sum() - below[: at + 1].sum())
    noise = sigma * math.sqrt(2.0 * (at + 1))
    slope = 2.0 * tilt / (max(inside, noise) * most)
    return Counted(ratio, min(error, 1.0), slope)


class Seen(NamedTuple):
    """Directions that the data identify, in columns, with the curvature along them."""

    frame: FloatArray
    curvature: FloatArray
    #: Variance of what is wrong about entries of the curvature, on the diagonal and off it.
    diagonal: FloatArray
    off: float

    def moved(self, moment: FloatArray) -> FloatArray:
        """Return the mean of E A E for the second moment A, where E is wrong about entries."""
        mean = self.off * (float(np.trace(moment)) * np.eye(len(moment)) + moment)
        return mean + np.diag((self.diagonal - 2.0 * self.off) * moment.diagonal())


def identified(curvature: FloatArray, axes: FloatArray, sigma: float, least: float) -> Seen:
    """Return the axes along which the data identify coefficients, and the curvature there.

    Where the curvature is below ``least``, the pull of the ridge is too long to be taken off.
    ``axes`` were chosen before the noise of the curvature was drawn, so that noise of standard
    deviation ``sigma`` is all that moves the curvature along each of them. What noise explains of
    the differences between axes is left out, and so is what it explains off the diagonal.
    """
    along = np.einsum("ij,jk,ik->i", axes, curvature, axes)
    level = float(np.median(along))
    known = along > max(EVIDENT * sigma, LEAST_CURVATURE * level, least)
    known &= sigma <= NOISY * level
    frame, apart = axes[known].T, along[known] - level
    noisy = APART * sigma
    own = 1.0 - np.square(noisy / np.maximum(np.abs(apart), noisy + 1e-300))
    off = frame.T @ curvature @ frame
    np.fill_diagonal(off, 0.0)
    pairs = len(apart) * (len(apart) - 1)
    share = max(0.0, 1.0 - pairs * sigma**2 / 2.0 / max(float(np.sum(off**2)), 1e-300))
    # The share is known to a standard deviation of squared noise only.
    doubt = min(1.0, share + 2.0 / math.sqrt(max(pairs, 4)))
    kept = np.diag(level + own * apart) + share * off
    wrong = sigma**2 * np.maximum(own, doubt)
    return Seen(
        frame,
        _positive(kept, 0.5 * float(kept.diagonal().min(initial=level))),
        wrong,
        doubt * sigma**2 / 2.0,
    )


def inferred(
    theta: FloatArray, guess: Guess, released: CurvatureRelease, counts: Counted, known: Known
) -> tuple[FloatArray, Intervals]:
    """Return coefficients without the pull of the ridge, and how far off they may be."""
    d, T = len(theta), guess.transform
    axes = guess.axes @ T
    seen = identified(released.curvature, axes, known.curvature_noise, known.ridge / counts.ratio)
    frame, count = seen.frame, seen.frame.shape[1]
    J, along = counts.ratio * seen.curvature, frame.T @ np.linalg.solve(T, theta - guess.center)
    inverse = np.linalg.inv(J)
    pull = inverse @ along
    theta, hidden = theta + known.ridge * (T @ (frame @ pull)), np.zeros((d, 0))
    if count < d:
        hidden = np.linalg.qr(T @ np.linalg.svd(frame)[0][:, count:])[0]
        # Noise may have stretched coefficients along these directions to any length.
        hidden *= max(SIZE, float(np.linalg.norm(hidden.T @ (theta - guess.baseline))))
    if known.constant:
        # The smoothing adds a logistic variable, which moves a quantile by half its variance.
        theta[-1] += math.pi**2 / 6.0 * known.width**2 * counts.slope / known.constant
    squares = _squares(frame.T @ released.squares @ frame, known.square_noise)
    # A slope that is smoothed with the width h has the variance q(1 - q) - f(0) h.
    squares = _positive(squares + (known.kernel / counts.ratio - known.width) * J, 0.0)
    sampling, noise = inverse @ squares @ inverse, known.noise**2 * inverse @ inverse
    # What is wrong about the curvature: through the pull of the ridge, and in the inverses.
    wrong = known.ridge**2 * np.outer(pull, pull) + 3.0 * (sampling + noise)
    noise += counts.ratio**2 * inverse @ seen.moved(wrong) @ inverse
    noise += (known.ridge * counts.error) ** 2 * np.outer(pull, pull)
    noise += (OUTPUT * known.noise) ** 2 * np.diag((J.diagonal() + known.ridge) ** -2.0)
    back = T @ frame
    noise, sampling = (back @ each @ back.T for each in (noise, sampling))
    unknown = hidden @ hidden.T
    spread = noise + sampling + (1.0 - AS_BIAS) * unknown
    return theta, Intervals(spread, noise, math.nan, bias=AS_BIAS * unknown)


def _squares(released: FloatArray, sigma: float) -> FloatArray:
    """Return squares of gradients, moved towards equal ones by what noise explains."""
    return shrunk(released, np.eye(len(released)), sigma)[0] if len(released) else released


def _positive(matrix: FloatArray, least: float) -> FloatArray:
    """Return a symmetric matrix with eigenvalues of at least so much."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)
