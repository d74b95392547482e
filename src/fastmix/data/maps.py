"""Public maps of single records: centre, scale, clip.

A map sees one record at a time and only public constants, and what it returns obeys its bound
whatever it was given.  Neighbours are taken after the map: an absent record is a zero row with a
zero target, whatever the map would make of a record of zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.errors import InvalidValueError
from fastmix.kernels.mapped import Mapped, Targets, map_rows, squared_norms
from fastmix.schema.values import label_places

#: Bounds outside this range would overflow or vanish when squared.
_SMALLEST, _LARGEST = 1e-100, 1e100
#: Below this a factor loses digits; it is taken as 0, so that the row is zero and never too long.
_VANISHING = 1e-307


def one_hot(
    X: npt.NDArray[np.floating[Any]], dummies: Sequence[Sequence[int]]
) -> npt.NDArray[np.floating[Any]]:
    """Return a copy in which every row holds at most one 1 in each group of columns, and zeros.

    The largest entry of a row in a group becomes 1 if it is at least 0.5; of equal ones it is the
    first. The others become 0. What a row becomes depends on that row alone.
    """
    X = X.copy()
    for columns in dummies:
        own = X[:, list(columns)]
        if not np.isfinite(own).all():
            raise InvalidValueError
        largest = own.argmax(axis=1)
        there = np.flatnonzero(own[np.arange(len(own)), largest] >= 0.5)
        own[:] = 0.0
        own[there, largest[there]] = 1.0
        X[:, list(columns)] = own
    return X


@dataclass(frozen=True)
class RowMap:
    """Map a record to a row of Euclidean norm at most `bound`.

    The columns of each of the ``dummies`` are made dummies (`one_hot`). Features are clipped to
    ``[lower, upper]``, centred and scaled (an infinite scale makes a feature 0), shortened to
    ``row_norm`` if longer, joined by the constant column of an intercept (0 means that there is
    none), and divided by ``divisor``.
    """

    row_norm: float
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    center: FloatArray | None = None
    scale: FloatArray | None = None
    constant: float = 0.0
    divisor: float = 1.0
    dummies: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        check_real("row_norm", self.row_norm, at_least=_SMALLEST, at_most=_LARGEST)
        check_real("constant", self.constant, at_least=0.0, at_most=_LARGEST)
        check_real("divisor", self.divisor, at_least=_SMALLEST, at_most=_LARGEST)
        shifted = self.center is not None or self.scale is not None
        for name in ("lower", "upper"):
            side = getattr(self, name)
            # Only bounded features are centred or scaled, so that no finite record overflows.
            if shifted and side is None:
                raise value_error(name, "be given with a centre or a scale", side)
            if side is not None and not np.abs(side).max() <= _LARGEST:
                raise value_error(name, f"be at most {_LARGEST:g} in magnitude", side)

    @property
    def bound(self) -> float:
        """Bound on the norm of every mapped row."""
        return float(np.hypot(self.row_norm, self.constant) / self.divisor)

    @cached_property
    def shortens(self) -> bool:
        """Whether a record within the bounds can be longer than ``row_norm``."""
        if self.lower is None or self.upper is None:
            return True
        center = 0.0 if self.center is None else self.center
        reach = np.maximum(np.abs(self.lower - center), np.abs(self.upper - center))
        reach = reach if self.scale is None else reach / self.scale
        for columns in map(list, self.dummies):
            if self.center is None or not self.center[columns].any():  # one is not 0 at most
                reach[columns] = np.where(np.arange(len(columns)), 0.0, reach[columns].max())
        corner = np.linalg.norm(reach)
        return not corner * (1.0 + (len(reach) + 16) * 2.0**-52) <= self._longest(len(reach))

    def width(self, d: int) -> int:
        """Return the number of columns of a mapped row of ``d`` features."""
        return d + (self.constant > 0.0)

    def centred(self, mean: FloatArray) -> RowMap:
        """Return the map to the features of a mapped row minus ``mean``, with the same bound.

        The constant is left out, and rows are shortened after the mean is taken off, not before.
        """
        if self.center is None or self.scale is None:
            raise value_error("center", "be given, with a scale, to be moved", self.center)
        unit = np.where(np.isfinite(self.scale), self.scale, 0.0) * self.divisor
        return replace(
            self,
            row_norm=self.bound * self.divisor,
            center=self.center + unit * mean[: len(unit)],
            constant=0.0,
        )

    def __call__(self, X: npt.NDArray[np.floating[Any]], *, checked: bool = False) -> Mapped:
        """Return the mapped rows of an array, which is read once for the norms of its rows.

        Records that were ``checked`` before are not read, unless they may have to be shortened.
        """
        if self.dummies:
            X = one_hot(X, self.dummies)
        inverse = None if self.scale is None else 1.0 / self.scale
        plain = Mapped(X, self.lower, self.upper, self.center, inverse)
        factors = None
        if self.shortens or not checked:
            squares = squared_norms(plain)
            largest = float(squares.max(initial=0.0))
            if math.isnan(largest):
                raise InvalidValueError
            factors = self._shrink(plain, squares, largest)
        if self.divisor != 1.0 and inverse is not None:
            inverse = inverse / self.divisor
        elif self.divisor != 1.0:
            # An unbounded entry must be shrunk before it may grow.
            factors = (np.ones(len(X)) if factors is None else factors) / self.divisor
            factors[factors < _VANISHING] = 0.0
        return replace(
            plain, inverse_scale=inverse, factors=factors, constant=self.constant / self.divisor
        )

    def _shrink(self, plain: Mapped, squares: FloatArray, largest: float) -> FloatArray | None:
        """Return the factors that bring rows to ``row_norm``; None if all rows are short enough."""
        longest = self._longest(plain.shape[1])
        if not largest > longest**2:
            return None
        endless = np.flatnonzero(np.isinf(squares)) if math.isinf(largest) else ()
        factors = np.sqrt(squares, out=squares)  # in place: min(1, longest / norm)
        with np.errstate(divide="ignore"):
            np.minimum(np.divide(longest, factors, out=factors), 1.0, out=factors)
        for i in map(int, endless):
            row = map_rows(plain, i, i + 1)[0]
            size = np.abs(row).max()
            factors[i] = longest / size / np.linalg.norm(row / size)
        if not longest / math.sqrt(largest) >= _VANISHING:
            factors[factors < _VANISHING] = 0.0
        return factors

    def _longest(self, d: int) -> float:
        """Return ``row_norm`` less a hair, more in long sums: rounding cannot exceed it."""
        return self.row_norm * (1.0 - (d + 16) * 2.0**-52)


@dataclass(frozen=True)
class TargetMap:
    """Map a target to [-1, 1]: clip to ``[lower, upper]``, subtract the centre, divide, clip."""

    lower: float = -1.0
    upper: float = 1.0
    center: float = 0.0
    scale: float = 1.0

    def __call__(self, y: FloatArray) -> Targets:
        return Targets(y, self.lower, self.upper, self.center, 1.0 / self.scale)


@dataclass(frozen=True, eq=False)
class LabelMap:
    """Map labels from a public list to signed public weights, and all others to 0: no record.

    ``known`` are the labels as sorted numbers. Of two, the second one counts as positive; with
    ``own``, the label at that place does, against all others.
    """

    known: FloatArray
    weights: FloatArray
    own: int = 1

    def __call__(self, y: FloatArray) -> Targets:
        at = label_places(y, self.known)
        sizes = np.where(at >= 0, self.weights[at], 0.0)
        return Targets(np.where(at == self.own, sizes, -sizes))
