"""The subsampled randomized discrete cosine transform."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.fft

from fastmix._types import FloatArray, Floats
from fastmix.sketches._subsampled import SubsampledDraw, SubsampledSketch
from fastmix.sketches.base import inverse_or_zero, read_only

# Largest n for which the coherence is scanned over all pairs of columns.
_SCAN_LIMIT = 2**14

# Squared norms below this are summed again directly: from a table they lose their digits.
_SMALL_SQUARE = 1e-6


@dataclass(frozen=True, eq=False)
class SubsampledDCTDraw(SubsampledDraw):
    """One subsampled cosine transform: ``sqrt(n/k2) P C B``."""

    @cached_property
    def column_norms(self) -> FloatArray:
        """Norms of the columns: ``||s_i||^2 = (f(0) + f(2i+1)) / k2``, f as in `coherence`."""
        f = self._cosine_sums()
        squares = (f[0] + f[1::2]) / self.k2
        small = np.flatnonzero(squares < _SMALL_SQUARE)
        squares[small] = [self._squared_norm(int(i)) for i in small]
        return read_only(np.sqrt(squares))

    @cached_property
    def coherence(self) -> float:
        """Largest absolute inner product of two different unit columns, or a bound on it.

        For ``n`` up to 2**14 it is exact, by a scan over all pairs. Above, it is an upper bound
        found in O(n log n): more coherence means more noise, so the bound is on the private side.

        Paper: Delta-hat of Algorithm 1. With f(t) the sum of ``w_r cos(pi r t / n)`` over the
        sampled rows r, where w_0 = 1/2 and w_r = 1 otherwise, columns i and j of S have inner
        product ``b_i b_j (f(i-j) + f(i+j+1)) / k2``.
        Deviation: columns are brought to length one first; a zero column stays zero.
        """
        if self.n == 1:
            return 0.0
        return self._coherence_scan() if self.n <= _SCAN_LIMIT else self._coherence_bound()

    def _coherence_scan(self) -> float:
        """Return the coherence by a scan over all pairs, in O(n^2) time and O(n) memory."""
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
        shortest = float(norms[norms > 0].min())
        numerator = float(f[1 : self.n].max() + f[1:].max())
        return min(1.0, numerator / (self.k2 * shortest**2))

    def _cosine_sums(self) -> FloatArray:
        """Return f(t) for t from 0 to 2n - 1."""
        indicator = np.zeros(self.n + 1)
        indicator[self.rows] = 1.0
        half = scipy.fft.dct(indicator, type=1) / 2  # f(0), ..., f(n)
        return np.concatenate([half, half[-2:0:-1]])  # f(2n - t) = f(t)

    def _squared_norm(self, i: int) -> float:
        """Return the squared norm of column i with small relative error, 0 if it is 0."""
        # cos(pi p / 2n) = sin(pi (n - p) / 2n), with p brought to [0, 2n] by symmetry:
        # near a zero of the cosine the argument of the sine is small and exact.
        n = self.n
        p = self.rows * (2 * i + 1) % (4 * n)
        sines = np.sin(np.pi * (n - np.minimum(p, 4 * n - p)) / (2 * n))
        weights = np.where(self.rows == 0, 1.0, 2.0)
        return float(weights @ sines**2) / self.k2

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

    Parameters
    ----------
    k2 : int
        Rows of the sketch, from 1 to ``n``.
    n : int
        Rows of the data, at least 1; nothing is padded.

    Notes
    -----
    Paper: the remark after Definition 3; ``sqrt(n/k2) P C B`` with C the orthonormal DCT-II.
    Deviation: the paper leaves out how to handle unequal column norms. They lie between 0 and
    sqrt(2), and the analysis is done on unit columns: see `SketchDraw.sketch_and_distortion`.
    The draw may be published.
    """

    _draw = SubsampledDCTDraw
