"""How far a drawn sketch is from an isometry, on given data and at best."""

from __future__ import annotations

import math

import numpy.typing as npt

from fastmix._validation import check_integer
from fastmix.sketches.base import SketchDraw

__all__ = ["row_distortion", "welch_bound"]


def row_distortion(X: npt.ArrayLike, draw: SketchDraw) -> float:
    """Return m-hat: the largest row norm of ``(S~'S~ - I) X~``.

    Parameters
    ----------
    X : array of shape (n,) or (n, d)
        Data in float32 or float64, in any memory order.
    draw : SketchDraw
        The drawn sketch S.

    Returns
    -------
    float
        The distortion, exact; O(nd log n) operations for a fast transform.

    Notes
    -----
    Paper: m-hat of Algorithm 1; how to compute it, Appendix C.4.2.
    Deviation: on unit columns, ``S~ = S diag(1/||u_i||)`` and ``X~ = diag(||u_i||) X``; row i is
    then ``(S'Z)_i / ||u_i|| - ||u_i|| x_i`` with ``Z = S X``, and 0 if u_i = 0. It is the paper's
    m-hat for a sketch whose columns have norm 1, such as the SRHT.
    Sensitive inputs: X. The result is a function of it and is not private.
    """
    return draw.sketch_and_distortion(X)[1]


def welch_bound(k: int, n: int) -> float:
    """Return the least coherence that n unit columns of length k can have.

    Parameters
    ----------
    k : int
        Rows of the sketch, at least 1.
    n : int
        Columns of the sketch, at least 1.

    Returns
    -------
    float
        Lower bound on `SketchDraw.coherence`.

    Notes
    -----
    Paper: Appendix F, ``sqrt((n - k) / (k (n - 1)))``.
    Deviation: 0 for k >= n, where columns can be orthogonal.
    """
    k = check_integer("k", k, at_least=1)
    n = check_integer("n", n, at_least=1)
    if k >= n:
        return 0.0
    return math.sqrt((n - k) / (k * (n - 1)))
