"""LinearMixing: one private sketch of (X, y), recomputed here."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fastmix import LinearMixing
from fastmix.data import ArrayRows, AugmentedRows, RowMap
from fastmix.datasets import make_sphere
from fastmix.engine import Draws, Sizes, Target
from fastmix.paper import SketchAndSolve
from fastmix.releases import Noise

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}


def bisect(cost, target, low, high):
    for _ in range(45):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cost(middle) > target else (low, middle)
    return high


@pytest.mark.parametrize(("epsilon", "d"), [(1.0, 3), (0.1, 2), (10.0, 30)])
def test_gaussian_noise_levels_and_account(epsilon, d, oracle):
    delta = 1e-6
    X, y = make_sphere(n=64, d=d, random_state=1)
    model = LinearMixing(
        epsilon=epsilon, delta=delta, calibration="published", random_state=0, **PAPER
    ).fit(X, y)
    plan = model.privacy_.parameters
    k = math.ceil(2.5 * max(d, math.log(2 / (delta / 10))))
    assert plan["k"] == k

    def cost(g):
        sketch = oracle.sketch_epsilon(oracle.phi_gauss, g, k, delta / 3)
        return sketch + oracle.gaussian_epsilon(math.sqrt(k) / g, delta / 3)

    assert model.gamma_ == pytest.approx(bisect(cost, epsilon, 1.0 + 1e-9, 1e6), rel=5e-6)
    assert cost(model.gamma_) <= epsilon * (1 + 1e-9)
    assert plan["omega"] == pytest.approx(model.gamma_ / math.sqrt(k), rel=1e-14)
    assert stats.norm.sf(plan["tau"]) == pytest.approx(delta / 3, rel=1e-9)
    assert model.privacy_.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert model.privacy_.epsilon <= epsilon
    assert model.privacy_.delta == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "d"), [(1.0, 3), (0.1, 2), (10.0, 30)])
def test_fast_noise_levels_and_account(epsilon, d, oracle):
    delta = 1e-6
    X, y = make_sphere(n=64, d=d, random_state=1)
    model = LinearMixing(
        epsilon=epsilon, delta=delta, fast=True, calibration="published", random_state=0, **PAPER
    )
    model.fit(X, y)
    plan = model.privacy_.parameters
    k = math.ceil(2.5 * max(d, math.log(2 / (delta / 10))))
    assert (plan["k"], plan["k2"]) == (k, 64)
    assert plan["omega"] == pytest.approx(3 / epsilon, rel=1e-14)
    assert plan["tau"] == pytest.approx(math.log(3 / (2 * delta)), rel=1e-11)
    assert model.gamma_ == pytest.approx(oracle.fast_gamma(epsilon / 3, delta / 3, k), rel=5e-6)
    spent = 2 / plan["omega"] + oracle.sketch_epsilon(oracle.phi_bar, model.gamma_, k, delta / 3)
    assert spent <= epsilon * (1 + 1e-9)
    assert model.privacy_.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert model.privacy_.epsilon <= epsilon
    assert model.privacy_.delta == pytest.approx(delta, rel=1e-12)


def test_target_and_features_share_one_bound():
    X, _ = make_sphere(n=64, d=3, random_state=1)
    joint = AugmentedRows(ArrayRows(X, RowMap(1.0), np.full(64, 1e9)))
    assert joint.bound == pytest.approx(math.sqrt(2.0), rel=1e-15)
    for A, _ in joint.blocks():
        assert A.shape[1] == 4
        assert np.linalg.norm(A, axis=1).max() <= joint.bound


@pytest.mark.parametrize("epsilon", [1.0, 50.0, 1000.0])
@pytest.mark.filterwarnings("ignore::fastmix.errors.WeakPrivacyWarning")
def test_as_written_the_gaussian_sketch_is_the_mechanism(epsilon, float_noise):
    X, y = make_sphere(n=200, d=3, random_state=2)
    X = X * (1.0 - 1e-12)
    model = LinearMixing(
        epsilon=epsilon, delta=1e-6, literal=True, random_state=5, **PAPER
    ).fit(X, y)  # fmt: skip
    plan = model.privacy_.parameters
    rng = np.random.default_rng(5)
    A = np.column_stack([X, y])
    s = 2.0 * plan["omega"]  # the eigenvalue of (X, y) moves by C_X^2 + C_Y^2 = 2
    lam = max(0.0, np.linalg.eigvalsh(A.T @ A)[0] - s * (plan["tau"] - rng.standard_normal()))
    eta = math.sqrt(max(0.0, 2.0 * model.gamma_ - lam))
    xi = rng.standard_normal((plan["k"], 4))
    B = rng.standard_normal((plan["k"], 200)) @ A + eta * xi
    theta = np.linalg.lstsq(B[:, :3], B[:, 3], rcond=None)[0]
    assert model.eta_ == pytest.approx(eta, rel=1e-5)
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("epsilon", [1.0, 300.0])
@pytest.mark.filterwarnings("ignore::fastmix.errors.WeakPrivacyWarning")
def test_as_written_the_fast_sketch_is_the_mechanism(epsilon, oracle, float_noise):
    X, y = make_sphere(n=128, d=3, random_state=2)
    X = X * (1.0 - 1e-12)
    model = LinearMixing(
        epsilon=epsilon,
        delta=1e-6,
        fast=True,
        sketch_size=50,
        calibration="published",
        literal=True,
        random_state=6,
        **PAPER,
    ).fit(X, y)
    plan = model.privacy_.parameters
    rng = np.random.default_rng(6)
    A = np.column_stack([X, y])
    C = math.sqrt(2.0)
    S = oracle.srht(rng, 50, 128)
    Z = S @ A
    m_hat = np.linalg.norm(Z.T @ S - A.T, axis=0).max()
    gram = np.abs(S.T @ S)
    coherence = (gram - np.diag(np.diag(gram))).max()
    omega, tau = plan["omega"], plan["tau"]
    m = max(0.0, m_hat + omega * C * coherence * (tau + rng.laplace()))
    lam = np.linalg.eigvalsh(Z.T @ Z)[0] - omega * C * (C + 2 * m) * (tau - rng.laplace())
    eta = math.sqrt(max(0.0, model.gamma_ * C * (C + 2 * m) - max(0.0, lam)))
    xi = rng.standard_normal((plan["k"], 4))
    B = rng.standard_normal((plan["k"], 50)) @ Z + eta * xi
    theta = np.linalg.lstsq(B[:, :3], B[:, 3], rcond=None)[0]
    assert model.eta_ == pytest.approx(eta, rel=1e-5)
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("fast", [False, True])
def test_both_ways_of_drawing_have_one_distribution(fast):
    """Kolmogorov-Smirnov on two coordinates and eta, 300 draws each; false alarms below 3e-4."""
    X, y = make_sphere(n=40, d=2, random_state=3)
    rows = ArrayRows(X, RowMap(1.0), y)
    draws = {}
    for literal, seed in ((False, 1), (True, 2)):
        method = SketchAndSolve(fast=fast, sketch_size=24 if fast else None, literal=literal)
        plan = method.plan(Sizes(40, 2), Target(20.0, 1e-6, 1e-7))
        rng = np.random.default_rng(seed)
        source = Draws(Noise(rng), rng)
        solutions = [method.solve(rows, plan, 1.0, source) for _ in range(300)]
        draws[literal] = np.array([[*s.theta, s.eta] for s in solutions])
    assert (np.ptp(draws[False][:, :2], axis=0) > 0.0).all()
    for short, literal in zip(draws[False].T, draws[True].T, strict=True):
        assert stats.ks_2samp(short, literal).pvalue > 1e-4


@pytest.mark.parametrize(("fast", "n"), [(False, 2**12), (True, 2**14)])
@pytest.mark.filterwarnings("ignore::fastmix.errors.WeakPrivacyWarning")
def test_error_falls_with_epsilon(fast, n):
    X, y = make_sphere(n=n, d=4, random_state=4)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    options = {"delta": 1e-6, "fast": fast, "gaussian_size": 400, **PAPER}

    def error(epsilon):
        fits = [
            LinearMixing(epsilon=epsilon, random_state=s, **options).fit(X, y) for s in range(4)
        ]
        return np.mean([np.linalg.norm(fit.coef_ - best) for fit in fits])

    errors = [error(epsilon) for epsilon in (0.1, 1.0, 100.0)]
    assert errors[0] > 1.5 * errors[1] > 2.0 * errors[2]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_joint_account_is_spent_to_the_end_and_asks_for_less_noise(fast, epsilon):
    X, y = make_sphere(n=2**12, d=4, random_state=0)
    options = {"epsilon": epsilon, "fast": fast, "random_state": 0, **PAPER}
    joint = LinearMixing(**options).fit(X, y)
    published = LinearMixing(calibration="published", **options).fit(X, y)
    assert 0.999999 * epsilon <= joint.privacy_.epsilon <= epsilon
    assert len(joint.privacy_.parts) == 1
    assert joint.gamma_ < 0.7 * published.gamma_
