"""Absent records as the guarantee has them: zeros behind every public map."""

from __future__ import annotations

import numpy as np

from fastmix._types import BoolArray, FloatArray
from fastmix.data import ArrayRows, RowMap, Rows


class PresentRows(ArrayRows):
    """Rows some of which are absent: zeros in all columns, that of the intercept included.

    No table can say this where there is an intercept or a centre, so it is said behind the map.
    """

    def __init__(self, rows: Rows, present: BoolArray) -> None:
        A, y = (np.concatenate(parts) for parts in zip(*rows.blocks(), strict=True))
        super().__init__(A * present[:, None], RowMap(rows.bound), y * present)
        self.constant = rows.constant
        self._all, self._present = rows, present

    def centred(self, mean: FloatArray) -> PresentRows:
        """Return the features minus a public mean where a record is present, zeros elsewhere."""
        return PresentRows(self._all.centred(mean), self._present)
