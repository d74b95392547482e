"""Private scores of estimators: charged before noise, near the truth, part of a fit if asked."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import fastmix
from fastmix import BudgetAccountant, BudgetError
from fastmix.certificate import verify_certificate
from fastmix.data.chunks import ArrayChunk, Chunks
from fastmix.estimators.evaluation import PrivateScores

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-3, 3), "delta": 1e-6}


def problem(n=12_000):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X @ [1.0, -0.5, 0.2] + rng.normal(0, 0.3, n)


@pytest.fixture(scope="module")
def model():
    X, y = problem()
    return fastmix.PrivateLinearRegression(epsilon=3.0, random_state=0, **BOUNDS).fit(X, y)


def test_scores_are_near_the_truth(model):
    X, y = problem()
    found = model.evaluate(X, y, epsilon=3.0, random_state=0)
    r = y - model.predict(X)
    assert isinstance(found, PrivateScores)
    assert list(found.scores) == ["r2", "mse", "mae"]
    assert found["r2"] == pytest.approx(model.score(X, y), abs=0.02)
    assert found["mse"] == pytest.approx(np.mean(r**2), rel=0.05)
    assert found["mae"] == pytest.approx(np.mean(np.abs(r)), rel=0.05)
    low, high = found.interval("r2", 0.99)
    assert low < model.score(X, y) < high
    assert found.spent.epsilon <= 3.0
    assert "r2" in str(found)
    assert "<table>" in found._repr_html_()
    assert found.to_dict()["mse"]["value"] == found["mse"]


def test_rows_in_chunks_have_the_same_scores(model):
    X, y = problem()
    table = Chunks([ArrayChunk("a", X[:5000], y[:5000]), ArrayChunk("b", X[5000:], y[5000:])], 3)
    one = model.evaluate(X, y, "r2", epsilon=1.0, random_state=4)
    two = model.evaluate(table, metrics="r2", epsilon=1.0, random_state=4)
    assert one["r2"] == pytest.approx(two["r2"], abs=1e-9)


def test_a_budget_is_charged_before_noise():
    X, y = problem(500)
    model = fastmix.PrivateLinearRegression(epsilon=3.0, **BOUNDS).fit(X, y)
    budget = BudgetAccountant(1.0, 1e-5)
    with budget:
        found = model.evaluate(X, y, epsilon=0.6, delta=1e-6)
    assert len(budget) == 1
    assert budget.charges[0].spent == found.spent
    with pytest.raises(BudgetError):
        model.evaluate(X, y, epsilon=0.9, delta=1e-6, accountant=budget)
    assert len(budget) == 1
    with pytest.raises(BudgetError, match="seeded"):
        model.evaluate(X, y, epsilon=0.1, delta=1e-6, accountant=budget, random_state=1)


@pytest.mark.parametrize(
    ("given", "why"), [({"epsilon": np.inf}, "adds no noise"), ({"random_state": 0}, "seeded")]
)
def test_no_budget_covers_scores_of_coefficients_that_are_not_private(given, why):
    """They may be of the same rows: then a record moves them, and the scores, by any amount."""
    X, y = problem(50)
    model = fastmix.PrivateLinearRegression(**BOUNDS, **given).fit(X, y)
    budget = BudgetAccountant(1.0, 1e-5)
    with pytest.raises(BudgetError, match=why):
        model.evaluate(X, y, epsilon=0.5, delta=1e-6, accountant=budget)
    assert not len(budget)
    only_records = BudgetAccountant(np.inf, 1e-5)
    model.evaluate(X, y, epsilon=0.5, delta=1e-6, accountant=only_records)
    assert why in only_records.charges[0].leaks[0]


def test_wrong_arguments_charge_nothing(model):
    X, y = problem(50)
    budget = BudgetAccountant(1.0, 1e-5)
    bad = X.copy()
    bad[3, 1] = np.nan
    for wrong in (
        {"X": X[:, :2], "y": y, "epsilon": 1.0},
        {"X": X, "y": y, "epsilon": 0.0},
        {"X": X, "y": y, "epsilon": 0.5, "metrics": "rmse"},
        {"X": X, "y": y, "epsilon": 0.5, "delta": 2.0},
        {"X": bad, "y": y, "epsilon": 0.5},
        {"X": X, "y": y[:-1], "epsilon": 0.5},
    ):
        with pytest.raises((ValueError, TypeError)):
            model.evaluate(**wrong, accountant=budget)
    assert len(budget) == 0
    with pytest.raises(Exception, match="not fitted"):
        fastmix.PrivateLinearRegression().evaluate(X, y, epsilon=1.0)


def test_names_of_columns_must_match():
    X, y = problem(300)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fastmix.PrivateLinearRegression(random_state=0, **BOUNDS).fit(frame, y)
        with pytest.raises(ValueError, match="feature names"):
            model.evaluate(frame[["b", "a", "c"]], y, epsilon=1.0)


@pytest.mark.parametrize("inference", [False, True])
def test_a_share_of_the_budget_pays_for_the_score(inference):
    X, y = problem()
    model = fastmix.PrivateLinearRegression(
        epsilon=2.0, score_share=0.05, inference=inference, random_state=0, **BOUNDS
    ).fit(X, y)
    assert model.privacy_.epsilon <= 2.0
    assert verify_certificate(model.privacy_.to_json()).verified
    assert model.scores_["r2"] == pytest.approx(model.score(X, y), abs=0.05)
    low, high = model.scores_.interval("r2")
    assert low <= model.score(X, y) <= high < low + 0.3
    plain = fastmix.PrivateLinearRegression(
        epsilon=2.0, inference=inference, random_state=0, **BOUNDS
    ).fit(X, y)
    assert len(model.privacy_.events) == len(plain.privacy_.events) + 3
    assert "score_share" not in plain.privacy_.parameters
    assert "R-squared (private)" in str(model.summary())
    model.set_params(score_share=0.0).fit(X, y)
    assert not hasattr(model, "scores_")


def test_other_methods_refuse_a_share():
    X, y = problem(100)
    with pytest.raises(ValueError, match="score_share must be 0"):
        fastmix.ObjectivePerturbation(score_share=0.1, **BOUNDS).fit(X, y)
    with pytest.raises(TypeError, match="unexpected keyword argument 'score_share'"):
        fastmix.IHM(score_share=0.1)
    with pytest.raises(ValueError, match="score_share"):
        fastmix.PrivateLinearRegression(score_share=0.9, **BOUNDS).fit(X, y)


def test_seeded_scores_warn(model, monkeypatch):
    X, y = problem(100)
    monkeypatch.setattr("fastmix.random._told", False)  # it is said once per process
    with pytest.warns(fastmix.ReproducibleNoiseWarning):
        model.evaluate(X, y, epsilon=1.0, random_state=0)
