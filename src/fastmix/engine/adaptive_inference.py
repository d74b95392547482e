r"""Intervals of an adaptive fit: what noise, ridge and the sampling of records do to its estimate.

In the coordinates of a fit the minimiser solves :math:`\sum_i f'_i z_i = \lambda\hat\phi + b`. To
first order :math:`\hat\phi = V(J\phi^* + e - b)` with :math:`V = (J + \lambda)^{-1}`, where
:math:`J = \sum f'' z z^\top` is the curvature and e the sampling of records. The estimate
:math:`(I + \lambda V)\hat\phi` takes the pull of the ridge off where J is seen. Its covariance and
what is left of the pull follow from J and :math:`\sum f'^2 z z^\top`, which are released with noise
(docs/proofs/inference.md).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from fastmix._types import BoolArray, FloatArray
from fastmix.data import Rows
from fastmix.engine.first_stage import Guess, least_eigenvalue, rounded
from fastmix.engine.inference import Intervals, group_sizes
from fastmix.engine.plan import Draws
from fastmix.releases import CURVATURE, CURVATURES

#: Shares of the budget (of mu^2) for the curvature, in so many rounds, and for the squares of
#: gradients. These and the constants below were chosen on California, bike, protein and elevators.
CURVATURE_SHARE, CURVATURE_ROUNDS, SQUARES_SHARE = 0.10, 2, 0.02
#: Curvatures are limited such that their noise hides at most this share of the eigenvalues, and at
#: least to this much in units of d, which is the mean squared length of rows.
NOISY, LEAST_SQUARE = 0.15, 2.0
#: The least eigenvalue, as a share of what all rows would give, that the second round of the
#: curvature stretches to the size of the others.
LEAST_CURVATURE = 0.01
#: A direction is seen if its curvature is this many standard deviations of noise. In others, a
#: coefficient counts as signal by the share of its square that is more than this many variances of
#: noise, for a curvature that may be lower by so many standard deviations.
EVIDENT, SIGNAL, LOWER = 3.0, 4.0, 2.0
#: Coefficients in directions that are not seen are taken to be no longer than this: rows of length
#: 1 with coefficients of this length move the target across its bounds.
SIZE = 2.0
#: The spread of the errors counts as identified if noise is at most this share of each of the two
#: sums that its square is made of, and if it is this near to the spread that second moments tell:
#: where gradients are clipped it is too small.
MOST_UNSURE, NEAR = 0.1, 0.15
#: Noise on the minimiser in units of what the noise of the objective does to it.
OUTPUT = 0.1
#: The least share of the coefficients that the last step of a fit is taken to keep.
LEAST_KEPT = 0.05


class Known(NamedTuple):
    """How an estimate came about: noise of its gradient, ridge, and eigenvalues of all rows.

    ``size`` is the length that coefficients may have in directions that are not seen.
    """

    noise: float
    ridge: float
    whole: float
    size: float = SIZE
    #: What clipping may have taken off the sum of gradients along any direction.
    clipped: float = 0.0


class Look(NamedTuple):
    """Released curvature J and squares of gradients, along the eigenvectors of J.

    ``error`` is the standard deviation of the noise of each eigenvalue, for a fixed direction;
    ``seen`` tells which eigenvalues stand out of it.
    """

    values: FloatArray
    vectors: FloatArray
    error: FloatArray
    seen: BoolArray
    middle: FloatArray
    variance: float
    sure: bool


class Corrected(NamedTuple):
    """Coordinates along the eigenvectors of J after the correction for the ridge, and its gain."""

    along: FloatArray
    gain: FloatArray


def most_square(sigma: float, n: int, d: int, noisy: float = NOISY) -> float:
    """Return the limit of curvatures, from public sizes: noise is to hide a share of them only."""
    return max(LEAST_SQUARE * d, noisy * n / (sigma * math.sqrt(2.0 * d)))


def hidden(sigma: float, n: int, d: int) -> bool:
    r"""Whether noise hides the curvature of any data, by public sizes.

    No term has a trace above its limit s, so the mean eigenvalue is at most :math:`n s/d`; `looked`
    sees none if the noise :math:`\sigma s \sqrt{2d}` exceeds their mean.
    """
    return sigma * d * math.sqrt(2.0 * d) > n


def unknown(guess: Guess, size: float) -> Intervals:
    """Return intervals of coefficients of which only a ``size`` is known: none is identified."""
    d = len(guess.center)
    nothing = np.zeros((d, d))
    return Intervals(nothing, nothing, guess.spread**2, bias=size**2 * np.eye(d))


def looked(
    rows: Rows,
    draws: Draws,
    *,
    sigma: tuple[float, float],
    square: float,
    lipschitz: float,
    whole: float,
    transform: FloatArray,
    **given: Any,
) -> Look:
    """Release the curvature in two rounds, the second with the squares of gradients.

    The second round has coordinates in which the first one is round, as far as noise lets it be
    seen: so noise is small beside small eigenvalues, too. ``sigma`` has the noise of one round of
    the curvature and that of the squares.
    """
    given |= {"square": square, "weights": None}
    first = draws.noise.release(CURVATURE, rows, transform=transform, sigma=sigma[0], **given)
    stretch = _stretch(first, sigma[0] * square, whole)
    curvature, squares = draws.noise.release(
        CURVATURES, rows, transform=transform @ stretch, sigma=sigma, **given
    )
    d, scale, square_scale = len(stretch), sigma[0] * square, sigma[1] * lipschitz**2
    J, share = shrunk(curvature, np.eye(d), scale)
    back = solve_triangular(stretch, np.eye(d))
    values, vectors = np.linalg.eigh(back.T @ J @ back)
    along = back @ vectors
    error = np.maximum(math.sqrt(share) * scale * np.sum(along**2, axis=0), 1e-9 * whole)
    seen = values > EVIDENT * error
    curved, sloped = float(np.trace(curvature)), float(np.trace(squares))
    # Curvatures that noise exceeds on average say nothing, however alike they look.
    seen &= scale * math.sqrt(2.0 * d) <= curved / d
    values = np.maximum(values, error)
    expected = stretch.T @ ((vectors * values) @ vectors.T) @ stretch
    middle, _ = shrunk(squares, expected, square_scale)
    ends, frame = np.linalg.eigh(middle)
    middle = (frame * np.maximum(ends, 0.0)) @ frame.T
    root = math.sqrt(d)
    return Look(
        values,
        vectors,
        error,
        seen,
        along.T @ middle @ along,
        variance=max(sloped, square_scale) / max(curved, scale),
        sure=square_scale * root <= MOST_UNSURE * sloped and scale * root <= MOST_UNSURE * curved,
    )


def _stretch(curvature: FloatArray, scale: float, whole: float) -> FloatArray:
    """Return coordinates in which a noisy curvature is about ``whole`` in every seen direction."""
    values, vectors = np.linalg.eigh(curvature)
    floor = max(least_eigenvalue(scale, len(values)), LEAST_CURVATURE * whole)
    return rounded((vectors * (np.maximum(values, 0.0) + floor)) @ vectors.T / whole)


def corrected(
    theta: FloatArray, guess: Guess, look: Look, known: Known, gradient: FloatArray | None = None
) -> Corrected:
    """Take the pull of the ridge off an estimate where it is known: J is seen, or the estimate is.

    Steps that end before the minimiser leave a ``gradient`` without its ridge; the minimiser is
    then one step of Newton's method away.
    """
    ridge, phi = known.ridge, np.linalg.solve(guess.transform, theta - guess.center)
    along = look.vectors.T @ phi
    if gradient is not None:
        along = along + look.vectors.T @ (gradient - ridge * phi) / (look.values + ridge)
    lowest = np.maximum(look.values - LOWER * look.error, 0.0)
    noise = SIGNAL * (known.noise / (lowest + ridge)) ** 2
    signal = 1.0 - noise / np.maximum(along**2, noise + 1e-300)
    gain = 1.0 + np.where(look.seen, 1.0, signal) * ridge / (look.values + ridge)
    return Corrected(gain * along, gain)


def intervals_of(
    theta: FloatArray, guess: Guess, found: Corrected, look: Look, known: Known, kept: float
) -> Intervals:
    """Return how far off coefficients may be: covariance, and second moment of their bias.

    ``theta`` are the coefficients of a fit that kept a share of their distance to the baseline.
    """
    gain, ridge = found.gain, known.ridge
    V = gain / (look.values + ridge)
    output = (OUTPUT * known.noise / (known.whole + ridge)) ** 2
    K = guess.transform @ look.vectors
    variances = (V * known.noise) ** 2 + output
    noise = kept**2 * ((K * (look.seen * variances)) @ K.T)
    V = look.seen * V
    sampling = kept**2 * (K @ (V[:, None] * look.middle * V) @ K.T)
    left = 1.0 - gain * look.values / (look.values + ridge)
    # How large noise is where J is not seen is not known: there it counts as bias.
    unknown = left**2 * group_sizes(found.along) + ~look.seen * variances
    bias = (K * (unknown + (V * known.clipped) ** 2)) @ K.T
    if not look.seen.all():
        hidden = np.linalg.qr(K[:, ~look.seen])[0]
        bias += known.size**2 * (hidden @ hidden.T)
    lost = (1.0 / max(kept, LEAST_KEPT) - 1.0) * (theta - guess.baseline)
    bias += np.outer(lost, lost)
    near = abs(math.sqrt(look.variance) - guess.spread) <= NEAR * guess.spread
    return Intervals(noise + sampling, noise, look.variance, look.sure and near, bias)


def shrunk(matrix: FloatArray, base: FloatArray, sigma: float) -> tuple[FloatArray, float]:
    """Move a noisy symmetric matrix towards a multiple of another by what noise explains.

    Noise has variance ``sigma**2`` on the diagonal and half of it off; the second number is the
    share of the difference that is kept.
    """
    d = len(matrix)
    middle = max(float(np.trace(matrix)), sigma) / float(np.trace(base)) * base
    rest = matrix - middle
    energy = sigma**2 * d * (d + 1) / 2.0
    share = max(0.0, 1.0 - energy / max(float(np.sum(rest**2)), 1e-300))
    return middle + share * rest, share
