"""What is released before and after the minimiser: moments, counts of gradients, a line."""

import math

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.accounting import GaussianEvent
from fastmix.data import Measure, Rows
from fastmix.kernels.sigmoids import Logistic
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import (
    count_sensitivity,
    line_sensitivity,
    second_moment_sensitivity,
    target_sensitivity,
    weight_sensitivity,
)


def second_moment_event(*, sigma: float, count: int = 1) -> GaussianEvent:
    """Return the event of ``count`` calls of `noisy_second_moments`."""
    return GaussianEvent(sigma, second_moment_sensitivity(), count)


def noisy_second_moments(
    rows: Rows, transform: FloatArray, *, sigma: float, noise: Noise
) -> FloatArray:
    r"""Release :math:`\sum_i z_i z_i^\top + \sigma N` for rows with targets.

    :math:`z_i = T^\top (x_i, y_i)` is shortened to length 1 if it is longer. N is symmetric, with
    variance 1 on the diagonal and 1/2 off it. ``transform`` is T, public or already released, and
    ``sigma`` the noise in units of the sensitivity.

    Paper: beyond it; docs/proofs/adaptive.md, Section 2.
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    size = rows.d + 1
    if transform.shape != (size, size) or not np.isfinite(transform).all():
        raise value_error("transform", f"be finite and have shape {(size, size)}", transform)
    moments_hat = rows.second_moments(transform)
    return noisy_symmetric(
        moments_hat, sensitivity=second_moment_sensitivity(), ratio=sigma, noise=noise
    )


def noisy_symmetric(
    matrix: FloatArray, *, sensitivity: float, ratio: float, noise: Noise
) -> FloatArray:
    """Release a symmetric matrix with noise of ``ratio`` times its Frobenius ``sensitivity``.

    The diagonal, joined by the entries above it times sqrt(2), is a vector of the same norm. So
    noise has half the variance off the diagonal.
    """
    size = len(matrix)
    above = np.triu_indices(size, 1)
    entries = np.concatenate((np.diag(matrix), math.sqrt(2.0) * matrix[above]))
    noisy = noise.gaussian(entries, sensitivity=sensitivity, ratio=ratio)
    released = np.diag(noisy[:size])
    released[above] = released.T[above] = noisy[size:] / math.sqrt(2.0)
    return released


def target_mean_event(*, sigma: float) -> GaussianEvent:
    """Return the event of `noisy_target_mean`."""
    return GaussianEvent(sigma, target_sensitivity())


def noisy_target_mean(rows: Rows, *, sigma: float, noise: Noise) -> float:
    r"""Release :math:`\frac1n (\sum_i y_i + \sigma z)`, moved into [-1, 1]; n is public.

    Paper: beyond it; docs/proofs/adaptive.md, Section 2.
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    total_hat = np.array([rows.target_total()])
    total = noise.gaussian(total_hat, sensitivity=target_sensitivity(), ratio=sigma)
    return float(np.clip(total[0] / rows.n, -1.0, 1.0))


def total_weight_event(*, sigma: float) -> GaussianEvent:
    """Return the event of `noisy_total_weight`."""
    return GaussianEvent(sigma, weight_sensitivity())


def noisy_total_weight(rows: Rows, *, sigma: float, noise: Noise) -> float:
    r"""Release :math:`\sum_i w_i + \sigma z`, moved into [1, n]; n is public.

    Paper: beyond it; docs/proofs/people.md, Section 6.
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    total_hat = np.array([rows.total_weight()])
    total = noise.gaussian(total_hat, sensitivity=weight_sensitivity(), ratio=sigma)
    return float(np.clip(total[0], 1.0, rows.n))


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
    loss: Logistic | None = None,
) -> FloatArray:
    r"""Release how many gradients :math:`|y - x^\top\theta|\,\rho` fall into each bin.

    With the logistic loss they are those of it, without its limit: 0 for a target of 0.

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
    if theta.shape != (rows.d,) or not np.abs(theta).max() <= 1e100:
        raise value_error("theta", f"be at most 1e100 and have shape {(rows.d,)}", theta)
    if not np.linalg.norm(transform) <= 1e100:
        raise value_error("transform", "have a norm of at most 1e100", transform)
    if not edges[0] > 0.0:  # an absent record, whose residual is 0, counts nowhere
        raise value_error("edges", "be above 0", edges)
    sides = np.linalg.norm(transform, 1) * np.linalg.norm(transform, np.inf)
    short = math.sqrt(sides) * rows.bound <= least  # no row is longer than the least length
    measured = rows.measured(Measure(None if short else transform, least))
    counts_hat = measured.slope_counts(theta, longest, edges, None if loss is None else loss.free)
    return noise.gaussian(counts_hat, sensitivity=count_sensitivity(), ratio=sigma)


def line_event(*, sigma: float) -> GaussianEvent:
    """Return the event of `noisy_line`."""
    return GaussianEvent(sigma)


def noisy_line(
    rows: Rows,
    center: FloatArray,
    move: FloatArray,
    *,
    widths: tuple[float, float],
    sigma: float,
    noise: Noise,
) -> FloatArray:
    r"""Release the means of :math:`(p, e, pr, p^2)`, from which a line through the points follows.

    :math:`p = x^\top m` is what moving from ``center`` by ``move``, m, adds to a prediction, and
    :math:`r = y - x^\top c` the residual of the centre, both divided by their ``widths``; e is the
    residual after moving. All three are clipped to [-1, 1]. All arguments but the rows are public
    or already released. ``sigma`` is the noise in units of the sensitivity; n is public.

    Paper: beyond it; docs/proofs/adaptive.md, Section 5.
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    for name, theta in (("center", center), ("move", move)):
        if theta.shape != (rows.d,) or not np.abs(theta).max() <= 1e100:
            raise value_error(name, f"be at most 1e100 and have shape {(rows.d,)}", theta)
    for width in widths:
        check_real("widths", width, at_least=1e-100)
    sums_hat = rows.line(center, move, widths)
    sums = noise.gaussian(sums_hat, sensitivity=line_sensitivity(), ratio=sigma)
    return np.asarray(sums / rows.n)
