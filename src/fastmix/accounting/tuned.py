"""Noise levels under one joint account: everything composed, converted once.

A single number rho scales all noise at once.  A release gets a share w of it, which makes its
Rényi curve about ``w rho alpha``; shares and rho give every noise level, and rho is raised until
the joint account meets the target.  Shares are public constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import ndtri

from fastmix._validation import check_probability, check_real
from fastmix.accounting.accountant import RdpAccountant
from fastmix.accounting.calibration import _least
from fastmix.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    PrivacyEvent,
    SketchEvent,
    TailEvent,
)

__all__ = ["TunedCalibration", "calibrate_tuned_fast_ihm", "calibrate_tuned_ihm", "step_noise"]

#: Share of delta for the rare events.
_TAIL = 0.05


@dataclass(frozen=True)
class TunedCalibration:
    """Noise parameters of the tuned variants.

    ``spectral`` is the noise of the spectral releases in units of their sensitivities, and
    ``sigmas`` the gradient noise of each step for residuals clipped at 1.
    """

    gamma: float
    tau: float
    spectral: float
    sigmas: tuple[float, ...]


def step_noise(total: float, n_steps: int, decay: float) -> tuple[float, ...]:
    r"""Return noise levels with :math:`\sum_t 1/\sigma_t^2` = total, growing towards early steps.

    Parameters
    ----------
    total : float
        Sum of the inverse squares.
    n_steps : int
        Number of steps T.
    decay : float
        :math:`1/\sigma_t^2` is proportional to ``decay**(T - 1 - t)``: the noise of a step is
        contracted by all later ones, so the last steps deserve most of the budget.

    Returns
    -------
    tuple of float
        The noise level of each step.
    """
    weights = [decay ** (n_steps - 1 - t) for t in range(n_steps)]
    scale = total / math.fsum(weights)
    return tuple(1.0 / math.sqrt(scale * weight) for weight in weights)


@lru_cache(maxsize=64)
def calibrate_tuned_ihm(
    epsilon: float,
    delta: float,
    k: int,
    n_steps: int,
    *,
    sketch_share: float = 0.45,
    eigenvalue_share: float = 0.02,
    decay: float = 0.75,
) -> TunedCalibration:
    r"""Noise of IHM with one reused sketch and a noise schedule, under one joint account.

    Parameters
    ----------
    epsilon : float
        Target epsilon.
    delta : float
        Target delta; a twentieth of it pays for the rare event.
    k : int
        Rows of the one Gaussian sketch.
    n_steps : int
        Number of steps T.
    sketch_share, eigenvalue_share : float
        Shares of rho for the sketch and for the private eigenvalue; gradients get the rest.
    decay : float, default 0.75
        Of the noise schedule, see `step_noise`.

    Returns
    -------
    TunedCalibration
        Noise levels.

    Notes
    -----
    Paper: Proposition 2 for the sketch; beyond the paper otherwise (docs/proofs/joint_account.md).
    Deviation: one sketch for all steps, one conversion for all releases.
    Sensitive inputs: none.
    """
    gradient_share = 1.0 - sketch_share - eigenvalue_share
    tail = _TAIL * check_probability("delta", delta)

    def levels(rho: float) -> TunedCalibration:
        return TunedCalibration(
            gamma=math.sqrt(k / (2.0 * sketch_share * rho)),
            tau=-float(ndtri(tail)),
            spectral=1.0 / math.sqrt(2.0 * eigenvalue_share * rho),
            sigmas=step_noise(2.0 * gradient_share * rho, n_steps, decay),
        )

    def events(noise: TunedCalibration) -> list[PrivacyEvent]:
        sketch = SketchEvent("gauss_mix", noise.gamma, k)
        return [GaussianEvent(noise.spectral), TailEvent(tail), sketch]

    return _meet(levels, events, epsilon, delta)


@lru_cache(maxsize=64)
def calibrate_tuned_fast_ihm(
    epsilon: float,
    delta: float,
    k1: int,
    n_steps: int,
    *,
    sketch_share: float = 0.45,
    spectral_share: float = 0.15,
    decay: float = 0.75,
) -> TunedCalibration:
    r"""Noise of FastIHM with one fast sketch, one reused Gaussian sketch and a noise schedule.

    Parameters
    ----------
    epsilon : float
        Target epsilon.
    delta : float
        Target delta; a twentieth of it pays for the rare events.
    k1 : int
        Rows of the one Gaussian sketch.
    n_steps : int
        Number of steps T.
    sketch_share, spectral_share : float
        Shares of rho for the sketch and for the two spectral releases; gradients get the rest.
    decay : float, default 0.75
        Of the noise schedule, see `step_noise`.

    Returns
    -------
    TunedCalibration
        Noise levels.

    Notes
    -----
    Paper: Algorithm 1 for the releases; the sharper curve of docs/proofs/sharp_lemma.md.
    Deviation: one sketch for all steps, one conversion for all releases
    (docs/proofs/joint_account.md).
    Sensitive inputs: none.
    """
    gradient_share = 1.0 - sketch_share - spectral_share
    tail = _TAIL * check_probability("delta", delta)

    def levels(rho: float) -> TunedCalibration:
        return TunedCalibration(
            gamma=math.sqrt(k1 / (2.0 * sketch_share * rho)),
            tau=math.log(1.0 / tail),
            spectral=1.0 / math.sqrt(spectral_share * rho),
            sigmas=step_noise(2.0 * gradient_share * rho, n_steps, decay),
        )

    def events(noise: TunedCalibration) -> list[PrivacyEvent]:
        sketch = SketchEvent("fast_mix_sharp", noise.gamma, k1)
        return [LaplaceEvent(noise.spectral, count=2), TailEvent(tail), sketch]

    return _meet(levels, events, epsilon, delta)


def _meet(
    levels: Callable[[float], TunedCalibration],
    events: Callable[[TunedCalibration], list[PrivacyEvent]],
    epsilon: float,
    delta: float,
) -> TunedCalibration:
    """Return the levels at the largest rho whose joint account is at most epsilon."""
    epsilon = check_real("epsilon", epsilon, above=0.0)

    def cost(noise: float) -> float:
        level = levels(1.0 / noise)
        if not level.gamma > 1.0:
            return math.inf
        squares = math.fsum(sigma**-2 for sigma in level.sigmas)
        gradients = GaussianEvent(1.0, math.sqrt(squares))
        return RdpAccountant([*events(level), gradients]).get_epsilon(delta)

    return levels(1.0 / _least("noise", cost, epsilon, start=0.0))
