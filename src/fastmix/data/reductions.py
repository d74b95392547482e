"""What mechanisms compute from the rows: a value of each block, and the sum of such values.

A pass is a pure function of a block and of values that are bound to it, so it may run anywhere, and
again, without a change of its result.  Kernels do the work; what is here says how blocks combine.
"""

import operator
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from fastmix._types import FloatArray
from fastmix.kernels import mapped, reference
from fastmix.kernels.losses import Loss
from fastmix.kernels.mapped import Mapped, Targets
from fastmix.sketches.kerdock import KerdockDraw

T = TypeVar("T")
Moments: TypeAlias = tuple[FloatArray, FloatArray]
Slopes: TypeAlias = tuple[FloatArray, FloatArray, int]
#: The slope of a loss as a function of residual and target.
Slope: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]

#: Bytes of mapped rows that are formed at a time.
_FORMED_BYTES = 4 << 20


class Measure(NamedTuple):
    """How rows are measured: the length of ``T' a``, and at least ``least``."""

    transform: FloatArray
    least: float

    def same(self, other: "Measure") -> bool:
        """Whether both measure alike."""
        return self.least == other.least and np.array_equal(self.transform, other.transform)


@dataclass(frozen=True)
class Block:
    """Consecutive rows of bounded norm with their targets, zeros if there are none.

    ``offset`` is the position of the first among all rows, ``chunk`` the number of their chunk,
    ``lengths`` bounds their lengths in other coordinates, ``weights`` say how often each counts.
    """

    A: Mapped
    targets: Targets
    offset: int = 0
    chunk: int = 0
    lengths: FloatArray | None = None
    weights: FloatArray | None = None

    def unweighted(self) -> "Block":
        """Refuse rows with weights, where a pass does not know them."""
        if self.weights is not None:
            raise ValueError("rows with weights must go through passes that know weights.")
        return self

    def weights_of(self, start: int, count: int) -> FloatArray:
        """Return the weights of some rows: ones where there are none."""
        if self.weights is None:
            return np.ones(count)
        return self.weights[start : start + count]

    def measured(self, measure: "Measure | None") -> "Block":
        """Return the block with the lengths of its rows."""
        if measure is None:
            return self
        lengths = mapped.row_lengths(self.A, measure.transform, measure.least)
        return replace(self, lengths=lengths)

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
    return mapped.gram(block.unweighted().A)


def total(block: Block) -> FloatArray:
    """Return the sum of the rows."""
    n, d = block.unweighted().A.shape
    return mapped.gradient(block.A, Targets(np.ones(n)), np.zeros(d), 1.0)


def gradient(block: Block, *, theta: FloatArray, clip: float) -> FloatArray:
    """Return ``X' clip(y - X theta)``, residuals clipped to [-clip, clip]."""
    return mapped.gradient(block.unweighted().A, block.targets, theta, clip)


def moments(block: Block) -> Moments:
    """Return ``X'X`` and ``X'y``, or these with weights."""
    if block.weights is not None:
        return reference.weighted_moments(block.A, block.targets, block.weights)
    return mapped.moments(block.A, block.targets)


def target_total(block: Block) -> FloatArray:
    """Return the sum of the targets, as an array of one entry."""
    n = len(block.targets.y)
    targets = mapped.map_targets(block.targets, 0, n)
    return np.array([targets.sum() if block.weights is None else block.weights @ targets])


def second_moments(block: Block, *, transform: FloatArray) -> FloatArray:
    """Return ``Z'Z`` for rows ``T'(a, y)`` that are shortened to length 1."""
    total, start = np.zeros((transform.shape[1], transform.shape[1])), 0
    for A, y in block.formed():
        rows = np.column_stack((A, y)) @ transform
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        # A hair shorter than 1, so that rounding cannot exceed it.
        rows *= np.minimum(1.0, (1.0 - 2.0**-40) / np.maximum(lengths, 2.0**-40))[:, None]
        if block.weights is not None:
            rows *= np.sqrt(block.weights[start : start + len(y)])[:, None]
            start += len(y)
        total += rows.T @ rows
    return total


