"""Noisy counts of residuals: what they count, and how much one record changes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fastmix.data import ArrayRows, RowMap
from fastmix.releases import RESIDUAL_COUNTS, SIGNED_COUNTS, Noise
from fastmix.releases.counts import RESIDUAL_EDGES
from fastmix.releases.sensitivity import count_sensitivity

EDGES = np.array([0.0, 0.1, 0.3, 0.5])


def rows(X, y):
    return ArrayRows(X, RowMap(row_norm=1.0), y)


def counts(X, y, theta, clip=1.0):
    """Counts with noise that is nothing beside them."""
    noise = Noise(np.random.default_rng(0))
    return noise.release(RESIDUAL_COUNTS, rows(X, y), theta=theta, clip=clip, sigma=1e-6)


def problem(seed, n=300, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1).max()
    return X, rng.uniform(-1, 1, n), rng.normal(size=d) * 0.3


@pytest.mark.parametrize("clip", [1.0, 0.3])
def test_counts_are_a_histogram(clip):
    X, y, theta = problem(0)
    size = np.minimum(np.abs(y - X @ theta), clip)
    expected = [
        ((size > clip * low) & (size <= clip * high)).sum()
        for low, high in pairwise(RESIDUAL_EDGES)
    ]
    np.testing.assert_allclose(counts(X, y, theta, clip), expected, atol=1e-4)
    assert sum(expected) == len(y)


def signed(X, y, theta, edges=EDGES):
    """Counts of both signs with noise that is nothing beside them."""
    noise = Noise(np.random.default_rng(0))
    return noise.release(SIGNED_COUNTS, rows(X, y), theta=theta, edges=edges, sigma=1e-6)


def test_signed_counts_are_two_histograms():
    X, y, theta = problem(0)
    r = y - X @ theta
    ends = [*EDGES[:-1], np.inf]
    expected = [[((s > a) & (s <= b)).sum() for a, b in pairwise(ends)] for s in (-r, r)]
    np.testing.assert_allclose(signed(X, y, theta), expected, atol=1e-4)
    assert np.sum(expected) == len(y)


@pytest.mark.parametrize("counts", [counts, signed])
@pytest.mark.parametrize("seed", range(20))
def test_one_record_changes_one_count_by_one(seed, counts):
    """Zero-out neighbours: the absent record has a zero row and a zero target."""
    X, y, theta = problem(seed)
    X2, y2 = X.copy(), y.copy()
    X2[seed], y2[seed] = 0.0, 0.0
    change = counts(X, y, theta) - counts(X2, y2, theta)
    assert np.linalg.norm(change) <= count_sensitivity() + 1e-4
    assert np.linalg.norm(change) >= 0.9


def test_noise_has_its_scale():
    """False alarm: below 1e-6, chi-square with 40 x 200 degrees of freedom."""
    X, y, theta = problem(1)
    noise = Noise(np.random.default_rng(1))
    exact = counts(X, y, theta)
    drawn = [
        noise.release(RESIDUAL_COUNTS, rows(X, y), theta=theta, clip=1.0, sigma=7.0) - exact
        for _ in range(200)
    ]
    assert np.std(drawn) == pytest.approx(7.0, rel=0.04)
    event = RESIDUAL_COUNTS.event(7.0)
    assert (event.sigma, event.sensitivity, event.count) == (7.0, 1.0, 1)


def test_wrong_input_is_refused():
    X, y, theta = problem(2)
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    noise = Noise(rng)
    for bad in ({"clip": 0.0}, {"sigma": 0.0}):
        with pytest.raises(ValueError, match="greater than 0"):
            noise.release(
                RESIDUAL_COUNTS, rows(X, y), theta=theta, **{"clip": 1.0, "sigma": 1.0, **bad}
            )
    with pytest.raises(ValueError, match="theta must"):
        noise.release(RESIDUAL_COUNTS, rows(X, y), theta=theta[:2], clip=1.0, sigma=1.0)
    for edges in (EDGES[::-1], EDGES[:1], EDGES - 0.1, np.full(3, np.nan)):
        with pytest.raises(ValueError, match="edges must"):
            noise.release(SIGNED_COUNTS, rows(X, y), theta=theta, edges=edges, sigma=1.0)
    assert rng.bit_generator.state == before
