"""Conversion of arrays, lists and data frames to arrays of real numbers, once.

Types and names of columns are public, and errors name them.  Values are not: a value that is not a
finite real number gives the same error, whatever the value is and wherever it is.
"""

from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from fastmix.errors import InvalidValueError

FloatArray = npt.NDArray[np.floating[Any]]

#: Contents of arrays that are not numbers, by the kind of their dtype.
_KINDS = {
    "M": "dates",
    "m": "time spans",
    "c": "complex numbers",
    "U": "text",
    "S": "bytes",
    "T": "text",
    "V": "records",
}
#: Types that pandas, Polars and Arrow declare for text; as arrays they may be objects.
_TEXT = {"str", "string", "String", "large_string", "string_view", "Categorical", "Enum"}

#: Narrower types in which a table may hold a number that a list writes with decimals.
NARROWER = (np.float32, np.float16)


def as_reals(name: str, value: Any) -> FloatArray:
    """Return data as an array of float32 or float64; only such arrays are not copied.

    Lists become float64 whatever they contain, so that no value decides how another is stored.
    Booleans count as 0 and 1; `decimal.Decimal` and `fractions.Fraction` are rounded to float64; a
    value that is missing or too large becomes NaN or infinite. A declared type that is not one of
    numbers is a ValueError that names it; any other value that is no real number is an
    `InvalidValueError` that does not.
    """
    if issparse(value):
        raise TypeError(
            f"Sparse data were passed as {name}, which must be dense; use {name}.toarray()."
        )
    parts = _columns(value)
    if parts is None:
        wrong = _not_numbers(value, array := _array(value))
        if wrong and (hasattr(value, "dtype") or hasattr(value, "type")):
            unsupported = " (Complex data not supported)" if array.dtype.kind == "c" else ""
            found = f"an array that holds {wrong}{unsupported}"
            raise ValueError(f"{name} must hold real numbers; got {found}.")
        if wrong:
            raise InvalidValueError
        reals = _reals(array)
        return reals if hasattr(value, "dtype") else reals.astype(np.float64, copy=False)
    labels, columns = parts
    if {"float32", "float64"} & set(map(_declared, columns)):
        whole = _array(value)  # without a copy, if the table is one block of numbers
        if whole.dtype in (np.float32, np.float64):
            return whole
    arrays = [_array(column) for column in columns]
    pairs = zip(labels, map(_not_numbers, columns, arrays), strict=True)
    if wrong := ", ".join(f"{label!r} ({what})" for label, what in pairs if what):
        raise ValueError(f"{name} must hold real numbers in every column; got {name}[{wrong}].")
    table = np.empty((len(arrays[0]), len(arrays)) if arrays else np.shape(value), order="F")
    for j, array in enumerate(arrays):
        if array.ndim != 1:
            raise InvalidValueError
        table[:, j] = _reals(array)
    return table


def label_places(values: FloatArray, labels: FloatArray) -> npt.NDArray[np.int64]:
    """Return the places of numbers in a sorted list of labels, -1 for other numbers.

    Integers are compared exactly. A number with a fraction is a label, too, if it is the label in
    single or half precision.
    """
    values = np.asarray(values, dtype=np.float64)
    found = np.full(values.shape, -1)
    whole = values == np.rint(values)
    for width in (*reversed(NARROWER), np.float64):  # a match in double precision wins
        with np.errstate(over="ignore"):
            known = labels.astype(width).astype(np.float64)
        at = np.minimum(np.searchsorted(known, values), len(known) - 1)
        same = (known[at] == values) & ((width is np.float64) | ~whole)
        found = np.where(same, at, found)
    return found


def check_finite(*arrays: FloatArray) -> None:
    """Refuse arrays that hold NaN or infinity."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise InvalidValueError


def column_labels(value: Any) -> list[Any] | None:
    """Return the labels of the columns of a table, which are public; None if it has none."""
    parts = _columns(value)
    return None if parts is None else list(parts[0])


def object_columns(value: Any) -> list[Any]:
    """Return the labels of the columns that are declared to hold objects."""
    pairs = zip(*(_columns(value) or ([], [])), strict=True)
    return [label for label, column in pairs if _declared(column) in ("object", "Object")]


def _columns(value: Any) -> tuple[Sequence[Any], Sequence[Any]] | None:
    """Return labels and columns of a pandas, Polars or Arrow table; None for anything else."""
    if hasattr(value, "column_names") and hasattr(value, "itercolumns"):  # Arrow
        return value.column_names, list(value.itercolumns())
    if hasattr(value, "get_columns") and hasattr(value, "columns"):  # Polars
        return value.columns, value.get_columns()
    if hasattr(value, "iloc") and hasattr(value, "columns"):  # pandas
        return list(value.columns), [value.iloc[:, j] for j in range(value.shape[1])]
    return None


def _array(value: Any) -> npt.NDArray[Any]:
    """Return a container as an array; a masked value is a missing one."""
    parts = value if isinstance(value, (list, tuple)) else [value]
    if not any(np.ma.is_masked(part) for part in parts if isinstance(part, np.ndarray)):
        try:
            return np.asarray(value)
        except (MemoryError, ImportError):
            raise
        except Exception:
            pass  # raise below instead: this error may quote a value of the data
    raise InvalidValueError


def _declared(value: Any) -> str:
    """Return the name of the type that an array or a column declares, empty if there is none."""
    return str(getattr(value, "dtype", getattr(value, "type", "")))


def _not_numbers(value: Any, array: npt.NDArray[Any]) -> str:
    """Name what the declared type holds if it is neither numbers nor objects; else empty."""
    declared = _declared(value).split("[")[0].split("(")[0]
    if array.dtype.kind == "O" and declared in _TEXT:
        return "text"
    return _KINDS.get(array.dtype.kind, "")


def _reals(array: npt.NDArray[Any]) -> FloatArray:
    """Return an array of numbers or of objects that are numbers."""
    if array.dtype in (np.float32, np.float64):
        return array
    with np.errstate(all="ignore"):  # what overflows is infinite, and is refused as such
        if array.dtype.kind != "O":
            return array.astype(np.float64)
        # Types are checked, because text converts too; NumPy's time spans are integers to Python.
        objects = array.ravel().tolist()
        kinds = set(map(type, objects))
        real = all(issubclass(kind, (Real, Decimal, np.bool_)) for kind in kinds)
        if real and not any(issubclass(kind, np.timedelta64) for kind in kinds):
            try:
                return np.fromiter(map(float, objects), np.float64).reshape(array.shape)
            except Exception:
                pass  # raise below, as above
    raise InvalidValueError
