"""Private one-sided bounds on the distortion and on the smallest eigenvalue.

Noise is shifted by ``tau`` so that each bound errs on its safe side except with a small
probability, which the event of the release carries as a tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from fastmix._validation import check_real
from fastmix.accounting import GaussianEvent, LaplaceEvent, PrivacyEvent, TailEvent
from fastmix.mechanisms.exact_noise import exact_lower, exact_upper
from fastmix.mechanisms.sensitivity import (
    distortion_sensitivity,
    eigenvalue_sensitivity,
    sketched_eigenvalue_sensitivity,
)
from fastmix.mechanisms.snapping import snap_down, snap_up

__all__ = [
    "Level",
    "check_shift",
    "later_level",
    "needed_eigenvalue",
    "noise_level",
    "release_distortion",
    "release_eigenvalue",
    "release_sketched_eigenvalue",
    "spectral_events",
]


#: A level gamma, or how to choose it once the private bounds are released.
Level = float | Callable[[float], float]

#: Columns that are not orthogonal have a coherence of at least about 1/n (Welch); anything below
#: this is the rounding error of a sketch with orthogonal columns.
_ORTHOGONAL = 1e-12


def check_shift(tau: float) -> float:
    """Return a shift that makes a noisy bound one-sided more often than not."""
    return check_real("tau", tau, at_least=0.0)


def later_level(gamma: Level, *, above: float) -> Callable[[float], float]:
    """Return gamma as a function of the level reached without noise; a number is checked now."""
    if callable(gamma):
        return gamma
    fixed = check_real("gamma", gamma, above=above)
    return lambda level: fixed


def noise_level(square: float) -> float:
    r"""Return :math:`\eta = \sqrt{\max\{0, \eta^2\}}`, refusing a level that is no number.

    Notes
    -----
    Paper: Algorithm 1, line 4.
    Deviation: none.
    Sensitive inputs: none, it is computed from released values.
    """
    if not math.isfinite(square):
        raise ValueError("eta must be finite; gamma, omega or tau is too large.")
    return math.sqrt(max(0.0, square))


def needed_eigenvalue(gamma: float, m_tilde: float, c_x: float, curve: str) -> float:
    r"""Return the :math:`\lambda_{\min} + \eta^2` at which a FastMix sketch is at level gamma.

    Notes
    -----
    Paper: :math:`\gamma C(C + 2\tilde m)`, Algorithm 1, line 4.
    Deviation: for the sharper curve no more than the :math:`\kappa` with
    :math:`2/\sqrt\kappa - 1/\kappa = 1/\gamma`, at which the analysis of Appendix C.2, which needs
    no distortion at all, gives the same curve.
    Sensitive inputs: none, it is computed from released values.
    """
    bounded = gamma * c_x * (c_x + 2.0 * m_tilde)
    if curve != "fast_mix_sharp":
        return bounded
    unbounded = (gamma * (1.0 + math.sqrt(1.0 - 1.0 / gamma))) ** 2
    return min(bounded, unbounded * c_x**2)


def release_distortion(
    m_hat: float,
    coherence: float,
    *,
    tau: float,
    omega: float,
    c_x: float,
    release: str,
    rng: np.random.Generator,
    noise: str = "float",
) -> float:
    r"""Release :math:`\tilde m = \max\{0, \hat m + \omega \hat\Delta (\tau - z)\}`.

    Notes
    -----
    Paper: Algorithm 1, line 2; Algorithm 3, line 6.
    Deviation: none; ``release="gaussian"`` is the remark after Theorem 1. At coherence 0 the
    distortion is 0 for all data, and 0 is released instead of the rounding error in m_hat.
    Sensitive inputs: m_hat.
    """
    if coherence < _ORTHOGONAL:
        return 0.0
    sensitivity = distortion_sensitivity(coherence, c_x)
    if noise == "exact":
        return exact_upper(m_hat, sensitivity=sensitivity, ratio=omega, tau=tau, release=release)
    scale = omega * sensitivity
    return snap_up(max(0.0, m_hat + scale * (tau - _noise(release, rng))), scale)


def release_sketched_eigenvalue(
    lambda_hat: float,
    m_tilde: float,
    *,
    tau: float,
    omega: float,
    c_x: float,
    release: str,
    rng: np.random.Generator,
    noise: str = "float",
) -> float:
    r"""Release :math:`\tilde\lambda = \max\{0, \hat\lambda - \omega C(C + 2\tilde m)(\tau - z)\}`.

    Notes
    -----
    Paper: Algorithm 1, line 3; Algorithm 3, line 7.
    Deviation: Lambda = 1, because columns have been brought to unit length.
    Sensitive inputs: lambda_hat.
    """
    sensitivity = sketched_eigenvalue_sensitivity(m_tilde, c_x)
    if noise == "exact":
        return exact_lower(
            lambda_hat, sensitivity=sensitivity, ratio=omega, tau=tau, release=release
        )
    scale = omega * sensitivity
    return snap_down(max(0.0, lambda_hat - scale * (tau - _noise(release, rng))), scale)


def release_eigenvalue(
    lambda_hat: float,
    *,
    tau: float,
    sigma: float,
    c_x: float,
    rng: np.random.Generator,
    noise: str = "float",
) -> float:
    r"""Release :math:`\tilde\lambda = \max\{0, \hat\lambda - s (\tau - z)\}`, z standard normal.

    Notes
    -----
    Paper: the private eigenvalue of GaussMix (Lev et al., 2025) and IHM (Lev et al., 2026).
    Deviation: none; ``sigma`` is in units of the sensitivity.
    Sensitive inputs: lambda_hat.
    """
    sensitivity = eigenvalue_sensitivity(c_x)
    if noise == "exact":
        return exact_lower(
            lambda_hat, sensitivity=sensitivity, ratio=sigma, tau=tau, release="gaussian"
        )
    scale = sigma * sensitivity
    return snap_down(max(0.0, lambda_hat - scale * (tau - _noise("gaussian", rng))), scale)


def spectral_events(release: str, *, tau: float, omega: float, count: int) -> list[PrivacyEvent]:
    """Return the events of ``count`` shifted releases at noise ``omega`` times sensitivity.

    Notes
    -----
    Paper: Appendix C.4, the tails of z and the cost 1/omega of each release.
    Deviation: none.
    Sensitive inputs: none.
    """
    if release == "laplace":
        tail = 0.5 * math.exp(-tau) if tau >= 0.0 else 1.0 - 0.5 * math.exp(tau)
        return [LaplaceEvent(scale=omega, count=count), TailEvent(count * tail)]
    return [GaussianEvent(sigma=omega, count=count), TailEvent(count * float(ndtr(-tau)))]


def _noise(release: str, rng: np.random.Generator) -> float:
    return float(rng.laplace() if release == "laplace" else rng.standard_normal())
