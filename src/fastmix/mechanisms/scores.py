"""Sums of residuals, and counts of labels, that scores are made of, with Gaussian noise."""

from collections.abc import Sequence

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_choice, check_probability, check_real, value_error
from fastmix.accounting import GaussianEvent
from fastmix.data import Rows
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import (
    absolute_sensitivity,
    contrast_sensitivity,
    count_sensitivity,
    log_loss_sensitivity,
    pinball_sensitivity,
    score_sensitivity,
)

#: What is summed: squares less those of a baseline, squares, or sizes of residuals.
SUMS = ("difference", "squares", "sizes")


def score_event(sigma: float) -> GaussianEvent:
    """Return the event of each of these releases."""
    return GaussianEvent(sigma)


def noisy_score_sum(
    rows: Rows,
    theta: FloatArray,
    *,
    kind: str,
    level: float,
    sigma: float,
    noise: Noise,
    base: FloatArray | None = None,
    base_level: float = 1.0,
    weight: float = 0.0,
) -> float:
    r"""Release a sum over residuals r of ``theta``, and u of ``base``, clipped at public levels.

    "difference" is :math:`\sum \min(r^2, C^2) - w \min(u^2, D^2)`, "squares" the same without its
    second part, and "sizes" :math:`\sum \min(|r|, C)`; C is ``level``, D ``base_level``. All
    arguments but the rows are public or already released; ``sigma`` is in units of the sensitivity.

    Paper: beyond it; docs/proofs/scores.md.
    Sensitive inputs: rows.
    """
    check_choice("kind", kind, SUMS)
    level, sigma = check_real("level", level, above=0.0), check_real("sigma", sigma, above=0.0)
    base_level = check_real("base_level", base_level, above=0.0)
    weight = check_real("weight", weight if kind == "difference" else 0.0, at_least=0.0)
    base = np.zeros(rows.d) if base is None else base
    for name, each in (("theta", theta), ("base", base)):
        _check_coefficients(name, each, (rows.d,))
    sums_hat = rows.score_sums(theta, base, level=level, base_level=base_level, weight=weight)
    if kind == "sizes":
        sensitivity = absolute_sensitivity(level)
    else:
        sensitivity = score_sensitivity(level, base_level, weight)
    sum_hat = sums_hat[SUMS.index(kind)][None]
    return float(noise.gaussian(sum_hat, sensitivity=sensitivity, ratio=sigma)[0])


def noisy_contrasts(
    rows: Rows, thetas: FloatArray, *, level: float, sigma: float, noise: Noise
) -> FloatArray:
    r"""Release :math:`\sum_i \min(r_{ik}^2, C^2)` for several models k, less their mean.

    The columns of ``thetas``, and the ``level`` C, are public or already released; ``sigma`` is in
    units of the sensitivity. The event is that of `noisy_score_sum`.

    Paper: beyond it; docs/proofs/scores.md.
    Sensitive inputs: rows.
    """
    level, sigma = check_real("level", level, above=0.0), check_real("sigma", sigma, above=0.0)
    fits = thetas.ndim == 2 and thetas.shape[0] == rows.d and thetas.shape[1] > 1
    if not fits or not np.abs(thetas).max() <= 1e100:
        raise value_error("thetas", f"be at most 1e100 and have {rows.d} rows", thetas)
    sums_hat = rows.contrasts(thetas, level)
    sensitivity = contrast_sensitivity(level, thetas.shape[1])
    return noise.gaussian(sums_hat, sensitivity=sensitivity, ratio=sigma)


