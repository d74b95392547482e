"""Noise levels of Figure 1 are the least private ones, in the paper's order."""

import math

import pytest

from fastmix.accounting import (
    rdp_fast_mix,
    rdp_fast_mix_sharp,
    rdp_fast_mix_unbounded,
    rdp_gauss_mix,
    rdp_to_epsilon,
)
from reproduction.experiments.figure1 import CURVES, noise_level, noise_upadhyay

N, D, K = 10**4, 500, 3000
DELTA, LAMBDA = 1.0 / N**2, N / (8.0 * D)


def spent(curve, sigma):
    """Epsilon of k rows at this noise, from the lemma itself."""
    sketched = 5.0 / 6.0 * LAMBDA + sigma**2
    rdp = {
        "gauss_mix": lambda a: rdp_gauss_mix(a, LAMBDA + sigma**2),
        "fast_mix": lambda a: rdp_fast_mix(a, sketched / 2.0, 2.0),
        "fast_mix_sharp": lambda a: rdp_fast_mix_sharp(a, sketched / 2.0),
        "fast_mix_unbounded": lambda a: rdp_fast_mix_unbounded(a, sketched),
    }[curve]
    return rdp_to_epsilon(lambda a: K * rdp(a), DELTA)


@pytest.mark.parametrize("curve", [name for name in CURVES if name != "upadhyay"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_level_is_private_and_the_least(curve, epsilon):
    sigma = noise_level(curve, epsilon, DELTA, K, LAMBDA)
    assert spent(curve, sigma) <= epsilon * (1.0 + 1e-12)
    assert spent(curve, sigma * (1.0 - 1e-5)) > epsilon


def test_the_order_of_the_figure():
    for epsilon in (0.1, 1.0, 10.0):
        order = ("gauss_mix", "fast_mix_sharp", "fast_mix", "fast_mix_unbounded", "upadhyay")
        levels = [noise_level(curve, epsilon, DELTA, K, LAMBDA) for curve in order]
        assert levels == sorted(set(levels))
        assert (levels[-1] / levels[2]) ** 2 > 100.0


def test_upadhyay_and_enough_eigenvalue():
    expected = noise_upadhyay(1.0, DELTA, K, 5.0 / 6.0 * LAMBDA)
    assert noise_level("upadhyay", 1.0, DELTA, K, LAMBDA) == expected
    assert noise_level("gauss_mix", 1.0, DELTA, K, 1e6) == 0.0
    assert math.isfinite(noise_level("fast_mix_unbounded", 100.0, DELTA, 1, 0.0))


def test_upadhyay():
    epsilon, delta, k, level = 0.7, 1e-5, 20, 11.0
    sigma = noise_upadhyay(epsilon, delta, k, level)
    threshold = 16.0 * math.sqrt(k * math.log(2.0 / delta)) / epsilon * math.log(16.0 * k / delta)
    assert math.sqrt(level + sigma**2) == pytest.approx(threshold, rel=1e-12)
    assert noise_upadhyay(epsilon, delta, k, 2.0 * threshold**2) == 0.0
    for target in ((0.0, delta, k), (epsilon, 0.0, k), (epsilon, 1.0, k), (epsilon, delta, 0)):
        with pytest.raises(ValueError, match="target must be private"):
            noise_upadhyay(*target, level)
    with pytest.raises(ValueError, match=r"lambda_min must be at least 0; got lambda_min=-1\.0\."):
        noise_upadhyay(epsilon, delta, k, -1.0)
