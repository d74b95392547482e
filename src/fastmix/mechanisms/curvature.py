"""What the intervals of a minimiser need: the curvature at it, and the squares of gradients."""

from typing import NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.accounting import GaussianEvent
from fastmix.data import Measure, Rows
from fastmix.kernels.losses import Loss
from fastmix.mechanisms.first_stage import noisy_symmetric
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import curvature_sensitivity, gradient_square_sensitivity


class CurvatureRelease(NamedTuple):
    """Noisy sums of curvatures and of squared gradients; both fields are private."""

    curvature: FloatArray
    squares: FloatArray


def curvature_events(curvature_sigma: float, square_sigma: float) -> list[GaussianEvent]:
    """Return the events of `noisy_curvatures`, with levels in units of the sensitivities."""
    return [GaussianEvent(curvature_sigma), GaussianEvent(square_sigma)]


def noisy_curvatures(
    rows: Rows,
    theta: FloatArray,
    *,
    loss: Loss,
    transform: FloatArray,
    least: float,
    square: float,
    curvature_sigma: float,
    square_sigma: float,
    noise: Noise,
) -> CurvatureRelease:
    r"""Release :math:`\sum_i \kappa_i z_i z_i^\top` and :math:`\sum_i (f'_i)^2 z_i z_i^\top`.

    :math:`z = T^\top x` are rows in the coordinates of a release, :math:`f'` is the slope of the
    loss at the residual of ``theta``, and :math:`\kappa` its curvature, or what leaves the term a
    norm of ``square`` if that is less. All arguments but the rows are public or already released,
    and the levels are in units of the sensitivities.

    Paper: beyond it; docs/proofs/inference.md, Section 2.
    Sensitive inputs: rows.
    """
    curvature_sigma = check_real("curvature_sigma", curvature_sigma, above=0.0)
    square_sigma = check_real("square_sigma", square_sigma, above=0.0)
    least = check_real("least", least, above=0.0)
    square = check_real("square", square, above=0.0)
    if theta.shape != (rows.d,) or not np.abs(theta).max() <= 1e100:
        raise value_error("theta", f"be at most 1e100 and have shape {(rows.d,)}", theta)
    if not np.linalg.norm(transform) <= 1e100:
        raise value_error("transform", "have a norm of at most 1e100", transform)
    measured = rows.measured(Measure(transform, least))
    curvature_hat, squares_hat = measured.curvatures(theta, loss, transform, square)
    limit, longest = curvature_sensitivity(square), gradient_square_sensitivity(loss.lipschitz)
    return CurvatureRelease(
        noisy_symmetric(curvature_hat, sensitivity=limit, ratio=curvature_sigma, noise=noise),
        noisy_symmetric(squares_hat, sensitivity=longest, ratio=square_sigma, noise=noise),
    )
