r"""Private scores of released coefficients: R^2, mean squared and mean absolute error; quantiles.

Predictions are clipped to the public bounds of the target, so squared residuals are at most the
squared range. Their sums are released in layers, and so are those of the target around its mean,
which R^2 needs; `layers` makes values and limits of them (docs/proofs/scores.md).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_choice, type_error, value_error
from fastmix.accounting import GaussianEvent
from fastmix.data import Rows
from fastmix.engine.layers import (
    Count,
    Layered,
    Limits,
    explained,
    layer_edges,
    layered_mean,
    normal,
)
from fastmix.releases import (
    ABSOLUTE_LAYERS,
    BELOW,
    PINBALL_LAYERS,
    SQUARE_LAYERS,
    TARGET_MEAN,
    Gaussian,
    Noise,
)
from fastmix.releases.counts import RESIDUAL_EDGES

METRICS = ("r2", "mse", "mae")
#: What a share of the budget of a fit pays for.
SCORED = ("r2",)
#: Shares of what R^2 costs: the mean of the target, and its squares around the mean.
MEAN_SHARE, WHOLE_SHARE = 0.04, 0.2
#: Targets and bounded predictions lie in [-1, 1]: the largest residual.
WIDEST = 2.0
#: Share of the residuals that are usual.
MOST = 0.9
#: Of the probability that an interval fails: that the released number of records is too far off.
COUNT_SHARE = 0.1


class Bin(NamedTuple):
    """Rows of similar predicted probability: that, the share that has the label, and its error."""

    predicted: float
    observed: float
    std: float
    #: Share of all rows.
    weight: float


class Score(NamedTuple):
    """A private score, its standard error by noise, and where its terms are cut off, if they are.

    The value leaves out what terms have beyond ``clip``, because noise hides it; the interval does
    not.
    """

    value: float
    std: float
    clip: float | None = None
    #: Predicted and observed probabilities, which come with the area under the curve.
    bins: tuple[Bin, ...] = ()
    #: Accuracy of always predicting the more frequent of two labels, from the same counts.
    baseline: float | None = None
    #: Limits of a mean, or of the three means that make R^2; none where only noise counts.
    limits: tuple[Limits, ...] = ()
    #: What the score can be off beside noise, such as by the order of rows in the same bin.
    hidden: float = 0.0
    #: The released number that sums were divided by; none where the number is public.
    counts: tuple[Count, ...] = ()

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return an interval for the score of the same rows without privacy."""
        off = 0.0
        if self.counts:
            off = self.counts[0].off(COUNT_SHARE * (1.0 - level))
            level = 1.0 - (1.0 - COUNT_SHARE) * (1.0 - level)
        tail = 0.5 * (1.0 - level)
        if len(self.limits) == 3:
            low, high = explained(*self.limits, level, off)
        else:
            if self.limits:
                low, high = self.limits[0].lowest(tail), self.limits[0].highest(tail)
            else:
                reach = normal(tail) * self.std + self.hidden
                low, high = self.value - reach, self.value + reach
            low, high = low / (1.0 + off), high / (1.0 - off) if off < 1.0 else math.inf
        return min(low, self.value), max(high, self.value)