def slopes(block: Block, *, theta: FloatArray, loss: Loss, excess: bool) -> Slopes:
    """Return ``X' f'(y - X theta)`` in two parts, ``X' (bend - f'') X``, and a count."""
    own: dict[str, Any] = {"lengths": block.lengths, "weights": block.weights}
    return mapped.slopes(block.A, block.targets, theta, loss, excess=excess, **own)


def curved(
    block: Block, *, theta: FloatArray, loss: Loss, v: FloatArray, secant: bool
) -> FloatArray:
    """Return ``X' f''(y - X theta) X v``, or that with secants for ``f''``."""
    own: dict[str, Any] = {"lengths": block.lengths, "weights": block.weights}
    return mapped.curved(block.A, block.targets, theta, loss, v, secant=secant, **own)


def residual_counts(
    block: Block, *, theta: FloatArray, clip: float, edges: FloatArray
) -> FloatArray:
    """Return how many ``|clip(y - X theta)|`` lie in each bin of ``clip`` times ``edges``."""
    counts = np.zeros(len(edges) - 1)
    for A, y in block.unweighted().formed():
        counts += binned(np.minimum(np.abs(y - A @ theta) / clip, 1.0), edges)
    return counts


def slope_counts(
    block: Block,
    *,
    theta: FloatArray,
    longest: float,
    edges: FloatArray,
    free: Slope | None = None,
) -> FloatArray:
    """Return how many slopes, residuals by default, times the lengths of the rows, in each bin."""
    if block.lengths is None:
        raise ValueError("lengths must be known to count gradients.")
    counts, start = np.zeros(len(edges) - 1), 0
    for A, y in block.formed():
        lengths = block.lengths[start : start + len(y)]
        slopes = y - A @ theta if free is None else free(y - A @ theta, y)
        size = np.abs(slopes) * np.minimum(lengths, longest**2 / lengths)
        own = None if block.weights is None else block.weights_of(start, len(y))
        counts += binned(np.minimum(size, edges[-1]), edges, own)
        start += len(y)
    return counts


def line(
    block: Block, *, center: FloatArray, move: FloatArray, widths: tuple[float, float]
) -> FloatArray:
    """Return the sums of p, e, p r and p^2 for ``a' move`` and ``y - a' center``, clipped."""
    total, start = np.zeros(4), 0
    for A, y in block.formed():
        adds, misses = A @ move, y - A @ center
        p, r = np.clip(adds / widths[0], -1.0, 1.0), np.clip(misses / widths[1], -1.0, 1.0)
        own = block.weights_of(start, len(y))
        total += own @ np.column_stack((p, np.clip(misses - adds, -1.0, 1.0), p * r, p * p))
        start += len(y)
    return total


def binned(sizes: FloatArray, edges: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Count sizes up to the last edge by bins; NaN if any is: rows refuse data that changed.

    Bin j holds sizes in (edge j, edge j+1]; 0 and everything tiny falls out at the left.
    """
    if np.isnan(sizes).any():
        return np.full(len(edges) - 1, np.nan)
    at = np.searchsorted(edges, sizes, side="left") - 1
    own = None if weights is None else weights[at >= 0]
    return np.bincount(at[at >= 0], own, minlength=len(edges) - 1).astype(np.float64)


def sketched(block: Block, *, draw: KerdockDraw) -> FloatArray:
    """Return ``S X`` for a sketch S whose columns come in blocks."""
    return draw.partial_sketch(block.unweighted().A, block.offset)


def distortion(block: Block, *, draw: KerdockDraw, Z: FloatArray) -> tuple[float, FloatArray]:
    """Return the largest row norm of ``S'Z - X`` for ``Z = S X``, and the first row of Z once more.

    The row tells whether X is still what Z was made of.
    """
    n, d = block.unweighted().A.shape
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
    values, offset = [], block.unweighted().offset
    for A, y in block.formed():
        rows, zeros = Mapped(np.column_stack((A, y))), Targets(np.zeros(len(A)))
        values.append(task.value(Block(rows, zeros, offset, block.chunk)))
        offset += len(A)
    return reduce(task.combine, values)
