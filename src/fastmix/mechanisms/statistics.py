"""Sufficient statistics of least squares with Gaussian noise."""

from dataclasses import dataclass

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real
from fastmix.accounting import GaussianEvent, PrivacyEvent
from fastmix.data import Rows
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import (
    eigenvalue_sensitivity,
    gram_sensitivity,
    moment_sensitivity,
)


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


def noisy_statistics(rows: Rows, *, sigma: float, noise: Noise) -> StatisticsRelease:
    r"""Release :math:`X^\top X + sN`, :math:`X^\top y + sN'` and :math:`\lambda_{\min} + sz`.

    Targets are in [-1, 1], and ``sigma`` is the noise of each release in units of its sensitivity.

    Paper: AdaSSP (Wang, 2018), with which the experiments compare.
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    gram_hat, moment_hat = rows.moments()
    lambda_hat = np.asarray(np.linalg.eigvalsh(gram_hat)[:1], dtype=np.float64)
    upper = np.triu_indices(len(gram_hat))
    entries, moment, eigenvalue = (
        noise.gaussian(values, sensitivity=sensitivity, ratio=sigma)
        for values, sensitivity in (
            (gram_hat[upper], gram_sensitivity(rows.bound)),
            (moment_hat, moment_sensitivity(rows.bound)),
            (lambda_hat, eigenvalue_sensitivity(rows.bound)),
        )
    )
    gram = np.empty_like(gram_hat)
    gram[upper] = gram.T[upper] = entries
    return StatisticsRelease(gram, moment, float(eigenvalue[0]), statistics_event(sigma=sigma))
