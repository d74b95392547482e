"""The iteration that IHM, FastIHM and IHS share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import islice

import numpy as np
import numpy.typing as npt

from fastmix.mechanisms import PrivateGram

__all__ = ["newton_steps", "step_size"]

FloatArray = npt.NDArray[np.float64]


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
