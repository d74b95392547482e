"""Intervals of a table's minimiser: what the ridge pulls off, and log-odds that may be infinite."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from fastmix import PrivateLogisticRegression
from fastmix.engine import minimiser_inference as module
from fastmix.estimators.intervals import MOST_BIAS
from tests.engine.test_table_inference import (
    CATEGORIES,
    METRIC,
    NOTHING,
    drawn,
    known_curvature,
    released,
)

SHARES = [0.4, 0.3, 0.2, 0.1]


def identified(intervals, contrast):
    """Return whether a contrast of coefficients has an interval."""
    bias, rest = (contrast @ C @ contrast for C in (intervals.bias, intervals.covariance))
    return bool(bias <= MOST_BIAS * rest)


def test_without_noise_the_pull_is_what_the_ridge_leaves_out_of_the_truth():
    coordinates, known = released(1_000, SHARES, noise=1e-9, ridge=100.0)
    truth, rng = np.array([0.5, -0.2, 0.3, 0.1, 0.4]), np.random.default_rng(0)
    own, J = drawn(coordinates, known, truth, 0.0, rng), known_curvature(coordinates, 1_000)
    theta, found = module.inferred(own, coordinates, J, 1e-9, NOTHING)
    np.testing.assert_array_equal(theta, own.theta)
    off = np.abs(theta - coordinates.transform @ truth)
    np.testing.assert_allclose(np.sqrt(np.diag(found.bias)), off, rtol=0.01, atol=1e-6)
    V = np.linalg.inv(J.of(J.values + 100.0))
    sampling = coordinates.transform @ V @ (1e-9 * J.of(J.values)) @ V @ coordinates.transform.T
    np.testing.assert_allclose(found.covariance, sampling, rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("ridge", [1e16, 1e20, 1e25])
def test_a_ridge_that_hides_everything_leaves_an_unknown_bias(ridge):
    """What is left of a coordinate is then a rounding error, and tells nothing about it."""
    coordinates, known = released(1_000, SHARES, noise=1.0, ridge=ridge, metric=METRIC)
    truth, rng = np.array([0.5, -0.2, 0.3, 0.1, 0.4]), np.random.default_rng(0)
    own, J = drawn(coordinates, known, truth, 0.0, rng), known_curvature(coordinates, 1_000)
    _, found = module.inferred(own, coordinates, J, 1.0, NOTHING)
    assert (np.diag(found.bias) > 1e6 * np.diag(found.covariance)).all()


@pytest.mark.parametrize("size", [0.02, 1.0])
def test_errors_and_intervals_agree_whatever_noise_is(size):
    """With noise, coordinates of a minimiser are not taken for the truth that the ridge pulls."""
    given = {"noise": 40.0, "ridge": 200.0, "metric": METRIC}
    coordinates, known = released(1_000, SHARES, **given)
    J, rng, K = known_curvature(coordinates, 1_000), np.random.default_rng(1), coordinates.transform
    errors, stated = [], []
    for _ in range(400):
        truth = size * rng.normal(size=5)
        own = drawn(coordinates, known, truth, 1.0, rng)
        theta, found = module.inferred(own, coordinates, J, 1.0, NOTHING)
        errors.append(np.linalg.solve(K, theta) - truth)
        whole = np.linalg.solve(K, np.linalg.solve(K, found.covariance + found.bias).T)
        stated.append(np.diag(whole))
    ratio = np.sqrt(np.mean(stated, axis=0) / np.mean(np.square(errors), axis=0))
    assert (ratio > 0.9).all()
    assert (ratio < 1.35).all()


def test_squares_of_gradients_lower_a_curvature_that_is_too_large():
    coordinates, _ = released(1_000, SHARES)
    J = known_curvature(coordinates, 1_000, 3.0)
    whole = float(np.trace(J.of(J.values) @ np.linalg.inv(METRIC)))

    def share(squares, error):
        found = module.lowered(J, J, squares, error, METRIC)
        np.testing.assert_allclose(found.error, J.error * (found.values / J.values)[0] ** 2)
        return pytest.approx(found.values / J.values, rel=1e-9)

    assert share(0.8 * whole, 0.0) == np.full(5, 0.8)
    # Half of the difference is an error of one standard deviation: a quarter of it may be noise.
    assert share(0.8 * whole, 0.1 * whole) == np.full(5, 0.85)
    assert share(0.8 * whole, 0.2 * whole) == np.ones(5)
    assert share(0.8 * whole, 1.0 * whole) == np.ones(5)
    # Other reasons than the curvature make squares larger.
    assert share(1.2 * whole, 0.0) == np.ones(5)


def test_levels_have_true_standard_errors_where_log_odds_are_far_from_normal():
    """Ages of two groups move log-odds to -3 or 3, where normal ones would have more curvature.

    Without the squares of gradients, standard errors of cities are 0.43 to 0.47 of true ones.
    """
    cities, n = ["Ulm", "Bonn", "Kiel"], 20_000
    bounds = {"target": {"rich": ["no", "yes"]}, "features": {"age": (0.0, 100.0), "city": cities}}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        age = np.where(rng.random(n) < 0.5, 10.0, 90.0) + rng.uniform(-10.0, 10.0, n)
        city = rng.choice(cities, n)
        X = np.column_stack([age / 50.0 - 1.0, city == "Bonn", city == "Kiel", np.ones(n)])
        p = expit(X @ [3.75, 0.3, 0.0, 0.0])
        rich = np.where(rng.random(n) < p, "yes", "no")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = PrivateLogisticRegression(
                epsilon=3.0, delta=1e-6, bounds=bounds, inference=True, random_state=seed
            ).fit(pd.DataFrame({"age": age, "city": city, "rich": rich}))
        assert list(model.feature_names_in_)[1:3] == ["city=Bonn", "city=Kiel"]
        true = np.sqrt(np.diag(np.linalg.inv((X * (p * (1.0 - p))[:, None]).T @ X)))
        ratios = np.ravel(model.coef_std_)[1:3] / true[1:3]
        assert (ratios > 0.8).all()
        assert (ratios < 1.2).all()


N = 1_000


def doubted(shares, error=0.0, **given):
    """Return intervals of small standard errors, doubted for these releases."""
    coordinates, known = released(N, shares, **{"ridge": 1e-9, **given})
    covariance, J = 1e-4 * np.eye(5), known_curvature(coordinates, N, error)
    own = module.Intervals(covariance, 0.1 * covariance, 1.0, bias=0.01 * covariance)
    return module.doubted(own, known, coordinates, J, CATEGORIES)


def largest_noise(shares, level):
    """Return the noise up to which the gradients of a level's rows exclude an infinite effect.

    The sum over these rows is a line in the coordinates that is 1 there. At most their curvature,
    one for each row, can be lost on the way to infinity.
    """
    coordinates, _ = released(N, shares)
    rows = np.column_stack((coordinates.codes[0], np.ones(4)))
    line, curvature = np.linalg.solve(rows, np.eye(4)[level]), N * shares[level]
    return np.sqrt(((curvature / module.REACH) ** 2 - curvature) / (line @ line))


@pytest.mark.parametrize("rounding", [0.0, 1e-17, 1e-12])
def test_a_ridge_that_decides_all_leaves_no_singular_matrix(rounding):
    """Where rounding alone was left of coordinates, their variances were 1e150."""
    coordinates, _ = released(1_000, SHARES)
    left = rounding * (np.ones((5, 5)) - np.eye(5))
    for spread in (1e-20, 1.0, 1e20):
        phi, most = np.sqrt(spread) * np.arange(5.0), 5.0 * module.UNKNOWN * spread
        found = module._pulled(phi, np.eye(5) - left, spread * np.eye(5), coordinates, most)
        assert (np.diag(found) > spread).all()
        assert np.isfinite(found).all()


def test_levels_whose_log_odds_may_be_infinite_have_no_interval():
    level, noise = np.eye(5)[1:4], largest_noise(SHARES, 3)
    found = doubted(SHARES, noise=0.999 * noise)
    assert all(identified(found, each) for each in level)
    found = doubted(SHARES, noise=1.001 * noise)
    assert [identified(found, each) for each in level] == [True, True, False]
    assert identified(found, level[0] - level[1])
    assert not identified(found, level[0] - level[2])
    assert identified(found, np.eye(5)[0])


def test_nor_have_comparisons_with_a_first_level_of_that_kind():
    shares, level = SHARES[::-1], np.eye(5)[1:4]
    noise = largest_noise(shares, 0)
    assert all(identified(doubted(shares, noise=0.999 * noise), each) for each in level)
    found = doubted(shares, noise=1.001 * noise)
    assert not any(identified(found, each) for each in level)
    assert identified(found, level[0] - level[1])


def test_a_pull_and_a_curvature_that_is_not_known_leave_less_of_an_interval():
    near, last = 0.95 * largest_noise(SHARES, 3), np.eye(5)[3]
    assert identified(doubted(SHARES, noise=near), last)
    assert not identified(doubted(SHARES, noise=near, error=N**2), last)
    theta = np.array([0.0, 0.0, 0.0, -4.0, 0.0])
    assert not identified(doubted(SHARES, noise=near, theta=theta, ridge=100.0), last)


@pytest.mark.parametrize("noise", [0.0, 3.0, 8.0])
def test_levels_near_separation_have_few_false_intervals(noise):
    """A false interval in less than 8% of releases, whatever the probability of a level is.

    Seeded: the sum of the labels of one level's rows, with noise; 40,000 draws each.
    """
    rng, rows = np.random.default_rng(2), 300
    for probability in (0.002, 0.01, 0.02, 0.05, 0.1, 0.3):
        seen = rng.binomial(rows, probability, 40_000) + noise * rng.normal(size=40_000)
        share = np.clip(seen / rows, 1e-9, 1.0 - 1e-9)
        told = rows * share * (1.0 - share)
        gradient, off = np.sqrt(told + noise**2), logit(share) - logit(probability)
        known = module.REACH * gradient < told
        assert np.mean(known & (np.abs(off) > module.REACH * gradient / told)) < 0.08


def test_nothing_is_identified_where_errors_of_log_odds_are_large():
    coordinates, known = released(10_000, SHARES)
    J, K = known_curvature(coordinates, 10_000), coordinates.transform
    for size, there in ((0.1, True), (1.0, False)):
        covariance = size / 5.0 * (K @ K.T)  # log-odds of rows have errors of this mean square
        given = module.Intervals(covariance, covariance, 1.0, bias=0.0 * covariance)
        found = module.doubted(given, known, coordinates, J, CATEGORIES)
        assert identified(found, np.eye(5)[0]) == there
