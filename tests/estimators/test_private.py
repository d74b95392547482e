"""PrivateLinearRegression: the front door leads where it says."""

from __future__ import annotations

import pickle
import re
from dataclasses import fields

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV

import fastmix
from fastmix import BudgetAccountant, PrivateLinearRegression
from fastmix.certificate.verify import verify_certificate
from fastmix.estimators.base import PrivateRegressor

METHODS = {
    "adassp": fastmix.AdaSSP,
    "dp_gd": fastmix.DPGradientDescent,
    "fast_ihm": fastmix.FastIHM,
    "ihm": fastmix.IHM,
    "linear_mixing": fastmix.LinearMixing,
}
COMMON = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "bounds_X": (-1, 1),
    "bounds_y": (-2, 1),
    "random_state": 5,
}
STEPS = {"n_steps": 3, "residual_clip": 0.7}
OPTIONS = {
    "adassp": {"variant": "paper", "calibration": "published"},
    "dp_gd": STEPS,
    "fast_ihm": {"n_steps": 3},
    "ihm": {"n_steps": 3},
    "linear_mixing": {"gaussian_size": 60},
}
#: A value of every common parameter that is not its default.
NOT_DEFAULT = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "bounds": {"a": (0, 1)},
    "bounds_X": np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]),
    "bounds_y": (-1, 1),
    "data_norm": 2.0,
    "fit_intercept": False,
    "inference": True,
    "noise": "exact",
    "accountant": BudgetAccountant(1.0, 1e-5),
    "random_state": 3,
    "verbose": True,
    "max_rows_per_group": 3,
    "score_share": 0.1,
    "max_weight": 2.0,
    "public_rows": False,
    "clip_predictions": False,
}


def problem(n=80, d=3):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


def same(door, room, name):
    np.testing.assert_array_equal(door.coef_, room.coef_)
    assert door.intercept_ == room.intercept_
    assert door.privacy_.spent == room.privacy_.spent
    assert door.privacy_.data == room.privacy_.data
    for attribute in ("gamma_", "eta_", "gradient_noise_", "n_steps_", "bounds_y_"):
        assert getattr(door, attribute) == getattr(room, attribute)
    assert door.method_ == name
    assert door.privacy_.mechanism == "PrivateLinearRegression"
    parameters = dict(door.privacy_.parameters)
    assert parameters.pop("method") == name
    assert parameters == room.privacy_.parameters
    assert parameters["method_"] == name


@pytest.mark.parametrize("name", METHODS)
def test_a_named_method_is_that_estimator(name):
    X, y = problem()
    door = PrivateLinearRegression(method=name, **COMMON).fit(X, y)
    same(door, METHODS[name](**COMMON).fit(X, y), name)


@pytest.mark.parametrize("name", METHODS)
def test_an_estimator_as_the_method_is_that_estimator(name):
    X, y = problem()
    inner = METHODS[name](**OPTIONS[name])
    door = PrivateLinearRegression(method=inner, **COMMON).fit(X, y)
    same(door, METHODS[name](**COMMON, **OPTIONS[name]).fit(X, y), name)
    plain = METHODS[name](**COMMON).fit(X, y)
    assert (door.coef_ != plain.coef_).any(), "the parameters of the method must matter"
    assert door.method is inner
    assert not hasattr(inner, "coef_"), "the method is a set of parameters, and stays one"
    assert verify_certificate(door.privacy_.to_json()).verified


def test_parameters_of_the_method_can_be_read_set_and_cloned():
    X, y = problem()
    door = PrivateLinearRegression(method=fastmix.IHM(n_steps=8), **COMMON)
    assert door.get_params()["method__n_steps"] == 8
    assert "method__n_steps" not in door.get_params(deep=False)
    copy = clone(door)
    assert copy.method is not door.method
    assert copy.get_params()["method__n_steps"] == 8
    copy.set_params(method__n_steps=4)
    assert (copy.method.n_steps, door.method.n_steps) == (4, 8)
    for model, steps in ((door, 8), (copy, 4)):
        assert model.fit(X, y).n_steps_ == steps
        same(model, fastmix.IHM(n_steps=steps, **COMMON).fit(X, y), "ihm")
    assert "method=IHM(n_steps=8)" in repr(door)
    search = GridSearchCV(copy, {"method__n_steps": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_["method__n_steps"] in (1, 2)


def test_a_model_with_an_estimator_survives_pickling():
    X, y = problem()
    door = PrivateLinearRegression(method=fastmix.IHM(n_steps=3), **COMMON)
    again = pickle.loads(pickle.dumps(door)).fit(X, y)
    np.testing.assert_array_equal(again.coef_, door.fit(X, y).coef_)
    again = pickle.loads(pickle.dumps(door))
    np.testing.assert_array_equal(again.predict(X), door.predict(X))
    assert again.privacy_.to_json() == door.privacy_.to_json()


def test_a_copy_from_inside_a_budget_is_charged_to_it():
    X, y = problem()
    door = PrivateLinearRegression(method=fastmix.IHM(n_steps=2), **COMMON)
    with BudgetAccountant(float("inf"), 1e-4) as budget:
        copy = pickle.loads(pickle.dumps(door))
    copy.fit(X, y)
    assert len(budget) == 1


def test_there_is_a_value_for_every_common_parameter():
    assert NOT_DEFAULT.keys() == {field.name for field in fields(PrivateRegressor)}


@pytest.mark.parametrize("name", NOT_DEFAULT)
def test_what_the_front_door_decides_is_refused_in_the_method(name):
    X, y = problem()
    budget = BudgetAccountant(float("inf"), 1e-4)
    inner = fastmix.IHM(**{name: NOT_DEFAULT[name]})
    door = PrivateLinearRegression(method=inner, accountant=budget, **COMMON)
    message = f"method must leave {name} to PrivateLinearRegression; got method='IHM'."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        door.fit(X, y)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        door.account(80, 3)
    assert len(budget) == 0


@pytest.mark.parametrize("method", [None, fastmix.IHM, 3, LinearRegression()])
def test_what_is_no_method_is_refused(method):
    with pytest.raises(TypeError, match=r"^method must be a name or an estimator; got method="):
        PrivateLinearRegression(method=method).fit(None, None)


@pytest.mark.parametrize(
    ("d", "fit_intercept"), [(3, True), (499, False), (498, True), (499, True), (500, False)]
)
def test_auto_is_adaptive_at_any_width_with_and_without_intervals(d, fit_intercept):
    X, y = np.zeros((2, d)), np.zeros(2)
    model = PrivateLinearRegression(
        bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=fit_intercept, inference=True
    ).fit(X, y)  # fmt: skip
    assert model.method_ == "adaptive"
    assert hasattr(model, "coef_std_")
    assert model.set_params(inference=False).fit(X, y).method_ == "adaptive"


def test_the_front_door_charges_once():
    X, y = problem()
    budget = BudgetAccountant(float("inf"), 1e-5)
    model = PrivateLinearRegression(**COMMON, accountant=budget).fit(X, y)
    assert len(budget) == 1
    assert budget.charges[0].spent == model.privacy_.spent


def test_an_unknown_method_is_refused_before_anything_else():
    with pytest.raises(ValueError, match=r"method must be one of 'auto', .*; got method='ols'\."):
        PrivateLinearRegression(method="ols").fit(None, None)
