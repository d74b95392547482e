"""The Gaussian mechanism, exactly: its privacy profile and the two inversions."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, roots_legendre

from fastmix._validation import check_probability, check_real
from fastmix.errors import CalibrationError

#: Gauss-Legendre quadrature on [0, 1].
_NODES, _WEIGHTS = np.add(roots_legendre(20), [[1.0], [0.0]]) / 2.0

#: Relative slack left on the private side of a root.
_SLACK = 1e-10


def gaussian_delta(sigma: float, epsilon: float, sensitivity: float = 1.0) -> float:
    r"""Exact delta of the Gaussian mechanism at a given epsilon, evaluated in logarithms.

    It is :math:`\Phi(\mu/2 - \epsilon/\mu) - e^\epsilon \Phi(-\mu/2 - \epsilon/\mu)`, where
    :math:`\mu` is the :math:`\ell_2` sensitivity over the standard deviation sigma of the noise.

    Paper: Appendix H uses it through Balle and Wang (2018), Theorem 8.
    """
    epsilon = check_real("epsilon", epsilon, at_least=0.0)
    return profile(_ratio(sigma, sensitivity), epsilon)


def _ratio(sigma: float, sensitivity: float) -> float:
    """Return the sensitivity over the standard deviation of the noise, after checking both."""
    sigma = check_real("sigma", sigma, above=0.0, allow_inf=True)
    return check_real("sensitivity", sensitivity, at_least=0.0) / sigma


def profile(mu: float, epsilon: float) -> float:
    """Return the delta of `gaussian_delta` for the ratio mu; for root finders, without checks.

    Paper: as `gaussian_delta`.
    """
    if mu == 0.0:
        return 0.0
    if mu < 1e-2:
        return _small_ratio_delta(mu, epsilon)
    first = float(log_ndtr(mu / 2.0 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2.0 - epsilon / mu))
    if first == -math.inf or second >= first:
        return 0.0
    return math.exp(first) * -math.expm1(second - first)


def _small_ratio_delta(mu: float, epsilon: float) -> float:
    r"""Return the same delta for a small ratio mu, where its two terms nearly cancel.

    With :math:`u = \mu/2 - \epsilon/\mu`, :math:`v = \mu/2 + \epsilon/\mu` and Mills' ratio M,
    delta is :math:`\varphi(u) \int_{v-\mu}^{v} (1 - t M(t))\, dt`, because
    :math:`e^\epsilon \varphi(v) = \varphi(u)` and :math:`M'(t) = t M(t) - 1`.
    """
    u, v = mu / 2.0 - epsilon / mu, mu / 2.0 + epsilon / mu
    t = v - mu * _NODES
    mills = math.sqrt(math.pi / 2.0) * erfcx(t / math.sqrt(2.0))
    # For large t the difference 1 - t M(t) cancels too; there it is 1/t^2 up to terms in 1/t^4.
    rest = np.where(t > 1e4, 1.0 / np.maximum(t, 1.0) ** 2, 1.0 - t * mills)
    density = math.exp(-(u**2) / 2.0) / math.sqrt(2.0 * math.pi)
    return density * mu * float(_WEIGHTS @ rest)


def gaussian_epsilon(sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """Exact epsilon of the Gaussian mechanism at a given delta, rounded up by at most 1e-10.

    Paper: inverse of `gaussian_delta`.
    """
    return _epsilon(_ratio(sigma, sensitivity), check_probability("delta", delta))


@lru_cache(maxsize=4096)
def _epsilon(mu: float, delta: float) -> float:
    """Return `gaussian_epsilon` for a ratio mu; plans of one fit ask for the same ones often."""
    return least_epsilon(lambda epsilon: profile(mu, epsilon) - delta)


def least_epsilon(gap: Callable[[float], float]) -> float:
    """Return the least epsilon whose delta is within the target; the gap between them falls.

    Paper: inverse of a profile, as Appendix H uses it.
    """
    if gap(0.0) <= 0.0:
        return 0.0
    high = 1.0
    while gap(high) > 0.0:
        high *= 2.0
        if math.isinf(high):  # next to no noise
            return math.inf
    root = float(brentq(gap, 0.0, high, xtol=1e-300, rtol=1e-14, maxiter=500))
    return _private_side("epsilon", root, gap)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest noise of the Gaussian mechanism for a given (epsilon, delta).

    It is rounded up by at most 1e-10 relative, and checked to be on the private side.

    Paper: Appendix H, the analytic Gaussian mechanism.
    """
    epsilon = check_real("epsilon", epsilon, above=0.0)
    delta = check_probability("delta", delta)
    sensitivity = check_real("sensitivity", sensitivity, at_least=0.0)
    return sensitivity * _sigma(epsilon, delta) if sensitivity else 0.0


@lru_cache(maxsize=4096)
def _sigma(epsilon: float, delta: float) -> float:
    """Return `gaussian_sigma` for a sensitivity of 1."""

    def gap(sigma: float) -> float:
        return profile(1.0 / sigma, epsilon) - delta

    low = high = 1.0
    while gap(high) > 0.0:
        high *= 2.0
    while gap(low) <= 0.0:
        low /= 2.0
    root = float(brentq(gap, low, high, xtol=1e-300, rtol=1e-14, maxiter=500))
    return _private_side("sigma", root, gap)


def _private_side(name: str, root: float, gap: Callable[[float], float]) -> float:
    """Round a root up until its gap is at most 0, or refuse."""
    for _ in range(8):
        if gap(root) <= 0.0:
            return root
        root *= 1.0 + _SLACK / 8.0
    raise CalibrationError(f"No {name} was found that meets its target.")
