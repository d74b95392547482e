"""Standard errors from released values: the spread of an iteration, and of residuals."""

from __future__ import annotations

import numpy as np
import pytest

from fastmix.engine.inference import NewtonTrace, StatisticsTrace, residual_variance
from fastmix.releases import PrivateGram
from fastmix.releases.counts import RESIDUAL_EDGES


def test_newton_recursion_against_simulation():
    """The covariance of the noise is that of the iteration itself, for a known Gram matrix.

    False alarm: below 1e-4, 4000 simulated runs.
    """
    rng = np.random.default_rng(0)
    d, rows = 3, 200_000  # so many rows that the sketch pins down the Gram matrix
    G = np.diag([30.0, 10.0, 5.0])
    sigmas, scale = (3.0, 2.0, 1.0), 0.8 * rows
    theta = np.array([0.5, -0.2, 0.1])
    sketches = (PrivateGram((np.sqrt(rows * G),)),)
    trace = NewtonTrace(sketches, sketches, rows, 0.0, (scale,) * 3, sigmas)
    spread = trace.spread(theta)
    runs = np.zeros((4000, d))
    for sigma in sigmas:
        noise = sigma * rng.standard_normal(runs.shape)
        runs = runs + scale * np.linalg.solve(rows * G, (G @ (theta - runs).T + noise.T)).T
    # theta is where the iteration goes to; spread starts from what it has reached.
    missing = theta - runs.mean(axis=0)
    covariance = np.cov(runs.T)
    np.testing.assert_allclose(np.diag(spread.noise), np.diag(covariance) + missing**2, rtol=0.12)
    reached = 1.0 - 0.2**3
    np.testing.assert_allclose(np.diag(spread.sampling), reached**2 / np.diag(G), rtol=0.03)


def test_what_is_not_reached_is_as_large_as_assumed():
    """The public size, where a ridge hides everything; nothing, where it does nothing."""
    theta = np.array([0.01, -0.02])
    hidden, free = (
        StatisticsTrace(np.diag([1e4, gram]), 1e-3, 10.0).spread(theta, size=3.0).noise
        for gram in (1e-9, 1e9)
    )
    assert hidden[1, 1] == pytest.approx(9.0, rel=0.01)
    assert free[1, 1] < 1e-6


def test_residual_variance():
    """Counts of normal errors give their variance; no counts give the clipping level."""
    rng = np.random.default_rng(0)
    size = np.abs(0.05 * rng.standard_normal(5000))
    exact, _ = np.histogram(size, RESIDUAL_EDGES)
    common = {"clip": 1.0, "n": 5000, "d": 4}
    noisy = exact + 20.0 * rng.standard_normal(len(exact))
    found = residual_variance(noisy, 20.0, **common, excess=0.0)
    assert np.sqrt(found) == pytest.approx(0.05, rel=0.15)
    less = residual_variance(noisy, 20.0, **common, excess=1.0)
    assert less == pytest.approx(found - 1.0 / 4996)
    assert residual_variance(np.zeros(40), 20.0, **common, excess=0.0) == 1.0
    assert residual_variance(noisy, 20.0, **common, excess=1e9) > 0.0
