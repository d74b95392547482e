"""Rows of an array in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import value_error
from fastmix.kernels import passes
from fastmix.kernels.passes import Targets
from fastmix.rows.base import FloatArray, Rows
from fastmix.rows.maps import RowMap, TargetMap
from fastmix.sketches import SketchDraw

__all__ = ["ArrayRows"]

#: Bytes of mapped rows held at a time.
_BLOCK_BYTES = 4 << 20


class ArrayRows(Rows):
    """Rows of a NumPy array, mapped on the fly: the array is neither copied nor written to.

    Parameters
    ----------
    X : numpy.ndarray of shape (n, features)
        Records, float32 or float64, in any layout; must be finite.
    row_map : RowMap
        Public map from a record to a row of bounded norm.
    y : numpy.ndarray of shape (n,), optional
        Targets, float64; zeros by default.
    target_map : TargetMap, optional
        Public map of targets to [-1, 1].
    """

    def __init__(
        self,
        X: npt.NDArray[np.floating[Any]],
        row_map: RowMap,
        y: FloatArray | None = None,
        target_map: TargetMap | None = None,
    ) -> None:
        if y is None:
            y = np.broadcast_to(0.0, (X.shape[0],))
        if y.shape != (X.shape[0],):
            raise value_error("y", f"have shape {(X.shape[0],)}", y)
        self.bound = row_map.bound
        self.constant = row_map.constant / row_map.divisor
        self._X, self._row_map = X, row_map
        self._A = row_map(X)
        self._targets = (target_map or TargetMap())(y)
        self.n, self.d = self._A.shape

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield consecutive blocks of mapped rows with their targets (zeros if there are none)."""
        step = max(1, _BLOCK_BYTES // (8 * self.d))
        for start in range(0, self.n, step):
            block = passes.map_rows(self._A, start, start + step)
            yield block, passes.map_targets(self._targets, start, start + step)

    def apply(self, draw: SketchDraw) -> FloatArray:
        """Return ``S X`` for a drawn sketch S."""
        return draw.apply(self._A)

    def sketch(self, draw: SketchDraw) -> tuple[FloatArray, float]:
        """Return ``S X`` and the row distortion m-hat of a drawn sketch S."""
        return draw.sketch_and_distortion(self._A)

    def gram(self) -> FloatArray:
        """Return ``X'X``."""
        return passes.gram(self._A)

    def total(self) -> FloatArray:
        """Return the sum of the rows."""
        ones = Targets(np.ones(self.n))
        return passes.gradient(self._A, ones, np.zeros(self.d), 1.0)

    def centred(self, mean: FloatArray) -> ArrayRows:
        """Return the features minus a public mean, shortened to `bound` again; no constant."""
        return ArrayRows(self._X, self._row_map.centred(mean))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return ``X'X`` and ``X'y``."""
        return self.gram(), self.gradient(np.zeros(self.d), np.inf)

    def gradient(self, theta: FloatArray, clip: float) -> FloatArray:
        """Return ``X' clip(y - X theta)``, residuals clipped to [-clip, clip]."""
        return passes.gradient(self._A, self._targets, theta, clip)
