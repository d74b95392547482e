"""Predictions to a file."""

from pathlib import Path

import numpy as np

from fastmix._types import FloatArray
from fastmix.tables.read import arrow, table_suffix


def write_predictions(path: Path, name: str, values: FloatArray) -> None:
    """Write one column of predictions, in the format that the file's name asks for."""
    suffix = table_suffix(path)
    if suffix == ".npz":
        with path.open("wb") as file:  # given a name, it might add another ending
            np.savez(file, allow_pickle=False, **{name: values})
        return
    pa = arrow()
    table = pa.table({name: values})
    if suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
