"""Sums that scores are made of: their values, how much one record changes, their events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.accounting import GaussianEvent
from fastmix.data import ArrayRows, RowMap, scores
from fastmix.methods.scores import (
    METRICS,
    ResidualScores,
    checked_metrics,
    most_below,
    private_scores,
)
from fastmix.releases import ABSOLUTE_RESIDUALS, SQUARED_RESIDUALS, SQUARES_ABOVE_BASE, sensitivity
from fastmix.releases.noise import FloatNoise


class Zero(FloatNoise):
    """No noise: releases are what is released, without the grid."""

    def _gaussian(self, values, sensitivity, ratio):
        return np.array(values, dtype=np.float64)


def zero():
    return Zero(np.random.default_rng(0))


def rows_of(X, y, constant=0.0):
    rows = ArrayRows(np.asarray(X), RowMap(row_norm=1.0), np.asarray(y))
    rows.constant = constant
    return rows


SUMS = {
    "difference": SQUARES_ABOVE_BASE,
    "squares": SQUARED_RESIDUALS,
    "sizes": ABSOLUTE_RESIDUALS,
}
KINDS = tuple(SUMS)


def released(rows, theta, base, kind, level, base_level, weight):
    given = {"theta": theta, "level": level, "sigma": 1.0}
    if kind == "difference":
        given |= {"base": base, "base_level": base_level, "weight": weight}
    return zero().release(SUMS[kind], rows, **given)


def limit(kind, level, base_level, weight):
    if kind == "sizes":
        return sensitivity.absolute_sensitivity(level)
    weight = weight if kind == "difference" else 0.0
    return sensitivity.score_sensitivity(level, base_level, weight)


def test_sums_are_those_of_clipped_residuals():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (200, 3)), rng.uniform(-1, 1, 200)
    theta, base = rng.normal(size=3), rng.normal(size=3)
    r = np.minimum(np.abs(y - X @ theta), 0.6)
    u = np.minimum(np.abs(y - X @ base), 0.9)
    rows = rows_of(X, y)
    given = (rows, theta, base)
    assert released(*given, "difference", 0.6, 0.9, 2.0) == pytest.approx((r**2 - 2 * u**2).sum())
    assert released(*given, "squares", 0.6, 0.9, 2.0) == pytest.approx((r**2).sum())
    assert released(*given, "sizes", 0.6, 0.9, 2.0) == pytest.approx(r.sum())


unit = st.floats(-1.0, 1.0)
record = st.tuples(unit, unit, unit)
coefficients = st.tuples(st.floats(-50, 50), st.floats(-50, 50)).map(np.array)
size = st.floats(0.01, 5.0)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(record, min_size=1, max_size=5),
    coefficients,
    coefficients,
    st.sampled_from(KINDS),
    size,
    size,
    st.floats(0.0, 20.0),
)
def test_an_absent_record_changes_a_sum_by_at_most_its_sensitivity(
    records, theta, base, kind, level, base_level, weight
):
    data = np.array(records)
    X, y = data[:, :2] / math.sqrt(2.0), data[:, 2]
    given = (theta, base, kind, level, base_level, weight)
    present = released(rows_of(X.copy(), y.copy()), *given)
    X[0], y[0] = 0.0, 0.0
    absent = released(rows_of(X, y), *given)
    most = limit(kind, level, base_level, weight)
    assert abs(present - absent) <= most * (1.0 + 1e-12) * (1 + 1e-14 * len(y)) + 1e-14


@pytest.mark.parametrize(
    ("kind", "theta", "base"),
    [
        ("squares", [9.0, 0.0], [0.0, 0.0]),
        ("sizes", [9.0, 0.0], [0.0, 0.0]),
        ("difference", [9.0, 0.0], [1.0, 0.0]),
        ("difference", [1.0, 0.0], [9.0, 0.0]),
    ],
)
def test_the_sensitivities_are_attained(kind, theta, base):
    """By a record far from one line and on the other; more than that is a mutant's."""
    X, y = np.array([[1.0, 0.0]]), np.array([1.0])
    weight = 0.7 if theta[0] > 1 else 2.0
    given = (np.array(theta), np.array(base), kind, 0.5, 0.5, weight)
    change = abs(released(rows_of(X, y), *given) - released(rows_of(0 * X, 0 * y), *given))
    assert change == pytest.approx(limit(kind, 0.5, 0.5, weight))


