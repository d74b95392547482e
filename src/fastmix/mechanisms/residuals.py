"""How large residuals and gradients are: noisy counts on a public logarithmic scale."""

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.accounting import GaussianEvent
from fastmix.data import Measure, Rows
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


def noisy_gradient_counts(
    rows: Rows,
    theta: FloatArray,
    *,
    transform: FloatArray,
    least: float,
    longest: float,
    edges: FloatArray,
    sigma: float,
    noise: Noise,
) -> FloatArray:
    r"""Release how many gradients :math:`|y - x^\top\theta|\,\rho` fall into each bin.

    :math:`\rho` is the length of :math:`T^\top x`, at least ``least``; a row that is longer than
    ``longest`` counts as if it, and its target, were shortened. Gradients beyond the last edge
    count in the last bin. All arguments but the rows are public or already released. The event is
    that of `noisy_residual_counts`.

    Paper: beyond it; docs/proofs/adaptive.md, Section 3.
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    least = check_real("least", least, above=0.0)
    longest = check_real("longest", longest, above=0.0)
    check_point(rows, theta)
    if not edges[0] > 0.0:  # an absent record, whose residual is 0, counts nowhere
        raise value_error("edges", "be above 0", edges)
    measured = rows.measured(Measure(transform, least))
    counts_hat = measured.slope_counts(theta, longest, edges)
    return noise.gaussian(counts_hat, sensitivity=count_sensitivity(), ratio=sigma)
