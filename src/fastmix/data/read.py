"""Readers of CSV, Parquet, Arrow or Feather, and NPZ files, and a writer of predictions.

The bounds file decides how a column is read, never its values.  Errors name the file, the
column and the kind of trouble; they never quote a value or the number of a row.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._validation import unchained
from fastmix.data import delimited
from fastmix.data.arrow import column_kind, distinct, pyarrow
from fastmix.data.columns import Columns, arrow_array, columns_of
from fastmix.data.delimited import TextFormat, is_text, resolve, text_suffix
from fastmix.errors import DataError
from fastmix.schema.kinds import check_kinds, check_list

arrow = partial(pyarrow, "tables", "cli")

_ARROW = (".arrow", ".feather", ".ipc")

_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", *_ARROW, ".npz")

#: The format of a text file without options: the first line decides.
_PLAIN = TextFormat()


def table_fields(path: Path, text: TextFormat = _PLAIN) -> dict[str, str]:
    """Return the kinds of a table's columns by name, without reading a value.

    They are "number", "bool", "text", "unknown" (CSV has no types), or the name of another type.
    """
    suffix = _suffix(path)
    if is_text(path):
        return dict.fromkeys(resolve(path, text).names, "unknown")
    if suffix == ".npz":
        return {name: kind for name, (kind, _, _) in _npz_columns(path).items()}
    return {field.name: column_kind(field.type) for field in _arrow_schema(path)}


@unchained()
def read_columns(
    path: Path,
    numbers: list[str],
    categories: Mapping[str, Sequence[str]],
    text: TextFormat = _PLAIN,
) -> Columns:
    """Read the columns of numbers and of public categories that a bounds file names: raw data."""
    return columns_of(read_arrow(path, numbers, categories, text), numbers, categories)


@unchained()
def read_arrow(
    path: Path,
    numbers: list[str],
    categories: Mapping[str, Sequence[str]] | Iterable[str],
    text: TextFormat = _PLAIN,
) -> Any:
    """Read the columns that a bounds file names as an Arrow table: raw data."""
    check_columns(path, numbers, categories, text)
    return _read(path, numbers, list(categories), text)


@unchained()
def check_columns(
    path: Path,
    numbers: list[str],
    categories: Mapping[str, Sequence[str]] | Iterable[str],
    text: TextFormat = _PLAIN,
    others: Iterable[str] = (),
) -> None:
    """Check that a table has the columns that a bounds file names, and ``others`` of any kind."""
    fields = table_fields(path, text)
    lists = categories if isinstance(categories, Mapping) else dict.fromkeys(categories, ())
    for name in (*numbers, *lists, *others):
        if name not in fields:
            raise DataError(no_column(path.name, name, fields, path, text))
    check_kinds(path.name, fields, numbers, dict(text.dates))
    for name, levels in lists.items():
        check_list(path.name, name, fields[name], levels)


def no_column(
    table: str,
    name: str,
    fields: Mapping[str, str],
    path: Path | None = None,
    text: TextFormat = _PLAIN,
) -> str:
    """Return the message that a column is missing; it names the columns of typed files only.

    The first line of a text file without a header is a record, so the message must not quote it.
    """
    if "unknown" in fields.values():
        how = "separated by commas." if path is None else resolve(path, text).described()
        return (
            f"{table} has no column {name!r} in its first line, which must name the columns, {how}"
        )
    return f"{table} has no column {name!r}; it has {list(fields)}."


def csv_batches(
    path: Path, numbers: list[str], categories: list[str], text: TextFormat = _PLAIN
) -> Iterator[Any]:
    """Yield some columns of a text file, a few megabytes at a time."""
    pa, found = arrow(), resolve(path, text)
    asked = delimited.csv_arguments(found, numbers, categories)
    with (
        _without_values(path, text),
        delimited.source(path, found) as file,
        pa.csv.open_csv(file, **asked) as reader,
    ):
        for batch in reader:
            yield delimited.parsed(path, found, batch, numbers)


@unchained()
def inferred_numbers(path: Path, text: TextFormat = _PLAIN) -> list[str]:
    """Return the columns that hold numbers; for CSV this looks at values, so it is NOT private."""
    fields = table_fields(path, text)
    if is_text(path):
        found = resolve(path, text)
        with _without_values(path, text), delimited.source(path, found) as file:
            convert = arrow().csv.ConvertOptions(decimal_point=found.decimal)
            layout = delimited.csv_layout(found)
            schema = arrow().csv.read_csv(file, convert_options=convert, **layout).schema
        fields = {field.name: column_kind(field.type) for field in schema}
    return [name for name, kind in fields.items() if kind in ("number", "bool")]


def table_suffix(path: Path) -> str:
    """Return the ending of a file's name, which must name a format."""
    suffix = text_suffix(path) or path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise DataError(f"The name {path.name!r} must end in one of {', '.join(_SUFFIXES)}.")
    return suffix


