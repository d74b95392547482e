"""The block-Hadamard sketch with the smallest possible coherence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Philox

from fastmix._types import FloatArray, Floats
from fastmix._validation import check_integer, value_error
from fastmix.kernels import fwht, kerdock
from fastmix.kernels.mapped import Mapped
from fastmix.kernels.reference import Signs
from fastmix.kernels.reference_kerdock import Forms, quadratic_signs
from fastmix.random import RandomState, public_generator
from fastmix.sketches._forms import family_size, forms
from fastmix.sketches.base import BlockDraw, Columns, Sketch, as_mapped, read_only

#: Random bits that the generator makes of one value of its counter.
_COUNTER_BITS = 256


@dataclass(frozen=True)
class KerdockSketch(Sketch):
    """Blocks of rows, each with random signs, a small Hadamard transform and signs of its own.

    The data have ``n`` rows, at most `capacity`; ``k2`` is a power of two, at most the least one
    that is at least n. The draw may be published.

    Paper: none; ``docs/proofs/kerdock.md``. ``S = [D_1 H B_1, ..., D_p H B_p]`` with H the
    orthonormal Hadamard matrix of size k2, B_b random signs and ``D_b = (-1)^Q_b`` for the forms
    of a Kerdock set (k2 an even power of two) or of Gold functions (an odd power). Columns have
    norm 1 and coherence ``1/sqrt(k2)``, or ``sqrt(2/k2)`` for an odd power; one block has 0.
    Deviation: only the last block is padded with zeros, to k2 rows.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k2 & (self.k2 - 1):
            raise value_error("k2", "be a power of two", self.k2)
        check_integer("k2", self.k2, at_most=min(1 << 31, 1 << (self.n - 1).bit_length()))
        if self.n > (most := self.capacity):
            enough = f"for k2={self.k2} (k2={self.least_size(self.n)} is enough)"
            raise value_error("n", f"be at most {most} {enough}", self.n)

    @staticmethod
    def least_size(n: int) -> int:
        """Return the least k2 that has room for n rows of data."""
        return next(1 << m for m in range(64) if n <= family_size(m) << m)

    @property
    def capacity(self) -> int:
        """Most rows of data: k2 for each form, ``k2**2 / 2`` or ``k2**2``; 1 for ``k2 = 1``."""
        return self.k2 * family_size(self.k2.bit_length() - 1)

    def sample(self, rng: RandomState = None) -> KerdockDraw:
        """Draw one matrix, as `Sketch.sample` does."""
        key = int.from_bytes(public_generator(rng).bytes(16), "little")
        return KerdockDraw(self.k2, self.n, key)


@dataclass(frozen=True, eq=False)
class KerdockDraw(BlockDraw):
    """One matrix ``[D_1 H B_1, ..., D_p H B_p]``, restricted to its first ``n`` columns.

    Column i belongs to block ``i // k2``. Blocks are independent. So are the random signs: any
    range of them follows from the public ``key``, an integer below ``2**128``.
    """

    key: int

    _unit_columns = True

    def __post_init__(self) -> None:
        KerdockSketch(self.k2, self.n)
        check_integer("key", self.key, at_least=0, at_most=(1 << 128) - 1)

    @cached_property
    def signs(self) -> Signs:
        """Diagonals of all B_b, one after the other; read-only."""
        return read_only(_random_signs(self.key, 0, self.n))

    @property
    def n_blocks(self) -> int:
        """Number of blocks of ``k2`` columns; the last one may be cut short."""
        return -(-self.n // self.k2)

    @cached_property
    def _forms(self) -> Forms:
        """Quadratic forms of the diagonals D_b, as the kernels take them; read-only."""
        return read_only(forms(self.k2.bit_length() - 1, self.n_blocks))

    def to_dense(self) -> FloatArray:
        """Return the matrix itself as a new array; small sizes only."""
        D = np.stack([quadratic_signs(form) for form in self._forms], axis=1)
        block, column = np.divmod(np.arange(self.n), self.k2)
        parity = np.bitwise_count(np.arange(self.k2)[:, None] & column) & 1
        return np.where(parity == 1, -self.signs, self.signs) * D[:, block] / math.sqrt(self.k2)

    @cached_property
    def coherence(self) -> float:
        """Largest absolute inner product of two different columns, exact (docs/proofs/kerdock.md).

        It is attained as soon as there are two blocks, because the first of them is complete.
        """
        # 2^(-m/2) for even m and 2^(-(m-1)/2) for odd m: a power of two, so without rounding.
        return 0.0 if self.n_blocks == 1 else 2.0 ** -((self.k2.bit_length() - 1) // 2)

    def _sketch(self, X: Columns, *, distortion: bool) -> tuple[FloatArray, float]:
        if distortion:
            return kerdock.sketch_and_distortion(as_mapped(X), self.signs, self._forms)
        return kerdock.sketch(as_mapped(X), self.signs, self._forms), 0.0

    def partial_sketch(self, rows: Mapped, offset: int) -> FloatArray:
        return kerdock.sketch(rows, *self._part(offset, rows.shape[0]))

    def partial_distortion(self, rows: Mapped, Z: FloatArray, offset: int) -> float:
        return kerdock.distortion(rows, Z, *self._part(offset, rows.shape[0]))

    def probe(self, offset: int, count: int) -> FloatArray:
        """Return entries of the first row of S, which are those of its signs."""
        return _random_signs(self.key, offset, count) / math.sqrt(self.k2)

    def probed(self, Z: FloatArray) -> FloatArray:
        return np.asarray(Z[0])

    def _part(self, offset: int, length: int) -> tuple[Signs, Forms, int]:
        """Return signs and forms of the blocks that a range touches, and where it starts."""
        first, skipped = divmod(offset, self.k2)
        count = -(-(skipped + length) // self.k2)
        signs = _random_signs(self.key, first * self.k2, skipped + length)
        return signs, forms(self.k2.bit_length() - 1, count, first), skipped

    def _forward(self, tile: Floats) -> FloatArray:
        return kerdock.sketch(Mapped(tile), self.signs, self._forms)

    def _backward(self, tile: Floats) -> FloatArray:
        X = np.empty((self.n_blocks * self.k2, tile.shape[1]))
        for b, form in enumerate(self._forms):
            rows = X[b * self.k2 : (b + 1) * self.k2]
            np.multiply(tile, quadratic_signs(form)[:, None], out=rows)
            fwht(rows, out=rows)
        X = X[: self.n]
        X *= self.signs[:, None]
        return X


def _random_signs(key: int, start: int, count: int) -> Signs:
    """Return ``count`` signs from ``start`` on: a sign for each bit of a counter's encryption."""
    at, skipped = divmod(start, _COUNTER_BITS)
    words = Philox(key=key, counter=at).random_raw(-(-(skipped + count) // 64))
    bits = np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), bitorder="little")
    return 1 - 2 * bits[skipped : skipped + count].view(np.int8)