def noisy_quantile_sum(
    rows: Rows,
    theta: FloatArray,
    *,
    kind: str,
    quantile: float,
    level: float,
    sigma: float,
    noise: Noise,
) -> float:
    r"""Release how many targets are "below" predictions, or the sum of "pinball" losses.

    The loss is :math:`\rho_q(r) = \max(q r, (q-1) r)` of residuals clipped to ``level``. All
    arguments but the rows are public or already released; ``sigma`` is in units of the sensitivity.

    Paper: beyond it; docs/proofs/scores.md.
    Sensitive inputs: rows.
    """
    check_choice("kind", kind, ("below", "pinball"))
    level, sigma = check_real("level", level, above=0.0), check_real("sigma", sigma, above=0.0)
    check_probability("quantile", quantile)
    _check_coefficients("theta", theta, (rows.d,))
    below_hat, losses_hat = rows.quantile_sums(theta, quantile, level)
    if kind == "below":
        sum_hat, sensitivity = below_hat, count_sensitivity()
    else:
        sum_hat, sensitivity = losses_hat, pinball_sensitivity(level, quantile)
    return float(noise.gaussian(np.array([sum_hat]), sensitivity=sensitivity, ratio=sigma)[0])


def noisy_label_counts(
    rows: Rows,
    theta: FloatArray,
    *,
    edges: FloatArray,
    sigma: float,
    noise: Noise,
    labelled: bool = True,
) -> FloatArray:
    r"""Release how many log-odds :math:`x^\top\theta` lie between edges, for each of two labels.

    The first row is that of targets below 0; without ``labelled`` there is one row for both. All
    arguments but the rows are public or already released; ``sigma`` is the standard deviation.

    Paper: beyond it; docs/proofs/scores.md.
    Sensitive inputs: rows.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    _check_coefficients("theta", theta, (rows.d,))
    if edges.ndim != 1 or not len(edges) or not np.all(np.diff(edges) > 0.0):
        raise value_error("edges", "be an array of rising numbers", edges)
    counts_hat = rows.label_counts(theta, edges)
    if not labelled:
        counts_hat = counts_hat.sum(axis=0, keepdims=True)
    return noise.gaussian(counts_hat, sensitivity=count_sensitivity(), ratio=sigma)


def noisy_class_hits(
    targets: Sequence[Rows], thetas: FloatArray, *, sigma: float, noise: Noise
) -> FloatArray:
    r"""Release how many records have another class than the likeliest, and how many have that.

    ``targets`` are the same rows with a target for each class, positive for rows of it; the columns
    of ``thetas`` are log-odds of the classes, and ``sigma`` is the standard deviation.

    Paper: beyond it; docs/proofs/scores.md.
    Sensitive inputs: targets.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    _check_coefficients("thetas", thetas, (targets[0].d, len(targets)))
    counts_hat = sum(rows.class_hits(thetas, own) for own, rows in enumerate(targets))
    counts = np.asarray(counts_hat, dtype=np.float64)
    return noise.gaussian(counts, sensitivity=count_sensitivity(), ratio=sigma)


def noisy_log_loss(
    targets: Sequence[Rows], thetas: FloatArray, *, level: float, sigma: float, noise: Noise
) -> float:
    r"""Release :math:`\sum_i \min(-\log p_i, C)`, :math:`p_i` the probability of the label of i.

    One member of ``targets`` has two labels, by sign; several are as for `noisy_class_hits`. The
    ``level`` C is public, and ``sigma`` is in units of the sensitivity.

    Paper: beyond it; docs/proofs/scores.md.
    Sensitive inputs: targets.
    """
    level, sigma = check_real("level", level, above=0.0), check_real("sigma", sigma, above=0.0)
    _check_coefficients("thetas", thetas, (targets[0].d, len(targets)))
    sum_hat = sum(rows.log_losses(thetas, own, level) for own, rows in enumerate(targets))
    sensitivity = log_loss_sensitivity(level)
    return float(noise.gaussian(np.array([sum_hat]), sensitivity=sensitivity, ratio=sigma)[0])


def _check_coefficients(name: str, theta: FloatArray, shape: tuple[int, ...]) -> None:
    """Refuse coefficients of another shape, or so large that residuals of some data overflow."""
    if theta.shape != shape or not np.abs(theta).max() <= 1e100:
        raise value_error(name, f"be at most 1e100 and have shape {shape}", theta)
