"""Gaussian rows with a given covariance: literally, or by an equal distribution.

Given Z the rows of ``S_G Z + eta xi`` are independent N(0, Z'Z + eta^2 I).  So they can be
drawn as ``G R`` with G standard normal and ``R'R = Z'Z + eta^2 I``, without S_G and xi; and
their Gram matrix is Wishart, which one triangular draw gives (docs/proofs/exact_sampling.md).
"""

from collections.abc import Iterable

import numpy as np

from fastmix._types import FloatArray
from fastmix.mechanisms.gram import CovarianceRoot, PrivateGram, square_root


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


def covariance_root(gram: FloatArray, eta: float) -> CovarianceRoot:
    """Return R with ``R'R = gram + eta^2 I``, the covariance of the rows (Algorithm 1, line 5)."""
    return square_root(gram + eta**2 * np.eye(len(gram)))


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
