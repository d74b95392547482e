"""Gaussian rows with a given covariance, literally or by an equal distribution; released Grams.

Given Z the rows of ``S_G Z + eta xi`` are independent N(0, Z'Z + eta^2 I).  So they can be
drawn as ``G R`` with G standard normal and ``R'R = Z'Z + eta^2 I``, without S_G and xi; and
their Gram matrix is Wishart, which one triangular draw gives (docs/proofs/exact_sampling.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
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

    def matrix(self) -> FloatArray:
        """Return the matrix itself."""
        product = reduce(np.matmul, self.factors)
        return np.asarray(product.T @ product)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.matrix(), dtype=dtype)


class CovarianceRoot(NamedTuple):
    """A matrix R with ``R'R`` a covariance, and whether it is triangular and invertible."""

    matrix: FloatArray
    triangular: bool


def covariance_root(gram: FloatArray, eta: float) -> CovarianceRoot:
    """Return R with ``R'R = gram + eta^2 I``, the covariance of the rows (Algorithm 1, line 5).

    It is a Cholesky factor where there is one. A matrix that is singular in floating point gets a
    symmetric root, with zeros in place of its tiny negative eigenvalues.
    """
    covariance = gram + eta**2 * np.eye(len(gram))
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


def literal_rows(
    blocks: Iterable[FloatArray], k: int, eta: float, rng: np.random.Generator
) -> FloatArray:
    """Draw ``S_G Z + eta xi`` as written, k rows, for Z block by block (Algorithm 1, line 5)."""
    sketch: FloatArray | None = None
    for Z in blocks:
        if sketch is None:
            sketch = eta * rng.standard_normal((k, Z.shape[1]))
        sketch += rng.standard_normal((k, len(Z))) @ Z
    assert sketch is not None
    return sketch


def gaussian_rows(root: CovarianceRoot, k: int, rng: np.random.Generator) -> FloatArray:
    """Draw k independent rows of covariance ``R'R``: Algorithm 1, line 5, in distribution."""
    return np.asarray(rng.standard_normal((k, len(root.matrix))) @ root.matrix)


def gaussian_gram(root: CovarianceRoot, k: int, rng: np.random.Generator) -> PrivateGram:
    """Draw the Gram matrix of k independent rows of covariance ``R'R``: a Wishart matrix.

    Paper: Algorithm 2, line 7 uses the sketch through this matrix only.
    Deviation: for k >= d, Bartlett's decomposition ``R' L L' R``, which has the same distribution
    and stays a product of triangular factors.
    """
    d = len(root.matrix)
    if k < d:
        return PrivateGram((gaussian_rows(root, k, rng),))
    upper = np.zeros((d, d))
    upper[np.triu_indices(d, 1)] = rng.standard_normal(d * (d - 1) // 2)
    upper[np.diag_indices(d)] = np.sqrt(rng.chisquare(k - np.arange(d)))
    return PrivateGram((upper, root.matrix), triangular=root.triangular)
