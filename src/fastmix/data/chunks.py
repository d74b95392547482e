"""Rows that are read in chunks, because they are too many for memory or lie elsewhere.

A `Chunk` is read anew in every pass, one block after the other; an `Executor` says where: on this
machine (`Streaming`) or on a cluster (`fastmix.data.dask`).  The rows of a block are mapped inside
it, so nothing that is as long as the data is ever held.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.data import reductions
from fastmix.data.maps import LabelMap, RowMap, TargetMap
from fastmix.data.persons import Hashed, Persons, counted_weights, hash_ids, joined, new_key
from fastmix.data.reductions import Block, Measure, Pass
from fastmix.data.rows import Rows
from fastmix.data.weights import checked_weights, row_weights
from fastmix.errors import DataError
from fastmix.schema.values import as_reals, check_finite
from fastmix.sketches import BlockDraw, SketchDraw

T = TypeVar("T")
Records: TypeAlias = tuple[npt.NDArray[np.floating[Any]], FloatArray]
#: Called with the name of a pass and how much of it is done, from 0 to 1; inside of a chunk, where
#: that may follow its text, without a name: for a bar that vanishes, not for lines that stay.
Report: TypeAlias = Callable[[str, float], None]
BLOCK_BYTES = 8 << 20  #: Bytes of records that are read at a time.
KEPT_BYTES = 1 << 30  #: Bytes of decoded records that stay in memory between passes; public.
CHANGED = "the data have changed while they were being fitted."


class Chunk(ABC):
    """Consecutive records that can be read again and again."""

    name: str  #: What errors about a file call it.
    length: int | None  #: Number of records, None if it is not known before they are read.
    blocks: int = 1  #: How many blocks `read` yields, about: for progress.
    decodes: bool = False  #: Whether `read` makes new arrays each time, at some cost.

    @abstractmethod
    def read(self) -> Iterator[Records]:
        """Yield the records as arrays of shape (m, d) and (m,), a block at a time."""

    def read_ids(self) -> Iterator[Any]:
        """Yield who the records belong to, in the same order; refuse where that is not known."""
        raise value_error("groups", "be known for these chunks", type(self).__name__)

    def read_weights(self) -> Iterator[Any]:
        """Yield the sample weights of the records; refuse where they are not known."""
        raise value_error("sample_weight", "be known for these chunks", type(self).__name__)


@dataclass(frozen=True)
class ArrayChunk(Chunk):
    """Records of an array, such as a memory map of a file."""

    name: str
    X: npt.NDArray[np.floating[Any]]
    y: FloatArray

    @property
    def length(self) -> int:  # type: ignore[override]
        """Number of records."""
        return len(self.X)

    def read(self) -> Iterator[Records]:
        step = max(1, BLOCK_BYTES // (self.X.itemsize * max(1, self.X.shape[1])))
        for start in range(0, len(self.X), step):
            yield self.X[start : start + step], self.y[start : start + step]


@dataclass(frozen=True)
class Place:
    """Where a chunk is among all: its number, its rows once counted, their weights if any."""

    index: int
    start: int = 0
    stop: int | None = None
    persons: Persons | None = None


#: Some records, the number of their chunk, the position of the first among all rows, and persons.
Reading: TypeAlias = tuple[int, int, Records, Persons | None]


def readings(chunks: Iterable[tuple[Chunk, Place]]) -> Iterator[Reading]:
    """Yield the records of all chunks, which must be as many as were counted."""
    for chunk, place in chunks:
        end = place.start
        for records in chunk.read():
            start, end = end, end + len(records[0])
            if place.stop is not None and end > place.stop:
                raise DataError(CHANGED)
            own = place.persons
            if own is not None:
                own = own.of_rows(slice(start - place.start, end - place.start))
            yield place.index, start, records, own
        if place.stop is not None and end < place.stop:
            raise DataError(CHANGED)


@dataclass(frozen=True)
class Work:
    """A pass with the public maps of the rows that it reads: what is done to each chunk."""

    task: Pass[Any]
    d: int
    row_map: RowMap
    target_map: TargetMap | LabelMap
    checked: bool
    measure: Measure | None = None

    def blocks(self, readings: Iterable[Reading]) -> Iterator[Block]:
        """Yield records as blocks of rows of bounded norm; errors name neither chunk nor value.

        In which chunk the trouble is depends on the data, and a chunk may be a single record.
        """
        for index, start, (features, target), persons in readings:
            if not len(features):
                continue
            X, y = as_reals("X", features), as_reals("y", target).astype(np.float64, copy=False)
            if X.shape != (len(y), self.d) or y.ndim != 1:
                raise DataError(f"the data must have {self.d} features and a target in each row.")
            check_finite(y)
            own: dict[str, Any] = {}
            if persons is not None:
                kept = persons.weights > 0.0  # of rows that were all checked before
                kept[0] |= not kept.any()  # so that there is a value if no row counts at all
                X, y, persons = X[kept], y[kept], persons.of_rows(kept)
                own = {"weights": persons.weights, "persons": persons.codes}
            rows = self.row_map(X, checked=self.checked)
            block = Block(rows, self.target_map(y), start, index, **own)
            yield block.measured(self.measure)

    def of_no_rows(self) -> Any:
        """Return the value of an empty block."""
        block = Block(self.row_map(np.empty((0, self.d))), self.target_map(np.empty(0)))
        return self.task.value(block.measured(self.measure))

    def fold(self, values: Iterable[Any]) -> Any:
        """Return the value of all blocks together; None if there are none."""
        return reductions.folded(self.task.combine, values)


class Executor(ABC):
    """Where chunks are read and passes run."""

    @abstractmethod
    def run(self, work: Work, chunks: Sequence[tuple[Chunk, Place]], report: Report) -> Any:
        """Return the value of a pass over all chunks; None if there are no rows."""

    @abstractmethod
    def hashed(self, chunks: Sequence[Chunk], key: bytes) -> list[Hashed]:
        """Return the hashed ids of each chunk; ids themselves stay where they are read."""

    @abstractmethod
    def weights(self, chunks: Sequence[Chunk]) -> list[FloatArray]:
        """Return the sample weights of each chunk."""


def chunk_weights(chunk: Chunk) -> FloatArray:
    """Return the sample weights of a chunk."""
    return np.concatenate([np.empty(0), *map(checked_weights, chunk.read_weights())])


def hashed_ids(chunk: Chunk, key: bytes) -> Hashed:
    """Return the hashed ids of a chunk."""
    return joined([hash_ids(ids, key) for ids in chunk.read_ids()])


class Streaming(Executor):
    """Here: chunk after chunk, with the next block read while the kernels work on this one."""

    def run(self, work: Work, chunks: Sequence[tuple[Chunk, Place]], report: Report) -> Any:
        def reported() -> Iterator[Reading]:
            last, count = -1, 0
            for reading in read_ahead(readings(chunks)):
                last, count = reading[0], 0 if reading[0] != last else count + 1
                if count < (blocks := chunks[last][0].blocks):
                    part = (last + count / blocks) / len(chunks)
                    report("" if count else work.task.name, part)
                yield reading

        value = work.fold(map(work.task.value, work.blocks(reported())))
        report(work.task.name, 1.0)
        return value

    def hashed(self, chunks: Sequence[Chunk], key: bytes) -> list[Hashed]:
        return [hashed_ids(chunk, key) for chunk in chunks]

    def weights(self, chunks: Sequence[Chunk]) -> list[FloatArray]:
        return [chunk_weights(chunk) for chunk in chunks]


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items, each of which is made while the one before it is used."""
    end: Any = object()
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = reader.submit(next, items, end)
            yield item


