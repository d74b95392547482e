"""What mechanisms compute from the rows: a value of each block, and the sum of such values.

A pass is a pure function of a block and of values that are bound to it, so it may run anywhere, and
again, without a change of its result.  Kernels do the work; what is here says how blocks combine.
"""

import operator
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from fastmix._types import FloatArray
from fastmix.kernels import mapped
from fastmix.kernels.losses import Loss
from fastmix.kernels.mapped import Mapped, Targets
from fastmix.sketches.kerdock import KerdockDraw

T = TypeVar("T")
Moments: TypeAlias = tuple[FloatArray, FloatArray]
Slopes: TypeAlias = tuple[FloatArray, FloatArray, int]

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


@dataclass(frozen=True)
class Pass(Generic[T]):
    """One reading of all rows: its name in reports, the value of a block, and how two add up.

    A ``quiet`` pass is reported nowhere, because how often it runs depends on the data; a ``large``
    one carries sketched data. Values are combined without a change of either.
    """

    name: str
    value: Callable[[Block], T]
    combine: Callable[[T, T], T] = operator.add
    quiet: bool = False
    large: bool = False

    def joined(self) -> "Pass[T]":
        """Return the pass over (X, y), rows joined by their targets, with zeros for targets."""
        return replace(self, value=partial(_joined, self))


def lengths(block: Block) -> "Counter[int]":
    """Return the rows of each chunk."""
    return Counter({block.chunk: block.A.shape[0]})


def gram(block: Block) -> FloatArray:
    """Return ``X'X``."""
    return mapped.gram(block.A)


def total(block: Block) -> FloatArray:
    """Return the sum of the rows."""
    n, d = block.A.shape
    return mapped.gradient(block.A, Targets(np.ones(n)), np.zeros(d), 1.0)


def gradient(block: Block, *, theta: FloatArray, clip: float) -> FloatArray:
    """Return ``X' clip(y - X theta)``, residuals clipped to [-clip, clip]."""
    return mapped.gradient(block.A, block.targets, theta, clip)


def moments(block: Block) -> Moments:
    """Return ``X'X`` and ``X'y``."""
    return mapped.moments(block.A, block.targets)


def slopes(block: Block, *, theta: FloatArray, loss: Loss, excess: bool) -> Slopes:
    """Return ``X' f'(y - X theta)`` in two parts, ``X' (1 - f'') X``, and a count."""
    return mapped.slopes(block.A, block.targets, theta, loss, excess=excess)


def curved(
    block: Block, *, theta: FloatArray, loss: Loss, v: FloatArray, secant: bool
) -> FloatArray:
    """Return ``X' f''(y - X theta) X v``, or that with ``f'(u)/u`` for ``f''(u)``."""
    return mapped.curved(block.A, block.targets, theta, loss, v, secant=secant)


def residual_counts(
    block: Block, *, theta: FloatArray, clip: float, edges: FloatArray
) -> FloatArray:
    """Return how many ``|clip(y - X theta)|`` lie in each bin of ``clip`` times ``edges``."""
    bins = len(edges) - 1
    counts = np.zeros(bins)
    for A, y in block.formed():
        size = np.minimum(np.abs(y - A @ theta) / clip, 1.0)
        if np.isnan(size).any():  # data that changed since they were checked: rows refuse it
            return np.full(bins, np.nan)
        # Bin j holds sizes in (edge j, edge j+1]; 0 and everything tiny falls out at the left.
        at = np.searchsorted(edges, size, side="left") - 1
        counts += np.bincount(at[at >= 0], minlength=bins)
    return counts


def sketched(block: Block, *, draw: KerdockDraw) -> FloatArray:
    """Return ``S X`` for a sketch S whose columns come in blocks."""
    return draw.partial_sketch(block.A, block.offset)


def distortion(block: Block, *, draw: KerdockDraw, Z: FloatArray) -> tuple[float, FloatArray]:
    """Return the largest row norm of ``S'Z - X`` for ``Z = S X``, and the first row of Z once more.

    The row tells whether X is still what Z was made of.
    """
    n, d = block.A.shape
    first = Targets(draw.first_row(block.offset, n))
    m_hat = draw.partial_distortion(block.A, Z, block.offset)
    return m_hat, mapped.gradient(block.A, first, np.zeros(d), 1.0)


def add_moments(a: Moments, b: Moments) -> Moments:
    """Return the sums of `moments`."""
    return a[0] + b[0], a[1] + b[1]


def add_slopes(a: Slopes, b: Slopes) -> Slopes:
    """Return the sums of `slopes`; what rounding takes off a high part goes to the low (Knuth)."""
    (u, v), high = (a[0][0], b[0][0]), a[0][0] + b[0][0]
    z = high - u
    low = a[0][1] + b[0][1] + ((u - (high - z)) + (v - z))
    return np.stack([high, low]), a[1] + b[1], a[2] + b[2]


def largest_and_sum(
    a: tuple[float, FloatArray], b: tuple[float, FloatArray]
) -> tuple[float, FloatArray]:
    """Return the larger distortion, and the sum of the rows."""
    return max(a[0], b[0]), a[1] + b[1]


def _joined(task: Pass[T], block: Block) -> T:
    """Return the value of a pass over the rows of a block joined by their targets."""
    values, offset = [], block.offset
    for A, y in block.formed():
        rows, zeros = Mapped(np.column_stack((A, y))), Targets(np.zeros(len(A)))
        values.append(task.value(Block(rows, zeros, offset, block.chunk)))
        offset += len(A)
    return reduce(task.combine, values)
