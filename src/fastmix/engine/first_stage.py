"""The first stage of an adaptive fit: coordinates, first coefficients and spread of residuals."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.engine.plan import Draws
from fastmix.releases import SECOND_MOMENTS, TARGET_MEAN

#: Length of the longest row with its target in the first round.
FIRST = 0.99
#: Mean squared length of transformed rows is one over this where it is to be at most 1.
ROOM = 2.0
#: The least eigenvalue that counts, in units of the noise of a second moment and sqrt(d), and the
#: least variance, by which no coordinates stretch more than rounding allows.
FLOOR, LEAST_VARIANCE = 0.5, 1e-8
#: Bins for sizes of targets.
OCTAVES: FloatArray = 2.0 ** np.arange(-7.0, 2.0)
#: Share of records beyond one spread, and how sure counts must be of it, in standard deviations.
BEYOND, SURE = 0.3, 2.0
#: Spread of residuals, and mean of the squared features times d, where nothing is known of them.
SPREAD, SQUARES = 0.25, 1.0 / 3.0


class Guess(NamedTuple):
    """What the first stage knows, in the coordinates ``theta = center + T phi``.

    ``axes`` maps coefficients to coordinates along the eigenvectors, ``seen`` is the share of every
    eigenvalue that is not noise, ``baseline`` predicts the mean of the target, ``spread`` is the
    standard deviation of the residuals of the centre, and ``curvature`` the mean curvature of a row
    there.
    """

    center: FloatArray
    transform: FloatArray
    axes: FloatArray
    seen: FloatArray
    baseline: FloatArray
    spread: float
    curvature: float = 1.0


def least_eigenvalue(sigma: float, size: int) -> float:
    """Return the least eigenvalue that counts in noisy second moments of so many columns."""
    return FLOOR * sigma / math.sqrt(2.0) * math.sqrt(size)


def first_stage(
    rows: Rows,
    rounds: int,
    moment_sigma: float | None,
    mean_sigma: float | None,
    draws: Draws,
    *,
    labels: bool = False,
) -> Guess:
    """Release the first-stage statistics and return the guess; ``labels`` are targets of ±1."""
    d, baseline = rows.d, np.zeros(rows.d)
    if moment_sigma is not None:
        return _moments_stage(rows, rounds, moment_sigma, draws, labels)
    if mean_sigma is not None:
        mean = draws.noise.release(TARGET_MEAN, rows, sigma=mean_sigma)
        baseline[-1] = mean / rows.constant
    unit = math.sqrt(d / SQUARES)
    seen = np.full(d, SQUARES)
    return Guess(baseline, np.eye(d) * unit, np.eye(d) / unit, seen, baseline, SPREAD)


def spread_known(n: int, bins: int, sigma: float) -> bool:
    """Whether noisy counts of n targets in so many bins tell their spread, by public sizes."""
    return SURE * sigma * math.sqrt(bins) <= BEYOND * n


def typical_size(counts: FloatArray, edges: FloatArray, n: int) -> float:
    """Return the size that a share `BEYOND` of n records exceeds, from noisy counts of sizes.

    It assumes that the logarithms of the sizes are spread evenly in a bin.
    """
    tails = np.append(np.cumsum(counts[::-1])[::-1], 0.0)
    at = int(np.argmax(tails[1:] <= BEYOND * n))
    above = tails[at] - max(float(tails[at + 1]), 0.0)
    share = (tails[at] - BEYOND * n) / above if above > 0.0 else 1.0
    low, high = float(edges[at]), float(edges[at + 1])
    return float(low * (high / low) ** min(max(float(share), 0.0), 1.0))


def _moments_stage(rows: Rows, rounds: int, sigma: float, draws: Draws, labels: bool) -> Guess:
    """Release second moments of features and target in rounds, and read them."""
    n, d, size = rows.n, rows.d, rows.d + 1
    floor = least_eigenvalue(sigma, size)
    # Rows with their target are shorter than 1: none has to be measured.
    transform = np.eye(size) * (FIRST / math.sqrt(2.0))
    for step in range(rounds):
        draws.progress(step + 1, rounds + 2)
        moments = draws.noise.release(SECOND_MOMENTS, rows, transform=transform, sigma=sigma)
        values, vectors = np.linalg.eigh(moments)
        evident = np.maximum(values, 0.0)
        back = solve_triangular(transform, vectors, trans=1)
        whole = (back * (evident + floor)) @ back.T / n + LEAST_VARIANCE * np.eye(size)
        known = (back * evident) @ back.T / n
        directions = max(1.0, float(np.sum(evident / (evident + floor))))
        transform = rounder(whole, directions, rows.constant, labels)
    center = np.linalg.solve(whole[:d, :d], whole[:d, d])
    variance = whole[d, d] - float(whole[d, :d] @ center)
    baseline = np.zeros(d)
    if rows.constant:
        baseline[-1] = whole[d - 1, d] / whole[d - 1, d - 1]
    values, vectors = np.linalg.eigh(whole[:d, :d])
    root = np.sqrt(np.maximum(values, LEAST_VARIANCE))
    along = np.einsum("ij,ij->j", vectors, known[:d, :d] @ vectors)
    seen = np.clip(along / root**2, 0.05, 1.0)
    axes = root[:, None] * vectors.T
    spread = math.sqrt(min(max(variance, 1e-6), 1.0))
    return Guess(center, rounded(whole[:d, :d]), axes, seen, baseline, spread)


def rounder(whole: FloatArray, directions: float, constant: float, labels: bool) -> FloatArray:
    r"""Return coordinates for the next round, from mean second moments with the target last.

    Rows that vary along so many directions have the mean squared length 1/`ROOM` in them. A label
    is at most 1 + |m| from its mean m. The variance of its residuals counts as at least
    :math:`(1 + |m|)^2` per direction, so that the squared coordinate of no label exceeds 1/`ROOM`.
    Otherwise rows of a rare label would be shortened, and each round would find it rarer.
    """
    if labels:
        mean = constant * float(whole[-2, -1] / whole[-2, -2])
        left = float(
            whole[-1, -1] - whole[-1, :-1] @ np.linalg.solve(whole[:-1, :-1], whole[:-1, -1])
        )
        least = (1.0 + min(abs(mean), 1.0)) ** 2 / directions
        whole = whole.copy()
        whole[-1, -1] += max(0.0, least - left)
    return rounded(whole) / math.sqrt(ROOM * directions)


def rounded(covariance: FloatArray) -> FloatArray:
    """Return T with ``T' C T = I`` and zeros below its diagonal, for a positive definite matrix C.

    C is at least `LEAST_VARIANCE` in every direction, far above rounding.
    """
    factor = np.linalg.cholesky(covariance)
    return np.ascontiguousarray(solve_triangular(factor, np.eye(len(factor)), lower=True).T)
