"""Sums over the rows with Gaussian noise: gradients, counts of residuals, the mean, moments."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.accounting import GaussianEvent, PrivacyEvent
from fastmix.data import Rows
from fastmix.mechanisms.first_stage import noisy_symmetric
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import (
    count_sensitivity,
    eigenvalue_sensitivity,
    gradient_sensitivity,
    gram_sensitivity,
    moment_sensitivity,
    total_sensitivity,
)

#: Edges of the bins in units of the clipping level: half octaves from 2^-20 to 1. Smaller
#: residuals are not counted, so that an absent record, whose residual is 0, counts nowhere.
RESIDUAL_EDGES: FloatArray = 2.0 ** (np.arange(-40, 1) / 2.0)


def gradient_events(sigmas: Iterable[float]) -> list[PrivacyEvent]:
    """Return the events of `noisy_gradient`, with levels in units of the sensitivity; counted."""
    steps = Counter(sigmas).items()
    return [GaussianEvent(sigma, gradient_sensitivity(1.0), count) for sigma, count in steps]


def noisy_gradient(
    rows: Rows, theta: FloatArray, *, clip: float, sigma: float, noise: Noise
) -> FloatArray:
    r"""Release :math:`X^\top \mathrm{clip}_C(y - X\theta) + \sigma C \zeta` for rows with targets.

    ``theta`` must be public or already released, ``clip`` is the residual clipping level C, and
    ``sigma`` the noise in units of the sensitivity.

    Paper: Algorithm 2, line 6, without the term :math:`-\eta^2\theta`, which is not sensitive.
    Sensitive inputs: rows.
    """
    clip, sigma = _checked(rows, theta, clip, sigma)
    sensitivity = gradient_sensitivity(clip, rows.bound)
    return noise.gaussian(rows.gradient(theta, clip), sensitivity=sensitivity, ratio=sigma)


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
    clip, sigma = _checked(rows, theta, clip, sigma)
    counts_hat = rows.residual_counts(theta, clip, RESIDUAL_EDGES)
    return noise.gaussian(counts_hat, sensitivity=count_sensitivity(), ratio=sigma)


def noisy_signed_counts(
    rows: Rows, theta: FloatArray, *, edges: FloatArray, sigma: float, noise: Noise
) -> FloatArray:
    r"""Release how many residuals :math:`y - x^\top\theta` below 0, and above it, are in each bin.

    Bins are those of sizes between rising ``edges`` from 0 on; sizes beyond the last one count in
    the last bin, and a residual of 0, as an absent record has, in none. All arguments but the rows
    are public or already released. The event is that of `noisy_residual_counts`.

    Paper: beyond it; docs/proofs/adaptive.md, Section 4.
    Sensitive inputs: rows.
    """
    _, sigma = _checked(rows, theta, 1.0, sigma)
    if edges.ndim != 1 or len(edges) < 2 or edges[0] < 0.0 or not np.all(np.diff(edges) > 0.0):
        raise value_error("edges", "be at least two rising numbers from 0 on", edges)
    counts_hat = rows.signed_counts(theta, edges)
    return noise.gaussian(counts_hat, sensitivity=count_sensitivity(), ratio=sigma)


def _checked(rows: Rows, theta: FloatArray, clip: float, sigma: float) -> tuple[float, float]:
    """Return the levels; refuse coefficients so large that residuals of some data overflow."""
    if theta.shape != (rows.d,) or not np.abs(theta).max() <= 1e100:
        raise value_error("theta", f"be at most 1e100 and have shape {(rows.d,)}", theta)
    return check_real("clip", clip, above=0.0), check_real("sigma", sigma, above=0.0)


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


class MomentsRelease(NamedTuple):
    """Noisy Gram matrix and moment vector."""

    gram: FloatArray
    moment: FloatArray


def moments_event(*, sigma: float) -> GaussianEvent:
    """Return the event of `noisy_moments`, before any data is seen."""
    return GaussianEvent(sigma, 1.0, 2)


def noisy_moments(rows: Rows, *, sigma: float, noise: Noise) -> MomentsRelease:
    r"""Release :math:`X^\top X + \sigma N` and :math:`X^\top y + \sigma N'`.

    N is symmetric, with variance 1 on the diagonal and 1/2 off it. Targets are in [-1, 1], and
    ``sigma`` is the noise of each release in units of its sensitivity.

    Paper: beyond it (docs/proofs/symmetric_noise.md).
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    gram_hat, moment_hat = rows.moments()
    sensitivity = gram_sensitivity(rows.bound)
    gram = noisy_symmetric(gram_hat, sensitivity=sensitivity, ratio=sigma, noise=noise)
    sensitivity = moment_sensitivity(rows.bound)
    moment = noise.gaussian(moment_hat, sensitivity=sensitivity, ratio=sigma)
    return MomentsRelease(gram, moment)


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
