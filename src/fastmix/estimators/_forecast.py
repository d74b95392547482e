"""What a planned fit is expected to give: on data with a known spectrum, and as a range without."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix.estimators._newton import Level, choose, step_lengths
from fastmix.mechanisms.spectral_bounds import needed_eigenvalue

__all__ = ["CASES", "Case", "Forecast", "Outlook", "forecast", "outlook"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """Data that a forecast is made for.

    Parameters
    ----------
    spread : float
        Smallest over largest eigenvalue of the Gram matrix; those between are in proportion. 1 is
        for uncorrelated features that use their bounds fully, small values for correlated ones and
        for bounds much wider than the data.
    size : float
        Mean squared norm of the scaled rows, which is at most 1.
    signal : float
        Mean square of the best predictions, for targets in [-1, 1], of which every eigenvector
        explains the same part.
    """

    spread: float
    size: float
    signal: float

    def problem(self, n: int, columns: int) -> tuple[FloatArray, FloatArray]:
        """Return the eigenvalues and the squared coefficients in their eigenvectors."""
        values = np.geomspace(self.spread, 1.0, columns) if columns > 1 else np.ones(1)
        values *= n * self.size / values.sum()
        return values, self.signal * n / (values * columns)


#: The range of a forecast, set on six sets and tested on twelve others: docs/forecasts.md.
CASES = {
    "best": Case(spread=1.0, size=1.0, signal=0.03),
    "typical": Case(spread=3e-4, size=0.5, signal=0.03),
    "hard": Case(spread=1e-5, size=0.5, signal=0.3),
}


@dataclass(frozen=True)
class Forecast:
    """Expected noise and error, in units of scaled rows (norm 1) and targets (in [-1, 1]).

    Parameters
    ----------
    eta : float
        Noise mixed into the sketch; for sufficient statistics, the square root of the ridge.
    gradient_noise : float
        Standard deviation of the noise of the last gradient, or of the noisy moments.
    noise_risk : float
        Part of the excess risk that comes from noise.
    bias_risk : float
        Part that comes from directions which have not converged.
    """

    eta: float
    gradient_noise: float
    noise_risk: float
    bias_risk: float

    @property
    def excess_risk(self) -> float:
        """Expected excess of the mean squared residual over that of least squares."""
        return self.noise_risk + self.bias_risk


@dataclass(frozen=True)
class Outlook:
    """A range of excess risk, and a value inside it.

    Parameters
    ----------
    low, typical, high : float
        Expected excess of the mean squared residual over that of least squares, for targets in
        [-1, 1]: on data that are easy, of ordinary difficulty, and hard.
    forecast : Forecast
        The forecast behind ``typical``.
    """

    low: float
    typical: float
    high: float
    forecast: Forecast


def outlook(method: str, parameters: dict[str, Any], n: int, columns: int) -> Outlook:
    """Return the range of what a planned fit is expected to give, from public sizes alone.

    Parameters
    ----------
    method : {"adassp", "fast_ihm", "ihm"}
        The method.
    parameters : dict
        Sizes and noise levels of its plan.
    n, columns : int
        Rows and columns, the intercept included.

    Returns
    -------
    Outlook
        The range: from half of the least noise in any of the cases, for data with nothing to
        learn, to the largest error in any of them.

    Notes
    -----
    Paper: beyond it.
    Deviation: none.
    Sensitive inputs: none, sizes are public.
    """
    cases = {
        name: forecast(method, parameters, n, *case.problem(n, columns))
        for name, case in CASES.items()
    }
    return Outlook(
        low=min(case.noise_risk for case in cases.values()) / 2.0,
        typical=cases["typical"].excess_risk,
        high=max(case.excess_risk for case in cases.values()),
        forecast=cases["typical"],
    )


def forecast(
    method: str,
    parameters: dict[str, Any],
    n: int,
    eigenvalues: FloatArray,
    theta_squared: FloatArray,
) -> Forecast:
    r"""Return what a planned fit is expected to give.

    Parameters
    ----------
    method : {"adassp", "fast_ihm", "ihm"}
        The method.
    parameters : dict
        Sizes and noise levels of its plan.
    n : int
        Rows.
    eigenvalues : numpy.ndarray of shape (d,)
        Eigenvalues of the Gram matrix of the scaled rows, in ascending order.
    theta_squared : numpy.ndarray of shape (d,)
        Squares of the scaled coefficients in the eigenvectors.

    Returns
    -------
    Forecast
        Expected noise and error.

    Notes
    -----
    Paper: beyond it. Steps are followed in the eigenvectors, with the released Hessian at its
    mean and without clipped residuals; the distortion is taken as
    :math:`\sqrt{\mathrm{tr}/k_2} + \sqrt{2 \lambda_{\max} \log n / k_2}`.
    Deviation: none.
    Sensitive inputs: none if the eigenvalues are public.
    """
    if method == "adassp":
        return _statistics(parameters, n, eigenvalues, theta_squared)
    m = 0.0
    if method == "fast_ihm":
        k2 = parameters["k2"]
        largest = eigenvalues[-1]
        m = math.sqrt(eigenvalues.sum() / k2) + math.sqrt(2.0 * math.log(n) * largest / k2)
    shift = parameters["tau"] * parameters["omega" if method == "fast_ihm" else "lambda_sigma"]
    row_bound = 1.0 + 2.0 * m
    bound = max(0.0, float(eigenvalues[0]) - shift * row_bound)
    level = choose(parameters["levels"], bound / row_bound, shift)
    curve = "fast_mix_sharp" if method == "fast_ihm" else "gauss_mix"
    eta_squared = max(0.0, needed_eigenvalue(level.gamma, m, 1.0, curve) - bound)
    return _steps(level, eta_squared, n, eigenvalues, theta_squared)


def _steps(
    level: Level, eta_squared: float, n: int, values: FloatArray, theta_squared: FloatArray
) -> Forecast:
    """Follow the steps in each eigenvector: contraction and noise of every step."""
    hessian = values + (1.0 - level.correction) * eta_squared
    noise, left = np.zeros_like(values), np.ones_like(values)
    lengths = step_lengths(level, float(np.sum(1.0 / hessian)) / n)
    for length, sigma in zip(lengths, level.sigmas, strict=True):
        contraction = 1.0 - length * values / hessian
        noise = contraction**2 * noise + (sigma * length / hessian) ** 2
        left *= contraction
    return Forecast(
        eta=math.sqrt(eta_squared),
        gradient_noise=level.sigmas[-1],
        noise_risk=float(values @ noise) / n,
        bias_risk=float(values @ (left**2 * theta_squared)) / n,
    )


def _statistics(
    parameters: dict[str, Any], n: int, values: FloatArray, theta_squared: FloatArray
) -> Forecast:
    """Perturbed sufficient statistics: noise of both, and the bias of the ridge."""
    bound = max(0.0, float(values[0]) - parameters["eigenvalue_shift"])
    ridge = max(0.0, parameters["ridge_level"] - bound)
    sigma = parameters["sigma"]
    spread = values / (values + ridge) ** 2
    # The noise of the Gram matrix meets the coefficients as the ridge has shrunk them.
    shrunk = float(np.sum(theta_squared * (values / (values + ridge)) ** 2))
    return Forecast(
        eta=math.sqrt(ridge),
        gradient_noise=sigma,
        noise_risk=float(spread.sum()) * sigma**2 * (1.0 + shrunk) / n,
        bias_risk=float(spread @ theta_squared) * ridge**2 / n,
    )
