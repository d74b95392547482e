"""Encoding of a table as a matrix by public bounds alone, in memory or in chunks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix.data import Chunk, Chunks, Streaming
from fastmix.data.arrow import file_groups, id_values, table_files, weight_values
from fastmix.data.chunks import KEPT_BYTES, Executor, Records
from fastmix.data.columns import Columns, columns_of
from fastmix.data.delimited import TextFormat, is_text
from fastmix.data.lines import CSV_BYTES
from fastmix.data.read import Table, batches, check_columns, parts, stored, table_fields
from fastmix.data.stored import Stored
from fastmix.errors import DataError
from fastmix.schema.bounds import PublicBounds
from fastmix.schema.elements import EPOCH, MISSING
from fastmix.schema.features import OTHER, Category, Labels, Number, Term


def encode(
    columns: Columns, bounds: PublicBounds, *, intercept: bool = True, target: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Clip, impute and one-hot encode the columns that `read_columns` returns for these bounds.

    With an ``intercept``, the first category of each list has no column. Without a ``target``, the
    targets are zeros, and no row is dropped. With the rule "impute", the result has as many rows
    as the table, so its shape reveals no value.
    """
    X = np.zeros((columns.n, len(bounds.columns(intercept))))
    at = 0
    places: dict[str, slice] = {}
    for feature in bounds.features:
        width = len(feature.columns(intercept))
        places[feature.name] = slice(at, at + width)
        if isinstance(feature, Number):
            X[:, at] = _number(columns.numbers[feature.name], feature)
        elif isinstance(feature, Category):
            codes, levels = columns.codes[feature.name], feature.levels
            level = np.where(codes >= 0, codes, levels.index(OTHER))
            X[:, at : at + width] = level[:, None] == np.arange(len(levels))[-width:]
        at += width
    for feature in bounds.features:
        if isinstance(feature, Term):  # its factors may come after it
            X[:, places[feature.name]] = 1.0
            for factor, power in feature.factors:
                X[:, places[feature.name]] *= X[:, places[factor.name]] ** power
    y = np.zeros(columns.n)
    if target:
        y = _target(columns, bounds.target)
    if target and bounds.missing == "drop":
        kept = complete(columns, bounds)
        X, y = X[kept], y[kept]
    return X, y


def complete(columns: Columns, bounds: PublicBounds) -> npt.NDArray[np.bool_]:
    """Return which rows have no missing value; the rule "drop" keeps these rows."""
    kept = np.ones(columns.n, dtype=bool)
    for feature in (bounds.target, *bounds.features):
        if feature.name in columns.numbers:
            kept &= ~np.isnan(columns.numbers[feature.name])
        elif feature.name in columns.codes:
            kept &= columns.codes[feature.name] != MISSING
    return kept


def in_days(values: FloatArray, feature: Number) -> FloatArray:
    """Return dates in days since the public date of their bounds; other numbers as they are."""
    return values if feature.since is None else values - (feature.since - EPOCH).days


def _target(columns: Columns, target: Number | Labels) -> FloatArray:
    """Return targets: clipped numbers, or places of labels, -1 for rows that count as absent."""
    if isinstance(target, Number):
        return _number(columns.numbers[target.name], target)
    if target.numbers:
        return target.places(columns.numbers[target.name])
    return np.maximum(columns.codes[target.name], -1).astype(np.float64)


def _number(values: FloatArray, feature: Number) -> FloatArray:
    """Return clipped values, with the public value in place of missing values."""
    clipped = np.clip(in_days(values, feature), feature.lower, feature.upper)
    return np.where(np.isnan(values), feature.filler, clipped)


def table_chunks(
    path: Table,
    bounds: PublicBounds,
    *,
    intercept: bool = True,
    executor: Executor | None = None,
    person: str | None = None,
    weight: str | None = None,
    text: TextFormat | None = None,
    memory: int = KEPT_BYTES,
) -> Chunks:
    """Return a table as chunks, which `encode` makes of its files; reads only their schemas.

    The path is a file, a folder of Parquet and Arrow files, or a table that is read as a whole;
    ``person`` is a column of ids, ``weight`` a column of sample weights, and ``text`` the format of
    a CSV file. ``memory`` are the bytes that encoded records may take between passes.
    """
    numbers, categories = needed(bounds)
    chunks: list[Chunk] = []
    text = (text or TextFormat()).of(bounds)
    for file in parts(path):
        own = [[] if name is None else [name] for name in (weight, person)]
        check_columns(file, [*numbers, *own[0]], categories, text, own[1])
        for group, length in _groups(file):
            known = length if bounds.missing == "impute" else None
            chunks.append(TableChunk(file, group, known, bounds, intercept, text, person, weight))
    columns = bounds.columns(intercept)
    beside: Any = {"grouped": person is not None, "weighted": weight is not None}
    beside["coded"] = isinstance(bounds.target, Labels)
    return Chunks(chunks, len(columns), columns, executor or Streaming(), memory=memory, **beside)


