"""The subsampled randomized Hadamard transform."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fastmix._types import FloatArray, Floats
from fastmix.kernels import fwht
from fastmix.kernels.mapped import srht
from fastmix.sketches._subsampled import SubsampledDraw, SubsampledSketch
from fastmix.sketches.base import Columns, as_mapped, read_only


@dataclass(frozen=True, eq=False)
class SRHTDraw(SubsampledDraw):
    """One SRHT matrix: ``sqrt(n_pad/k2) P H B``, restricted to its first ``n`` columns."""

    @staticmethod
    def length(n: int) -> int:
        """Return the least power of two that is at least n."""
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
    def column_norms(self) -> FloatArray:
        """Euclidean norms of the ``n`` columns, all 1 (Appendix B of the paper); read-only."""
        return read_only(np.ones(self.n))

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
        work = np.empty((self.n_pad, tile.shape[1]), order="F")
        np.multiply(tile, self.signs[:, None], out=work[: self.n])
        work[self.n :] = 0.0
        fwht(work, out=work)
        return work[self.rows] * math.sqrt(self.n_pad / self.k2)

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

    Parameters
    ----------
    k2 : int
        Rows of the sketch, from 1 to `n_pad`.
    n : int
        Rows of the data, at least 1; need not be a power of two.

    Notes
    -----
    Paper: Definition 3, ``sqrt(n/k2) P H B``, and Appendix B.
    Deviation: any n. H has the next power of two `n_pad` as its size and the last
    ``n_pad - n`` columns are dropped, as if the data had that many zero rows more. All entries
    are still ``+-1/sqrt(k2)``, so columns have norm 1.
    The draw may be published.
    """

    _draw = SRHTDraw

    @property
    def n_pad(self) -> int:
        """Size of the Hadamard matrix: the least power of two that is at least ``n``."""
        return self._draw.length(self.n)
