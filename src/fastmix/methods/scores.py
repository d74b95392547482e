r"""Private scores of released coefficients: R^2, mean squared and mean absolute error; quantiles.

A small share pays for counts of residuals, of the model and of the mean alone, which say where
to clip. The rest pays for the scores. R^2 is that of one sum,
:math:`\sum \min(r^2, C^2) - \rho_0 \min(u^2, D^2)`, with :math:`\rho_0` the first guess at the
ratio that R^2 needs; so noise in the denominator hardly matters (docs/proofs/scores.md).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from fastmix._types import FloatArray
from fastmix._validation import check_choice, type_error, value_error
from fastmix.accounting import GaussianEvent
from fastmix.data import Rows
from fastmix.releases import (
    ABSOLUTE_RESIDUALS,
    BELOW,
    PINBALL,
    RESIDUAL_COUNTS,
    SQUARED_RESIDUALS,
    SQUARES_ABOVE_BASE,
    TARGET_MEAN,
    Gaussian,
    Noise,
)
from fastmix.releases.counts import RESIDUAL_EDGES

METRICS = ("r2", "mse", "mae")
#: What a share of the budget of a fit pays for.
SCORED = ("r2",)
#: Shares of what a score costs: counts of residuals of the model; and for R^2 the mean, counts of
#: residuals of the mean, and their squares.
MODEL_SHARE, MEAN_SHARE, BASE_SHARE, TOTAL_SHARE = 0.10, 0.02, 0.07, 0.12
#: Residuals are counted up to this: targets lie in [-1, 1], and so do useful predictions.
WIDEST = 2.0
#: Residuals are clipped where noise has this standard deviation in R^2, or this share of an error;
#: but between these multiples of the size that most of them are below.
PRECISION, RELATIVE, REACH, MOST = 0.0044, 0.015, (1.8, 8.0), 0.9
#: Targets are clipped at this many times the distance from the mean that most of them are below, or
#: where counts beyond it, in standard deviations of their noise, are no longer evident.
WHOLE, EVIDENT = 2.2, 3.0


class Bin(NamedTuple):
    """Rows of similar predicted probability: that, the share that has the label, and its error."""

    predicted: float
    observed: float
    std: float
    #: Share of all rows.
    weight: float


class Score(NamedTuple):
    """A private score, its standard error by noise, and where its terms were clipped, if so."""

    value: float
    std: float
    clip: float | None = None
    #: Predicted and observed probabilities, which come with the area under the curve.
    bins: tuple[Bin, ...] = ()
    #: Accuracy of always predicting the more frequent of two labels, from the same counts.
    baseline: float | None = None

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return an interval for the score of the same rows, terms clipped, without privacy."""
        reach = float(ndtri(0.5 + level / 2.0)) * self.std
        return self.value - reach, self.value + reach


class Scoring(ABC):
    """Which scores the models of a family have, and how they are released."""

    #: All scores, in their usual order, and those that a share of the budget of a fit pays for.
    metrics: ClassVar[tuple[str, ...]]
    scored: ClassVar[tuple[str, ...]]
    #: Scores in units of the target, to this power, and those whose clipping level is.
    powers: ClassVar[dict[str, int]] = {}
    clipped: ClassVar[tuple[str, ...]] = ()
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

    def in_units(self, scores: dict[str, Score], scale: float) -> dict[str, Score]:
        """Return scores in the units of the target."""
        made = {}
        for name, each in scores.items():
            factor, clip = scale ** self.powers.get(name, 0), each.clip
            known = clip if clip is None or name not in self.clipped else scale * clip
            made[name] = each._replace(value=factor * each.value, std=factor * each.std, clip=known)
        return made


class ResidualScores(Scoring):
    """R^2, mean squared and mean absolute error."""

    metrics = METRICS
    scored = SCORED
    powers: ClassVar[dict[str, int]] = {"mse": 2, "mae": 1}
    clipped = METRICS
    releases: ClassVar = {
        "model": RESIDUAL_COUNTS,
        "mean": TARGET_MEAN,
        "base": RESIDUAL_COUNTS,
        "total": SQUARED_RESIDUALS,
        "r2": SQUARES_ABOVE_BASE,
        "mse": SQUARED_RESIDUALS,
        "mae": ABSOLUTE_RESIDUALS,
    }

    def sigmas(self, metrics: Sequence[str], sigma: float) -> dict[str, float]:
        """Return the noise of every release."""
        return score_sigmas(metrics, sigma)

    def release(
        self, rows: Any, theta: FloatArray, metrics: Sequence[str], sigma: float, noise: Noise
    ) -> dict[str, Score]:
        """Release scores of coefficients, in scaled units."""
        return private_scores(rows, theta, metrics, sigma, noise)


@dataclass(frozen=True)
class QuantileScores(Scoring):
    """The share of targets at or below predictions, and the mean pinball loss."""

    quantile: float

    metrics = ("below", "pinball")
    scored = ("below",)
    powers: ClassVar[dict[str, int]] = {"pinball": 1}
    clipped = ("pinball",)
    releases: ClassVar = {"model": RESIDUAL_COUNTS, "below": BELOW, "pinball": PINBALL}

    def sigmas(self, metrics: Sequence[str], sigma: float) -> dict[str, float]:
        """Return the noise of every release."""
        first = {"model": MODEL_SHARE} if "pinball" in metrics else {}
        return shared(first, metrics, sigma)

    def release(
        self, rows: Any, theta: FloatArray, metrics: Sequence[str], sigma: float, noise: Noise
    ) -> dict[str, Score]:
        """Release scores of coefficients, in scaled units."""
        sigmas, n, found, q = self.sigmas(metrics, sigma), rows.n, {}, self.quantile
        level = WIDEST
        if "pinball" in metrics:
            counts = noise.release(
                RESIDUAL_COUNTS, rows, theta=theta, clip=WIDEST, sigma=sigmas["model"]
            )
            usual = most_below(counts, n)
            level = _level(RELATIVE * n / sigmas["pinball"] * usual / 1.645, usual)
        for name in metrics:
            given: dict[str, Any] = {"theta": theta, "sigma": sigmas[name]}
            size, clip = 1.0, None
            if name == "pinball":
                size, clip = max(q, 1.0 - q) * level, level
                given |= {"quantile": q, "level": level}
            total = noise.release(self.releases[name], rows, **given)
            found[name] = Score(max(total / n, 0.0), sigmas[name] * size / n, clip)
        return found


