"""Which columns of a table are the levels of one category."""

from typing import NamedTuple


class Categories(NamedTuple):
    """The columns of every category: public knowledge from the bounds of a table.

    ``columns`` are those of each category without its first level, which has no column. In a row,
    at most one of them is not 0, and that one is ``unit``.
    """

    columns: tuple[tuple[int, ...], ...]
    unit: float

    def numbers(self, d: int) -> list[int]:
        """Return the columns of no category, without the last of d, which is constant."""
        taken = {j for columns in self.columns for j in columns}
        return [j for j in range(d - 1) if j not in taken]
