"""Absent records as the guarantee has them: zeros behind every public map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fastmix.audit.case import FloatArray
from fastmix.kernels.passes import Mapped, Targets
from fastmix.rows import Rows
from fastmix.rows.passes import Block, Pass
from fastmix.sketches import SketchDraw

__all__ = ["PresentRows"]

T = TypeVar("T")


class PresentRows(Rows):
    """Rows some of which are absent: zeros in all columns, that of the intercept included.

    No table can say this where there is an intercept or a centre, so it is said behind the map.

    Parameters
    ----------
    rows : Rows
        Rows as they would be if all were present.
    present : numpy.ndarray of bool of shape (n,)
        Which of them are.
    """

    def __init__(self, rows: Rows, present: npt.NDArray[np.bool_]) -> None:
        self.n, self.d = rows.n, rows.d
        self.bound, self.constant = rows.bound, rows.constant
        self._rows, self._present = rows, present

    def run(self, task: Pass[T]) -> T:
        """Return the value of a pass over all rows, which are few."""
        A, y = (np.concatenate(parts) for parts in zip(*self.blocks(), strict=True))
        return task(Block(Mapped(A), Targets(y)))

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield consecutive blocks of rows with their targets, absent ones as zeros."""
        start = 0
        for A, y in self._rows.blocks():
            here = self._present[start : start + len(A)]
            yield A * here[:, None], y * here
            start += len(A)

    def apply(self, draw: SketchDraw) -> FloatArray:
        """Return ``S X`` for a drawn sketch S."""
        return draw.apply(self._dense())

    def sketch(self, draw: SketchDraw) -> tuple[FloatArray, float]:
        """Return ``S X`` and the row distortion m-hat of a drawn sketch S."""
        return draw.sketch_and_distortion(self._dense())

    def centred(self, mean: FloatArray) -> PresentRows:
        """Return the features minus a public mean where a record is present, zeros elsewhere."""
        return PresentRows(self._rows.centred(mean), self._present)

    def _dense(self) -> FloatArray:
        return np.concatenate([A for A, _ in self.blocks()])
