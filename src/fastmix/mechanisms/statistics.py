"""Sufficient statistics of least squares with Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_real
from fastmix.accounting import GaussianEvent, PrivacyEvent
from fastmix.mechanisms.sensitivity import (
    eigenvalue_sensitivity,
    gram_sensitivity,
    moment_sensitivity,
)
from fastmix.mechanisms.snapping import snap, snap_down
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


def noisy_statistics(rows: Rows, *, sigma: float, rng: np.random.Generator) -> StatisticsRelease:
    r"""Release :math:`X^\top X + sN`, :math:`X^\top y + sN'` and :math:`\lambda_{\min} + sz`.

    Parameters
    ----------
    rows : Rows
        Data with targets in [-1, 1].
    sigma : float
        Noise of each release, in units of its sensitivity.
    rng : numpy.random.Generator
        Secret generator.

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
    gram_hat, moment_hat = rows.moments()
    lambda_hat = float(np.linalg.eigvalsh(gram_hat)[0])
    upper = np.triu(rng.standard_normal((rows.d, rows.d)))
    noise = upper + np.triu(upper, 1).T
    scales = (
        sigma * gram_sensitivity(rows.bound),
        sigma * moment_sensitivity(rows.bound),
        sigma * eigenvalue_sensitivity(rows.bound),
    )
    return StatisticsRelease(
        gram=snap(gram_hat + scales[0] * noise, scales[0]),
        moment=snap(moment_hat + scales[1] * rng.standard_normal(rows.d), scales[1]),
        eigenvalue=snap_down(lambda_hat + scales[2] * float(rng.standard_normal()), scales[2]),
        event=statistics_event(sigma=sigma),
    )
