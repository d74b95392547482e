"""Passes of the sparse sketch over the rows of an array that is seen through a public map.

They work as those of `fastmix.kernels.mapped` do: on the caller's array, without an n x d copy,
with results that do not depend on the number of threads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.kernels._backend import threads
from fastmix.kernels.mapped import Mapped, compiled
from fastmix.kernels.reference_sparse import Words, sparse_distortion, sparse_sketch


def sketch(A: Mapped, words: Words, k2: int) -> FloatArray:
    """Return ``S A``, of shape (k2, p).

    Row i of ``words`` says where the s entries of column i of S are, and their signs
    (`reference_sparse.sparse_matrix`).
    """
    run = _compiled("sparse_sketch", A, words, k2)
    if run is None:
        return sparse_sketch(A, words, k2)
    Z = np.empty((k2, A.shape[1]))
    run(Z.reshape(-1), threads())
    return Z


def distortion(A: Mapped, Z: FloatArray, words: Words) -> float:
    """Return the largest row norm of ``S'Z - A``."""
    run = _compiled("sparse_distortion", A, words, len(Z))
    if run is None:
        return sparse_distortion(A, Z, words)
    return float(run(np.require(Z, np.float64, ["C", "A"]).reshape(-1), threads()))


def _compiled(name: str, A: Mapped, words: Words, k2: int) -> Callable[..., Any] | None:
    """Return a compiled pass over A with these words; None means NumPy."""
    run = compiled(name, A)
    if run is None:
        return None
    return partial(run, np.ascontiguousarray(words).reshape(-1), words.shape[1], k2)
