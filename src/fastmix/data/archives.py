"""NumPy archives: an array of one axis is a column, one of two axes has a column per place."""

import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from fastmix.data.arrow import pyarrow
from fastmix.data.columns import arrow_array
from fastmix.data.delimited import TextFormat
from fastmix.data.stored import StoredFile
from fastmix.errors import DataError

_KINDS = {"f": "number", "i": "number", "u": "number", "b": "bool", "U": "text", "S": "text"}


class Archive(StoredFile):
    """A NumPy archive."""

    def fields(self, text: TextFormat) -> dict[str, str]:
        return {name: kind for name, (kind, _, _) in self._columns().items()}

    def batches(self, numbers: list[str], texts: list[str], text: TextFormat) -> Iterator[Any]:
        fields, names = self._columns(), [*numbers, *texts]
        with self._reading(), np.load(self.path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in {fields[name][1] for name in names}}
        if len({len(array) for array in arrays.values()}) > 1:
            raise DataError(f"{self.name}: its arrays must have the same number of rows.")
        places = [(name, *fields[name][1:]) for name in names]
        columns = {name: arrays[key] if at is None else arrays[key][:, at]
                   for name, key, at in places}  # fmt: skip
        yield pyarrow().table({name: arrow_array(column) for name, column in columns.items()})

    def _columns(self) -> dict[str, tuple[str, str, int | None]]:
        """Return kind, array and index of each column, from the headers of the arrays only."""
        columns: dict[str, tuple[str, str, int | None]] = {}
        with self._reading(), zipfile.ZipFile(self.path) as archive:
            for member in archive.namelist():
                with archive.open(member) as file:
                    first = np.lib.format.read_magic(file)[0] == 1
                    header = "read_array_header_1_0" if first else "read_array_header_2_0"
                    shape, _, dtype = getattr(np.lib.format, header)(file)
                name = member.removesuffix(".npy")
                kind = _KINDS.get(dtype.kind, str(dtype))
                if len(shape) == 1:
                    columns[name] = (kind, name, None)
                elif len(shape) == 2:
                    columns |= {f"{name}_{j}": (kind, name, j) for j in range(shape[1])}
        return columns