class Scoring(ABC):
    """Which scores the models of a family have, and how they are released."""

    #: All scores, in their usual order, and those that a share of the budget of a fit pays for.
    metrics: ClassVar[tuple[str, ...]]
    scored: ClassVar[tuple[str, ...]]
    #: Scores in units of the target, to this power, and those whose clipping level is.
    powers: ClassVar[dict[str, int]] = {}
    clipped: ClassVar[tuple[str, ...]] = ()
    #: Scores that are sums over the number of records; others are ratios of released sums.
    means: ClassVar[tuple[str, ...]] = ()
    #: The releases by the names of their noise.
    releases: ClassVar[dict[str, Gaussian]]

    def checked(self, metrics: object) -> tuple[str, ...]:
        """Return the names of metrics, in their usual order; None means all."""
        if metrics is None:
            return self.metrics
        if isinstance(metrics, str):
            metrics = (metrics,)
        if not isinstance(metrics, Iterable):
            raise type_error("metrics", "be names of metrics", metrics)
        names = [check_choice("metrics", name, self.metrics) for name in metrics]
        if not names:
            raise value_error("metrics", "name at least one metric", names)
        return tuple(name for name in self.metrics if name in names)

    @abstractmethod
    def sigmas(self, metrics: Sequence[str], sigma: float) -> dict[str, float]:
        """Return the noise of every release, for scores that cost one release of ``sigma``."""

    def events(self, metrics: Sequence[str], sigma: float) -> list[GaussianEvent]:
        """Return the events of `release`."""
        sigmas = self.sigmas(metrics, sigma)
        return [self.releases[name].event(each) for name, each in sigmas.items()]

    @abstractmethod
    def release(
        self, rows: Any, theta: FloatArray, metrics: Sequence[str], sigma: float, noise: Noise
    ) -> dict[str, Score]:
        """Release scores of coefficients, in scaled units."""

    def counted(self, scores: dict[str, Score], count: Count | None) -> dict[str, Score]:
        """Return scores whose intervals allow for the noise of a released number of records."""
        if count is None:
            return scores
        return {
            name: each._replace(counts=(count,)) if name in self.means else each
            for name, each in scores.items()
        }

    def in_units(self, scores: dict[str, Score], scale: float) -> dict[str, Score]:
        """Return scores in the units of the target."""
        made = {}
        for name, each in scores.items():
            factor, clip = scale ** self.powers.get(name, 0), each.clip
            known = clip if clip is None or name not in self.clipped else scale * clip
            limits = tuple(one.times(factor) for one in each.limits)
            value, std = factor * each.value, factor * each.std
            made[name] = each._replace(value=value, std=std, clip=known, limits=limits)
        return made


class ResidualScores(Scoring):
    """R^2, mean squared and mean absolute error."""

    metrics = METRICS
    scored = SCORED
    powers: ClassVar[dict[str, int]] = {"mse": 2, "mae": 1}
    clipped = METRICS
    means = METRICS
    releases: ClassVar = {
        "mean": TARGET_MEAN,
        "whole": SQUARE_LAYERS,
        "squares": SQUARE_LAYERS,
        "mae": ABSOLUTE_LAYERS,
    }

    def sigmas(self, metrics: Sequence[str], sigma: float) -> dict[str, float]:
        """Return the noise of every release."""
        first = {"mean": MEAN_SHARE, "whole": WHOLE_SHARE} if "r2" in metrics else {}
        names = ["squares"] if "r2" in metrics or "mse" in metrics else []
        return shared(first, [*names, *({"mae"} & set(metrics))], sigma)

    def release(
        self, rows: Any, theta: FloatArray, metrics: Sequence[str], sigma: float, noise: Noise
    ) -> dict[str, Score]:
        """Release scores of coefficients, in scaled units."""
        sigmas, found = self.sigmas(metrics, sigma), {}
        if "squares" in sigmas:
            squares = _mean(rows, theta, SQUARE_LAYERS, WIDEST**2, sigmas["squares"], noise)
            size = None if squares.cut is None else math.sqrt(squares.cut)
            found["mse"] = _score(squares)._replace(clip=size)
            if "r2" in metrics:
                found["r2"] = _r2(rows, squares, sigmas, noise)._replace(clip=size)
        if "mae" in metrics:
            found["mae"] = _score(_mean(rows, theta, ABSOLUTE_LAYERS, WIDEST, sigmas["mae"], noise))
        return {name: found[name] for name in metrics}


