"""The data sets: generated, from a package, and from files in a folder (skipped when absent).

Every set is features, target and bounds. A data holder states bounds from public knowledge, as
round numbers; those of the files stand in for them: ranges rounded outwards to one significant
digit. Values beyond the bounds of the flights from New York are moved to them.
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
    """Features, target and public bounds; fits use at most ``most_rows`` rows of the split."""

    name: str
    X: Any
    y: Any
    bounds: dict[str, Any]
    fit_intercept: bool = True
    most_rows: int | None = None


def rounded_out(low: Any, high: Any) -> tuple[Any, Any]:
    """Round ranges outwards to one significant digit of the larger magnitude of the two ends."""
    largest = np.maximum(np.abs(low), np.abs(high))
    unit = 10.0 ** np.floor(np.log10(np.where(largest > 0.0, largest, 1.0)))
    # What is a round number but for rounding stays as it is.
    low, high = np.floor(low / unit + 1e-9) * unit, np.ceil(high / unit - 1e-9) * unit
    return low, np.where(high > low, high, low + unit)


def round_bounds(X: Any, y: Any) -> dict[str, Any]:
    """Return bounds as a data holder would state them: round, and [0, 1] for binary columns."""
    low, high = rounded_out(X.min(axis=0), X.max(axis=0))
    binary = np.array([np.isin(column, (0.0, 1.0)).all() for column in X.T])
    y_low, y_high = rounded_out(y.min(), y.max())
    return {
        "bounds_X": (np.where(binary, 0.0, low), np.where(binary, 1.0, high)),
        "bounds_y": (float(y_low), float(y_high)),
    }


def table(name: str, frame: pd.DataFrame, target: str, **options: Any) -> DataSet:
    """One-hot encode what is not a number, and take round bounds."""
    y = frame[target].to_numpy(np.float64)
    X = pd.get_dummies(frame.drop(columns=target), dtype=np.float64).to_numpy(np.float64)
    return DataSet(name, X, y, round_bounds(X, y), **options)


def generated(name: str, n: int) -> DataSet:
    make = {"sphere": make_sphere, "correlated": make_correlated}[name]
    X, y = make(n, 32, random_state=0)
    return DataSet(name, X, y, {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}, fit_intercept=False)


def nycflights13() -> DataSet:
    data = load_nycflights13()
    X, y = np.clip(data.X, *data.bounds_X), np.clip(data.y, *data.bounds_y)
    return DataSet("nycflights13", X, y, {"bounds_X": data.bounds_X, "bounds_y": data.bounds_y})


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
    target = str(frame.columns[-1])
    return table("blog_feedback", frame.assign(**{target: np.log1p(frame[target])}), target)


def diamonds(folder: Path, name: str = "diamonds", most_rows: int | None = None) -> DataSet:
    frame = pd.read_parquet(folder / "diamonds.parquet").dropna()
    return table(name, frame, "price", most_rows=most_rows)


def diamonds_1000(folder: Path) -> DataSet:
    return diamonds(folder, "diamonds_1000", 1000)


def flights_2001(folder: Path) -> DataSet:
    """The four features of the paper's Airline, in its scaling.

    All columns are divided by one number, which bounds the norm of a row; there is no intercept.
    """
    frame = pd.read_parquet(folder / "flights_3m_2001.parquet")
    date = frame["date"].dt
    columns = (date.day, date.day_of_week + 1, 100 * date.hour + date.minute, frame["distance"])
    X, y = np.column_stack(columns).astype(np.float64), frame["delay"].to_numpy(np.float64)
    _, norm = rounded_out(0.0, np.linalg.norm(X, axis=1).max())
    _, delay = rounded_out(0.0, np.abs(y).max())
    bounds = {"data_norm": float(norm), "bounds_y": (-float(delay), float(delay))}
    return DataSet("flights_2001", X, y, bounds, fit_intercept=False)


def flights_onehot(folder: Path) -> DataSet:
    """Origin and destination one-hot, and the distance, for 300,000 sampled flights of 2001."""
    frame = pd.read_parquet(folder / "flights_3m_2001.parquet").drop(columns="date")
    return table("flights_onehot", frame.sample(300_000, random_state=0), "delay")


def mnist(folder: Path) -> DataSet:
    """Digits as numbers from their pixels, which lie in [0, 255]."""
    data = table("mnist", pd.read_parquet(folder / "mnist.parquet"), "label")
    return DataSet(data.name, data.X, data.y, {**data.bounds, "bounds_X": (0.0, 255.0)})


def plain(name: str, target: str | None = None) -> Callable[[Path], DataSet]:
    """Return the loader of a file of numbers, whose target is by default the last column."""

    def load(folder: Path) -> DataSet:
        frame = pd.read_parquet(folder / f"{name}.parquet").dropna()
        return table(name, frame, target or str(frame.columns[-1]))

    return load


#: Small sets first.
FILES: dict[str, Callable[[Path], DataSet]] = {
    "wine": plain("wine", "y"),
    "diamonds_1000": diamonds_1000,
    "skillcraft": plain("skillcraft", "y"),
    "pumadyn32nm": plain("pumadyn32nm", "y"),
    "pol": plain("pol"),
    "elevators": plain("elevators"),
    "bike": plain("bike", "y"),
    "california": plain("california", "median_house_value"),
    "kin40k": plain("kin40k"),
    "diamonds": diamonds,
    "protein": plain("protein"),
    "blog_feedback": blog_feedback,
    "black_friday": black_friday,
    "sgemm": plain("sgemm", "run_ms"),
    "beijing_air": beijing_air,
    "rossmann": rossmann,
    "flights_2001": flights_2001,
    "flights_onehot": flights_onehot,
    "mnist": mnist,
}
NAMES = ("sphere", "correlated", "nycflights13", *FILES)
#: The sets that constants of the default method were chosen on. The report shows the others, which
#: are held out, by themselves; kin40k is one of them although it was looked at in part.
CHOSEN_ON = (
    "california",
    "bike",
    "wine",
    "diamonds_1000",
    "pumadyn32nm",
    "elevators",
    "black_friday",
    "rossmann",
)


def load(names: list[str], folder: Path | None, quick: bool) -> Iterator[DataSet]:
    """Yield the named sets; says which files are absent."""
    for name in names:
        if name in ("sphere", "correlated"):
            yield generated(name, 2**14 if quick else 2**19)
        elif name == "nycflights13":
            yield nycflights13()
        else:
            try:
                if folder is None:
                    raise FileNotFoundError("no --data-dir")
                yield FILES[name](folder)
            except FileNotFoundError as error:
                print(f"{name}: skipped, {error}")
