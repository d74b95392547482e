"""How far a drawn sketch is from an isometry, on given data and at best."""

from __future__ import annotations

import math

import numpy.typing as npt

from fastmix._validation import check_integer
from fastmix.sketches.base import SketchDraw


def row_distortion(X: npt.ArrayLike, draw: SketchDraw) -> float:
    """Return m-hat, the second of what `SketchDraw.sketch_and_distortion` returns.

    It is a function of X and is not private.
    """
    return draw.sketch_and_distortion(X)[1]


def welch_bound(k: int, n: int) -> float:
    """Return the least coherence that n unit columns of length k can have.

    Paper: Appendix F, ``sqrt((n - k) / (k (n - 1)))``.
    Deviation: 0 for k >= n, where columns can be orthogonal.
    """
    k = check_integer("k", k, at_least=1)
    n = check_integer("n", n, at_least=1)
    if k >= n:
        return 0.0
    return math.sqrt((n - k) / (k * (n - 1)))
