"""Predictions to a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fastmix._types import FloatArray
from fastmix.errors import DataError
from fastmix.tables.read import _ARROW, _arrow

_SUFFIXES = (".csv", ".parquet", *_ARROW, ".npz")


def check_suffix(path: Path) -> None:
    """Refuse the name of a file whose ending names no format, before anything is computed."""
    if path.suffix.lower() not in _SUFFIXES:
        raise DataError(f"The name {path.name!r} must end in one of {', '.join(_SUFFIXES)}.")


def write_predictions(path: Path, name: str, values: FloatArray) -> None:
    """Write one column of predictions, in the format that the file's name asks for."""
    check_suffix(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        with path.open("wb") as file:  # given a name, it might add another ending
            np.savez(file, allow_pickle=False, **{name: values})
        return
    pa = _arrow()
    table = pa.table({name: values})
    if suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
