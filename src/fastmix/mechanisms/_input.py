"""The one place where an array becomes rows of bounded norm."""

from __future__ import annotations

import numpy.typing as npt

from fastmix._validation import check_matrix, check_real
from fastmix.data import ArrayRows, RowMap, Rows

__all__ = ["as_rows"]


def as_rows(X: Rows | npt.ArrayLike, c_x: float) -> Rows:
    """Return X as rows of norm at most ``c_x``; Rows bring their own bound."""
    if isinstance(X, Rows):
        return X
    return ArrayRows(check_matrix("X", X), RowMap(check_real("c_x", c_x, above=0.0)))
