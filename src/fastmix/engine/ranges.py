"""Bounds found privately: ends of numeric columns and lists of categories from noisy counts.

Counts on a public grid of signed powers of two tell the octaves in which a column lies; counts in
equal bins of what is left trim the ends.  Everything is read off released counts
(docs/proofs/bounds.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.accounting import PrivacySpent, gaussian_sigma
from fastmix.engine.plan import joint
from fastmix.releases.columns import COLUMN_COUNTS, Columns, level_threshold, range_events
from fastmix.releases.noise import Noise

#: The grid: powers of two from the smallest size that counts to the largest.
SMALLEST, LARGEST = 2.0**-20, 2.0**40
#: Equal bins that trim what the grid found.
BINS = 16
#: Share of delta for levels that one record alone has.
_TAIL = 0.05
#: Share of the budget (of mu^2) for the counts in equal bins.
_FINE = 0.2
#: A trimmed range is taken if it is at most so much of the one before, with a bin on either side,
#: and if the rows that it may leave out are at most so many of all.
_GAIN, _LOSS = 0.5, 0.03
#: An end whose outermost octave holds less than this share of the rows is moved out by one more.
_THIN = 0.25
#: Standard deviations that a count is taken to be off at most.
_SURE = 2.5
#: Probability that noise alone extends any range.
_FALSE = 0.01
#: Longest runs of bins that are looked at as one.
_RUN = 4


class Range(NamedTuple):
    """A range with the share of rows that may lie outside, by released counts."""

    lower: float
    upper: float
    outside: float


@dataclass(frozen=True)
class RangePlan:
    """The account of all counts, their noise, and the threshold of levels."""

    spent: PrivacySpent
    numbers: int
    categories: int
    sigma: float
    fine_sigma: float | None
    threshold: float | None

    @property
    def columns(self) -> int:
        """Columns of both kinds."""
        return self.numbers + self.categories


def plan_ranges(
    epsilon: float, delta: float, numbers: int, categories: int = 0, *, rows_per_person: int = 1
) -> RangePlan:
    """Plan the counts of so many columns of numbers and of categories."""
    if not numbers + categories:
        raise value_error("columns", "be at least one without known bounds", 0)
    tail = _TAIL * delta if categories else 0.0
    left = epsilon * (1.0 - 1e-9) + math.log1p(-tail)
    sigma = gaussian_sigma(left, (delta - tail) * (1.0 - 1e-9))
    fine = None
    if numbers:
        sigma, fine = sigma / math.sqrt(1.0 - _FINE), sigma / math.sqrt(_FINE)
    events = range_events(sigma, fine, categories=categories, tail=tail)
    threshold = None
    if categories:
        total = numbers + categories
        threshold = level_threshold(
            sigma=sigma,
            columns=total,
            categories=categories,
            tail=tail,
            rows_per_person=rows_per_person,
        )
    return RangePlan(joint(events, delta), numbers, categories, sigma, fine, threshold)


def find_ranges(
    numbers: Mapping[str, FloatArray],
    levels: Mapping[str, Mapping[str, float]],
    plan: RangePlan,
    n: int,
    noise: Noise,
    *,
    coverage: float,
    limits: Mapping[str, tuple[float, float]],
    grid: tuple[float, float] = (SMALLEST, LARGEST),
    weights: FloatArray | None = None,
) -> tuple[dict[str, Range | None], dict[str, tuple[str, ...]]]:
    """Release counts, and return ranges and lists of levels; None where nothing is found.

    ``limits`` are public ends of some columns, ``coverage`` the share of rows that should lie
    inside a range where noise lets it. With ``weights`` of rows n counts persons, and so do the
    counts of levels.
    """
    names = list(numbers)
    octaves = [octave_edges(limits.get(name), grid) for name in names]
    columns = Columns([numbers[name] for name in names], list(levels.values()), weights)
    rough, known = noise.release(
        COLUMN_COUNTS, columns, edges=octaves, threshold=plan.threshold, sigma=plan.sigma
    )
    scale, most = plan.sigma * math.sqrt(plan.columns), (1.0 - coverage) / 2.0 * n
    found = [
        _trimmed(edges, counts, scale, most, n, len(names))
        for edges, counts in zip(octaves, rough, strict=True)
    ]
    if plan.fine_sigma is not None:
        # A range that was not found has one bin, which is not looked at.
        fine = [
            np.array([0.0, 1.0]) if one is None else np.linspace(one.lower, one.upper, BINS + 1)
            for one in found
        ]
        scale = plan.fine_sigma * math.sqrt(plan.numbers)
        again, _ = noise.release(
            COLUMN_COUNTS,
            replace(columns, levels=()),
            edges=fine,
            threshold=None,
            sigma=plan.fine_sigma,
        )
        found = [
            None if one is None else _finer(one, edges, counts, scale, most, n, len(names))
            for one, edges, counts in zip(found, fine, again, strict=True)
        ]
    chosen = {name: _listed(above) for name, above in zip(levels, known, strict=True)}
    return dict(zip(names, found, strict=True)), chosen


def octave_edges(limits: tuple[float, float] | None, grid: tuple[float, float]) -> FloatArray:
    """Return the public grid: 0 and signed powers of two, cut to the limits of a column.

    Sizes below the smallest power count as 0, whose bin has no width.
    """
    low, high = (check_real("grid", side, above=0.0) for side in grid)
    if not low < high:
        raise value_error("grid", "increase", grid)
    powers = 2.0 ** np.arange(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    # Just below the smallest power on either side: the bin between them is that of 0.
    edges = np.concatenate((-powers[::-1], powers))
    if limits is None:
        return edges
    lower, upper = limits
    if not lower < upper:
        raise value_error("limits", "increase", limits)
    inside = edges[(edges > lower) & (edges < upper)]
    return np.concatenate(([lower], inside, [upper]))


def _first_evident(counts: FloatArray, scale: float, most: float, columns: int) -> int | None:
    """Return the first bin from the left at which counts stand out from noise, None if none does.

    Runs of up to `_RUN` bins that begin there, and all bins up to it, are looked at.
    """
    size = len(counts)
    sums = np.concatenate(([0.0], np.cumsum(counts)))
    tests = size * (_RUN + 1)
    evident = -float(ndtri(_FALSE / (4.0 * columns * tests)))
    best: int | None = None
    for width in range(1, min(_RUN, size) + 1):
        runs = sums[width:] - sums[:-width]
        at = np.flatnonzero(runs > max(evident * scale * math.sqrt(width), most))
        if len(at):
            last = int(at[0]) + width - 1
            best = last if best is None else min(best, last)
    widths = np.arange(1, size + 1)
    at = np.flatnonzero(sums[1:] > np.maximum(evident * scale * np.sqrt(widths), most))
    if len(at):
        best = int(at[0]) if best is None else min(best, int(at[0]))
    return best


def _inner_bins(
    counts: FloatArray, scale: float, most: float, columns: int
) -> tuple[int, int] | None:
    """Return the first and the last bin between which counts stand out from noise."""
    first = _first_evident(counts, scale, most, columns)
    from_right = _first_evident(counts[::-1], scale, most, columns)
    if first is None or from_right is None:
        return None
    last = len(counts) - 1 - from_right
    return min(first, last), max(first, last)


def _beyond(counts: FloatArray, first: int, last: int, scale: float, n: int) -> float:
    """Return how many rows may lie outside the bins from the first to the last.

    Every row is in one bin, missing ones in the last, so those outside are also all but those
    inside; whichever has less noise tells.
    """
    inside = np.append(counts[first : last + 1], counts[-1])
    outside = np.append(counts[:first], counts[last + 1 : -1])
    left = max(0.0, n - float(inside.sum())) + _SURE * scale * math.sqrt(len(inside))
    seen = max(0.0, float(outside.sum())) + _SURE * scale * math.sqrt(len(outside))
    return min(left, seen, float(n))


def _trimmed(
    edges: FloatArray, counts: FloatArray, scale: float, most: float, n: int, columns: int
) -> Range | None:
    """Return the octaves in which counts stand out from noise, and what may lie beyond."""
    bins = _inner_bins(counts[:-1], scale, most, columns)  # without the missing ones
    if bins is None:
        return None
    first, last = bins
    if counts[first] < _THIN * n:
        first = max(first - 1, 0)
    if counts[last] < _THIN * n:
        last = min(last + 1, len(counts) - 2)
    lower, upper = float(edges[first]), float(edges[last + 1])
    # Next to 0 a range ends at 0, not at the smallest size that counts.
    smallest = float(np.abs(edges).min())
    lower = 0.0 if lower == -smallest else lower
    upper = 0.0 if upper == smallest else upper
    if not lower < upper:  # all values are 0, or as good as that
        lower, upper = -smallest, smallest
    return Range(lower + 0.0, upper + 0.0, _beyond(counts, first, last, scale, n) / n)


def _finer(
    found: Range,
    edges: FloatArray,
    counts: FloatArray,
    scale: float,
    most: float,
    n: int,
    columns: int,
) -> Range:
    """Trim a range by counts in equal bins, if that makes it much narrower."""
    bins = _inner_bins(counts[:-1], scale, most, columns)
    if bins is None:
        return found
    first, last = max(bins[0] - 1, 0), min(bins[1] + 1, len(counts) - 2)
    lower, upper = float(edges[first]), float(edges[last + 1])
    if upper - lower > _GAIN * (found.upper - found.lower):
        return found
    more = _beyond(counts, first, last, scale, n)
    if more > _LOSS * n:
        return found
    return Range(lower + 0.0, upper + 0.0, min(1.0, found.outside + more / n))


def _listed(above: Mapping[str, float]) -> tuple[str, ...]:
    """Return released levels: the most common first, the others by name."""
    if not above:
        return ()
    common = max(sorted(above), key=lambda name: above[name])
    return (common, *sorted(set(above) - {common}))
