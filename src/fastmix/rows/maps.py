"""Public maps of single records: centre, scale, clip.

A map sees one record at a time and only public constants, so it changes no neighbouring pair
into anything but a neighbouring pair, and what it returns obeys its bound whatever it was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_real

__all__ = ["RowMap", "TargetMap"]

FloatArray = npt.NDArray[np.float64]

#: Shrinks clipped rows by a few units in the last place, so that rounding cannot exceed a bound.
_INWARD = 1.0 - 2.0**-50


@dataclass(frozen=True)
class RowMap:
    r"""Map a record to a row of Euclidean norm at most `bound`.

    Features are clipped to ``[lower, upper]``, centred and scaled, shortened to ``row_norm`` if
    longer, joined by a constant for the intercept, and divided by ``divisor``.

    Parameters
    ----------
    row_norm : float
        Longest norm of the centred and scaled features; longer rows are shortened to it.
    lower, upper : numpy.ndarray of shape (d,), optional
        Public bounds of each feature; values outside are moved to the nearer bound.
    center, scale : numpy.ndarray of shape (d,), optional
        Public centre and scale of each feature; an infinite scale makes the feature 0.
    constant : float, default 0.0
        Value of the constant column; 0 means that there is none.
    divisor : float, default 1.0
        Divides the finished row.
    """

    row_norm: float
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    center: FloatArray | None = None
    scale: FloatArray | None = None
    constant: float = 0.0
    divisor: float = 1.0

    def __post_init__(self) -> None:
        check_real("row_norm", self.row_norm, above=0.0)
        check_real("constant", self.constant, at_least=0.0)
        check_real("divisor", self.divisor, above=0.0)

    @property
    def bound(self) -> float:
        """Bound on the norm of every mapped row."""
        return float(np.hypot(self.row_norm, self.constant) / self.divisor)

    def width(self, d: int) -> int:
        """Return the number of columns of a mapped row of ``d`` features."""
        return d + (self.constant > 0.0)

    def __call__(self, X: npt.NDArray[np.floating[Any]]) -> FloatArray:
        """Map a block of records, one a row, to a new float64 array."""
        n, d = X.shape
        A = np.empty((n, self.width(d)))
        features = A[:, :d]
        features[...] = X
        if self.lower is not None or self.upper is not None:
            np.clip(features, self.lower, self.upper, out=features)
        if self.center is not None:
            features -= self.center
        if self.scale is not None:
            features /= self.scale
        features *= (self._shrink(features) / self.divisor)[:, None]
        if self.constant > 0.0:
            A[:, d] = self.constant / self.divisor
        return A

    def _shrink(self, features: FloatArray) -> FloatArray:
        """Return the factors that bring rows to ``row_norm``; 1 for rows that are short enough."""
        with np.errstate(over="ignore"):
            norms: FloatArray = np.sqrt(np.einsum("ij,ij->i", features, features))
        factors = np.ones_like(norms)
        np.divide(
            self.row_norm * _INWARD, norms, out=factors, where=norms > self.row_norm * _INWARD
        )
        return factors


@dataclass(frozen=True)
class TargetMap:
    """Map a target to [-1, 1]: clip to ``[lower, upper]``, subtract the centre, divide, clip.

    Parameters
    ----------
    lower, upper : float, optional
        Public bounds, -1 and 1 by default; values outside are moved to the nearer bound.
    center : float, default 0.0
        Public centre.
    scale : float, default 1.0
        Public scale.
    """

    lower: float = -1.0
    upper: float = 1.0
    center: float = 0.0
    scale: float = 1.0

    def __call__(self, y: npt.NDArray[np.floating[Any]]) -> FloatArray:
        """Map a block of targets to a new float64 array."""
        clipped = np.clip(np.asarray(y, dtype=np.float64), self.lower, self.upper)
        return np.asarray(np.clip((clipped - self.center) / self.scale, -1.0, 1.0))
