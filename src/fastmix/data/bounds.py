"""Public bounds as a user gives them: pairs of scalars, of arrays, or by the labels of columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real, type_error, value_error
from fastmix.data.values import as_reals

#: Bounds beyond this would overflow; half-widths below its inverse make a feature constant.
LARGEST = 1e100


def feature_bounds(
    bounds: Any, d: int, labels: Sequence[Any] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper bounds of d features, finite and in the order of their labels.

    Each side is a scalar, a sequence with one entry per feature, or a pandas Series or a mapping by
    label; instead of two sides there may be a mapping with a pair (lower, upper) for each label.
    """
    if isinstance(bounds, Mapping):
        pairs = [_pair("bounds_X", pair) for pair in _aligned(bounds, labels)]
        bounds = [low for low, _ in pairs], [high for _, high in pairs]
    lower, upper = (_side(side, d, labels) for side in _pair("bounds_X", bounds))
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise value_error("bounds_X", "be finite", bounds)
    if max(np.abs(lower).max(), np.abs(upper).max()) > LARGEST:
        raise value_error("bounds_X", f"be at most {LARGEST:g} in magnitude", bounds)
    if not (lower <= upper).all():
        raise value_error("bounds_X", "have no lower bound above its upper bound", bounds)
    return lower, upper


def check_target_bounds(bounds: Any) -> tuple[float, float]:
    """Return the bounds of the target."""
    sides = [np.ma.asanyarray(side) for side in _pair("bounds_y", bounds)]
    if any(side.size != 1 or np.ma.is_masked(side) for side in sides):
        raise value_error("bounds_y", "be a pair of numbers", bounds)
    lower, upper = (
        check_real("bounds_y", side.item(), at_least=-LARGEST, at_most=LARGEST) for side in sides
    )
    if not lower <= upper:
        raise value_error("bounds_y", "have no lower bound above its upper bound", bounds)
    return lower, upper


def _pair(name: str, bounds: Any) -> tuple[Any, Any]:
    """Return both sides; what has no order, or iterates over labels, is no pair."""
    try:
        if isinstance(bounds, (Mapping, set, frozenset, str, bytes)) or hasattr(bounds, "columns"):
            raise TypeError
        lower, upper = bounds
    except (TypeError, ValueError):
        raise type_error(name, "be a pair (lower, upper)", bounds) from None
    return lower, upper


def _side(side: Any, d: int, labels: Sequence[Any] | None) -> FloatArray:
    """Return one side of the bounds, with an entry for each feature."""
    if isinstance(side, Mapping):
        side = _aligned(side, labels)
    elif hasattr(side, "iloc") and hasattr(side, "index"):  # a pandas Series
        side = _series(side, labels)
    try:
        values = as_reals("bounds_X", side).astype(np.float64)
    except ValueError:
        raise type_error("bounds_X", "hold real numbers", side) from None
    if values.shape not in ((), (1,), (d,)):
        raise value_error(
            "bounds_X", f"be scalars or have one entry for each of {d} features", values
        )
    return np.array(np.broadcast_to(values, (d,)))


def _series(side: Any, labels: Sequence[Any] | None) -> Any:
    """Return a Series in the order of the features; without labels of its own it is in order."""
    own = list(side.index)
    if len(set(own)) != len(own):
        raise value_error("bounds_X", "have each label once", own)
    unlabelled = own == [*range(len(own))]
    named = labels is None or all(isinstance(label, str) for label in labels)
    if unlabelled and named:
        return side.array
    return _aligned(dict(zip(own, side.array, strict=True)), labels)


def _aligned(bounds: Mapping[Any, Any], labels: Sequence[Any] | None) -> list[Any]:
    """Return labelled bounds in the order of the features, whose labels must be the same."""
    if labels is None:
        raise value_error(
            "bounds_X", "have no labels, because the columns of X have no names", list(bounds)
        )
    if len(set(labels)) != len(labels):
        raise value_error("X", "have each name once for bounds with labels", list(labels))
    missing = [label for label in labels if label not in bounds]
    extra = [label for label in bounds if label not in set(labels)]
    if missing or extra:
        raise ValueError(
            "bounds_X must name every column of X, and no other; "
            f"columns without bounds: {missing}; names that are not columns: {extra}."
        )
    return [bounds[label] for label in labels]
