"""Shares of values outside bounds, for the eyes of the data holder only.

Nothing here is private, and nothing here is ever written to a file.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix.data.columns import columns_of
from fastmix.data.delimited import TextFormat
from fastmix.data.encode import in_days, needed
from fastmix.data.levels import same_but_for_spelling
from fastmix.data.read import Table, parts, read_arrow
from fastmix.errors import DataError
from fastmix.schema.bounds import PublicBounds
from fastmix.schema.elements import MISSING
from fastmix.schema.features import Category, Labels, Number

#: Shares from which a column deserves a second look.
_MANY_OUTSIDE, _MANY_OTHER, _MANY_MISSING = 0.05, 0.2, 0.2
#: Share of missing numbers from which the middle of the bounds can decide an effect.
_MANY_MIDDLES = 0.01


@dataclass(frozen=True)
class ColumnCheck:
    """Numbers of rows of one column that bounds change; NOT private.

    ``other`` counts values that are not in the list, ``spelling`` those among them that differ
    from an entry of the list only in capitals or outer spaces. ``middle`` is the middle of the
    bounds, where missing numbers become it because nobody stated another value.
    """

    name: str
    rows: int
    missing: int
    below: int = 0
    above: int = 0
    other: int = 0
    spelling: int = 0
    constant: bool = False
    middle: float | None = None

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on shares that look like mistakes."""
        known = max(1, self.rows - self.missing)
        said = {
            "all values are missing": self.missing == self.rows,
            "many values are missing": _MANY_MISSING * self.rows < self.missing < self.rows,
            f"missing values become {self.middle}, the middle of the bounds, which biases effects: "
            "state a usual public value under [missing], or drop these rows": (
                self.middle is not None and _MANY_MIDDLES * self.rows < self.missing < self.rows
            ),
            "constant within its bounds": self.constant,
            "many values are outside the bounds": self.below + self.above > _MANY_OUTSIDE * known,
            "capitals or spaces differ from the list": self.spelling > 0,
            "many values are not in the list": self.other > _MANY_OTHER * known,
        }
        return tuple(remark for remark, holds in said.items() if holds)


def check_table(
    path: Table, bounds: PublicBounds, text: TextFormat | None = None
) -> list[ColumnCheck]:
    """Compare a table, a file or a folder of files, with its bounds; the result is NOT private.

    ``text`` is the format of a CSV file. Terms have no values of their own to compare.
    """
    numbers, categories = needed(bounds)
    text = (text or TextFormat()).of(bounds)
    found: dict[str, list[ColumnCheck]] = {}
    ends: dict[str, list[FloatArray]] = {}
    for file in parts(path):
        table = read_arrow(file, numbers, categories, text)
        columns = columns_of(table, numbers, categories, text)
        for feature in (bounds.target, *bounds.features):
            if isinstance(feature, Number):
                values = in_days(columns.numbers[feature.name], feature)
                found.setdefault(feature.name, []).append(_number(values, feature, bounds.missing))
                known = np.clip(values[~np.isnan(values)], feature.lower, feature.upper)
                seen = [known.min(), known.max()] if len(known) else []
                ends.setdefault(feature.name, []).append(np.array(seen))
            elif isinstance(feature, Labels) and feature.numbers:
                values = columns.numbers[feature.name]
                places = np.where(np.isnan(values), MISSING, feature.places(values)).astype(int)
                found.setdefault(feature.name, []).append(_category(places, feature, 0))
                ends.setdefault(feature.name, []).append(places[places != MISSING].astype(float))
            elif isinstance(feature, Category | Labels):
                codes, column = columns.codes[feature.name], table[feature.name]
                spelling = same_but_for_spelling(column, categories[feature.name])
                found.setdefault(feature.name, []).append(_category(codes, feature, spelling))
                ends.setdefault(feature.name, []).append(codes[codes != MISSING].astype(float))
    if not sum(each.rows for each in found[bounds.target.name]):
        raise DataError(f"{path.name} must have at least one row to check.")
    return [_joined(parts, np.concatenate(ends[name])) for name, parts in found.items()]


def _number(values: FloatArray, feature: Number, rule: str) -> ColumnCheck:
    return ColumnCheck(
        feature.name,
        rows=len(values),
        missing=int(np.isnan(values).sum()),
        below=int((values < feature.lower).sum()),
        above=int((values > feature.upper).sum()),
        middle=feature.filler if rule == "impute" and feature.missing is None else None,
    )


def _category(
    codes: npt.NDArray[np.int64], feature: Category | Labels, spelling: int
) -> ColumnCheck:
    return ColumnCheck(
        feature.name,
        rows=len(codes),
        missing=int((codes == MISSING).sum()),
        other=int(((codes < 0) & (codes != MISSING)).sum()),
        spelling=spelling,
    )


def _joined(parts: Iterable[ColumnCheck], values: FloatArray) -> ColumnCheck:
    """Return the counts of all files together; ``values`` are the clipped values of the column."""
    whole = list(parts)
    names = ("rows", "missing", "below", "above", "other", "spelling")
    totals = {name: sum(getattr(each, name) for each in whole) for name in names}
    constant = len(values) > 0 and bool(values.min() == values.max())
    return ColumnCheck(whole[0].name, **totals, constant=constant, middle=whole[0].middle)
