"""Rossman: daily sales of 1,115 drug stores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fastmix.datasets import Table
from reproduction.data.sources import DataSet, Source, code, indicators, make_table

__all__ = ["ROSSMAN"]

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


def _build(sales: Any, stores: Any, origin: str) -> Table:
    """Make a table of the sales of open days, joined with what is known of the stores.

    Notes
    -----
    Paper: Appendix H and the table of data statistics (524,288 sampled rows, d = 28).
    The paper does not say how missing numbers are filled. The authors' published script fills the
    distance of competitors with the median of the stores, and other numbers with zeros. Closed
    days, days without sales and sales more than 1.5 interquartile ranges outside the quartiles are
    dropped. All of that is data cleaning and not private.
    """
    distance = stores["CompetitionDistance"]
    stores = stores.assign(CompetitionDistance=distance.fillna(distance.median()))
    frame = sales[(sales["Open"] == 1) & (sales["Sales"] > 0)].merge(stores, on="Store")
    low, high = frame["Sales"].quantile([0.25, 0.75])
    reach = 1.5 * (high - low)
    frame = frame[frame["Sales"].between(low - reach, high + reach)]
    date = pd.to_datetime(frame["Date"])
    frame = frame.assign(
        Month=date.dt.month, Day=date.dt.day, WeekOfYear=date.dt.isocalendar().week,
        PromoInterval=code(frame["PromoInterval"].astype(object).fillna("none")),
    )  # fmt: skip
    return make_table(
        frame[list(_NUMBERS)].astype(np.float64).fillna(0.0).to_numpy(),
        _NUMBERS,
        indicators("Rossman", frame, _CODES),
        ("Sales", frame["Sales"], (0.0, 20_000.0)),
        f"{origin}, open days joined with stores, outliers of Sales dropped",
    )


ROSSMAN = DataSet((_SALES, _STORES), _build)
