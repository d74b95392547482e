"""Warnings before anything is spent: weak guarantees and fits that cannot learn."""

import warnings

import numpy as np
import pytest

import fastmix
from fastmix import (
    IHM,
    BudgetAccountant,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    LowAccuracyWarning,
    PrivateLinearRegression,
    WeakPrivacyWarning,
)
from fastmix.certificate.explain import explain

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}


def problem(n, d):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


def caught(model, n, d):
    """Fit, and return the warnings of our own classes with the charges at the first of them."""
    X, y = problem(n, d)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.set_params(**BOUNDS).fit(X, y)
    ours = (LowAccuracyWarning, WeakPrivacyWarning)
    return [(w.category, str(w.message), w.filename) for w in found if w.category in ours]


@pytest.mark.parametrize("cls", [IHM, DPGradientDescent, LinearMixing, PrivateLinearRegression])
@pytest.mark.parametrize("delta", [0.3, 1e-3])
def test_a_delta_of_one_over_n_or_more_is_warned_of(cls, delta):
    ((category, message, filename),) = caught(cls(delta=delta, epsilon=5.0), 1000, 2)
    assert category is WeakPrivacyWarning
    assert message.startswith(f"delta={delta:g} is not below 1/n for n=1,000 rows")
    assert filename == __file__


def test_a_large_epsilon_is_warned_of():
    ((category, message, _),) = caught(IHM(epsilon=100.0), 1000, 2)
    assert category is WeakPrivacyWarning
    assert message.startswith("epsilon=100 protects hardly anyone")


@pytest.mark.parametrize(("n", "d"), [(50, 13), (300, 13), (50, 3)])
def test_too_few_rows_are_warned_of(n, d):
    ((category, message, _),) = caught(IHM(), n, d)
    assert category is LowAccuracyWarning
    assert message.startswith(f"n={n:,} rows are too few for {d + 1} columns")


def test_ordinary_fits_warn_of_nothing():
    assert caught(PrivateLinearRegression(), 20_000, 5) == []
    assert caught(IHM(epsilon=10.0), 20_000, 5) == []
    assert caught(IHM(epsilon=float("inf")), 50, 13) == []


def test_steps_that_diverge_are_warned_of():
    messages = [m for _, m, _ in caught(IHM(variant="paper", gaussian_size=11), 20_000, 2)]
    assert any(m.startswith("gaussian_size=11 is below 40 for 3 columns") for m in messages)
    messages = [m for _, m, _ in caught(DPGradientDescent(learning_rate=50.0), 1000, 2)]
    assert any(m.startswith("learning_rate=50 is above 2") for m in messages)


@pytest.mark.parametrize(
    "model", [IHM(delta=0.1), FastIHM(epsilon=1e3), PrivateLinearRegression()], ids=str
)
def test_a_warning_that_is_an_error_has_charged_nothing(model):
    X, y = problem(50, 13)
    budget = BudgetAccountant(float("inf"), 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((LowAccuracyWarning, WeakPrivacyWarning)):
            model.set_params(accountant=budget, **BOUNDS).fit(X, y)
    assert len(budget) == 0


def test_warnings_do_not_depend_on_values():
    X, y = problem(50, 13)
    seen = []
    for values in (X, np.zeros_like(X), 1e6 * X):
        with pytest.warns(LowAccuracyWarning) as found:
            IHM(**BOUNDS).fit(values, y)
        seen.append([str(w.message) for w in found])
    assert seen[0] == seen[1] == seen[2]


def test_a_plan_says_what_a_fit_would_warn_of():
    assert fastmix.plan(100_000, 20).warnings == ()
    for n, d, epsilon, delta in ((300, 13, 1.0, None), (50, 13, 100.0, None), (1000, 3, 1.0, 0.3)):
        planned = fastmix.plan(n, d, epsilon, delta)
        fitted = caught(PrivateLinearRegression(epsilon=epsilon, delta=delta), n, d)
        assert planned.warnings == tuple(message for _, message, _ in fitted)
        assert planned.warnings
        assert f"Warning: {planned.warnings[0]}" in str(planned)


@pytest.mark.filterwarnings("ignore::fastmix.WeakPrivacyWarning")
def test_an_explanation_does_not_praise_a_weak_guarantee():
    X, y = problem(1000, 2)
    strong, weak = (
        explain(IHM(epsilon=epsilon, **BOUNDS).fit(X, y).privacy_) for epsilon in (1.0, 100.0)
    )
    assert "by a factor of at most e^1 = 2.72" in strong[1]
    assert "The guarantee is weak" in weak[1]
    assert "protects hardly anyone" in weak[2]
