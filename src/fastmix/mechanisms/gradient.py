"""The clipped residual gradient with Gaussian noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_real, value_error
from fastmix.accounting import GaussianEvent, PrivacyEvent
from fastmix.mechanisms.exact_noise import exact_gaussian
from fastmix.mechanisms.sensitivity import gradient_sensitivity
from fastmix.mechanisms.snapping import snap
from fastmix.random import check_noise
from fastmix.rows import Rows

__all__ = ["gradient_events", "noisy_gradient"]

FloatArray = npt.NDArray[np.float64]


def gradient_events(sigmas: Iterable[float]) -> list[PrivacyEvent]:
    """Return the events of `noisy_gradient` on rows of norm 1 with these noise levels a step.

    Levels are in units of the clipping level, which is the sensitivity; equal ones are counted.
    """
    return [
        GaussianEvent(sigma, gradient_sensitivity(1.0), count)
        for sigma, count in Counter(sigmas).items()
    ]


def noisy_gradient(
    rows: Rows,
    theta: FloatArray,
    *,
    clip: float,
    sigma: float,
    rng: np.random.Generator,
    noise: str = "float",
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
    noise : {"float", "exact"}
        Floating-point noise from ``rng``, or discrete noise on a grid, which leaves ``rng`` alone.

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
    if check_noise(noise, rng) == "exact":
        sensitivity = gradient_sensitivity(clip, rows.bound)
        return exact_gaussian(rows.gradient(theta, clip), sensitivity=sensitivity, sigma=sigma)
    return snap(rows.gradient(theta, clip) + sigma * rng.standard_normal(rows.d), sigma)
