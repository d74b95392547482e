"""Counts of single columns with noise: how many values lie in each bin, and which levels occur."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from fastmix._types import FloatArray
from fastmix.accounting import LaplaceEvent, PrivacyEvent, TailEvent
from fastmix.releases.checks import anything
from fastmix.releases.noise import Noise
from fastmix.releases.release import Gaussian, Public
from fastmix.releases.sensitivity import columns_sensitivity

#: Noise has a scale of up to 1 + 2^-32 times the one asked for, and quantiles are below 40.
_ROUNDING = 2.0**-19


@dataclass(frozen=True)
class Columns:
    """Columns of numbers, and exact counts of the levels of columns of categories: sensitive.

    With ``weights`` rows count so often; those of a person must add up to at most 1.
    """

    numbers: Sequence[FloatArray] = field(repr=False)
    levels: Sequence[Mapping[str, float]] = field(default=(), repr=False)
    weights: FloatArray | None = field(default=None, repr=False)

    n, bound, constant = 0, 1.0, 0.0
    most = additions = 0  # counts are exact

    @property
    def d(self) -> int:
        """Columns of both kinds."""
        return len(self.numbers) + len(self.levels)


@dataclass(frozen=True, eq=False, kw_only=True)
class _ColumnCounts(Gaussian):
    """Counts in bins, and the noisy counts of levels that exceed a threshold.

    Which levels occur is not public: only those whose noisy count is above the threshold leave.
    """

    def draw(
        self, noise: Noise, rows: Columns, public: Public, given: dict[str, Any]
    ) -> tuple[list[FloatArray], list[dict[str, float]]]:
        edges, sigma = given["edges"], given["sigma"]
        threshold = math.inf if given["threshold"] is None else given["threshold"]
        counts_hat = [np.fromiter(each.values(), float, len(each)) for each in rows.levels]
        parts = [*self.statistic(rows, edges, threshold), *counts_hat]
        noisy = noise._gaussian(np.concatenate(parts), self.sensitivity(public), sigma)
        split = np.split(noisy, np.cumsum([len(part) for part in parts])[:-1])
        numbers = len(rows.numbers)
        known = [
            {name: c for name, c in zip(levels, counts.tolist(), strict=True) if c > threshold}
            for levels, counts in zip(rows.levels, split[numbers:], strict=True)
        ]
        return split[:numbers], known

    def density(self, value: Any, rows: Any, public: Public, given: dict[str, Any]) -> float:
        """Return the log-density of the counts in bins; a tail covers the levels."""
        exact = self.statistic(rows, given["edges"], given["threshold"])
        scale = given["sigma"] * self.sensitivity(public)
        pairs = zip(value[0], exact, strict=True)
        return -0.5 * math.fsum(float(np.sum(((a - b) / scale) ** 2)) for a, b in pairs)


def _binned(columns: Columns, edges: Sequence[FloatArray], threshold: float) -> list[FloatArray]:
    """Count the values of each column by bins, and missing ones after them."""
    counts_hat = []
    for values, ends in zip(columns.numbers, edges, strict=True):
        last = len(ends) - 2
        at = np.clip(np.searchsorted(ends, values, side="left") - 1, 0, last)
        at[np.isnan(values)] = last + 1
        counts = np.bincount(at, columns.weights, minlength=last + 2)
        counts_hat.append(counts.astype(np.float64))
    return counts_hat


#: How many values of each column lie in each bin, and which levels occur how often.
#:
#: Bin j of a column holds values in :math:`(e_j, e_{j+1}]`, the first also its left end; values
#: outside count in the first or the last bin, missing ones in one more bin at the end. Levels whose
#: noisy count is not above the ``threshold`` (`level_threshold`) are dropped, unseen. ``sigma`` is
#: the noise in units of the sensitivity of all counts together, the root of the number of columns.
COLUMN_COUNTS = _ColumnCounts(
    name="column counts",
    statement="the values of each column, counted in bins, and the levels that occur often",
    proof="docs/proofs/bounds.md, Section 2",
    statistic=_binned,
    sensitivity=lambda public: columns_sensitivity(public.d),
    given={"edges": anything, "threshold": anything},
)


def range_events(
    sigma: float, fine_sigma: float | None, *, categories: int, tail: float
) -> list[PrivacyEvent]:
    """Return the events of `COLUMN_COUNTS`: with levels, and then in finer bins.

    A level that one record alone has is released with probability ``tail`` at most, for all
    columns of categories together; that none is has at least the probability ``1 - tail``.
    """
    events: list[PrivacyEvent] = [COLUMN_COUNTS.event(sigma)]
    if fine_sigma is not None:
        events.append(COLUMN_COUNTS.event(fine_sigma))
    if categories:
        events += [TailEvent(tail), LaplaceEvent(1.0, -math.log1p(-tail))]
    return events


def level_threshold(
    *, sigma: float, columns: int, categories: int, tail: float, rows_per_person: int = 1
) -> float:
    r"""Return the noisy count above which a level is released.

    A level that one record alone has counts 1. It exceeds :math:`1 + s\,\Phi^{-1}(1 - t/c)` with
    probability t/c; s is the noise of a count, c the number of columns of categories. On top is
    room for the noise scale, which is rounded up, and for the computed quantile. A person of up to
    k rows can have k such levels in a column, each of a weight of at most 1.

    Paper: beyond it; docs/proofs/bounds.md, Section 3.
    """
    scale = sigma * columns_sensitivity(columns)
    rare = tail / (categories * rows_per_person)
    return 1.0 + scale * (-float(ndtri(rare)) + _ROUNDING)
