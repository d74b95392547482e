"""Rows with their target as one more column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from fastmix._types import FloatArray
from fastmix.data.reductions import Joined, Pass
from fastmix.data.rows import Rows
from fastmix.sketches import SketchDraw

T = TypeVar("T")


class AugmentedRows(Rows):
    """The matrix (X, y) of rows joined by their targets, for sketch-and-solve.

    Parameters
    ----------
    rows : Rows
        Rows X of norm at most ``rows.bound`` with targets in [-1, 1].
    """

    def __init__(self, rows: Rows) -> None:
        self.n = rows.n
        self.d = rows.d + 1
        self.bound = float(np.hypot(rows.bound, 1.0))
        self._rows = rows

    def run(self, task: Pass[T]) -> T:
        """Return the value of a pass over all joined rows."""
        value: T = self._rows.run(Joined(task))
        return value

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield consecutive blocks of (X, y), with zeros for targets."""
        for A, y in self._rows.blocks():
            yield np.column_stack((A, y)), np.zeros(len(A))

    def apply(self, draw: SketchDraw) -> FloatArray:
        """Return ``S (X, y)`` for a drawn sketch S."""
        return draw.apply(self._formed())

    def sketch(self, draw: SketchDraw) -> tuple[FloatArray, float]:
        """Return ``S (X, y)`` and the row distortion m-hat of a drawn sketch S."""
        return draw.sketch_and_distortion(self._formed())

    def _formed(self) -> FloatArray:
        return np.concatenate([A for A, _ in self.blocks()])
