"""The dense Gaussian sketch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fastmix._types import FloatArray, Floats
from fastmix._validation import check_integer
from fastmix.random import RandomState, secret_generator
from fastmix.sketches.base import Sketch, SketchDraw


@dataclass(frozen=True, init=False, repr=False)
class GaussianSketch(Sketch):
    """Independent standard normal entries, not normalised.

    Parameters
    ----------
    k : int
        Rows of the sketch, at least 1; held as `k2` like those of any sketch.
    n : int
        Rows of the data, at least 1.

    Notes
    -----
    Paper: S_G of the section on Gaussian sketches, ``N(0, I_{k x n})``.
    Divide by ``sqrt(k)`` for an embedding that keeps lengths on average.
    Inside a mechanism this draw is the secret noise that carries the guarantee, and must then
    never be published or repeated.
    """

    def __init__(self, k: int, n: int) -> None:
        super().__init__(check_integer("k", k, at_least=1), n)

    def __repr__(self) -> str:
        return f"GaussianSketch(k={self.k2}, n={self.n})"

    def sample(self, rng: RandomState = None) -> GaussianSketchDraw:
        """Draw one matrix, by default from the cryptographic generator of secret noise."""
        matrix = secret_generator(rng).standard_normal((self.k2, self.n))
        return GaussianSketchDraw(self.k2, self.n, matrix)


@dataclass(frozen=True, eq=False)
class GaussianSketchDraw(SketchDraw):
    """One Gaussian matrix, held dense; secret if the draw is the noise of a mechanism."""

    matrix: FloatArray

    # A matrix product gains from wide tiles.
    _tile: ClassVar[int] = 256

    def __post_init__(self) -> None:
        self._hold("matrix", np.float64, (self.k2, self.n))

    def __repr__(self) -> str:
        return f"GaussianSketchDraw(k2={self.k2}, n={self.n})"

    def to_dense(self) -> FloatArray:
        """Return the matrix itself as a new array."""
        return self.matrix.copy()

    def _forward(self, tile: Floats) -> FloatArray:
        return self.matrix @ tile.astype(np.float64, copy=False)

    def _backward(self, tile: Floats) -> FloatArray:
        return self.matrix.T @ tile.astype(np.float64, copy=False)
