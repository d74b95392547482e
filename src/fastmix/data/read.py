"""Readers of tables: files of several formats, queries and streams; a writer of predictions.

The bounds file decides how a column is read, never its values.  Errors name the file, the
column and the kind of trouble; they never quote a value or the number of a row.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fastmix._validation import unchained
from fastmix.data import delimited
from fastmix.data.arrow import column_kind, distinct, pyarrow, record_batches, table_files
from fastmix.data.columns import Columns, columns_of
from fastmix.data.delimited import TextFormat, is_text, resolve, text_suffix
from fastmix.data.sheets import Sheet
from fastmix.data.statistical import SUFFIXES, StatisticsFile
from fastmix.data.stored import Stored
from fastmix.errors import DataError
from fastmix.schema.kinds import check_kinds, check_list

arrow = partial(pyarrow, "tables", "cli")

_ARROW = (".arrow", ".feather", ".ipc")

#: Files that are read as a whole.
_STORED: dict[str, Any] = {
    ".xlsx": Sheet,
    ".xlsm": Sheet,
    **dict.fromkeys(SUFFIXES, StatisticsFile),
}

#: Formats that fastmix writes.
_WRITTEN = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", *_ARROW)

Table: TypeAlias = Path | Stored

#: The format of a text file without options: the first line decides.
_PLAIN = TextFormat()


def stored(table: Table) -> Stored | None:
    """Return a table that is read as a whole, None if it is a file that is read in blocks."""
    if isinstance(table, Stored):
        return table
    kind = _STORED.get(table.suffix.lower())
    if kind is None:
        return None
    table_suffix(table, there=True)
    return kind(table)  # type: ignore[no-any-return]


def parts(table: Table) -> list[Table]:
    """Return the files of a folder, in the order of their names, or the one table."""
    folder = isinstance(table, Path) and table.is_dir()
    return [*table_files(table)] if folder else [table]  # type: ignore[arg-type]


def table_paths(table: Table) -> list[Path]:
    """Return the files and folders of a table, which no command may replace."""
    return [table] if isinstance(table, Path) else [*table.files]


@unchained()
def table_fields(path: Table, text: TextFormat = _PLAIN) -> dict[str, str]:
    """Return the kinds of a table's columns by name, without reading a value.

    They are "number", "bool", "text", "unknown" (CSV has no types), or the name of another type.
    """
    if (own := stored(path)) is not None:
        return own.fields(text)
    assert isinstance(path, Path)
    table_suffix(path, there=True)
    if is_text(path):
        return dict.fromkeys(resolve(path, text).names, "unknown")
    return {field.name: column_kind(field.type) for field in _arrow_schema(path)}


@unchained()
def read_columns(
    path: Table,
    numbers: list[str],
    categories: Mapping[str, Sequence[str]],
    text: TextFormat = _PLAIN,
) -> Columns:
    """Read the columns of numbers and of public categories that a bounds file names: raw data."""
    return columns_of(read_arrow(path, numbers, categories, text), numbers, categories, text)


@unchained()
def read_arrow(
    path: Table,
    numbers: list[str],
    categories: Mapping[str, Sequence[str]] | Iterable[str],
    text: TextFormat = _PLAIN,
) -> Any:
    """Read the columns that a bounds file names as an Arrow table: raw data."""
    check_columns(path, numbers, categories, text)
    if stored(path) is not None:
        return arrow().concat_tables(
            map(_as_table, batches(path, 0, numbers, list(categories), text))
        )
    assert isinstance(path, Path)
    return text.spelling().parsed(path.name, _read(path, numbers, list(categories), text), numbers)


@unchained()
def check_columns(
    path: Table,
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
    check_kinds(path.name, fields, numbers, dict(text.dates), dict(text.markers))
    for name, levels in lists.items():
        check_list(path.name, name, fields[name], levels)


def no_column(
    table: str,
    name: str,
    fields: Mapping[str, str],
    path: Table | None = None,
    text: TextFormat = _PLAIN,
) -> str:
    """Return the message that a column is missing; it names the columns of typed files only.

    The first line of a text file without a header is a record, so the message must not quote it.
    """
    if "unknown" in fields.values() and not text.has_names:
        return f"{table} has no column {name!r}; it has {list(fields)}."
    if "unknown" in fields.values():
        how = ", separated by commas."
        if isinstance(path, Path) and is_text(path):
            how = f", {resolve(path, text).described()}"
        elif path is not None:  # a sheet
            how = ". Delete titles above the names, or choose another sheet with --query."
        return f"{table} has no column {name!r} in its first line, which must name the columns{how}"
    return f"{table} has no column {name!r}; it has {list(fields)}."


def batches(
    path: Table, group: int, numbers: list[str], texts: list[str], text: TextFormat
) -> Iterator[Any]:
    """Yield some columns of a table, or of a group of its records, in blocks."""
    if (own := stored(path)) is not None:
        found = own.batches(numbers, texts, text)
    elif is_text(path):  # type: ignore[arg-type]
        found = csv_batches(path, numbers, texts, text)  # type: ignore[arg-type]
    else:
        found = record_batches(path, group, [*numbers, *texts])  # type: ignore[arg-type]
    for batch in found:
        yield text.spelling().parsed(path.name, batch, numbers)


def _as_table(batch: Any) -> Any:
    pa = arrow()
    return batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])


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
            yield found.spelling.parsed(path.name, batch, numbers)


@unchained()
def inferred_numbers(path: Table, text: TextFormat = _PLAIN) -> list[str]:
    """Return the columns that hold numbers; for CSV this looks at values, so it is NOT private."""
    fields = table_fields(path, text)
    if isinstance(path, Path) and is_text(path):
        found = resolve(path, text)
        with _without_values(path, text), delimited.source(path, found) as file:
            convert = arrow().csv.ConvertOptions(decimal_point=found.spelling.decimal)
            layout = delimited.csv_layout(found)
            schema = arrow().csv.read_csv(file, convert_options=convert, **layout).schema
        fields = {field.name: column_kind(field.type) for field in schema}
    return [name for name, kind in fields.items() if kind in ("number", "bool")]


def table_suffix(path: Path, *, there: bool = False) -> str:
    """Return the ending of a file's name, which must name a format, and the file be ``there``."""
    suffix = text_suffix(path) or path.suffix.lower()
    formats = dict.fromkeys([*_WRITTEN, *(_STORED if there else ())])
    if suffix not in formats:
        raise DataError(f"The name {path.name!r} must end in one of {', '.join(formats)}.")
    if there and not path.is_file():
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
        ipc = path.suffix.lower() in _ARROW
        schema = _open_ipc(path).schema if ipc else arrow().parquet.read_schema(path)
    distinct(path.name, schema.names)
    return schema


