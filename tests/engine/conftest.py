"""Oracles for the methods, written from the paper and importing none of the accounting.

Formulas are evaluated with mpmath as they are printed, so that neither rounding nor an algebraic
rearrangement is shared with the code under test.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.optimize import minimize_scalar
from threadpoolctl import threadpool_limits

mp = mpmath.mp.clone()
mp.dps = 40


def phi_bar(alpha, gamma):
    """Appendix E: one row of FastMix."""
    a, g = mp.mpf(alpha), mp.mpf(gamma)
    inside = 1 - a / g - a**2 / (4 * g**2)
    return (a * mp.log(1 - 1 / g - 1 / (4 * g**2)) - mp.log(inside)) / (2 * (a - 1))


def phi_gauss(alpha, gamma):
    """Proposition 2: one row of the Gaussian sketch."""
    a, g = mp.mpf(alpha), mp.mpf(gamma)
    return (a * mp.log(1 - 1 / g) - mp.log(1 - a / g)) / (2 * (a - 1))


def largest_order(phi, gamma):
    """Where the logarithm in phi ends: the root of 1 - w(alpha)."""
    return gamma if phi is phi_gauss else 2.0 * gamma * (math.sqrt(2.0) - 1.0)


def sketch_epsilon(phi, gamma, rows, delta):
    """Proposition 1: min over alpha of rows * phi + conversion."""
    top = largest_order(phi, gamma)
    if top <= 1.0:
        return math.inf

    def bound(u):
        # alpha runs over (1, top); u is its logit, so that both ends are resolved.
        alpha = mp.mpf(1) + (mp.mpf(top) - 1) / (1 + mp.exp(-mp.mpf(float(u))))
        value = rows * phi(alpha, gamma)
        value += (-mp.log(delta) + (alpha - 1) * mp.log(1 - 1 / alpha) - mp.log(alpha)) / (
            alpha - 1
        )
        return float(mp.re(value))

    start = min(np.linspace(-25.0, 12.0, 38), key=bound)
    best = minimize_scalar(
        bound, bounds=(start - 1.0, start + 1.0), method="bounded", options={"xatol": 1e-7}
    )
    return max(0.0, best.fun)


def gaussian_delta(mu, epsilon):
    """Balle and Wang (2018), Theorem 8, for sensitivity / noise = mu."""
    mu, e = mp.mpf(mu), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


def bisect(decreasing, target, low, high, steps=60):
    """Return x with decreasing(x) = target."""
    for _ in range(steps):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if decreasing(middle) > target else (low, middle)
    return high


def gaussian_sigma(epsilon, delta):
    return bisect(lambda s: gaussian_delta(1.0 / s, epsilon), delta, 1e-4, 1e8, 90)


def gaussian_epsilon(mu, delta):
    if gaussian_delta(mu, 0) <= delta:
        return 0.0
    return bisect(lambda e: gaussian_delta(mu, e), delta, 1e-12, 1e6, 90)


def fast_gamma(epsilon, delta, rows):
    return bisect(lambda g: sketch_epsilon(phi_bar, g, rows, delta), epsilon, 1.21, 1e7, 45)


def ihm_gamma(epsilon, delta, k, rows):
    """Sketches and one eigenvalue of noise gamma / sqrt(k), each converted at delta."""

    def cost(g):
        return sketch_epsilon(phi_gauss, g, rows, delta) + gaussian_epsilon(math.sqrt(k) / g, delta)

    return bisect(cost, epsilon, 1.0 + 1e-9, 1e7, 45)


def srht(rng, k2, n):
    """Draw sqrt(n_pad / k2) P H B as Definition 3 has it, in the order the library draws."""
    n_pad = 1 << (n - 1).bit_length()
    rows = np.sort(rng.choice(n_pad, size=k2, replace=False, shuffle=False))
    signs = 2 * rng.integers(0, 2, size=n, dtype=np.int8) - 1
    H = hadamard(n_pad) / math.sqrt(n_pad)
    return math.sqrt(n_pad / k2) * H[rows][:, :n] * signs


@pytest.fixture(scope="session", autouse=True)
def one_core():
    """Matrices here are small: more threads only wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def oracle():
    return SimpleNamespace(
        fast_gamma=fast_gamma,
        gaussian_delta=gaussian_delta,
        gaussian_epsilon=gaussian_epsilon,
        gaussian_sigma=gaussian_sigma,
        ihm_gamma=ihm_gamma,
        phi_bar=phi_bar,
        phi_gauss=phi_gauss,
        sketch_epsilon=sketch_epsilon,
        srht=srht,
    )
