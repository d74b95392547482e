"""YearMSD: the year of a song, from the timbre of its sound."""

from __future__ import annotations

import os

import numpy as np

from fastmix.datasets._sources import Source, bounds
from fastmix.datasets.table import Table

__all__ = ["load_year_msd"]

_AVERAGES = tuple(f"timbre_average_{i}" for i in range(1, 13))
_COVARIANCES = tuple(f"timbre_covariance_{i}" for i in range(1, 79))

_SOURCE = Source(
    title="YearMSD",
    files=("YearPredictionMSD.txt", "YearPredictionMSD.csv", "year_msd.parquet"),
    columns=("year", *_AVERAGES, *_COVARIANCES),
    rows=515_345,
    address=(
        "YearPredictionMSD.txt.zip from https://archive.ics.uci.edu/dataset/203 "
        "and unpack YearPredictionMSD.txt"
    ),
    openml="YearPredictionMSD",
    header=False,
)


def load_year_msd(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
    check_rows: bool = True,
) -> Table:
    """Load the songs of YearPredictionMSD.

    Parameters
    ----------
    data_dir : path, optional
        The file, or the folder that holds it; by default the folder named by ``FASTMIX_DATA``.
    download : bool, default False
        Fetch the set from OpenML by its name, ``YearPredictionMSD``, when there is no file.
    check_rows : bool, default True
        Refuse a file that has not the published 515,345 rows.

    Returns
    -------
    Table
        90 features, 12 averages and 78 covariances of timbre, and the target ``year``.

    Notes
    -----
    Paper: the table of data statistics (131,072 sampled rows, d = 90).
    Deviation: none.
    Sensitive inputs: none, the data are public.
    """
    frame, origin = _SOURCE.read(data_dir, download=download, check_rows=check_rows)
    values = frame.to_numpy(dtype=np.float64)
    return Table(
        X=np.ascontiguousarray(values[:, 1:]),
        y=values[:, 0].copy(),
        feature_names=(*_AVERAGES, *_COVARIANCES),
        target_name="year",
        # Timbre has no unit; these are the orders of magnitude that its makers document.
        bounds_X=bounds([(-500.0, 500.0)] * 12 + [(-50_000.0, 50_000.0)] * 78),
        bounds_y=(1900.0, 2011.0),
        provenance=f"{origin}, as published",
    )
