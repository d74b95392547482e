"""A released Gram matrix, kept in the form that is cheapest to solve with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from fastmix._types import FloatArray


@dataclass(frozen=True)
class PrivateGram:
    """The Gram matrix ``P'P`` of released rows, for a product P of factors, from left to right.

    If all factors are ``triangular`` (square, upper triangular, invertible), a linear system costs
    O(d^2) and the matrix is never formed.
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
        root = square_root(matrix)
        return PrivateGram((root.matrix,), triangular=True) if root.triangular else self

    def bordered(self, mean: FloatArray, weight: float) -> PrivateGram:
        """Return ``P'P + weight mean mean'``, P'P with zeros for the columns that it lacks."""
        matrix = weight * np.outer(mean, mean)
        size = self.factors[-1].shape[1]
        matrix[:size, :size] += self.matrix()
        root = square_root(matrix)
        return PrivateGram((root.matrix,), root.triangular)

    def matrix(self) -> FloatArray:
        """Return the matrix itself."""
        product = self.factors[0]
        for factor in self.factors[1:]:
            product = product @ factor
        return product.T @ product

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.matrix(), dtype=dtype)


class CovarianceRoot(NamedTuple):
    """A matrix R with ``R'R`` a covariance, and whether it is triangular and invertible."""

    matrix: FloatArray
    triangular: bool


def square_root(covariance: FloatArray) -> CovarianceRoot:
    """Return R with ``R'R`` a given matrix: a Cholesky factor where there is one.

    A matrix that is singular in floating point gets a symmetric root, whose tiny negative
    eigenvalues are taken as zero.
    """
    try:
        return CovarianceRoot(np.asarray(cholesky(covariance, check_finite=False)), True)
    except LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return CovarianceRoot(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T, False)


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
