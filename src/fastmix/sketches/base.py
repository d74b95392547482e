"""What every sketch is: a distribution over matrices, and a matrix drawn from it.

Neither knows epsilon. A new sketch gives its draw the two products `SketchDraw._forward` and
`SketchDraw._backward` on a tile of columns; checks, tiling, the dense matrix and the
quantities of the privacy analysis follow.  It overrides those that it can compute faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray, Floats
from fastmix._validation import check_integer, type_error, value_error
from fastmix.kernels.mapped import Mapped
from fastmix.random import RandomState

#: A matrix of data, which a public map may stand before.
Columns: TypeAlias = Floats | Mapped


@dataclass(frozen=True)
class Sketch(ABC):
    """A distribution over ``k2 x n`` matrices, for n rows of data; both numbers are at least 1."""

    k2: int
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k2", check_integer("k2", self.k2, at_least=1))
        object.__setattr__(self, "n", check_integer("n", self.n, at_least=1))

    @abstractmethod
    def sample(self, rng: RandomState = None) -> SketchDraw:
        """Draw one matrix; what an int gives is reproducible. The draw is public."""


@dataclass(frozen=True, eq=False)
class SketchDraw(ABC):
    """One drawn ``k2 x n`` matrix S, as an immutable linear map from n rows of data to k2."""

    k2: int
    n: int

    # Columns worked on at a time: temporaries are n x _tile, whatever the width of the data.
    _tile: ClassVar[int] = 8
    # Whether all columns are known to have norm 1.
    _unit_columns: ClassVar[bool] = False

    def apply(self, X: npt.ArrayLike | Mapped) -> FloatArray:
        """Return ``S X`` in float64, of shape (k2, d).

        X is a matrix of float32 or float64 in any memory order, or seen through a public map.
        """
        return self._sketch(as_columns(X, self.n), distortion=False)[0]

    def to_dense(self) -> FloatArray:
        """Return the matrix itself as a new array; small sizes only."""
        S = np.empty((self.k2, self.n))
        for start in range(0, self.n, self._tile):
            width = min(self._tile, self.n - start)
            S[:, start : start + width] = self._forward(np.eye(self.n, width, -start))
        return S

    @cached_property
    def column_norms(self) -> FloatArray:
        """Euclidean norms of the ``n`` columns; read-only."""
        unit = self._unit_columns
        return read_only(np.ones(self.n) if unit else np.linalg.norm(self.to_dense(), axis=0))

    @property
    def largest_norm(self) -> float:
        """Largest norm of a column: rows of X~ are that much longer than those of X."""
        return 1.0 if self._unit_columns else float(self.column_norms.max())

    @cached_property
    def coherence(self) -> float:
        """Largest absolute inner product of two different unit columns, from 0 to 1.

        Paper: Delta-hat of Algorithm 1 and Appendix F.
        Deviation: columns are brought to length one first; a zero column stays zero.
        """
        U = self.to_dense() * inverse_or_zero(self.column_norms)
        largest = 0.0
        for start in range(0, self.n, 256):
            gram = np.abs(U[:, start : start + 256].T @ U[:, start:])
            np.fill_diagonal(gram, 0.0)
            largest = max(largest, float(gram.max()))
        return min(1.0, largest)

    def sketch_and_distortion(self, X: npt.ArrayLike | Mapped) -> tuple[FloatArray, float]:
        """Return ``S X`` and the largest row norm m-hat of ``(S~'S~ - I) X~``; neither is private.

        Paper: m-hat of Algorithm 1; how to compute it, Appendix C.4.2.
        Deviation: for unit columns ``S~ = S diag(1/||u_i||)`` and ``X~ = diag(||u_i||) X``, so that
        ``S~ X~ = S X``. A norm bound C on the rows of X becomes ``C * largest_norm``.
        Sensitive inputs: X.
        """
        return self._sketch(as_columns(X, self.n), distortion=True)

    def _sketch(self, X: Columns, *, distortion: bool) -> tuple[FloatArray, float]:
        """Return S X, and m-hat if it is asked for; overridden where one pass gives both."""
        columns = np.asarray(X)
        Z = np.empty((self.k2, columns.shape[1]))
        squares = np.zeros(self.n)
        for tile in self._tiles(columns):
            Z[:, tile] = self._forward(columns[:, tile])
            if distortion:
                # A zero column keeps its row of X out of the sketch, and is left out of both terms.
                norms = self.column_norms[:, None]
                rest = self._backward(Z[:, tile]) * inverse_or_zero(norms)
                rest -= norms * columns[:, tile]
                squares += np.einsum("ij,ij->i", rest, rest)
        return Z, float(np.sqrt(squares.max()))

    @abstractmethod
    def _forward(self, tile: Floats) -> FloatArray:
        """Return S times an ``n x w`` tile, in float64."""

    @abstractmethod
    def _backward(self, tile: Floats) -> FloatArray:
        """Return S' times a ``k2 x w`` tile, in float64."""

    def _tiles(self, columns: Floats) -> Iterator[slice]:
        """Cut the columns of an array into slices of at most ``_tile`` columns."""
        return (slice(j, j + self._tile) for j in range(0, columns.shape[1], self._tile))

    def _hold(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        """Check a field that is an array and replace it by a read-only copy."""
        array = np.asarray(getattr(self, name))
        if array.shape != shape:
            raise value_error(name, f"have shape {shape}", array)
        object.__setattr__(self, name, read_only(array.astype(dtype)))

    def __reduce__(self) -> tuple[Any, ...]:
        # NumPy forgets the read-only flag in a pickle; building the draw anew sets it again.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))


class BlockDraw(SketchDraw):
    """A draw that can be applied to rows in blocks: they need never be in one place.

    The sketch of all rows is the sum of `partial_sketch` over any cut of the rows into ranges, and
    the distortion is the maximum of `partial_distortion` over them.
    """

    @abstractmethod
    def partial_sketch(self, rows: Mapped, offset: int) -> FloatArray:
        """Return the part of ``S X`` from rows ``offset`` and following; parts add up to it."""

    @abstractmethod
    def partial_distortion(self, rows: Mapped, Z: FloatArray, offset: int) -> float:
        """Return the largest norm of ``S'Z - X`` over such rows, Z being the whole ``S X``."""

    @abstractmethod
    def probe(self, offset: int, count: int) -> FloatArray:
        """Return ``count`` entries of c'S for a public vector c, none above 1 in size.

        With `probed`, they tell whether the rows are still those that Z was made of.
        """

    @abstractmethod
    def probed(self, Z: FloatArray) -> FloatArray:
        """Return c'Z for the same vector c."""


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array itself, closed to writing."""
    array.setflags(write=False)
    return array


def inverse_or_zero(norms: FloatArray) -> FloatArray:
    """Return ``1 / norms``, with 0 where a norm is 0."""
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)


def as_columns(X: npt.ArrayLike | Mapped, rows: int) -> Columns:
    """Return a checked operand of a sketch."""
    array = X.X if isinstance(X, Mapped) else np.asarray(X)
    if not isinstance(X, Mapped) and array.dtype not in (np.float32, np.float64):
        raise type_error("X", "hold float32 or float64 numbers", array)
    if array.ndim != 2 or len(array) != rows:
        raise value_error("X", f"have two axes and {rows} rows", array)
    return X if isinstance(X, Mapped) else array


def as_mapped(columns: Columns) -> Mapped:
    """Return columns as the kernels take them."""
    return columns if isinstance(columns, Mapped) else Mapped(columns)
