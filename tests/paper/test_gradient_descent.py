"""DPGradientDescent against its definition, recomputed here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastmix import DPGradientDescent
from fastmix.datasets import make_sphere

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}


@pytest.mark.parametrize(
    ("epsilon", "steps", "sigma"),
    [(1.0, 1, 4.2246789), (1.0, 100, 42.246789), (10.0, 1, 0.5410868), (10.0, 16, 4 * 0.5410868)],
)
def test_noise_is_the_analytic_gaussian_over_all_steps(epsilon, steps, sigma, oracle):
    X, y = make_sphere(n=64, d=3, random_state=1)
    model = DPGradientDescent(epsilon=epsilon, delta=1e-6, n_steps=steps, **PAPER).fit(X, y)
    assert model.gradient_noise_ == pytest.approx(sigma, rel=1e-6)
    mu = math.sqrt(steps) / model.gradient_noise_
    assert oracle.gaussian_epsilon(mu, 1e-6) == pytest.approx(epsilon, rel=1e-6)
    assert oracle.gaussian_delta(mu, epsilon) <= 1e-6
    assert model.privacy_.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert model.privacy_.epsilon <= epsilon


@pytest.mark.parametrize(("clip", "rate"), [(None, 0.25), (0.2, 1.0)])
def test_the_method_line_by_line(clip, rate, float_noise):
    X, y = make_sphere(n=300, d=3, random_state=2)
    X = X * (1.0 - 1e-12)
    model = DPGradientDescent(
        epsilon=2.0,
        delta=1e-6,
        n_steps=17,
        residual_clip=clip,
        learning_rate=rate,
        random_state=4,
        **PAPER,
    ).fit(X, y)
    rng = np.random.default_rng(4)
    c = clip or 1.0
    theta = np.zeros(3)
    for _ in range(17):
        g = X.T @ np.clip(y - X @ theta, -c, c) + model.gradient_noise_ * rng.standard_normal(3)
        theta = theta + rate * g / 300
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::fastmix.errors.WeakPrivacyWarning")
def test_it_takes_a_hundred_steps_by_default_and_reaches_the_answer():
    X, y = make_sphere(n=2**14, d=4, random_state=3)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    model = DPGradientDescent(epsilon=1e3, random_state=0, **PAPER).fit(X, y)
    assert model.n_steps_ == 100
    assert np.linalg.norm(model.coef_ - best) < 0.01 * np.linalg.norm(best)
    few = DPGradientDescent(epsilon=1e3, n_steps=4, random_state=0, **PAPER).fit(X, y)
    assert np.linalg.norm(few.coef_ - best) > 0.5 * np.linalg.norm(best)
