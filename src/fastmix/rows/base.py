"""What mechanisms may ask of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fastmix._validation import value_error
from fastmix.sketches import SketchDraw

__all__ = ["FloatArray", "Rows"]

FloatArray = npt.NDArray[np.float64]


class Rows(ABC):
    """A matrix X of ``n`` rows of norm at most ``bound``, perhaps with targets y in [-1, 1].

    Every method is a pass over all rows, a sum of one term a block.  Results are functions of
    raw data: they must not leave the mechanism that asked for them.
    """

    n: int
    d: int
    bound: float
    #: Value of the last column if that is constant, else 0.
    constant: float = 0.0

    @abstractmethod
    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield consecutive blocks of mapped rows with their targets (zeros if there are none)."""

    @abstractmethod
    def apply(self, draw: SketchDraw) -> FloatArray:
        """Return ``S X`` for a drawn sketch S."""

    @abstractmethod
    def sketch(self, draw: SketchDraw) -> tuple[FloatArray, float]:
        """Return ``S X`` and the row distortion m-hat of a drawn sketch S."""

    def gram(self) -> FloatArray:
        """Return ``X'X``."""
        total = np.zeros((self.d, self.d))
        for A, _ in self.blocks():
            total += A.T @ A
        return total

    def total(self) -> FloatArray:
        """Return the sum of the rows."""
        total = np.zeros(self.d)
        for A, _ in self.blocks():
            total += A.sum(axis=0)
        return total

    def centred(self, mean: FloatArray) -> Rows:
        """Return the features minus a public mean, shortened to `bound` again; no constant.

        Rows whose map has no public centre refuse.
        """
        raise value_error("rows", "have a public centre to move", type(self).__name__)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return ``X'X`` and ``X'y``."""
        gram, cross = np.zeros((self.d, self.d)), np.zeros(self.d)
        for A, y in self.blocks():
            gram += A.T @ A
            cross += A.T @ y
        return gram, cross

    def gradient(self, theta: FloatArray, clip: float) -> FloatArray:
        """Return ``X' clip(y - X theta)``, residuals clipped to [-clip, clip]."""
        total = np.zeros(self.d)
        for A, y in self.blocks():
            total += A.T @ np.clip(y - A @ theta, -clip, clip)
        return total
