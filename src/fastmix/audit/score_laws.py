"""Laws of private scores.

As in `fastmix.audit.laws` the formulas are written from the proof page, docs/proofs/scores.md.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.audit.densities import Known, Parts
from fastmix.audit.transcript import Release


def score_sum_law(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of a sum of clipped residuals."""
    total = []
    for release in releases:
        given: dict[str, Any] = {"base_level": 1.0, "weight": 0.0}
        given["base"] = np.zeros(known.data.X.shape[1])
        given |= {name: each for name, each in release.arguments.items() if each is not None}
        level, weight, base_level = given["level"], given["weight"], given["base_level"]
        sizes = np.minimum(np.abs(known.data.y - known.data.X @ given["theta"]), level)
        others = np.minimum(np.abs(known.data.y - known.data.X @ given["base"]), base_level)
        if given["kind"] == "sizes":
            exact, scale = sizes.sum(), level
        else:
            weight = weight if given["kind"] == "difference" else 0.0
            exact = (sizes**2 - weight * others**2).sum()
            scale = max(level**2, weight * base_level**2)
        total.append(-0.5 * ((release.out - exact) / (scale * given["sigma"])) ** 2)
    return {"scores": np.array(total)}


def signed_counts_law(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of counts of residuals below 0 and above it (docs/proofs/adaptive.md)."""
    total = []
    for release in releases:
        given = release.arguments
        residuals = known.data.y - known.data.X @ given["theta"]
        ends = (*given["edges"][:-1], np.inf)
        counts = [
            [known.data.counts @ ((low < sizes) & (sizes <= high)) for low, high in pairwise(ends)]
            for sizes in (-residuals, residuals)
        ]
        total.append(-0.5 * (((release.out - np.array(counts)) / given["sigma"]) ** 2).sum())
    return {"residuals": np.array(total)}


def contrasts_law(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of sums of several models, less their mean."""
    total = []
    for release in releases:
        given = release.arguments
        sizes = np.abs(known.data.y[:, None] - known.data.X @ given["thetas"])
        squares = np.minimum(sizes, given["level"]) ** 2
        exact = (squares - squares.mean(axis=1)[:, None]).sum(axis=0)
        scale = given["level"] ** 2 * np.sqrt(len(exact)) / 2.0 * given["sigma"]
        total.append(-0.5 * (((release.out - exact) / scale) ** 2).sum())
    return {"contrasts": np.array(total)}


def quantile_sum_law(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of how many targets lie below predictions, or of their pinball losses."""
    total = []
    for release in releases:
        given = release.arguments
        q, level = given["quantile"], given["level"]
        residuals = known.data.y - known.data.X @ given["theta"]
        exact, scale = float((residuals <= 0.0).sum()), 1.0
        if given["kind"] == "pinball":
            clipped = np.clip(residuals, -level, level)
            exact = np.where(clipped > 0.0, q * clipped, (q - 1.0) * clipped).sum()
            scale = max(q, 1.0 - q) * level
        total.append(-0.5 * ((release.out - exact) / (scale * given["sigma"])) ** 2)
    return {"scores": np.array(total)}


def label_counts_law(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of counts of log-odds for each of two labels, the signs of the targets."""
    total = []
    for release in releases:
        given, data = release.arguments, known.data
        ends = np.concatenate(([-np.inf], given["edges"], [np.inf]))
        odds = data.X @ given["theta"]
        counts = np.array(
            [
                [((low <= odds) & (odds < high) & own).sum() for low, high in pairwise(ends)]
                for own in (data.y < 0.0, data.y > 0.0)
            ]
        )
        if not given.get("labelled", True):
            counts = counts.sum(axis=0, keepdims=True)
        total.append(-0.5 * (((release.out - counts) / given["sigma"]) ** 2).sum())
    return {"labels": np.array(total)}


def class_hits_law(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of wrong and right predictions; targets are numbers of classes from 1 on.

    An absent record has the target 0.
    """
    total = []
    for release in releases:
        given, data = release.arguments, known.data
        right = (data.X @ given["thetas"]).argmax(axis=1) + 1 == data.y
        counts = np.array([(~right & (data.y > 0)).sum(), (right & (data.y > 0)).sum()])
        total.append(-0.5 * (((release.out - counts) / given["sigma"]) ** 2).sum())
    return {"hits": np.array(total)}


def log_loss_law(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of a sum of log-losses; labels are signs, or numbers of classes from 1 on."""
    total = []
    for release in releases:
        given, data = release.arguments, known.data
        losses = -np.log(_probabilities(data.X @ given["thetas"], data.y))
        exact = np.minimum(losses, given["level"])[data.y != 0.0].sum()
        total.append(-0.5 * ((release.out - exact) / (given["level"] * given["sigma"])) ** 2)
    return {"log-loss": np.array(total)}


def _probabilities(odds: FloatArray, y: FloatArray) -> Any:
    """Return the predicted probability of each record's own label."""
    if odds.shape[1] == 1:
        return 1.0 / (1.0 + np.exp(-np.sign(y) * odds[:, 0]))
    each = 1.0 / (1.0 + np.exp(-odds))
    return each[np.arange(len(y)), np.maximum(y.astype(int), 1) - 1] / each.sum(axis=1)
