"""Passes of the Kerdock sketch over the rows of an array that is seen through a public map.

They work as those of `fastmix.kernels.mapped` do: on the caller's array, without an n x d copy,
with results that do not depend on the number of threads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.kernels import reference_kerdock
from fastmix.kernels._backend import threads
from fastmix.kernels.mapped import Mapped, compiled
from fastmix.kernels.reference import Signs
from fastmix.kernels.reference_kerdock import Forms

#: Blocks of fewer than 2**6 rows are left to NumPy: there are at most 2**10 rows of them.
_FEW_BITS = 6


def sketch(A: Mapped, signs: Signs, forms: Forms, offset: int = 0) -> FloatArray:
    """Return the sum of ``D_b H B_b A_b`` over the blocks of A, of shape (k2, p).

    Rows of A are rows ``offset`` and following of the whole, which is cut into blocks of
    ``k2 = 2**m`` rows; ``signs`` and ``forms``, of shape (blocks, m), are those of the whole.
    """
    run = _compiled("kerdock_sketch", A, signs, forms)
    if run is None:
        return reference_kerdock.kerdock_sketch(A, signs, forms, offset)
    Z = np.empty((1 << forms.shape[1], A.shape[1]), order="F")
    run(offset, Z.reshape(-1, order="F"), threads())
    return Z


def distortion(A: Mapped, Z: FloatArray, signs: Signs, forms: Forms, offset: int = 0) -> float:
    """Return the largest row norm of ``B_b H D_b Z - A_b`` over the blocks of A."""
    run = _compiled("kerdock_distortion", A, signs, forms)
    if run is None:
        return reference_kerdock.kerdock_distortion(A, Z, signs, forms, offset)
    Z = np.require(Z, np.float64, ["F", "A"])
    return float(run(offset, Z.reshape(-1, order="F"), threads()))


def sketch_and_distortion(A: Mapped, signs: Signs, forms: Forms) -> tuple[FloatArray, float]:
    """Return ``Z = S A`` and the largest row norm of ``S'Z - A``; neither is private.

    For ``S = [D_1 H B_1, ...]`` the rows of block b are ``B_b (H D_b Z - B_b A_b)``, and the first
    factor changes no norm: one transform of Z for each block.
    """
    run = _compiled("kerdock", A, signs, forms)
    if run is None:
        Z = reference_kerdock.kerdock_sketch(A, signs, forms, 0)
        return Z, reference_kerdock.kerdock_distortion(A, Z, signs, forms, 0)
    Z = np.empty((1 << forms.shape[1], A.shape[1]), order="F")
    return Z, float(run(Z.reshape(-1, order="F"), threads()))


def _compiled(name: str, A: Mapped, signs: Signs, forms: Forms) -> Callable[..., Any] | None:
    """Return a compiled pass over A with these signs and forms; None means NumPy."""
    run = compiled(name, A) if forms.shape[1] >= _FEW_BITS else None
    if run is None:
        return None
    blocks = np.ascontiguousarray(signs), np.ascontiguousarray(forms).reshape(-1)
    return partial(run, *blocks, forms.shape[1])
