"""What follows the minimiser of an adaptive fit: shrunk, on a line, or moved to a quantile."""

import math
from typing import NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.clipping import Levels
from fastmix.engine.first_stage import Guess
from fastmix.engine.plan import Draws
from fastmix.releases import LINE, SIGNED_COUNTS, Noise

#: Share of the coefficients that is always kept: a model of zeros would look like an error.
LEAST_KEPT, MOST_KEPT = 1e-3, 2.0
#: Share of the budget (of mu^2) for a line, and noise of a mean over half its bound up to which it
#: pays.
LINE_SHARE, LINE_ERROR = 0.03, 0.008
#: Where predictions and residuals are clipped, in units of their spreads.
PREDICTIONS, RESIDUALS = 2.5, 3.0
#: How far clipping a skewed target may move all predictions, in units of its spread.
OFFSET = 0.5
#: The least variance of predictions, and what is taken off their covariance with the targets, in
#: units of its noise.
EVIDENT, TAKEN = 5.0, 0.5
#: Share of the budget (of mu^2) for counts of residuals around a quantile, and noise in the share
#: of rows below it up to which they pay.
SHIFT_SHARE, SHIFT_ERROR = 0.03, 0.03
#: Bins of those counts, in units of the residuals' spread: fine where the quantile should be.
SIZES: FloatArray = np.array(
    [0.0, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4, 1.0, 1.5, 2.0, 4.0]
)


class Decided(NamedTuple):
    """A fit when all but its last releases is decided: rows, plan, guess, levels and draws."""

    rows: Rows
    plan: AdaptivePlan
    guess: Guess
    levels: Levels
    draws: Draws

    @property
    def noise(self) -> float:
        """The noise of the gradient of the released minimiser."""
        return self.levels.clip / self.plan.mu


def shrunk(
    theta: FloatArray, guess: Guess, noise: float, ridge: float, n: int, curvature: float = 1.0
) -> tuple[FloatArray, float]:
    """Shrink coefficients to the baseline by the share of their energy that noise explains.

    This is the positive part of James and Stein's estimator; the second number is the share kept.
    """
    eigenvalues = n * curvature * guess.seen
    moved = guess.axes @ (theta - guess.baseline)
    expected = noise**2 * float(np.sum(eigenvalues / (eigenvalues + ridge) ** 2))
    energy = float(eigenvalues @ moved**2)
    kept = max(LEAST_KEPT, 1.0 - expected / max(energy, 1e-300))
    return guess.baseline + kept * (theta - guess.baseline), kept


def on_a_line(
    rows: Rows, theta: FloatArray, guess: Guess, sigma: float, noise: Noise
) -> tuple[FloatArray, float] | None:
    """Release a line through predictions and targets, and put the predictions on it.

    Returns coefficients and the slope; None if noise hides how predictions vary.
    """
    move = theta - guess.baseline
    spread = float(np.linalg.norm((guess.axes @ move) * np.sqrt(guess.seen)))
    width = PREDICTIONS * spread + OFFSET * guess.spread
    widths = max(width, 1e-12), max(RESIDUALS * guess.spread, 1e-12)
    p, e, pr, pp = noise.release(
        LINE, rows, center=guess.baseline, move=move, widths=widths, sigma=sigma
    ).tolist()
    error, r = 2.0 * sigma / rows.n, (e + widths[0] * p) / widths[1]
    variance, covariance = pp - p**2, pr - p * r
    if variance <= EVIDENT * error:
        return None
    slope = (covariance - TAKEN * error) / variance * (widths[1] / widths[0])
    slope = min(max(slope, LEAST_KEPT), MOST_KEPT)
    moved = guess.baseline + slope * move
    if rows.constant:
        moved[-1] += (e + (1.0 - slope) * p * widths[0]) / rows.constant
    return moved, slope


def shift_pays(n: int, sigma: float) -> bool:
    """Whether noisy counts of n residuals tell the share of rows below a quantile."""
    return sigma * math.sqrt(len(SIZES) - 1) <= SHIFT_ERROR * n


def at_quantile(
    rows: Rows, theta: FloatArray, quantile: float, spread: float, sigma: float, noise: Noise
) -> tuple[FloatArray, float]:
    """Release counts of residuals, and move the intercept to their quantile; also by how much.

    Of the count that is to move below, the share that noise explains is left out, as in `shrunk`.
    From 0 on, the first bin whose end has the count is taken, with residuals spread evenly in it.
    """
    edges = SIZES * spread
    below, above = noise.release(SIGNED_COUNTS, rows, theta=theta, edges=edges, sigma=sigma)
    total = float(below.sum() + above.sum())
    if total <= EVIDENT * sigma * math.sqrt(2.0 * len(below)):
        return theta, 0.0
    left = quantile * total - float(below.sum())  # how many more are to be below
    expected = sigma**2 * len(below) * (quantile**2 + (1.0 - quantile) ** 2)
    left *= max(0.0, 1.0 - expected / max(left**2, 1e-300))
    sign, counts = (1.0, above) if left > 0.0 else (-1.0, below)
    ends = np.cumsum(counts)
    at = int(np.argmax(ends >= abs(left))) if ends.max() >= abs(left) else len(ends) - 1
    before = float(ends[at] - counts[at])
    share = min((abs(left) - before) / counts[at], 1.0) if counts[at] > 0.0 else 1.0
    moved = theta.copy()
    shift = sign * float(edges[at] + share * (edges[at + 1] - edges[at]))
    moved[-1] += shift / rows.constant
    return moved, shift
