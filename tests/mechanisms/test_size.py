"""The number of rows with noise, and rows that take it for their own."""

import math

import numpy as np
import pytest

from fastmix import AdaptiveRegression
from fastmix.data import ArrayRows, RowMap
from fastmix.data.persons import Persons
from fastmix.mechanisms import make_noise, noisy_size, size_event
from fastmix.methods.fit import sized


def test_the_released_number_and_its_bound():
    rows = ArrayRows(np.zeros((500, 2)), RowMap(1.0), np.zeros(500))
    noise = make_noise("float", 0, warn=False)
    found = [noisy_size(rows, scale=10.0, noise=noise) for _ in range(4000)]
    assert set(noise.drawn) == {size_event(scale=10.0)}
    sizes = np.array(found)
    assert abs(np.median(sizes) - 500) < 1.5
    assert np.abs(sizes - 500).mean() == pytest.approx(10.0, rel=0.1)
    # Never below 1, and the rows themselves keep theirs.
    few = ArrayRows(np.zeros((1, 2)), RowMap(1.0), np.zeros(1))
    assert min(noisy_size(few, scale=99.0, noise=noise) for _ in range(50)) == 1
    assert rows.n == rows.most == 500


def test_what_bounds_rounding_errors_is_the_released_number():
    persons = Persons(2, np.full(4, 0.5), 4, 3)
    rows = ArrayRows(np.zeros((4, 2)), RowMap(1.0), np.zeros(4), persons=persons)
    counted = rows.counted(10, 100)
    assert counted.persons.rows == 300
    assert rows.counted(10, 10**12).persons.rows == 1 << 33
    assert rows.counted(1).most == 2
    plan = AdaptiveRegression(public_rows=False, delta=1e-6)._planned(100, 2)[1]
    counted = sized(rows, plan, make_noise("float", 0, warn=False))
    assert counted.most == counted.n + math.ceil(64.0 * plan.size_scale)
    assert (rows.n, rows.most, rows.persons.rows) == (2, 2, 4)
