"""Data frames with public bounds: pandas, Polars and Arrow tables, matched by column names."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import type_error, value_error
from fastmix.data.arrow import column_kind
from fastmix.data.columns import Columns, Objects, arrow_array, columns_of, text_array
from fastmix.data.delimited import TextFormat
from fastmix.data.encode import needed
from fastmix.data.read import arrow
from fastmix.errors import DataError
from fastmix.schema.bounds import PublicBounds
from fastmix.schema.bounds_file import read_bounds, written_out
from fastmix.schema.kinds import check_kind, check_list
from fastmix.schema.values import as_reals, check_finite

#: Tables of a bounds file.
_TABLES = {"columns", "target", "features", "missing", "include", "found"}

#: Columns of a data frame of bounds.
_FIELDS = {"lower", "upper", "categories", "missing", "unit", "note", "role"}


def public_bounds(
    bounds: Any,
    columns: Sequence[str],
    *,
    target: str | None = None,
    ends: Any = None,
    called: str = "bounds_y",
) -> PublicBounds:
    """Return public bounds, however they are given, for a table with these columns.

    ``bounds`` is a path to a bounds file, its contents as a dict, a dict of features by name, a
    data frame with one row per column, or a `PublicBounds`. If the bounds do not name a target,
    the target is the column ``target``; its entry is among the features, or follows from
    ``ends``, the value of the parameter ``called``.
    """
    if isinstance(bounds, PublicBounds):
        found = bounds
    elif isinstance(bounds, (str, os.PathLike)):
        found = read_bounds(Path(bounds), lambda: columns)
    else:
        given = bounds if isinstance(bounds, Mapping) else _rows(bounds)
        data = _plain(given)
        if not set(data) <= _TABLES or not isinstance(data.get("features"), Mapping):
            name = target or "y"
            if name in data:
                entry = data.pop(name)
            elif ends is not None:
                entry, ends = _target_of(ends, called), None
            else:
                raise ValueError(
                    f"bounds must name the target. Pass {called}, or "
                    "bounds={'target': {'income': (0, 100_000)}, 'features': {'age': (0, 120)}}."
                )
            data = {"target": {name: entry}, "features": data}
        found = PublicBounds.from_dict(written_out(data, lambda: columns, Path()))
    if ends is not None:
        raise value_error(called, "be None where bounds name the target", ends)
    return found


def _target_of(ends: Any, called: str) -> Any:
    """Return the entry of a target from the value of ``bounds_y`` or ``classes``."""
    given = _plain(ends)
    if called == "classes":
        if not isinstance(given, list):
            raise value_error(called, "be a list of labels", ends)
        numbers = all(isinstance(each, (int, float)) for each in given)
        return sorted(map(float, given)) if numbers and len(given) == 2 else {"labels": given}
    try:
        low, high = map(float, given)
    except (TypeError, ValueError):
        raise value_error(called, "be two numbers when bounds are given", ends) from None
    return [low, high]


def _plain(value: Any) -> Any:
    """Return bounds as dicts and lists, as a bounds file holds them."""
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _rows(frame: Any) -> dict[str, Any]:
    """Return a data frame of bounds as a dict by column name."""
    kind = type(frame).__module__.partition(".")[0]
    if kind == "pandas":
        if "name" not in frame.columns:
            frame = frame.rename_axis("name").reset_index()
        records = frame.to_dict("records")
    elif kind == "polars":
        records = frame.to_dicts()
    elif kind == "pyarrow":
        records = frame.to_pylist()
    else:
        raise type_error("bounds", "be a file, a dict or a data frame", type(frame).__name__)
    features: dict[str, Any] = {}
    targets: dict[str, Any] = {}
    for record in records:
        row = {key: value for key, value in record.items() if not _absent(value)}
        name = row.pop("name", None)
        strange = sorted(map(str, set(row) - _FIELDS))
        if name is None or strange:
            raise value_error(
                "bounds", f"be a data frame with name and some of {sorted(_FIELDS)}", strange
            )
        place = targets if row.pop("role", "feature") == "target" else features
        if "categories" not in row:
            row["bounds"] = [row.pop("lower", None), row.pop("upper", None)]
        place[str(name)] = row
    return {"target": targets, "features": features} if targets else features


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def frame_names(frame: Any) -> list[str]:
    """Return the names of the columns of a table in memory, which must be different strings."""
    if isinstance(frame, Mapping):
        names = list(frame)
    else:
        names = list(getattr(frame, "column_names", getattr(frame, "columns", ())))
    if is_lazy(frame) or not names or not all(isinstance(name, str) for name in names):
        raise type_error(
            "X", "be a pandas, Polars or Arrow table with named columns, as bounds are by name",
            type(frame).__name__,
        )  # fmt: skip
    if len(set(names)) != len(names):
        raise value_error("X", "have a different name for each column", names)
    return names


def is_lazy(frame: Any) -> bool:
    """Tell whether a table must be collected before it has values, as in Polars and Dask."""
    return hasattr(type(frame), "collect") or hasattr(type(frame), "compute")


def frame_length(frame: Any) -> int:
    """Return the number of rows of a table in memory."""
    if isinstance(frame, Mapping):
        return len(next(iter(frame.values())))
    return int(frame.num_rows if hasattr(frame, "num_rows") else len(frame))


def frame_columns(
    frame: Any, bounds: PublicBounds, y: Any = None, *, target: bool = True
) -> Columns:
    """Return the columns of a table in memory that the bounds name: raw data.

    The target is ``y`` if given, else a column of the table.
    """
    numbers, categories = needed(bounds, target=target and y is None)
    there = frame_names(frame)
    for name in (*numbers, *categories):
        if name not in there:
            raise DataError(f"X has no column {name!r}; it has {there}.")
    found = _converted("X", frame, numbers, categories, bounds)
    if not target or y is None:
        return found
    if tuple(getattr(y, "shape", (len(y),))) != (found.n,):
        raise ValueError("y must have one entry per row of X, and one axis.")
    own = bounds.target.name
    listed = {name: levels for name, levels in needed(bounds)[1].items() if name == own}
    apart = _converted("y", {own: y}, [] if listed else [own], listed, bounds)
    return Columns(found.n, found.numbers | apart.numbers, found.codes | apart.codes)


def _converted(
    table: str,
    frame: Any,
    numbers: list[str],
    categories: Mapping[str, Sequence[str]],
    bounds: PublicBounds,
) -> Columns:
    """Check the declared types of columns, and convert them."""
    pa, dates = arrow(), dict(bounds.dates)
    wanted = list(dict.fromkeys([*numbers, *categories]))
    try:
        columns = {name: frame_column(frame, name) for name in wanted}
        if len({len(column) for column in columns.values()}) > 1:
            raise DataError(f"{table} must have columns of the same length.")
        for name, column in columns.items():
            if not isinstance(column, Objects):
                check_kind(table, name, column_kind(column.type), name in dates, name in categories)
        for name, levels in categories.items():
            if not isinstance(columns[name], Objects):
                check_list(table, name, column_kind(columns[name].type), levels)
        return columns_of(columns, numbers, categories, TextFormat().of(bounds))
    except (pa.ArrowException, OverflowError):
        raise DataError(f"{table} has a column of a type that fastmix cannot read.") from None


def frame_column(frame: Any, name: str) -> Any:
    """Return a column of a table as an Arrow array, or as objects if it declares no type."""
    if isinstance(frame, Mapping) or hasattr(frame, "iloc") or hasattr(frame, "get_columns"):
        return _column(frame[name])
    return arrow().table(frame).column(name)  # Arrow, or a table that says how to be Arrow


def _column(values: Any) -> Any:
    pa, declared = arrow(), getattr(values, "dtype", None)
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if hasattr(values, "to_arrow"):  # Polars
        return Objects(values.to_list()) if str(declared) == "Object" else values.to_arrow()
    if declared is not None and not isinstance(declared, np.dtype):
        return _pandas_column(values)
    if isinstance(values, (list, tuple)) or not hasattr(values, "__array__"):
        return Objects(list(values))
    array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"A column must have one axis; got one with {array.ndim}.")
    return Objects(array.tolist()) if array.dtype == object else arrow_array(array)


def _pandas_column(values: Any) -> Any:
    """Return a column with a type of pandas as an Arrow array, or as objects."""
    pa, declared = arrow(), values.dtype
    if hasattr(declared, "categories"):  # pandas takes their type from the values
        at = np.asarray(values.cat.codes if hasattr(values, "cat") else values.codes)
        return Objects(declared.categories.tolist(), at)
    if type(declared).__name__ == "NumpyEADtype":  # objects, of which Arrow would infer a type
        return _column(np.asarray(values))
    if type(declared).__name__ == "StringDtype" and declared.storage == "python":
        return text_array(values.tolist())
    return pa.array(values, from_pandas=True)


def encoded_array(X: FloatArray, d: int) -> FloatArray:
    """Return an array of finite numbers with d columns."""
    X = np.asarray(as_reals("X", X))
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"X must have {d} columns; got an array of shape {X.shape}.")
    check_finite(X)
    return X.astype(np.float64, copy=False)
