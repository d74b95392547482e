"""Defects that were found once and must not come back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone

import fastmix
from fastmix import (
    IHM,
    AdaSSP,
    BudgetAccountant,
    CalibrationError,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    PrivacyLeakWarning,
)
from fastmix.estimators.regression import with_method

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}


def problem(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


# 1. A tail that equals its share of delta is above it by one rounding: epsilon becomes inf.
@pytest.mark.parametrize(
    "model",
    [LinearMixing(), LinearMixing(fast=True), FastIHM(variant="paper", failure_probability=0.5)],
)
def test_account_is_finite_and_never_above(model):
    for n in (*range(2, 40), 100, 1000, 12345, 2**17):
        spent = model._planned(n, 3)[1].spent
        assert spent.epsilon <= 1.0
        assert spent.delta <= 1.0 / n**2


def test_missing_bounds_warn_whatever_the_account_says():
    for n in range(10, 60):
        X, y = problem(n)
        with pytest.warns(PrivacyLeakWarning):
            LinearMixing().fit(X, y)


# 2. Refusals that come after the charge.
@pytest.mark.parametrize(
    "model",
    [
        FastIHM(sketch_size=10**6),
        LinearMixing(fast=True, sketch_size=10**6, delta=1e-6),
        IHM(random_state="seed"),
        IHM(random_state=-1),
        IHM(random_state=1.5),
        IHM(residual_clip=1e308, bounds_y=(-1e-5, 1e-5)),
        IHM(residual_clip=1e-320, bounds_y=(-1e10, 1e10)),
    ],
)
def test_refusals_spend_nothing(model):
    X, y = problem()
    budget = BudgetAccountant(100.0, 1e-2)
    bounds = {name: value for name, value in BOUNDS.items() if getattr(model, name) is None}
    with pytest.raises(
        (TypeError, ValueError), match=r"^(sketch_size|random_state|residual_clip) must"
    ):
        model.set_params(accountant=budget, **bounds).fit(X, y)
    assert len(budget) == 0


# 3. Values of the data in error messages.
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.array([0.7654321, 0.2]), np.zeros(2)),
        (0.7654321, np.zeros(1)),
        (np.array([[0.7654321 + 1j], [0.2]]), np.zeros(2)),
        (np.ones((2, 2)), np.array([0.7654321 + 1j, 0.0])),
        (np.ones((2, 2)), np.array(["0.7654321x", "1"])),
        (np.ones((2, 2)), ["0.7654321x", "1"]),
    ],
)
def test_errors_show_no_value_of_the_data(X, y):
    with pytest.raises((TypeError, ValueError)) as caught:
        IHM(**BOUNDS).fit(X, y)
    assert "7654321" not in str(caught.value)


# 7. The conversion stops early: up to a few 1e-6 above the optimum, so calibrations are too.
def test_conversion_is_fully_optimised():
    from fastmix.accounting import rdp_to_epsilon
    from fastmix.accounting.rdp import rdp_gauss_mix

    gamma, rows, delta = 312.58725486674217, 600, 2.5e-7
    alpha = np.linspace(60.0, 80.0, 200_001)
    best = (
        rows * rdp_gauss_mix(alpha, gamma)
        + np.log1p(-1 / alpha)
        - np.log(delta * alpha) / (alpha - 1)
    )
    value = rdp_to_epsilon(lambda a: rows * rdp_gauss_mix(a, gamma), delta)
    assert value == pytest.approx(best.min(), rel=1e-7)  # is 2.3e-6 above


# 8. Certificates of NumPy parameters, as a grid search gives them.
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_steps": np.int64(3)},
        {"gaussian_size": np.int64(50), "variant": "paper"},
        {"epsilon": np.float32(1)},
        {"fit_intercept": np.bool_(True)},
        {"data_norm": np.float32(1)},
    ],
)
def test_certificates_of_numpy_parameters_are_json(parameters):
    X, y = problem()
    IHM(**BOUNDS).set_params(**parameters).fit(X, y).privacy_.to_json()


# 9. float32 parameters lose the thirds of delta.
def test_float32_delta_is_not_overspent():
    for cls in (FastIHM, LinearMixing):
        for delta in map(np.float32, (1e-6, 3e-7, 2e-5, 1.7e-5)):
            assert cls(delta=delta)._planned(1000, 3)[1].spent.delta <= float(delta)


# 10. Very small and very large epsilon.
def test_tiny_epsilon_is_not_overspent():
    assert DPGradientDescent(epsilon=1e-8, delta=1e-6)._planned(1000, 3)[1].spent.epsilon <= 1e-8
    assert AdaSSP(epsilon=1e-8, delta=1e-6)._planned(1000, 3)[1].spent.epsilon <= 1e-8


@pytest.mark.parametrize("model", [FastIHM(), LinearMixing(fast=True), IHM(), LinearMixing()])
@pytest.mark.parametrize("epsilon", [1e5, 1e7])
def test_huge_epsilon_is_met_or_refused(model, epsilon):
    try:
        spent = clone(model).set_params(epsilon=epsilon, delta=1e-6)._planned(1000, 3)[1].spent
    except CalibrationError:
        return
    assert spent.epsilon <= epsilon


# 11. Messages and switches outside the house form.
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bounds_X", ("a", 1)),
        ("bounds_y", ([0, 1], [1, 2])),
        ("fit_intercept", "no"),
        ("shrinkage", "no"),
    ],
)
def test_house_form(name, value):
    X, y = problem()
    with pytest.raises((TypeError, ValueError), match=rf"^{name} must .*; got {name}="):
        IHM(**BOUNDS).set_params(**{name: value}).fit(X, y)


# 12. Another method ran DP-GD for 4 steps, where the method needs 100.
def test_another_method_keeps_its_default_steps():
    X, y = problem()
    model = with_method(fastmix.PrivateLinearRegression(**BOUNDS), "dp_gd").fit(X, y)
    assert model.n_steps_ == DPGradientDescent(**BOUNDS).fit(X, y).n_steps_ == 100


def test_the_warning_points_at_the_caller():
    X, y = problem()
    with pytest.warns(PrivacyLeakWarning) as caught:
        fastmix.PrivateLinearRegression().fit(X, y)
    assert caught[0].filename == __file__


# 13. A budget keeps a finite total after a fit whose bounds came from the data.
def test_a_leaky_fit_shows_in_the_ledger():
    X, y = problem()
    budget = BudgetAccountant(math.inf, 1e-4)
    with pytest.warns(PrivacyLeakWarning):
        model = AdaSSP(delta=1e-6, accountant=budget).fit(X, y)
    assert not model.privacy_.private
    assert math.isinf(budget.total().epsilon)
    assert all("taken from the data" in leak for leak in budget.charges[0].leaks)
