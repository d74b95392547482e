"""Released scalars and vectors are rounded to a coarse public grid.

Floating-point noise has holes: which doubles can come out depends on what the noise was added
to, so the last bits of a sum can betray it (Mironov, 2012).  Rounding to a grid of 2^-20 of the
noise scale is post-processing; it throws those bits away and costs no accuracy that noise of that
scale had left.  It narrows the leak and does not close it (docs/limitations.md); `exact_noise`
does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import value_error

__all__ = ["grid_step", "snap", "snap_down", "snap_up"]

_BITS = 20


def grid_step(scale: float, bits: int = _BITS) -> float:
    """Return the power of two in (2^-(bits + 1), 2^-bits] of the noise scale."""
    if not 1e-250 < scale < 1e250:
        raise value_error("scale", "lie between 1e-250 and 1e250", scale)
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - bits)


def snap(values: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float64]:
    """Round released values to the nearest point of the grid of their noise scale."""
    grid = grid_step(scale)
    rounded: npt.NDArray[Any] = np.rint(values / grid)
    return np.asarray(rounded * grid)


def snap_up(value: float, scale: float) -> float:
    """Round a released upper bound up to the grid of its noise scale."""
    return math.ceil(value / grid_step(scale)) * grid_step(scale)


def snap_down(value: float, scale: float) -> float:
    """Round a released lower bound down to the grid of its noise scale."""
    return math.floor(value / grid_step(scale)) * grid_step(scale)
