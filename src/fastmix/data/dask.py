"""Passes on a Dask cluster.

Workers get the pass, the public maps and their blocks; the client gets one combined value.  Noise
is drawn by the client alone.  A pass may run twice, after a worker is lost, without a change of
its value.  Tasks never raise: Dask would write their arguments, which are data, to its logs.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.data.chunks import (
    ArrayChunk,
    Chunk,
    Chunks,
    Executor,
    Place,
    Report,
    Work,
    chunk_weights,
    hashed_ids,
    readings,
)
from fastmix.data.persons import Hashed, InvalidGroupError, hash_ids
from fastmix.data.weights import InvalidWeightError, checked_weights
from fastmix.errors import DataError, InvalidValueError
from fastmix.kernels import one_thread
from fastmix.schema.values import as_reals

#: Values that one task combines.
_FAN_IN = 16
#: Tasks of a pass for each core: enough to even out slow workers, few enough to add up.
_LANES = 4


@dataclass(frozen=True)
class Failure:
    """What went wrong in a chunk, in place of its value."""

    kind: type[DataError]
    message: str

    def error(self) -> DataError:
        """Return it as an error."""
        if self.kind in (InvalidGroupError, InvalidWeightError):
            return self.kind()
        return self.kind(self.message)


@dataclass(frozen=True)
class DaskChunk(Chunk):
    """A block of a Dask collection: delayed features and targets, None for the last feature."""

    name: str
    length: int | None
    X: Any
    y: Any
    groups: Any = None
    weights: Any = None

    def read(self) -> Any:
        """Refuse: only workers read such a chunk."""
        raise value_error("executor", "be a Cluster for blocks of a Dask collection", "Streaming")


class Cluster(Executor):
    """On the workers of a Dask client's cluster, or without one where Dask itself would run."""

    def __init__(self, client: Any = None) -> None:
        self._client = client

    def run(self, work: Work, chunks: Sequence[tuple[Chunk, Place]], report: Report) -> Any:
        # Keys of tasks are random, not hashes of what is computed.
        delayed = partial(_dask().delayed, pure=False)
        report(work.task.name, 0.0)
        shared = delayed(work, traverse=False)

        def task(function: Callable[..., Any]) -> Any:
            """Return a task: what it needs of a pass comes with it, sketched data by themselves."""
            large = work.task.large
            return partial(delayed(function), shared) if large else delayed(partial(function, work))

        parts = [
            task(_run_arrays)(chunk.name, place, chunk.X, chunk.y)
            for chunk, place in chunks
            if isinstance(chunk, DaskChunk)
        ]
        if parts and len(parts) < len(chunks):
            raise value_error("chunks", "all be blocks of a Dask collection, or none", len(parts))
        if not parts:
            # Chunks that workers read themselves need not all have a value of their own.
            lanes = min(len(chunks), _LANES * self._cores()) or 1
            cuts = [i * len(chunks) // lanes for i in range(lanes + 1)]
            parts = [task(_run)(list(chunks[a:b])) for a, b in pairwise(cuts)]
        while len(parts) > _FAN_IN:
            groups = range(0, len(parts), _FAN_IN)
            parts = [task(_combine)(parts[i : i + _FAN_IN]) for i in groups]
        if find_spec("distributed") is not None:
            import_module("distributed")  # it sets its defaults when it is imported
        # Sketched data may travel in a graph, whose parts survive a lost worker.
        with _dask().config.set({"distributed.admin.large-graph-warning-threshold": "1GiB"}):
            value = _combine(work, self._values(parts))
        report(work.task.name, 1.0)
        if isinstance(value, Failure):
            raise value.error()
        return value

    def hashed(self, chunks: Sequence[Chunk], key: bytes) -> list[Hashed]:
        of_block, of_chunk = partial(hash_ids, key=key), partial(hashed_ids, key=key)
        return self._beside(chunks, "groups", of_block, of_chunk, InvalidGroupError)

    def weights(self, chunks: Sequence[Chunk]) -> list[FloatArray]:
        return self._beside(chunks, "weights", checked_weights, chunk_weights, InvalidWeightError)

    def _beside(
        self,
        chunks: Sequence[Chunk],
        name: str,
        of_block: Callable[[Any], Any],
        of_chunk: Callable[[Chunk], Any],
        wrong: type[DataError],
    ) -> list[Any]:
        """Return what workers make of ids or weights, for each chunk."""
        delayed = partial(_dask().delayed, pure=False)
        parts = [
            delayed(partial(_of_block, of_block, wrong))(getattr(chunk, name))
            if isinstance(chunk, DaskChunk)
            else delayed(partial(_of_chunk, of_chunk, wrong, chunk))()
            for chunk in chunks
        ]
        values = self._values(parts)
        for value in values:
            if isinstance(value, Failure):
                raise value.error()
        return list(values)

    def _cores(self) -> int:
        """Return how many tasks run at a time."""
        try:
            client = self._client or import_module("distributed").get_client()
            return int(sum(client.ncores().values())) or 1
        except (ImportError, ValueError):  # no cluster: threads of this machine
            return os.cpu_count() or 1

    def _values(self, parts: list[Any]) -> Sequence[Any]:
        """Return computed parts; what a caller's own task says may quote data."""
        try:
            if self._client is None:
                return tuple(_dask().compute(*parts))
            return list(self._client.gather(self._client.compute(parts)))
        except Exception as error:
            kind = type(error)
            if kind.__module__.startswith("distributed") or isinstance(error, ImportError):
                raise
            raise DataError(f"blocks of X and y cannot be computed: {kind.__name__}.") from None


def is_dask(X: Any) -> bool:
    """Tell whether X is a Dask collection, without importing Dask."""
    return hasattr(X, "__dask_graph__")


def dask_chunks(
    X: Any, y: Any, client: Any = None, groups: Any = None, weights: Any = None
) -> Chunks:
    """Return a Dask array or dataframe as a table in chunks, one per block of rows.

    The targets, groups and weights, Dask collections or arrays, are cut into blocks as long as
    those of X. The client of a cluster is by default the one that Dask takes. Nothing is computed.
    """
    if len(X.shape) != 2:
        raise value_error("X", "be two-dimensional", type(X).__name__)
    d = int(X.shape[1])
    if d < 1:
        raise value_error("X", "have at least one feature", d)
    if y is None:
        raise ValueError("y must be passed with X; got y=None.")
    y = y if is_dask(y) else as_reals("y", y)
    _check_types("X", X)
    _check_types("y", y)
    if not hasattr(X, "columns") and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    lengths = _lengths(X)
    if lengths is not None and (not is_dask(y) or _lengths(y) not in (None, lengths)):
        y = _aligned(y, lengths)
    if not is_dask(y):
        raise value_error("y", "be a Dask collection, as X has blocks of unknown length", "array")
    if len(y.shape) == 2 and y.shape[1] == 1:
        y = y[y.columns[0]] if hasattr(y, "columns") else y[:, 0]
    if len(y.shape) != 1:
        raise value_error("y", "be one-dimensional", type(y).__name__)
    if hasattr(X, "divisions") and hasattr(y, "divisions"):
        # One collection, so that Dask cannot cut the two in different ways.
        unused = max(map(str, X.columns), key=len) + "_"
        whole = X.assign(**{unused: y})
        places: list[int | None] = [None, None]
        for at, (name, each) in enumerate((("groups", groups), ("sample_weight", weights))):
            if each is not None:
                if not hasattr(each, "divisions") or len(each.shape) != 1:
                    raise value_error(name, "be a Dask series, as y is", type(each).__name__)
                whole, places[at] = whole.assign(**{f"{unused}_{at}": each}), whole.shape[1]
        take = partial(_dask().delayed, pure=False)(_columns)
        pairs = [
            (take(block, slice(d + 1)), None, *(take(block, at) for at in places))
            for block in whole.to_delayed()
        ]
    else:
        features, targets = (list(np.ravel(each.to_delayed())) for each in (X, y))
        if len(features) != len(targets):
            raise ValueError("y must have as many blocks as X.")
        count = len(features)
        ids = _blocks("groups", groups, lengths, count)
        own = _blocks("sample_weight", weights, lengths, count)
        pairs = list(zip(features, targets, ids, own, strict=True))
    chunks = [
        DaskChunk(f"block {i}", lengths[i] if lengths else None, *pair)
        for i, pair in enumerate(pairs)
    ]
    labels = list(X.columns) if hasattr(X, "divisions") else None
    named = labels is not None and all(isinstance(label, str) for label in labels)
    known = {"grouped": groups is not None, "weighted": weights is not None}
    return Chunks(chunks, d, labels if named else None, Cluster(client), labels, **known)


def _columns(frame: Any, at: Any) -> Any:
    return None if at is None else frame.iloc[:, at]


def _blocks(name: str, values: Any, lengths: list[int] | None, blocks: int) -> list[Any]:
    """Return ids or weights in as many delayed blocks as X has; Nones if there are none."""
    if values is None:
        return [None] * blocks
    if not is_dask(values):
        values = np.asarray(values, dtype=object if isinstance(values, (list, tuple)) else None)
    if len(values.shape) != 1:
        raise value_error(name, "be one-dimensional", type(values).__name__)
    if lengths is not None and (not is_dask(values) or _lengths(values) not in (None, lengths)):
        values = _aligned(values, lengths, name)
    if not is_dask(values):
        raise value_error(name, "be a Dask collection, as X has blocks of unknown length", "")
    found = list(np.ravel(values.to_delayed()))
    if len(found) != blocks:
        raise ValueError(f"{name} must have as many blocks as X.")
    return found


def _check_types(name: str, collection: Any) -> None:
    """Refuse a collection whose declared types are not numbers, by the names of its columns."""
    frame = hasattr(collection, "divisions") and len(collection.shape) == 2
    labels = collection.columns if frame else [name]
    types = collection.dtypes if frame else [collection.dtype]
    pairs = zip(labels, types, strict=True)
    wrong = [f"{label!r} ({t})" for label, t in pairs if getattr(t, "kind", "O") not in "fiub"]
    if wrong:
        raise ValueError(f"{name} must hold real numbers in every column; got {', '.join(wrong)}.")


def _lengths(X: Any) -> list[int] | None:
    """Return the rows of each block of a Dask array; None if they are not known."""
    # A dataframe has its columns for attributes.
    chunks = None if hasattr(X, "divisions") else getattr(X, "chunks", None)
    if chunks is None or any(np.isnan(length) for length in chunks[0]):
        return None
    return [int(length) for length in chunks[0]]


def _aligned(y: Any, lengths: list[int], name: str = "y") -> Any:
    """Return targets or ids in blocks of these lengths."""
    if y.shape[0] != sum(lengths):
        raise ValueError(f"{name} must have one entry per row of X.")
    if is_dask(y):
        return y.rechunk({0: tuple(lengths)})
    chunks = (tuple(lengths), *y.shape[1:])
    return import_module("dask.array").from_array(y, chunks=chunks)


def _run(work: Work, lane: Sequence[tuple[Chunk, Place]]) -> Any:
    """Return the value of a pass over some chunks, or what went wrong."""
    total = None
    for chunk, place in lane:
        try:
            with one_thread():
                blocks = work.blocks(readings([(chunk, place)]))
                total = work.fold([total, work.fold(map(work.task.value, blocks))])
        except DataError as error:
            return Failure(type(error), str(error))
        except Exception as error:
            return Failure(DataError, f"{chunk.name} cannot be read: {type(error).__name__}.")
    return total


def _run_arrays(work: Work, name: str, place: Place, X: Any, y: Any) -> Any:
    """Return the value of a pass over a block of a collection, or what went wrong."""
    try:
        # What came over the network need not be aligned.
        X = np.require(as_reals("X", X), requirements="A")
        X, y = (X[:, :-1], X[:, -1]) if y is None else (X, as_reals("y", y))
        y = np.require(y, np.float64, "A")
    except Exception:
        return Failure(InvalidValueError, InvalidValueError.MESSAGE)
    if len(X) != len(y):
        return Failure(DataError, "X and y must have the same number of rows in each block.")
    return _run(work, [(ArrayChunk(name, X, y), place)])


def _of_block(value: Callable[[Any], Any], wrong: type[DataError], block: Any) -> Any:
    """Return a value of the ids or weights of a block, or what went wrong."""
    try:
        return value(block)
    except Exception:
        return Failure(wrong, "")


def _of_chunk(value: Callable[[Chunk], Any], wrong: type[DataError], chunk: Chunk) -> Any:
    """Return a value of the ids or weights of a chunk, or what went wrong."""
    try:
        return value(chunk)
    except wrong:
        return Failure(wrong, "")
    except DataError as error:
        return Failure(DataError, str(error))
    except Exception as error:
        return Failure(DataError, f"{chunk.name} cannot be read: {type(error).__name__}.")


def _combine(work: Work, values: Sequence[Any]) -> Any:
    """Return the value of some chunks together, or the first failure among them."""
    failures = (value for value in values if isinstance(value, Failure))
    return next(failures, None) or work.fold(values)


def _dask() -> Any:
    try:
        import dask
    except ImportError:
        raise ImportError('clusters need the package dask: pip install "fastmix[dask]".') from None
    return dask
