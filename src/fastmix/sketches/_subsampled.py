"""Sketches that sample rows of an orthogonal transform of rows with random signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_integer, value_error
from fastmix.random import RandomState, public_generator
from fastmix.sketches.base import Sketch, SketchDraw


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
