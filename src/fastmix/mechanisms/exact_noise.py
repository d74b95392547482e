"""Noise without floating point: discrete Gaussian and Laplace draws on a fixed grid.

A value is rounded to a grid of 2^-32 of the noise scale, and OpenDP's samplers add an integer that
has exactly the discrete distribution.  Rounding moves neighbours apart by one grid step a
coordinate at most; that is added to the sensitivity, and the noise grows with it, so that the ratio
of the two, which is what the events of the account carry, is the one asked for. What discrete noise
costs beyond continuous noise is an event of its own, `exact_event` (docs/proofs/exact_noise.md).
OpenDP takes its randomness from the operating system.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_integer, check_real
from fastmix.accounting import LaplaceEvent
from fastmix.mechanisms.snapping import grid_step

__all__ = [
    "enlarged_sensitivity",
    "exact_event",
    "exact_gaussian",
    "exact_lower",
    "exact_source",
    "exact_upper",
]

FloatArray = npt.NDArray[np.float64]

#: The grid is 2^-33 to 2^-32 of the noise scale.
BITS = 32

#: Noise in excess of the ratio asked for: the Rényi curve of the discrete Laplace distribution lies
#: a little above that of the continuous one.
EXCESS = 2.0**-30

#: Epsilon for each coordinate of discrete Gaussian noise, by which it differs from rounded noise.
SLACK = 67.0 * 2.0**-64

#: Grid points beyond this are moved to it before noise is added: a contraction, so it is free.
_LARGEST = 2.0**62


def exact_source() -> str:
    """Return what draws the noise, with its version; raise if it is not installed."""
    _opendp()
    return f"OpenDP {version('opendp')}"


def exact_event(size: int) -> LaplaceEvent:
    r"""Return what ``size`` coordinates of exact noise cost beyond continuous noise.

    Notes
    -----
    Paper: beyond it (docs/proofs/exact_noise.md): :math:`N (1/8 + 40^2/24) / t^2`.
    Deviation: none.
    Sensitive inputs: none.
    """
    return LaplaceEvent(1.0, SLACK * check_integer("size", size, at_least=1))


def enlarged_sensitivity(sensitivity: float, step: float, size: int) -> float:
    r"""Sensitivity (l2) of ``size`` coordinates after each is rounded to a multiple of ``step``.

    Notes
    -----
    Paper: beyond it (docs/proofs/exact_noise.md): :math:`\Delta + g\sqrt{N}`.
    Deviation: none.
    Sensitive inputs: none.
    """
    return sensitivity + math.sqrt(size) * step


def exact_gaussian(values: FloatArray, *, sensitivity: float, sigma: float) -> FloatArray:
    r"""Release values with discrete Gaussian noise on the grid of their noise scale.

    Parameters
    ----------
    values : numpy.ndarray
        What is released.
    sensitivity : float
        Its l2 sensitivity before rounding.
    sigma : float
        Standard deviation that would be due without rounding; what is drawn is larger by the
        rounding and by `EXCESS`.

    Returns
    -------
    numpy.ndarray
        Noisy values, multiples of the grid step.

    Notes
    -----
    Paper: beyond it (docs/proofs/exact_noise.md); the event is that of Gaussian noise with the
    ratio ``sigma / sensitivity``.
    Deviation: none.
    Sensitive inputs: values.
    """
    step, scale = _level(sensitivity, sigma, values.size)
    noisy = _draw("gaussian", np.rint(_in_steps(values.ravel(), step)), scale)
    return np.reshape(np.asarray(noisy, dtype=np.float64), values.shape) * step


def exact_upper(
    value: float, *, sensitivity: float, ratio: float, tau: float, release: str
) -> float:
    r"""Release an upper bound of ``value``, at least 0, that fails as rarely as ``tau`` says.

    Notes
    -----
    Paper: Algorithm 1, line 2, on a grid (docs/proofs/exact_noise.md).
    Deviation: rounded up before noise is added; the shift is rounded up by at least one step.
    Sensitive inputs: value.
    """
    step, scale = _level(sensitivity, ratio * sensitivity, 1)
    (noisy,) = _draw(release, np.ceil(_in_steps([value], step)), scale)
    return max(0, noisy + math.ceil(tau * scale) + 1) * step


def exact_lower(
    value: float, *, sensitivity: float, ratio: float, tau: float, release: str
) -> float:
    r"""Release a lower bound of ``value``, at least 0, that fails as rarely as ``tau`` says.

    Notes
    -----
    Paper: Algorithm 1, line 3, on a grid (docs/proofs/exact_noise.md).
    Deviation: rounded down before noise is added; the shift is rounded up by at least one step.
    Sensitive inputs: value.
    """
    step, scale = _level(sensitivity, ratio * sensitivity, 1)
    (noisy,) = _draw(release, np.floor(_in_steps([value], step)), scale)
    return max(0, noisy - math.ceil(tau * scale) - 1) * step


def _level(sensitivity: float, sigma: float, size: int) -> tuple[float, float]:
    """Return the grid step and the noise scale in steps; from public quantities only."""
    check_real("sensitivity", sensitivity, above=0.0)
    step = grid_step(sigma, BITS)
    enlarged = enlarged_sensitivity(sensitivity, step, size)
    return step, sigma / step * (enlarged / sensitivity) * (1.0 + EXCESS)


def _in_steps(values: npt.ArrayLike, step: float) -> FloatArray:
    """Return values in grid steps; exact, because a step is a power of two."""
    return np.clip(values, -_LARGEST * step, _LARGEST * step) / step


def _draw(kind: str, points: FloatArray, scale: float) -> list[int]:
    """Add discrete noise of the given scale, in grid steps, to grid points."""
    measure: Any = _measurement(kind, scale)
    return list(measure(points.astype(np.int64).tolist()))


@lru_cache(maxsize=256)
def _measurement(kind: str, scale: float) -> Any:
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)


def _opendp() -> Any:
    try:
        dp = import_module("opendp.prelude")
    except ImportError:
        raise ImportError(
            "noise='exact' needs OpenDP's samplers: pip install 'fastmix[exact]'."
        ) from None
    dp.enable_features("contrib")
    return dp
