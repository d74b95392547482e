"""PrivateLinearRegression, and estimators of other methods with the same parameters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import fastmix
from fastmix import BudgetAccountant, PrivateLinearRegression
from fastmix.engine.population import Population
from fastmix.estimators.regression import LINEAR, linear_estimator, with_method

COMMON = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "bounds_X": (-1, 1),
    "bounds_y": (-2, 1),
    "random_state": 5,
}
#: Estimators that people use, and the most parameters that they may have.
FOUR = [
    fastmix.PrivateHuberRegressor,
    fastmix.PrivateLinearRegression,
    fastmix.PrivateLogisticRegression,
    fastmix.PrivateQuantileRegressor,
]
MOST = 14


def problem(n=80, d=3):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


@pytest.mark.parametrize("cls", FOUR)
def test_the_estimators_that_people_use_have_few_parameters(cls):
    assert len(cls().get_params()) <= MOST


@pytest.mark.parametrize("name", LINEAR)
def test_another_method_has_the_same_parameters(name):
    X, y = problem()
    made = with_method(PrivateLinearRegression(**COMMON, inference=False), name)
    assert type(made) is LINEAR[name]
    assert {key: getattr(made, key) for key in COMMON} == COMMON
    assert made.fit(X, y).method_ == name
    np.testing.assert_array_equal(
        made.coef_, LINEAR[name](**COMMON, inference=False).fit(X, y).coef_
    )


def test_another_method_refuses_the_parameters_that_it_does_not_have():
    for given in ({"score_share": 0.1}, {"public_rows": False}):
        (name,) = given
        model = PrivateLinearRegression(**COMMON, **given)
        with pytest.raises(ValueError, match=f"{name} must be .* for method 'ihm'"):
            with_method(model, "ihm")
        assert getattr(with_method(model, "objective"), name) == given[name]


def test_another_method_keeps_the_population():
    model = PrivateLinearRegression(**COMMON)
    model._population = Population(rows_per_person=3)
    with pytest.raises(ValueError, match="protects single rows only"):
        with_method(model, "ihm")._check_parameters()


def test_the_default_method_is_adaptive_and_ihs_is_not_private():
    assert linear_estimator("auto") is linear_estimator("adaptive") is PrivateLinearRegression
    for name in ("ihs", "ols", "logistic"):
        with pytest.raises(ValueError, match=r"method must be one of 'auto', .*; got method="):
            linear_estimator(name)


def test_a_model_survives_pickling():
    X, y = problem()
    model = PrivateLinearRegression(**COMMON)
    again = pickle.loads(pickle.dumps(model)).fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.fit(X, y).coef_)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.privacy_.to_json() == model.privacy_.to_json()


def test_a_copy_from_inside_a_budget_is_charged_to_it_once():
    X, y = problem()
    model = PrivateLinearRegression(**COMMON)
    with BudgetAccountant(float("inf"), 1e-4) as budget:
        copy = pickle.loads(pickle.dumps(model))
    copy.fit(X, y)
    assert len(budget) == 1
    assert budget.charges[0].spent == copy.privacy_.spent


@pytest.mark.parametrize(
    ("d", "fit_intercept"), [(3, True), (499, False), (498, True), (499, True), (500, False)]
)
def test_the_method_is_adaptive_at_any_width_with_and_without_intervals(d, fit_intercept):
    X, y = np.zeros((2, d)), np.zeros(2)
    model = PrivateLinearRegression(
        bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=fit_intercept, inference=True
    ).fit(X, y)  # fmt: skip
    assert model.method_ == "adaptive"
    assert hasattr(model, "coef_std_")
    assert model.set_params(inference=False).fit(X, y).method_ == "adaptive"
