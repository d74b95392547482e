"""Counts of labels, log-losses and pinball losses: values, how much one record changes, events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from fastmix.data import ArrayRows, RowMap, scores
from fastmix.engine.class_scores import ClassScores, equal_bins
from fastmix.engine.layers import layer_edges
from fastmix.engine.scores import QuantileScores
from fastmix.releases import (
    BELOW,
    CLASS_HITS,
    LABEL_COUNTS,
    LOSS_LAYERS,
    ODDS_COUNTS,
    Noise,
    sensitivity,
)
from tests.releases.plain import zero


def rows_of(X, y, constant=0.0):
    rows = ArrayRows(np.asarray(X), RowMap(row_norm=1.0), np.asarray(y))
    rows.constant = constant
    return rows


class Several:
    """Rows with a target for each class."""

    def __init__(self, X, codes, count):
        self.targets = tuple(
            rows_of(X, np.where(codes == k, 1.0, np.where(codes < 0, 0.0, -1.0)))
            for k in range(count)
        )
        self.n = len(X)


EDGES = np.array([-1.0, -0.2, 0.0, 0.5])


def everything(X, y, theta):
    """Return all releases without noise, each with its sensitivity."""
    rows = rows_of(X, y)

    def given(release, of=rows, **values):
        return zero().release(release, of, sigma=1.0, **values)

    def layers(of, thetas):
        return LOSS_LAYERS.statistic(of, thetas=thetas, edges=layer_edges(3.0))

    codes = np.where(y == 0.0, -1, np.floor(1.5 * np.abs(y)).astype(int))
    several, thetas = Several(X, codes, 3), np.column_stack([theta, -theta, 0.5 * theta])
    return {
        "labels": (given(LABEL_COUNTS, theta=theta, edges=EDGES), 1.0),
        "both": (given(ODDS_COUNTS, theta=theta, edges=EDGES), 1.0),
        "hits": (given(CLASS_HITS, several.targets, thetas=thetas), 1.0),
        "loss": (layers((rows,), theta[:, None]), sensitivity.layer_sensitivity()),
        "losses": (layers(several.targets, thetas), sensitivity.layer_sensitivity()),
        "below": (given(BELOW, theta=theta), 1.0),
    }


unit = st.floats(-1.0, 1.0)
record = st.tuples(unit, unit, unit)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(record, min_size=1, max_size=5),
    st.tuples(st.floats(-50, 50), st.floats(-50, 50)).map(np.array),
)
def test_an_absent_record_changes_a_release_by_at_most_its_sensitivity(records, theta):
    data = np.array(records)
    X, y = data[:, :2] / math.sqrt(2.0), data[:, 2]
    present = everything(X.copy(), y.copy(), theta)
    X[0], y[0] = 0.0, 0.0
    absent = everything(X, y, theta)
    for name, (value, most) in present.items():
        change = np.linalg.norm(np.atleast_1d(value - absent[name][0]))
        assert change <= most * (1.0 + 1e-12), name


def test_the_sensitivities_are_attained_and_a_mutant_exceeds_them(monkeypatch):
    X, y, theta = np.array([[1.0, 0.0]]), np.array([-1.0]), np.array([40.0, 0.0])

    def changes():
        here, gone = everything(X, y, theta), everything(0 * X, 0 * y, theta)
        return {
            name: np.linalg.norm(np.atleast_1d(value - gone[name][0])) / most
            for name, (value, most) in here.items()
        }

    for name in ("labels", "both", "loss", "hits", "losses"):
        assert changes()[name] == pytest.approx(1.0), name
    assert everything(X, np.array([1.0]), -theta)["below"][0] == 0.0
    monkeypatch.setattr(scores, "layer_weights", lambda edges: np.ones(len(edges)))
    assert changes()["loss"] > 2.0


def test_a_hit_does_not_depend_on_where_a_row_stands():
    # Two classes with log-odds that tie but for rounding: no row less moves the others.
    rng = np.random.default_rng(0)
    for trial in range(60):
        d = 5 + trial % 20
        x, first, last = rng.normal(size=(3, d))
        x /= 2.0 * np.linalg.norm(x)
        second = first[::-1] * x[::-1] / x  # the same terms in another order
        thetas = np.column_stack((first, second, last - 1e3 * x))
        hits = [
            rows_of(np.tile(x, (9, 1)), np.where(np.arange(9) < n, 1.0, 0.0)).class_hits(thetas, 0)
            for n in range(1, 10)
        ]
        assert np.linalg.norm(np.diff(hits, axis=0), axis=1).max() <= 1.0


def test_an_absent_label_counts_nowhere():
    X, y = np.array([[0.5, 0.0], [0.2, 0.1]]), np.array([0.0, 1.0])
    found = everything(X, y, np.array([1.0, 0.0]))
    assert found["labels"][0].sum() == found["both"][0].sum() == found["hits"][0].sum() == 1.0
    one = everything(X[1:], y[1:], np.array([1.0, 0.0]))
    assert found["loss"][0] == pytest.approx(one["loss"][0])


def problem(n=20_000, constant=0.5):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-0.5, 0.5, (n, 2)), np.full(n, constant)])
    theta = np.array([4.0, -2.0, -1.0])
    y = np.where(rng.uniform(size=n) < expit(X @ theta), 1.0, -1.0)
    return rows_of(X, y, constant), theta, X @ theta, y


def test_scores_without_noise_are_the_scores():
    rows, theta, z, y = problem()
    scoring = ClassScores()
    found = scoring.release(rows, theta, scoring.metrics, 1e-3, zero())
    assert list(found) == ["accuracy", "log_loss", "auc"]
    assert found["accuracy"].value == pytest.approx(np.mean((z > 0) == (y > 0)), abs=1e-9)
    assert found["auc"].value == pytest.approx(roc_auc_score(y, z), abs=5e-4)
    assert found["log_loss"].value == pytest.approx(log_loss(y, expit(z)), abs=1e-9)
    for predicted, observed, _, weight in found["auc"].bins:
        assert observed == pytest.approx(predicted, abs=4.0 * math.sqrt(0.25 / (weight * rows.n)))
    assert sum(each.weight for each in found["auc"].bins) == pytest.approx(1.0)
    alone = scoring.release(rows, theta, ("accuracy",), 1e-3, zero())
    assert alone["accuracy"].value == pytest.approx(found["accuracy"].value)


def test_several_classes_have_accuracy_and_loss():
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.5, 0.5, (4000, 2))
    thetas = np.array([[5.0, 0.0], [0.0, 5.0], [-4.0, -4.0]]).T
    likely = expit(X @ thetas)
    likely /= likely.sum(axis=1, keepdims=True)
    codes = (likely.cumsum(axis=1) > rng.uniform(size=(4000, 1))).argmax(axis=1)
    scoring = ClassScores(3)
    assert scoring.metrics == ("accuracy", "log_loss")
    found = scoring.release(Several(X, codes, 3), thetas.T.ravel(), scoring.metrics, 1e-3, zero())
    assert found["accuracy"].value == pytest.approx(np.mean(likely.argmax(axis=1) == codes))
    assert found["log_loss"].value == pytest.approx(log_loss(codes, likely))


def test_quantile_scores_without_noise():
    rng = np.random.default_rng(2)
    X, theta = rng.uniform(-0.5, 0.5, (5000, 2)), np.array([0.5, 0.2])
    y = X @ theta + rng.uniform(-0.3, 0.1, 5000)
    found = QuantileScores(0.75).release(rows_of(X, y), theta, ("below", "pinball"), 1e-3, zero())
    r = y - X @ theta
    assert found["below"].value == pytest.approx(np.mean(r <= 0))
    assert found["pinball"].value == pytest.approx(np.mean(np.maximum(0.75 * r, -0.25 * r)))


@pytest.mark.parametrize(
    ("scoring", "metrics"),
    [
        (ClassScores(), ("accuracy",)),
        (ClassScores(), ("log_loss",)),
        (ClassScores(), ("auc",)),
        (ClassScores(), ("accuracy", "log_loss", "auc")),
        (QuantileScores(0.3), ("below",)),
        (QuantileScores(0.3), ("pinball",)),
        (QuantileScores(0.3), ("below", "pinball")),
    ],
)
def test_events_are_what_is_drawn_and_add_up(scoring, metrics):
    rows, theta, _, _ = problem(500)
    noise = Noise(np.random.default_rng(1))
    scoring.release(rows, theta, metrics, 3.0, noise)
    planned = scoring.events(metrics, 3.0)
    assert sorted(e.sigma / e.sensitivity for e in planned) == pytest.approx(
        sorted(e.sigma / e.sensitivity for e in noise.drawn)
    )
    assert math.fsum(e.mu**2 for e in planned) == pytest.approx(1.0 / 9.0)


@pytest.mark.parametrize("kind", ["usual", "ties", "few large"])
@pytest.mark.parametrize("metric", ["accuracy", "log_loss", "auc"])
def test_intervals_cover(metric, kind):
    """Seeded: at least 95% of 200 draws at n = 20,000 and the noise of epsilon 1, less 3 errors.

    Areas of rows with the same log-odds, or with few that are not near 0, were covered less often.
    """
    rows, theta, z, y = problem()
    if kind != "usual":
        X = np.column_stack([np.zeros((rows.n, 2)), np.full(rows.n, 0.5)])
        X[:, 0] = np.sign(z) * (0.3 if kind == "ties" else np.where(np.abs(z) > 2, 0.5, 0.01 * z))
        rows, z = rows_of(X, y, 0.5), X @ theta
    truth = {
        "accuracy": np.mean((z >= 0) == (y > 0)),
        "log_loss": log_loss(y, expit(z)),
        "auc": roc_auc_score(y, z),
    }[metric]
    noise = Noise(np.random.default_rng(6))
    found = [ClassScores().release(rows, theta, (metric,), 6.0, noise)[metric] for _ in range(200)]
    covered = [low <= truth <= high for low, high in (each.interval() for each in found)]
    assert np.mean(covered) >= 0.95 - 3.0 * math.sqrt(0.05 * 0.95 / 200)
    if kind == "usual":
        assert max(abs(each.value - truth) for each in found) < 0.015


def test_probabilities_near_zero_have_a_bounded_loss():
    X = np.ones((1000, 1))
    y = np.where(np.arange(1000) < 100, -1.0, 1.0)
    found = ClassScores().release(rows_of(X, y), np.full(1, 30.0), ("log_loss",), 1e-6, zero())
    assert found["log_loss"].value == pytest.approx(0.1 * -math.log(1e-4))


def test_bins_of_nothing_are_finite():
    rows = rows_of(np.zeros((50, 2)), np.zeros(50))
    for n_sigma in (1.0, 100.0):
        noise = Noise(np.random.default_rng(0))
        found = ClassScores().release(rows, np.zeros(2), ("accuracy", "auc"), n_sigma, noise)
        assert all(0.0 <= each.value <= 1.0 for each in found.values())
        assert all(math.isfinite(each.std) for each in found.values())
    edges = equal_bins(np.ones(128), np.linspace(-3, 3, 127), 16)
    assert np.all(np.diff(edges) > 0)
    assert 0.0 in edges


def test_wrong_arguments_are_refused():
    rows, theta, _, _ = problem(50)
    given = {"theta": theta, "edges": EDGES, "sigma": 1.0}
    with pytest.raises(ValueError, match="edges"):
        zero().release(LABEL_COUNTS, rows, **{**given, "edges": np.array([1.0, 1.0])})
    with pytest.raises(ValueError, match="theta"):
        zero().release(LABEL_COUNTS, rows, **{**given, "theta": 1e200 * theta})
    with pytest.raises(TypeError, match="must be given edges, sigma, theta; got"):
        zero().release(LABEL_COUNTS, rows, **given, level=1.0)
    with pytest.raises(ValueError, match="metrics must be"):
        ClassScores().checked("r2")
    assert QuantileScores(0.5).checked(None) == ("below", "pinball")
