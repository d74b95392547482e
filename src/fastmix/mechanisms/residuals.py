"""How large residuals are: noisy counts of their magnitudes on a public logarithmic scale."""

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real
from fastmix.accounting import GaussianEvent
from fastmix.data import Rows
from fastmix.mechanisms._input import check_point
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import count_sensitivity

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

    Bins are those of `RESIDUAL_EDGES` times ``clip``; ``sigma`` is the standard deviation of the
    noise, and the other parameters are those of `noisy_gradient`.

    Paper: beyond it (docs/proofs/confidence.md).
    Sensitive inputs: rows.
    """
    clip = check_real("clip", clip, above=0.0)
    sigma = check_real("sigma", sigma, above=0.0)
    check_point(rows, theta)
    counts_hat = rows.residual_counts(theta, clip, RESIDUAL_EDGES)
    return noise.gaussian(counts_hat, sensitivity=count_sensitivity(), ratio=sigma)
