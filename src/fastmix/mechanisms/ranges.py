"""Counts of single columns with noise: how many values lie in each bin, and which levels occur."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from fastmix._types import FloatArray
from fastmix._validation import check_real
from fastmix.accounting import GaussianEvent, LaplaceEvent, PrivacyEvent, TailEvent
from fastmix.mechanisms.noise import FLOAT_BITS, Noise
from fastmix.mechanisms.sensitivity import columns_sensitivity


def range_events(
    sigma: float, fine_sigma: float | None, *, categories: int, tail: float
) -> list[PrivacyEvent]:
    """Return the events of `noisy_column_counts`: with levels, and then in finer bins.

    A level that one record alone has is released with probability ``tail`` at most, for all
    columns of categories together; that none is has at least the probability ``1 - tail``.
    """
    events: list[PrivacyEvent] = [GaussianEvent(sigma)]
    if fine_sigma is not None:
        events.append(GaussianEvent(fine_sigma))
    if categories:
        events += [TailEvent(tail), LaplaceEvent(1.0, -math.log1p(-tail))]
    return events


def level_threshold(
    *, sigma: float, columns: int, categories: int, tail: float, rows_per_person: int = 1
) -> float:
    r"""Return the noisy count above which a level is released.

    A level that one record alone has counts 1. It exceeds :math:`1 + s\,\Phi^{-1}(1 - t/c)` with
    probability t/c; s is the noise of a count, c the number of columns of categories. What rounding
    to the grid can add is on top. A person of up to k rows can have k such levels in a column, each
    of a weight of at most 1.

    Paper: beyond it; docs/proofs/bounds.md, Section 3.
    """
    scale = sigma * columns_sensitivity(columns)
    rare = tail / (categories * rows_per_person)
    return 1.0 + scale * (-float(ndtri(rare)) + 2.0 ** (1 - FLOAT_BITS))


def noisy_column_counts(
    columns: Sequence[FloatArray],
    edges: Sequence[FloatArray],
    levels: Sequence[FloatArray] = (),
    *,
    sigma: float,
    noise: Noise,
    weights: FloatArray | None = None,
) -> tuple[list[FloatArray], list[FloatArray]]:
    r"""Release how many values of each column lie in each bin, and how often each level occurs.

    Bin j of a column holds values in :math:`(e_j, e_{j+1}]`, the first also its left end; values
    outside count in the first or the last bin, missing ones in one more bin at the end. ``levels``
    are exact counts of the levels that occur, one array for each column of categories: the noisy
    ones are private only after those below `level_threshold` are dropped, unseen. ``sigma`` is the
    noise in units of the sensitivity of all counts together, the root of the number of columns.
    With ``weights`` rows count so often; those of a person must add up to at most 1.

    Paper: beyond it; docs/proofs/bounds.md, Section 2.
    Sensitive inputs: columns, levels.
    """
    sigma = check_real("sigma", sigma, above=0.0)
    counts_hat = [
        _binned(values, ends, weights) for values, ends in zip(columns, edges, strict=True)
    ]
    parts = [*counts_hat, *levels]
    sensitivity = columns_sensitivity(len(parts))
    noisy = noise.gaussian(np.concatenate(parts), sensitivity=sensitivity, ratio=sigma)
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    split = np.split(noisy, cuts)
    return split[: len(columns)], split[len(columns) :]


def _binned(values: FloatArray, edges: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Count values by bins, and missing ones after them."""
    last = len(edges) - 2
    at = np.clip(np.searchsorted(edges, values, side="left") - 1, 0, last)
    at[np.isnan(values)] = last + 1
    return np.bincount(at, weights, minlength=last + 2).astype(np.float64)
