"""How large residuals are: noisy counts of their magnitudes on a public logarithmic scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_real, value_error
from fastmix.accounting import GaussianEvent
from fastmix.data import Rows
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import count_sensitivity

__all__ = ["RESIDUAL_EDGES", "noisy_residual_counts", "residual_event"]

FloatArray = npt.NDArray[np.float64]

#: Edges of the bins in units of the clipping level: half octaves from 2^-20 to 1. Smaller
#: residuals are not counted, so that an absent record, whose residual is 0, counts nowhere.
RESIDUAL_EDGES: FloatArray = 2.0 ** (np.arange(-40, 1) / 2.0)


def residual_event(sigma: float) -> GaussianEvent:
    """Return the event of `noisy_residual_counts`, before any data is seen."""
    return GaussianEvent(sigma, count_sensitivity())


def noisy_residual_counts(
    rows: Rows, theta: FloatArray, *, clip: float, sigma: float, noise: Noise
) -> FloatArray:
    r"""Release how many residuals :math:`|\mathrm{clip}_C(y - X\theta)|` fall into each bin.

    Parameters
    ----------
    rows : Rows
        Data with targets.
    theta : numpy.ndarray of shape (d,)
        Public or already released coefficients.
    clip : float
        Residual clipping level C.
    sigma : float
        Standard deviation of the noise.
    noise : Noise
        Secret noise.

    Returns
    -------
    numpy.ndarray
        Noisy counts, one for each bin of `RESIDUAL_EDGES` times ``clip``.

    Notes
    -----
    Paper: beyond it (docs/proofs/confidence.md).
    Sensitive inputs: rows.
    """
    clip = check_real("clip", clip, above=0.0)
    sigma = check_real("sigma", sigma, above=0.0)
    if theta.shape != (rows.d,) or not np.abs(theta).max() <= 1e100:
        raise value_error("theta", f"be at most 1e100 and have shape {(rows.d,)}", theta)
    counts_hat = rows.residual_counts(theta, clip, RESIDUAL_EDGES)
    return noise.gaussian(counts_hat, sensitivity=count_sensitivity(), ratio=sigma)