def _groups(table: Table) -> list[tuple[int, int | None]]:
    """Return number and length of each group of records that is read apart, without a value."""
    if (own := stored(table)) is not None:
        return [(0, own.rows)]
    assert isinstance(table, Path)
    return [(0, None)] if is_text(table) else [*file_groups(table)]


@dataclass(frozen=True)
class TableChunk(Chunk):
    """A row group of a table, encoded by its bounds file; a CSV file is one group."""

    path: Table
    group: int
    length: int | None
    bounds: PublicBounds
    intercept: bool
    text: TextFormat
    person: str | None = None
    weight: str | None = None
    decodes = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the file."""
        return self.path.name

    @property
    def blocks(self) -> int:  # type: ignore[override]
        """Approximate number of blocks of text in a CSV file."""
        text = isinstance(self.path, Path) and is_text(self.path)
        return 1 + _text_bytes(self.path) // CSV_BYTES if text else 1  # type: ignore[arg-type]

    def read(self) -> Iterator[Records]:
        return (records for _, _, records in self._encoded([], []))

    def read_ids(self) -> Iterator[Any]:
        if self.person is None:
            return super().read_ids()
        return self._read_beside(self.person, id_values, number=False)

    def read_weights(self) -> Iterator[Any]:
        if self.weight is None:
            return super().read_weights()
        return self._read_beside(self.weight, weight_values, number=True)

    def _read_beside(
        self, name: str, values: Callable[[Any], Any], *, number: bool
    ) -> Iterator[Any]:
        """Yield the values of a column that is not a feature, for the rows that `read` yields."""
        dropped, reopened = self.bounds.missing == "drop", getattr(self.path, "reopened", False)
        number = number or name in needed(self.bounds)[0]
        own = ([name], []) if number else ([], [name])
        if not dropped and not reopened:
            yield from (values(batch[name]) for batch in self._batches(*own))
            return
        for batch, columns, _ in self._encoded(*own):
            found = values(batch[name])
            yield found[complete(columns, self.bounds)] if dropped else found

    def _encoded(
        self, numbers: list[str], texts: list[str]
    ) -> Iterator[tuple[Any, Columns, Records]]:
        """Yield batches, their columns and the records that these become.

        The records of a table that is opened anew in each pass must be those of the first pass.
        """
        own, categories = needed(self.bounds)
        digest = blake2b()
        for batch in self._batches([*own, *numbers], [*categories, *texts]):
            columns = columns_of(batch, own, categories, self.text)
            X, y = encode(columns, self.bounds, intercept=self.intercept)
            if getattr(self.path, "reopened", False):  # known from its first batch on
                digest.update(np.column_stack([X, y]).tobytes())
            yield batch, columns, (X, y)
        if isinstance(self.path, Stored) and self.path.reopened:
            self.path.check_same(digest.digest())

    def _batches(self, numbers: list[str], texts: list[str]) -> Iterator[Any]:
        """Yield columns of the table; a CSV file has columns of numbers and of text."""
        numbers = [*dict.fromkeys(numbers)]
        texts = [name for name in dict.fromkeys(texts) if name not in numbers]
        return batches(self.path, self.group, numbers, texts, self.text)


def table_bytes(path: Table, bounds: PublicBounds, *, intercept: bool = True) -> int:
    """Estimate from metadata the bytes that the encoded table takes in memory.

    The result is 0 for tables that are read as a whole, or not at all.
    """
    if not isinstance(path, Path) or (path.is_file() and stored(path) is not None):
        return 0
    if path.is_file() and is_text(path):
        return _text_bytes(path)
    try:
        rows = sum(length for file in table_files(path) for _, length in file_groups(file))
    except DataError:
        return 0
    return 8 * rows * (len(bounds.columns(intercept)) + 1)


def _text_bytes(path: Path) -> int:
    """Estimate the bytes of a text file; compression shrinks text to about a tenth."""
    return path.stat().st_size * (10 if path.suffix.lower() == ".gz" else 1)


def table_columns(path: Table, text: TextFormat | None = None) -> list[str]:
    """Return the names of the columns of a file, or of the first file in a folder."""
    return list(table_fields(parts(path)[0], text or TextFormat()))


def needed(
    bounds: PublicBounds, *, target: bool = True
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Return the names of columns of numbers, and the lists of categories; the target first."""
    own = bounds.target
    numbers = [f.name for f in bounds.features if isinstance(f, Number)]
    listed = {f.name: f.categories for f in bounds.features if isinstance(f, Category)}
    if not target:
        return numbers, listed
    if isinstance(own, Labels) and not own.numbers:
        return numbers, {own.name: tuple(map(str, own.labels)), **listed}
    return [own.name, *numbers], listed
