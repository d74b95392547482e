"""Levels of the tuned variants: noise of the sketch and of every step, under one joint account.

A single number rho scales all noise of an option at once.  A release gets a share w of it, which
makes its Rényi curve about ``w rho alpha``; shares and rho give every noise level, and rho is
raised until the joint account meets the target.  Shares and schedules are public constants; which
option is taken depends on released values only (docs/proofs/joint_account.md).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fastmix._validation import value_error
from fastmix.accounting import (
    ChoiceEvent,
    ComposedEvent,
    PrivacyEvent,
    PrivacySpent,
    SketchEvent,
    calibrate,
)
from fastmix.accounting.account import joint_delta
from fastmix.errors import CalibrationError
from fastmix.mechanisms import gradient_events
from fastmix.methods.plan import Target, joint

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
    """How to go on once the spectral bounds are released: all of it public.

    ``gamma`` is the level of the sketch, ``sigmas`` the gradient noise of each step for residuals
    clipped at 1, ``correction`` the part of eta squared that is subtracted from the Hessian. A
    ``conditioned`` level is for data that reach gamma without noise; a ``damped`` one has shorter
    steps where their noise is large.
    """

    gamma: float
    sigmas: tuple[float, ...]
    step: float = 1.0
    correction: float = 0.0
    conditioned: bool = False
    damped: bool = False

    def events(self, curve: str, k: int) -> ComposedEvent:
        """Return the events of k rows of the sketch and of the gradients."""
        return ComposedEvent([SketchEvent(curve, self.gamma, k), *gradient_events(self.sigmas)])


@dataclass(frozen=True)
class TunedLevels:
    """The budget of the first releases, their events, and the levels to choose from after them."""

    rho: float
    first: tuple[PrivacyEvent, ...]
    levels: tuple[Level, ...]
    curve: str
    k: int

    def spent(self, delta: float) -> PrivacySpent:
        """Return the account of all releases; a single level is no choice."""
        options = [level.events(self.curve, self.k) for level in self.levels]
        chosen: Sequence[PrivacyEvent] = options if len(options) == 1 else [ChoiceEvent(options)]
        return joint([*self.first, *chosen], delta)


def tuned_levels(
    target: Target,
    first: Callable[[float], list[PrivacyEvent]],
    curve: str,
    k: int,
    n_steps: int,
    first_share: float,
) -> TunedLevels:
    """Return the releases of least noise that meet a target together.

    ``first`` gives the events of what is released before a level is chosen, at a rho of which it
    gets ``first_share``; the k rows of the sketch follow ``curve``.
    """
    epsilon, delta, _ = target

    def level(rho: float, sketch_share: float, decay: float) -> Level:
        gradient_share = 1.0 - sketch_share - first_share
        return Level(
            gamma=math.sqrt(k / (2.0 * sketch_share * rho)),
            sigmas=step_noise(2.0 * gradient_share * rho, n_steps, decay),
            conditioned=(sketch_share, decay) != _ILL_CONDITIONED,
        )

    def largest(made: Callable[[float], TunedLevels]) -> float:
        def account(rho: float) -> PrivacySpent | None:
            tried = made(rho)
            usable = all(each.gamma > 1.0 for each in tried.levels)
            return tried.spent(delta) if usable else None

        return calibrate(account, epsilon, delta)

    def after(known: float, *levels: Level) -> TunedLevels:
        return TunedLevels(known, tuple(first(known)), levels, curve, k)

    def alone(share: tuple[float, float], each: float) -> TunedLevels:
        return after(rho, level(each, *share))

    rho = largest(lambda rho: after(rho, level(rho, *_ILL_CONDITIONED)))
    shares = (*_CONDITIONED, _ILL_CONDITIONED)
    rhos = [largest(partial(alone, s)) for s in shares]

    def together(most: float) -> TunedLevels:
        """Give the last level this much, and scale the others with it."""
        scaled = [most / rhos[-1] * each for each in rhos]
        return after(rho, *(level(each, *s) for each, s in zip(scaled, shares, strict=True)))

    found = together(largest(together))
    if joint_delta(found.spent(delta).events, epsilon) > delta:
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
    for level in levels:
        if level.conditioned and reached > 0.0 and level.gamma <= 2.0 * reached + shift:
            return level
    return levels[-1]


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


def check_sketch(name: str, rows: int, columns: int, *, fresh: bool = False) -> None:
    """Refuse a sketch with fewer rows than `least_rows`."""
    least = least_rows(columns, fresh=fresh)
    if rows < least:
        condition = f"be at least {least} for {columns} columns (counting the intercept)"
        raise value_error(name, f"{condition}, or the steps may diverge", rows)


def step_size(*ratios: float) -> float:
    r"""Return the step length for a product of sketches with these ratios of columns to rows.

    It is :math:`2/(a + b)` for the ends of the preconditioned Hessian's spectrum by the law of
    Marchenko and Pastur: :math:`a = \prod (1 + \sqrt r)^{-2}`, :math:`b = \prod (1-\sqrt r)^{-2}`.
    """
    low = math.prod((1.0 + math.sqrt(r)) ** -2 for r in ratios)
    return 2.0 / (low + math.prod((1.0 - math.sqrt(r)) ** -2 for r in ratios))
