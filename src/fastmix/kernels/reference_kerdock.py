"""The Kerdock sketch in NumPy: what its compiled passes are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix.kernels.reference import Signs, fwht, map_rows

if TYPE_CHECKING:
    from fastmix.kernels.mapped import Mapped

Forms = npt.NDArray[np.uint32]


def quadratic_signs(form: Forms) -> Signs:
    """Return ``(-1)^Q(x)`` for all x, by ``Q(x + e_i) = Q(x) + Q(e_i) + B(x, e_i)`` for x < 2^i."""
    signs = np.ones(1, dtype=np.int8)
    for i, row in enumerate(map(int, form)):
        x = np.arange(1 << i)
        odd = (np.bitwise_count(x & row) + (row >> i)) & 1
        signs = np.concatenate([signs, np.where(odd, -signs, signs)])
    return signs


def kerdock_sketch(A: Mapped, signs: Signs, forms: Forms, offset: int) -> FloatArray:
    """Return the sum of ``D_b H B_b A_b`` over the blocks of rows that A has a part in."""
    Z = np.zeros((1 << forms.shape[1], A.shape[1]))
    for D, part, B, rows in _kerdock_blocks(A, signs, forms, offset):
        work = np.zeros_like(Z)
        work[part] = rows * B
        fwht(work, work, 1.0 / float(np.sqrt(len(Z))))
        Z += work * D
    return Z


def kerdock_distortion(A: Mapped, Z: FloatArray, signs: Signs, forms: Forms, offset: int) -> float:
    """Return the largest row norm of ``B_b H D_b Z - A_b`` over the blocks of rows of A."""
    largest = [0.0]
    for D, part, B, rows in _kerdock_blocks(A, signs, forms, offset):
        work = Z * D
        fwht(work, work, 1.0 / float(np.sqrt(len(Z))))
        rest = work[part] * B - rows
        largest.append(np.einsum("ij,ij->i", rest, rest).max())
    return float(np.sqrt(np.max(largest)))


def _kerdock_blocks(
    A: Mapped, signs: Signs, forms: Forms, offset: int
) -> Iterator[tuple[Signs, slice, Signs, FloatArray]]:
    """Yield the D_b of each block that A has a part in, and of that part place, B_b and rows."""
    n, k2 = A.shape[0], 1 << forms.shape[1]
    for b in range(offset // k2, -(-(offset + n) // k2)):
        start, stop = max(b * k2, offset), min((b + 1) * k2, offset + n)
        part = slice(start - b * k2, stop - b * k2)
        rows = map_rows(A, start - offset, stop - offset)
        yield quadratic_signs(forms[b])[:, None], part, signs[start:stop, None], rows
