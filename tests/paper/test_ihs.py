"""IHS: not private, and honest about it; it approaches least squares."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from fastmix import IHS, BudgetAccountant, BudgetError
from fastmix.datasets import make_correlated, make_sphere

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}


@pytest.mark.parametrize("sketch", ["srht", "gaussian"])
@pytest.mark.parametrize("make", [make_sphere, make_correlated])
def test_it_approaches_least_squares(sketch, make):
    X, y = make(n=3000, d=5, random_state=1)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    excess = []
    for steps in (1, 4, 16):
        model = IHS(sketch=sketch, n_steps=steps, random_state=0, **PAPER).fit(X, y)
        gap = X @ (model.coef_ - best)
        excess.append(gap @ gap)
    assert excess[1] < 0.05 * excess[0]
    assert excess[2] < 1e-6 * excess[1]


def test_with_an_intercept_and_bounds_from_data_it_reaches_scikit_learn():
    rng = np.random.default_rng(2)
    X = rng.normal(3.0, [1.0, 20.0, 0.1], (2000, 3))
    y = X @ [1.0, -0.2, 4.0] + 7.0 + rng.normal(size=2000)
    model = IHS(n_steps=25, random_state=0).fit(X, y)  # no warning: nothing here is private
    plain = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-5)
    assert model.intercept_ == pytest.approx(plain.intercept_, rel=1e-5)


def test_the_certificate_says_that_nothing_is_private():
    X, y = make_sphere(n=100, d=3, random_state=1)
    model = IHS(epsilon=0.1, **PAPER).fit(X, y)
    assert model.privacy_.epsilon == math.inf
    assert not model.privacy_.private
    assert "the method adds no noise" in model.privacy_.leaks
    assert np.isinf(model.privacy_.spent.rdp([2.0, 10.0])).all()
    assert '"private": false' in model.privacy_.to_json()


def test_no_finite_budget_covers_it():
    X, y = make_sphere(n=100, d=3, random_state=1)
    budget = BudgetAccountant(1e9, 0.5)
    with pytest.raises(BudgetError):
        IHS(epsilon=0.1, accountant=budget, **PAPER).fit(X, y)
    assert len(budget) == 0
    ledger = BudgetAccountant(math.inf, 0.5)
    IHS(accountant=ledger, **PAPER).fit(X, y)
    assert len(ledger) == 1


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 3), (2, 5), (100, 1), (33, 4)], ids=lambda shape: f"{shape}"
)
def test_small_shapes(shape):
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, shape), rng.uniform(-1, 1, shape[0])
    for sketch in ("srht", "gaussian"):
        model = IHS(sketch=sketch, random_state=0, bounds_X=(-1, 1), bounds_y=(-1, 1)).fit(X, y)
        assert np.isfinite(model.coef_).all()
