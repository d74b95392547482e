"""PrivateLinearRegression: the front door leads where it says."""

from __future__ import annotations

import numpy as np
import pytest

import fastmix
from fastmix import BudgetAccountant, PrivateLinearRegression

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
OPTIONS = {"adassp": {}, "dp_gd": STEPS, "fast_ihm": STEPS, "ihm": STEPS, "linear_mixing": {}}


def problem(n=80, d=3):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


@pytest.mark.parametrize("name", METHODS)
def test_a_named_method_is_that_estimator(name):
    X, y = problem()
    door = PrivateLinearRegression(method=name, **COMMON, **OPTIONS[name]).fit(X, y)
    room = METHODS[name](**COMMON, **OPTIONS[name]).fit(X, y)
    assert door.method_ == name
    np.testing.assert_array_equal(door.coef_, room.coef_)
    assert door.intercept_ == room.intercept_
    assert door.privacy_.spent == room.privacy_.spent
    for attribute in ("gamma_", "eta_", "gradient_noise_", "n_steps_", "bounds_y_"):
        assert getattr(door, attribute) == getattr(room, attribute)
    assert door.privacy_.mechanism == "PrivateLinearRegression"
    assert door.privacy_.parameters["method_"] == name


@pytest.mark.parametrize(
    ("d", "fit_intercept", "expected"),
    [(3, True, "ihm"), (499, False, "ihm"), (498, True, "ihm"), (499, True, "fast_ihm"),
     (500, False, "fast_ihm")],
)  # fmt: skip
def test_auto_depends_on_the_width_only(d, fit_intercept, expected):
    X, y = np.zeros((2, d)), np.zeros(2)
    model = PrivateLinearRegression(
        bounds_X=(-1, 1), bounds_y=(-1, 1), n_steps=1, fit_intercept=fit_intercept,
        gaussian_size=3 * d + 50,
    ).fit(X, y)  # fmt: skip
    assert model.method_ == expected


def test_the_front_door_charges_once():
    X, y = problem()
    budget = BudgetAccountant(float("inf"), 1e-5)
    model = PrivateLinearRegression(**COMMON, accountant=budget).fit(X, y)
    assert len(budget) == 1
    assert budget.charges[0].spent == model.privacy_.spent


def test_an_unknown_method_is_refused_before_anything_else():
    with pytest.raises(ValueError, match=r"method must be one of 'auto', .*; got method='ols'\."):
        PrivateLinearRegression(method="ols").fit(None, None)
