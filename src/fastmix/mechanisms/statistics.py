"""Sufficient statistics of least squares with Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_real
from fastmix.accounting import GaussianEvent, PrivacyEvent
from fastmix.mechanisms.exact_noise import exact_gaussian
from fastmix.mechanisms.sensitivity import (
    eigenvalue_sensitivity,
    gram_sensitivity,
    moment_sensitivity,
)
from fastmix.mechanisms.snapping import snap, snap_down
from fastmix.random import check_noise
from fastmix.rows import Rows

__all__ = ["StatisticsRelease", "noisy_statistics", "statistics_event"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StatisticsRelease:
    """Noisy Gram matrix, moment vector and smallest eigenvalue; every field is private."""

    gram: FloatArray
    moment: FloatArray
    eigenvalue: float
    event: PrivacyEvent


def statistics_event(*, sigma: float) -> GaussianEvent:
    """Return the event of `noisy_statistics`, before any data is seen."""
    return GaussianEvent(sigma, 1.0, 3)


def noisy_statistics(
    rows: Rows, *, sigma: float, rng: np.random.Generator, noise: str = "float"
) -> StatisticsRelease:
    r"""Release :math:`X^\top X + sN`, :math:`X^\top y + sN'` and :math:`\lambda_{\min} + sz`.

    Parameters
    ----------
    rows : Rows
        Data with targets in [-1, 1].
    sigma : float
        Noise of each release, in units of its sensitivity.
    rng : numpy.random.Generator
        Secret generator.
    noise : {"float", "exact"}
        Floating-point noise from ``rng``, or discrete noise on a grid, which leaves ``rng`` alone.

    Returns
    -------
    StatisticsRelease
        The three noisy statistics and the privacy event.

    Notes
    -----
    Paper: AdaSSP (Wang, 2018), with which the experiments compare.
    Deviation: none.
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    check_noise(noise, rng)
    gram_hat, moment_hat = rows.moments()
    lambda_hat = float(np.linalg.eigvalsh(gram_hat)[0])
    sensitivities = (
        gram_sensitivity(rows.bound),
        moment_sensitivity(rows.bound),
        eigenvalue_sensitivity(rows.bound),
    )
    draw = _exact if noise == "exact" else _float
    statistics = draw(gram_hat, moment_hat, lambda_hat, sensitivities, sigma, rng)
    return StatisticsRelease(*statistics, event=statistics_event(sigma=sigma))


def _float(
    gram_hat: FloatArray,
    moment_hat: FloatArray,
    lambda_hat: float,
    sensitivities: tuple[float, float, float],
    sigma: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, float]:
    upper = np.triu(rng.standard_normal(gram_hat.shape))
    noise = upper + np.triu(upper, 1).T
    scales = [sigma * sensitivity for sensitivity in sensitivities]
    return (
        snap(gram_hat + scales[0] * noise, scales[0]),
        snap(moment_hat + scales[1] * rng.standard_normal(len(moment_hat)), scales[1]),
        snap_down(lambda_hat + scales[2] * float(rng.standard_normal()), scales[2]),
    )


def _exact(
    gram_hat: FloatArray,
    moment_hat: FloatArray,
    lambda_hat: float,
    sensitivities: tuple[float, float, float],
    sigma: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, float]:
    upper = np.triu_indices(len(gram_hat))
    parts = [
        exact_gaussian(values, sensitivity=sensitivity, sigma=sigma * sensitivity)
        for values, sensitivity in zip(
            (gram_hat[upper], moment_hat, np.array([lambda_hat])), sensitivities, strict=True
        )
    ]
    gram = np.empty_like(gram_hat)
    gram[upper] = gram.T[upper] = parts[0]
    return gram, parts[1], float(parts[2][0])
