r"""Private scores of classifiers: accuracy, log-loss, area under the curve, and calibration.

Two labels: a small share pays for counts of log-odds, whatever the label, over all that the
coefficients allow. They make bins of about equal counts, and the counts of both labels in these
give accuracy, area and calibration (docs/proofs/scores.md). The log-loss is a sum of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.engine.layers import layer_edges, layered_mean
from fastmix.engine.scores import Bin, Score, Scoring, shared
from fastmix.releases import CLASS_HITS, LABEL_COUNTS, LOSS_LAYERS, ODDS_COUNTS, Gaussian, Noise

#: Share of what scores cost for the first counts of log-odds.
FIRST_SHARE = 0.1
#: Bins of log-odds: of the first counts, and of those of both labels, in units of the root of the
#: rows per noise.
FINE, BINS, FEWEST_BINS, MOST_BINS = 128, 1.0, 16, 120
#: First counts below this many standard deviations of their noise count as none.
EVIDENT = 2.0
#: In the log-loss, probabilities of the label below this count as this.
LEAST_PROBABILITY = 1e-4
#: What the order within bins adds to the area, in units of the share of pairs in the same bin.
WITHIN = 1.0 / 32.0
#: Points of the calibration: each has so large a share of the rows, and so many rows in units of
#: the noise.
POINT, CERTAIN = 0.09, 10.0


@dataclass(frozen=True)
class ClassScores(Scoring):
    """Scores of two or more classes; the area under the curve, and calibration, of two."""

    n_classes: int = 2

    means = ("log_loss",)

    @property
    def releases(self) -> dict[str, Gaussian]:  # type: ignore[override]
        """The releases by the names of their noise."""
        counts = LABEL_COUNTS if self.n_classes == 2 else CLASS_HITS
        return {"first": ODDS_COUNTS, "counts": counts, "log_loss": LOSS_LAYERS}

    @property
    def metrics(self) -> tuple[str, ...]:  # type: ignore[override]
        """All scores, in their usual order."""
        both = ("accuracy", "log_loss")
        return (*both, "auc") if self.n_classes == 2 else both

    @property
    def scored(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a share of the budget of a fit pays for."""
        return ("accuracy", "auc") if self.n_classes == 2 else ("accuracy",)

    def sigmas(self, metrics: Sequence[str], sigma: float) -> dict[str, float]:
        """Return the noise of every release."""
        names = [name for name in ("counts", "log_loss") if name in _needed(metrics)]
        return shared({"first": FIRST_SHARE} if "auc" in metrics else {}, names, sigma)

    def release(
        self, rows: Any, theta: FloatArray, metrics: Sequence[str], sigma: float, noise: Noise
    ) -> dict[str, Score]:
        """Release scores of coefficients, those of one class after the other."""
        sigmas, found = self.sigmas(metrics, sigma), {}
        targets: tuple[Rows, ...] = getattr(rows, "targets", (rows,))
        thetas = np.ascontiguousarray(theta.reshape(len(targets), -1).T)
        if "auc" in metrics:
            found = _by_label(rows, theta, sigmas["first"], sigmas["counts"], noise)
        elif "accuracy" in metrics and len(targets) == 1:
            given: dict[str, Any] = {"edges": np.zeros(1), "sigma": sigmas["counts"]}
            counts = noise.release(LABEL_COUNTS, rows, theta=theta, **given)
            found["accuracy"] = _accuracy(counts, given["edges"], sigmas["counts"])
        elif "accuracy" in metrics:
            wrong, right = noise.release(CLASS_HITS, targets, thetas=thetas, sigma=sigmas["counts"])
            found["accuracy"] = _share(float(right), float(wrong), sigmas["counts"], 1)
        if "log_loss" in metrics:
            edges = layer_edges(-math.log(LEAST_PROBABILITY))
            given = {"thetas": thetas, "edges": edges, "sigma": sigmas["log_loss"]}
            sums, stds = noise.release(LOSS_LAYERS, targets, **given)
            made = layered_mean(sums, stds, edges, rows.n)
            found["log_loss"] = Score(made.value, made.std, made.cut, limits=(made.limits,))
        return {name: found[name] for name in metrics}


def _needed(metrics: Sequence[str]) -> set[str]:
    """Return the releases beside the first counts that metrics need."""
    return {"log_loss" if name == "log_loss" else "counts" for name in metrics}


def _by_label(
    rows: Rows, theta: FloatArray, first_sigma: float, sigma: float, noise: Noise
) -> dict[str, Score]:
    """Release the counts of both labels, and read accuracy, area and calibration off them."""
    fine = _whole_range(rows, theta)
    first = noise.release(ODDS_COUNTS, rows, theta=theta, edges=fine, sigma=first_sigma)
    first = np.where(first > EVIDENT * first_sigma, first, 0.0)
    if not first.any():
        first = np.ones(len(first))
    count = min(max(int(BINS * math.sqrt(rows.n / sigma)), FEWEST_BINS), MOST_BINS)
    edges = equal_bins(first, fine, count)
    counts = noise.release(LABEL_COUNTS, rows, theta=theta, edges=edges, sigma=sigma)
    area = _area(counts, sigma)
    return {
        "accuracy": _accuracy(counts, edges, sigma),
        "auc": area._replace(bins=_calibration(counts, edges, first, fine, sigma)),
    }


