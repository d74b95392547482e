"""What follows the minimiser of an adaptive fit: its predictions on a line, or shrunk."""

import numpy as np

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.mechanisms import Noise, noisy_line
from fastmix.methods.first_stage import Guess

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
    p, e, pr, pp = noisy_line(
        rows, guess.baseline, move, widths=widths, sigma=sigma, noise=noise
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
