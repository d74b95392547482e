"""The iteration that IHM, FastIHM and IHS share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix.accounting import (
    ChoiceEvent,
    ComposedEvent,
    PrivacyEvent,
    SketchEvent,
    TunedCalibration,
)
from fastmix.estimators.inference import NewtonTrace
from fastmix.mechanisms import PrivateGram, gradient_events, noisy_gradient
from fastmix.rows import Rows

__all__ = ["Level", "choose", "mixed_newton", "newton_steps", "step_size", "tuned_levels"]

FloatArray = npt.NDArray[np.float64]

#: Step length where the sketch needs no noise: short, so that the steps average their noise.
_AVERAGING_STEP = 0.5
#: Part of the noise in the sketch, at the lower end of its spectrum, that is taken out again.
_CORRECTION = 0.9


@dataclass(frozen=True)
class Level:
    """How to go on once the spectral bounds are released: all of it public.

    Parameters
    ----------
    gamma : float
        Level of the sketch.
    sigmas : tuple of float
        Gradient noise of each step, for residuals clipped at 1.
    step : float
        Step length.
    correction : float
        Part of eta squared that is subtracted from the Hessian.
    conditioned : bool
        Whether the level is for data that reach gamma without noise.
    """

    gamma: float
    sigmas: tuple[float, ...]
    step: float = 1.0
    correction: float = 0.0
    conditioned: bool = False

    def events(self, bound: str, k: int) -> ComposedEvent:
        """Return the events of k rows of the sketch and of the gradients."""
        return ComposedEvent([SketchEvent(bound, self.gamma, k), *gradient_events(self.sigmas)])


def tuned_levels(noise: TunedCalibration, r: float, *others: float) -> tuple[Level, ...]:
    """Return the levels of a calibration for a Gaussian sketch with r columns a row.

    Parameters
    ----------
    noise : TunedCalibration
        Noise levels of each option.
    r, *others : float
        Columns over rows of the Gaussian sketch, and of the sketches before it.

    Returns
    -------
    tuple of Level
        One for each option.

    Notes
    -----
    Paper: beyond it (docs/proofs/joint_account.md).
    Deviation: none.
    Sensitive inputs: none, sizes are public.
    """
    lower_end = (1.0 - min(1.0, math.sqrt(r))) ** 2
    return tuple(
        Level(
            gamma=option.gamma,
            sigmas=option.sigmas,
            step=_AVERAGING_STEP if option.conditioned else step_size(r, *others),
            correction=_CORRECTION * lower_end,
            conditioned=option.conditioned,
        )
        for option in noise.options
    )


def choose(levels: Sequence[Level], reached: float, shift: float = 0.0) -> Level:
    """Return the level for data that reach a gamma, by released values, without noise.

    Parameters
    ----------
    levels : sequence of Level
        Those for well-conditioned data first, the one for all others last.
    reached : float
        The private lower bound on what the data reach.
    shift : float
        How far below the truth that bound lies on average.

    Returns
    -------
    Level
        The first whose noise in the sketch is no larger than the smallest eigenvalue, as
        estimated.

    Notes
    -----
    Paper: beyond it (docs/proofs/joint_account.md).
    Deviation: none.
    Sensitive inputs: none, ``reached`` is released.
    """
    for level in levels:
        if level.conditioned and reached > 0.0 and level.gamma <= 2.0 * reached + shift:
            return level
    return levels[-1]


def choice_event(levels: Sequence[Level], bound: str, k: int) -> PrivacyEvent:
    """Return the event of whichever level is chosen."""
    return ChoiceEvent(level.events(bound, k) for level in levels)


def mixed_newton(
    rows: Rows,
    mix: Any,
    level: Level,
    *,
    k: int,
    n_steps: int,
    clip: float,
    shrinkage: bool,
    noise: str,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
    mean: FloatArray | None = None,
) -> tuple[FloatArray, PrivacyEvent, NewtonTrace]:
    """Run the steps on a released mix; return coefficients, the events of both, and the trace.

    With a ``mean`` the mix is of the centred features, and the Hessian gets the mean back.

    Notes
    -----
    Paper: Algorithm 2, lines 3-8.
    Deviation: step length and correction of the tuned variants (docs/proofs/joint_account.md),
    and the mean (docs/proofs/centring.md).
    Sensitive inputs: rows.
    """
    hessians: Sequence[PrivateGram] = mix.sketches
    # With shrinkage the noise of the sketch is the ridge that the steps go to, and stays in.
    if level.correction and mix.eta and not shrinkage:
        shift = -level.correction * k * mix.eta**2
        hessians = [hessian.shifted(shift) for hessian in hessians]
    if mean is not None:
        hessians = [hessian.bordered(mean, k * rows.n) for hessian in hessians]
    theta = newton_steps(
        cycle(hessians),
        lambda t, theta: noisy_gradient(
            rows, theta, clip=clip, sigma=level.sigmas[t] * clip, rng=rng, noise=noise
        ),
        n_steps=n_steps,
        d=rows.d,
        scale=k * level.step,
        ridge=mix.eta**2 if shrinkage else 0.0,
        progress=progress,
    )
    trace = NewtonTrace(
        sketches=mix.sketches,
        hessians=tuple(hessians),
        rows=k,
        eta=mix.eta,
        scale=k * level.step,
        sigmas=tuple(sigma * clip for sigma in level.sigmas),
        ridge=mix.eta**2 if shrinkage else 0.0,
        floor=float(np.min(mix.lambda_tilde)),
        border=None if mean is None else math.sqrt(rows.n) * mean,
    )
    return theta, ComposedEvent([mix.event, *gradient_events(level.sigmas)]), trace


def newton_steps(
    hessians: Iterable[PrivateGram],
    gradient: Callable[[int, FloatArray], FloatArray],
    *,
    n_steps: int,
    d: int,
    scale: float = 1.0,
    ridge: float = 0.0,
    progress: Callable[[int, int], None],
) -> FloatArray:
    r"""Run :math:`\theta \gets \theta + s H_t^{-1} (g(\theta) - \rho \theta)` from zero.

    Notes
    -----
    Paper: Algorithm 2, lines 3-8; the ridge is eta squared there and 0 in the
    experiments.
    Deviation: none.
    Sensitive inputs: none; Hessians and gradients are released values.
    """
    theta = np.zeros(d)
    for t, hessian in enumerate(islice(hessians, n_steps)):
        progress(t + 1, n_steps)
        g = gradient(t, theta)
        theta = theta + scale * hessian.solve(g - ridge * theta)
    return theta


def step_size(*ratios: float) -> float:
    r"""Return the step length for preconditioners that are products of random sketches.

    Parameters
    ----------
    *ratios : float
        Columns over rows of each sketch, r.

    Returns
    -------
    float
        :math:`2/(a + b)` for the ends of the spectrum of the preconditioned Hessian,
        :math:`a = \prod (1 + \sqrt r)^{-2}` and :math:`b = \prod (1 - \sqrt r)^{-2}`; with a sketch
        that has fewer than four rows a column, where b is large, no longer than a.

    Notes
    -----
    Paper: beyond it; the ends are those of the Marchenko-Pastur law.
    Deviation: none.
    Sensitive inputs: none, sizes are public.
    """
    low = math.prod((1.0 + math.sqrt(r)) ** -2 for r in ratios)
    if max(ratios) > 0.25:
        return low
    return 2.0 / (low + math.prod((1.0 - math.sqrt(r)) ** -2 for r in ratios))
