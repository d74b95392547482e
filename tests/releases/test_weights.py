"""Weighted sums change by no more than a record's weight, and mutants that forget it are caught."""

from fractions import Fraction

import numpy as np
import pytest

from fastmix.data import ArrayRows, Measure, RowMap
from fastmix.data.persons import Persons, counted_weights, hash_ids
from fastmix.data.weights import on_grid, row_weights
from fastmix.releases import TOTAL_WEIGHT, make_noise
from fastmix.releases.sensitivity import (
    count_sensitivity,
    line_sensitivity,
    second_moment_sensitivity,
    target_sensitivity,
    weight_sensitivity,
)

EDGES = 2.0 ** np.arange(-8.0, 4.0)


def statistics(rows, rng):
    """Return every weighted sum of the first and last stage, with its sensitivity."""
    d = rows.d
    transform = rng.normal(size=(d + 1, d + 1))
    theta, move = rng.normal(size=(2, d))
    stretch = rng.normal(size=(d, d))
    measured = rows.measured(Measure(stretch, 0.3))
    return {
        "moments": (rows.second_moments(transform), second_moment_sensitivity()),
        "targets": (rows.target_total(), target_sensitivity()),
        "counts": (measured.slope_counts(theta, 1.5, EDGES), count_sensitivity()),
        "signed": (rows.signed_counts(theta, np.append(0.0, EDGES)), count_sensitivity()),
        "line": (rows.line(theta, move, (0.7, 0.4)), line_sensitivity()),
        "weights": (rows.total_weight(), weight_sensitivity()),
    }


def neighbours(seed, weights):
    """Return weighted rows with and without one record, the heaviest, at the ends of its range."""
    rng = np.random.default_rng(seed)
    n, d = len(weights), 1 + seed % 3
    X = rng.normal(size=(n, d))
    X[0] *= 100.0
    y = np.clip(rng.normal(size=n), -1, 1)
    y[0] = 1.0
    kept = weights.copy()
    kept[0] = 0.0
    zero = np.zeros_like(X[0])
    X_less, y_less = X.copy(), y.copy()
    X_less[0], y_less[0] = zero, 0.0
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    X /= np.maximum(1.0, norms)
    return (
        ArrayRows(X, RowMap(1.0), y, persons=Persons(n, weights, n)),
        ArrayRows(np.vstack((zero, X[1:])), RowMap(1.0), y_less, persons=Persons(n, kept, n)),
    )


def largest_changes(weights_of, count=60):
    """Return the largest change of every sum in units of its sensitivity."""
    worst: dict[str, float] = {}
    for seed in range(count):
        rng = np.random.default_rng(10_000 + seed)
        weights = weights_of(rng.uniform(0, 3, 40) * np.append(50.0, np.ones(39)))
        found = [
            statistics(rows, np.random.default_rng(seed)) for rows in neighbours(seed, weights)
        ]
        for name in found[0]:
            (a, bound), (b, _) = found[0][name], found[1][name]
            worst[name] = max(worst.get(name, 0.0), np.linalg.norm(np.subtract(a, b)) / bound)
    return worst


def test_a_record_changes_weighted_sums_by_its_weight():
    worst = largest_changes(lambda values: on_grid(row_weights(values, 2.0)))
    assert max(worst.values()) <= 1.0 + 1e-12  # but for rounding
    assert max(worst[name] for name in ("moments", "counts", "weights")) <= 1.0
    assert worst["weights"] == 1.0
    assert worst["moments"] > 0.9


@pytest.mark.parametrize("name", ["moments", "targets", "counts", "weights"])
def test_mutant_without_the_bound_is_caught(name):
    assert largest_changes(lambda values: values / 2.0)[name] > 10.0


def test_sums_of_weights_are_exact():
    rng = np.random.default_rng(0)
    weights = on_grid(rng.uniform(0, 1, 100_000))
    assert weights.sum() == weights[::-1].sum() == rng.permutation(weights).cumsum()[-1]
    assert (np.abs(weights - on_grid(weights)) == 0.0).all()
    thirds = on_grid(np.full(3, 1.0 / 3.0), 3)
    assert 1.0 - 1e-7 < thirds.sum() <= 1.0


