"""The number of rows with noise, and rows that take it for their own."""

import math

import numpy as np
import pytest

from fastmix import PrivateLinearRegression
from fastmix.data import ArrayRows, RowMap
from fastmix.data.persons import Persons
from fastmix.engine.fit import sized
from fastmix.releases import SIZE, make_noise


def test_the_released_number_and_its_bound():
    rows = ArrayRows(np.zeros((500, 2)), RowMap(1.0), np.zeros(500))
    noise = make_noise(0, warn=False)
    found = [noise.release(SIZE, rows, sigma=10.0) for _ in range(4000)]
    assert set(noise.drawn) == {SIZE.event(10.0)}
    sizes = np.array(found)
    assert abs(np.median(sizes) - 500) < 1.5
    assert np.abs(sizes - 500).mean() == pytest.approx(10.0, rel=0.1)
    # Never below 1, and the rows themselves keep theirs.
    few = ArrayRows(np.zeros((1, 2)), RowMap(1.0), np.zeros(1))
    assert min(noise.release(SIZE, few, sigma=99.0) for _ in range(50)) == 1
    assert rows.n == rows.most == 500


def test_what_bounds_rounding_errors_is_the_released_number():
    persons = Persons(2, np.full(4, 0.5), 4, 3)
    rows = ArrayRows(np.zeros((4, 2)), RowMap(1.0), np.zeros(4), persons=persons)
    counted = rows.counted(10, 100)
    assert counted.persons.rows == 300
    assert rows.counted(10, 10**12).persons.rows == 1 << 33
    assert rows.counted(1).most == 2
    plan = PrivateLinearRegression(public_rows=False, delta=1e-6)._planned(100, 2)[1]
    counted = sized(rows, plan, make_noise(0, warn=False))
    assert counted.most == counted.n + math.ceil(64.0 * plan.size_scale)
    assert (rows.n, rows.most, rows.persons.rows) == (2, 2, 4)


@pytest.mark.parametrize("persons", [None, Persons(4, np.ones(4), 4, 10)], ids=["rows", "persons"])
@pytest.mark.parametrize("most", [10, 10**6, 10**9, 2 * 10**9, 4 * 10**9])
def test_rows_stay_short_where_the_bound_on_rounding_is_large(persons, most):
    # A tiny epsilon has so much noise on the number of rows that 1 - h was below -1, or no number.
    rows = ArrayRows(np.ones((4, 1)), RowMap(1.0), np.ones(4), persons=persons).counted(4, most)
    total = np.linalg.norm(rows.second_moments(5.0 * np.eye(2)))
    assert 0.0 < total <= 4.0
