"""Rows of an array in memory, and rows with their target as one more column."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.data.maps import LabelMap, RowMap, TargetMap
from fastmix.data.persons import Persons
from fastmix.data.reductions import Block, Measure, Pass
from fastmix.data.rows import Rows
from fastmix.sketches import SketchDraw

T = TypeVar("T")


class ArrayRows(Rows):
    """Rows of a NumPy array, mapped on the fly: the array is neither copied nor written to.

    The records are finite float32 or float64 numbers in any layout, the targets float64 or none.
    """

    def __init__(
        self,
        X: npt.NDArray[np.floating[Any]],
        row_map: RowMap,
        y: FloatArray | None = None,
        target_map: TargetMap | LabelMap | None = None,
        persons: Persons | None = None,
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
        self.persons = persons
        if persons is not None:
            self._block = replace(self._block, weights=persons.weights, persons=persons.codes)
            self.n = persons.count
        #: The last coordinates that rows were measured in, and what was found.
        self._measured: tuple[Measure, Block] | None = None

    def run(self, task: Pass[T]) -> T:
        return task.value(self._block)

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        return self._block.unweighted().formed()

    def apply(self, draw: SketchDraw) -> FloatArray:
        return draw.apply(self._block.unweighted().A)

    def sketch(self, draw: SketchDraw) -> tuple[FloatArray, float]:
        return draw.sketch_and_distortion(self._block.unweighted().A)

    def measured(self, measure: Measure) -> ArrayRows:
        known = self._measured
        if known is None or not known[0].same(measure):
            transform = measure.transform
            kept = measure._replace(transform=None if transform is None else transform.copy())
            known = self._measured = kept, self._block.measured(measure)
        rows = copy(self)
        rows._block = known[1]
        return rows

    def centred(self, mean: FloatArray) -> ArrayRows:
        self._block.unweighted()
        return ArrayRows(self._X, self._row_map.centred(mean))


class AugmentedRows(Rows):
    """The matrix (X, y) of rows joined by their targets, for sketch-and-solve."""

    def __init__(self, rows: Rows) -> None:
        self.n, self.d = rows.n, rows.d + 1
        self.bound = float(np.hypot(rows.bound, 1.0))
        self._rows = rows

    def run(self, task: Pass[T]) -> T:
        return self._rows.run(task.joined())

    def measured(self, measure: Measure) -> Rows:
        raise value_error("rows", "have a target of their own", type(self).__name__)

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        for A, y in self._rows.blocks():
            yield np.column_stack((A, y)), np.zeros(len(A))

    def apply(self, draw: SketchDraw) -> FloatArray:
        return draw.apply(self._formed())

    def sketch(self, draw: SketchDraw) -> tuple[FloatArray, float]:
        return draw.sketch_and_distortion(self._formed())

    def _formed(self) -> FloatArray:
        return np.concatenate([A for A, _ in self.blocks()])
