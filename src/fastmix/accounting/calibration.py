"""From (epsilon, delta) to noise levels.

Every function ends on the private side of its target: the answer is put back into the account
it was solved from, and `CalibrationError` is raised if it does not meet it.  Answers depend on
public numbers only and are remembered, so that fits of one size pay for a calibration once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from scipy.optimize import brentq
from scipy.special import ndtri

from fastmix._validation import check_choice, check_integer, check_probability, check_real
from fastmix.accounting import closed_form, rdp
from fastmix.accounting.conversion import rdp_to_epsilon
from fastmix.accounting.gaussian import gaussian_epsilon, gaussian_sigma
from fastmix.errors import CalibrationError

__all__ = [
    "FastIHMCalibration",
    "FastMixCalibration",
    "GaussMixCalibration",
    "IHMCalibration",
    "calibrate_fast_ihm",
    "calibrate_fast_mix",
    "calibrate_gauss_mix",
    "calibrate_ihm",
    "fast_mix_epsilon",
]

#: Relative slack that an answer may leave on the private side: roots aim at the middle of it,
#: so that rounding in one part of a budget cannot push the sum of the parts above the target.
_SLACK = 1e-8


@dataclass(frozen=True)
class FastMixCalibration:
    """Noise parameters of Algorithm 1."""

    gamma: float
    tau: float
    omega: float


@dataclass(frozen=True)
class GaussMixCalibration:
    """Noise parameters of the Gaussian sketch with a private smallest eigenvalue."""

    gamma: float
    tau: float
    lambda_sigma: float


@dataclass(frozen=True)
class FastIHMCalibration:
    """Noise parameters of Algorithm 2."""

    gamma: float
    sigma: float
    tau: float
    omega: float


@dataclass(frozen=True)
class IHMCalibration:
    """Noise parameters of iterative Hessian mixing."""

    gamma: float
    sigma: float
    tau: float
    lambda_sigma: float


def fast_mix_epsilon(
    gamma: float, omega: float, k1: int, delta: float, method: str = "numerical"
) -> float:
    r"""Epsilon of Algorithm 1 with :math:`\tau \ge \log(3/(2\delta))`.

    Parameters
    ----------
    gamma : float
        Level of :math:`(\lambda_{\min} + \eta^2)/C^2`.
    omega : float
        Laplace scale multiplier of the two spectral releases.
    k1 : int
        Rows of the Gaussian sketch.
    delta : float
        Target delta of the whole mechanism.
    method : {"numerical", "closed_form"}
        Optimise over orders (the tightest form in Appendix C.4), or Theorem 1 as printed.

    Returns
    -------
    float
        Epsilon; ``inf`` where the bound does not apply.

    Notes
    -----
    Paper: Theorem 1 and Appendix C.4.
    Deviation: none in the value. The proof in the paper counts the tail of m twice; counting
    the joint rare event once gives the stated delta (docs/corrections.md).
    Sensitive inputs: none.
    """
    omega = check_real("omega", omega, above=0.0)
    return 2.0 / omega + _sketch_epsilon(gamma, k1, check_probability("delta", delta) / 3.0, method)


def _sketch_epsilon(gamma: float, rows: int, delta: float, method: str) -> float:
    rows = check_integer("k1", rows, at_least=1)
    if check_choice("method", method, ("numerical", "closed_form")) == "closed_form":
        return closed_form.closed_form_epsilon(gamma, rows, delta)
    return rdp_to_epsilon(lambda alpha: rows * rdp.rdp_fast_mix(alpha, gamma), delta)


@lru_cache(maxsize=64)
def calibrate_fast_mix(
    epsilon: float, delta: float, k1: int, omega: float | None = None
) -> FastMixCalibration:
    r"""Noise parameters for which Algorithm 1 is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        Target epsilon.
    delta : float
        Target delta.
    k1 : int
        Rows of the Gaussian sketch.
    omega : float, optional
        Laplace scale multiplier; by default ``3 / epsilon``, a third for each of the three
        releases. Must exceed ``2 / epsilon``.

    Returns
    -------
    FastMixCalibration
        ``gamma``, ``tau``, ``omega``.

    Notes
    -----
    Paper: Theorem 1 and Appendix C.4, solved for gamma.
    Deviation: none.
    Sensitive inputs: none.
    """
    epsilon = check_real("epsilon", epsilon, above=0.0)
    delta = check_probability("delta", delta)
    omega = 3.0 / epsilon if omega is None else check_real("omega", omega, above=0.0)
    if not 2.0 / omega < epsilon:
        raise CalibrationError(
            f"omega must exceed 2 / epsilon = {2.0 / epsilon:g}; got omega={omega!r}."
        )
    gamma = _least(
        "gamma", lambda g: fast_mix_epsilon(g, omega, k1, delta), epsilon, start=5.0 / 4.0
    )
    return FastMixCalibration(
        gamma=gamma, tau=_rounded_up(math.log(3.0 / (2.0 * delta))), omega=omega
    )


@lru_cache(maxsize=64)
def calibrate_gauss_mix(epsilon: float, delta: float, k: int) -> GaussMixCalibration:
    r"""Noise parameters for which the Gaussian sketch is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        Target epsilon of the sketch and the private smallest eigenvalue together.
    delta : float
        Target delta: a third each for the sketch, the eigenvalue and its tail.
    k : int
        Rows of the sketch.

    Returns
    -------
    GaussMixCalibration
        ``gamma``, ``tau`` and ``lambda_sigma`` :math:`= \gamma/\sqrt{k}`, the noise of the
        smallest eigenvalue.

    Notes
    -----
    Paper: Proposition 2, with the set-up of Lev et al. (2025).
    Deviation: the eigenvalue is charged by the analytic Gaussian mechanism; the classical
    formula is proved only below epsilon 1.
    Sensitive inputs: none.
    """
    epsilon = check_real("epsilon", epsilon, above=0.0)
    delta = check_probability("delta", delta)
    gamma = _gauss_mix_gamma(epsilon, delta / 3.0, k, k)
    tau = _rounded_up(float(-ndtri(delta / 3.0)))
    return GaussMixCalibration(gamma, tau, gamma / math.sqrt(k))


def _gauss_mix_gamma(epsilon: float, delta: float, k: int, rows: int) -> float:
    """Solve for gamma: ``rows`` rows and one eigenvalue at noise gamma/sqrt(k), delta each."""
    k = check_integer("k", k, at_least=1)

    def cost(gamma: float) -> float:
        sketch = rdp_to_epsilon(lambda alpha: rows * rdp.rdp_gauss_mix(alpha, gamma), delta)
        return sketch + gaussian_epsilon(gamma / math.sqrt(k), delta)

    return _least("gamma", cost, epsilon, start=1.0)


@lru_cache(maxsize=64)
def calibrate_fast_ihm(
    epsilon: float,
    delta: float,
    k1: int,
    n_steps: int,
    method: str = "numerical",
    *,
    clip: float = 1.0,
    varrho: float | None = None,
    n_sketches: int | None = None,
) -> FastIHMCalibration:
    r"""Noise parameters for which Algorithm 2 is (epsilon, delta)-DP, in thirds.

    Parameters
    ----------
    epsilon : float
        Target epsilon: a third each for spectral releases, sketches and gradients.
    delta : float
        Target delta: a third each for tails, sketches and gradients.
    k1 : int
        Rows of the Gaussian sketch of one step.
    n_steps : int
        Number of steps T.
    method : {"numerical", "closed_form"}
        Calibrate by optimised conversion and the analytic Gaussian mechanism (Appendix H), or
        by the formulas of Appendix E.
    clip : float, default 1.0
        Residual clipping level C.
    varrho : float, optional
        Utility failure probability; by default ``delta / 10``. It only raises ``tau``.
    n_sketches : int, optional
        Number of fast sketches, each with its pair of spectral releases; ``n_steps`` by default,
        1 when all steps share one.

    Returns
    -------
    FastIHMCalibration
        ``gamma``, ``sigma``, ``tau``, ``omega``.

    Notes
    -----
    Paper: Appendix E, eq. for (sigma, tau, omega, gamma), and Appendix H.
    Deviation: gamma_2 as corrected (docs/corrections.md).
    Sensitive inputs: none.
    """
    epsilon = check_real("epsilon", epsilon, above=0.0)
    delta = check_probability("delta", delta)
    k1 = check_integer("k1", k1, at_least=1)
    steps = check_integer("n_steps", n_steps, at_least=1)
    clip = check_real("clip", clip, above=0.0)
    varrho = delta / 10.0 if varrho is None else check_probability("varrho", varrho)
    pairs = steps if n_sketches is None else check_integer("n_sketches", n_sketches, at_least=1)
    share, delta_share = epsilon / 3.0, delta / 3.0

    if check_choice("method", method, ("numerical", "closed_form")) == "closed_form":
        gamma = closed_form.closed_form_gamma(share, delta_share, k1 * steps)
        sigma = closed_form.closed_form_gradient_sigma(share, delta_share, steps, clip)
    else:
        gamma = _least(
            "gamma",
            lambda g: _sketch_epsilon(g, k1 * steps, delta_share, method),
            share,
            start=5.0 / 4.0,
        )
        sigma = _gradient_sigma(share, delta_share, steps, clip)

    gamma = _lift(
        "gamma", gamma, lambda g: _sketch_epsilon(g, k1 * steps, delta_share, method), share
    )
    sigma = _lift("sigma", sigma, lambda s: _gradient_epsilon(s, delta_share, steps, clip), share)
    return FastIHMCalibration(
        gamma=gamma,
        sigma=sigma,
        tau=_rounded_up(math.log(pairs * max(3.0 / delta, 16.0 / varrho))),
        omega=6.0 * pairs / epsilon,
    )


@lru_cache(maxsize=64)
def calibrate_ihm(
    epsilon: float,
    delta: float,
    k: int,
    n_steps: int,
    *,
    clip: float = 1.0,
    varrho: float | None = None,
) -> IHMCalibration:
    r"""Noise parameters for which iterative Hessian mixing is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        Target epsilon: half for all sketches with the private eigenvalue, half for gradients.
    delta : float
        Target delta: a quarter each for sketches, eigenvalue, its tail, and gradients.
    k : int
        Rows of the Gaussian sketch of one step.
    n_steps : int
        Number of steps T.
    clip : float, default 1.0
        Residual clipping level C.
    varrho : float, optional
        Utility failure probability; by default ``delta / 10``. It only raises ``tau``.

    Returns
    -------
    IHMCalibration
        ``gamma``, ``sigma``, ``tau``, ``lambda_sigma``.

    Notes
    -----
    Paper: the baseline of Appendix H (Lev et al., 2026).
    Deviation: the eigenvalue is charged by the analytic Gaussian mechanism.
    Sensitive inputs: none.
    """
    epsilon = check_real("epsilon", epsilon, above=0.0)
    delta = check_probability("delta", delta)
    steps = check_integer("n_steps", n_steps, at_least=1)
    clip = check_real("clip", clip, above=0.0)
    varrho = delta / 10.0 if varrho is None else check_probability("varrho", varrho)
    gamma = _gauss_mix_gamma(epsilon / 2.0, delta / 4.0, k, k * steps)
    sigma = _gradient_sigma(epsilon / 2.0, delta / 4.0, steps, clip)
    return IHMCalibration(
        gamma=gamma,
        sigma=sigma,
        # P(z > tau) <= exp(-tau^2/2)/2 <= delta/4.
        tau=math.sqrt(2.0 * math.log(2.0 / min(delta, varrho))),
        lambda_sigma=gamma / math.sqrt(k),
    )


def _rounded_up(tau: float) -> float:
    """Raise a shift by a hair, so that rounding cannot lift its tail above its share of delta."""
    return tau * (1.0 + 1e-12)


def _gradient_sigma(epsilon: float, delta: float, n_steps: int, clip: float) -> float:
    """Return the least noise of ``n_steps`` clipped gradients."""
    sigma = math.sqrt(n_steps) * gaussian_sigma(epsilon * (1.0 - _SLACK / 2.0), delta, clip)
    return _lift("sigma", sigma, lambda s: _gradient_epsilon(s, delta, n_steps, clip), epsilon)


def _gradient_epsilon(sigma: float, delta: float, n_steps: int, clip: float) -> float:
    return gaussian_epsilon(sigma, delta, clip * math.sqrt(n_steps))


def _least(name: str, cost: Callable[[float], float], target: float, start: float) -> float:
    """Return the least x above ``start`` with cost(x) <= target, for a decreasing cost.

    Costs fall about as fast as 1/x, so the root is sought in logarithms, where they are lines.
    """

    def gap(log_x: float) -> float:
        spent = cost(start + math.exp(log_x))
        return math.log(max(spent, 1e-300) / target) + _SLACK / 2.0 if spent < 1e300 else 700.0

    low = high = 5.0
    while gap(high) > 0.0:
        low, high = high, high + 2.0
        if high > 42.0:
            raise CalibrationError(
                f"{name} must exist with epsilon at most {target:g}; none was found below 1e18."
            )
    while gap(low) <= 0.0:
        low, high = low - 2.0, low
        if low < -42.0:
            return _lift(name, start + math.exp(low), cost, target)
    root = float(brentq(gap, low, high, xtol=1e-12, rtol=1e-13, maxiter=500))
    return _lift(name, start + math.exp(root), cost, target)


def _lift(name: str, answer: float, cost: Callable[[float], float], target: float) -> float:
    """Raise a noise level by a hair until its cost is at most the target, or refuse."""
    for _ in range(4):
        if cost(answer) <= target * (1.0 - _SLACK / 4.0):
            return answer
        answer *= 1.0 + _SLACK
    raise CalibrationError(f"{name} must lie on the private side of its target; none was found.")
