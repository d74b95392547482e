"""Sums that scores are made of: their values, how much one record changes, their events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.accounting import GaussianEvent, objective_mu
from fastmix.data import ArrayRows, RowMap, scores
from fastmix.engine.layers import layer_edges
from fastmix.engine.scores import (
    METRICS,
    ResidualScores,
    checked_metrics,
    most_below,
)
from fastmix.releases import ABSOLUTE_LAYERS, PINBALL_LAYERS, SQUARE_LAYERS, Noise, sensitivity
from tests.releases.plain import zero


def rows_of(X, y, constant=0.0):
    rows = ArrayRows(np.asarray(X), RowMap(row_norm=1.0), np.asarray(y))
    rows.constant = constant
    return rows


TERMS = {
    "squares": (SQUARE_LAYERS, np.square, 4.0, {}),
    "sizes": (ABSOLUTE_LAYERS, np.abs, 2.0, {}),
    "pinball": (
        PINBALL_LAYERS,
        lambda r: np.maximum(0.8 * r, -0.2 * r),
        1.6,
        {"quantile": 0.8},
    ),
}


def released(rows, theta, kind, edges=None, noise=None):
    release, _, top, given = TERMS[kind]
    edges = layer_edges(top) if edges is None else edges
    return (noise or zero()).release(release, rows, theta=theta, edges=edges, sigma=1.0, **given)


def statistic(rows, theta, kind):
    """What noise is added to: a vector whose change by one record is at most 1."""
    release, _, top, given = TERMS[kind]
    return release.statistic(rows, theta=theta, edges=layer_edges(top), **given)


@pytest.mark.parametrize("kind", TERMS)
def test_layers_add_up_to_the_terms_of_bounded_predictions(kind):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (200, 3)), rng.uniform(-1, 1, 200)
    theta = 5.0 * rng.normal(size=3)
    predictions = np.clip(X @ theta, -1, 1)
    assert 20 < np.sum(np.abs(predictions) == 1.0) < 180
    terms = TERMS[kind][1](y - predictions)
    sums, stds = released(rows_of(X, y), theta, kind)
    edges = layer_edges(TERMS[kind][2])
    clipped = np.minimum(terms[:, None], edges).sum(axis=0)
    assert np.cumsum(sums) == pytest.approx(clipped)
    assert sums.sum() == pytest.approx(terms.sum())
    drawn = [
        released(rows_of(X, y), theta, kind, noise=Noise(np.random.default_rng(k)))[0]
        for k in range(400)
    ]
    assert np.std(drawn, axis=0) == pytest.approx(stds, rel=0.2)


unit = st.floats(-1.0, 1.0)
record = st.tuples(unit, unit, unit)
coefficients = st.tuples(st.floats(-50, 50), st.floats(-50, 50)).map(np.array)


@settings(max_examples=200, deadline=None)
@given(st.lists(record, min_size=1, max_size=5), coefficients, st.sampled_from(list(TERMS)))
def test_an_absent_record_changes_layers_by_at_most_their_sensitivity(records, theta, kind):
    data = np.array(records)
    X, y = data[:, :2] / math.sqrt(2.0), data[:, 2]
    present = statistic(rows_of(X.copy(), y.copy()), theta, kind)
    X[0], y[0] = 0.0, 0.0
    absent = statistic(rows_of(X, y), theta, kind)
    change = np.linalg.norm(present - absent)
    assert change <= sensitivity.layer_sensitivity() * (1.0 + 1e-14 * len(y))


@pytest.mark.parametrize("kind", TERMS)
def test_the_sensitivity_is_attained_and_mutants_exceed_it(kind, monkeypatch):
    """By the record of the largest residual; weights that are not of norm 1 leak."""
    X, y, theta = np.array([[1.0, 0.0]]), np.array([1.0]), np.array([-9.0, 0.0])
    absent = statistic(rows_of(0 * X, 0 * y), theta, kind)
    assert not absent.any()
    assert np.linalg.norm(statistic(rows_of(X, y), theta, kind)) == pytest.approx(1.0)
    monkeypatch.setattr(scores, "layer_weights", lambda edges: np.ones(len(edges)))
    assert np.linalg.norm(statistic(rows_of(X, y), theta, kind)) > 2.0


def test_edges_are_checked():
    rows = rows_of(np.ones((1, 1)), np.ones(1))
    for wrong in ([0.0, 1.0], [2.0, 1.0], [-1.0], [1.0, np.inf], [np.nan]):
        with pytest.raises(ValueError, match="edges must"):
            released(rows, np.ones(1), "squares", edges=np.array(wrong))


@pytest.mark.parametrize("metrics", [("r2",), ("mse",), ("mae",), METRICS])
def test_events_are_what_is_drawn_and_add_up(metrics):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (500, 2)), rng.uniform(-1, 1, 500)
    noise = Noise(np.random.default_rng(1))
    ResidualScores().release(rows_of(X, y), np.zeros(2), metrics, 3.0, noise)
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
    rows = rows_of(X, y, constant)
    found = ResidualScores().release(rows, theta, METRICS, 1e-6, zero())
    r = y - X @ theta
    assert found["r2"].value == pytest.approx(1 - (r @ r) / ((y - y.mean()) ** 2).sum(), abs=1e-4)
    assert found["mse"].value == pytest.approx(np.mean(r**2), rel=1e-6)
    assert found["mae"].value == pytest.approx(np.mean(np.abs(r)), rel=1e-6)


def r2_of(y, predictions):
    r = y - np.clip(predictions, -1, 1)
    return 1 - (r @ r) / ((y - y.mean()) ** 2).sum()


@pytest.mark.parametrize("constant", [0.5, 0.0])
@pytest.mark.parametrize("tails", ["normal", "heavy", "few rows decide"])
def test_intervals_contain_the_truth_whatever_the_tails(tails, constant):
    """R^2, MSE and MAE in at least 95% of 200 releases; the limit is three errors below.

    n = 5,000 and a twentieth of epsilon 1, seeded. Intervals of clipped residuals excluded the
    truth on the second and third kind.
    """
    rng = np.random.default_rng(5)
    n = 5_000
    X = np.column_stack([rng.uniform(-1, 1, (n, 3)), np.ones(n)]) / 2.0
    errors = {
        "normal": 0.08 * rng.standard_normal(n),
        "heavy": 0.05 * rng.standard_t(1.5, n),
        "few rows decide": np.where(rng.random(n) < 0.01, 2.0, 0.02 * rng.standard_normal(n)),
    }[tails]
    theta = np.array([0.5, -0.3, 0.2, 0.1])
    y = np.clip(X @ theta + errors, -1, 1)
    r = y - np.clip(X @ theta, -1, 1)
    true = {"r2": r2_of(y, X @ theta), "mse": np.mean(r**2), "mae": np.mean(np.abs(r))}
    sigma = 1.0 / (math.sqrt(0.05) * objective_mu(1.0, 1.0 / n**2))
    rows, noise = rows_of(X, y, constant), Noise(np.random.default_rng(6))
    found = [ResidualScores().release(rows, theta, METRICS, sigma, noise) for _ in range(200)]
    for name in METRICS:
        ends = [each[name].interval() for each in found]
        covered = np.mean([low <= true[name] <= high for low, high in ends])
        assert covered >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 200)
        assert all(
            low <= each[name].value <= high for (low, high), each in zip(ends, found, strict=True)
        )
        wide = [each[name].interval(0.99) for each in found]
        assert all(a <= c and d <= b for (a, b), (c, d) in zip(wide, ends, strict=True))


def test_many_rows_have_a_narrow_interval():
    """190,000 rows at a tenth of epsilon 1: R^2 within 0.01 in 95% of 60 releases, seeded."""
    rng = np.random.default_rng(5)
    n = 190_000
    X = np.column_stack([rng.uniform(-1, 1, (n, 3)), np.ones(n)]) / 2.0
    theta = np.array([1.1, -0.7, 0.4, 0.1])
    y = np.clip(X @ theta + 0.1 * rng.standard_t(2.0, n), -1, 1)
    true = r2_of(y, X @ theta)
    sigma = 1.0 / (math.sqrt(0.1) * objective_mu(1.0, 1.0 / n**2))
    rows, noise = rows_of(X, y, 0.5), Noise(np.random.default_rng(6))
    scoring = ResidualScores()
    found = [scoring.release(rows, theta, ("r2",), sigma, noise)["r2"] for _ in range(60)]
    assert np.mean([abs(each.value - true) <= 0.01 for each in found]) >= 0.95
    ends = [each.interval() for each in found]
    assert np.mean([low <= true <= high for low, high in ends]) >= 0.9
    assert np.median([high - low for low, high in ends]) < 0.03


def test_a_hidden_variance_leaves_r2_without_a_lower_limit():
    rng = np.random.default_rng(0)
    rows = rows_of(np.full((50, 1), 0.5), rng.uniform(-0.01, 0.01, 50), 0.5)
    noise = Noise(np.random.default_rng(1))
    found = [ResidualScores().release(rows, np.zeros(1), ("r2",), 20.0, noise) for _ in range(20)]
    lows, highs = np.array([each["r2"].interval() for each in found]).T
    assert max(lows) < -1.0
    assert min(lows) == -math.inf
    assert max(highs) <= 1.0


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
