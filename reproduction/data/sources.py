"""How a data set is found, read and made into a table; a missing file is asked for by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.datasets import fetch_openml

from fastmix.datasets import Table

__all__ = ["DataSet", "Source", "code", "indicators", "make_table"]

FloatArray = npt.NDArray[np.float64]
Bounds = tuple[float, float]

#: Folder with data files, when no ``data_dir`` is given.
FOLDER = "FASTMIX_DATA"


@dataclass(frozen=True)
class Source:
    """A table that is a local file, or a set of OpenML.

    Parameters
    ----------
    title : str
        Name of the data set.
    files : tuple of str
        Names of the file, the first one found is read; a name may hold a ``*``.
    columns : tuple of str
        Columns that must be there.
    rows : int
        Rows of the published file.
    address : str
        What to download, and from where.
    openml : int, str or None
        Number or name of the set on OpenML, if it is there.
    encoding : str
        Encoding of a text file.
    header : bool
        Whether the file names its columns; if not, ``columns`` are its columns in order, the
        target first.
    """

    title: str
    files: tuple[str, ...]
    columns: tuple[str, ...]
    rows: int
    address: str
    openml: int | str | None = None
    encoding: str = "utf-8"
    header: bool = True

    def read(
        self, data_dir: str | os.PathLike[str] | None, *, download: bool, check_rows: bool
    ) -> tuple[Any, str]:
        """Return the table as a data frame, and where it came from."""
        path = self._local(data_dir)
        if path is not None:
            frame, origin = self._parse(path), path.name
        elif download and self.openml is not None:
            frame, origin = self._fetch(), f"OpenML {self.openml}"
        else:
            raise FileNotFoundError(self._advice(data_dir))
        if not self.header and frame.shape[1] == len(self.columns):
            frame.columns = list(self.columns)
        missing = [name for name in self.columns if name not in frame.columns]
        if missing:
            raise ValueError(f"{self.title}: {origin} has no column {', '.join(missing)}.")
        if check_rows and len(frame) != self.rows:
            raise ValueError(
                f"{self.title}: {origin} has {len(frame)} rows, the published file has "
                f"{self.rows}; check_rows=False accepts it."
            )
        return frame[list(self.columns)], f"{self.title} ({origin})"

    def _local(self, data_dir: str | os.PathLike[str] | None) -> Path | None:
        place = data_dir if data_dir is not None else os.environ.get(FOLDER)
        if not place:
            return None
        folder = Path(place)
        if folder.is_file():
            return folder
        for name in self.files:
            found = sorted(folder.glob(name))
            if found:
                return found[0]
        return None

    def _parse(self, path: Path) -> Any:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        header = "infer" if self.header else None
        return pd.read_csv(path, encoding=self.encoding, low_memory=False, header=header)

    def _fetch(self) -> Any:
        which = {"data_id" if isinstance(self.openml, int) else "name": self.openml}
        found = fetch_openml(**which, as_frame=True, parser="auto")
        return found.frame if self.header else pd.concat([found.target, found.data], axis=1)

    def _advice(self, data_dir: str | os.PathLike[str] | None) -> str:
        looked = f" in {os.fspath(data_dir)}" if data_dir is not None else ""
        lines = [
            f"{self.title}: no file {' or '.join(self.files)}{looked}.",
            f"Download {self.address}, and name its folder with --data-dir or in {FOLDER}",
        ]
        if self.openml is not None:
            lines[-1] += f"; or pass --download to fetch set {self.openml} from OpenML"
        return " ".join(lines) + "."


@dataclass(frozen=True)
class DataSet:
    """A data set of one or more files.

    Parameters
    ----------
    sources : tuple of Source
        Its files.
    build : callable
        Makes the table, from one data frame per source and from where the first one came.
    """

    sources: tuple[Source, ...]
    build: Callable[..., Table]

    def load(
        self, data_dir: str | os.PathLike[str] | None, *, download: bool, check_rows: bool
    ) -> Table:
        """Read the files and make the table."""
        folder = data_dir if data_dir is not None else os.environ.get(FOLDER)
        first = self.sources[0]
        if len(self.sources) > 1 and folder and Path(folder).is_file():
            raise ValueError(
                f"{first.title}: data_dir must be the folder of all files; got a file."
            )
        found = [s.read(data_dir, download=download, check_rows=check_rows) for s in self.sources]
        return self.build(*(frame for frame, _ in found), found[0][1])


def code(column: Any) -> Any:
    """Return the values of a column of codes as text: 1, 1.0 and "1" are the same code."""
    return column.astype(str).str.strip().str.removesuffix(".0")


def indicators(
    title: str, frame: Any, codes: Mapping[str, tuple[str, ...]]
) -> dict[str, FloatArray]:
    """Return one indicator for each of the given codes of each column, whatever codes occur.

    Parameters
    ----------
    title : str
        Name of the data set, for the error.
    frame : data frame
        The table.
    codes : mapping
        Codes of each column; every entry of the column must be one of them.

    Returns
    -------
    dict
        Indicators by their names, ``column=code``.
    """
    found: dict[str, FloatArray] = {}
    for name, values in codes.items():
        text = code(frame[name])
        if not text.isin(values).all():
            raise ValueError(f"{title}: column {name} holds a value that is not in its list.")
        for value in values:
            found[f"{name}={value}"] = (text == value).to_numpy(dtype=np.float64)
    return found


def make_table(
    numbers: FloatArray,
    bounds: Mapping[str, Bounds],
    coded: Mapping[str, FloatArray],
    target: tuple[str, Any, Bounds],
    provenance: str,
) -> Table:
    """Return a table of numbers with bounds, and of indicators.

    Parameters
    ----------
    numbers : ndarray of shape (n, d)
        Numeric features.
    bounds : mapping
        Their names and public bounds, in order.
    coded : mapping
        Indicators by name.
    target : tuple
        Name, values and public bounds of the target.
    provenance : str
        Where the data come from and what was done to them.

    Returns
    -------
    Table
        The numeric features, then the indicators, and the target.
    """
    name, values, bounds_y = target
    pairs: Sequence[Bounds] = [*bounds.values(), *[(0.0, 1.0)] * len(coded)]
    lower, upper = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    return Table(
        X=np.ascontiguousarray(np.column_stack([numbers, *coded.values()])),
        y=np.array(values, dtype=np.float64),
        feature_names=(*bounds, *coded),
        target_name=name,
        bounds_X=(lower, upper),
        bounds_y=bounds_y,
        provenance=provenance,
    )
