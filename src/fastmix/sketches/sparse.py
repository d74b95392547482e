"""The sketch that adds every row of the data to a few random rows, with random signs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Philox

from fastmix._types import FloatArray, Floats
from fastmix._validation import check_integer, value_error
from fastmix.kernels import sparse
from fastmix.kernels.mapped import Mapped
from fastmix.kernels.reference_sparse import Words, sparse_matrix
from fastmix.random import RandomState, public_generator
from fastmix.sketches.base import BlockDraw, Columns, Sketch, as_mapped

#: Words of 32 bits that the generator makes of one value of its counter.
_COUNTER_WORDS = 8
#: Largest n for which the coherence is scanned over all pairs of columns; 1 is a bound for all.
_SCAN_LIMIT = 2**14
#: Rows of the data per row of the sketch at most, on average: so sums err by little.
_MOST_ADDED = 2**15
#: Numbers of entries whose roots are powers of two, so that columns have norm 1 without rounding.
ENTRIES = (1, 4, 16)


@dataclass(frozen=True)
class SparseSketch(Sketch):
    r"""Every row of the data is added to ``entries`` random rows of the sketch, with random signs.

    The ``k2`` rows are cut into ``entries`` equal parts, and every column of S has one entry
    :math:`\pm 1/\sqrt{s}` in each, s being ``entries``: no two of them meet, and columns have norm
    1. Each ``entries`` of 1, 4 and 16 has an exact root. The draw may be published.

    Paper: none; it names sparse sketches as an open direction (docs/sketches.md).
    """

    entries: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "entries", check_integer("entries", self.entries))
        if self.entries not in ENTRIES:
            raise value_error("entries", "be 1, 4 or 16", self.entries)
        check_integer("k2", self.k2, at_most=1 << 31)
        if self.k2 % self.entries:
            raise value_error("k2", f"be a multiple of entries={self.entries}", self.k2)
        if self.n > (most := self.k2 // self.entries * _MOST_ADDED):
            raise value_error("n", f"be at most {most} for k2={self.k2}", self.n)

    @staticmethod
    def least_size(n: int, entries: int) -> int:
        """Return the least k2 for n rows of data."""
        return -(-n // _MOST_ADDED) * entries

    def sample(self, rng: RandomState = None) -> SparseDraw:
        """Draw one matrix, as `Sketch.sample` does."""
        key = int.from_bytes(public_generator(rng).bytes(16), "little")
        return SparseDraw(self.k2, self.n, self.entries, key)


@dataclass(frozen=True, eq=False)
class SparseDraw(BlockDraw):
    """One sparse matrix; where the entries of a column are follows from its number and the key.

    The key is a public integer below ``2**128``. A counter-based generator (Philox) encrypts the
    number of a column under it, so that any range of columns is known without the others, and no
    table is kept.
    """

    entries: int
    key: int

    _unit_columns = True

    def __post_init__(self) -> None:
        SparseSketch(self.k2, self.n, self.entries)
        check_integer("key", self.key, at_least=0, at_most=(1 << 128) - 1)

    def words(self, offset: int, count: int) -> Words:
        """Return the words of ``count`` columns from ``offset`` on, of shape (count, entries)."""
        at, skipped = divmod(offset * self.entries, _COUNTER_WORDS)
        size = count * self.entries
        raw = Philox(key=self.key, counter=at).random_raw(-(-(skipped + size) // 2))
        words = raw.astype("<u8", copy=False).view("<u4")[skipped : skipped + size]
        return np.asarray(words, dtype=np.uint32).reshape(count, self.entries)

    @cached_property
    def coherence(self) -> float:
        """Largest absolute inner product of two different columns, exact up to 2**14 columns.

        Above, it is the bound 1: more coherence means more noise, so it is on the private side.
        """
        if self.n > _SCAN_LIMIT:
            return 1.0
        S, largest = sparse_matrix(self.words(0, self.n), self.k2), 0.0
        for start in range(0, self.n, 256):
            products = (S[start : start + 256] @ S.T).tocoo()
            others = products.row + start != products.col
            largest = max(largest, float(np.abs(products.data[others]).max(initial=0.0)))
        return largest

    def _sketch(self, X: Columns, *, distortion: bool) -> tuple[FloatArray, float]:
        A, words = as_mapped(X), self.words(0, self.n)
        Z = sparse.sketch(A, words, self.k2)
        return Z, sparse.distortion(A, Z, words) if distortion else 0.0

    def partial_sketch(self, rows: Mapped, offset: int) -> FloatArray:
        return sparse.sketch(rows, self.words(offset, rows.shape[0]), self.k2)

    def partial_distortion(self, rows: Mapped, Z: FloatArray, offset: int) -> float:
        return sparse.distortion(rows, Z, self.words(offset, rows.shape[0]))

    def probe(self, offset: int, count: int) -> FloatArray:
        """Return entries of ``c'S``, none of which is 0: parts count 1, 2, 4, ... times."""
        return np.asarray(sparse_matrix(self.words(offset, count), self.k2) @ self._weights)

    def probed(self, Z: FloatArray) -> FloatArray:
        return np.asarray(self._weights @ Z)

    @property
    def _weights(self) -> FloatArray:
        """The weights c, for which no entry of c'S is above 1."""
        powers = np.repeat(2.0 ** np.arange(self.entries), self.k2 // self.entries)
        return powers / 2.0**self.entries

    def _forward(self, tile: Floats) -> FloatArray:
        return self._sketch(tile, distortion=False)[0]

    def _backward(self, tile: Floats) -> FloatArray:
        return np.asarray(sparse_matrix(self.words(0, self.n), self.k2) @ tile)
