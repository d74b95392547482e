"""Files of SAS, SPSS and Stata, whose columns declare numbers, dates or text.

Codes stay codes: value labels are not used. What the file declares to be missing is missing.
"""

import datetime
import re
from collections.abc import Iterator
from typing import Any

from fastmix.data.arrow import distinct, pyarrow
from fastmix.data.columns import text_array
from fastmix.data.delimited import TextFormat
from fastmix.data.stored import StoredFile, package
from fastmix.errors import DataError
from fastmix.schema.elements import days

_READERS = {
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
}
SUFFIXES = tuple(_READERS)

#: Formats of numbers that are dates: of Stata, and of SPSS and SAS.
_DATES = re.compile(r"%-?(t[dc]|d)|[AEJS]?DATE|[BE]8601D[AT]|[MDY]{6}|YMDHMS")


class StatisticsFile(StoredFile):
    """A file of SAS, SPSS or Stata."""

    def fields(self, text: TextFormat) -> dict[str, str]:
        meta = self._read(metadataonly=True)[1]
        distinct(self.name, meta.column_names)
        return {name: _kind(meta, name) for name in meta.column_names}

    def batches(self, numbers: list[str], texts: list[str], text: TextFormat) -> Iterator[Any]:
        values, meta = self._read(usecols=[*numbers, *texts])
        columns = {name: self._column(name, values[name], _kind(meta, name)) for name in values}
        yield pyarrow().table(columns)

    def _read(self, **options: Any) -> tuple[dict[str, list[Any]], Any]:
        reader = package("pyreadstat", "Files of SAS, SPSS and Stata", "statistics")
        with self._reading():
            read = getattr(reader, _READERS[self.path.suffix.lower()])
            values, meta = read(str(self.path), output_format="dict", **options)
        return values, meta

    def _column(self, name: str, values: list[Any], kind: str) -> Any:
        """Return a column as an Arrow array, dates in days since 1970."""
        if kind == "text":
            return text_array(values)
        date = kind != "number"
        fits = (datetime.date,) if date else (int, float)
        if not all(value is None or isinstance(value, fits) for value in values):
            raise DataError(f"{self.name}: column {name!r} has a format that fastmix cannot read.")
        return pyarrow().array(map(days, values) if date else values, "float64")


def _kind(meta: Any, name: str) -> str:
    if meta.readstat_variable_types[name] == "string":
        return "text"
    form = meta.original_variable_types[name] or ""
    return "date32[day]" if _DATES.match(form.upper() if form[:1] != "%" else form) else "number"
