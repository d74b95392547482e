"""A released Gram matrix, kept in the form that is cheapest to solve with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

__all__ = ["PrivateGram", "symmetric_solve"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PrivateGram:
    """The Gram matrix ``P'P`` of released rows, for a product P of factors.

    Parameters
    ----------
    factors : tuple of numpy.ndarray
        P is their product, from left to right.
    triangular : bool
        Whether all factors are square, upper triangular and invertible; then a linear system
        costs O(d^2) and the matrix is never formed.
    """

    factors: tuple[FloatArray, ...]
    triangular: bool = False

    def solve(self, b: FloatArray) -> FloatArray:
        """Return x with ``P'P x = b``; of least norm if the matrix is singular."""
        if not self.triangular:
            return symmetric_solve(self.matrix(), b)
        for factor in reversed(self.factors):
            b = solve_triangular(factor, b, trans="T", check_finite=False)
        for factor in self.factors:
            b = solve_triangular(factor, b, check_finite=False)
        return b

    def shifted(self, shift: float) -> PrivateGram:
        """Return ``P'P + shift I``, or this one if that is not positive definite."""
        matrix = self.matrix()
        matrix[np.diag_indices_from(matrix)] += shift
        return _factored(matrix) or self

    def bordered(self, mean: FloatArray, weight: float) -> PrivateGram:
        """Return ``P'P + weight mean mean'``, P'P with zeros for the columns that it lacks."""
        matrix = weight * np.outer(mean, mean)
        size = self.factors[-1].shape[1]
        matrix[:size, :size] += self.matrix()
        return _factored(matrix) or PrivateGram((_symmetric_root(matrix),))

    def matrix(self) -> FloatArray:
        """Return the matrix itself."""
        product = self.factors[0]
        for factor in self.factors[1:]:
            product = product @ factor
        return product.T @ product

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.matrix(), dtype=dtype)


def _factored(matrix: FloatArray) -> PrivateGram | None:
    """Return a matrix with its Cholesky factor, or None if it has none."""
    try:
        return PrivateGram((np.asarray(cholesky(matrix, check_finite=False)),), triangular=True)
    except LinAlgError:
        return None


def _symmetric_root(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


def symmetric_solve(A: FloatArray, b: FloatArray) -> FloatArray:
    """Solve A x = b for a released symmetric matrix; the least-norm solution if it is singular."""
    tiny = len(A) * np.finfo(np.float64).eps
    try:
        factor, lower = cho_factor(A, check_finite=False)
        pivots = np.diag(factor) ** 2
        if pivots.min() > tiny * pivots.max():
            return np.asarray(cho_solve((factor, lower), b, check_finite=False))
    except LinAlgError:
        pass
    values, vectors = np.linalg.eigh(A)
    usable = np.abs(values) > tiny * max(float(np.abs(values).max()), 1e-300)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=usable)
    return np.asarray(vectors @ (inverse * (vectors.T @ b)))
