"""Chunks of Parquet and Arrow files."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.data.chunks import BLOCK_BYTES, Chunk, Chunks, Executor, Records, Streaming
from fastmix.data.persons import InvalidGroupError
from fastmix.data.weights import InvalidWeightError
from fastmix.errors import DataError, InvalidValueError

_PARQUET = ".parquet"
_SUFFIXES = (_PARQUET, ".arrow", ".feather", ".ipc")
#: How an address begins (a drive has one letter), and an entry that one may have.
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/|.*\bpassword\s*=", re.IGNORECASE | re.DOTALL)


def file_chunks(
    path: str | Path | Iterable[str | Path],
    target: str,
    features: Sequence[str] | None = None,
    executor: Executor | None = None,
    person: str | None = None,
    weight: str | None = None,
) -> Chunks:
    """Return the columns of numbers of Parquet or Arrow files, one chunk per group of records.

    A path is a file or a folder of files, all with the same columns; ``features`` are by default
    all columns of the first file but the target, the ``person``, a column of ids, and the
    ``weight``. Only schemas and lengths are read here; the executor says where the records are, by
    default on this machine.
    """
    files = table_files(path)
    fields = _fields(files[0])
    others = [name for name in fields if name not in (target, person, weight)]
    names = others if features is None else list(features)
    if not names or len({target, *names}) != len(names) + 1:
        raise value_error("features", "be different columns, without the target", names)
    chunks = []
    for file in files:
        fields = _fields(file)
        for name in filter(None, (target, *names, person, weight)):
            if name not in fields:
                raise DataError(f"{file.name} has no column {name!r}; it has {list(fields)}.")
            if name != person and column_kind(kind := fields[name]) not in ("bool", "number"):
                wrong = f"column {name!r} must hold numbers; it is of type {kind}."
                raise DataError(f"{file.name}: {wrong}")
        columns = (*names, target)
        chunks += [FileChunk(file, *group, columns, person, weight) for group in file_groups(file)]
    beside: Any = {"grouped": person is not None, "weighted": weight is not None}
    return Chunks(chunks, len(names), names, executor or Streaming(), **beside)


@dataclass(frozen=True)
class FileChunk(Chunk):
    """A row group of a Parquet file or a record batch of an Arrow file; the target comes last."""

    path: Path
    group: int
    length: int
    columns: tuple[str, ...]
    person: str | None = None
    weight: str | None = None
    decodes = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the file."""
        return self.path.name

    def read(self) -> Iterator[Records]:
        for batch in record_batches(self.path, self.group, self.columns):
            table = np.empty((batch.num_rows, len(self.columns)), order="F")
            with damage(self.path):
                for j, name in enumerate(self.columns):
                    table[:, j] = _numbers(batch.column(name))
            yield table[:, :-1], table[:, -1]

    def read_ids(self) -> Iterator[Any]:
        if self.person is None:
            yield from super().read_ids()
        else:
            for batch in record_batches(self.path, self.group, [self.person]):
                yield id_values(batch.column(self.person))

    def read_weights(self) -> Iterator[Any]:
        if self.weight is None:
            yield from super().read_weights()
        else:
            for batch in record_batches(self.path, self.group, [self.weight]):
                yield weight_values(batch.column(self.weight))


def weight_values(column: Any) -> Any:
    """Return a column of sample weights as an array."""
    if column_kind(column.type) not in ("bool", "number"):
        raise InvalidWeightError
    try:
        return _numbers(column)
    except InvalidValueError:  # a missing one
        raise InvalidWeightError from None


def id_values(column: Any) -> Any:
    """Return a column of ids, integers or text, as an array."""
    pa = pyarrow()
    if column.null_count:
        raise InvalidGroupError
    column = decoded(column)
    kind = column_kind(column.type)
    if kind == "text":
        try:
            return np.array(column.to_pylist(), dtype=object)
        except UnicodeError:
            raise InvalidGroupError from None
    if kind != "number" or pa.types.is_decimal(column.type):
        raise InvalidGroupError
    return column.to_numpy(zero_copy_only=False)


def _numbers(column: Any) -> Any:
    """Return a column of numbers, none of them missing, as an array."""
    if column.null_count:
        raise InvalidValueError
    return float_values(column)


def float_values(column: Any) -> FloatArray:
    """Return a column of numbers or booleans as float64, with NaN for missing ones."""
    pa, column = pyarrow(), decoded(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type):
        # By its digits a number is rounded the same at every scale of the type.
        column = column.cast(pa.string())
    column = pa.compute.fill_null(column.cast(pa.float64(), safe=False), float("nan"))
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def decoded(column: Any) -> Any:
    """Return a column without a dictionary."""
    pa = pyarrow()
    if not pa.types.is_dictionary(column.type):
        return column
    if not isinstance(column, pa.ChunkedArray):
        return column.dictionary_decode()
    parts = [part.dictionary_decode() for part in column.chunks]
    return pa.chunked_array(parts, column.type.value_type)