@pytest.mark.parametrize("k", [1, 3, 1000, 10**9])
def test_weights_of_persons_times_sample_weights(k):
    rng = np.random.default_rng(k)
    ids = rng.integers(0, 50, 400)
    key = bytes(32)
    own = rng.uniform(0, 1, 400)
    both = counted_weights(400, [hash_ids(ids, key)], k, own, key)
    alone = counted_weights(400, [hash_ids(ids, key)], k, None, key)
    assert (both.weights <= alone.weights * own).all()
    np.testing.assert_allclose(both.weights, alone.weights * own, atol=2.0**-30)
    assert np.bincount(ids, both.weights).max() <= 1.0
    assert np.bincount(ids, alone.weights).max() <= 1.0
    assert both.count == alone.count == 50


def test_the_total_weight_is_released_by_its_event():
    rows = ArrayRows(np.eye(2), RowMap(1.0), np.zeros(2), persons=Persons(2, np.full(2, 0.5), 2))
    noise = make_noise(0, warn=False)
    assert 1.0 <= noise.release(TOTAL_WEIGHT, rows, sigma=1e-6) <= 1.0 + 1e-5
    assert [(e.sigma, e.count) for e in noise.drawn] == [(1e-6, 1)]
    assert noise.drawn[0] == TOTAL_WEIGHT.event(1e-6)
    # Never outside what is public.
    assert make_noise(1, warn=False).release(TOTAL_WEIGHT, rows, sigma=1e9) in (1, 2)


def test_weights_of_any_size_are_bounded_without_a_word():
    """Nobody learns from a warning of NumPy that a weight is huge."""
    rng = np.random.default_rng(2)
    ids, key = rng.integers(0, 9, 300), bytes(32)
    values = 10.0 ** rng.uniform(-320, 300, 300)
    with np.errstate(all="raise", under="ignore"):
        for most in (1e-100, 1.0, 1e100):
            own = row_weights(values, most)
            assert ((own >= 0.0) & (own <= 1.0)).all()
            for k in (1, 7, 10**9):
                found = counted_weights(300, [hash_ids(ids, key)], k, own, key).weights
                for person in range(9):
                    assert sum(map(Fraction, found[ids == person].tolist())) <= 1


def test_a_count_of_a_record_does_not_depend_on_where_it_stands():
    # Rows without a weight are left out, so that one record less moves all that follow it.
    rng = np.random.default_rng(0)
    for trial in range(100):
        d = 8 + trial % 30
        x, theta = rng.normal(size=(2, d))
        x /= 2.0 * np.linalg.norm(x)

        def counts(n, edges, x=x, theta=theta):
            given = {"persons": Persons(9, np.ones(n), 9)}
            rows = ArrayRows(np.tile(x, (n, 1)), RowMap(1.0), np.ones(n), **given)
            return rows.measured(Measure(None, 1.0)).slope_counts(theta, 1.0, edges)

        for size in np.unique(np.abs(1.0 - np.tile(x, (7, 1)) @ theta)):
            edges = np.array([1e-9, size, 100.0])
            for n in range(2, 9):
                assert np.linalg.norm(counts(n, edges) - counts(n - 1, edges)) <= 1.0


@pytest.mark.parametrize("most_rows", [1, 3, 100, 10_000])
@pytest.mark.parametrize("records", [7, 2**22, 2**33])
def test_sums_over_a_public_number_of_records_are_exact(most_rows, records):
    """A sum of any of them fits into a double, and no weight grows."""
    shares = np.random.default_rng(0).uniform(0.0, 1.0, 500) / most_rows
    weights = on_grid(shares, most_rows, records)
    assert (weights <= shares).all()
    largest = records - 1.0  # the sum of all others
    for weight in weights:
        assert (largest + weight) - largest == weight
