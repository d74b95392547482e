"""Readable NumPy kernels: the oracle of every kernel test, and the path without a compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["fwht"]


def fwht(
    x: npt.NDArray[np.floating[Any]], out: npt.NDArray[np.floating[Any]], scale: float
) -> None:
    """Write ``scale`` times the Walsh-Hadamard transform of the columns of ``x`` to ``out``.

    Parameters
    ----------
    x : ndarray of shape (n, d)
        Any layout; ``n`` is a power of two.
    out : ndarray of shape (n, d)
        Any layout, the dtype of ``x``; may be ``x`` itself.
    scale : float
        Factor, rounded to the dtype of ``x`` before it is applied.

    Notes
    -----
    Level ``h`` replaces each pair of entries ``(a, b)`` whose positions differ in bit ``h`` alone
    by ``(a + b, a - b)``. Levels run from the lowest bit to the highest and the factor comes last;
    the compiled kernel keeps this order, so the two agree to the last bit.
    """
    n, d = x.shape
    y = np.array(x, order="C")
    h = 1
    while h < n:
        pairs = y.reshape(n // (2 * h), 2, h, d)
        a, b = pairs[:, 0], pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = a + b, a - b
        h *= 2
    np.multiply(y, y.dtype.type(scale), out=out)
