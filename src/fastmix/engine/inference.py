"""Standard errors from released values only: what the noise and the sampling of records add.

A method says how its coefficients came about (`NewtonTrace`, `StatisticsTrace`), in released
values; the spread of the residuals is one more release with its own event.  Everything else is
post-processing.  The derivation is in ``docs/proofs/confidence.md``.
"""

import math
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from fastmix._types import BoolArray, FloatArray
from fastmix.random import public_generator
from fastmix.releases import PrivateGram
from fastmix.releases.counts import RESIDUAL_EDGES
from fastmix.releases.sampling import CovarianceRoot, gaussian_gram

#: Draws of the Gram matrix for up to this many columns, fewer beyond.
DRAWS, DRAWS_UP_TO = 16, 128
#: A bin is seen when its noisy count exceeds this many standard deviations of the noise.
SEEN = 4.0
#: Ends of groups of directions, by curvature, that have one size of coefficients.
GROUPS = (3, 8, 16, 32, 64, 128)


class Spread(NamedTuple):
    """Covariances of the coefficients around the truth, in scaled units."""

    noise: FloatArray  #: With what the method has left to converge.
    sampling: FloatArray  #: For residuals of variance 1.
    excess: float  #: What the noise adds to the residual sum of squares.


class Trace(Protocol):
    """How coefficients came about, in released values."""

    def spread(self, theta: FloatArray, size: float = 1.0) -> Spread:
        """Return covariances for released coefficients, true ones being of a public size."""


