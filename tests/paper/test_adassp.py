"""AdaSSP against the published formulas, recomputed here."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from fastmix import AdaSSP, BudgetAccountant, CalibrationError
from fastmix.datasets import make_sphere

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}
PUBLISHED = {"variant": "paper", "calibration": "published", **PAPER}


def profile(sigma, epsilon, releases=3):
    """Delta of three Gaussian releases of sensitivity 1 each: one of sensitivity sqrt(3)."""
    mu = math.sqrt(releases) / sigma
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("epsilon", "spent"), [(1.0, 0.596), (10.0, 7.57)])
def test_published_levels_spend_less_than_they_claim(epsilon, spent):
    X, y = make_sphere(n=64, d=3, random_state=1)
    model = AdaSSP(
        epsilon=epsilon, delta=1e-6, variant="paper", calibration="published", **PAPER
    ).fit(X, y)
    assert model.privacy_.epsilon == pytest.approx(spent, rel=1e-3)
    assert model.privacy_.delta == 1e-6
    sigma = math.sqrt(math.log(6 / 1e-6)) / (epsilon / 3)
    assert model.privacy_.parameters["sigma"] == pytest.approx(sigma, rel=1e-14)
    assert profile(sigma, model.privacy_.epsilon) == pytest.approx(1e-6, rel=1e-5)


@pytest.mark.parametrize("epsilon", [50.0, 100.0])
def test_published_levels_are_refused_where_they_overspend(epsilon):
    X, y = make_sphere(n=64, d=3, random_state=1)
    sigma = math.sqrt(math.log(6 / 1e-6)) / (epsilon / 3)
    assert profile(sigma, epsilon) > 1e-6  # the refusal is right
    budget = BudgetAccountant(1e3, 1e-3)
    model = AdaSSP(
        epsilon=epsilon, delta=1e-6, accountant=budget, **PUBLISHED
    )  # fmt: skip
    with pytest.raises(CalibrationError, match="Use calibration='joint'"):
        model.fit(X, y)
    assert len(budget) == 0


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize(("variant", "releases"), [("paper", 3), ("tuned", 2)])
@pytest.mark.filterwarnings("ignore::fastmix.errors.WeakPrivacyWarning")
def test_joint_calibration_is_exact(epsilon, variant, releases):
    X, y = make_sphere(n=64, d=3, random_state=1)
    model = AdaSSP(epsilon=epsilon, delta=1e-6, variant=variant, **PAPER).fit(X, y)
    sigma = model.privacy_.parameters["sigma"]
    if epsilon < 50.0:  # math.exp and norm.cdf are exact enough there
        assert profile(sigma, epsilon, releases) <= 1e-6 * (1 + 1e-8)
        assert profile(sigma * (1 - 1e-6), epsilon, releases) > 1e-6
    assert model.privacy_.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert model.privacy_.epsilon <= epsilon
    (event,) = model.privacy_.events
    assert event.count * (event.sensitivity / event.sigma) ** 2 == pytest.approx(
        releases / sigma**2
    )


@pytest.mark.parametrize("calibration", ["published", "joint"])
@pytest.mark.parametrize(("n", "epsilon"), [(300, 1.0), (20_000, 8.0)])
def test_the_method_line_by_line(n, epsilon, calibration, float_noise):
    d, delta, varrho = 4, 1e-6, 1e-4
    X, y = make_sphere(n=n, d=d, random_state=2)
    X = X * (1.0 - 1e-12)
    model = AdaSSP(
        epsilon=epsilon,
        delta=delta,
        failure_probability=varrho,
        variant="paper",
        calibration=calibration,
        random_state=3,
        **PAPER,
    ).fit(X, y)
    rng = np.random.default_rng(3)
    if calibration == "published":
        s = math.sqrt(math.log(6 / delta)) / (epsilon / 3)
        shift = math.log(6 / delta) / (epsilon / 3)
        level = math.sqrt(d * math.log(6 / delta) * math.log(2 * d**2 / varrho)) / (epsilon / 3)
    else:
        s = model.privacy_.parameters["sigma"]
        shift = s * math.sqrt(math.log(6 / delta))
        level = s * math.sqrt(d * math.log(2 * d**2 / varrho))
    noise = np.zeros((d, d))
    for i in range(d):
        for j in range(i, d):
            noise[i, j] = noise[j, i] = rng.standard_normal()
    moment = X.T @ y + s * rng.standard_normal(d)
    lam = np.linalg.eigvalsh(X.T @ X)[0] + s * rng.standard_normal() - shift
    ridge = max(0.0, level - max(0.0, lam))
    theta = np.linalg.solve(X.T @ X + s * noise + ridge * np.eye(d), moment)
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-4, atol=1e-6)
    assert model.gamma_ is None
    assert model.eta_ is None
    assert model.gradient_noise_ is None


def test_joint_beats_published():
    X, y = make_sphere(n=2**14, d=8, random_state=4)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    error = {
        calibration: np.mean(
            [
                np.linalg.norm(
                    AdaSSP(
                        variant="paper",
                        epsilon=1.0,
                        calibration=calibration,
                        random_state=seed,
                        **PAPER,
                    )
                    .fit(X, y)
                    .coef_
                    - best
                )
                for seed in range(20)
            ]
        )
        for calibration in ("joint", "published")
    }
    assert error["joint"] < 0.8 * error["published"]


@pytest.mark.parametrize(("n", "epsilon"), [(100, 1.0), (20_000, 8.0)])
def test_the_tuned_variant_line_by_line(n, epsilon, float_noise):
    """Half the variance off the diagonal, and a ridge from the noisy matrix."""
    d = 4
    X, y = make_sphere(n=n, d=d, random_state=2)
    X = X * (1.0 - 1e-12)
    model = AdaSSP(epsilon=epsilon, delta=1e-6, random_state=3, **PAPER).fit(X, y)
    rng, s = np.random.default_rng(3), model.privacy_.parameters["sigma"]
    drawn = rng.standard_normal(d * (d + 1) // 2)
    noise = np.diag(drawn[:d])
    for value, i, j in zip(drawn[d:], *np.triu_indices(d, 1), strict=True):
        noise[i, j] = noise[j, i] = value / math.sqrt(2.0)
    gram, moment = X.T @ X + s * noise, X.T @ y + s * rng.standard_normal(d)
    ridge = max(0.0, 2.0 * s * math.sqrt(2.0 * d) - np.linalg.eigvalsh(gram)[0])
    assert (ridge > 0.0) == (n == 100)
    theta = np.linalg.solve(gram + ridge * np.eye(d), moment)
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-4, atol=1e-6)


def test_the_tuned_variant_beats_the_paper_s():
    X, y = make_sphere(n=2**12, d=8, random_state=4)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    paper, tuned = (
        np.mean(
            [
                np.linalg.norm(
                    AdaSSP(epsilon=1.0, variant=variant, random_state=seed, **PAPER).fit(X, y).coef_
                    - best
                )
                for seed in range(10)
            ]
        )
        for variant in ("paper", "tuned")
    )
    assert tuned < 0.9 * paper


def test_parameters_of_the_paper_s_variant_are_refused_by_the_other():
    X, y = make_sphere(n=64, d=3, random_state=1)
    with pytest.raises(ValueError, match="calibration must be 'joint', because adassp"):
        AdaSSP(calibration="published", **PAPER).fit(X, y)
