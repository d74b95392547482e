"""The encoded columns of the categories of a table."""

from typing import NamedTuple


class Categories(NamedTuple):
    """The encoded columns of every category, which follow from public bounds.

    ``columns`` has the columns of each category; the first level has no column. In a row, at most
    one column of a category is not 0: its value is ``unit``.
    """

    columns: tuple[tuple[int, ...], ...]
    unit: float

    def numbers(self, d: int) -> list[int]:
        """Return the columns of numbers among d columns, the last of which is constant."""
        taken = {j for columns in self.columns for j in columns}
        return [j for j in range(d - 1) if j not in taken]
