r"""Moments of features and targets: means, Gram matrices, second moments, curvatures, a line."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix.data import Measure, Rows
from fastmix.kernels.losses import Loss
from fastmix.releases.checks import (
    anything,
    coefficients,
    joint_transform,
    positive,
    transform,
    weights,
    widths,
)
from fastmix.releases.release import Gaussian, Joint, Public
from fastmix.releases.rounding import eigenvalue_error, product_error, slope_error, summed
from fastmix.releases.sensitivity import (
    curvature_sensitivity,
    eigenvalue_sensitivity,
    gradient_sensitivity,
    gradient_square_sensitivity,
    gram_sensitivity,
    line_sensitivity,
    moment_sensitivity,
    second_moment_sensitivity,
    slope_sensitivity,
    target_sensitivity,
    total_sensitivity,
)


class GramRelease(NamedTuple):
    """A noisy Gram matrix, and the standard deviation of the noise on its diagonal."""

    gram: FloatArray
    scale: float
    m_tilde: float = 0.0  #: Upper bound of the distortion of a fast sketch.


class MomentsRelease(NamedTuple):
    """Noisy Gram matrix and moment vector."""

    gram: FloatArray
    moment: FloatArray


class StatisticsRelease(NamedTuple):
    """Noisy Gram matrix, moment vector and smallest eigenvalue."""

    gram: FloatArray
    moment: FloatArray
    eigenvalue: float


class CurvatureRelease(NamedTuple):
    """Noisy sums of curvatures and of squared gradients."""

    curvature: FloatArray
    squares: FloatArray


#: :math:`X^\top \mathrm{clip}_C(y - X\theta)`, C being ``clip``.
#: Paper: Algorithm 2, line 6, without the term :math:`-\eta^2\theta`, which is not sensitive.
GRADIENT = Gaussian(
    name="gradient",
    statement="the sum of gradients of the squared loss, residuals clipped at a public level",
    proof="Appendix E of the paper",
    statistic=lambda rows, theta, clip: rows.gradient(theta, clip),
    sensitivity=summed(lambda public, theta, clip: gradient_sensitivity(clip, public.bound)),
    given={"theta": coefficients, "clip": positive},
)


def _mean(value: FloatArray, public: Public, sigma: float) -> FloatArray:
    """Return a mean no longer than a row can be; a constant column has its public value."""
    mean = value / public.n
    longest = public.bound
    if public.constant:
        mean[-1] = 0.0
        longest = float(np.sqrt(max(0.0, longest**2 - public.constant**2)))
    mean *= min(1.0, longest / max(float(np.linalg.norm(mean)), 1e-300))
    if public.constant:
        mean[-1] = public.constant
    return mean


#: The mean of the features, :math:`X^\top 1/n`, no longer than a row can be.
MEAN = Gaussian(
    name="mean",
    statement="the mean of the features",
    proof="docs/proofs/centring.md",
    statistic=lambda rows: rows.total(),
    sensitivity=summed(lambda public: total_sensitivity(public.bound)),
    finish=_mean,
)

#: The mean of the targets, which are in [-1, 1], moved into that range.
TARGET_MEAN = Gaussian(
    name="target mean",
    statement="the mean of the target",
    proof="docs/proofs/adaptive.md, Section 2",
    statistic=lambda rows: np.array([rows.target_total()]),
    sensitivity=summed(lambda public: target_sensitivity()),
    finish=lambda value, public, sigma: float(np.clip(value[0] / public.n, -1.0, 1.0)),
)

_gram_scale = summed(lambda public: gram_sensitivity(public.bound))

#: :math:`X^\top X`, with the standard deviation of the noise on its diagonal.
GRAM = Gaussian(
    name="gram",
    statement="the Gram matrix of the features",
    proof="docs/proofs/symmetric_noise.md",
    statistic=lambda rows: rows.gram(),
    sensitivity=_gram_scale,
    symmetric=True,
    finish=lambda value, public, sigma: GramRelease(value, sigma * _gram_scale(public)),
)

#: :math:`X^\top y` for targets in [-1, 1].
MOMENT = Gaussian(
    name="moment",
    statement="the products of features and target, summed",
    proof="AdaSSP (Wang, 2018)",
    statistic=lambda rows: rows.moments()[1],
    sensitivity=summed(lambda public: moment_sensitivity(public.bound)),
)

#: `GRAM` and `MOMENT` from one pass.
MOMENTS = Joint(
    name="moments",
    statement="the Gram matrix of the features, and their products with the target",
    proof="docs/proofs/symmetric_noise.md",
    statistic=lambda rows: rows.moments(),
    parts=(GRAM, MOMENT),
    finish=lambda value, public, sigma: MomentsRelease(*value),
)


def _statistics(rows: Rows) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the upper triangle of X'X, X'y and the smallest eigenvalue."""
    gram_hat, moment_hat = rows.moments()
    lambda_hat = np.asarray(np.linalg.eigvalsh(gram_hat)[:1], dtype=np.float64)
    return gram_hat[np.triu_indices(rows.d)], moment_hat, lambda_hat


def _assembled(value: Any, public: Public, sigma: Any) -> StatisticsRelease:
    """Return the released entries as a symmetric matrix, with the moment and the eigenvalue."""
    entries, moment, eigenvalue = value
    gram, upper = np.empty((public.d, public.d)), np.triu_indices(public.d)
    gram[upper] = gram.T[upper] = entries
    return StatisticsRelease(gram, moment, float(eigenvalue[0]))


