"""Rows of an array in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import value_error
from fastmix.rows.base import FloatArray, Rows
from fastmix.rows.maps import RowMap, TargetMap
from fastmix.sketches import SketchDraw

__all__ = ["ArrayRows"]

#: Bytes of mapped rows held at a time.
_BLOCK_BYTES = 4 << 20


class ArrayRows(Rows):
    """Rows of a NumPy array, mapped block by block.

    Parameters
    ----------
    X : numpy.ndarray of shape (n, features)
        Records, float32 or float64, in any layout; never written to.
    row_map : RowMap
        Public map from a record to a row of bounded norm.
    y : numpy.ndarray of shape (n,), optional
        Targets.
    target_map : TargetMap, optional
        Public map of targets to [-1, 1].
    """

    def __init__(
        self,
        X: npt.NDArray[np.floating[Any]],
        row_map: RowMap,
        y: npt.NDArray[np.floating[Any]] | None = None,
        target_map: TargetMap | None = None,
    ) -> None:
        if y is not None and y.shape != (X.shape[0],):
            raise value_error("y", f"have shape {(X.shape[0],)}", y)
        self.n = X.shape[0]
        self.d = row_map.width(X.shape[1])
        self.bound = row_map.bound
        self._X, self._y = X, y
        self._row_map = row_map
        self._target_map = target_map or TargetMap()

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield consecutive blocks of mapped rows with their targets (zeros if there are none)."""
        step = max(1, _BLOCK_BYTES // (8 * self.d))
        for start in range(0, self.n, step):
            rows = slice(start, start + step)
            A = self._row_map(self._X[rows])
            y = np.zeros(len(A)) if self._y is None else self._target_map(self._y[rows])
            yield A, y

    def apply(self, draw: SketchDraw) -> FloatArray:
        """Return ``S X`` for a drawn sketch S."""
        return draw.apply(self._row_map(self._X))

    def sketch(self, draw: SketchDraw) -> tuple[FloatArray, float]:
        """Return ``S X`` and the row distortion m-hat of a drawn sketch S."""
        return draw.sketch_and_distortion(self._row_map(self._X))
