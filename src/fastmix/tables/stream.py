"""A table and its bounds file as chunks: for tables that are larger than memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastmix.data import Chunk, Chunks, Streaming
from fastmix.data.arrow import file_groups, record_batches, table_files
from fastmix.data.chunks import Executor, Records
from fastmix.errors import DataError
from fastmix.tables.encode import encode
from fastmix.tables.read import check_columns, columns_of, csv_batches
from fastmix.tables.schema import Category, Number, PublicBounds


def table_chunks(
    path: Path, bounds: PublicBounds, *, intercept: bool = True, executor: Executor | None = None
) -> Chunks:
    """Return a table as chunks of what `encode` gives; only schemas are read.

    The path is a CSV, Parquet, Arrow or Feather file, or a folder of Parquet and Arrow files.
    """
    numbers, categories = needed(bounds)
    chunks: list[Chunk] = []
    for file in [path] if _is_csv(path) else table_files(path):
        check_columns(file, numbers, categories)
        groups = [(0, None)] if _is_csv(file) else file_groups(file)
        for group, length in groups:
            known = length if bounds.missing == "impute" else None
            chunks.append(TableChunk(file, group, known, bounds, intercept))
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

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the file."""
        return self.path.name

    def read(self) -> Iterator[Records]:
        numbers, categories = needed(self.bounds)
        names = [*numbers, *categories]
        batches: Iterator[Any]
        if _is_csv(self.path):
            batches = csv_batches(self.path, numbers, list(categories))
        else:
            batches = record_batches(self.path, self.group, names)
        for batch in batches:
            columns = columns_of(batch, numbers, categories)
            yield encode(columns, self.bounds, intercept=self.intercept)


def table_bytes(path: Path, bounds: PublicBounds, *, intercept: bool = True) -> int:
    """Return the bytes that the encoded table takes in memory, about, from metadata alone.

    For what cannot be read in chunks, or not at all, it is 0.
    """
    if path.is_file() and _is_csv(path):
        return path.stat().st_size
    try:
        rows = sum(length for file in table_files(path) for _, length in file_groups(file))
    except DataError:
        return 0
    return 8 * rows * (len(bounds.columns(intercept)) + 1)


def needed(bounds: PublicBounds) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Return the columns of numbers, the target first, and the categories of the others."""
    numbers = [bounds.target.name, *(f.name for f in bounds.features if isinstance(f, Number))]
    return numbers, {f.name: f.categories for f in bounds.features if isinstance(f, Category)}


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"