def _suffix(path: Path) -> str:
    suffix = table_suffix(path)
    if not path.is_file():
        raise DataError(f"There is no file {str(path)!r}.")
    return suffix


def _open_ipc(path: Path) -> Any:
    pa = arrow()
    source = pa.memory_map(str(path))
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _arrow_schema(path: Path) -> Any:
    with _without_values(path):
        ipc = _suffix(path) in _ARROW
        schema = _open_ipc(path).schema if ipc else arrow().parquet.read_schema(path)
    distinct(path, schema.names)
    return schema


def _read(path: Path, numbers: list[str], categories: list[str], text: TextFormat) -> Any:
    """Return some columns of a file as an Arrow table."""
    pa, suffix = arrow(), _suffix(path)
    names = [*numbers, *categories]
    with _without_values(path, text):
        if is_text(path):
            found = resolve(path, text)
            asked = delimited.csv_arguments(found, numbers, categories)
            with delimited.source(path, found) as file:
                table = pa.csv.read_csv(file, **asked)
            return delimited.parsed(path, found, table, numbers)
        if suffix == ".parquet":
            return pa.parquet.read_table(path, columns=names)
        if suffix == ".npz":
            return pa.table({name: arrow_array(of) for name, of in _read_npz(path, names).items()})
        return _open_ipc(path).read_all().select(names)


@contextmanager
def _without_values(path: Path, text: TextFormat = _PLAIN) -> Iterator[None]:
    """Replace the errors of Arrow, which quote values and rows, by errors that do not."""
    damaged = DataError(f"{path.name} is damaged, or not what its name says.")
    try:
        yield
    except UnicodeError:
        raise _wrong_encoding(path, text) from None
    except OSError as error:
        # Arrow has no number for a compressed file that ends early.
        raise (damaged if error.errno is None else error) from None
    except arrow().ArrowException as error:
        column = r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error"
        if at := re.search(column, str(error)):
            if "invalid UTF8 data" in str(error):
                raise _wrong_encoding(path, text) from None
            found = resolve(path, text)
            raise delimited.no_number(path, found.names[int(at.group(1))], found) from None
        if str(error).startswith("CSV parse error"):
            said = f"{path.name}: its rows must all have as many fields as its header."
            raise DataError(said) from None
        raise damaged from None


def _wrong_encoding(path: Path, text: TextFormat) -> DataError:
    return DataError(
        f"{path.name} is not text in {resolve(path, text).encoding}. Give the encoding, as in "
        "--encoding cp1252."
    )


def _npz_columns(path: Path) -> dict[str, tuple[str, str, int | None]]:
    """Return kind, array and index of each column, from the headers of the arrays only."""
    columns: dict[str, tuple[str, str, int | None]] = {}
    kinds = {"f": "number", "i": "number", "u": "number", "b": "bool", "U": "text", "S": "text"}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                with archive.open(member) as file:
                    first = np.lib.format.read_magic(file)[0] == 1
                    header = "read_array_header_1_0" if first else "read_array_header_2_0"
                    shape, _, dtype = getattr(np.lib.format, header)(file)
                name = member.removesuffix(".npy")
                kind = kinds.get(dtype.kind, str(dtype))
                if len(shape) == 1:
                    columns[name] = (kind, name, None)
                elif len(shape) == 2:
                    columns |= {f"{name}_{j}": (kind, name, j) for j in range(shape[1])}
    except (zipfile.BadZipFile, ValueError):
        raise DataError(f"{path.name} is damaged, or not what its name says.") from None
    return columns


def _read_npz(path: Path, names: list[str]) -> dict[str, Any]:
    """Return some columns of a NumPy archive."""
    fields = _npz_columns(path)
    with np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in {fields[name][1] for name in names}}
    if len({len(array) for array in arrays.values()}) > 1:
        raise DataError(f"{path.name}: its arrays must have the same number of rows.")
    places = [(name, *fields[name][1:]) for name in names]
    return {name: arrays[key] if at is None else arrays[key][:, at] for name, key, at in places}


def write_predictions(path: Path, name: str, values: Any, labels: Iterable[Any] = ()) -> None:
    """Write a column of predictions, or one per label, in the format of the file's name."""
    names = [f"{name}={each}" for each in labels] or [name]
    columns = dict(zip(names, np.atleast_2d(values.T), strict=True))
    suffix = table_suffix(path)
    if suffix == ".npz":
        with path.open("wb") as file:  # given a name, it might add another ending
            np.savez(file, allow_pickle=False, **columns)
        return
    pa = arrow()
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    if is_text(path):
        options = pa.csv.WriteOptions(delimiter="\t" if ".tsv" in suffix else ",")
        with pa.output_stream(str(path), "gzip" if suffix.endswith(".gz") else None) as file:
            pa.csv.write_csv(table, file, options)
    elif suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
