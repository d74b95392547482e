"""How large gradients and residuals are at the minimiser of a table, from counts of them.

A sum of squares has one number to know, so counts in bins tell it with far less noise than the
trace of a released matrix of squares does (docs/proofs/tables.md, Section 5).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.clipping import SHORTEST, Levels
from fastmix.engine.first_stage import Guess
from fastmix.engine.plan import Draws
from fastmix.releases import GRADIENT_COUNTS

if TYPE_CHECKING:
    from fastmix.engine.family import Family

#: Bins below a level, half octaves.
BINS = 12
#: Residuals count in full up to this many times their typical size.
FAR = 4.0
#: The variance of residuals is identified if the standard deviation of its noise, and what is put
#: for residuals beyond the last bin, are at most this share of it.
MOST_UNSURE = 0.1


#: The index of the tail of gradients is taken to be between these two.
TAILS = (1.5, 8.0)


class Spread(NamedTuple):
    """Sizes at a minimiser: gradients up to their clipping level, and residuals.

    ``squares`` is the sum of squared gradients, with the standard deviation ``error`` of noise and
    of the sampling of records; ``clipped`` is the number of longer ones, and ``beyond`` what is
    estimated to be clipped of their lengths; ``variance`` is that of residuals, with ``sure`` if
    noise and clipping leave it known.
    """

    squares: float
    error: float
    clipped: float
    beyond: float
    variance: float
    sure: bool

    def bias(self, d: int, noise: float) -> float:
        """Return the bias of clipping in standard errors of a typical coordinate.

        All that is clipped is taken to point the same way, in a direction with no preferred
        coordinate; ``noise`` is the scale of the noise of the gradient.
        """
        return self.beyond / math.sqrt(self.squares + d * noise**2)


def spread_at(
    family: Family,
    rows: Rows,
    theta: FloatArray,
    guess: Guess,
    levels: Levels,
    plan: AdaptivePlan,
    draws: Draws,
) -> Spread:
    """Release counts of gradients and of residuals at the minimiser, and read them."""
    assert plan.count_sigma is not None
    root, sigma = math.sqrt(rows.d), plan.count_sigma

    def counted(level: float, transform: FloatArray, least: float, longest: float) -> FloatArray:
        found: FloatArray = draws.noise.release(
            GRADIENT_COUNTS,
            rows,
            theta=theta,
            transform=transform,
            least=least,
            longest=longest,
            edges=_edges(level),
            loss=family.counted,
            sigma=sigma,
        )
        return found

    longest = min(levels.longest, 1e100)
    counts = counted(levels.clip, guess.transform, SHORTEST * root, longest)
    sizes = _squares(levels.clip)
    squares = max(float(counts @ sizes), levels.clip**2 * sigma)
    # A sum of independent squares has at most the sum of their squares as variance.
    error = math.sqrt(sigma**2 * float(sizes @ sizes) + max(float(counts @ sizes**2), 0.0))
    clipped = max(float(counts[-1]), 0.0)
    beyond = clipped * levels.clip / (_tail(counts) - 1.0)
    if family.counted is not None:
        return Spread(squares, error, clipped, beyond, math.nan, False)
    level = max(FAR * guess.spread, levels.clip / root)
    unit = 1.0 + 1e-12  # all rows count with this length
    residuals = counted(level, np.eye(rows.d) / rows.d, unit, unit)
    values = _squares(level)
    # Half of the square of a residual beyond the last bin is beyond it: a tail of index 4.
    far = max(float(residuals[-1]), 0.0) * level**2
    noise = sigma * float(np.linalg.norm(values))
    total = max(float(residuals @ values) + far, noise)
    sure = max(noise, far) <= MOST_UNSURE * total
    return Spread(squares, error, clipped, beyond, total / rows.n, sure)


def _tail(counts: FloatArray) -> float:
    """Return the index of the tail, from the counts above a level and in an octave below it."""
    above, around = max(float(counts[-1]), 1.0), max(float(np.sum(counts[-3:])), 1.0)
    return float(np.clip(math.log2(max(around / above, 1.0)), *TAILS))


def _edges(level: float) -> FloatArray:
    """Return edges of bins in half octaves up to a level, and one bin for all beyond."""
    return np.asarray(level * 2.0 ** (np.arange(-BINS, 3) / 2.0))[[*range(BINS + 1), -1]]


def _squares(level: float) -> FloatArray:
    """Return the mean square in each bin, sizes spread evenly in their logarithm."""
    edges = _edges(level)[:-1]
    inside = np.diff(edges**2) / (2.0 * np.diff(np.log(edges)))
    return np.append(inside, level**2)
