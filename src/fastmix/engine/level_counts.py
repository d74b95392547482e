r"""How many rows the levels of each category have, as far as releases tell.

Counts of all levels are released once. Second moments of rows in the coordinates of `geometry` tell
the counts of rare levels better, because these coordinates stretch rare levels
(docs/proofs/tables.md, Section 4).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from fastmix._types import FloatArray

if TYPE_CHECKING:
    from fastmix.engine.geometry import Geometry

#: The least standard error of a count.
LEAST_ERROR = 1e-3
#: The least information on a count: with all rows in one level, codes are 0.
LEAST_TOLD = 1e-100
#: Two releases disagree about a count from this many standard errors on.
FAR = 3.0


class LevelCounts(NamedTuple):
    """Rows of the levels of each category, that without a column first, and standard errors."""

    rows: tuple[FloatArray, ...]
    errors: tuple[FloatArray, ...]


def recounted(
    released: FloatArray,
    scale: float,
    coordinates: Geometry,
    counts: LevelCounts,
    n: float | None,
    longest: float,
) -> LevelCounts:
    r"""Return what counts of levels and released second moments tell of the rows of each level.

    With codes A, counts :math:`\nu` and the weight w of a block, the release has
    :math:`w^2 A^\top \operatorname{diag}(\nu) A` and, beside the constant, :math:`w A^\top \nu`.
    Both are linear in :math:`\nu`: least squares by the variances. Counts add up to n, if given.
    Rows whose weighted squared length is more than ``longest`` count less in the release: those of
    a level by the share that is left of them with mean lengths in other blocks. What such a count
    lacks may be wrong by as much, and where the releases disagree, by their distance.
    """
    found, weights = [], coordinates.weights
    squares = np.diag(coordinates.expected) / coordinates.expected[-1, -1] * weights**2
    for block, A, own, std in zip(coordinates.categories, coordinates.codes, *counts, strict=True):
        w, beside = float(weights[block.start]), float(squares.sum() - squares[block].sum())
        left = np.minimum(1.0, longest / (w**2 * np.sum(A**2, axis=1) + beside))
        both = np.outer(left, left) * (A @ A.T)
        told = (w**4 * (A @ A.T) + 2.0 * w**2) * both / scale**2
        seen = np.sum((A @ (w**2 * released[block, block])) * A, axis=1)
        seen = left * (seen + 2.0 * w * (A @ released[block, -1]))
        rest, first = seen / scale**2 - told @ own, np.diag(np.maximum(std, LEAST_ERROR) ** -2.0)
        lacking = (1.0 - left) * np.maximum(own + np.linalg.solve(told + first, rest), 0.0)
        alone = 1.0 / np.maximum(np.diag(told), LEAST_TOLD)
        apart, alone = np.abs(rest) * alone, alone + std**2
        lacking = np.where(apart**2 > FAR**2 * alone, np.maximum(apart, lacking), lacking)
        sure = 1.0 / (1.0 + np.diag(told) * lacking**2)
        covariance = np.linalg.inv(np.sqrt(np.outer(sure, sure)) * told + first)
        rows = own + covariance @ (sure * rest)
        if n is not None:
            along = covariance.sum(axis=0)
            rows += along * (n - float(rows.sum())) / float(along.sum())
            covariance -= np.outer(along, along) / float(along.sum())
        errors = np.sqrt(np.maximum(np.diag(covariance), LEAST_ERROR**2))
        found.append((positive(rows, errors), errors))
    return LevelCounts(tuple(rows for rows, _ in found), tuple(errors for _, errors in found))


def positive(values: FloatArray, error: FloatArray) -> FloatArray:
    """Return what is expected of values that are not negative, given noisy ones."""
    z = np.clip(values / error, -8.0, 40.0)
    hazard = np.exp(-0.5 * z**2 - 0.5 * math.log(2.0 * math.pi) - log_ndtr(z))
    return np.asarray(np.maximum(z, values / error) * error + error * hazard)
