"""The format of a CSV file: separator, decimal mark, encoding.

The first line names the columns and is public; values are not.  So options that are not given
follow from the first line alone, or from fixed rules.  A fit refuses an entry that does not match
the format; it never tries another format.
"""

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fastmix._validation import check_choice, value_error
from fastmix.data.arrow import distinct, pyarrow
from fastmix.data.lines import CSV_BYTES, Lines, by_line, misread, record_lines
from fastmix.errors import DataError

#: Separators to look for in the first line, with their names.
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}

#: Words for separators that are hard to type.
_SPELLED = {
    "comma": ",",
    "semicolon": ";",
    "tab": "\t",
    "\\t": "\t",
    "pipe": "|",
    "space": " ",
}

#: Marks at the start of a file that tell its encoding.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_THOUSANDS = (".", ",", "'", "\u2019", " ", "\u00a0", "\u202f", "_")

#: Longest first line, in characters.
_LONGEST_LINE = 1 << 24


@dataclass(frozen=True)
class TextFormat:
    """The format of a CSV file; None leaves an option to the first line or the file's name.

    ``sep`` separates fields (one character, or "tab", "semicolon", "comma", "pipe", "space");
    ``decimal`` is "." or ","; ``thousands`` separates groups of three digits, none by default;
    ``encoding`` is any encoding that Python knows.
    """

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    #: Columns of dates with the form in which they are written, from the bounds file.
    dates: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        sep = None if self.sep is None else _SPELLED.get(self.sep, self.sep)
        if sep is not None and not _separates(sep):
            raise value_error("sep", "be one character that separates fields, or 'tab'", self.sep)
        object.__setattr__(self, "sep", sep)
        if self.decimal is not None:
            check_choice("decimal", self.decimal, (".", ","))
        if self.thousands is not None:
            thousands = _SPELLED.get(self.thousands, self.thousands)
            check_choice("thousands", thousands, _THOUSANDS)
            object.__setattr__(self, "thousands", thousands)
            if thousands == self.decimal:
                raise value_error("thousands", "differ from decimal", self.thousands)
        if self.encoding is not None:
            try:
                known = "a".encode(self.encoding).decode(self.encoding) == "a"
                known = known and by_line(self.encoding)
            except (LookupError, UnicodeError):
                known = False
            if not known:
                raise value_error("encoding", "be one such as utf-8 or cp1252", self.encoding)

    def with_dates(self, dates: tuple[tuple[str, str], ...]) -> "TextFormat":
        """Return the format of a file in which some columns are dates."""
        return replace(self, dates=dates)

    def options(self) -> list[str]:
        """Return the options of the command line that ask for this format."""
        found = []
        for name in ("sep", "decimal", "thousands", "encoding"):
            if (value := getattr(self, name)) is not None:
                found += [f"--{name}", "tab" if value == "\t" else value]
        return found


@dataclass(frozen=True)
class Resolved:
    """The complete format of one file: the given options, and the rest from its first line."""

    sep: str
    decimal: str
    thousands: str | None
    encoding: str
    names: tuple[str, ...]
    #: Lines before the one with the names: 1 if Excel's ``sep=;`` comes first.
    skipped: int
    #: The separator that the line with the names suggests.
    suggested: str
    #: Columns of dates with the form in which they are written.
    written: tuple[tuple[str, str], ...]
    #: Whether the encoding follows from a first line that is not UTF-8.
    guessed: bool

    @property
    def dates(self) -> dict[str, str]:
        """Forms of the columns of dates."""
        return dict(self.written)

    def described(self) -> str:
        """Say how the first line was read, without quoting it."""
        said = f"separated by {_SEPARATORS.get(self.sep, repr(self.sep))}."
        if self.suggested != self.sep:
            what = _SEPARATORS[self.suggested]
            shown = "tab" if self.suggested == "\t" else self.suggested
            said += f" The line suggests {what}: use sep={shown!r} (--sep {shown!r})."
        if "\ufffd" in "".join(self.names):
            said += f" The line is not text in {self.encoding}: give the encoding (--encoding)."
        if self.guessed:
            said += (
                f" The line is not UTF-8, so it was read as {self.encoding}; another encoding can "
                "be given (--encoding)."
            )
        return said

    def numbers_described(self) -> str:
        """Say what a number may look like."""
        other = "." if self.decimal == "," else ","
        shown = f"1{self.decimal}5"
        said = f"Numbers are read with the decimal mark {self.decimal!r}, as in {shown}"
        if self.thousands is None:
            return (
                f"{said}, and nothing between thousands; other marks are given by --decimal "
                f"{other!r} and --thousands"
            )
        return f"{said}, and {self.thousands!r} between groups of three digits"