@dataclass(frozen=True)
class QuantileScores(Scoring):
    """The share of targets at or below predictions, and the mean pinball loss."""

    quantile: float

    metrics = ("below", "pinball")
    scored = ("below",)
    powers: ClassVar[dict[str, int]] = {"pinball": 1}
    clipped = ("pinball",)
    means = ("below", "pinball")
    releases: ClassVar = {"below": BELOW, "pinball": PINBALL_LAYERS}

    def sigmas(self, metrics: Sequence[str], sigma: float) -> dict[str, float]:
        """Return the noise of every release."""
        return shared({}, metrics, sigma)

    def release(
        self, rows: Any, theta: FloatArray, metrics: Sequence[str], sigma: float, noise: Noise
    ) -> dict[str, Score]:
        """Release scores of coefficients, in scaled units."""
        sigmas, n, found, q = self.sigmas(metrics, sigma), rows.n, {}, self.quantile
        if "below" in metrics:
            count = noise.release(BELOW, rows, theta=theta, sigma=sigmas["below"])
            found["below"] = Score(min(max(count / n, 0.0), 1.0), sigmas["below"] / n)
        if "pinball" in metrics:
            top = WIDEST * max(q, 1.0 - q)
            made = _mean(rows, theta, PINBALL_LAYERS, top, sigmas["pinball"], noise, quantile=q)
            found["pinball"] = _score(made)
        return found


def checked_metrics(metrics: object) -> tuple[str, ...]:
    """Return the names of metrics of residuals, in their usual order."""
    return ResidualScores().checked(metrics)


def shared(first: dict[str, float], names: Sequence[str], sigma: float) -> dict[str, float]:
    """Return the noise of releases of some shares, and of others that share the rest equally."""
    rest = (1.0 - sum(first.values())) / len(names)
    shares = {**first, **dict.fromkeys(names, rest)}
    return {name: sigma / math.sqrt(share) for name, share in shares.items()}


def _mean(
    rows: Rows,
    theta: FloatArray,
    release: Gaussian,
    top: float,
    sigma: float,
    noise: Noise,
    **given: Any,
) -> Layered:
    """Release a sum of terms up to a public top, in layers, and return their mean."""
    edges = layer_edges(top)
    sums, stds = noise.release(release, rows, theta=theta, edges=edges, sigma=sigma, **given)
    return layered_mean(sums, stds, edges, rows.n)


def _score(mean: Layered) -> Score:
    """Return the score that is a mean of terms."""
    return Score(mean.value, mean.std, mean.cut, limits=(mean.limits,))


def _r2(rows: Rows, squares: Layered, sigmas: dict[str, float], noise: Noise) -> Score:
    """Release what R^2 needs beside squared residuals: the mean of the target and its spread."""
    mean, error = noise.release(TARGET_MEAN, rows, sigma=sigmas["mean"]), sigmas["mean"] / rows.n
    base, apart = np.zeros(rows.d), abs(mean)
    if rows.constant:  # an absent record has no constant either: its residual is 0
        base[-1], apart = mean / rows.constant, 0.0
    top = (1.0 + abs(mean) - apart) ** 2
    whole = _mean(rows, base, SQUARE_LAYERS, top, sigmas["whole"], noise)
    limits = squares.limits, whole.limits, Limits(apart, error, apart, error)
    variance = max(whole.value - apart**2 - (error**2 if apart == 0.0 else 0.0), whole.std)
    low, high = explained(*limits, 0.95)
    ratio = squares.value / variance
    std = math.hypot(squares.std, ratio * whole.std) / variance
    return Score(min(max(1.0 - ratio, low), high), std, limits=limits)


def most_below(counts: FloatArray, n: int) -> float:
    """Return the size that most residuals are below, from noisy counts."""
    edges = WIDEST * RESIDUAL_EDGES
    above = np.append(np.cumsum(counts[::-1])[::-1], 0.0)
    reached = np.flatnonzero(above > (1.0 - MOST) * n)
    if not len(reached):
        return float(edges[0])
    at = int(reached[-1])
    step = (above[at] - (1.0 - MOST) * n) / max(above[at] - above[at + 1], 1e-300)
    return float(edges[at] + min(step, 1.0) * (edges[min(at + 1, len(edges) - 1)] - edges[at]))