def checked_metrics(metrics: object) -> tuple[str, ...]:
    """Return the names of metrics of residuals, in their usual order."""
    return ResidualScores().checked(metrics)


def shared(first: dict[str, float], names: Sequence[str], sigma: float) -> dict[str, float]:
    """Return the noise of releases of some shares, and of others that share the rest equally."""
    rest = (1.0 - sum(first.values())) / len(names)
    shares = {**first, **dict.fromkeys(names, rest)}
    return {name: sigma / math.sqrt(share) for name, share in shares.items()}


def score_sigmas(metrics: Sequence[str], sigma: float) -> dict[str, float]:
    """Return the noise of every release, for scores that cost one release of noise ``sigma``."""
    first = {"model": MODEL_SHARE}
    if "r2" in metrics:
        first |= {"mean": MEAN_SHARE, "base": BASE_SHARE, "total": TOTAL_SHARE}
    return shared(first, metrics, sigma)


def private_scores(
    rows: Rows, theta: FloatArray, metrics: Sequence[str], sigma: float, noise: Noise
) -> dict[str, Score]:
    """Release scores of coefficients, in scaled units."""
    sigmas, n = score_sigmas(metrics, sigma), rows.n
    counts = noise.release(RESIDUAL_COUNTS, rows, theta=theta, clip=WIDEST, sigma=sigmas["model"])
    usual = most_below(counts, n)
    found = {}
    if "r2" in metrics:
        found["r2"] = _r2(rows, theta, counts, usual, sigmas, noise)
    for name, release, power in (("mse", SQUARED_RESIDUALS, 2), ("mae", ABSOLUTE_RESIDUALS, 1)):
        if name in metrics:
            allowed = RELATIVE * n / sigmas[name] * (usual / 1.645) ** power
            level = _level(allowed ** (1.0 / power), usual)
            total = noise.release(release, rows, theta=theta, level=level, sigma=sigmas[name])
            found[name] = Score(max(total / n, 0.0), sigmas[name] * level**power / n, level)
    return {name: found[name] for name in metrics}


def _r2(
    rows: Rows,
    theta: FloatArray,
    counts: FloatArray,
    usual: float,
    sigmas: dict[str, float],
    noise: Noise,
) -> Score:
    """Release R^2: one sum with a weight that makes noise in the denominator matter little."""
    mean = noise.release(TARGET_MEAN, rows, sigma=sigmas["mean"])
    base, apart = np.zeros(rows.d), rows.n * mean**2
    if rows.constant:  # an absent record has no constant either: its residual is 0
        base[-1], apart = mean / rows.constant, 0.0
    around = noise.release(RESIDUAL_COUNTS, rows, theta=base, clip=WIDEST, sigma=sigmas["base"])
    wide = most_below(around, rows.n)
    whole = min(max(WHOLE * wide, _evident(around, sigmas["base"])), WIDEST)
    total = noise.release(SQUARED_RESIDUALS, rows, theta=base, level=whole, sigma=sigmas["total"])
    total = max(total, sigmas["total"] * whole**2)
    level = _level(math.sqrt(PRECISION * total / sigmas["r2"]), usual)
    weight = min(max(_squares(counts, level), sigmas["model"] * level**2) / total, 100.0)
    # Both parts count as much, or the second less.
    base_level = min(level / math.sqrt(weight), whole)
    found = noise.release(
        SQUARES_ABOVE_BASE,
        rows,
        theta=theta,
        level=level,
        base=base,
        base_level=base_level,
        weight=weight,
        sigma=sigmas["r2"],
    )
    denominator = max(total - apart, sigmas["total"] * whole**2)
    std = sigmas["r2"] * max(level**2, weight * base_level**2) / denominator
    # The noise of the denominator counts where the weight is not the ratio itself.
    std = math.hypot(std, found / denominator * sigmas["total"] * whole**2 / denominator)
    return Score(1.0 - (found + weight * total) / denominator, std, level)


def _level(wanted: float, usual: float) -> float:
    """Return the level of clipping: what is wanted, in units of what is usual, within limits."""
    return min(max(wanted, REACH[0] * usual), REACH[1] * usual, WIDEST)


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


def _evident(counts: FloatArray, sigma: float) -> float:
    """Return the size beyond which noise may have made all counts."""
    above = np.cumsum(counts[::-1])[::-1]
    seen = np.flatnonzero(above > EVIDENT * sigma * np.sqrt(np.arange(len(counts), 0, -1)))
    return float(WIDEST * RESIDUAL_EDGES[1:][seen[-1]]) if len(seen) else 0.0


def _squares(counts: FloatArray, level: float) -> float:
    """Return the sum of squares up to a level, from noisy counts."""
    low, high = WIDEST * RESIDUAL_EDGES[:-1], WIDEST * RESIDUAL_EDGES[1:]
    # The mean of squares over a flat density on (low, high].
    mean = (low**2 + low * high + high**2) / 3.0
    return float(counts @ np.minimum(mean, level**2))
