"""Noise levels under one joint account: everything composed, converted once.

A single number rho scales all noise of an option at once.  A release gets a share w of it, which
makes its Rényi curve about ``w rho alpha``; shares and rho give every noise level, and rho is
raised until the joint account meets the target.  Shares and schedules are public constants; which
option is taken depends on released values only (docs/proofs/joint_account.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from scipy.optimize import brentq
from scipy.special import ndtri

from fastmix._validation import check_probability, check_real
from fastmix.accounting.accountant import RdpAccountant
from fastmix.accounting.events import (
    ChoiceEvent,
    ComposedEvent,
    GaussianEvent,
    PrivacyEvent,
    SketchEvent,
    TailEvent,
)
from fastmix.errors import CalibrationError

__all__ = [
    "JointMixCalibration",
    "TunedCalibration",
    "TunedOption",
    "calibrate_joint_mix",
    "calibrate_tuned_fast_ihm",
    "calibrate_tuned_ihm",
    "step_noise",
]

#: Share of delta for the rare events.
_TAIL = 0.05
#: Sketch's share of rho and decay of the noise schedule: options for data whose smallest eigenvalue
#: reaches gamma without noise, cheapest first, and the one for all other data.
_CONDITIONED = ((0.03, 0.6), (0.1, 0.6), (0.3, 0.6))
_ILL_CONDITIONED = (0.3, 0.85)
#: Share of the last step's budget that all early steps together get at least.
_LEAST_WEIGHT = 1e-6
#: Relative distance to the target delta at which a search ends.
_SLACK = 1e-8


@dataclass(frozen=True)
class TunedOption:
    """Level of the sketch, and gradient noise of each step for residuals clipped at 1.

    ``conditioned`` tells whether the option is for a sketch that needs no noise.
    """

    gamma: float
    sigmas: tuple[float, ...]
    conditioned: bool

    def event(self, bound: str, k: int) -> ComposedEvent:
        """Return the event of k rows of a sketch and of all the gradients."""
        squares = math.fsum(sigma**-2 for sigma in self.sigmas)
        gradients = GaussianEvent(1.0, math.sqrt(squares))
        return ComposedEvent([SketchEvent(bound, self.gamma, k), gradients])


@dataclass(frozen=True)
class TunedCalibration:
    """Noise parameters of the tuned variants.

    ``spectral`` is the noise of the spectral releases and ``mean`` that of the private mean, in
    units of their sensitivities; ``options`` are the levels to choose from when these are known.
    """

    tau: float
    spectral: float
    options: tuple[TunedOption, ...]
    mean: float | None = None


#: The first releases, and the options that follow, at a given rho.
Releases = Callable[[float], tuple[tuple[PrivacyEvent, ...], list[TunedOption]]]


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
        contracted by all later ones, so the last steps deserve most of the budget. All steps
        together get at least a millionth of what the last one gets, so that noise stays finite.

    Returns
    -------
    tuple of float
        The noise level of each step.
    """
    least = _LEAST_WEIGHT / n_steps
    weights = [max(decay ** (n_steps - 1 - t), least) for t in range(n_steps)]
    scale = total / math.fsum(weights)
    return tuple(1.0 / math.sqrt(scale * weight) for weight in weights)


@dataclass(frozen=True)
class JointMixCalibration:
    """Noise of one sketch under one joint account: level, shift, noise of the spectral bounds."""

    gamma: float
    tau: float
    spectral: float


@lru_cache(maxsize=64)
def calibrate_joint_mix(
    epsilon: float, delta: float, k: int, *, fast: bool = False, spectral_share: float = 0.1
) -> JointMixCalibration:
    r"""Noise of one sketch and its spectral bounds, under one joint account.

    Parameters
    ----------
    epsilon : float
        Target epsilon.
    delta : float
        Target delta; a twentieth of it pays for the rare events.
    k : int
        Rows of the Gaussian sketch.
    fast : bool, default False
        Whether a fast sketch is in front of it, which has two spectral bounds instead of one.
    spectral_share : float
        Share of rho for the spectral bounds; the sketch gets the rest.

    Returns
    -------
    JointMixCalibration
        Noise levels.

    Notes
    -----
    Paper: Proposition 2 or Algorithm 1 for the releases.
    Deviation: one account for all of them (docs/proofs/joint_account.md).
    Sensitive inputs: none.
    """
    epsilon = check_real("epsilon", epsilon, above=0.0)
    tail = _TAIL * check_probability("delta", delta)
    bound, count = ("fast_mix_sharp", 2) if fast else ("gauss_mix", 1)

    def levels(rho: float) -> JointMixCalibration:
        return JointMixCalibration(
            gamma=math.sqrt(k / (2.0 * (1.0 - spectral_share) * rho)),
            tau=-float(ndtri(tail / count)),
            spectral=math.sqrt(count / (2.0 * spectral_share * rho)),
        )

    def spent(rho: float) -> float:
        noise = levels(rho)
        if not noise.gamma > 1.0:
            return 1.0
        spectral = GaussianEvent(noise.spectral, count=count)
        events = [spectral, TailEvent(tail), SketchEvent(bound, noise.gamma, k)]
        return RdpAccountant(events).get_delta(epsilon)

    return levels(_largest(spent, delta, start=_concentrated(epsilon, delta)))


