"""The paper's real data sets, read from files that their publishers offer."""

from __future__ import annotations

import os

from fastmix.datasets import Table
from reproduction.checks import check_one_of
from reproduction.data import airline, beijing, black_friday, rossman, year_msd
from reproduction.data.sources import DataSet

__all__ = ["SETS", "load_table"]

#: Every set that needs a file, by its name in the experiments.
SETS: dict[str, DataSet] = {
    "airline": airline.AIRLINE,
    "beijing": beijing.BEIJING,
    "black_friday": black_friday.BLACK_FRIDAY,
    "flights_2001": airline.FLIGHTS_2001,
    "rossman": rossman.ROSSMAN,
    "year_msd": year_msd.YEAR_MSD,
}


def load_table(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
    check_rows: bool = True,
) -> Table:
    """Load a data set with its public bounds.

    Parameters
    ----------
    name : str
        A key of `SETS`.
    data_dir : path, optional
        The file, or the folder that holds it; by default the folder that the environment variable
        ``FASTMIX_DATA`` names.
    download : bool, default False
        Fetch the set from OpenML if there is no file and OpenML has it.
    check_rows : bool, default True
        Refuse a file that does not have the published number of rows.

    Returns
    -------
    Table
        Features, target, their names and bounds, and where the data come from.

    Raises
    ------
    FileNotFoundError
        There is no file; the message says what to download, and where.
    """
    chosen = SETS[check_one_of("set", name, SETS)]
    return chosen.load(data_dir, download=download, check_rows=check_rows)
