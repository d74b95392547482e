"""Oracles for the accounting layer, written from the paper's displays and importing none of it.

Everything is evaluated with mpmath at 50 digits from the formula as it is printed, so that
neither rounding nor an algebraic rearrangement is shared with the code under test.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import Phase, settings
from scipy.optimize import minimize_scalar

mp = mpmath.mp.clone()
mp.dps = 50

# No shrinking: the oracles are slow, and a failing example is short enough as it is.
settings.register_profile(
    "accounting",
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile("accounting")


def _real(value):
    return mp.mpf(float(value)) if not isinstance(value, mp.mpf) else value


class Oracle:
    """Formulas of the paper, one method a display."""

    mp = mp

    # --- Rényi curves ---------------------------------------------------------------------

    @staticmethod
    def log_ratio(alpha, first, second):
        """alpha log(1 - first) - log(1 - second), over 2 (alpha - 1)."""
        return (alpha * mp.log(1 - first) - mp.log(1 - second)) / (2 * (alpha - 1))

    @classmethod
    def gauss_mix(cls, alpha, gamma):
        """Proposition 2."""
        alpha, gamma = _real(alpha), _real(gamma)
        return cls.log_ratio(alpha, 1 / gamma, alpha / gamma)

    @classmethod
    def fast_mix(cls, alpha, gamma, c_sq=None):
        """Appendix C.1, phi for a finite C^2 and phi-bar for None."""
        alpha, gamma = _real(alpha), _real(gamma)
        factor = mp.mpf(1) if c_sq is None else ((1 - _real(c_sq)) / _real(c_sq)) ** 2

        def w(order):
            return order / gamma + order**2 / (4 * gamma**2) * factor

        return cls.log_ratio(alpha, w(mp.mpf(1)), w(alpha))

    @staticmethod
    def fast_mix_limit(c_sq=None):
        """gamma-bar of Appendix C.1; alpha must stay below gamma / gamma-bar."""
        inverse = mp.mpf(0) if c_sq is None else 1 / _real(c_sq)
        return (1 + mp.sqrt(1 + (inverse - 1) ** 2)) / 2

    @staticmethod
    def fast_mix_unbounded(alpha, gamma):
        """Appendix C.2, last display."""
        alpha, gamma = _real(alpha), _real(gamma)
        root = mp.sqrt(gamma)
        bracket = 2 * alpha * mp.log(1 - 1 / root)
        bracket -= mp.log(1 - 2 * alpha / root + alpha / gamma)
        return bracket / (2 * (alpha - 1))

    @staticmethod
    def gaussian_divergence(alpha, first, second):
        """Appendix C, display for zero-mean Gaussians, by determinants; inf where undefined."""
        first, second = np.atleast_2d(first), np.atleast_2d(second)
        between = first + alpha * (second - first)
        if np.linalg.eigvalsh(between).min() <= 0.0:
            return np.inf
        logdet = [np.linalg.slogdet(matrix)[1] for matrix in (between, first, second)]
        return -(logdet[0] - (1 - alpha) * logdet[1] - alpha * logdet[2]) / (2 * (alpha - 1))

    # --- conversion -----------------------------------------------------------------------

    @staticmethod
    def convert(alpha, r, delta):
        """Proposition 1 at one order."""
        alpha = _real(alpha)
        return r + mp.log(1 - 1 / alpha) - mp.log(alpha * _real(delta)) / (alpha - 1)

    @classmethod
    def sketch_epsilon(cls, rows, gamma, delta, kind="fast_mix"):
        """min over orders of Proposition 1 for ``rows`` rows; 0 where total variation says so.

        The order is found in floating point from the printed formula and the bound evaluated
        there at 50 digits: whatever the search does, the value returned is a valid epsilon.
        """
        limit = float(gamma / (cls.fast_mix_limit() if kind == "fast_mix" else 1))
        if limit <= 1.0:
            return mp.inf
        quarter = 0.25 if kind == "fast_mix" else 0.0

        def w(order):
            return order / gamma + quarter * (order / gamma) ** 2

        def bound(log_shift):
            a = 1.0 + np.exp(log_shift)
            curve = (a * np.log1p(-w(1.0)) - np.log1p(-w(a))) / (2.0 * (a - 1.0))
            return rows * curve + np.log1p(-1.0 / a) - np.log(a * delta) / (a - 1.0)

        low, high = np.log(1e-4), np.log((limit - 1.0) * (1.0 - 1e-9))
        if high <= low:
            low = high - 10.0
        grid = np.linspace(low, high, 801)
        at = int(np.argmin(bound(grid)))
        best = minimize_scalar(
            bound,
            bounds=(grid[max(at - 1, 0)], grid[min(at + 1, grid.size - 1)]),
            method="bounded",
            options={"xatol": 1e-9},
        )
        curve = getattr(cls, kind)
        alpha = 1 + mp.exp(_real(best.x))
        value = cls.convert(alpha, rows * curve(alpha, gamma), delta)
        near_one = 1 + mp.mpf(min(1e-4, (limit - 1.0) / 2.0))
        if _real(delta) ** 2 > 1 - mp.exp(-rows * curve(near_one, gamma)):
            return mp.mpf(0)
        return max(mp.mpf(0), value)

    # --- the Gaussian mechanism -----------------------------------------------------------

    @staticmethod
    def gaussian_delta(sigma, epsilon, sensitivity=1.0):
        """Balle and Wang, Theorem 8."""
        mu, epsilon = _real(sensitivity) / _real(sigma), _real(epsilon)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)

    # --- closed forms ---------------------------------------------------------------------

    @staticmethod
    def theorem_1_sketch(gamma, rows, delta):
        """The cases of Theorem 1, with ``delta`` for delta/3."""
        gamma, log_term = _real(gamma), mp.log(1 / _real(delta))
        rate = mp.mpf(25) * rows / (32 * gamma**2)
        if log_term <= (8 * gamma / 25 - 1) ** 2 * rate:
            return rate + 2 * mp.sqrt(rate * log_term)
        return rows / (4 * gamma) + 25 * log_term / (8 * gamma - 25)

    @staticmethod
    def printed_gamma(epsilon, delta, rows):
        """gamma of Appendix E exactly as printed: (gamma_1, gamma_2, whether gamma_1 is taken)."""
        epsilon, log_term = _real(epsilon), mp.log(3 / _real(delta))
        gamma_1 = 15 * mp.sqrt(2 * rows * log_term) / (8 * epsilon)
        gamma_1 *= 1 + mp.sqrt(1 + epsilon / (3 * log_term))
        gamma_2 = (2 * rows + 25 * log_term) / (8 * epsilon)
        first = log_term <= (8 * gamma_1 / 25 - 1) ** 2 * 25 * rows / (32 * gamma_1**2)
        return gamma_1, gamma_2, first

    @staticmethod
    def printed_sigma(epsilon, delta, steps, clip):
        """Appendix E, sigma exactly as printed."""
        epsilon, log_term = _real(epsilon), mp.log(3 / _real(delta))
        sigma = 3 * mp.sqrt(steps * log_term) * _real(clip) / (mp.sqrt(2) * epsilon)
        return sigma * (1 + mp.sqrt(1 + epsilon / (3 * log_term)))


@pytest.fixture(scope="session")
def oracle():
    return Oracle


@pytest.fixture(autouse=True)
def _accounting_profile():
    """Deterministic hypothesis runs, whatever profile another directory loaded."""
    settings.load_profile("accounting")
