r"""Sums of residuals, and counts of labels, that scores are made of (docs/proofs/scores.md)."""

from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.releases.checks import (
    coefficients,
    models,
    not_negative,
    positive,
    probability,
    rising,
    several_models,
)
from fastmix.releases.release import Gaussian, number
from fastmix.releases.sensitivity import (
    absolute_sensitivity,
    contrast_sensitivity,
    count_sensitivity,
    log_loss_sensitivity,
    pinball_sensitivity,
    score_sensitivity,
)

_PROOF = "docs/proofs/scores.md"


def _sums(rows: Rows, theta: FloatArray, level: float, **base: Any) -> FloatArray:
    """Return the three sums of `Rows.score_sums`; by default without a baseline."""
    given: dict[str, Any] = {"base": np.zeros(rows.d), "base_level": 1.0, "weight": 0.0, **base}
    return rows.score_sums(theta, given.pop("base"), level=level, **given)


#: :math:`\sum \min(r^2, C^2) - w \min(u^2, D^2)` for residuals r of ``theta`` and u of ``base``; C
#: is ``level``, D ``base_level``, w ``weight``.
SQUARES_ABOVE_BASE = Gaussian(
    name="squares above a baseline",
    statement="squared residuals less those of a baseline, clipped at public levels",
    proof=_PROOF,
    statistic=lambda rows, **given: _sums(rows, **given)[0][None],
    sensitivity=lambda public, level, base_level, weight, **given: score_sensitivity(
        level, base_level, weight
    ),
    given={
        "theta": coefficients,
        "base": coefficients,
        "level": positive,
        "base_level": positive,
        "weight": not_negative,
    },
    finish=number,
)

#: :math:`\sum \min(r^2, C^2)`.
SQUARED_RESIDUALS = Gaussian(
    name="squared residuals",
    statement="the sum of squared residuals, clipped at a public level",
    proof=_PROOF,
    statistic=lambda rows, **given: _sums(rows, **given)[1][None],
    sensitivity=lambda public, theta, level: score_sensitivity(level, 1.0, 0.0),
    given={"theta": coefficients, "level": positive},
    finish=number,
)

#: :math:`\sum \min(|r|, C)`.
ABSOLUTE_RESIDUALS = Gaussian(
    name="absolute residuals",
    statement="the sum of absolute residuals, clipped at a public level",
    proof=_PROOF,
    statistic=lambda rows, **given: _sums(rows, **given)[2][None],
    sensitivity=lambda public, theta, level: absolute_sensitivity(level),
    given={"theta": coefficients, "level": positive},
    finish=number,
)

#: :math:`\sum_i \min(r_{ik}^2, C^2)` for several models k, the columns of ``thetas``, less their
#: mean.
CONTRASTS = Gaussian(
    name="contrasts",
    statement="squared residuals of several models, less their mean",
    proof=_PROOF,
    statistic=lambda rows, thetas, level: rows.contrasts(thetas, level),
    sensitivity=lambda public, thetas, level: contrast_sensitivity(level, thetas.shape[1]),
    given={"thetas": several_models, "level": positive},
)

#: How many targets are at or below predictions.
BELOW = Gaussian(
    name="below",
    statement="how many targets are at or below predictions",
    proof=_PROOF,
    statistic=lambda rows, theta: rows.quantile_sums(theta, 0.5, 1.0)[:1],
    sensitivity=lambda public, theta: count_sensitivity(),
    given={"theta": coefficients},
    finish=number,
)

#: The sum of :math:`\rho_q(r) = \max(q r, (q-1) r)` of residuals clipped to ``level``.
PINBALL = Gaussian(
    name="pinball losses",
    statement="the sum of pinball losses, residuals clipped at a public level",
    proof=_PROOF,
    statistic=lambda rows, theta, quantile, level: rows.quantile_sums(theta, quantile, level)[1:],
    sensitivity=lambda public, theta, quantile, level: pinball_sensitivity(level, quantile),
    given={"theta": coefficients, "quantile": probability, "level": positive},
    finish=number,
)

#: How many log-odds :math:`x^\top\theta` lie between ``edges``, for each of two labels; the first
#: row is that of targets below 0.
LABEL_COUNTS = Gaussian(
    name="label counts",
    statement="log-odds of each of two labels, counted in bins",
    proof=_PROOF,
    statistic=lambda rows, theta, edges: rows.label_counts(theta, edges),
    sensitivity=lambda public, **given: count_sensitivity(),
    given={"theta": coefficients, "edges": rising},
)

#: How many log-odds lie between ``edges``, whatever the label.
ODDS_COUNTS = Gaussian(
    name="counts of log-odds",
    statement="log-odds, counted in bins",
    proof=_PROOF,
    statistic=lambda rows, theta, edges: rows.label_counts(theta, edges).sum(axis=0),
    sensitivity=lambda public, **given: count_sensitivity(),
    given={"theta": coefficients, "edges": rising},
)


def _class_hits(targets: tuple[Rows, ...], thetas: FloatArray) -> FloatArray:
    """Return how many records have another class than the likeliest, and how many have that."""
    counts_hat = sum(rows.class_hits(thetas, own) for own, rows in enumerate(targets))
    return np.asarray(counts_hat, dtype=np.float64)


def _log_loss(targets: tuple[Rows, ...], thetas: FloatArray, level: float) -> FloatArray:
    r"""Return :math:`\sum_i \min(-\log p_i, C)`, :math:`p_i` the probability of the label of i."""
    return np.array([sum(rows.log_losses(thetas, own, level) for own, rows in enumerate(targets))])


#: How many predicted classes are wrong, and how many are right.
#:
#: It takes a tuple of rows: the same records with a target for each class, positive for records of
#: it. The columns of ``thetas`` are log-odds of the classes.
CLASS_HITS = Gaussian(
    name="class hits",
    statement="how many predicted classes are wrong, and how many are right",
    proof=_PROOF,
    statistic=_class_hits,
    sensitivity=lambda public, thetas: count_sensitivity(),
    given={"thetas": models},
)

#: The sum of log-losses, clipped at ``level``; a tuple of one has two labels, by sign.
LOG_LOSS = Gaussian(
    name="log-loss",
    statement="the sum of log-losses, clipped at a public level",
    proof=_PROOF,
    statistic=_log_loss,
    sensitivity=lambda public, thetas, level: log_loss_sensitivity(level),
    given={"thetas": models, "level": positive},
    finish=number,
)
