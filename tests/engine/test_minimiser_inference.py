"""Intervals of a table's minimiser: what the ridge pulls off, and log-odds that may be infinite."""

from __future__ import annotations

import numpy as np
import pytest

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


def doubted(stds, first=0.0):
    """Return intervals of levels with these standard errors, and of a number."""
    coordinates, known = released(10_000, SHARES)
    covariance = np.diag([1e-4, *(np.square(stds) / CATEGORIES.unit**2), 1e-6])
    moved = np.array([0.0, *[1.0 / CATEGORIES.unit] * 3, -0.6 / 0.3])  # around the same mean
    covariance += first**2 * np.outer(moved, moved)
    J = known_curvature(coordinates, 10_000)
    given = module.Intervals(covariance, 0.1 * covariance, 1.0, bias=0.01 * covariance)
    return module.doubted(given, known, coordinates, J, CATEGORIES)


def test_levels_whose_log_odds_may_be_infinite_have_no_interval():
    level = np.eye(5)[1:4]
    for large in (0.7, 1.4):
        found = doubted([0.1, 0.2, large])
        assert [identified(found, each) for each in level] == [True, True, False]
        assert identified(found, level[0] - level[1])
        assert not identified(found, level[0] - level[2])
        assert identified(found, np.eye(5)[0])
    assert all(identified(doubted([0.1, 0.2, 0.4]), each) for each in level)


def test_nor_have_comparisons_with_a_first_level_of_that_kind():
    level = np.eye(5)[1:4]
    found = doubted([0.1, 0.1, 0.1], first=1.0)
    assert not any(identified(found, each) for each in level)
    assert identified(found, level[0] - level[1])


def test_nothing_is_identified_where_errors_of_log_odds_are_large():
    coordinates, known = released(10_000, SHARES)
    J, K = known_curvature(coordinates, 10_000), coordinates.transform
    for size, there in ((0.1, True), (1.0, False)):
        covariance = size / 5.0 * (K @ K.T)  # log-odds of rows have errors of this mean square
        given = module.Intervals(covariance, covariance, 1.0, bias=0.0 * covariance)
        found = module.doubted(given, known, coordinates, J, CATEGORIES)
        assert identified(found, np.eye(5)[0]) == there
