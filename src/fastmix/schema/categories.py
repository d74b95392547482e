"""The encoded columns of the categories of a table or a matrix."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fastmix._validation import type_error, value_error


class Categories(NamedTuple):
    """The encoded columns of every category, which follow from public bounds or are declared.

    ``columns`` has the columns of each category; one level has no column: the first one of a table,
    or that of rows with zeros only. In a row, at most one column of a category is not 0: its value
    is ``unit``. ``unlisted`` has, for each category whose last level is for values outside its
    public list, its columns and those of each of its terms, level by level.
    """

    columns: tuple[tuple[int, ...], ...]
    unit: float
    unlisted: tuple[tuple[tuple[int, ...], ...], ...] = ()

    def numbers(self, d: int) -> list[int]:
        """Return the columns of numbers among d columns, the last of which is constant."""
        taken = {j for columns in self.columns for j in columns}
        return [j for j in range(d - 1) if j not in taken]


def dummy_columns(
    given: Any, d: int, labels: Sequence[Any] | None = None
) -> tuple[tuple[int, ...], ...]:
    """Return the places of the dummies of each category among d columns, some given by label."""
    places = {} if labels is None else {label: j for j, label in enumerate(labels)}
    found = tuple(
        tuple(_place(column, d, places) for column in _listed(columns))
        for columns in _listed(given)
    )
    taken = [j for columns in found for j in columns]
    if len(set(taken)) != len(taken) or not all(found):
        raise value_error("categories", "have each column once, and a column in each list", given)
    return found


def _listed(value: Any) -> list[Any]:
    """Return a list; refuse text, which would become a list of letters."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise type_error("categories", "be a list with a list of columns per category", value)
    return list(value)


def _place(column: Any, d: int, places: dict[Any, int]) -> int:
    """Return the place of a column that is given by its label or its place."""
    if isinstance(column, str) and column in places:
        return places[column]
    if isinstance(column, (bool, str)) or not hasattr(column, "__index__"):
        raise value_error("categories", "name columns of X", column)
    if not 0 <= column.__index__() < d:
        raise value_error("categories", f"have places from 0 to {d - 1}", column)
    return int(column)
