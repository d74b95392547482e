"""IHM against its published set-up and Appendix H, recomputed here."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fastmix import IHM
from fastmix.data import ArrayRows, RowMap
from fastmix.datasets import make_sphere
from fastmix.engine import Draws, Sizes, Target
from fastmix.paper import IterativeHessianMixing
from fastmix.releases import Noise

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}

#: epsilon, delta, n, d, T
GRID = [
    (1.0, 1e-6, 64, 3, 4),
    pytest.param(0.1, None, 50, 2, 1, marks=pytest.mark.slow),
    (0.3, 1e-9, 128, 5, 3),
    pytest.param(10.0, 1e-3, 200, 40, 4, marks=pytest.mark.slow),
    (1e-4, 1e-6, 16, 2, 2),
    pytest.param(100.0, 1e-8, 64, 3, 4, marks=pytest.mark.slow),
    (1.0, 0.1, 1, 1, 1),
]


@pytest.mark.parametrize(("epsilon", "delta", "n", "d", "steps"), GRID)
@pytest.mark.filterwarnings("ignore::fastmix.errors.WeakPrivacyWarning")
def test_noise_levels_and_account(epsilon, delta, n, d, steps, oracle):
    X, y = make_sphere(n=n, d=d, random_state=1)
    model = IHM(
        variant="paper", epsilon=epsilon, delta=delta, n_steps=steps, random_state=0, **PAPER
    ).fit(X, y)
    delta = 1.0 / max(n, 2) ** 2 if delta is None else delta
    varrho = delta / 10
    k = math.ceil(6 * max(d, math.log(4 * steps / varrho)))
    plan = model.privacy_.parameters
    assert plan["k"] == k
    # Half of epsilon for sketches with the eigenvalue, half for gradients, delta in quarters.
    gamma = oracle.ihm_gamma(epsilon / 2, delta / 4, k, k * steps)
    sigma = math.sqrt(steps) * oracle.gaussian_sigma(epsilon / 2, delta / 4)
    assert model.gamma_ == pytest.approx(gamma, rel=2e-7)
    assert model.gradient_noise_ == pytest.approx(sigma, rel=2e-7)
    assert plan["omega"] == pytest.approx(model.gamma_ / math.sqrt(k), rel=1e-14)
    tau = math.sqrt(2 * math.log(max(2 / delta, 2 / varrho)))
    assert plan["tau"] == pytest.approx(tau, rel=1e-14)

    spent = oracle.sketch_epsilon(oracle.phi_gauss, model.gamma_, k * steps, delta / 4)
    spent += oracle.gaussian_epsilon(1.0 / plan["omega"], delta / 4)
    spent += oracle.gaussian_epsilon(math.sqrt(steps) / model.gradient_noise_, delta / 4)
    assert spent == pytest.approx(epsilon, rel=1e-6)
    assert spent <= epsilon * (1 + 1e-9)
    assert stats.norm.sf(plan["tau"]) <= delta / 4

    assert model.privacy_.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert model.privacy_.epsilon <= epsilon
    assert model.privacy_.delta == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize("varrho", [1e-12, 1e-6, 0.5, 0.999])
def test_the_tail_stays_inside_delta_whatever_the_failure_probability(varrho):
    X, y = make_sphere(n=64, d=3, random_state=1)
    model = IHM(
        variant="paper",
        epsilon=1.0, delta=1e-6, failure_probability=varrho, random_state=0, **PAPER
    ).fit(X, y)  # fmt: skip
    assert stats.norm.sf(model.privacy_.parameters["tau"]) <= 1e-6 / 4
    assert model.privacy_.epsilon <= 1.0
    assert model.privacy_.delta == pytest.approx(1e-6, rel=1e-12)


def ihm(X, y, *, k, gamma, tau, s, sigma, clip, steps, shrinkage, seed):
    """Iterative Hessian mixing as published; only the order of the draws is the library's."""
    rng = np.random.default_rng(seed)
    n, d = X.shape
    lam = max(0.0, np.linalg.eigvalsh(X.T @ X)[0] - s * (tau - rng.standard_normal()))
    eta = math.sqrt(max(0.0, gamma - lam))
    mixed = []
    for _ in range(steps):
        xi = rng.standard_normal((k, d))
        mixed.append(rng.standard_normal((k, n)) @ X + eta * xi)
    theta = np.zeros(d)
    for X_t in mixed:
        zeta = rng.standard_normal(d)
        g = X.T @ np.clip(y - X @ theta, -clip, clip) + sigma * zeta
        g -= eta**2 * theta if shrinkage else 0.0
        theta = theta + np.linalg.solve(X_t.T @ X_t / k, g)
    return theta, eta


@pytest.mark.parametrize("shrinkage", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "clip", "epsilon", "steps"),
    [(300, 3, None, 2.0, 4), (100, 2, 0.3, 1.0, 3), (1000, 4, None, 300.0, 5)],
)
@pytest.mark.filterwarnings("ignore::fastmix.errors.WeakPrivacyWarning")
def test_as_written_it_is_the_published_iteration(
    n, d, clip, epsilon, steps, shrinkage, float_noise
):
    X, y = make_sphere(n=n, d=d, random_state=2)
    X = X * (1.0 - 1e-12)
    model = IHM(
        variant="paper",
        epsilon=epsilon,
        delta=1e-5,
        n_steps=steps,
        residual_clip=clip,
        shrinkage=shrinkage,
        literal=True,
        random_state=12,
        **PAPER,
    ).fit(X, y)
    plan = model.privacy_.parameters
    theta, eta = ihm(
        X,
        y,
        k=plan["k"],
        gamma=model.gamma_,
        tau=plan["tau"],
        s=plan["omega"],
        sigma=model.gradient_noise_,
        clip=clip or 1.0,
        steps=steps,
        shrinkage=shrinkage,
        seed=12,
    )
    # Released values lie on a grid of about 1e-6 of their noise.
    assert model.eta_ == pytest.approx(eta, rel=1e-5)
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-3, atol=1e-5)


def test_both_ways_of_drawing_have_one_distribution():
    """Kolmogorov-Smirnov on three coordinates and eta, 400 draws each; false alarms below 4e-4."""
    X, y = make_sphere(n=48, d=3, random_state=3)
    rows = ArrayRows(X, RowMap(1.0), y)
    draws = {}
    for literal, seed in ((False, 1), (True, 2)):
        method = IterativeHessianMixing(variant="paper", n_steps=2, literal=literal)
        plan = method.plan(Sizes(48, 3), Target(15.0, 1e-3, 1e-4))
        rng = np.random.default_rng(seed)
        source = Draws(Noise(rng), rng)
        solutions = [method.solve(rows, plan, 1.0, source) for _ in range(400)]
        draws[literal] = np.array([[*s.theta, s.eta] for s in solutions])
    for short, literal in zip(draws[False].T, draws[True].T, strict=True):
        assert np.ptp(short) > 0.0
        assert stats.ks_2samp(short, literal).pvalue > 1e-4


@pytest.mark.parametrize("k", [1, 2, 300])
def test_a_given_size_is_paid_for(k, oracle):
    X, y = make_sphere(n=64, d=3, random_state=1)
    model = IHM(
        variant="paper",
        epsilon=1.0, delta=1e-6, gaussian_size=k, n_steps=2, random_state=0, **PAPER
    ).fit(X, y)  # fmt: skip
    assert model.gamma_ == pytest.approx(oracle.ihm_gamma(0.5, 2.5e-7, k, 2 * k), rel=2e-7)
    assert model.privacy_.epsilon <= 1.0
    assert np.isfinite(model.coef_).all()