def parts_of(column: Any) -> list[Any]:
    """Return the arrays of which a column consists."""
    return list(column.chunks) if hasattr(column, "chunks") else [column]


def file_groups(path: Path) -> list[tuple[int, int]]:
    """Return number and length of each row group or record batch, without reading a value."""
    pa = pyarrow()
    with damage(path):
        if _suffix(path) == _PARQUET:
            with pa.parquet.ParquetFile(path) as file:
                groups = range(file.metadata.num_row_groups)
                return [(i, file.metadata.row_group(i).num_rows) for i in groups]
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            return [(i, reader.get_batch(i).num_rows) for i in range(reader.num_record_batches)]


def record_batches(path: Path, group: int, columns: Sequence[str]) -> Iterator[Any]:
    """Yield some columns of a row group or record batch, a few megabytes at a time."""
    pa = pyarrow()
    step = max(1, BLOCK_BYTES // (8 * len(columns)))
    with damage(path):
        if _suffix(path) == _PARQUET:
            with pa.parquet.ParquetFile(path, memory_map=True) as file:
                yield from file.iter_batches(step, row_groups=[group], columns=list(columns))
            return
        with pa.memory_map(str(path)) as source:
            batch = pa.ipc.open_file(source).get_batch(group).select(list(columns))
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step)


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Turn what Arrow says of a broken file into an error that names the file and no value."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path.name} is not there, or is not a file.") from None
    except (pyarrow().ArrowException, OSError):
        raise DataError(f"{path.name} is damaged, or not what its name says.") from None


def table_files(path: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files that are meant, in the order of their names."""
    paths = [Path(path)] if isinstance(path, (str, Path)) else [Path(each) for each in path]
    if any(is_address(str(each)) for each in paths):
        raise DataError("path must name files. Pass the records of a database to fit, as a stream.")
    files: list[Path] = []
    for each in paths:
        inside = (file for file in each.rglob("*") if _is_table(file, each))
        files += sorted(inside) if each.is_dir() else [each]
    if not files:
        raise value_error("path", "name Parquet or Arrow files", [each.name for each in paths])
    if len(set(map(_identity, files))) != len(files):
        # Records that are read twice count twice, and the guarantee is for one row per person.
        raise value_error("path", "name each file once", [each.name for each in paths])
    return files


def is_address(text: str) -> bool:
    """Tell whether a text is an address and no file: it may hold a password, so none is quoted."""
    return _ADDRESS.match(text) is not None


def _identity(file: Path) -> Any:
    """Return what tells a file from others, whatever names and links it has."""
    file = file.resolve()
    try:
        status = file.stat()
    except OSError:  # what is wrong with it is said where it is read
        return file
    return status.st_dev, status.st_ino


def _is_table(file: Path, folder: Path) -> bool:
    """Tell whether a file in a folder is part of its data, not of what a writer left there."""
    hidden = any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)
    return not hidden and file.suffix.lower() in _SUFFIXES and file.is_file()


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise DataError(f"{path.name} must end in one of {', '.join(_SUFFIXES)}.")
    return suffix


def _fields(path: Path) -> dict[str, Any]:
    """Return the types of the columns by name."""
    pa = pyarrow()
    with damage(path):
        if _suffix(path) == _PARQUET:
            schema = pa.parquet.read_schema(path)
        else:
            with pa.memory_map(str(path)) as source:
                schema = pa.ipc.open_file(source).schema
    return dict(zip(distinct(path.name, schema.names), schema.types, strict=True))


def column_kind(kind: Any) -> str:
    """Return "bool", "number", "text" or, for any other type of a column, its name."""
    types = pyarrow().types
    if types.is_dictionary(kind):
        return column_kind(kind.value_type)
    if types.is_boolean(kind):
        return "bool"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    return str(kind)


def distinct(table: str, names: list[str]) -> list[str]:
    """Return the names of a table's columns, which must all be different."""
    if len(set(names)) != len(names):
        raise DataError(f"{table} must have a different name for each column.")
    return names


def pyarrow(what: str = "files", extra: str = "data") -> Any:
    """Return the package pyarrow, with the parts that fastmix uses."""
    try:
        for part in ("compute", "csv", "ipc", "parquet"):
            import_module(f"pyarrow.{part}")
        return import_module("pyarrow")
    except ImportError:
        message = f'{what} need the package pyarrow: pip install "fastmix[{extra}]".'
        raise ImportError(message) from None
