"""What a planned fit is expected to give on data with a given spectrum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix.estimators._newton import Level, choose
from fastmix.mechanisms.spectral_bounds import needed_eigenvalue

__all__ = ["Forecast", "forecast"]

FloatArray = npt.NDArray[np.float64]


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


def forecast(
    method: str, parameters: dict[str, Any], n: int, eigenvalues: FloatArray, theta_norm: float
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
        Eigenvalues of the Gram matrix of the scaled rows.
    theta_norm : float
        Norm of the scaled coefficients, spread evenly over the eigenvectors.

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
    values = np.sort(np.asarray(eigenvalues, dtype=np.float64))
    theta_squared = theta_norm**2 / len(values)
    if method == "adassp":
        return _statistics(parameters, n, values, theta_squared)
    smallest = float(values[0])
    m = 0.0
    if method == "fast_ihm":
        k2 = parameters["k2"]
        m = math.sqrt(values.sum() / k2) + math.sqrt(2.0 * math.log(n) * values[-1] / k2)
    shift = parameters["tau"] * parameters["omega" if method == "fast_ihm" else "lambda_sigma"]
    row_bound = 1.0 + 2.0 * m
    bound = max(0.0, smallest - shift * row_bound)
    level = choose(parameters["levels"], bound / row_bound, shift)
    curve = "fast_mix_sharp" if method == "fast_ihm" else "gauss_mix"
    eta_squared = max(0.0, needed_eigenvalue(level.gamma, m, 1.0, curve) - bound)
    return _steps(level, eta_squared, n, values, theta_squared)


def _steps(
    level: Level, eta_squared: float, n: int, values: FloatArray, theta_squared: float
) -> Forecast:
    """Follow the steps in each eigenvector: contraction and noise of every step."""
    hessian = values + (1.0 - level.correction) * eta_squared
    contraction = 1.0 - level.step * values / hessian
    noise = np.zeros_like(values)
    for age, sigma in enumerate(reversed(level.sigmas)):
        noise += (sigma * level.step / hessian * contraction**age) ** 2
    left = contraction ** len(level.sigmas)
    return Forecast(
        eta=math.sqrt(eta_squared),
        gradient_noise=level.sigmas[-1],
        noise_risk=float(values @ noise) / n,
        bias_risk=float(values @ left**2) * theta_squared / n,
    )


def _statistics(
    parameters: dict[str, Any], n: int, values: FloatArray, theta_squared: float
) -> Forecast:
    """Perturbed sufficient statistics: noise of both, and the bias of the ridge."""
    bound = max(0.0, float(values[0]) - parameters["eigenvalue_shift"])
    ridge = max(0.0, parameters["ridge_level"] - bound)
    sigma = parameters["sigma"]
    spread = values / (values + ridge) ** 2
    return Forecast(
        eta=math.sqrt(ridge),
        gradient_noise=sigma,
        noise_risk=float(spread.sum()) * sigma**2 * (1.0 + theta_squared * len(values)) / n,
        bias_risk=float(spread.sum()) * ridge**2 * theta_squared / n,
    )
