"""What mechanisms compute from the rows: a value of each block, and the sum of such values.

A pass is a pure function of a block and of values that are its fields, so it may run anywhere, and
again, without a change of its result.  Kernels do the work; what is here says how blocks combine.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from fastmix._types import FloatArray
from fastmix.kernels import mapped
from fastmix.kernels.losses import Loss
from fastmix.kernels.mapped import Mapped, Targets
from fastmix.sketches.kerdock import KerdockDraw

T = TypeVar("T")

#: Bytes of mapped rows that are formed at a time.
_FORMED_BYTES = 4 << 20


@dataclass(frozen=True)
class Block:
    """Consecutive rows of bounded norm with their targets, zeros if there are none.

    ``offset`` is the position of the first among all rows, ``chunk`` the number of their chunk.
    """

    A: Mapped
    targets: Targets
    offset: int = 0
    chunk: int = 0

    def formed(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the mapped rows and targets themselves, a few at a time."""
        n, d = self.A.shape
        step = max(1, _FORMED_BYTES // (8 * d))
        for start in range(0, n, step):
            rows = mapped.map_rows(self.A, start, start + step)
            yield rows, mapped.map_targets(self.targets, start, start + step)


class Pass(ABC, Generic[T]):
    """One reading of all rows."""

    #: What progress reports call it.
    name: ClassVar[str]
    #: Whether how often it runs depends on the data: then nothing reports it.
    quiet: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, block: Block) -> T:
        """Return the value of a block."""

    def combine(self, a: T, b: T) -> T:
        """Return the value of two blocks together, without a change of either; the sum."""
        return a + b  # type: ignore[operator, no-any-return]


@dataclass(frozen=True)
class Lengths(Pass["Counter[int]"]):
    """Rows of each chunk."""

    name: ClassVar[str] = "check"

    def __call__(self, block: Block) -> Counter[int]:
        return Counter({block.chunk: block.A.shape[0]})


@dataclass(frozen=True)
class Gram(Pass[FloatArray]):
    """``X'X``."""

    name: ClassVar[str] = "Gram matrix"

    def __call__(self, block: Block) -> FloatArray:
        return mapped.gram(block.A)


@dataclass(frozen=True)
class Total(Pass[FloatArray]):
    """The sum of the rows."""

    name: ClassVar[str] = "mean"

    def __call__(self, block: Block) -> FloatArray:
        n, d = block.A.shape
        return mapped.gradient(block.A, Targets(np.ones(n)), np.zeros(d), 1.0)


@dataclass(frozen=True)
class Gradient(Pass[FloatArray]):
    """``X' clip(y - X theta)``, residuals clipped to [-clip, clip]."""

    name: ClassVar[str] = "gradient"
    theta: FloatArray
    clip: float

    def __call__(self, block: Block) -> FloatArray:
        return mapped.gradient(block.A, block.targets, self.theta, self.clip)


