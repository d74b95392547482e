"""Private scores of classifiers and quantiles: near the truth, charged, part of a fit if asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss, mean_pinball_loss, roc_auc_score

import fastmix
from fastmix import BudgetAccountant, PrivateLogisticRegression, PrivateQuantileRegressor
from fastmix.certificate import verify_certificate
from fastmix.data.chunks import ArrayChunk, Chunks

BOUNDS = {"bounds_X": (-1, 1), "delta": 1e-6}


def problem(n=12_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, (X @ [3.0, -2.0, 1.0] + 0.5 + rng.logistic(size=n) > 0).astype(int)


@pytest.fixture(scope="module")
def model():
    X, y = problem()
    labels = np.array(["no", "yes"])[y]
    return PrivateLogisticRegression(
        epsilon=3.0, classes=["yes", "no"], class_weight={"yes": 2.0}, random_state=0, **BOUNDS
    ).fit(X, labels)


def test_scores_are_near_the_truth(model):
    X, y = problem()
    labels = np.array(["no", "yes"])[y]
    found = model.evaluate(X, labels, epsilon=3.0, random_state=0)
    likely = model.predict_proba(X)[:, 1]
    assert list(found.scores) == ["accuracy", "log_loss", "auc"]
    assert found["accuracy"] == pytest.approx(model.score(X, labels), abs=0.01)
    assert found["log_loss"] == pytest.approx(log_loss(y, likely), abs=0.01)
    assert found["auc"] == pytest.approx(roc_auc_score(y, likely), abs=0.01)
    assert found.spent.epsilon <= 3.0
    frequent = max(y.mean(), 1.0 - y.mean())
    assert found.to_dict()["accuracy"]["baseline"] == pytest.approx(frequent, abs=0.01)
    assert found.baseline.startswith("always predicting the more frequent label would be right")
    assert "baseline" not in found.to_dict()["auc"]
    assert 4 <= len(found.calibration) <= 11
    assert "<svg" in found._repr_html_()
    assert "log_loss" in str(found)
    labels[:50] = "perhaps"  # counts nowhere
    assert model.evaluate(X, labels, "auc", epsilon=3.0)["auc"] > 0.8


def test_rows_in_chunks_have_the_same_scores():
    X, y = problem()
    model = PrivateLogisticRegression(classes=[0, 1], random_state=0, **BOUNDS).fit(X, y)
    y = y.astype(float)
    table = Chunks([ArrayChunk("a", X[:5000], y[:5000]), ArrayChunk("b", X[5000:], y[5000:])], 3)
    one = model.evaluate(X, y, epsilon=1.0, random_state=4)
    two = model.evaluate(table, epsilon=1.0, random_state=4)
    for name in one.scores:
        assert one[name] == pytest.approx(two[name], abs=1e-9)


def test_classes_found_in_the_data_are_those_of_the_fit():
    X, y = problem(2000)
    with pytest.warns(fastmix.PrivacyLeakWarning):
        model = PrivateLogisticRegression(random_state=0, **BOUNDS).fit(X, y)
    budget = BudgetAccountant(10.0, 1e-5)
    with pytest.raises(fastmix.BudgetError, match="taken from the data"):
        model.evaluate(X, y, epsilon=1.0, accountant=budget)
    assert model.evaluate(X, y, "accuracy", epsilon=5.0)["accuracy"] > 0.6
    assert model.classes is None


def test_several_classes():
    X, _ = problem()
    t = X @ [3.0, -2.0, 1.0]
    y = np.where(t > 1.0, "high", np.where(t < -1.0, "low", "middle"))
    model = PrivateLogisticRegression(
        epsilon=5.0, classes=["low", "middle", "high"], random_state=0, **BOUNDS
    ).fit(X, y)
    found = model.evaluate(X, y, epsilon=2.0, random_state=0)
    assert list(found.scores) == ["accuracy", "log_loss"]
    assert found["accuracy"] == pytest.approx(model.score(X, y), abs=0.01)
    truth = log_loss(y, model.predict_proba(X), labels=list(model.classes_))
    assert found["log_loss"] == pytest.approx(truth, abs=0.02)
    assert found.calibration == ()
    with pytest.raises(ValueError, match="metrics must be"):
        model.evaluate(X, y, "auc", epsilon=1.0)
    model.set_params(score_share=0.1).fit(X, y)
    assert list(model.scores_.scores) == ["accuracy"]
    low, high = model.scores_.interval("accuracy", 1.0 - 1e-6)
    assert low <= model.score(X, y) <= high
    with pytest.raises(ValueError, match="metrics must be"):
        model.evaluate(X, y, "auc", epsilon=1.0)


def test_wrong_arguments_charge_nothing(model):
    X, y = problem(50)
    labels = np.array(["no", "yes"])[y]
    budget = BudgetAccountant(1.0, 1e-5)
    bad = X.copy()
    bad[3, 1] = np.nan
    for wrong in (
        {"X": X[:, :2], "y": labels, "epsilon": 0.5},
        {"X": X, "y": labels, "epsilon": 0.5, "metrics": "r2"},
        {"X": bad, "y": labels, "epsilon": 0.5},
        {"X": X, "y": y, "epsilon": 0.5},
        {"X": X, "y": labels[:-1], "epsilon": 0.5},
    ):
        with pytest.raises((ValueError, TypeError)):
            model.evaluate(**wrong, accountant=budget)
    assert len(budget) == 0
    secret = clone(model).set_params(random_state=None).fit(X, labels)
    secret.evaluate(X, labels, epsilon=0.5, delta=1e-6, accountant=budget)
    assert len(budget) == 1


def test_coefficients_that_overflow_charge_nothing():
    X, y = problem(50)
    model = PrivateLogisticRegression(classes=[0, 1], random_state=0, **BOUNDS).fit(X, y)
    model.coef_ = model.coef_ * 1e200
    budget = BudgetAccountant(1.0, 1e-5)
    with pytest.raises(ValueError, match="1e100"):
        model.evaluate(X, y, epsilon=0.5, accountant=budget)
    assert len(budget) == 0


def test_a_share_of_the_budget_pays_for_the_scores():
    X, y = problem()
    model = PrivateLogisticRegression(
        epsilon=2.0, classes=[0, 1], score_share=0.05, random_state=0, **BOUNDS
    ).fit(X, y)
    assert model.privacy_.epsilon <= 2.0
    assert verify_certificate(model.privacy_.to_json()).verified
    likely = model.predict_proba(X)[:, 1]
    assert model.scores_["accuracy"] == pytest.approx(model.score(X, y), abs=0.03)
    assert model.scores_["auc"] == pytest.approx(roc_auc_score(y, likely), abs=0.03)
    assert "AUC (private)" in str(model.summary())
    assert model.scores_.calibration


def test_tables_by_bounds():
    X, y = problem(4000)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    bounds = {"y": (0, 1), "a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}
    model = PrivateLogisticRegression(epsilon=3.0, delta=1e-6, bounds=bounds, random_state=0)
    model.fit(frame[["a", "b", "c"]], frame["y"])
    found = model.evaluate(frame[["a", "b", "c"]], frame["y"], "auc", epsilon=3.0, random_state=0)
    truth = roc_auc_score(y, model.predict_proba(frame[["a", "b", "c"]])[:, 1])
    assert found["auc"] == pytest.approx(truth, abs=0.02)


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_scores_of_a_quantile(quantile):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (12_000, 3))
    y = X @ [1.0, -0.5, 0.2] + rng.normal(0, 0.3, 12_000)
    model = PrivateQuantileRegressor(
        epsilon=2.0, quantile=quantile, bounds_y=(-3, 3), score_share=0.05, random_state=0, **BOUNDS
    ).fit(X, y)
    below, loss = (
        np.mean(y <= model.predict(X)),
        mean_pinball_loss(y, model.predict(X), alpha=quantile),
    )
    found = model.evaluate(X, y, epsilon=3.0, random_state=0)
    assert found["below"] == pytest.approx(below, abs=0.005)
    assert found["pinball"] == pytest.approx(loss, rel=0.05)
    assert model.scores_["below"] == pytest.approx(below, abs=0.02)
    assert verify_certificate(model.privacy_.to_json()).verified


def test_scores_of_a_robust_fit():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (12_000, 3))
    y = X @ [1.0, -0.5, 0.2] + rng.normal(0, 0.3, 12_000)
    model = fastmix.PrivateHuberRegressor(
        epsilon=2.0, bounds_y=(-3, 3), score_share=0.05, random_state=0, **BOUNDS
    ).fit(X, y)
    found = model.evaluate(X, y, epsilon=3.0, random_state=0)
    assert found["r2"] == pytest.approx(model.score(X, y), abs=0.02)
    assert found["mae"] == pytest.approx(np.mean(np.abs(y - model.predict(X))), rel=0.05)
    assert model.scores_["r2"] == pytest.approx(model.score(X, y), abs=0.03)
    assert verify_certificate(model.privacy_.to_json()).verified