def _read(path: Path, numbers: list[str], categories: list[str], text: TextFormat) -> Any:
    """Return some columns of a file as an Arrow table."""
    pa = arrow()
    names = [*numbers, *categories]
    with _without_values(path, text):
        if is_text(path):
            found = resolve(path, text)
            asked = delimited.csv_arguments(found, numbers, categories)
            with delimited.source(path, found) as file:
                table = pa.csv.read_csv(file, **asked)
            return found.spelling.parsed(path.name, table, numbers)
        if path.suffix.lower() == ".parquet":
            return pa.parquet.read_table(path, columns=names)
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
            raise found.spelling.no_number(path.name, found.names[int(at.group(1))]) from None
        if str(error).startswith("CSV parse error"):
            said = f"{path.name}: its rows must all have as many fields as its header."
            raise DataError(said) from None
        raise damaged from None


def _wrong_encoding(path: Path, text: TextFormat) -> DataError:
    return DataError(
        f"{path.name} is not text in {resolve(path, text).encoding}. Give the encoding, as in "
        "--encoding cp1252."
    )


def write_predictions(path: Path, name: str, values: Any, labels: Iterable[Any] = ()) -> None:
    """Write a column of predictions, or one per label, in the format of the file's name."""
    names = [f"{name}={each}" for each in labels] or [name]
    columns = dict(zip(names, np.atleast_2d(values.T), strict=True))
    suffix = table_suffix(path)
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