#: The statistics of AdaSSP as published; the entries of the Gram matrix all have the same noise.
STATISTICS = Joint(
    name="statistics",
    statement="Gram matrix, moments and smallest eigenvalue, as AdaSSP releases them",
    proof="AdaSSP (Wang, 2018)",
    statistic=_statistics,
    parts=(
        replace(GRAM, symmetric=False),
        MOMENT,
        replace(
            MOMENT,
            sensitivity=summed(
                lambda public: eigenvalue_sensitivity(public.bound), error=eigenvalue_error
            ),
        ),
    ),
    finish=_assembled,
)

#: :math:`\sum_i z_i z_i^\top` for :math:`z_i = T^\top (x_i, y_i)`, shortened to length 1 if it is
#: longer; ``transform`` is T. Rounding is taken off that length, so that the sensitivity is 1.
SECOND_MOMENTS = Gaussian(
    name="second moments",
    statement="second moments of features and target, rows shortened in given coordinates",
    proof="docs/proofs/adaptive.md, Section 2",
    statistic=lambda rows, transform: rows.second_moments(transform),
    sensitivity=lambda public, transform: second_moment_sensitivity(),
    given={"transform": joint_transform},
    symmetric=True,
)

#: `SECOND_MOMENTS` of some columns, the constant and the target, which are few: ``transform`` has
#: zeros in the columns of all others, and only the rest of the matrix is released.
NUMBER_MOMENTS = Gaussian(
    name="moments of numbers",
    statement="second moments of the columns of numbers and of the target, rows shortened",
    proof="docs/proofs/tables.md, Section 2",
    statistic=lambda rows, transform, columns: rows.second_moments(transform)[
        np.ix_(columns, columns)
    ],
    sensitivity=lambda public, transform, columns: second_moment_sensitivity(),
    given={"transform": joint_transform, "columns": anything},
    symmetric=True,
)


def _slopes(
    rows: Rows, theta: FloatArray, loss: Loss, transform: FloatArray, least: float
) -> FloatArray:
    r"""Return :math:`\sum_i f'_i z_i` for rows :math:`z = T^\top x` and slopes of the loss."""
    measured = rows.measured(Measure.of(transform, least, rows.bound))
    return np.asarray(measured.slopes(theta, loss)[0].sum(axis=0) @ transform)


#: The gradient of a loss with bounded slopes at public or released coefficients.
SLOPES = Gaussian(
    name="slopes",
    statement="the gradient of the loss at given coefficients, clipped for each record",
    proof="docs/proofs/tables.md, Section 2",
    statistic=_slopes,
    sensitivity=summed(
        lambda public, loss, **given: slope_sensitivity(loss.lipschitz), sums=0.0, error=slope_error
    ),
    given={
        "theta": coefficients,
        "loss": anything,
        "transform": transform,
        "least": positive,
    },
)

#: The means of :math:`(p, e, pr, p^2)`, from which a line through the points follows.
#:
#: :math:`p = x^\top m` is what moving from ``center`` by ``move``, m, adds to a prediction, and
#: :math:`r = y - x^\top c` the residual of the centre, both divided by their ``widths``; e is the
#: residual after moving. All three are clipped to [-1, 1].
LINE = Gaussian(
    name="line",
    statement="how predictions and targets vary together, clipped at given widths",
    proof="docs/proofs/adaptive.md, Section 5",
    statistic=lambda rows, center, move, widths: rows.line(center, move, widths),
    sensitivity=summed(lambda public, **given: line_sensitivity()),
    given={"center": coefficients, "move": coefficients, "widths": widths},
    finish=lambda value, public, **given: np.asarray(value / public.n),
)


def _curvatures(
    rows: Rows,
    theta: FloatArray,
    loss: Loss,
    transform: FloatArray,
    least: float,
    square: float,
    weights: FloatArray | None,
    *,
    squares: bool = True,
) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`\sum_i \kappa_i z_i z_i^\top` and :math:`\sum_i (f'_i)^2 z_i z_i^\top`.

    :math:`z = T^\top x` are rows in the coordinates of a release, :math:`f'` is the slope of the
    loss at the residual of ``theta``, and :math:`\kappa` its curvature, or what leaves the term a
    norm of ``square`` if that is less. ``weights`` of at most 1 multiply the coordinates.
    """
    measured = rows.measured(Measure(transform, least))
    return measured.curvatures(
        theta, loss, transform, square, weights, least=least, squares=squares
    )


#: What `CURVATURE` and `CURVATURES` are given.
_AT = {
    "theta": coefficients,
    "loss": anything,
    "transform": transform,
    "least": positive,
    "square": positive,
    "weights": weights,
}

#: The curvature of the loss at released coefficients.
CURVATURE = Gaussian(
    name="curvature",
    statement="the curvature of the loss at the coefficients, clipped for each record",
    proof="docs/proofs/inference.md, Section 2",
    statistic=lambda rows, **given: _curvatures(rows, **given, squares=False)[0],
    sensitivity=summed(
        lambda public, square, **given: curvature_sensitivity(square), error=product_error
    ),
    symmetric=True,
    given=_AT,
)

#: The squares of gradients at released coefficients.
SQUARES = Gaussian(
    name="squares of gradients",
    statement="the squares of the gradients at the coefficients",
    proof="docs/proofs/inference.md, Section 2",
    statistic=lambda rows, **given: _curvatures(rows, **given)[1],
    sensitivity=summed(
        lambda public, loss, **given: gradient_square_sensitivity(loss.lipschitz),
        error=product_error,
    ),
    symmetric=True,
    given=_AT,
)

#: `CURVATURE` and `SQUARES`, which intervals of a minimiser need, from one pass.
CURVATURES = Joint(
    name="curvatures",
    statement="the curvature of the loss and the squares of its gradients at the coefficients",
    proof="docs/proofs/inference.md, Section 2",
    statistic=_curvatures,
    parts=(CURVATURE, SQUARES),
    given=_AT,
    finish=lambda value, public, **given: CurvatureRelease(*value),
)
