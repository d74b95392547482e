"""From columns to the matrix of a regression, by public bounds only."""

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix.tables.read import MISSING, Columns
from fastmix.tables.schema import OTHER, Category, Number, PublicBounds


def encode(
    columns: Columns, bounds: PublicBounds, *, intercept: bool = True, target: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Clip, impute and one-hot encode columns, as `read_columns` gives them for these bounds.

    Beside an ``intercept`` the first category of each list has no column. Without the ``target``
    among the columns zeros stand for it, and no row is dropped. With the rule "impute" the number
    of rows is that of the table, so nothing about a value shows in the shape.
    """
    X = np.zeros((columns.n, len(bounds.columns(intercept))))
    kept = np.ones(columns.n, dtype=bool)
    at = 0
    for feature in bounds.features:
        width = len(feature.columns(intercept))
        if isinstance(feature, Number):
            X[:, at], known = _number(columns.numbers[feature.name], feature)
        else:
            known = _one_hot(columns.codes[feature.name], feature, X[:, at : at + width])
        kept &= known
        at += width
    y = np.zeros(columns.n)
    if target:
        y, known = _number(columns.numbers[bounds.target.name], bounds.target)
        kept &= known
    if target and bounds.missing == "drop":
        X, y = X[kept], y[kept]
    return X, y


def _number(values: FloatArray, feature: Number) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return clipped values with the public one for missing ones, and which were known."""
    known = ~np.isnan(values)
    return np.where(known, np.clip(values, feature.lower, feature.upper), feature.filler), known


def _one_hot(
    codes: npt.NDArray[np.int64], feature: Category, block: FloatArray
) -> npt.NDArray[np.bool_]:
    """Write the one-hot columns of a category into ``block``, and return which were known."""
    levels = feature.levels
    level = np.where(codes >= 0, codes, levels.index(OTHER))
    first = len(levels) - block.shape[1]
    for j in range(block.shape[1]):
        block[:, j] = level == first + j
    return np.asarray(codes != MISSING)
