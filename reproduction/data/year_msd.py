"""YearMSD: the year of a song, from the timbre of its sound."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastmix.datasets import Table
from reproduction.data.sources import DataSet, Source, make_table

__all__ = ["YEAR_MSD"]

#: Averages and covariances of timbre. It has no unit; these are the orders of magnitude that its
#: makers document.
_FEATURES = {
    **{f"timbre_average_{i}": (-500.0, 500.0) for i in range(1, 13)},
    **{f"timbre_covariance_{i}": (-50_000.0, 50_000.0) for i in range(1, 79)},
}

_SOURCE = Source(
    title="YearMSD",
    files=("YearPredictionMSD.txt", "YearPredictionMSD.csv", "year_msd.parquet"),
    columns=("year", *_FEATURES),
    rows=515_345,
    address=(
        "YearPredictionMSD.txt.zip from https://archive.ics.uci.edu/dataset/203 "
        "and unpack YearPredictionMSD.txt"
    ),
    openml="YearPredictionMSD",
    header=False,
)


def _build(frame: Any, origin: str) -> Table:
    """Make a table of songs, with the year as target.

    Notes
    -----
    Paper: the table of data statistics (131,072 sampled rows, d = 90).
    """
    return make_table(
        frame[list(_FEATURES)].to_numpy(dtype=np.float64),
        _FEATURES,
        {},
        ("year", frame["year"], (1900.0, 2011.0)),
        f"{origin}, as published",
    )


YEAR_MSD = DataSet((_SOURCE,), _build)