@dataclass(frozen=True)
class Chunks:
    """A table in chunks with d features, before anything of it is read."""

    chunks: Sequence[Chunk]
    d: int
    names: Sequence[str] | None = None
    executor: Executor = field(default_factory=Streaming)  #: Where it is read.
    labels: Sequence[Any] | None = None  #: Of the features, where not all are strings: no names.
    grouped: bool = False  #: Whether its chunks know whom their records belong to.
    weighted: bool = False  #: Whether they know how much each record counts.
    coded: bool = False  #: Whether targets are places in a public, sorted list of labels.
    memory: int = KEPT_BYTES  #: Bytes that its decoded records may take between passes.

    @property
    def n(self) -> int | None:
        """Number of records, None if it is not known before they are read."""
        lengths = [chunk.length for chunk in self.chunks]
        return None if None in lengths else sum(filter(None, lengths))


def _silent(name: str, part: float) -> None:
    """Report nothing."""


class ChunkRows(Rows):
    """Rows of a table in chunks; making them reads all of it once, to check and to count."""

    def __init__(
        self,
        table: Chunks,
        row_map: RowMap,
        target_map: TargetMap | LabelMap,
        report: Report = _silent,
        most_rows: int | None = None,
        most_weight: float | None = None,
    ) -> None:
        self._table, self._row_map, self._target_map = table, row_map, target_map
        self._report, self._checked = report, False
        self._measure: Measure | None = None
        self._chunks = [(chunk, Place(i)) for i, chunk in enumerate(table.chunks)]
        self.d, self.bound = row_map.width(table.d), row_map.bound
        self.constant = row_map.constant / row_map.divisor
        lengths = self.run(Pass("check", reductions.lengths))
        ends = accumulate((lengths[i] for i in range(len(self._chunks))), initial=0)
        cuts = list(enumerate(pairwise(ends)))
        self._chunks = [(table.chunks[i], Place(i, *cut)) for i, cut in cuts]
        self.n = self.table_rows = sum(lengths.values())
        if most_rows is not None or most_weight is not None:
            self._weigh(most_rows, most_weight)
        self._checked = True

    def _weigh(self, most_rows: int | None, most_weight: float | None) -> None:
        """Let n count persons, and give the rows of each the weight of one record at most."""
        table, own, key = self._table, None, new_key()
        sizes = [(place.stop or 0) - place.start for _, place in self._chunks]
        if most_weight is not None:
            read = table.executor.weights(table.chunks)
            if list(map(len, read)) != sizes:
                raise DataError("sample_weight must have a weight for each row, and no more.")
            own = row_weights(np.concatenate([np.empty(0), *read]), most_weight)
        hashed: list[Hashed] | None = None
        if most_rows is not None:
            hashed = table.executor.hashed(table.chunks, key)
            if [len(part.hashes) for part in hashed] != sizes:
                raise DataError("groups must have an id for each row, and no more.")
        self.persons = counted_weights(self.n, hashed, most_rows, own, key)
        self.n, persons = self.persons.count, self.persons
        self._chunks = [
            (chunk, replace(place, persons=persons.of_rows(slice(place.start, place.stop))))
            for chunk, place in self._chunks
        ]

    def run(self, task: Pass[T]) -> T:
        maps = self._row_map, self._target_map
        work = Work(task, self._table.d, *maps, self._checked, self._measure)
        report = _silent if task.quiet else self._report
        found = self._table.executor.run(work, self._chunks, report)
        value: T = work.of_no_rows() if found is None else found
        parts: tuple[Any, ...] = value if isinstance(value, tuple) else (value,)
        if self._checked and not all(np.isfinite(part).all() for part in parts):
            raise DataError(CHANGED)
        return value

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Refuse: what needs the rows themselves needs them in memory."""
        raise value_error("rows", "be in memory for this", type(self).__name__)

    def apply(self, draw: SketchDraw) -> FloatArray:
        value = partial(reductions.sketched, draw=_in_blocks(draw))
        return self.run(Pass("sketch", value))

    def sketch(self, draw: SketchDraw) -> tuple[FloatArray, float]:
        draw = _in_blocks(draw)
        Z = self.apply(draw)
        value = partial(reductions.distortion, draw=draw, Z=Z)
        task = Pass("distortion", value, reductions.largest_and_sum, large=True)
        m_hat, again = self.run(task)
        # The sensitivity of m-hat is that of one matrix; the slack is far above rounding.
        slack = 1e-9 * self.bound * math.sqrt(self.n / draw.k2)
        if np.abs(again - draw.probed(Z)).max() > slack:
            raise DataError(CHANGED)
        return Z, m_hat

    def measured(self, measure: Measure) -> ChunkRows:
        rows = copy(self)
        rows._measure = measure
        return rows

    def with_targets(self, target_map: TargetMap | LabelMap) -> ChunkRows:
        """Return the same rows with other targets."""
        rows = copy(self)
        rows._target_map, rows._joint = target_map, None
        return rows

    def centred(self, mean: FloatArray) -> ChunkRows:
        rows = copy(self)
        rows._row_map = self._row_map.centred(mean)
        rows.d = rows._row_map.width(self._table.d)
        rows.bound, rows.constant, rows._joint = rows._row_map.bound, 0.0, None
        return rows


def _in_blocks(draw: SketchDraw) -> BlockDraw:
    if not isinstance(draw, BlockDraw):
        raise value_error(
            "sketch",
            "be 'kerdock' or 'sparse' for data that are not in memory",
            type(draw).__name__,
        )
    return draw
