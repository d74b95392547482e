"""Where the files of a data set are looked for, and what is said when they are not there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastmix.datasets.table import FloatArray

__all__ = ["Source", "bounds", "code", "one_hot", "pandas"]

#: Folder with data files, when no ``data_dir`` is given.
FOLDER = "FASTMIX_DATA"


def pandas() -> Any:
    """Import pandas, or name the extra that brings it."""
    try:
        import pandas as module
    except ImportError:
        raise ImportError(
            'loading a table needs pandas and pyarrow: pip install "fastmix[data]".'
        ) from None
    return module


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
            return pandas().read_parquet(path)
        header = "infer" if self.header else None
        return pandas().read_csv(path, encoding=self.encoding, low_memory=False, header=header)

    def _fetch(self) -> Any:
        from sklearn.datasets import fetch_openml

        pd = pandas()
        which = {"data_id" if isinstance(self.openml, int) else "name": self.openml}
        found = fetch_openml(**which, as_frame=True, parser="auto")
        return found.frame if self.header else pd.concat([found.target, found.data], axis=1)

    def _advice(self, data_dir: str | os.PathLike[str] | None) -> str:
        looked = f" in {os.fspath(data_dir)}" if data_dir is not None else ""
        lines = [
            f"{self.title}: no file {' or '.join(self.files)}{looked}.",
            f"Download {self.address}, and give its folder as data_dir or in {FOLDER}",
        ]
        if self.openml is not None:
            lines[-1] += f"; or pass download=True to fetch set {self.openml} from OpenML"
        return " ".join(lines) + "."


def code(column: Any) -> Any:
    """Return the values of a column of codes as text: 1, 1.0 and "1" are the same code."""
    return column.astype(str).str.strip().str.removesuffix(".0")


def one_hot(title: str, column: Any, values: tuple[str, ...]) -> tuple[FloatArray, tuple[str, ...]]:
    """Return one indicator for each of the given values, whatever values occur."""
    text = code(column).to_numpy()
    indicators = (text[:, None] == np.array(values, dtype=object)).astype(np.float64)
    if not (indicators.sum(axis=1) == 1.0).all():
        raise ValueError(f"{title}: column {column.name} holds a value that is not in its list.")
    return indicators, tuple(f"{column.name}={value}" for value in values)


def bounds(pairs: list[tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
    """Return pairs of bounds as two arrays."""
    lower, upper = np.array(pairs, dtype=np.float64).T
    return lower.copy(), upper.copy()
