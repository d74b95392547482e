"""Comparing feature sets under one budget: the account, the charge, the choice, the refit."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastmix
from fastmix import BudgetAccountant, BudgetError, PrivateLinearRegression, compare
from fastmix.accounting import GaussianEvent, ObjectiveEvent
from fastmix.certificate import verify_certificate
from fastmix.data import ArrayRows, RowMap
from fastmix.releases import CONTRASTS, Noise, sensitivity
from tests.transcripts import names, recording, replaying

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-3, 3), "delta": 1e-6}


def problem(n=8_000):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, 4))
    return X, X @ [1.0, -0.5, 0.2, 0.0] + rng.normal(0, 0.3, n)


SETS = {"right": [0, 1, 2], "two": [0, 1], "wrong": [2, 3], "one": [3]}


def model(**given):
    return PrivateLinearRegression(**{"epsilon": 1.0, "random_state": 0, **BOUNDS, **given})


def test_the_best_set_is_found_and_refitted():
    X, y = problem()
    found = compare(SETS, X, y, model=model())
    assert found.best == "right"
    assert list(found.excess) == ["right", "two", "wrong", "one"]
    assert found.excess["right"] == 0.0
    assert found.excess["two"] == pytest.approx(0.2**2 / 3, abs=5 * found.std)
    np.testing.assert_allclose(found.model.coef_, [1.0, -0.5, 0.2], atol=0.06)
    assert found.model.n_features_in_ == 3
    np.testing.assert_array_equal(found.predict(X), found.model.predict(X[:, [0, 1, 2]]))
    assert "right" in str(found)
    assert "<table>" in found._repr_html_()


def test_categories_of_an_earlier_fit_have_no_effect():
    X, y = problem()
    X[:, 0] = X[:, 0] > 0
    new, fitted = model(), model().fit(X, y, categories=[[0]])
    assert fitted._dummies
    first, second = (compare(SETS, X, y, model=each).excess for each in (new, fitted))
    assert first == second


def test_names_of_columns_and_lists_without_names():
    X, y = problem()
    frame = pd.DataFrame(X, columns=list("abcd"))
    found = compare([["a", "b"], ["c", "d"]], frame, y, model=model(inference=True))
    assert found.best == "set 1"
    assert found.model.feature_names_in_.tolist() == ["a", "b"]
    assert np.isfinite(found.model.coef_std_).all()
    np.testing.assert_array_equal(found.predict(frame), found.model.predict(frame[["a", "b"]]))


def profile(mu, epsilon):
    mp = mpmath.mp
    mu, e = mp.mpf(mu), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_account_is_joint_and_is_that_of_theorem_two(epsilon, inference):
    X, y = problem(3_000)
    found = compare(SETS, X, y, model=model(epsilon=epsilon, inference=inference))
    events = found.spent.events
    (objective,) = (event for event in events if isinstance(event, ObjectiveEvent))
    gaussian = [event for event in events if isinstance(event, GaussianEvent)]
    assert len(events) == 1 + len(gaussian)
    mu_g = math.sqrt(math.fsum(event.mu**2 for event in gaussian))
    total = profile(math.hypot(objective.mu, mu_g), epsilon)
    delta = max(total + profile(mu_g, epsilon - objective.eps_c), 2 * total)
    assert 0.9e-6 <= delta <= 1e-6
    assert found.spent.epsilon <= epsilon * (1 + 1e-9)
    assert verify_certificate(found.model.privacy_.to_json()).verified


def test_the_account_does_not_depend_on_the_data():
    X, y = problem(2_000)
    spent = {
        repr(compare(SETS, A, b, model=model()).spent)
        for A, b in ((X, y), (-(X[::-1] ** 3), y), (0 * X, 0 * y))
    }
    assert len(spent) == 1


def test_everything_is_a_function_of_releases():
    X, y = problem(1_000)
    with recording() as transcript:
        first = compare(SETS, X, y, model=model())
    assert "contrasts" in names(transcript)
    with replaying(transcript):
        second = compare(SETS, 0.0 * X, 0.0 * y, model=model(random_state=5))
    assert first.excess == second.excess
    np.testing.assert_array_equal(first.model.coef_, second.model.coef_)


def test_a_budget_is_charged_once_and_before_noise():
    X, y = problem(500)
    budget = BudgetAccountant(1.05, 1e-4)
    found = compare(SETS, X, y, model=model(accountant=budget, random_state=None))
    assert len(budget) == 1
    assert budget.charges[0].spent == found.spent
    with pytest.raises(BudgetError):
        compare(SETS, X, y, model=model(accountant=budget, random_state=None))
    assert len(budget) == 1


def test_what_is_refused_charges_nothing():
    X, y = problem(100)
    budget = BudgetAccountant(float("inf"), 1e-4)
    for wrong, kind in (
        ([[0]], {}),
        ([[0], [9]], {}),
        ([[0], [-1]], {}),
        ([[0], []], {}),
        ([[0], [1, 1]], {}),
        ([[0], ["a"]], {}),
        ("ab", {}),
        (SETS, {"method": "ihm"}),
        ({1: [0], "1": [1], "both": [0, 1]}, {}),
        (SETS, {"score_share": 0.1}),
        (SETS, {"epsilon": float("inf")}),
    ):
        with pytest.raises((ValueError, TypeError)):
            compare(wrong, X, y, model=model(accountant=budget, **kind))
    with pytest.raises(TypeError, match="PrivateLinearRegression"):
        compare(SETS, X, y, model=fastmix.IHM())
    with pytest.raises(ValueError, match="name columns of X"):
        compare([["a"], ["b"]], pd.DataFrame(X, columns=list("wxyz")), y, model=model())
    assert len(budget) == 0


unit = st.floats(-1.0, 1.0)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(unit, unit, unit), min_size=1, max_size=4),
    st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=6),
    st.floats(0.05, 3.0),
)
def test_an_absent_record_changes_contrasts_by_at_most_the_sensitivity(records, models, level):
    class Zero(Noise):
        def _gaussian(self, values, sensitivity, ratio):
            return np.array(values)

    data, thetas = np.array(records), np.array(models).T
    X, y = data[:, :2] / math.sqrt(2.0), data[:, 2]

    def sums():
        rows = ArrayRows(X.copy(), RowMap(row_norm=1.0), y.copy())
        noise = Zero(np.random.default_rng(0))
        return noise.release(CONTRASTS, rows, thetas=thetas, level=level, sigma=1.0)

    present = sums()
    X[0], y[0] = 0.0, 0.0
    limit = sensitivity.contrast_sensitivity(level, thetas.shape[1])
    assert np.linalg.norm(present - sums()) <= limit * (1 + 1e-12) + 1e-13


def test_the_sensitivity_of_contrasts_is_attained():
    """By a record on the line of half of the models and far from that of the others."""
    X, y = np.array([[1.0, 0.0]]), np.array([1.0])
    thetas = np.array([[1.0, 1.0, 9.0, 9.0], [0.0] * 4])
    rows = ArrayRows(X, RowMap(row_norm=1.0), y)
    np.testing.assert_allclose(
        np.linalg.norm(rows.contrasts(thetas, 0.5)), sensitivity.contrast_sensitivity(0.5, 4)
    )
