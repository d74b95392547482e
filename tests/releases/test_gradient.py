"""The clipped residual gradient with Gaussian noise (false-alarm rate below 1e-5 over seeds)."""

import math

import numpy as np
import pytest
from scipy import stats

from fastmix.accounting import GaussianEvent, RdpAccountant, gaussian_epsilon
from fastmix.data import ArrayRows, RowMap
from fastmix.releases import GRADIENT, Noise


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    return ArrayRows(X, RowMap(1.5), rng.standard_normal(20))


def expected(rows, theta, clip):
    A, y = (np.concatenate(parts) for parts in zip(*rows.blocks(), strict=True))
    return sum(
        (max(-clip, min(clip, y_i - a @ theta)) * a for a, y_i in zip(A, y, strict=True)),
        np.zeros(A.shape[1]),
    )


@pytest.mark.parametrize("clip", [0.1, 1.0, 100.0])
def test_mean_and_noise(rows, clip):
    """What is left after the exact gradient is independent N(0, (sigma clip bound)^2)."""
    theta, sigma, n = np.array([0.4, -2.0, 1.0]), 2.5, 8000
    secret = Noise(np.random.default_rng(int(clip)))
    draws = np.array(
        [secret.release(GRADIENT, rows, theta=theta, clip=clip, sigma=sigma) for _ in range(n)]
    )
    noise = (draws - expected(rows, theta, clip)) / (sigma * clip * 1.5)
    for column in noise.T:
        assert stats.kstest(column, stats.norm.cdf).pvalue > 1e-6
        assert stats.kstest(1.2 * column, stats.norm.cdf).pvalue < 1e-6
    correlation = np.corrcoef(noise.T) - np.eye(3)
    assert np.abs(correlation).max() < 6.0 / math.sqrt(n)


def test_huge_coefficients_cannot_exceed_the_clip(rows):
    """However far theta is off, the gradient is a sum of n terms of length clip * bound."""
    noise = Noise(np.random.default_rng(0))
    for theta in (np.full(3, 1e6), np.full(3, 1e99), np.array([1e100, 0.0, 0.0])):
        out = noise.release(GRADIENT, rows, theta=theta, clip=0.5, sigma=1e-9)
        assert np.linalg.norm(out) <= 20 * 0.5 * 1.5 * (1 + 1e-6)
        assert out == pytest.approx(expected(rows, theta, 0.5), abs=1e-7)


def test_event():
    events = GRADIENT.events([3.0, 2.0, 3.0, 3.0])
    assert events == [GaussianEvent(3.0, 1.0, 3), GaussianEvent(2.0, 1.0, 1)]
    cost = RdpAccountant(events).get_epsilon(1e-5)
    mu = math.sqrt(3.0 / 9.0 + 1.0 / 4.0)
    assert cost == pytest.approx(gaussian_epsilon(1.0, 1e-5, mu), rel=1e-9)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"clip": 0.0}, ValueError),
        ({"clip": -1.0}, ValueError),
        ({"clip": math.nan}, ValueError),
        ({"clip": math.inf}, ValueError),
        ({"clip": None}, TypeError),
        ({"sigma": 0.0}, ValueError),
        ({"sigma": -1.0}, ValueError),
        ({"sigma": math.nan}, ValueError),
        ({"sigma": "1"}, TypeError),
    ],
)
def test_errors_draw_nothing(rows, change, error):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(error):
        Noise(rng).release(
            GRADIENT, rows, **{"theta": np.zeros(3), "clip": 1.0, "sigma": 1.0, **change}
        )
    assert rng.bit_generator.state == before


def test_wrong_length_of_theta_draws_nothing(rows):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(ValueError, match=r"."):
        Noise(rng).release(GRADIENT, rows, theta=np.zeros(2), clip=1.0, sigma=1.0)
    assert rng.bit_generator.state == before