def is_text(path: Path) -> bool:
    """Tell whether a file is a CSV file, by its name."""
    return text_suffix(path) is not None


def text_suffix(path: Path) -> str | None:
    """Return .csv or .tsv, with .gz if compressed, by the name of a file; None for other names."""
    found = re.search(r"(\.csv|\.tsv|\.tab)(\.gz)?$", path.name.lower())
    if found is None:
        return None
    return (".csv" if found.group(1) == ".csv" else ".tsv") + (found.group(2) or "")


def resolve(path: Path, text: TextFormat) -> Resolved:
    """Complete a format by a file's name and first line."""
    try:
        encoding, guessed = _encoding(path) if text.encoding is None else (text.encoding, False)
        with _open(path, encoding) as file:
            line = file.readline(_LONGEST_LINE).removeprefix("\ufeff")  # no part of a name
            directive = re.fullmatch(r"sep=(.)[\r\n]*", line, re.IGNORECASE)
            if directive is not None and not _separates(directive.group(1)):
                directive = None
            if directive is not None:
                line = file.readline(_LONGEST_LINE)
        by_name = "\t" if (text_suffix(path) or "").startswith(".tsv") else None
        suggested = _suggested(line)
        given = text.sep or (directive.group(1) if directive is not None else None) or by_name
        sep = given or suggested
        if not record_lines(sep, 1).fullmatch(line.replace("\r\n", "\n").encode()):
            raise misread(path.name)
        names = distinct(path, next(csv.reader([line], delimiter=sep), []))
    except (csv.Error, UnicodeError, EOFError, gzip.BadGzipFile, zlib.error):
        raise DataError(f"The first line of {path.name} cannot be read as text.") from None
    if not names:
        raise DataError(f"{path.name} must have a first line that names the columns.")
    # Semicolons separate fields where commas are decimal marks.
    comma = text.thousands == "." or (sep == ";" and text.thousands not in (",", "'", "\u2019"))
    return Resolved(
        sep=sep,
        decimal=text.decimal or ("," if comma else "."),
        thousands=text.thousands,
        encoding=encoding,
        names=tuple(names),
        skipped=int(directive is not None),
        suggested=suggested,
        written=text.dates,
        guessed=guessed,
    )


def _open(path: Path, encoding: str) -> Any:
    """Open a file to read its first line; decoding runs ahead, and must not fail at a value."""
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding=encoding, newline="", errors="replace")
    return path.open(newline="", encoding=encoding, errors="replace")


def _encoding(path: Path) -> tuple[str, bool]:
    """Return the encoding by the first line, and whether it is a guess."""
    compressed = path.name.lower().endswith(".gz")
    with gzip.open(path) if compressed else path.open("rb") as file:
        line = file.readline(_LONGEST_LINE)
    for mark, encoding in _MARKS:
        if line.startswith(mark):
            return encoding, False
    for encoding in ("utf-8", "cp1252"):
        try:
            line.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding, encoding != "utf-8"
    return "latin-1", True


def _separates(sep: str) -> bool:
    """Tell whether a character can separate fields."""
    marks = "\"'\r\n.+-_" + "\0"
    return len(sep) == 1 and sep.isascii() and not sep.isalnum() and sep not in marks


def _suggested(line: str) -> str:
    """Return the separator that is most frequent in a line of names, outside of quotes."""
    bare = re.sub(r'"[^"]*"', "", line)
    return max(_SEPARATORS, key=bare.count)


