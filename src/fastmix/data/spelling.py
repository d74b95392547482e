"""Numbers and dates that are written as text: what each entry spells, by public rules.

An entry is converted by its own characters.  A fit refuses an entry that spells no number or date;
it never tries another rule.
"""

import re
from dataclasses import dataclass
from typing import Any

from fastmix.data.arrow import column_kind, pyarrow
from fastmix.errors import DataError
from fastmix.schema.elements import level_number


@dataclass(frozen=True)
class Spelling:
    """How numbers and dates are written: marks, forms of dates, spellings of missing values."""

    decimal: str
    thousands: str | None
    written: tuple[tuple[str, str], ...]
    marked: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def dates(self) -> dict[str, str]:
        """Forms of the columns of dates."""
        return dict(self.written)

    def is_special(self, name: str) -> bool:
        """Tell whether only `parsed` can read a column of numbers that is written as text."""
        words = (level_number(each) is None for each in dict(self.marked).get(name, ()))
        return self.thousands is not None or name in self.dates or any(words)

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

    def parsed(self, file: str, table: Any, numbers: list[str]) -> Any:
        """Convert the columns of numbers and dates that are text in an Arrow table or batch."""
        for name in numbers:
            at = table.schema.get_field_index(name)
            column = table.column(at)
            if column_kind(column.type) != "text":
                continue
            text = self._present(name, column)
            form = self.dates.get(name)
            values = self._reals(text) if form is None else _days(form, text)
            if values is None:
                raise self.no_number(file, name)
            table = table.set_column(at, name, values)
        return table

    def _present(self, name: str, column: Any) -> Any:
        """Return text without outer spaces, and null where it is empty or marks a missing value."""
        pa = pyarrow()
        absent = [*pa.csv.ConvertOptions().null_values, *dict(self.marked).get(name, ())]
        text = pa.compute.utf8_trim_whitespace(column.cast(pa.string()))
        missing = pa.compute.is_in(text, value_set=pa.array(absent, pa.string()))
        return pa.compute.if_else(missing, pa.scalar(None, pa.string()), text)

    def _reals(self, text: Any) -> Any:
        """Return numbers without marks between groups of three digits, or None."""
        pa = pyarrow()
        compute, strange = pa.compute, r"\." if self.decimal == "," else ","
        if self.thousands is not None:
            mark = re.escape(self.thousands)
            grouped = compute.match_substring_regex(
                text, rf"^[+-]?[0-9]{{1,3}}({mark}[0-9]{{3}})+({re.escape(self.decimal)}[0-9]*)?$"
            )
            bare = compute.replace_substring(text, self.thousands, "")
            text = compute.if_else(grouped, bare, text)
            strange = f"{mark}|{strange}"
        if compute.any(compute.match_substring_regex(text, strange)).as_py():
            return None
        try:
            return compute.replace_substring(text, self.decimal, ".").cast(pa.float64())
        except pa.ArrowInvalid:
            return None

    def no_number(self, file: str, name: str) -> DataError:
        """Build the error for an entry that is not a number or date, without quoting it."""
        missing = "name it among the markers of missing values, as in markers = ['NR', 999]"
        if name in self.dates:
            return DataError(
                f"{file}: column {name!r} has an entry that is not a date of the form "
                f"{self.dates[name]}. Give the form in the bounds file, as in "
                '{ dates = [2000-01-01, 2025-12-31], format = "%d.%m.%Y" }; or, if it stands for '
                f"a missing value, {missing} under [missing]."
            )
        return DataError(
            f"{file}: column {name!r} has an entry that is not a number, but the bounds file "
            f"gives it numeric bounds. {self.numbers_described()}. If the entry stands for a "
            f"missing value, {missing} under [missing] in the bounds file. Otherwise correct the "
            "entry, or list the column's categories in the bounds file."
        )


def _days(form: str, text: Any) -> Any:
    """Return dates, or None if an entry is not one of this form."""
    found = pyarrow().compute.strptime(text, format=form, unit="s", error_is_null=True)
    return None if found.null_count > text.null_count else found
