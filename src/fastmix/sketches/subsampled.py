"""Sketches that sample rows of an orthogonal transform of rows with random signs.

The transform is Hadamard's (SRHT) or the discrete cosine transform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import scipy.fft

from fastmix._types import FloatArray, Floats
from fastmix._validation import check_integer, value_error
from fastmix.kernels import fwht
from fastmix.kernels.mapped import srht
from fastmix.random import RandomState, public_generator
from fastmix.sketches.base import (
    Columns,
    Sketch,
    SketchDraw,
    as_mapped,
    inverse_or_zero,
    read_only,
)

#: Largest n for which the coherence of a cosine transform is scanned over all pairs of columns.
_SCAN_LIMIT = 2**14
#: Squared norms below this are summed again directly: from a table they lose their digits.
_SMALL_SQUARE = 1e-6


@dataclass(frozen=True)
class SubsampledSketch(Sketch):
    """Random signs, a transform, and ``k2`` of its rows drawn without replacement."""

    _draw: ClassVar[type[SubsampledDraw]]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("k2", self.k2, at_most=self._draw.length(self.n))

    def sample(self, rng: RandomState = None) -> SubsampledDraw:
        """Draw one matrix, as `Sketch.sample` does."""
        generator = public_generator(rng)
        size = self._draw.length(self.n)
        rows = generator.choice(size, size=self.k2, replace=False, shuffle=False)
        signs = 2 * generator.integers(0, 2, size=self.n, dtype=np.int8) - 1
        return self._draw(self.k2, self.n, np.sort(rows), signs)


@dataclass(frozen=True, eq=False)
class SubsampledDraw(SketchDraw):
    """Distinct sampled ``rows`` of the transform, and the ``signs`` before it; both read-only."""

    rows: npt.NDArray[np.int64]
    signs: npt.NDArray[np.int8]

    def __post_init__(self) -> None:
        self._hold("rows", np.int64, (self.k2,))
        self._hold("signs", np.int8, (self.n,))
        rows, size = self.rows, self.length(self.n)
        if rows.min() < 0 or rows.max() >= size or np.unique(rows).size != rows.size:
            raise value_error("rows", f"be distinct indices below {size}", rows)
        if not (np.abs(self.signs) == 1).all():
            raise value_error("signs", "hold only -1 and 1", self.signs)

    @staticmethod
    def length(n: int) -> int:
        """Return the length of the transform of n rows."""
        return n


@dataclass(frozen=True, eq=False)
class SRHTDraw(SubsampledDraw):
    """One SRHT matrix: ``sqrt(n_pad/k2) P H B``, restricted to its first ``n`` columns."""

    _unit_columns = True  # Appendix B of the paper

    @staticmethod
    def length(n: int) -> int:
        return 1 << (n - 1).bit_length()

    @property
    def n_pad(self) -> int:
        """Size of the Hadamard matrix: the least power of two that is at least ``n``."""
        return self.length(self.n)

    def to_dense(self) -> FloatArray:
        """Return the matrix itself as a new array; small sizes only."""
        parity = np.bitwise_count(self.rows[:, None] & np.arange(self.n)) & 1
        return np.where(parity == 1, -self.signs, self.signs) / math.sqrt(self.k2)

    @cached_property
    def coherence(self) -> float:
        """Largest absolute inner product of two different columns, exact, in O(n log n).

        Paper: Appendix C.4.2, ``sqrt(n)/k2 max_{l != 0} |(H z)_l|`` with z the indicator of the
        sampled rows.
        Deviation: `n_pad` in the place of an n that is no power of two.
        """
        if self.n == 1:
            return 0.0
        # Columns i and j have inner product +-(sum over sampled r of (-1)^<r, i xor j>)/k2.
        # The maximum over all l in 1..n_pad-1 is over real pairs only, because each l is
        # i xor j for some i != j below n: (0, l) if l < n; otherwise l > n_pad/2, and
        # (n_pad/2, l - n_pad/2) will do, since n > n_pad/2 by the choice of n_pad.
        indicator = np.zeros(self.n_pad)
        indicator[self.rows] = 1.0
        # Without its normalisation the transform adds integers, so it makes no error.
        sums = fwht(indicator, norm=None)
        return float(np.abs(sums[1:]).max() / self.k2)

    def _sketch(self, X: Columns, *, distortion: bool) -> tuple[FloatArray, float]:
        return srht(as_mapped(X), self.signs, self.rows, self.n_pad, distortion=distortion)

    def _forward(self, tile: Floats) -> FloatArray:
        return self._sketch(tile, distortion=False)[0]

    def _backward(self, tile: Floats) -> FloatArray:
        work = np.zeros((self.n_pad, tile.shape[1]), order="F")
        work[self.rows] = tile
        fwht(work, out=work)
        X = work[: self.n]
        X *= math.sqrt(self.n_pad / self.k2) * self.signs[:, None]
        return X


@dataclass(frozen=True)
class SRHT(SubsampledSketch):
    """Random signs, a Hadamard transform, and ``k2`` of its rows drawn without replacement.

    The data have ``n`` rows, any number; ``k2`` is at most `n_pad`. The draw may be published.

    Paper: Definition 3, ``sqrt(n/k2) P H B``, and Appendix B.
    Deviation: any n. H has the next power of two `n_pad` as its size and the last
    ``n_pad - n`` columns are dropped, as if the data had that many zero rows more. All entries
    are still ``+-1/sqrt(k2)``, so columns have norm 1.
    """

    _draw = SRHTDraw

    @property
    def n_pad(self) -> int:
        """Size of the Hadamard matrix: the least power of two that is at least ``n``."""
        return self._draw.length(self.n)


@dataclass(frozen=True, eq=False)
class SubsampledDCTDraw(SubsampledDraw):
    """One subsampled cosine transform: ``sqrt(n/k2) P C B``."""

    @cached_property
    def column_norms(self) -> FloatArray:
        """Norms of the columns: ``||s_i||^2 = (f(0) + f(2i+1)) / k2``, f as in `coherence`."""
        n, f = self.n, self._cosine_sums()
        squares = (f[0] + f[1::2]) / self.k2
        weights = np.where(self.rows == 0, 1.0, 2.0)
        for i in map(int, np.flatnonzero(squares < _SMALL_SQUARE)):
            # cos(pi p / 2n) = sin(pi (n - p) / 2n), with p brought to [0, 2n] by symmetry:
            # near a zero of the cosine the argument of the sine is small and exact.
            p = self.rows * (2 * i + 1) % (4 * n)
            sines = np.sin(np.pi * (n - np.minimum(p, 4 * n - p)) / (2 * n))
            squares[i] = weights @ sines**2 / self.k2
        return read_only(np.sqrt(squares))

    @cached_property
    def coherence(self) -> float:
        """Largest absolute inner product of two different unit columns, or a bound on it.

        For ``n`` up to 2**14 it is exact, by a scan over all pairs in O(n) memory. Above, it is an
        upper bound found in O(n log n): more coherence means more noise, so it is on the private
        side.

        Paper: Delta-hat of Algorithm 1. With f(t) the sum of ``w_r cos(pi r t / n)`` over the
        sampled rows r, where w_0 = 1/2 and w_r = 1 otherwise, columns i and j of S have inner
        product ``b_i b_j (f(i-j) + f(i+j+1)) / k2``.
        Deviation: columns are brought to length one first; a zero column stays zero.
        """
        if self.n > _SCAN_LIMIT:
            return self._coherence_bound()
        n, f, inverse = self.n, self._cosine_sums(), inverse_or_zero(self.column_norms)
        largest = 0.0
        for i in range(n - 1):
            # All j from i + 1 to n - 1 at once: j - i from 1, and i + j + 1 from 2i + 2.
            products = (f[1 : n - i] + f[2 * i + 2 : n + i + 1]) * inverse[i + 1 :]
            largest = max(largest, float(np.abs(products).max() * inverse[i]))
        return min(1.0, largest / self.k2)

    def _coherence_bound(self) -> float:
        """Bound it in O(n log n) by the largest values of its two terms and the shortest column."""
        f, norms = np.abs(self._cosine_sums()), self.column_norms
        numerator = float(f[1 : self.n].max() + f[1:].max())
        return min(1.0, numerator / (self.k2 * float(norms[norms > 0].min()) ** 2))

    def _cosine_sums(self) -> FloatArray:
        """Return f(t) for t from 0 to 2n - 1."""
        indicator = np.zeros(self.n + 1)
        indicator[self.rows] = 1.0
        half = scipy.fft.dct(indicator, type=1) / 2  # f(0), ..., f(n)
        return np.concatenate([half, half[-2:0:-1]])  # f(2n - t) = f(t)

    def _forward(self, tile: Floats) -> FloatArray:
        work = np.multiply(tile, self.signs[:, None], dtype=np.float64)
        work = scipy.fft.dct(work, axis=0, norm="ortho", overwrite_x=True)
        return work[self.rows] * math.sqrt(self.n / self.k2)

    def _backward(self, tile: Floats) -> FloatArray:
        work = np.zeros((self.n, tile.shape[1]))
        work[self.rows] = tile
        work = scipy.fft.idct(work, axis=0, norm="ortho", overwrite_x=True)
        return work * (math.sqrt(self.n / self.k2) * self.signs[:, None])


@dataclass(frozen=True)
class SubsampledDCT(SubsampledSketch):
    """Random signs, a cosine transform, and ``k2`` of its rows drawn without replacement.

    The data have ``n`` rows, at least ``k2``; nothing is padded. The draw may be published.

    Paper: the remark after Definition 3; ``sqrt(n/k2) P C B`` with C the orthonormal DCT-II.
    Deviation: the paper leaves out how to handle unequal column norms. They lie between 0 and
    sqrt(2), and the analysis is done on unit columns: see `SketchDraw.sketch_and_distortion`.
    """

    _draw = SubsampledDCTDraw
