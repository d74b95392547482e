"""Excel files: cells declare no type, so each is converted by itself, to the text that spells it.

From there on a sheet is like a CSV file: an entry that spells no number stops a fit, numbers that
are stored as text are numbers, and a row without any entry is no record.
"""

import datetime
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from fastmix._validation import value_error
from fastmix.data.arrow import distinct, pyarrow
from fastmix.data.columns import text_array
from fastmix.data.delimited import TextFormat
from fastmix.data.spelling import Spelling
from fastmix.data.stored import RECORDS, StoredFile, package
from fastmix.errors import DataError

#: What Excel shows for a value that it could not compute.
_ERRORS = {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA"}


class Sheet(StoredFile):
    """A sheet of an Excel file: the one that is asked for, or the first."""

    def __init__(self, path: Path, sheet: str | None = None) -> None:
        super().__init__(path)
        self.sheet = sheet

    def fields(self, text: TextFormat) -> dict[str, str]:
        return dict.fromkeys(next(self._rows(text)), "unknown")

    def batches(self, numbers: list[str], texts: list[str], text: TextFormat) -> Iterator[Any]:
        pa, spelling, rows = pyarrow(), text.spelling(), self._rows(text)
        names = next(rows)
        places = {name: names.index(name) for name in (*numbers, *texts)}
        more = True
        while more:
            block = list(islice(rows, RECORDS))
            more = len(block) == RECORDS
            yield pa.table({
                name: text_array([_text(row[at], name, spelling, name in numbers) for row in block])
                for name, at in places.items()
            })  # fmt: skip

    def _rows(self, text: TextFormat) -> Iterator[list[Any]]:
        """Yield the names of the columns, and then the cells of each record."""
        cells = self._cells()
        first = next(cells, [])
        if text.has_names:
            names = ["" if each is None else str(each) for each in first]
        else:
            names = [*text.names] or [f"c{place}" for place, _ in enumerate(first, 1)]
            cells = chain([first], cells)
        while names and not names[-1]:
            names.pop()
        if not names:
            raise DataError(f"{self.name} must have a first line that names the columns.")
        yield distinct(self.name, names)
        yield from ([*row, *[None] * len(names)] for row in cells)

    def _cells(self) -> Iterator[list[Any]]:
        """Yield the cells of each row that has an entry."""
        openpyxl = package("openpyxl", "Excel files", "excel")
        with self._reading():
            book = openpyxl.load_workbook(self.path, read_only=True, data_only=True)
        if self.sheet is not None and self.sheet not in book.sheetnames:
            raise value_error("query", f"be one of the sheets {book.sheetnames}", self.sheet)
        with self._reading():
            sheet = book.worksheets[0] if self.sheet is None else book[self.sheet]
            sheet.reset_dimensions()  # what some programs write there is wrong
            rows = sheet.iter_rows(values_only=True)
        try:
            while True:
                with self._reading():
                    row = next(rows, None)
                if row is None:
                    return
                if any(cell is not None for cell in row):
                    yield list(row)
        finally:
            book.close()


def _text(cell: Any, name: str, spelling: Spelling, number: bool) -> str | None:
    """Return what a cell spells, as a CSV file would have it; None for an empty one."""
    if cell is None or isinstance(cell, str):
        return None if cell in _ERRORS else cell
    if isinstance(cell, bool):
        return str(int(cell)) if number else str(cell).lower()
    if isinstance(cell, (int, float)):
        whole = isinstance(cell, int) or cell.is_integer()
        plain = str(int(cell)) if whole else repr(cell)
        return plain.replace(".", spelling.decimal) if number else plain
    if isinstance(cell, datetime.date):
        return cell.strftime(spelling.dates.get(name, "%Y-%m-%d"))
    return str(cell)