def test_a_mutant_that_forgets_to_clip_exceeds_the_sensitivity(monkeypatch):
    real = scores.score_sums

    def unclipped(block, *, level, base_level, **given):
        return real(block, level=1e9, base_level=1e9, **given)

    monkeypatch.setattr(scores, "score_sums", unclipped)
    X, y = np.array([[1.0, 0.0]]), np.array([1.0])
    for kind in KINDS:
        given = (np.array([9.0, 0.0]), np.zeros(2), kind, 0.5, 0.5, 0.1)
        change = abs(released(rows_of(X, y), *given) - released(rows_of(0 * X, 0 * y), *given))
        assert change > 2.0 * limit(kind, 0.5, 0.5, 0.1)


@pytest.mark.parametrize("metrics", [("r2",), ("mse",), ("mae",), METRICS])
def test_events_are_what_is_drawn_and_add_up(metrics):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (500, 2)), rng.uniform(-1, 1, 500)
    noise = FloatNoise(np.random.default_rng(1))
    private_scores(rows_of(X, y), np.zeros(2), metrics, 3.0, noise)
    planned = ResidualScores().events(metrics, 3.0)
    assert all(isinstance(event, GaussianEvent) for event in planned)
    assert sorted(e.sigma / e.sensitivity for e in planned) == pytest.approx(
        sorted(e.sigma for e in noise.drawn)
    )
    assert math.fsum(e.mu**2 for e in planned) == pytest.approx(1.0 / 9.0)


@pytest.mark.parametrize("constant", [0.0, 0.5])
def test_scores_without_noise_are_the_scores(constant):
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.5, 0.5, (5_000, 2))
    if constant:
        X[:, 1] = constant
    y = np.clip(X @ [0.8, 0.3] + 0.05 * rng.standard_normal(5_000), -1, 1)
    theta = np.array([0.75, 0.3])
    found = private_scores(rows_of(X, y, constant), theta, METRICS, 1e-6, zero())
    r = y - X @ theta
    assert found["r2"].value == pytest.approx(1 - (r @ r) / ((y - y.mean()) ** 2).sum(), abs=1e-4)
    assert found["mse"].value == pytest.approx(np.mean(r**2), rel=1e-6)
    assert found["mae"].value == pytest.approx(np.mean(np.abs(r)), rel=1e-6)


def test_r2_of_a_twentieth_of_the_budget():
    """Within 0.01 in 95% of 200 draws, n = 20,000, epsilon 1; intervals cover 90% or more.

    Seeded; normal errors, R^2 about 0.8.
    """
    from fastmix.accounting import objective_mu

    rng = np.random.default_rng(5)
    n = 20_000
    X = np.column_stack([rng.uniform(-1, 1, (n, 3)), np.ones(n)]) / 2.0
    y = np.clip(X @ [0.5, -0.3, 0.2, 0.1] + 0.08 * rng.standard_normal(n), -1, 1)
    theta = np.array([0.5, -0.3, 0.2, 0.1])
    r = y - X @ theta
    true = 1 - (r @ r) / ((y - y.mean()) ** 2).sum()
    sigma = 1.0 / (math.sqrt(0.05) * objective_mu(1.0, 1.0 / n**2))
    rows, noise = rows_of(X, y, 0.5), FloatNoise(np.random.default_rng(6))
    found = [private_scores(rows, theta, ("r2",), sigma, noise)["r2"] for _ in range(200)]
    errors = np.array([each.value - true for each in found])
    assert 0.7 < true < 0.9
    assert np.mean(np.abs(errors) <= 0.01) >= 0.95
    covered = [low <= true <= high for low, high in (each.interval() for each in found)]
    assert np.mean(covered) >= 0.9


def test_most_below_is_a_quantile():
    sizes = np.abs(np.random.default_rng(0).standard_normal(20_000)) * 0.1
    edges = 2.0 * 2.0 ** (np.arange(-40, 1) / 2.0)
    counts = np.histogram(sizes, edges)[0].astype(float)
    assert most_below(counts, 20_000) == pytest.approx(0.1645, rel=0.1)
    assert most_below(np.zeros(40), 20_000) > 0.0


def test_metrics_are_checked():
    assert checked_metrics("mae") == ("mae",)
    assert checked_metrics(["mae", "r2"]) == ("r2", "mae")
    with pytest.raises(ValueError, match="metrics must be"):
        checked_metrics(["rmse"])
    with pytest.raises(ValueError, match="at least one"):
        checked_metrics([])
    with pytest.raises(TypeError, match="names of metrics"):
        checked_metrics(3)
