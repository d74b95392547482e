"""The mean row with Gaussian noise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_real
from fastmix.accounting import GaussianEvent
from fastmix.mechanisms.exact_noise import exact_gaussian
from fastmix.mechanisms.sensitivity import total_sensitivity
from fastmix.mechanisms.snapping import snap
from fastmix.random import check_noise
from fastmix.rows import Rows

__all__ = ["mean_event", "noisy_mean"]

FloatArray = npt.NDArray[np.float64]


def mean_event(*, sigma: float) -> GaussianEvent:
    """Return the event of `noisy_mean`, before any data is seen."""
    return GaussianEvent(sigma)


def noisy_mean(
    rows: Rows, *, sigma: float, rng: np.random.Generator, noise: str = "float"
) -> FloatArray:
    r"""Release :math:`(X^\top 1 + \sigma C \zeta)/n`.

    Parameters
    ----------
    rows : Rows
        Data.
    sigma : float
        Noise of the sum, in units of its sensitivity C.
    rng : numpy.random.Generator
        Secret generator.
    noise : {"float", "exact"}
        Floating-point noise from ``rng``, or discrete noise on a grid, which leaves ``rng`` alone.

    Returns
    -------
    numpy.ndarray of shape (d,)
        The private mean, no longer than a row can be; a constant column has its public value.

    Notes
    -----
    Paper: beyond it (docs/proofs/centring.md).
    Deviation: none.
    Sensitive inputs: rows.
    """
    sensitivity = total_sensitivity(rows.bound)
    scale = check_real("sigma", sigma, above=0.0) * sensitivity
    if check_noise(noise, rng) == "exact":
        mean = exact_gaussian(rows.total(), sensitivity=sensitivity, sigma=scale) / rows.n
    else:
        mean = snap(rows.total() + scale * rng.standard_normal(rows.d), scale) / rows.n
    longest = rows.bound
    if rows.constant:
        mean[-1] = 0.0
        longest = float(np.sqrt(max(0.0, longest**2 - rows.constant**2)))
    mean *= min(1.0, longest / max(float(np.linalg.norm(mean)), 1e-300))
    if rows.constant:
        mean[-1] = rows.constant
    return mean
