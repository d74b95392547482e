"""Public maps of single records: centre, scale, clip.

A map sees one record at a time and only public constants, so it changes no neighbouring pair
into anything but a neighbouring pair, and what it returns obeys its bound whatever it was given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_real
from fastmix.kernels.passes import Mapped, Targets, squared_norms

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

    def __call__(self, X: npt.NDArray[np.floating[Any]]) -> Mapped:
        """Return the mapped rows of an array, which is read once for the norms of its rows.

        Raises
        ------
        ValueError
            If an entry is NaN or infinite.
        """
        inverse = None if self.scale is None else 1.0 / self.scale
        plain = Mapped(X, self.lower, self.upper, self.center, inverse)
        squares = squared_norms(plain)
        if np.isnan(squares.max()):
            raise ValueError(
                f"X must be finite; got NaN or infinity in an array of shape {X.shape}."
            )
        longest = self.row_norm * _INWARD
        factors = None
        if squares.max() > longest**2:
            factors = np.ones_like(squares)
            np.divide(longest, np.sqrt(squares), out=factors, where=squares > longest**2)
        if self.divisor != 1.0:
            inverse = (np.ones(X.shape[1]) if inverse is None else inverse) / self.divisor
        return replace(
            plain, inverse_scale=inverse, factors=factors, constant=self.constant / self.divisor
        )


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

    def __call__(self, y: FloatArray) -> Targets:
        """Return mapped targets."""
        return Targets(y, self.lower, self.upper, self.center, 1.0 / self.scale)
