"""The sparse sketch in NumPy and SciPy: what its compiled passes are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fastmix._types import FloatArray
from fastmix.kernels.reference import map_rows, row_blocks

if TYPE_CHECKING:
    from fastmix.kernels.mapped import Mapped

Words = npt.NDArray[np.uint32]


def sparse_matrix(words: Words, k2: int) -> csr_array:
    """Return S' for words of shape (n, s): row i has an entry in each of s equal parts.

    The upper 31 bits of a word say where in its part the entry is, as a share of its length, and
    the lowest bit gives the sign.
    """
    n, s = words.shape
    part = k2 // s
    places = ((words >> np.uint32(1)).astype(np.uint64) * np.uint64(part)) >> np.uint64(31)
    columns = places.astype(np.int64) + part * np.arange(s)
    signs = (1.0 - 2.0 * (words & np.uint32(1))) / np.sqrt(s)
    return csr_array((signs.reshape(-1), columns.reshape(-1), s * np.arange(n + 1)), (n, k2))


def sparse_sketch(A: Mapped, words: Words, k2: int) -> FloatArray:
    """Return ``S A``, of shape (k2, p)."""
    Z = np.zeros((k2, A.shape[1]))
    for start, stop in row_blocks(A):
        Z += sparse_matrix(words[start:stop], k2).T @ map_rows(A, start, stop)
    return Z


def sparse_distortion(A: Mapped, Z: FloatArray, words: Words) -> float:
    """Return the largest row norm of ``S'Z - A``."""
    largest = []
    for start, stop in row_blocks(A):
        rest = sparse_matrix(words[start:stop], len(Z)) @ Z - map_rows(A, start, stop)
        largest.append(np.einsum("ij,ij->i", rest, rest).max())
    return float(np.sqrt(np.max(largest)))