@dataclass(frozen=True)
class NewtonTrace:
    r"""Steps :math:`\theta \gets \theta + s_t H_t^{-1}(g(\theta) + \sigma_t\zeta_t - \rho\theta)`.

    The released Gram matrices of the sketches, of so many rows each, are Wishart around
    :math:`X^\top X + \eta^2 I`.
    """

    sketches: tuple[PrivateGram, ...]
    hessians: tuple[PrivateGram, ...]  #: Made of them, used in turn.
    rows: int
    eta: float
    scales: tuple[float, ...]
    sigmas: tuple[float, ...]
    ridge: float = 0.0
    floor: float = 0.0  #: No eigenvalue of what is sketched is below it.

    def spread(self, theta: FloatArray, size: float = 1.0) -> Spread:
        """Return covariances, averaged over draws of the Gram matrix given the sketches."""
        d = len(theta)
        if self.rows * len(self.sketches) < 2 * d:  # too few to say anything about X'X
            nothing = np.full((d, d), np.inf)
            return Spread(nothing, nothing, np.inf)
        root = cholesky(np.sum([H.matrix() for H in self.sketches], axis=0), check_finite=False)
        inverses = [np.linalg.inv(H.matrix()) for H in self.hessians]
        noise, sampling, excess = np.zeros((d, d)), np.zeros((d, d)), 0.0
        rng = public_generator(0)  # public: a seed makes the same release give the same answer
        draws = max(2, min(DRAWS, DRAWS * DRAWS_UP_TO // d))
        for _ in range(draws):
            G = self._gram_draw(root, rng)
            V, S, rest = np.zeros((d, d)), np.zeros((d, d)), np.eye(d)
            for inverse, scale, sigma in zip(cycle(inverses), self.scales, self.sigmas):
                M = scale * inverse
                P = np.eye(d) - M @ G - self.ridge * M
                V = P @ V @ P.T + sigma**2 * (M @ M.T)
                S = P @ S + M
                rest = P @ rest
            noise += (V + _unreached(rest, V, theta, size)) / draws
            sampling += S @ G @ S.T / draws
            excess += float(np.sum(G * V)) / draws
        return Spread(noise, sampling, excess)

    def _gram_draw(self, root: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw X'X given the sketches: the pivot of a Wishart matrix, solved for its scale."""
        size = len(root)
        freedom = max(self.rows * len(self.sketches) - size + 1, size)
        wishart = gaussian_gram(CovarianceRoot(np.eye(size), True), freedom, rng).matrix()
        half = solve_triangular(cholesky(wishart), root, trans="T")
        values, vectors = np.linalg.eigh(half.T @ half - self.eta**2 * np.eye(size))
        return np.asarray((vectors * np.maximum(values, max(self.floor, 0.0))) @ vectors.T)


@dataclass(frozen=True)
class StatisticsTrace:
    r"""A solution :math:`\theta = (\tilde G + \rho I)^{-1} \tilde b` of noisy statistics.

    With ``symmetric`` noise the Gram matrix has half the variance off its diagonal.
    """

    gram: FloatArray
    sigma: float
    ridge: float
    symmetric: bool = False

    def spread(self, theta: FloatArray, size: float = 1.0) -> Spread:
        """Return covariances to first order in the noise of the Gram matrix."""
        d = len(theta)
        values, vectors = np.linalg.eigh(self.gram)
        G = (vectors * np.maximum(values, 0.0)) @ vectors.T
        Q = np.asarray(np.linalg.inv(self.gram + self.ridge * np.eye(d)), dtype=np.float64)
        left = self.ridge / (np.maximum(values, 0.0) + self.ridge + 1e-300)
        rest = (vectors * left) @ vectors.T
        V = self._noise(theta, Q)
        missing = _unreached(rest, V, theta, size)
        V = self._noise(theta, Q, float(np.trace(missing)))
        return Spread(V + missing, Q @ G @ Q.T, float(np.sum(G * V)))

    def _noise(self, theta: FloatArray, Q: FloatArray, missing: float = 0.0) -> FloatArray:
        """Return the covariance of Q(xi - E theta*), E with independent entries up the diagonal."""
        square = np.outer(theta, theta) + (theta @ theta + missing) * np.eye(len(theta))
        square = square / 2.0 if self.symmetric else square - np.diag(theta**2)
        square += np.eye(len(theta))
        return np.asarray(self.sigma**2 * Q @ square @ Q.T)


def _unreached(rest: FloatArray, V: FloatArray, theta: FloatArray, size: float) -> FloatArray:
    r"""Return the second moment of :math:`R\theta^*`, what is left to reach.

    The coefficients are :math:`(I - R)\theta^*` and noise of covariance V; before any data are seen
    the true ones are normal with a public size. Directions whose variance is lost in rounding tell
    nothing: there the true ones stay as they were before.
    """
    reached = np.eye(len(theta)) - rest
    whole = size**2 * reached @ reached.T + V
    gain = size**2 * reached.T @ np.linalg.pinv(whole, hermitian=True)
    mean = gain @ theta
    covariance = size**2 * (np.eye(len(theta)) - gain @ reached)
    return np.asarray(rest @ (covariance + np.outer(mean, mean)) @ rest.T)


def residual_variance(
    counts: FloatArray, sigma: float, *, clip: float, n: int, d: int, excess: float
) -> float:
    """Estimate the variance of the errors from noisy counts of residuals.

    Bins above twice the largest magnitude that is seen hold little but noise and are left out; if
    no bin is seen, the answer is the square of ``clip``, which no variance exceeds.
    """
    seen = np.flatnonzero(counts > SEEN * sigma)
    if not len(seen):
        return clip**2
    top = min(int(seen[-1]) + 2, len(counts) - 1) + 1
    low, high = RESIDUAL_EDGES[:-1], RESIDUAL_EDGES[1:]
    # Second moment of a flat density on (low, high].
    squares = (low**2 + low * high + high**2) / 3.0
    total = clip**2 * float(counts[:top] @ squares[:top])
    noise = clip**2 * sigma * float(np.linalg.norm(squares[:top]))
    # What is left may be all noise: then its standard deviation is the honest answer.
    return max(total - excess, noise) / max(n - d, 1)


class Intervals(NamedTuple):
    """Covariance of the coefficients in scaled units, the part of the noise, error variance.

    ``sure`` says that noise is small beside the error variance, for a method that can tell.
    """

    covariance: FloatArray
    noise: FloatArray
    variance: float
    sure: bool = False
    #: Second moment of what a method has left to reach, where it tells that by coefficient.
    bias: FloatArray | None = None
    #: Which coefficients belong to columns that are seen to have rows; None means all.
    known: BoolArray | None = None


def intervals(
    trace: Trace,
    theta: FloatArray,
    counts: FloatArray,
    sigma: float,
    *,
    clip: float,
    n: int,
    size: float = 1.0,
) -> Intervals:
    """Put together what the noise and the sampling of records add."""
    spread = trace.spread(theta, size)
    variance = residual_variance(counts, sigma, clip=clip, n=n, d=len(theta), excess=spread.excess)
    return Intervals(spread.noise + variance * spread.sampling, spread.noise, variance)


def group_sizes(along: FloatArray) -> FloatArray:
    """Return the mean square of coefficients in groups of directions, none below the next group's.

    Directions are in ascending order of curvature; a mean of few squares is raised by its standard
    error.
    """
    d = len(along)
    ends = [0, *(end for end in GROUPS if end < d), d]
    sizes = np.empty(d)
    for low, high in pairwise(ends):
        mean = float(np.mean(along[low:high] ** 2))
        sizes[low:high] = mean * (1.0 + math.sqrt(2.0 / (high - low)))
    return np.maximum.accumulate(sizes[::-1])[::-1]
