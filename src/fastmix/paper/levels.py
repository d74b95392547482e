"""Levels of the tuned variants: noise of the sketch and of every step, under one joint account.

A single number rho scales all noise of an option at once.  A release gets a share w of it, which
makes its Rényi curve about ``w rho alpha``; shares and rho give every noise level, and rho is
raised until the joint account meets the target.  Shares and schedules are public constants; which
option is taken depends on released values only (docs/proofs/joint_account.md).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

from scipy.special import ndtri

from fastmix.accounting import ChoiceEvent, ComposedEvent, PrivacySpent, SketchEvent, calibrate
from fastmix.accounting.account import joint_delta
from fastmix.engine.plan import Target, joint
from fastmix.errors import CalibrationError
from fastmix.releases import GRADIENT, MEAN, spectral_events

#: Share of delta for the rare events.
TAIL = 0.05
#: Sketch's share of rho and decay of the noise schedule: options for data whose smallest eigenvalue
#: reaches gamma without noise, cheapest first, and the one for all other data.
_CONDITIONED = ((0.03, 0.6), (0.1, 0.6), (0.3, 0.6))
_ILL_CONDITIONED = (0.3, 0.85)
#: Share of the last step's budget that all early steps together get at least.
_LEAST_WEIGHT = 1e-6
#: Step length where the sketch needs no noise: short, so that the steps average their noise.
_AVERAGING_STEP = 0.5
#: Part of the noise in the sketch, at the lower end of its spectrum, that is taken out again.
_CORRECTION = 0.9
#: What the noise of one step may add to a mean squared prediction, in units of the squared clipping
#: level: beyond that residuals are clipped, and gradients no longer grow with the error.
_LARGEST_MOVE = 0.1
#: How far below its limit the smallest singular value of a Gaussian sketch may lie, in units of
#: one over the root of its rows: for sketches that are refused, and for the length of a step.
_TAIL, _STEP_TAIL = 3.0, 2.0


@dataclass(frozen=True)
class Level:
    """How to go on once the spectral bounds are released: all of it public."""

    gamma: float  #: Level of the sketch.
    sigmas: tuple[float, ...]  #: Gradient noise of each step for residuals clipped at 1.
    step: float = 1.0
    correction: float = 0.0  #: Part of eta squared that is subtracted from the Hessian.
    conditioned: bool = False  #: For data that reach gamma without noise.
    damped: bool = False  #: Steps are shorter where their noise is large.

    def events(self, curve: str, k: int) -> ComposedEvent:
        """Return the events of k rows of the sketch and of the gradients."""
        return ComposedEvent([SketchEvent(curve, self.gamma, k), *GRADIENT.events(self.sigmas)])


class Tuned(NamedTuple):
    """What a tuned variant releases: first bounds and perhaps a mean, then one of the levels."""

    spent: PrivacySpent
    levels: tuple[Level, ...]
    tau: float
    omega: float
    mean_sigma: float | None


@lru_cache(maxsize=64)
def tuned_levels(
    target: Target,
    curve: str,
    k: int,
    n_steps: int,
    *,
    bounds: int,
    bounds_share: float,
    mean_share: float = 0.0,
) -> Tuned:
    """Return the releases of least noise that meet a target together.

    First come ``bounds`` spectral bounds with Gaussian noise and, if it has a share, the mean of
    the features; the k rows of the sketch follow ``curve``.
    """
    epsilon, delta = target.epsilon, target.delta
    tau = -float(ndtri(TAIL * delta / bounds))

    def level(option: tuple[float, float], rho: float) -> Level:
        sketch_share, decay = option
        gradient_share = 1.0 - sketch_share - (bounds_share + mean_share)
        return Level(
            gamma=math.sqrt(k / (2.0 * sketch_share * rho)),
            sigmas=step_noise(2.0 * gradient_share * rho, n_steps, decay),
            conditioned=option != _ILL_CONDITIONED,
        )

    def tuned(rho: float, *levels: Level) -> Tuned:
        """Return the releases: a rho for the first ones, and levels; a single one is no choice."""
        omega = 1.0 / math.sqrt(2.0 * bounds_share / bounds * rho)
        first = spectral_events("gaussian", tau=tau, omega=omega, count=bounds)
        mean_sigma = 1.0 / math.sqrt(2.0 * mean_share * rho) if mean_share else None
        if mean_sigma is not None:
            first = [MEAN.event(mean_sigma), *first]
        after = [each.events(curve, k) for each in levels]
        spent = joint([*first, *(after if len(after) == 1 else [ChoiceEvent(after)])], delta)
        return Tuned(spent, levels, tau, omega, mean_sigma)

    def largest(made: Callable[[float], list[Level]], rho: float | None = None) -> float:
        """Return the largest number whose levels meet the target, after releases at rho or it."""

        def account(number: float) -> PrivacySpent | None:
            levels = made(number)
            usable = all(each.gamma > 1.0 for each in levels)
            return tuned(number if rho is None else rho, *levels).spent if usable else None

        return calibrate(account, epsilon, delta)

    def alone(option: tuple[float, float], number: float) -> list[Level]:
        return [level(option, number)]

    rho = largest(partial(alone, _ILL_CONDITIONED))
    options = (*_CONDITIONED, _ILL_CONDITIONED)
    rhos = [largest(partial(alone, option), rho) for option in options]

    def together(most: float) -> list[Level]:
        """Give the last level this much, and scale the others with it."""
        return [level(o, most / rhos[-1] * each) for o, each in zip(options, rhos, strict=True)]

    found = tuned(rho, *together(largest(together, rho)))
    if joint_delta(found.spent.events, epsilon) > delta:
        raise CalibrationError(f"noise must meet epsilon={epsilon:g}; none was found.")
    return found


def step_noise(total: float, n_steps: int, decay: float) -> tuple[float, ...]:
    r"""Return noise levels with :math:`\sum_t 1/\sigma_t^2` = total, growing towards early steps.

    :math:`1/\sigma_t^2` is proportional to ``decay**(T - 1 - t)``: later steps contract the noise,
    so the last ones deserve most of the budget. A least weight keeps all noise finite.
    """
    least = _LEAST_WEIGHT / n_steps
    weights = [max(decay ** (n_steps - 1 - t), least) for t in range(n_steps)]
    scale = total / math.fsum(weights)
    return tuple(1.0 / math.sqrt(scale * weight) for weight in weights)


def with_steps(levels: Sequence[Level], columns: int, *rows: int) -> tuple[Level, ...]:
    """Return levels with their step lengths, for the rows of a Gaussian and of a fast sketch."""
    lower_end = (1.0 - min(1.0, math.sqrt(columns / rows[0]))) ** 2
    ratios = [min(columns / k, 0.5625) for k in rows]
    # A small Gaussian sketch often has a spectrum wider than its limit. What a small fast sketch
    # misses is covered by eta, which grows with its distortion.
    tail = 1.0 - math.sqrt(ratios[0]) - _STEP_TAIL / math.sqrt(rows[0])
    stable = 1.9 * tail**2 * math.prod((1.0 - math.sqrt(r)) ** 2 for r in ratios[1:])
    longest = min(step_size(*ratios), stable)
    return tuple(
        replace(
            level,
            step=min(longest, _AVERAGING_STEP) if level.conditioned else longest,
            correction=_CORRECTION * lower_end,
            damped=True,
        )
        for level in levels
    )


def choose(levels: Sequence[Level], reached: float, shift: float = 0.0) -> Level:
    """Return the first level whose noise is no larger than the smallest eigenvalue, as released.

    ``reached`` is the private lower bound on the gamma that the data reach without noise, ``shift``
    how far below the truth it lies on average.
    """
    most = 2.0 * reached + shift if reached > 0.0 else 0.0
    usable = (level for level in levels if level.conditioned and level.gamma <= most)
    return next(usable, levels[-1])


def step_lengths(level: Level, spread: float) -> tuple[float, ...]:
    r"""Return the length of each step, shorter where its noise would have residuals clipped.

    ``spread`` is :math:`\mathrm{tr}(H^{-1}) / n`, for H in units of the Gram matrix: what noise of
    size 1 in a gradient adds to a mean squared prediction in a step of length 1. The paper's
    variants, whose noise is the same in every step, take full steps (docs/forecasts.md).
    """
    if not level.damped:
        return (level.step,) * len(level.sigmas)
    moves = [(level.step * sigma) ** 2 * spread for sigma in level.sigmas]
    return tuple(level.step * min(1.0, _LARGEST_MOVE / max(move, 1e-300)) for move in moves)


def least_rows(columns: int, *, fresh: bool = False) -> int:
    r"""Return the rows of a useful Hessian: the least k with :math:`1-(\sqrt d+3)/\sqrt k \ge 1/4`.

    The smallest singular value of a Gaussian sketch of the identity is below
    :math:`1 - (\sqrt d + t)/\sqrt k` with probability at most :math:`e^{-t^2/2}` (Davidson and
    Szarek), for t = 3 about 1 in 90. Steps of length 1 with ``fresh`` sketches grow in mean square
    when :math:`(1 - d/k)^2 < 1/2`, so they need at least 4 rows per column.
    """
    least = math.ceil(((math.sqrt(columns) + _TAIL) / 0.75) ** 2)
    return max(least, 4 * columns) if fresh else least


def step_size(*ratios: float) -> float:
    r"""Return the step length for a product of sketches with these ratios of columns to rows.

    It is :math:`2/(a + b)` for the ends of the preconditioned Hessian's spectrum by the law of
    Marchenko and Pastur: :math:`a = \prod (1 + \sqrt r)^{-2}`, :math:`b = \prod (1-\sqrt r)^{-2}`.
    """
    low = math.prod((1.0 + math.sqrt(r)) ** -2 for r in ratios)
    return 2.0 / (low + math.prod((1.0 - math.sqrt(r)) ** -2 for r in ratios))
