r"""Intervals of an adaptive fit: what noise and the sampling of records do to its minimiser.

In the coordinates of a fit the minimiser solves
:math:`\sum_i f'_i z_i = \lambda \hat\phi + b`. To first order around the truth
:math:`\hat\phi + \lambda J^{-1}\hat\phi - \phi^* = J^{-1}(\sum_i f'_i z_i - b)`: the left side
takes the pull of the ridge off, and the right side has a covariance that is known but for
:math:`J = \sum f'' z z^\top` and :math:`\sum f'^2 z z^\top`, which are released with noise
(docs/proofs/inference.md).
"""

import math
from typing import NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix.engine.first_stage import Guess
from fastmix.engine.inference import Intervals
from fastmix.releases import CurvatureRelease

#: Rounds of second moments, where there are any: at least so many.
LEAST_ROUNDS = 4
#: Shares of the budget (of mu^2) for the curvature and for the squares of gradients.
CURVATURE_SHARE, SQUARES_SHARE = 0.12, 0.03
#: Curvatures are limited such that their noise hides at most this share of the eigenvalues, and at
#: least to this much in units of d, which is the mean squared length of rows.
NOISY, LEAST_SQUARE = 0.25, 2.0
#: Gradients are clipped where noise adds this much to the standard error of the sampling, or
#: above, as long as noise is at most this share of the sum of their squares.
CLIP, UNCERTAIN = 0.5, 0.03
#: A direction counts as identified if its curvature is this many times the noise, and this share
#: of what all rows would give.
EVIDENT, LEAST_CURVATURE = 1.5, 0.02
#: What is not identified is taken to be no longer than this: rows of length 1 with coefficients of
#: this length move the target across its bounds.
SIZE = 2.0
#: Coefficients are shortened to this many times that length along such directions.
FAR = 10.0
#: In such a direction a coefficient is kept if it is more than this many standard deviations.
UNSURE = 2.0
#: The spread of the errors counts as identified if noise, and what is put for hidden curvature,
#: are at most this share of the two sums that its square is made of.
MOST_UNSURE = 0.1
#: Noise on the minimiser in units of what the noise of the objective does to it.
OUTPUT = 0.1


class Known(NamedTuple):
    """How a released minimiser came about: noise of the objective, ridge, sizes."""

    noise: float
    ridge: float
    lipschitz: float
    square: float
    curvature_sigma: float
    square_sigma: float
    #: Eigenvalues that all rows would give, and the length that what is not identified may have.
    whole: float
    size: float = SIZE


def most_square(sigma: float, n: int, d: int, noisy: float = NOISY) -> float:
    """Return the limit of curvatures, from public sizes: noise is to hide a share of them only."""
    return max(LEAST_SQUARE * d, noisy * n / (sigma * math.sqrt(2.0 * d)))


def least_clip(spread: float, mu: float, sigma: float, n: int, d: int) -> float:
    """Return the level of gradients up to which noise is not what matters."""
    known = math.sqrt(UNCERTAIN * n * math.sqrt(d) / sigma)
    return spread * min(CLIP * mu * math.sqrt(n), known)


def inferred(
    theta: FloatArray, guess: Guess, released: CurvatureRelease, levels: Known
) -> tuple[FloatArray, Intervals]:
    """Return coefficients without the pull of the ridge, and how far off they may be."""
    d, T, n = len(theta), guess.transform, levels.whole
    sigma = levels.curvature_sigma * levels.square
    J, share = shrunk(released.curvature, np.eye(d), sigma)
    values, vectors = np.linalg.eigh(J)
    least = max(EVIDENT * share * sigma * math.sqrt(2.0 * d), LEAST_CURVATURE * n)
    known = values > least
    # Curvatures that noise exceeds on average say nothing, however alike they look.
    known &= sigma * math.sqrt(2.0 * d) <= float(np.trace(J)) / d
    seen = vectors[:, known]
    inverse = (seen / values[known]) @ seen.T
    phi = np.linalg.solve(T, theta - guess.center)
    pull = inverse @ phi
    phi = phi + levels.ridge * pull
    if not known.all():
        rest = vectors[:, ~known]
        phi -= rest @ _unsure(rest.T @ phi, values[~known], levels)
    theta, hidden = guess.center + T @ phi, np.zeros((d, 0))
    if not known.all():
        hidden = np.linalg.qr(T @ vectors[:, ~known])[0]
        # Noise may be stretched to any size there; a coefficient is not taken to be so large.
        along = hidden.T @ theta
        most = FAR * levels.size
        excess = max(0.0, 1.0 - most / max(float(np.linalg.norm(along)), 1e-300))
        theta = theta - excess * (hidden @ along)
    floor = (vectors * np.maximum(values, LEAST_CURVATURE * n)) @ vectors.T
    square_sigma = levels.square_sigma * levels.lipschitz**2
    squares, _ = shrunk(released.squares, floor, square_sigma)
    ends, frame = np.linalg.eigh(squares)
    squares = (frame * np.maximum(ends, 0.0)) @ frame.T
    trace = float(np.trace(released.squares))
    whole, curved = float(np.trace(floor)), float(np.trace(released.curvature))
    variance = max(trace, square_sigma) / whole
    sure = square_sigma * math.sqrt(d) <= MOST_UNSURE * trace
    sure = sure and max(sigma * math.sqrt(d), whole - curved) <= MOST_UNSURE * curved
    # The noise of the released curvature, through the correction for the ridge.
    wrong = 0.5 * (levels.ridge * share * sigma) ** 2
    inner = (levels.noise**2 + wrong * float(pull @ pull)) * np.eye(d)
    inner += wrong * np.outer(pull, pull)
    noise = inverse @ inner @ inverse
    noise += (OUTPUT * levels.noise / (n + levels.ridge)) ** 2 * (seen @ seen.T)
    noise, sampling = (T @ each @ T.T for each in (noise, inverse @ squares @ inverse))
    return theta, Intervals(noise + sampling, noise, variance, levels.size * hidden, sure)


def _unsure(phi: FloatArray, values: FloatArray, levels: Known) -> FloatArray:
    """Return the parts of coefficients in directions that are not identified that noise explains.

    That is all of one of less than `UNSURE` standard deviations; then that of the first stage is
    left.
    """
    expected = UNSURE * levels.noise / (np.maximum(values, 0.0) + levels.ridge)
    return phi * np.minimum(1.0, np.square(expected / np.maximum(np.abs(phi), 1e-300)))


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
