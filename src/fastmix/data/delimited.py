"""The format of a CSV file: separator, decimal mark, encoding.

The first line names the columns and is public; values are not.  So options that are not given
follow from the first line alone, or from fixed rules.  If the first line is a record, they follow
from fixed rules only.  A fit refuses an entry that does not match the format; it never tries
another format.
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
from fastmix.data.spelling import Spelling
from fastmix.errors import DataError
from fastmix.schema.bounds import PublicBounds

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
    ``encoding`` is any encoding that Python knows. Without a ``header``, the columns are called
    ``names``, or c1, c2 and so on.
    """

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    header: bool = True
    names: tuple[str, ...] = ()
    #: Columns of dates with the form in which they are written, from the bounds file.
    dates: tuple[tuple[str, str], ...] = ()
    #: Columns with spellings of missing values, from the bounds file.
    markers: tuple[tuple[str, tuple[str, ...]], ...] = ()

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

    def of(self, bounds: PublicBounds) -> "TextFormat":
        """Return the format with what bounds say of it: dates, missing values, names of columns."""
        names = bounds.names or self.names
        return replace(self, dates=bounds.dates, markers=bounds.markers, names=names)

    @property
    def has_names(self) -> bool:
        """Whether the first line names the columns."""
        return self.header and not self.names

    def spelling(self, decimal: str = ".") -> Spelling:
        """Return how numbers and dates are written where they are text."""
        mark = self.decimal or decimal
        return Spelling(mark, self.thousands, self.dates, self.markers)

    def options(self) -> list[str]:
        """Return the options of the command line that ask for this format."""
        found = []
        for name in ("sep", "decimal", "thousands", "encoding"):
            if (value := getattr(self, name)) is not None:
                found += [f"--{name}", "tab" if value == "\t" else value]
        return found if self.header else [*found, "--no-header"]


@dataclass(frozen=True)
class Resolved:
    """The complete format of one file: the given options, and the rest from its first line."""

    sep: str
    spelling: Spelling
    encoding: str
    names: tuple[str, ...]
    #: Lines before the one with the names: 1 if Excel's ``sep=;`` comes first.
    skipped: int
    #: The separator that the line with the names suggests.
    suggested: str
    #: Whether a line has the names.
    header: bool
    #: Whether the encoding follows from a first line that is not UTF-8.
    guessed: bool

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
        encoding, guessed = text.encoding, False
        if encoding is None:
            encoding, guessed = _encoding(path, guess=text.has_names)
        with _open(path, encoding) as file:
            line = file.readline(_LONGEST_LINE).removeprefix("\ufeff")  # no part of a name
            directive = re.fullmatch(r"sep=(.)[\r\n]*", line, re.IGNORECASE)
            if directive is not None and not _separates(directive.group(1)):
                directive = None
            if directive is not None:
                line = file.readline(_LONGEST_LINE)
        by_name = "\t" if (text_suffix(path) or "").startswith(".tsv") else None
        suggested = _suggested(line) if text.has_names else ","  # a record suggests nothing
        given = text.sep or (directive.group(1) if directive is not None else None) or by_name
        sep = given or suggested
        if not record_lines(sep, 1).fullmatch(line.replace("\r\n", "\n").encode()):
            raise misread(path.name)
        fields = next(csv.reader([line], delimiter=sep), [])
        own = text.names or tuple(f"c{place}" for place, _ in enumerate(fields, 1))
        names = distinct(path.name, fields if text.has_names else list(own))
    except (csv.Error, UnicodeError, EOFError, gzip.BadGzipFile, zlib.error):
        raise DataError(f"The first line of {path.name} cannot be read as text.") from None
    if not names:
        raise DataError(f"{path.name} must have a first line that names the columns.")
    if len(names) != len(fields):
        raise DataError(f"{path.name} must have the {len(names)} columns that its bounds name.")
    # Semicolons separate fields where commas are decimal marks.
    comma = text.thousands == "." or (sep == ";" and text.thousands not in (",", "'", "\u2019"))
    return Resolved(
        sep=sep,
        spelling=text.spelling("," if comma else "."),
        encoding=encoding,
        names=tuple(names),
        skipped=int(directive is not None),
        suggested=suggested if text.has_names else sep,
        header=text.has_names,
        guessed=guessed,
    )


def _open(path: Path, encoding: str) -> Any:
    """Open a file to read its first line; decoding runs ahead, and must not fail at a value."""
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding=encoding, newline="", errors="replace")
    return path.open(newline="", encoding=encoding, errors="replace")


def _encoding(path: Path, *, guess: bool) -> tuple[str, bool]:
    """Return the encoding by the first line, and whether it is a guess; a record gives no guess."""
    compressed = path.name.lower().endswith(".gz")
    with gzip.open(path) if compressed else path.open("rb") as file:
        line = file.readline(_LONGEST_LINE)
    for mark, encoding in _MARKS:
        if line.startswith(mark):
            return encoding, False
    if not guess:
        return "utf-8", False
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
    as_text = [*categories, *filter(found.spelling.is_special, numbers)]
    types = dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(as_text, pa.string())
    convert = pa.csv.ConvertOptions(
        include_columns=list(types), column_types=types, decimal_point=found.spelling.decimal
    )
    return {**csv_layout(found), "convert_options": convert}


def csv_layout(found: Resolved) -> dict[str, Any]:
    """Return the options with which Arrow finds the fields of a file that `source` opens."""
    pa = pyarrow("tables", "cli")
    given = None if found.header else list(found.names)
    read = pa.csv.ReadOptions(skip_rows=found.skipped, block_size=CSV_BYTES, column_names=given)
    layout = pa.csv.ParseOptions(delimiter=found.sep, ignore_empty_lines=False)
    return {"read_options": read, "parse_options": layout}