@lru_cache(maxsize=64)
def calibrate_tuned_ihm(
    epsilon: float, delta: float, k: int, n_steps: int, *, spectral_share: float = 0.02
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
    spectral_share : float
        Share of rho for the private eigenvalue.

    Returns
    -------
    TunedCalibration
        Noise levels.

    Notes
    -----
    Paper: Proposition 2 for the sketch; beyond the paper otherwise (docs/proofs/joint_account.md).
    Deviation: one sketch for all steps, one exact account for all releases.
    Sensitive inputs: none.
    """
    tail = _TAIL * check_probability("delta", delta)

    def first(rho: float) -> tuple[GaussianEvent, ...]:
        return (GaussianEvent(1.0 / math.sqrt(2.0 * spectral_share * rho)),)

    releases, options = _calibrate(
        epsilon, delta, TailEvent(tail), first, "gauss_mix", k, n_steps, spectral_share
    )
    return TunedCalibration(-float(ndtri(tail)), releases[0].sigma, options)


@lru_cache(maxsize=64)
def calibrate_tuned_fast_ihm(
    epsilon: float,
    delta: float,
    k1: int,
    n_steps: int,
    *,
    centred: bool = False,
    spectral_share: float = 0.1,
    mean_share: float = 0.02,
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
    centred : bool, default False
        Whether the mean is released, and taken off before the data are sketched.
    spectral_share, mean_share : float
        Shares of rho for the two spectral releases and for the mean.

    Returns
    -------
    TunedCalibration
        Noise levels.

    Notes
    -----
    Paper: Algorithm 1 for the releases, with Gaussian noise (remark after Theorem 1); the
    sharper curve of docs/proofs/sharp_lemma.md.
    Deviation: one sketch for all steps, one conversion for all releases
    (docs/proofs/joint_account.md); the mean is beyond the paper (docs/proofs/centring.md).
    Sensitive inputs: none.
    """
    tail = _TAIL * check_probability("delta", delta)
    mean_share = mean_share if centred else 0.0

    def first(rho: float) -> tuple[GaussianEvent, ...]:
        spectral = GaussianEvent(1.0 / math.sqrt(spectral_share * rho), count=2)
        if not centred:
            return (spectral,)
        return (spectral, GaussianEvent(1.0 / math.sqrt(2.0 * mean_share * rho)))

    releases, options = _calibrate(
        epsilon,
        delta,
        TailEvent(tail),
        first,
        "fast_mix_sharp",
        k1,
        n_steps,
        spectral_share + mean_share,
    )
    tau = -float(ndtri(tail / 2.0))
    mean = releases[1].sigma if centred else None
    return TunedCalibration(tau, releases[0].sigma, options, mean)


def _calibrate(
    epsilon: float,
    delta: float,
    tail: TailEvent,
    first: Callable[[float], tuple[GaussianEvent, ...]],
    bound: str,
    k: int,
    n_steps: int,
    first_share: float,
) -> tuple[tuple[GaussianEvent, ...], tuple[TunedOption, ...]]:
    """Return the first releases and the options of least noise that meet the target together."""
    epsilon = check_real("epsilon", epsilon, above=0.0)

    def option(rho: float, sketch_share: float, decay: float) -> TunedOption:
        gradient_share = 1.0 - sketch_share - first_share
        return TunedOption(
            gamma=math.sqrt(k / (2.0 * sketch_share * rho)),
            sigmas=step_noise(2.0 * gradient_share * rho, n_steps, decay),
            conditioned=(sketch_share, decay) != _ILL_CONDITIONED,
        )

    def largest_rho(releases: Releases) -> float:
        def spent(rho: float) -> float:
            known, options = releases(rho)
            if not all(each.gamma > 1.0 for each in options):
                return 1.0
            choice = ChoiceEvent(each.event(bound, k) for each in options)
            events = [*known, tail, *(choice.options if len(options) == 1 else [choice])]
            return RdpAccountant(events).get_delta(epsilon)

        return _largest(spent, delta, start=_concentrated(epsilon, delta))

    alone = largest_rho(lambda rho: (first(rho), [option(rho, *_ILL_CONDITIONED)]))
    known = first(alone)
    shares = (*_CONDITIONED, _ILL_CONDITIONED)

    def only(share: tuple[float, float]) -> float:
        return largest_rho(lambda rho: (known, [option(rho, *share)]))

    rhos = [only(share) for share in shares]

    def together(most: float) -> list[TunedOption]:
        """Give the last option this much, and scale the others with it."""
        return [option(most / rhos[-1] * rho, *s) for rho, s in zip(rhos, shares, strict=True)]

    options = tuple(together(largest_rho(lambda rho: (known, together(rho)))))
    choice = ChoiceEvent(each.event(bound, k) for each in options)
    if RdpAccountant([*known, tail, choice]).get_epsilon(delta) > epsilon:
        raise CalibrationError(f"noise must meet epsilon={epsilon:g}; none was found.")
    return known, options


def _concentrated(epsilon: float, delta: float) -> float:
    r"""Return the rho of concentrated DP, :math:`\epsilon = \rho + 2\sqrt{\rho\log(1/\delta)}`."""
    log = math.log(1.0 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def _largest(spent: Callable[[float], float], delta: float, start: float) -> float:
    """Return the largest rho, near ``start``, with spent(rho) <= delta for an increasing cost."""

    def gap(log_rho: float) -> float:
        return math.log(max(spent(math.exp(log_rho)), 1e-300) / delta) + _SLACK

    low = high = math.log(start)
    while gap(low) > 0.0:
        low -= 0.5
        if low < -80.0:
            raise CalibrationError(
                f"noise must exist with delta at most {delta:g}; none was found."
            )
    while gap(high) <= 0.0:
        high += 0.5
    root = float(brentq(gap, low, high, xtol=1e-9))
    for _ in range(4):
        if gap(root) <= _SLACK / 2.0:
            return math.exp(root)
        root -= 1e-9
    raise CalibrationError(
        f"noise must lie on the private side of delta={delta:g}; none was found."
    )
