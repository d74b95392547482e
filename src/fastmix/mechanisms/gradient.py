"""The clipped residual gradient with Gaussian noise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_real, value_error
from fastmix.accounting import GaussianEvent
from fastmix.mechanisms.sensitivity import gradient_sensitivity
from fastmix.mechanisms.snapping import snap
from fastmix.rows import Rows

__all__ = ["gradient_event", "noisy_gradient"]

FloatArray = npt.NDArray[np.float64]


def gradient_event(
    *, sigma: float, clip: float, c_x: float = 1.0, n_steps: int = 1
) -> GaussianEvent:
    """Return the event of ``n_steps`` calls of `noisy_gradient`, before any data is seen."""
    return GaussianEvent(sigma, gradient_sensitivity(clip, c_x), n_steps)


def noisy_gradient(
    rows: Rows, theta: FloatArray, *, clip: float, sigma: float, rng: np.random.Generator
) -> FloatArray:
    r"""Release :math:`X^\top \mathrm{clip}_C(y - X\theta) + \sigma \zeta`.

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
    rng : numpy.random.Generator
        Secret generator.

    Returns
    -------
    numpy.ndarray of shape (d,)
        The noisy gradient.

    Notes
    -----
    Paper: Algorithm 2, line 6, without the term :math:`-\eta^2\theta`, which is not sensitive.
    Deviation: none.
    Sensitive inputs: rows.
    """
    clip = check_real("clip", clip, above=0.0)
    sigma = check_real("sigma", sigma, above=0.0)
    # Beyond this a residual could overflow, and whether it does depends on the data.
    if theta.shape != (rows.d,) or not np.abs(theta).max() <= 1e100:
        raise value_error("theta", f"be at most 1e100 and have shape {(rows.d,)}", theta)
    return snap(rows.gradient(theta, clip) + sigma * rng.standard_normal(rows.d), sigma)
