"""Rows of an array in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.data.maps import RowMap, TargetMap
from fastmix.data.reductions import Block, Pass
from fastmix.data.rows import Rows
from fastmix.sketches import SketchDraw

T = TypeVar("T")


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
        self._block = Block(row_map(X), (target_map or TargetMap())(y))
        self.n, self.d = self._block.A.shape

    def run(self, task: Pass[T]) -> T:
        """Return the value of a pass over all rows, which are one block."""
        return task(self._block)

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield consecutive blocks of mapped rows with their targets (zeros if there are none)."""
        return self._block.formed()

    def apply(self, draw: SketchDraw) -> FloatArray:
        """Return ``S X`` for a drawn sketch S."""
        return draw.apply(self._block.A)

    def sketch(self, draw: SketchDraw) -> tuple[FloatArray, float]:
        """Return ``S X`` and the row distortion m-hat of a drawn sketch S."""
        return draw.sketch_and_distortion(self._block.A)

    def centred(self, mean: FloatArray) -> ArrayRows:
        """Return the features minus a public mean, shortened to `bound` again; no constant."""
        return ArrayRows(self._X, self._row_map.centred(mean))