@dataclass(frozen=True)
class Moments(Pass[tuple[FloatArray, FloatArray]]):
    """``X'X`` and ``X'y``."""

    name: ClassVar[str] = "moments"

    def __call__(self, block: Block) -> tuple[FloatArray, FloatArray]:
        return mapped.moments(block.A, block.targets)

    def combine(
        self, a: tuple[FloatArray, FloatArray], b: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        return a[0] + b[0], a[1] + b[1]


@dataclass(frozen=True)
class Slopes(Pass[tuple[FloatArray, FloatArray, int]]):
    """``X' f'(y - X theta)`` in two parts, ``X' (1 - f'') X``, and residuals outside the zone."""

    name: ClassVar[str] = "objective"
    quiet: ClassVar[bool] = True
    theta: FloatArray
    loss: Loss
    excess: bool

    def __call__(self, block: Block) -> tuple[FloatArray, FloatArray, int]:
        """Return the three for the block."""
        return mapped.slopes(block.A, block.targets, self.theta, self.loss, excess=self.excess)

    def combine(
        self, a: tuple[FloatArray, FloatArray, int], b: tuple[FloatArray, FloatArray, int]
    ) -> tuple[FloatArray, FloatArray, int]:
        """Return the sums; what rounding takes off a first part goes to the second (Knuth)."""
        (u, v), high = (a[0][0], b[0][0]), a[0][0] + b[0][0]
        z = high - u
        low = a[0][1] + b[0][1] + ((u - (high - z)) + (v - z))
        return np.stack([high, low]), a[1] + b[1], a[2] + b[2]


@dataclass(frozen=True)
class Curved(Pass[FloatArray]):
    """``X' f''(y - X theta) X v``."""

    name: ClassVar[str] = "curvature"
    quiet: ClassVar[bool] = True
    theta: FloatArray
    loss: Loss
    v: FloatArray

    def __call__(self, block: Block) -> FloatArray:
        """Return the product for the block."""
        return mapped.curved(block.A, block.targets, self.theta, self.loss, self.v)


@dataclass(frozen=True)
class ResidualCounts(Pass[FloatArray]):
    """How many residuals ``|clip(y - X theta)|`` lie in each bin of ``clip`` times ``edges``."""

    name: ClassVar[str] = "residuals"
    theta: FloatArray
    clip: float
    edges: FloatArray

    def __call__(self, block: Block) -> FloatArray:
        bins = len(self.edges) - 1
        counts = np.zeros(bins)
        for A, y in block.formed():
            size = np.minimum(np.abs(y - A @ self.theta) / self.clip, 1.0)
            if np.isnan(size).any():  # data that changed since they were checked: rows refuse it
                return np.full(bins, np.nan)
            # Bin j holds sizes in (edge j, edge j+1]; 0 and everything tiny falls out at the left.
            at = np.searchsorted(self.edges, size, side="left") - 1
            counts += np.bincount(at[at >= 0], minlength=bins)
        return counts


@dataclass(frozen=True)
class Sketched(Pass[FloatArray]):
    """``S X`` for a sketch S whose columns come in blocks."""

    name: ClassVar[str] = "sketch"
    draw: KerdockDraw

    def __call__(self, block: Block) -> FloatArray:
        return self.draw.partial_sketch(block.A, block.offset)


@dataclass(frozen=True)
class Distortion(Pass[tuple[float, FloatArray]]):
    """The largest row norm of ``S'Z - X`` for ``Z = S X``, and the first row of Z once more.

    The row tells whether X is still what Z was made of.
    """

    name: ClassVar[str] = "distortion"
    draw: KerdockDraw
    Z: FloatArray

    def __call__(self, block: Block) -> tuple[float, FloatArray]:
        n, d = block.A.shape
        first = Targets(self.draw.first_row(block.offset, n))
        m_hat = self.draw.partial_distortion(block.A, self.Z, block.offset)
        return m_hat, mapped.gradient(block.A, first, np.zeros(d), 1.0)

    def combine(
        self, a: tuple[float, FloatArray], b: tuple[float, FloatArray]
    ) -> tuple[float, FloatArray]:
        return max(a[0], b[0]), a[1] + b[1]


@dataclass(frozen=True)
class Joined(Pass[Any]):
    """A pass over (X, y), rows joined by their targets, with zeros for targets."""

    inner: Pass[Any]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the inner pass."""
        return self.inner.name

    def __call__(self, block: Block) -> Any:
        return reduce(self.combine, (self.inner(part) for part in joined(block)))

    def combine(self, a: Any, b: Any) -> Any:
        return self.inner.combine(a, b)


def joined(block: Block) -> Iterator[Block]:
    """Yield the rows of a block joined by their targets, a few at a time."""
    offset = block.offset
    for A, y in block.formed():
        yield Block(Mapped(np.column_stack((A, y))), Targets(np.zeros(len(A))), offset, block.chunk)
        offset += len(A)
