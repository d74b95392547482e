"""Data frames with public bounds: pandas, Polars and Arrow tables, matched by column names."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._validation import type_error, value_error
from fastmix.data.arrow import column_kind
from fastmix.data.values import as_reals
from fastmix.errors import DataError
from fastmix.tables.bounds_file import read_bounds, written_out
from fastmix.tables.encode import needed
from fastmix.tables.features import Labels, Number
from fastmix.tables.kinds import check_list, is_date
from fastmix.tables.read import Columns, arrow, columns_of
from fastmix.tables.schema import PublicBounds

#: What a bounds file consists of.
_TABLES = {"target", "features", "missing", "include", "found"}

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

    They are a bounds file, the same as a dict, a dict of features by name, a data frame with one
    row per column, or an object that was made before. Where they do not name the target, it is
    ``target``, with its entry among the others or with the ``ends`` that a parameter tells, which
    is ``called`` so.
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
    """Return the entry of a target by its ends; classes are its labels."""
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
        raise type_error("bounds", "be a file, a dict or a data frame", bounds_kind(frame))
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


def bounds_kind(value: Any) -> str:
    """Return what something is that was passed as bounds."""
    return type(value).__name__


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def frame_names(frame: Any) -> list[str]:
    """Return the names of the columns of a table in memory, which must be different strings."""
    if isinstance(frame, Mapping):
        names = list(frame)
    else:
        names = list(getattr(frame, "column_names", getattr(frame, "columns", ())))
    lazy = hasattr(type(frame), "collect") or hasattr(type(frame), "compute")  # Polars and Dask
    if lazy or not names or not all(isinstance(name, str) for name in names):
        raise type_error(
            "X", "be a pandas, Polars or Arrow table with named columns, as bounds are by name",
            bounds_kind(frame),
        )  # fmt: skip
    if len(set(names)) != len(names):
        raise value_error("X", "have a different name for each column", names)
    return names


def frame_length(frame: Any) -> int:
    """Return the number of rows of a table in memory."""
    if isinstance(frame, Mapping):
        return len(next(iter(frame.values())))
    return int(frame.num_rows if hasattr(frame, "num_rows") else len(frame))


def frame_columns(
    frame: Any, bounds: PublicBounds, y: Any = None, *, target: bool = True
) -> Columns:
    """Return the columns that the bounds name of a table in memory: raw data.

    The target is ``y`` if that is given, or else a column of the table.
    """
    numbers, categories = needed(bounds, target=target and y is None)
    there = frame_names(frame)
    for name in (*numbers, *categories):
        if name not in there:
            raise DataError(f"X has no column {name!r}; it has {there}.")
    wanted = list(dict.fromkeys([*numbers, *categories]))
    pa = arrow()
    try:
        table = _arrow_table(frame, wanted)
        dates = dict(bounds.dates)
        for name in wanted:
            _check_kind(name, table[name].type, name in dates, name in categories)
        apart = isinstance(frame, Mapping) or type(frame).__module__.startswith("pandas")
        for name, levels in categories.items():
            if _declared((frame if apart else table)[name]):
                check_list("X", name, column_kind(table[name].type), levels)
        columns = columns_of(table, numbers, categories)
    except (pa.ArrowException, OverflowError):
        raise DataError("X has a column whose values are of different or unknown types.") from None
    if target and y is not None:
        _put_target(columns, bounds.target, y)
    return columns


def _put_target(columns: Columns, target: Number | Labels, y: Any) -> None:
    """Put targets that are apart from the table beside its columns."""
    if isinstance(target, Labels) and not target.numbers:
        pa, shape = arrow(), np.shape(y)
        try:
            told = pa.table({target.name: pa.array(y, from_pandas=True)})
            labels = tuple(map(str, target.labels))
            if _declared(y):
                check_list("y", target.name, column_kind(told[target.name].type), labels)
            found = columns_of(told, [], {target.name: labels})
        except (pa.ArrowException, OverflowError):
            raise DataError("y has values of different or unknown types.") from None
        columns.codes.update(found.codes)
    else:
        values = np.asarray(as_reals("y", y), dtype=np.float64)
        shape, columns.numbers[target.name] = values.shape, values
    if shape != (columns.n,):
        raise ValueError(
            f"y must have one entry per row of X; got shape {shape} for {columns.n} rows."
        )


def _check_kind(name: str, kind: Any, date: bool, category: bool) -> None:
    """Refuse a column whose type is not what its bounds say; the type is not named.

    Where a table declares objects, the type that Arrow finds depends on values.
    """
    found = column_kind(kind)
    if found == "null":
        return
    if category:
        fits, what = found in ("bool", "number", "text"), "categories"
    elif date:
        fits, what = is_date(found), "dates"
    else:
        fits, what = found in ("bool", "number"), "numbers"
    if not fits:
        call = f"pd.to_datetime(X[{name!r}], format='%d.%m.%Y')"
        how = f" {call} makes dates of text that is written so." if date else ""
        raise DataError(f"X: column {name!r} must hold {what}, as its bounds say.{how}")


def _declared(column: Any) -> bool:
    """Tell whether a column's type is declared; that of a list or of objects is in its values."""
    declared = getattr(column, "dtype", getattr(column, "type", None))
    return declared is not None and getattr(declared, "kind", "") != "O"


def _arrow_table(frame: Any, names: list[str]) -> Any:
    """Return some columns as an Arrow table."""
    pa = arrow()
    kind = type(frame).__module__.partition(".")[0]
    if kind == "pandas":
        return pa.Table.from_pandas(frame[names], preserve_index=False)
    if kind == "polars":
        return frame.select(names).to_arrow()
    if isinstance(frame, Mapping):
        return pa.table({name: pa.array(frame[name], from_pandas=True) for name in names})
    return pa.table(frame).select(names)
