"""The mean row with Gaussian noise."""

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real
from fastmix.accounting import GaussianEvent
from fastmix.data import Rows
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import total_sensitivity


def mean_event(*, sigma: float) -> GaussianEvent:
    """Return the event of `noisy_mean`, before any data is seen."""
    return GaussianEvent(sigma)


def noisy_mean(rows: Rows, *, sigma: float, noise: Noise) -> FloatArray:
    r"""Release :math:`(X^\top 1 + \sigma C \zeta)/n`, C being the sensitivity of the sum.

    The mean is no longer than a row can be; a constant column has its public value.

    Paper: beyond it (docs/proofs/centring.md).
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    sensitivity = total_sensitivity(rows.bound)
    mean = noise.gaussian(rows.total(), sensitivity=sensitivity, ratio=sigma) / rows.n
    longest = rows.bound
    if rows.constant:
        mean[-1] = 0.0
        longest = float(np.sqrt(max(0.0, longest**2 - rows.constant**2)))
    mean *= min(1.0, longest / max(float(np.linalg.norm(mean)), 1e-300))
    if rows.constant:
        mean[-1] = rows.constant
    return mean
