"""Curvatures of persons with several rows: their sums, and how much one person changes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.data import ArrayRows, RowMap
from fastmix.data.persons import Persons
from fastmix.kernels.losses import LinearHuber
from fastmix.kernels.sigmoids import Logistic, UpperLogistic
from fastmix.releases import CURVATURES, SQUARES
from fastmix.releases.release import Public
from tests.releases.plain import zero

HUBER = LinearHuber(0.5, 20.0, 1.0, 3.0)
LOGISTIC = Logistic(0.7, 9.0, 1.0)
UPPER = UpperLogistic(0.7, 9.0, 1.0)
SQUARE = 2.0


def panel(seed, n=60, d=3, scale=1.0):
    """Return rows, targets of +-1, and persons of one to four rows in any order."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= scale / np.linalg.norm(X, axis=1).max()
    codes = rng.permutation(np.repeat(np.arange(n), rng.integers(1, 5, n))[:n])
    codes = np.unique(codes, return_inverse=True)[1]
    weights = (1.0 / np.bincount(codes))[codes]
    persons = Persons(int(codes.max()) + 1, weights, n, 4, codes)
    return X, rng.choice([-1.0, 1.0], n), persons


def rows_of(X, y, persons):
    return ArrayRows(X, RowMap(row_norm=1.0), y, persons=persons)


def asked(theta, T, loss):
    fixed = {"least": 0.3, "square": SQUARE, "weights": None}
    return {"theta": theta, "loss": loss, "transform": T, **fixed}


def released(X, y, persons, theta, T, loss):
    noise, rows = zero(), rows_of(X, y, persons)
    return noise.release(CURVATURES, rows, **asked(theta, T, loss), sigma=(2.0, 3.0))


@pytest.mark.parametrize("loss", [HUBER, LOGISTIC, UPPER], ids=["huber", "logistic", "upper"])
def test_sums_one_person_at_a_time(loss):
    X, y, persons = panel(0)
    rng = np.random.default_rng(1)
    T, theta = 3.0 * rng.normal(size=(3, 3)), rng.normal(size=3)
    curvature, squares = np.zeros((3, 3)), np.zeros((3, 3))
    for person in range(persons.count):
        gradient = np.zeros(3)
        for i in np.flatnonzero(persons.codes == person):
            z, weight = T.T @ X[i], persons.weights[i]
            length = np.array([max(0.3, np.linalg.norm(z))])
            u, target = np.array([y[i] - X[i] @ theta]), np.array([y[i]])
            bend = min(loss.curvature(u, length, target)[0], SQUARE / length[0] ** 2)
            curvature += weight * bend * np.outer(z, z)
            gradient += weight * loss.slope(u, length, target)[0] * z
        squares += np.outer(gradient, gradient)
    found = released(X, y, persons, theta, T, loss)
    np.testing.assert_allclose(found.curvature, curvature, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.squares, squares, rtol=1e-9, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([HUBER, LOGISTIC, UPPER]), st.floats(0.1, 30.0))
def test_a_person_changes_no_more_than_one_record_may(seed, loss, stretch):
    X, y, persons = panel(seed, n=12)
    rng = np.random.default_rng(seed)
    T, theta = stretch * rng.normal(size=(3, 3)), 3.0 * rng.normal(size=3)
    without = persons.codes == persons.codes[0]
    X_less, y_less = X.copy(), y.copy()
    X_less[without], y_less[without] = 0.0, 0.0
    first = released(X, y, persons, theta, T, loss)
    second = released(X_less, y_less, persons, theta, T, loss)
    assert np.linalg.norm(first.curvature - second.curvature) <= SQUARE
    assert np.linalg.norm(first.squares - second.squares) <= loss.lipschitz**2


def test_a_person_of_equal_rows_changes_as_much_as_it_may():
    x, T = np.array([1.0, 0.0, 0.0]), 2.0 * np.eye(3)
    X, y = np.tile(x, (3, 1)), np.full(3, 1.0)
    persons = Persons(1, np.full(3, 1.0 / 3.0), 3, 3, np.zeros(3, dtype=np.int64))
    found = released(X, y, persons, np.array([-1e3, 0.0, 0.0]), T, HUBER)
    assert np.linalg.norm(found.squares) == pytest.approx(HUBER.lipschitz**2, rel=1e-3)
    # Rows that share a person by mistake, as single persons, would add a third of that.
    alone = replace(persons, codes=None)
    found = released(X, y, alone, np.array([-1e3, 0.0, 0.0]), T, HUBER)
    assert np.linalg.norm(found.squares) == pytest.approx(HUBER.lipschitz**2 / 3.0, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3, 8])
def test_rounding_of_large_sums_stays_within_the_sensitivity(seed):
    """Sums over two million rows round by more than the hair that rows are shortened by."""
    rng, n = np.random.default_rng(seed), 2_000_000
    X, y = rng.uniform(-1.0, 1.0, (n, 3)) / np.sqrt(3.0), rng.choice([-1.0, 1.0], n)
    X[:2], y[:2] = [0.6, 0.8, 0.0], 1.0
    persons = Persons(n // 2, np.full(n, 0.5), n, 2, np.arange(n) // 2)
    X_less, y_less = X.copy(), y.copy()
    X_less[:2], y_less[:2] = 0.0, 0.0
    at = np.array([-180.0, -240.0, 0.0]), 5.0 * np.eye(3), HUBER
    first, second = released(X, y, persons, *at), released(X_less, y_less, persons, *at)
    change = np.linalg.norm(first.squares - second.squares)
    assert change == pytest.approx(HUBER.lipschitz**2, rel=1e-9)
    most = SQUARES.sensitivity(Public.of(rows_of(X, y, persons)), **asked(*at))
    assert change <= most <= (1.0 + 1e-3) * HUBER.lipschitz**2
