"""Sample weights: how much each row counts, up to a public bound.

Weights lie on a public grid, so that sums of them are exact: one record changes a weighted count
by its own weight and by no rounding.
"""

from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.errors import DataError
from fastmix.schema.values import as_reals

#: Binary digits of a weight beyond those of the number of rows that share it.
_DIGITS = 30

#: The one sentence about bad weights: neither a value nor a place.
_MESSAGE = (
    "sample_weight must hold a finite number in every row, and none below 0. The weights of rows "
    "that are not to count are 0."
)


class InvalidWeightError(DataError):
    """Sample weights that are no weights; the message quotes none of them."""

    def __init__(self) -> None:
        super().__init__(_MESSAGE)


def on_grid(weights: FloatArray, most_rows: int = 1, records: int = 1) -> FloatArray:
    """Return weights of at most 1, moved down to a grid that is as fine as 1/most_rows needs.

    The grid is public. Sums are exact in double precision for up to 2^22 / most_rows records, and
    for so many ``records`` in any case, if their number is public.
    """
    digits = min(_DIGITS + int(most_rows).bit_length(), 52 - int(records).bit_length())
    return np.asarray(np.floor(weights * 2.0**digits) * 2.0**-digits)


def checked_weights(values: Any) -> FloatArray:
    """Return sample weights as an array of numbers, none below 0."""
    try:
        weights = as_reals("sample_weight", values).astype(np.float64)
    except Exception:
        raise InvalidWeightError from None
    if weights.ndim != 1 or np.ma.is_masked(values):
        raise InvalidWeightError
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise InvalidWeightError
    return weights


def row_weights(values: FloatArray, most: float) -> FloatArray:
    """Return weights in units of their public bound, those above it moved to it."""
    return np.minimum(values, most) / most  # no overflow, which NumPy would warn of
