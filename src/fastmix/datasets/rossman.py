"""Rossman: daily sales of 1,115 drug stores."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fastmix.datasets._sources import FOLDER, Source, bounds, code, one_hot, pandas
from fastmix.datasets.table import Table

__all__ = ["load_rossman"]

_KAGGLE = "from https://www.kaggle.com/c/rossmann-store-sales/data"

_SALES = Source(
    title="Rossman",
    files=("rossmann_train.parquet", "rossmann_train.csv", "train.csv"),
    columns=(
        *("Store", "DayOfWeek", "Date", "Sales", "Open"),
        *("Promo", "StateHoliday", "SchoolHoliday"),
    ),
    rows=1_017_209,
    address=f"train.csv and store.csv {_KAGGLE}",
)
_STORES = Source(
    title="Rossman stores",
    files=("rossmann_store.parquet", "rossmann_store.csv", "store.csv"),
    columns=(
        *("Store", "StoreType", "Assortment", "CompetitionDistance"),
        *("CompetitionOpenSinceMonth", "CompetitionOpenSinceYear", "Promo2"),
        *("Promo2SinceWeek", "Promo2SinceYear", "PromoInterval"),
    ),
    rows=1_115,
    address=f"train.csv and store.csv {_KAGGLE}",
)

#: Numbers and their bounds, then codes.
_NUMBERS = {
    "DayOfWeek": (1.0, 7.0),
    "Open": (0.0, 1.0),
    "Promo": (0.0, 1.0),
    "SchoolHoliday": (0.0, 1.0),
    "CompetitionDistance": (0.0, 80_000.0),
    "CompetitionOpenSinceMonth": (0.0, 12.0),
    "CompetitionOpenSinceYear": (0.0, 2015.0),
    "Promo2": (0.0, 1.0),
    "Promo2SinceWeek": (0.0, 53.0),
    "Promo2SinceYear": (0.0, 2015.0),
    "Month": (1.0, 12.0),
    "Day": (1.0, 31.0),
    "WeekOfYear": (1.0, 53.0),
}
_CODES = {
    "StateHoliday": ("0", "a", "b", "c"),
    "StoreType": ("a", "b", "c", "d"),
    "Assortment": ("a", "b", "c"),
    "PromoInterval": ("Feb,May,Aug,Nov", "Jan,Apr,Jul,Oct", "Mar,Jun,Sept,Dec", "none"),
}


def load_rossman(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
    check_rows: bool = True,
) -> Table:
    """Load the sales of open days, joined with what is known of the stores.

    Parameters
    ----------
    data_dir : path, optional
        The folder that holds both files; by default the folder named by ``FASTMIX_DATA``.
    download : bool, default False
        No effect: the files are on Kaggle only, behind a login.
    check_rows : bool, default True
        Refuse files that have not the published 1,017,209 and 1,115 rows.

    Returns
    -------
    Table
        28 features (13 numbers, 15 indicators), and the target ``Sales``.

    Notes
    -----
    Paper: Appendix H and the table of data statistics (524,288 sampled rows, d = 28).
    Deviation: the paper does not say how missing numbers are filled; with zeros, the printed
    statistics come out. Closed days, days without sales and sales more than 1.5 interquartile
    ranges outside the quartiles are dropped, which is data cleaning and not private.
    Sensitive inputs: none, the data are public.
    """
    folder = data_dir if data_dir is not None else os.environ.get(FOLDER)
    if folder and Path(folder).is_file():
        raise ValueError("Rossman: data_dir must be the folder of both files; got a file.")
    sales, origin = _SALES.read(folder, download=download, check_rows=check_rows)
    stores, _ = _STORES.read(folder, download=download, check_rows=check_rows)
    frame = sales[(sales["Open"] == 1) & (sales["Sales"] > 0)].merge(stores, on="Store")
    low, high = frame["Sales"].quantile([0.25, 0.75])
    reach = 1.5 * (high - low)
    frame = frame[frame["Sales"].between(low - reach, high + reach)]
    date = pandas().to_datetime(frame["Date"])
    frame = frame.assign(
        Month=date.dt.month, Day=date.dt.day, WeekOfYear=date.dt.isocalendar().week,
        PromoInterval=code(frame["PromoInterval"].astype(object).fillna("none")),
    )  # fmt: skip
    numbers = frame[list(_NUMBERS)].astype(np.float64).fillna(0.0).to_numpy()
    blocks = [one_hot("Rossman", frame[name], codes) for name, codes in _CODES.items()]
    indicators = tuple(name for _, part in blocks for name in part)
    return Table(
        X=np.hstack([numbers, *(block for block, _ in blocks)]),
        y=frame["Sales"].to_numpy(dtype=np.float64),
        feature_names=(*_NUMBERS, *indicators),
        target_name="Sales",
        bounds_X=bounds([*_NUMBERS.values(), *[(0.0, 1.0)] * len(indicators)]),
        bounds_y=(0.0, 20_000.0),
        provenance=f"{origin}, open days joined with stores, outliers of Sales dropped",
    )
