"""A table as the matrix of a regression, by public bounds only: in memory, or in chunks."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix.data import Chunk, Chunks, Streaming
from fastmix.data.arrow import file_groups, record_batches, table_files
from fastmix.data.chunks import Executor, Records
from fastmix.errors import DataError
from fastmix.tables.delimited import TextFormat, is_text
from fastmix.tables.read import (
    EPOCH,
    MISSING,
    Columns,
    check_columns,
    columns_of,
    csv_batches,
    table_fields,
)
from fastmix.tables.schema import OTHER, Category, Number, PublicBounds, Term


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
    places: dict[str, slice] = {}
    for feature in bounds.features:
        width = len(feature.columns(intercept))
        places[feature.name] = slice(at, at + width)
        known = kept
        if isinstance(feature, Number):
            X[:, at], known = _number(columns.numbers[feature.name], feature)
        elif isinstance(feature, Category):
            codes, levels = columns.codes[feature.name], feature.levels
            level = np.where(codes >= 0, codes, levels.index(OTHER))
            X[:, at : at + width] = level[:, None] == np.arange(len(levels))[-width:]
            known = codes != MISSING
        kept &= known
        at += width
    for feature in bounds.features:
        if isinstance(feature, Term):  # its factors may come after it
            X[:, places[feature.name]] = 1.0
            for factor, power in feature.factors:
                X[:, places[feature.name]] *= X[:, places[factor.name]] ** power
    y = np.zeros(columns.n)
    if target:
        y, known = _number(columns.numbers[bounds.target.name], bounds.target)
        kept &= known
    if target and bounds.missing == "drop":
        X, y = X[kept], y[kept]
    return X, y


def _number(values: FloatArray, feature: Number) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return clipped values with the public one for missing ones, and which were known."""
    if feature.since is not None:
        values = values - (feature.since - EPOCH).days
    known = ~np.isnan(values)
    return np.where(known, np.clip(values, feature.lower, feature.upper), feature.filler), known


def table_chunks(
    path: Path,
    bounds: PublicBounds,
    *,
    intercept: bool = True,
    executor: Executor | None = None,
    text: TextFormat | None = None,
) -> Chunks:
    """Return a table as chunks of what `encode` gives; only schemas are read.

    The path is a CSV, Parquet, Arrow or Feather file, or a folder of Parquet and Arrow files.
    ``text`` says how a CSV file is written.
    """
    numbers, categories = needed(bounds)
    chunks: list[Chunk] = []
    text = (text or TextFormat()).with_dates(bounds.dates)
    for file in [path] if is_text(path) else table_files(path):
        check_columns(file, numbers, categories, text)
        groups = [(0, None)] if is_text(file) else file_groups(file)
        for group, length in groups:
            known = length if bounds.missing == "impute" else None
            chunks.append(TableChunk(file, group, known, bounds, intercept, text))
    columns = bounds.columns(intercept)
    return Chunks(chunks, len(columns), columns, executor or Streaming())


@dataclass(frozen=True)
class TableChunk(Chunk):
    """A row group of a table, encoded by its bounds file; a CSV file is one group."""

    path: Path
    group: int
    length: int | None
    bounds: PublicBounds
    intercept: bool
    text: TextFormat

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the file."""
        return self.path.name

    def read(self) -> Iterator[Records]:
        numbers, categories = needed(self.bounds)
        batches = (
            csv_batches(self.path, numbers, list(categories), self.text)
            if is_text(self.path)
            else record_batches(self.path, self.group, [*numbers, *categories])
        )
        for batch in batches:
            columns = columns_of(batch, numbers, categories)
            yield encode(columns, self.bounds, intercept=self.intercept)


def table_bytes(path: Path, bounds: PublicBounds, *, intercept: bool = True) -> int:
    """Return the bytes that the encoded table takes in memory, about, from metadata alone.

    For what cannot be read in chunks, or not at all, it is 0.
    """
    if path.is_file() and is_text(path):
        # Text shrinks to about a tenth when it is compressed.
        return path.stat().st_size * (10 if path.suffix.lower() == ".gz" else 1)
    try:
        rows = sum(length for file in table_files(path) for _, length in file_groups(file))
    except DataError:
        return 0
    return 8 * rows * (len(bounds.columns(intercept)) + 1)


def table_columns(path: Path, text: TextFormat | None = None) -> list[str]:
    """Return the names of a table's columns: those of the first file if it is a folder."""
    file = path if path.is_file() or is_text(path) else table_files(path)[0]
    return list(table_fields(file, text or TextFormat()))


def needed(bounds: PublicBounds) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Return the columns of numbers, the target first, and the categories of the others."""
    numbers = [bounds.target.name, *(f.name for f in bounds.features if isinstance(f, Number))]
    return numbers, {f.name: f.categories for f in bounds.features if isinstance(f, Category)}
