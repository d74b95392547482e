"""Passes over rows in other coordinates: lengths, moments, counts of gradients."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix.kernels import reference
from fastmix.kernels._backend import threads
from fastmix.kernels.mapped import FEW_COLUMNS, Mapped, Targets, compiled, map_rows, packed

#: Bytes of mapped rows whose spikes are measured at a time.
_SPIKED_BYTES = 16 << 20


@dataclass(frozen=True, eq=False)
class Spiked:
    """The symmetric matrix ``u (I - V C V')``: a multiple of the identity but for few spikes.

    ``vectors`` V are orthonormal columns, and ``shrunk`` is the diagonal of C, in [0, 1). It is an
    array in products and for NumPy, and `row_lengths` takes n d r steps for r columns of V.
    """

    unit: float
    vectors: FloatArray
    shrunk: FloatArray

    __array_ufunc__ = None  # so that products with arrays come here

    @cached_property
    def matrix(self) -> FloatArray:
        """The matrix itself."""
        return np.asarray(self @ np.eye(len(self.vectors)))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return (len(self.vectors),) * 2

    def copy(self) -> "Spiked":
        """Return the same matrix, which nobody can change."""
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.matrix, dtype=dtype)

    def __matmul__(self, other: FloatArray) -> FloatArray:
        return np.asarray((other.T @ self).T)

    def __rmatmul__(self, other: FloatArray) -> FloatArray:
        along = (other @ self.vectors) * self.shrunk
        return np.asarray(self.unit * (other - along @ self.vectors.T))

    def lengths(self, A: Mapped, least: float) -> FloatArray:
        r"""Return bounds on the lengths of ``T' a`` for the rows a of A, at least ``least``.

        Their squares are :math:`u^2 (|a|^2 - |D V^\top a|^2)` with :math:`D^2 = I - (I - C)^2`. The
        bound adds :math:`(p + 64) 2^{-48} |a|^2` for rounding, in which :math:`V^\top V` is I to
        within :math:`2^{-44}`.
        """
        D = np.sqrt(1.0 - (1.0 - self.shrunk) ** 2)
        n, p = A.shape
        left, step = np.empty(n), max(1, _SPIKED_BYTES // (8 * p))
        for start in range(0, n, step):
            part = slice(start, start + step)
            along, squares = self._along(A, part)
            spikes = np.sum((along * D) ** 2, axis=1)
            left[part] = np.maximum(squares - spikes, 0.0) + (p + 64) * 2.0**-48 * squares
        return np.maximum(self.unit * np.sqrt(left) * (1.0 + 2.0**-48), least)

    def _along(self, A: Mapped, part: slice) -> tuple[FloatArray, FloatArray]:
        """Return ``V' a`` and ``|a|^2`` for some rows, which are formed only if they have a map."""
        if any(side is not None for side in (A.lower, A.upper, A.center, A.inverse_scale)):
            rows = map_rows(A, part.start, part.stop)
            return rows @ self.vectors, np.einsum("ij,ij->i", rows, rows)
        rows = np.asarray(A.X[part], dtype=np.float64)
        along, squares = rows @ self.vectors[: rows.shape[1]], np.einsum("ij,ij->i", rows, rows)
        if A.factors is not None:
            along, squares = along * A.factors[part, None], squares * A.factors[part] ** 2
        if A.constant:
            along, squares = along + A.constant * self.vectors[-1], squares + A.constant**2
        return along, squares


def row_lengths(
    A: Mapped,
    transform: FloatArray | Spiked,
    least: float,
    *,
    targets: Targets | None = None,
    norm: float | None = None,
    single: bool = False,
) -> FloatArray:
    r"""Return bounds on the lengths of ``T' a`` for the rows a of A, at least ``least``.

    With ``targets`` they are those of ``T' (a, y)``. A triangular T, with zeros below its diagonal,
    takes half the time, and ``single`` precision half of that.

    The bound is the computed length, and :math:`4 (p + 16) u \|T\|_F` times the norm of the row, or
    a ``norm`` that no row exceeds; u is the unit of rounding. Entries of T and a are rounded once,
    each of p products and sums once, and so are p squares, their sums and the root: that is less
    than half of it. In single precision, numbers that are too small for it, and their squares,
    add less than :math:`2^{-60} (1 + \|T\|_F)`.
    """
    if isinstance(transform, Spiked):
        return transform.lengths(A, least)
    size = float(np.linalg.norm(transform))
    run = compiled("lengths", A, Targets(np.empty(0)) if targets is None else targets)
    if run is None or not size < np.inf:
        return reference.row_lengths(A, transform, least, targets)
    single = single and size < 2.0**60
    hair = length_error(transform, single=single)
    speck = 2.0**-60 * (1.0 + size) if single else 0.0
    if norm is not None:
        hair, speck = 0.0, speck + hair * norm
    lengths = np.empty(A.shape[0])
    run(packed(transform).reshape(-1), single, hair, speck, least, lengths, threads())
    return lengths


def norm_bound(transform: FloatArray | Spiked) -> float:
    """Return a bound on the spectral norm of T."""
    if isinstance(transform, Spiked):
        return transform.unit * (1.0 + 2.0**-40)
    sides = np.linalg.norm(transform, 1) * np.linalg.norm(transform, np.inf)
    return float(np.sqrt(sides))


def length_error(transform: FloatArray, *, single: bool) -> float:
    """Return what `row_lengths` adds to lengths, in units of the norm of a row."""
    unit = 2.0**-24 if single else 2.0**-53
    return 4.0 * (len(transform) + 16) * unit * float(np.linalg.norm(transform))


def second_moments(
    A: Mapped,
    targets: Targets,
    transform: FloatArray,
    longest: float,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return ``Z'Z``, or that with weights, for rows ``T'(a, y)`` shortened to ``longest``."""
    size = A.shape[1] + 1
    few = size <= FEW_COLUMNS and weights is None
    run = compiled("second_moments", A, targets) if few else None
    if run is None:
        return reference.second_moments(A, targets, transform, longest, weights)
    total = np.empty((size, size))
    run(packed(transform).reshape(-1), longest, total.reshape(-1), threads())
    return total


def slope_counts(
    A: Mapped,
    targets: Targets,
    theta: FloatArray,
    lengths: FloatArray,
    longest: float,
    edges: FloatArray,
) -> FloatArray:
    """Return how many ``|y - a' theta|``, times the lengths of the rows, lie in each bin.

    A row that is longer than ``longest`` counts as if it, and its target, were shortened. Bin j
    holds sizes in (edge j, edge j+1], the last one all beyond; all are NaN if any is.
    """
    run = compiled("slope_counts", A, targets)
    if run is None:
        return reference.slope_counts(A, targets, theta, lengths, longest, edges)
    counts = np.empty(len(edges) - 1)
    real = run(packed(theta), packed(lengths), longest, packed(edges), counts, threads())
    return counts if real else np.full_like(counts, np.nan)
