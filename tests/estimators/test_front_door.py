"""What the front door takes for a method."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import fastmix
from fastmix import BudgetAccountant, PrivateLinearRegression

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-2, 1)}


def problem(n=80, d=3):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


@pytest.mark.parametrize("inner", [fastmix.IHM(epsilon=0.01), "ihs", "auto"])
def test_a_front_door_behind_a_front_door_is_refused(inner):
    model = PrivateLinearRegression(method=PrivateLinearRegression(method=inner), **BOUNDS)
    with pytest.raises(ValueError, match="method must be the estimator of one private method"):
        model.fit(*problem())


@pytest.mark.parametrize(
    "parameters", [{"bounds_X": np.array([[-1.0] * 3, [1.0] * 3])}, {"random_state": 0}]
)
def test_common_parameters_of_the_inner_estimator_are_refused(parameters):
    model = PrivateLinearRegression(method=fastmix.IHM(**parameters), **BOUNDS)
    with pytest.raises(ValueError, match=f"leave {next(iter(parameters))} to"):
        model.fit(*problem())


def test_a_copy_made_inside_a_budget_is_charged_to_it_once():
    model = PrivateLinearRegression(method=fastmix.IHM(n_steps=8), **BOUNDS)
    budget = BudgetAccountant(epsilon=2.0, delta=1e-2)
    with budget:
        copied = pickle.loads(pickle.dumps(model))
    copied.fit(*problem())
    assert len(budget) == 1
    other = PrivateLinearRegression(method=fastmix.IHM(accountant=budget), **BOUNDS)
    with pytest.raises(ValueError, match="leave accountant to"):
        other.fit(*problem())


def test_a_method_that_is_not_private_is_refused_by_name_and_as_an_estimator():
    for method in ("ihs", fastmix.IHS()):
        with pytest.raises(ValueError, match="method must be"):
            PrivateLinearRegression(method=method, **BOUNDS).fit(*problem())
