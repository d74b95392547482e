"""Checks that several mechanisms share."""

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_matrix, check_real, value_error
from fastmix.data import ArrayRows, RowMap, Rows


def as_rows(X: Rows | npt.ArrayLike, c_x: float) -> Rows:
    """Return X as rows of norm at most ``c_x``; Rows bring their own bound."""
    if isinstance(X, Rows):
        return X
    return ArrayRows(check_matrix("X", X), RowMap(check_real("c_x", c_x, above=0.0)))


def check_point(rows: Rows, theta: FloatArray) -> None:
    """Refuse coefficients of another shape, or so large that residuals of some data overflow."""
    if theta.shape != (rows.d,) or not np.abs(theta).max() <= 1e100:
        raise value_error("theta", f"be at most 1e100 and have shape {(rows.d,)}", theta)
