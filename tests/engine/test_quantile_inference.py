"""Intervals of quantile regressions: what counts and curvatures tell, and coverage."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.special import ndtri

from fastmix import PrivateQuantileRegressor
from fastmix.engine import quantile_inference as module
from fastmix.engine.last_stage import SIZES

KNOWN = module.Known(1.0, 1.0, 1.0, 1.0, 0.03, 0.2, 1.0)


def histogram(residuals, spread=1.0):
    """Return signed counts of residuals, and their edges."""
    edges = SIZES * spread
    ends = np.append(edges[:-1], np.inf)
    sides = [np.histogram(side[side > 0], ends)[0] for side in (-residuals, residuals)]
    return *(each.astype(float) for each in sides), edges


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_counts_tell_the_slope_of_the_density(quantile):
    """A normal density has the logarithmic slope -z at z; bins are coarse, so within 0.1."""
    z = float(ndtri(quantile))
    errors = ndtri((np.arange(2_000_000) + 0.5) / 2_000_000)
    found = module.counted(*histogram(errors - z), 1.0, KNOWN)
    assert found.slope == pytest.approx(-z, abs=0.1)
    assert found.ratio == pytest.approx(1.0, abs=0.08)
    assert found.error < 0.01


def test_counts_tell_a_peak_that_the_kernel_levels():
    """Half of the errors are ten times as narrow as the other half."""
    half = ndtri((np.arange(500_000) + 0.5) / 500_000)
    errors = np.concatenate([half, 0.1 * half])
    found = module.counted(*histogram(errors), 1.0, KNOWN)
    density = (0.5 + 5.0) / math.sqrt(2.0 * math.pi)
    kernel = np.mean(0.25 / 0.2 / np.cosh(errors / 0.4) ** 2)
    assert found.ratio == pytest.approx(density / kernel, rel=0.1)


def test_the_kernel_is_as_wide_as_noise_asks_for():
    """Noise over the width is to be a share of the density, within public limits."""
    errors = ndtri((np.arange(20_000) + 0.5) / 20_000)
    below, above, edges = histogram(errors)
    density = 20_000 / math.sqrt(2.0 * math.pi)
    noises = module.HIDDEN * density * np.array([0.0, 0.1, 0.3, 2.0])
    found = [module.kernel_width(below + above, edges, noise, 1.0) for noise in noises]
    assert found[:2] == [module.KERNEL, module.KERNEL]
    assert found[2] == pytest.approx(0.3, rel=0.1)
    assert found[3] == module.WIDEST
    # Counts that noise has turned negative tell nothing.
    assert module.kernel_width(-above, edges, 1.0, 1.0) == module.WIDEST


def test_noise_hides_counts():
    found = module.counted(*histogram(np.linspace(-1, 1, 100)), 50.0, KNOWN)
    assert (found.ratio, found.error) == (1.0, 1.0)


def test_an_axis_without_curvature_is_not_identified():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    true = axes.T @ np.diag([0.02, 0.4, 1.0, 1.0, 1.0, 1.0]) @ axes
    noise = rng.normal(size=(6, 6)) * 0.05
    found = module.identified(true + (noise + noise.T) / 2.0, axes, 0.05, 0.0)
    assert found.frame.shape == (6, 5)
    assert np.abs(found.frame.T @ axes[0]).max() < 1e-12
    along = np.diag(axes[1:] @ found.frame @ found.curvature @ found.frame.T @ axes[1:].T)
    np.testing.assert_allclose(along, [0.4, 1.0, 1.0, 1.0, 1.0], atol=0.15)
    # Noise as large as the curvature hides everything.
    assert module.identified(true, axes, 0.5, 0.0).frame.shape == (6, 0)


def fits(law, quantile, epsilon, count, n=8_000):
    """Yield errors over standard errors of fits to fresh data, the intercept last."""
    bounds = {"bounds_X": (-1, 1), "bounds_y": (-4, 4)}
    for seed in range(count):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (n, 3))
        X[:, 2] = (X[:, 2] > 0.8) * 1.0  # one row in ten
        scale = 0.5 * (1.0 + 0.6 * X[:, 0]) if law == "growing" else 0.5
        y = X @ [1.0, -0.5, 0.2] + scale * rng.normal(size=n)
        z = 0.5 * float(ndtri(quantile))
        truth = np.array([1.0, -0.5, 0.2, z])
        truth[0] += 0.6 * z if law == "growing" else 0.0
        model = PrivateQuantileRegressor(
            quantile=quantile, epsilon=epsilon, inference=True, random_state=seed, **bounds
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        std = np.append(model.coef_std_, model.intercept_std_)
        yield (np.append(model.coef_, model.intercept_) - truth) / std


@pytest.mark.parametrize("law", ["even", "growing"])
@pytest.mark.parametrize("quantile", [0.1, 0.5])
def test_intervals_cover(law, quantile):
    """Of 160 intervals 95% cover; fewer than 88% or all of them have probability 1e-3 each."""
    errors = np.array([*fits(law, quantile, 3.0, 40)])
    assert (errors != 0.0).all()  # all are identified
    assert 0.88 <= np.mean(np.abs(errors) < 1.96) < 1.0


def test_one_column_too_rare_does_not_hide_the_others():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (8_000, 3))
    X[:, 2] = np.arange(8_000) < 3
    y = X @ [1.0, -0.5, 0.2] + 0.5 * rng.normal(size=8_000)
    model = PrivateQuantileRegressor(
        quantile=0.5,
        epsilon=1.0,
        inference=True,
        bounds_X=(-1, 1),
        bounds_y=(-4, 4),
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert model.coef_identified_[:2].all()
    assert not model.coef_identified_[2] or model.coef_std_[2] > 20 * model.coef_std_[0]
