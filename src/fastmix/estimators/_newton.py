"""The iteration that IHM, FastIHM and IHS share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from fastmix._validation import value_error
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

__all__ = [
    "Level",
    "check_sketch",
    "choose",
    "least_rows",
    "mixed_newton",
    "newton_steps",
    "step_lengths",
    "step_size",
    "tuned_levels",
]

FloatArray = npt.NDArray[np.float64]

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
    damped : bool
        Whether steps whose noise is large are shorter.
    """

    gamma: float
    sigmas: tuple[float, ...]
    step: float = 1.0
    correction: float = 0.0
    conditioned: bool = False
    damped: bool = False

    def events(self, bound: str, k: int) -> ComposedEvent:
        """Return the events of k rows of the sketch and of the gradients."""
        return ComposedEvent([SketchEvent(bound, self.gamma, k), *gradient_events(self.sigmas)])


def tuned_levels(noise: TunedCalibration, columns: int, *rows: int) -> tuple[Level, ...]:
    """Return the levels of a calibration for a Gaussian sketch, and a fast one before it.

    Parameters
    ----------
    noise : TunedCalibration
        Noise levels of each option.
    columns : int
        Columns of the data, the intercept included.
    *rows : int
        Rows of the Gaussian sketch, and of the sketches before it.

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
    lower_end = (1.0 - min(1.0, math.sqrt(columns / rows[0]))) ** 2
    ratios = [min(columns / k, 0.5625) for k in rows]
    # A small Gaussian sketch often has a spectrum wider than its limit. What a small fast sketch
    # misses is covered by eta, which grows with its distortion.
    tail = 1.0 - math.sqrt(ratios[0]) - _STEP_TAIL / math.sqrt(rows[0])
    stable = 1.9 * tail**2 * math.prod((1.0 - math.sqrt(r)) ** 2 for r in ratios[1:])
    longest = min(step_size(*ratios), stable)
    return tuple(
        Level(
            gamma=option.gamma,
            sigmas=option.sigmas,
            step=min(longest, _AVERAGING_STEP) if option.conditioned else longest,
            correction=_CORRECTION * lower_end,
            conditioned=option.conditioned,
            damped=True,
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
    spread = k * max(map(_inverse_trace, hessians)) / rows.n if level.damped else 0.0
    scales = tuple(k * length for length in step_lengths(level, spread))
    theta = newton_steps(
        cycle(hessians),
        lambda t, theta: noisy_gradient(
            rows, theta, clip=clip, sigma=level.sigmas[t] * clip, rng=rng, noise=noise
        ),
        scales=scales,
        d=rows.d,
        ridge=mix.eta**2 if shrinkage else 0.0,
        progress=progress,
    )
    trace = NewtonTrace(
        sketches=mix.sketches,
        hessians=tuple(hessians),
        rows=k,
        eta=mix.eta,
        scales=scales,
        sigmas=tuple(sigma * clip for sigma in level.sigmas),
        ridge=mix.eta**2 if shrinkage else 0.0,
        floor=float(np.min(mix.lambda_tilde)),
        border=None if mean is None else math.sqrt(rows.n) * mean,
    )
    return theta, ComposedEvent([mix.event, *gradient_events(level.sigmas)]), trace


def step_lengths(level: Level, spread: float) -> tuple[float, ...]:
    r"""Return the length of each step, shorter where its noise is too large for clipped residuals.

    Parameters
    ----------
    level : Level
        Noise and step length.
    spread : float
        :math:`\mathrm{tr}(H^{-1}) / n`, for H in units of the Gram matrix: what noise of size 1
        in a gradient adds to a mean squared prediction in a step of length 1.

    Returns
    -------
    tuple of float
        One length per step.

    Notes
    -----
    Paper: beyond it (docs/forecasts.md).
    Deviation: the paper's variants, whose noise is the same in every step, take full steps.
    Sensitive inputs: none; noise levels are public, the Hessian is released.
    """
    if not level.damped:
        return (level.step,) * len(level.sigmas)
    moves = [(level.step * sigma) ** 2 * spread for sigma in level.sigmas]
    return tuple(level.step * min(1.0, _LARGEST_MOVE / max(move, 1e-300)) for move in moves)


def _inverse_trace(hessian: PrivateGram) -> float:
    """Return the trace of the inverse; of the pseudoinverse if the matrix is singular."""
    matrix = hessian.matrix()
    try:
        root = np.linalg.cholesky(matrix)
        return float(np.sum(solve_triangular(root, np.eye(len(root)), lower=True) ** 2))
    except np.linalg.LinAlgError:
        return float(np.trace(np.linalg.pinv(matrix, hermitian=True)))


def newton_steps(
    hessians: Iterable[PrivateGram],
    gradient: Callable[[int, FloatArray], FloatArray],
    *,
    scales: Sequence[float],
    d: int,
    ridge: float = 0.0,
    progress: Callable[[int, int], None],
) -> FloatArray:
    r"""Run :math:`\theta \gets \theta + s_t H_t^{-1} (g(\theta) - \rho \theta)` from zero.

    Notes
    -----
    Paper: Algorithm 2, lines 3-8; the ridge is eta squared there and 0 in the
    experiments.
    Deviation: none.
    Sensitive inputs: none; Hessians and gradients are released values.
    """
    theta = np.zeros(d)
    for t, (scale, hessian) in enumerate(zip(scales, hessians, strict=False)):
        progress(t + 1, len(scales))
        g = gradient(t, theta)
        theta = theta + scale * hessian.solve(g - ridge * theta)
    return theta


def least_rows(columns: int, *, fresh: bool = False) -> int:
    r"""Return how many rows a sketch needs to be of use as a Hessian.

    Parameters
    ----------
    columns : int
        Columns of the data, d, the intercept included.
    fresh : bool, default False
        Whether every step draws a sketch of its own and has length 1.

    Returns
    -------
    int
        The least k with :math:`1 - (\sqrt d + 3)/\sqrt k \ge 1/4`, and at least 4 d for fresh
        sketches.

    Notes
    -----
    Paper: beyond it. The smallest singular value of a Gaussian sketch of the identity is below
    :math:`1 - (\sqrt d + t)/\sqrt k` with probability at most :math:`e^{-t^2/2}` (Davidson and
    Szarek), for t = 3 about 1 in 90. Steps of length 1 with fresh sketches grow in mean square when
    :math:`(1 - d/k)^2 < 1/2`, that is with fewer than 3.42 rows per column.
    Deviation: none.
    Sensitive inputs: none, sizes are public.
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
    r"""Return the step length for preconditioners that are products of random sketches.

    Parameters
    ----------
    *ratios : float
        Columns over rows of each sketch, r.

    Returns
    -------
    float
        :math:`2/(a + b)` for the ends of the spectrum of the preconditioned Hessian,
        :math:`a = \prod (1 + \sqrt r)^{-2}` and :math:`b = \prod (1 - \sqrt r)^{-2}`.

    Notes
    -----
    Paper: beyond it; the ends are those of the Marchenko-Pastur law.
    Deviation: none.
    Sensitive inputs: none, sizes are public.
    """
    low = math.prod((1.0 + math.sqrt(r)) ** -2 for r in ratios)
    return 2.0 / (low + math.prod((1.0 - math.sqrt(r)) ** -2 for r in ratios))
