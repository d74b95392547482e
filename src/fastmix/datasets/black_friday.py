"""Black Friday: what customers of a shop spent, from categories alone."""

from __future__ import annotations

import os

import numpy as np

from fastmix.datasets._sources import Source, bounds, one_hot
from fastmix.datasets.table import Table

__all__ = ["load_black_friday"]


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


def load_black_friday(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
    check_rows: bool = True,
) -> Table:
    """Load the Black Friday purchases, every column one-hot.

    Parameters
    ----------
    data_dir : path, optional
        The file, or the folder that holds it; by default the folder named by ``FASTMIX_DATA``.
    download : bool, default False
        Fetch set 41540 from OpenML when there is no file.
    check_rows : bool, default True
        Refuse a file that has not the published 166,821 rows.

    Returns
    -------
    Table
        81 indicators, and the target ``Purchase``.

    Notes
    -----
    Paper: Appendix H and the table of data statistics (131,072 sampled rows, d = 81).
    Deviation: none.
    Sensitive inputs: none, the data are public.
    """
    frame, origin = _SOURCE.read(data_dir, download=download, check_rows=check_rows)
    frame["Stay_In_Current_City_Years"] = frame["Stay_In_Current_City_Years"].replace("4+", "4")
    blocks = [one_hot("Black Friday", frame[name], codes) for name, codes in _CODES.items()]
    names = tuple(name for _, part in blocks for name in part)
    return Table(
        X=np.hstack([block for block, _ in blocks]),
        y=frame["Purchase"].to_numpy(dtype=np.float64),
        feature_names=names,
        target_name="Purchase",
        bounds_X=bounds([(0.0, 1.0)] * len(names)),
        bounds_y=(0.0, 25_000.0),
        provenance=f"{origin}, every column one-hot",
    )
