"""Black Friday: what customers of a shop spent, from categories alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastmix.datasets import Table
from reproduction.data.sources import DataSet, Source, indicators, make_table

__all__ = ["BLACK_FRIDAY"]


def _numbers(*values: int) -> tuple[str, ...]:
    return tuple(map(str, values))


#: Codes of each column in the published file.
_CODES = {
    "Gender": ("F", "M"),
    "Age": ("0-17", "18-25", "26-35", "36-45", "46-50", "51-55", "55+"),
    "Occupation": _numbers(*range(21)),
    "City_Category": ("A", "B", "C"),
    "Stay_In_Current_City_Years": _numbers(*range(5)),
    "Marital_Status": ("0", "1"),
    "Product_Category_1": _numbers(1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 15),
    "Product_Category_2": _numbers(2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16),
    "Product_Category_3": _numbers(3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18),
}

_SOURCE = Source(
    title="Black Friday",
    files=("black_friday*.parquet", "black_friday*.csv"),
    columns=(*_CODES, "Purchase"),
    rows=166_821,
    address="black_friday as CSV or Parquet from https://www.openml.org/d/41540",
    openml=41540,
)


def _build(frame: Any, origin: str) -> Table:
    """Make a table of purchases, with the amount as target and every column one-hot.

    Notes
    -----
    Paper: Appendix H and the table of data statistics (131,072 sampled rows, d = 81).
    """
    years = frame["Stay_In_Current_City_Years"].replace("4+", "4")
    frame = frame.assign(Stay_In_Current_City_Years=years)
    return make_table(
        np.empty((len(frame), 0)),
        {},
        indicators("Black Friday", frame, _CODES),
        ("Purchase", frame["Purchase"], (0.0, 25_000.0)),
        f"{origin}, every column one-hot",
    )


BLACK_FRIDAY = DataSet((_SOURCE,), _build)