@contextmanager
def source(path: Path, found: Resolved) -> Iterator[Lines]:
    """Open a file for Arrow: in UTF-8, not compressed, with one record per line."""
    compressed = path.name.lower().endswith(".gz")
    with pyarrow("tables", "cli").input_stream(str(path), "gzip" if compressed else None) as file:
        lines = Lines(file, path.name, found.sep, len(found.names), found.encoding)
        try:
            yield lines
        finally:
            if lines.failure is not None:
                raise lines.failure from None


def csv_arguments(found: Resolved, numbers: list[str], categories: list[str]) -> dict[str, Any]:
    """Return the options with which Arrow reads some columns of a file."""
    pa = pyarrow("tables", "cli")
    dates = [name for name in numbers if name in found.dates]
    as_text = [*categories, *dates, *(numbers if found.thousands is not None else ())]
    types = dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(as_text, pa.string())
    convert = pa.csv.ConvertOptions(
        include_columns=list(types), column_types=types, decimal_point=found.decimal
    )
    return {**csv_layout(found), "convert_options": convert}


def csv_layout(found: Resolved) -> dict[str, Any]:
    """Return the options with which Arrow finds the fields of a file that `source` opens."""
    pa = pyarrow("tables", "cli")
    read = pa.csv.ReadOptions(skip_rows=found.skipped, block_size=CSV_BYTES)
    layout = pa.csv.ParseOptions(delimiter=found.sep, ignore_empty_lines=False)
    return {"read_options": read, "parse_options": layout}


def parsed(path: Path, found: Resolved, table: Any, numbers: list[str]) -> Any:
    """Convert columns of dates and of numbers with thousands, which were read as text."""
    for name in numbers:
        at = table.schema.get_field_index(name)
        if name in found.dates:
            values = _days(found.dates[name], table.column(at))
        elif found.thousands is not None:
            values = _ungrouped(found, table.column(at))
        else:
            continue
        if values is None:
            raise no_number(path, name, found)
        table = table.set_column(at, name, values)
    return table


def _days(form: str, column: Any) -> Any:
    """Return dates, or None if an entry is not one of this form."""
    pa = pyarrow("tables", "cli")
    text = pa.compute.utf8_trim_whitespace(column)
    absent = pa.compute.is_in(text, value_set=pa.array(pa.csv.ConvertOptions().null_values))
    text = pa.compute.if_else(absent, pa.scalar(None, pa.string()), text)
    found = pa.compute.strptime(text, format=form, unit="s", error_is_null=True)
    return None if found.null_count > text.null_count else found


def _ungrouped(found: Resolved, column: Any) -> Any:
    """Return numbers without the marks between groups of three digits, or None."""
    pa = pyarrow("tables", "cli")
    compute, mark = pa.compute, re.escape(found.thousands or "")
    text = compute.utf8_trim_whitespace(column)
    absent = compute.is_in(text, value_set=pa.array(pa.csv.ConvertOptions().null_values))
    grouped = compute.match_substring_regex(
        text, rf"^[+-]?[0-9]{{1,3}}({mark}[0-9]{{3}})+({re.escape(found.decimal)}[0-9]*)?$"
    )
    text = compute.if_else(grouped, compute.replace_substring(text, found.thousands, ""), text)
    text = compute.if_else(absent, pa.scalar(None, pa.string()), text)
    point = r"\." if found.decimal == "," else ","
    if compute.any(compute.match_substring_regex(text, f"{mark}|{point}")).as_py():
        return None
    try:
        return compute.replace_substring(text, found.decimal, ".").cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def no_number(path: Path, name: str, found: Resolved) -> DataError:
    """Build the error for an entry that is not a number or date, without quoting it."""
    if name in found.dates:
        return DataError(
            f"{path.name}: column {name!r} has an entry that is not a date of the form "
            f"{found.dates[name]}. Give the form in the bounds file, as in "
            '{ dates = [2000-01-01, 2025-12-31], format = "%d.%m.%Y" }.'
        )
    return DataError(
        f"{path.name}: column {name!r} has an entry that is not a number, but the bounds file "
        f"gives it numeric bounds. {found.numbers_described()}. Otherwise correct the entry, or "
        "list the column's categories in the bounds file."
    )
