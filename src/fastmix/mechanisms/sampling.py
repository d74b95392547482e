"""Gaussian rows with a given covariance: literally, or by an equal distribution.

Given Z the rows of ``S_G Z + eta xi`` are independent N(0, Z'Z + eta^2 I).  So they can be
drawn as ``G R`` with G standard normal and ``R'R = Z'Z + eta^2 I``, without S_G and xi; and
their Gram matrix is Wishart, which one triangular draw gives (docs/proofs/exact_sampling.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky

from fastmix.mechanisms.gram import PrivateGram

__all__ = ["CovarianceRoot", "covariance_root", "gaussian_gram", "gaussian_rows", "literal_rows"]

FloatArray = npt.NDArray[np.float64]


def literal_rows(
    blocks: Iterable[FloatArray], k: int, eta: float, rng: np.random.Generator
) -> FloatArray:
    """Draw ``S_G Z + eta xi`` as written, k rows, for Z given block by block.

    Notes
    -----
    Paper: Algorithm 1, line 5.
    Sensitive inputs: blocks.
    """
    sketch: FloatArray | None = None
    for Z in blocks:
        if sketch is None:
            sketch = eta * rng.standard_normal((k, Z.shape[1]))
        sketch += rng.standard_normal((k, len(Z))) @ Z
    assert sketch is not None
    return sketch


@dataclass(frozen=True)
class CovarianceRoot:
    """A matrix R with ``R'R`` a covariance, and whether it is triangular and invertible."""

    matrix: FloatArray
    triangular: bool


def covariance_root(gram: FloatArray, eta: float) -> CovarianceRoot:
    """Return R with ``R'R = gram + eta^2 I``.

    Notes
    -----
    Paper: the covariance of the rows in Algorithm 1, line 5.
    Deviation: a Cholesky factor where one exists. A matrix that is singular in floating point
    gets a symmetric root, whose tiny negative eigenvalues are taken as zero.
    Sensitive inputs: gram.
    """
    covariance = gram + eta**2 * np.eye(len(gram))
    try:
        return CovarianceRoot(np.asarray(cholesky(covariance, check_finite=False)), True)
    except LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return CovarianceRoot(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T, False)


def gaussian_rows(root: CovarianceRoot, k: int, rng: np.random.Generator) -> FloatArray:
    """Draw k independent rows of covariance ``R'R``.

    Notes
    -----
    Paper: Algorithm 1, line 5, in distribution.
    Sensitive inputs: root.
    """
    return np.asarray(rng.standard_normal((k, len(root.matrix))) @ root.matrix)


def gaussian_gram(root: CovarianceRoot, k: int, rng: np.random.Generator) -> PrivateGram:
    """Draw the Gram matrix of k independent rows of covariance ``R'R``: a Wishart matrix.

    Notes
    -----
    Paper: Algorithm 2, line 7 uses the sketch through this matrix only.
    Deviation: for k >= d, Bartlett's decomposition ``R' L L' R``, which has the same distribution
    and stays a product of triangular factors.
    Sensitive inputs: root.
    """
    d = len(root.matrix)
    if k < d:
        return PrivateGram((gaussian_rows(root, k, rng),))
    upper = np.zeros((d, d))
    upper[np.triu_indices(d, 1)] = rng.standard_normal(d * (d - 1) // 2)
    upper[np.diag_indices(d)] = np.sqrt(rng.chisquare(k - np.arange(d)))
    return PrivateGram((upper, root.matrix), triangular=root.triangular)
