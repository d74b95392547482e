"""The subsampled randomized Hadamard transform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_integer, value_error
from fastmix.kernels import fwht
from fastmix.kernels.mapped import Mapped, srht
from fastmix.random import RandomState, public_generator
from fastmix.sketches.base import (
    FloatArray,
    Sketch,
    SketchDraw,
    as_columns,
    check_selection,
    read_only,
)

__all__ = ["SRHT", "SRHTDraw"]


@dataclass(frozen=True)
class SRHT(Sketch):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("k2", self.k2, at_most=self.n_pad)

    @property
    def n_pad(self) -> int:
        """Size of the Hadamard matrix: the least power of two that is at least ``n``."""
        return _next_power_of_two(self.n)

    def sample(self, rng: RandomState = None) -> SRHTDraw:
        """Draw one matrix.

        Parameters
        ----------
        rng : None, int, RandomState or Generator
            Source of the draw; an int makes it reproducible.

        Returns
        -------
        SRHTDraw
            The drawn matrix, as a linear map.
        """
        generator = public_generator(rng)
        rows = generator.choice(self.n_pad, size=self.k2, replace=False, shuffle=False)
        signs = 2 * generator.integers(0, 2, size=self.n, dtype=np.int8) - 1
        return SRHTDraw(self.k2, self.n, np.sort(rows), signs)


@dataclass(frozen=True, eq=False)
class SRHTDraw(SketchDraw):
    """One SRHT matrix: ``sqrt(n_pad/k2) P H B``, restricted to its first ``n`` columns.

    Parameters
    ----------
    k2 : int
        Rows of the matrix.
    n : int
        Columns of the matrix: rows of the data.
    rows : numpy.ndarray of shape (k2,)
        Distinct sampled rows of the Hadamard matrix, held as int64.
    signs : numpy.ndarray of shape (n,)
        Diagonal of B, held as int8.
    """

    rows: npt.NDArray[np.int64]
    signs: npt.NDArray[np.int8]

    def __post_init__(self) -> None:
        self._hold("rows", np.int64, (self.k2,))
        self._hold("signs", np.int8, (self.n,))
        check_selection(self.rows, self.signs, self.n_pad)

    @property
    def n_pad(self) -> int:
        """Size of the Hadamard matrix: the least power of two that is at least ``n``."""
        return _next_power_of_two(self.n)

    def to_dense(self) -> FloatArray:
        """Return the matrix itself.

        Returns
        -------
        numpy.ndarray of shape (k2, n)
            A new array; small sizes only.
        """
        parity = np.bitwise_count(self.rows[:, None] & np.arange(self.n)) & 1
        return np.where(parity == 1, -self.signs, self.signs) / math.sqrt(self.k2)

    @cached_property
    def column_norms(self) -> FloatArray:
        """Euclidean norms of the ``n`` columns, all 1 (Appendix B of the paper); read-only."""
        return read_only(np.ones(self.n))

    @cached_property
    def coherence(self) -> float:
        """Largest absolute inner product of two different columns, exact, in O(n log n).

        Notes
        -----
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

    def apply(self, X: npt.ArrayLike | Mapped) -> FloatArray:
        """Return ``S X``.

        Parameters
        ----------
        X : array of shape (n,) or (n, d), or Mapped
            Data in float32 or float64, in any memory order, or seen through a public map.

        Returns
        -------
        numpy.ndarray of shape (k2,) or (k2, d)
            The product, computed and returned in float64.
        """
        return self._pass(X, distortion=False)[0]

    def sketch_and_distortion(self, X: npt.ArrayLike | Mapped) -> tuple[FloatArray, float]:
        """Return ``S X`` and the row distortion m-hat of the data, in one read of the data.

        Parameters
        ----------
        X : array of shape (n,) or (n, d), or Mapped
            Data in float32 or float64, in any memory order, or seen through a public map.

        Returns
        -------
        Z : numpy.ndarray of shape (k2,) or (k2, d)
            The sketched data ``S X``.
        m_hat : float
            Largest row norm of ``(S'S - I) X``.

        Notes
        -----
        Paper: m-hat of Algorithm 1; how to compute it, Appendix C.4.2.
        Columns of S have norm 1.
        Sensitive inputs: X. Both outputs are functions of it and are not private.
        """
        return self._pass(X, distortion=True)

    def _pass(self, X: npt.ArrayLike | Mapped, distortion: bool) -> tuple[FloatArray, float]:
        if isinstance(X, Mapped):
            columns, is_vector = X, False
            if X.shape[0] != self.n:
                raise value_error("X", f"have {self.n} rows", X.X)
        else:
            array, is_vector = as_columns("X", X, self.n)
            columns = Mapped(array)
        Z, m_hat = srht(columns, self.signs, self.rows, self.n_pad, distortion=distortion)
        return (Z[:, 0] if is_vector else Z), m_hat

    def _forward(self, tile: npt.NDArray[np.floating[Any]]) -> FloatArray:
        return self._gather(self._transform(tile))

    def _backward(self, tile: npt.NDArray[np.floating[Any]]) -> FloatArray:
        work = np.zeros((self.n_pad, tile.shape[1]), order="F")
        work[self.rows] = tile
        fwht(work, out=work)
        X = work[: self.n]
        X *= math.sqrt(self.n_pad / self.k2) * self.signs[:, None]
        return X

    def _transform(self, tile: npt.NDArray[np.floating[Any]]) -> FloatArray:
        """Return ``H B`` times a tile, with columns contiguous in memory."""
        work = np.empty((self.n_pad, tile.shape[1]), order="F")
        np.multiply(tile, self.signs[:, None], out=work[: self.n])
        work[self.n :] = 0.0
        fwht(work, out=work)
        return work

    def _gather(self, work: FloatArray) -> FloatArray:
        """Return the sampled rows of a transformed tile, scaled."""
        return work[self.rows] * math.sqrt(self.n_pad / self.k2)


def _next_power_of_two(n: int) -> int:
    """Return the least power of two that is at least ``n``."""
    return 1 << (n - 1).bit_length()
