r"""Sums of losses in layers, and counts of labels, for scores (docs/proofs/scores.md)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.data.scores import layer_weights
from fastmix.releases.checks import (
    Check,
    coefficients,
    layered,
    models,
    positive,
    probability,
    rising,
    several_models,
)
from fastmix.releases.release import Gaussian, Public, number
from fastmix.releases.rounding import counted, summed
from fastmix.releases.sensitivity import (
    contrast_sensitivity,
    count_sensitivity,
    layer_sensitivity,
)

_PROOF = "docs/proofs/scores.md"

_layer_scale = summed(lambda public, **given: layer_sensitivity())


def in_layers(
    value: FloatArray, public: Public, edges: FloatArray, sigma: float, **given: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the sum of terms within each layer, and the standard deviations of its noise.

    The sum over all layers is that of the terms.
    """
    units = np.diff(edges, prepend=0.0) / layer_weights(edges)
    return value * units, sigma * _layer_scale(public) * units


def _pinball(r: FloatArray, quantile: float) -> FloatArray:
    return np.maximum(quantile * r, (quantile - 1.0) * r)


def _residual_layers(name: str, term: Callable[..., FloatArray], **checks: Check) -> Gaussian:
    """Return the release of terms of residuals of bounded predictions, in layers.

    Layers lie between 0 and ``edges``; ``checks`` are of other values that the term takes.
    """
    return Gaussian(
        name=name,
        statement=f"the sum of {name} of bounded predictions, in layers",
        proof=_PROOF,
        statistic=lambda rows, theta, edges, **rest: rows.residual_layers(
            theta, partial(term, **rest), edges
        ),
        sensitivity=_layer_scale,
        given={"theta": coefficients, **checks, "edges": layered},
        finish=in_layers,
    )


SQUARE_LAYERS = _residual_layers("squared residuals", np.square)
ABSOLUTE_LAYERS = _residual_layers("absolute residuals", np.abs)
#: Pinball losses :math:`\rho_q(r) = \max(q r, (q-1) r)`.
PINBALL_LAYERS = _residual_layers("pinball losses", _pinball, quantile=probability)

#: :math:`\sum_i \min(r_{ik}^2, C^2)` for several models k, the columns of ``thetas``, less their
#: mean.
CONTRASTS = Gaussian(
    name="contrasts",
    statement="squared residuals of several models, less their mean",
    proof=_PROOF,
    statistic=lambda rows, thetas, level: rows.contrasts(thetas, level),
    sensitivity=summed(
        lambda public, thetas, level: contrast_sensitivity(level, thetas.shape[1]), sums=2.0
    ),
    given={"thetas": several_models, "level": positive},
)

#: How many targets are at or below bounded predictions.
BELOW = Gaussian(
    name="below",
    statement="how many targets are at or below predictions",
    proof=_PROOF,
    statistic=lambda rows, theta: rows.below(theta),
    sensitivity=counted(lambda public, theta: count_sensitivity()),
    given={"theta": coefficients},
    finish=number,
)

#: How many log-odds :math:`x^\top\theta` lie between ``edges``, for each of two labels; the first
#: row is that of targets below 0.
LABEL_COUNTS = Gaussian(
    name="label counts",
    statement="log-odds of each of two labels, counted in bins",
    proof=_PROOF,
    statistic=lambda rows, theta, edges: rows.label_counts(theta, edges),
    sensitivity=counted(lambda public, **given: count_sensitivity()),
    given={"theta": coefficients, "edges": rising},
)

#: How many log-odds lie between ``edges``, whatever the label.
ODDS_COUNTS = replace(
    LABEL_COUNTS,
    name="counts of log-odds",
    statement="log-odds, counted in bins",
    statistic=lambda rows, theta, edges: rows.label_counts(theta, edges).sum(axis=0),
)


def _class_hits(targets: tuple[Rows, ...], thetas: FloatArray) -> FloatArray:
    """Return how many records have another class than the likeliest, and how many have that."""
    counts_hat = sum(rows.class_hits(thetas, own) for own, rows in enumerate(targets))
    return np.asarray(counts_hat, dtype=np.float64)


def _losses(targets: tuple[Rows, ...], thetas: FloatArray, edges: FloatArray) -> FloatArray:
    r"""Return the layers of :math:`-\log p_i`, :math:`p_i` the probability of the label of i."""
    sums_hat = sum(rows.loss_layers(thetas, own, edges) for own, rows in enumerate(targets))
    return np.asarray(sums_hat, dtype=np.float64)


#: How many predicted classes are wrong, and how many are right.
#:
#: It takes a tuple of rows: the same records with a target for each class, positive for records of
#: it. The columns of ``thetas`` are log-odds of the classes.
CLASS_HITS = Gaussian(
    name="class hits",
    statement="how many predicted classes are wrong, and how many are right",
    proof=_PROOF,
    statistic=_class_hits,
    sensitivity=counted(lambda public, thetas: count_sensitivity()),
    given={"thetas": models},
)

#: Log-losses in layers; the last edge is the largest. A tuple of one has two labels, by sign.
LOSS_LAYERS = Gaussian(
    name="log-loss",
    statement="the sum of log-losses, at most a public number each, in layers",
    proof=_PROOF,
    statistic=_losses,
    sensitivity=_layer_scale,
    given={"thetas": models, "edges": layered},
    finish=in_layers,
)