def _whole_range(rows: Rows, theta: FloatArray) -> FloatArray:
    """Return edges over all log-odds that rows can have: around that of the constant column."""
    middle, rest = 0.0, theta
    if rows.constant:
        middle, rest = rows.constant * float(theta[-1]), theta[:-1]
    reach = math.sqrt(max(rows.bound**2 - rows.constant**2, 0.0)) * float(np.linalg.norm(rest))
    reach = max(reach, 1e-9 * max(1.0, abs(middle)))
    return np.linspace(middle - reach, middle + reach, FINE - 1)


def equal_bins(counts: FloatArray, edges: FloatArray, bins: int) -> FloatArray:
    """Return edges of bins of about equal counts, and 0, where the prediction changes."""
    step = edges[1] - edges[0]
    ends = np.concatenate(([edges[0] - step], edges, [edges[-1] + step]))
    below = np.concatenate(([0.0], np.cumsum(counts))) / counts.sum()
    made = np.interp(np.arange(1, bins) / bins, below, ends)
    return np.unique(np.append(made, 0.0))


def _share(part: float, rest: float, sigma: float, cells: int) -> Score:
    """Return the share of a part, both of so many noisy counts; between 0 and 1."""
    total = max(part + rest, sigma * math.sqrt(2.0 * cells))
    value = min(max(part / total, 0.0), 1.0)
    return Score(value, sigma * math.sqrt(cells) * math.hypot(value, 1.0 - value) / total)


def _accuracy(counts: FloatArray, edges: FloatArray, sigma: float) -> Score:
    """Return the share of rows whose log-odds have the sign of the label, and of one label."""
    up = np.append(-np.inf, edges) >= 0.0
    right = counts[1, up].sum() + counts[0, ~up].sum()
    rarer, other = sorted(map(float, counts.sum(axis=1)))
    always = _share(other, rarer, sigma, len(up)).value
    found = _share(float(right), float(counts.sum() - right), sigma, len(up))
    return found._replace(baseline=always)


def _area(counts: FloatArray, sigma: float) -> Score:
    """Return the area under the curve; of pairs in the same bin a bit more than half is right.

    The interval holds whatever the order in bins: none of these pairs, or all.
    """
    least = sigma * math.sqrt(counts.shape[1])
    totals = np.maximum(counts.sum(axis=1), least)
    low, high = counts / totals[:, None]
    below = np.cumsum(low) - 0.5 * low  # of the other label, at each bin
    above = np.cumsum(high[::-1])[::-1] - 0.5 * high
    value = min(max(float(high @ below), 0.0), 1.0)
    slopes = np.concatenate(((below - value) / totals[1], (above - value) / totals[0]))
    same = float(low @ high)  # share of pairs in the same bin, and its error by noise
    slopes_same = np.concatenate(((high - same) / totals[0], (low - same) / totals[1]))
    error = sigma * float(np.linalg.norm(slopes_same))
    return Score(
        min(value + WITHIN * max(same, 0.0), 1.0),
        sigma * float(np.linalg.norm(slopes)),
        hidden=(0.5 + WITHIN) * (max(same, 0.0) + 2.0 * error),
    )


def _calibration(
    counts: FloatArray, edges: FloatArray, first: FloatArray, fine: FloatArray, sigma: float
) -> tuple[Bin, ...]:
    """Return predicted and observed shares of the second label, of neighbouring bins together."""
    step = fine[1] - fine[0]
    middles = np.append(fine[0] - step, fine) + 0.5 * step
    at = np.searchsorted(edges, middles, side="right")
    weights = np.bincount(at, first, len(edges) + 1)
    sums = np.bincount(at, first * expit(middles), len(edges) + 1)
    # A bin narrower than the first ones has none of them: the middle of its edges stands for it.
    inner = np.concatenate((edges[:1], 0.5 * (edges[1:] + edges[:-1]), edges[-1:]))
    likely = np.where(weights > 0.0, sums / np.maximum(weights, 1e-300), expit(inner))
    total = max(float(counts.sum()), sigma)
    found = []
    for start, stop in _together(counts.sum(axis=0), total, sigma):
        part = counts[:, start:stop]
        share = _share(float(part[1].sum()), float(part[0].sum()), sigma, stop - start)
        own = np.maximum(part.sum(axis=0), 0.0)
        predicted = float(own @ likely[start:stop] / own.sum())
        found.append(Bin(predicted, share.value, share.std, float(part.sum()) / total))
    return tuple(found)


def _together(counts: FloatArray, total: float, sigma: float) -> list[tuple[int, int]]:
    """Return neighbouring bins that are large enough together; what is left joins the last."""
    ends = [0]
    for stop in range(1, len(counts) + 1):
        cells = stop - ends[-1]
        least = max(POINT * total, CERTAIN * sigma * math.sqrt(cells))
        if float(counts[ends[-1] : stop].sum()) >= least:
            ends.append(stop)
    if len(ends) > 1:
        ends[-1] = len(counts)
    return list(pairwise(ends))
