"""Objective perturbation as a method: its plan, its ridge, its solver, its forecast."""

import math
import warnings

import numpy as np
import pytest

import fastmix
from fastmix import ObjectivePerturbation
from fastmix.accounting import (
    GaussianEvent,
    ObjectiveEvent,
    gaussian_delta,
    objective_delta,
    objective_mu,
)
from fastmix.datasets import make_sphere
from fastmix.engine.objective import faster_solver

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6])
def test_the_plan_spends_all_of_the_budget(epsilon, delta):
    """Recomputed from the events by the formula of the proof: within the target, nearly all."""
    objective, gaussian = ObjectivePerturbation(epsilon=epsilon, delta=delta).account(500, 3).events
    assert isinstance(objective, ObjectiveEvent)
    assert isinstance(gaussian, GaussianEvent)
    mu_g = gaussian.sensitivity / gaussian.sigma
    mu_t = math.hypot(objective.mu, mu_g)
    both = (
        gaussian_delta(1.0, epsilon, mu_t) + gaussian_delta(1.0, epsilon - objective.eps_c, mu_g),
        2.0 * gaussian_delta(1.0, epsilon, mu_t),
    )
    assert max(both) <= delta
    assert objective_delta(epsilon, objective.mu, objective.eps_c, mu_g) == max(both)
    assert mu_t >= 0.9999 * objective_mu(epsilon, delta)


@pytest.mark.parametrize("epsilon", [1e-6, 700.0, 1e3, 1e6])
def test_the_ends_of_the_range_of_epsilon(epsilon):
    X, y = make_sphere(n=64, d=3, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ridge in (None, 1e7, 1e100):
            model = ObjectivePerturbation(epsilon=epsilon, delta=1e-6, ridge=ridge, **PAPER)
            assert np.isfinite(model.fit(X, y).coef_).all()


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0, 30.0])
def test_every_ridge_that_is_planned_can_be_fitted(epsilon):
    """Next to the least ridge rounding decides: the same before and after a charge."""
    (objective, _) = ObjectivePerturbation(epsilon=epsilon, delta=1e-6).account(64, 3).events
    X, y = make_sphere(n=64, d=3, random_state=1)
    ridge = 1.0 / math.expm1(objective.eps_c) * (1.0 - 4e-16)
    refused = 0
    for _ in range(8):
        budget = fastmix.BudgetAccountant(1e3, 1e-3)
        model = ObjectivePerturbation(
            epsilon=epsilon, delta=1e-6, ridge=ridge, accountant=budget, **PAPER
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.fit(X, y)
            except ValueError:
                refused += 1
                assert len(budget) == 0
        ridge = math.nextafter(ridge, math.inf)
    assert refused < 8


def test_noise_is_that_of_one_gaussian_release():
    """The objective gets all of mu but a quarter of a percent of its square."""
    objective, _ = ObjectivePerturbation(epsilon=1.0, delta=1e-6).account(500, 3).events
    assert objective.mu == pytest.approx(math.sqrt(0.9975) * objective_mu(1.0, 1e-6), rel=1e-6)


def test_a_ridge_below_what_privacy_needs_is_refused_before_a_charge():
    X, y = make_sphere(n=64, d=3, random_state=1)
    budget = fastmix.BudgetAccountant(10.0, 1e-3)
    model = ObjectivePerturbation(epsilon=1.0, delta=1e-6, ridge=0.5, accountant=budget, **PAPER)
    with pytest.raises(ValueError, match="ridge must be at least"):
        model.fit(X, y)
    assert len(budget) == 0
    model.set_params(ridge=0.7).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ridge": 0.0}, "ridge must be"),
        ({"ridge": 9e-14, "epsilon": 1e3}, "ridge must be at least 1e-13"),
        ({"ridge": math.nan}, "ridge must be"),
        ({"solver": "magic"}, "solver must be"),
        ({"residual_clip": -1.0}, "residual_clip must be"),
        ({"inference": True}, "inference must be False"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    X, y = make_sphere(n=64, d=3, random_state=1)
    with pytest.raises(ValueError, match=message):
        ObjectivePerturbation(delta=1e-6, **parameters, **PAPER).fit(X, y)


def test_noise_of_the_coefficients_is_that_of_the_forecast():
    """Risk of 20 fits on a flat spectrum: within 25% of noise and bias of the forecast."""
    n, d, epsilon = 2**14, 6, 1.0
    X, y = make_sphere(n, d, random_state=0)
    gram = X.T @ X
    best = np.linalg.solve(gram, X.T @ y)
    risks = []
    for seed in range(20):
        gap = ObjectivePerturbation(epsilon=epsilon, random_state=seed, **PAPER).fit(X, y).coef_
        risks.append((gap - best) @ gram @ (gap - best) / n)
    values, vectors = np.linalg.eigh(gram)
    model = ObjectivePerturbation(epsilon=epsilon, fit_intercept=False)
    method, plan = model._planned(n, d)
    expected = method.forecast(plan, n, values, (vectors.T @ best) ** 2)
    assert np.mean(risks) == pytest.approx(expected.excess_risk, rel=0.25)


def test_a_smaller_clipping_level_means_less_noise():
    X, y = make_sphere(n=2**14, d=6, random_state=0)
    best = np.linalg.lstsq(X, y, rcond=None)[0]

    def gap(clip):
        fits = [
            ObjectivePerturbation(epsilon=0.3, residual_clip=clip, random_state=seed, **PAPER)
            .fit(X, y)
            .coef_
            for seed in range(5)
        ]
        return np.mean([np.linalg.norm(coef - best) for coef in fits])

    assert gap(0.6) < 0.8 * gap(1.2)


def test_the_solver_is_chosen_by_the_shape():
    assert faster_solver(2**17, 90) == "gram"
    assert faster_solver(2**17, 2048) == "sketch"
    assert faster_solver(2048, 2048) == "gram"
    model = ObjectivePerturbation(delta=1e-6)
    assert model._planned(10**6, 3000)[1].preconditioner == "sketch"
    assert model.set_params(solver="gram")._planned(10**6, 3000)[1].preconditioner == "gram"
