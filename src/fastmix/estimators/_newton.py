"""The iteration that IHM, FastIHM and IHS share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["newton_steps", "symmetric_solve"]

FloatArray = npt.NDArray[np.float64]


def newton_steps(
    hessians: Iterable[FloatArray],
    gradient: Callable[[FloatArray], FloatArray],
    *,
    n_steps: int,
    d: int,
    ridge: float = 0.0,
    progress: Callable[[int, int], None],
) -> FloatArray:
    r"""Run :math:`\theta \gets \theta + H_t^{-1} (g(\theta) - \rho \theta)` from zero.

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
        theta = theta + symmetric_solve(hessian, g - ridge * theta)
    return theta


def symmetric_solve(A: FloatArray, b: FloatArray) -> FloatArray:
    """Solve A x = b for a released symmetric matrix; the least-norm solution if it is singular."""
    values, vectors = np.linalg.eigh(A)
    cutoff = len(A) * np.finfo(np.float64).eps * max(float(np.abs(values).max()), 1e-300)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=np.abs(values) > cutoff)
    return np.asarray(vectors @ (inverse * (vectors.T @ b)))
