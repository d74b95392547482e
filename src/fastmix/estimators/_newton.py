"""The iteration that IHM, FastIHM and IHS share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from fastmix.mechanisms import PrivateGram

__all__ = ["newton_steps"]

FloatArray = npt.NDArray[np.float64]


def newton_steps(
    hessians: Iterable[PrivateGram],
    gradient: Callable[[FloatArray], FloatArray],
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
    for t, hessian in enumerate(hessians, start=1):
        progress(t, n_steps)
        g = gradient(theta)
        theta = theta + scale * hessian.solve(g - ridge * theta)
    return theta
