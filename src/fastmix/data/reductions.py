"""What mechanisms compute from the rows: a value of each block, and the sum of such values.

A pass is a pure function of a block and of values that are bound to it, so it may run anywhere, and
again, without a change of its result.  Kernels do the work; what is here says how blocks combine.
"""

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix.kernels import mapped, measured, reference
from fastmix.kernels.losses import Loss
from fastmix.kernels.mapped import Mapped, Targets
from fastmix.sketches import BlockDraw

T = TypeVar("T")
Slopes: TypeAlias = tuple[FloatArray, FloatArray, int]
#: The slope of a loss as a function of residual and target.
Slope: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]

#: Bytes of mapped rows whose lengths are held at a time.
_MEASURED_BYTES = 64 << 20


class Measure(NamedTuple):
    """How rows are measured: the length of ``T' a``, and at least ``least``.

    Without a transform all rows count with that length.
    """

    transform: FloatArray | None
    least: float

    @classmethod
    def of(cls, transform: FloatArray, least: float, bound: float) -> "Measure":
        """Return the measure of rows up to a norm; if none is longer than ``least``, by that."""
        short = measured.norm_bound(transform) * bound * (1.0 + 2.0**-40) <= least
        return cls(None if short else transform, least)

    def same(self, other: "Measure") -> bool:
        """Whether both measure alike."""
        if self.transform is None or other.transform is None:
            return self.transform is other.transform and self.least == other.least
        return self.least == other.least and np.array_equal(self.transform, other.transform)


@dataclass(frozen=True)
class Block:
    """Consecutive rows of bounded norm with their targets, zeros if there are none.

    ``offset`` is the position of the first among all rows, ``chunk`` the number of their chunk,
    ``lengths`` bounds their lengths in other coordinates, ``weights`` say how often each counts,
    and ``persons`` number the person of each, where they have several rows.
    """

    A: Mapped
    targets: Targets
    offset: int = 0
    chunk: int = 0
    lengths: FloatArray | None = None
    weights: FloatArray | None = None
    persons: npt.NDArray[np.int64] | None = None

    def unweighted(self) -> "Block":
        """Refuse rows with weights, where a pass does not know them."""
        if self.weights is not None:
            raise ValueError("rows with weights must go through passes that know weights.")
        return self

    def weights_of(self, rows: slice) -> FloatArray:
        """Return the weights of some rows: ones where there are none."""
        if self.weights is None:
            return np.ones(len(range(*rows.indices(self.A.shape[0]))))
        return self.weights[rows]

    def measured(self, measure: "Measure | None") -> "Block":
        """Return the block with the lengths of its rows."""
        if measure is None:
            return self
        if measure.transform is None:
            return replace(self, lengths=np.full(self.A.shape[0], measure.least))
        lengths = measured.row_lengths(self.A, measure.transform, measure.least)
        return replace(self, lengths=lengths)

    def rows(self, chosen: "slice | npt.NDArray[np.intp]") -> "Block":
        """Return some of the rows, without lengths; in order, if offsets matter."""
        factors = None if self.A.factors is None else self.A.factors[chosen]
        A = replace(self.A, X=self.A.X[chosen], factors=factors)
        targets = replace(self.targets, y=self.targets.y[chosen])
        return Block(A, targets, self.offset, self.chunk)

    def residuals(self, *thetas: FloatArray) -> Iterator[tuple[slice, list[FloatArray]]]:
        """Yield places of rows, as many as fit, and ``y - X theta`` for each of the coefficients.

        They are those of each record alone: products of BLAS depend on where a row stands, and so
        would a bin that a record counts in.
        """
        n, d = self.A.shape
        step = max(1, _MEASURED_BYTES // (8 * d))
        for start in range(0, n, step):
            chosen = slice(start, min(start + step, n))
            part = self.rows(chosen)
            yield chosen, [mapped.residuals(part.A, part.targets, theta) for theta in thetas]

    def formed(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the mapped rows and targets themselves, a few at a time."""
        n, d = self.A.shape
        step = reference.block_rows(d)
        for start in range(0, n, step):
            rows = mapped.map_rows(self.A, start, start + step)
            yield rows, mapped.map_targets(self.targets, start, start + step)

    def weighted(self) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield the weights of rows, the mapped rows, and their targets, a few at a time."""
        start = 0
        for A, y in self.formed():
            yield self.weights_of(slice(start, start + len(y))), A, y
            start += len(y)


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


def folded(combine: Callable[[Any, Any], Any], values: Iterable[Any]) -> Any:
    """Return the value of all blocks together; None if there are none.

    They are combined in pairs, pairs of pairs and so on, in order: each goes through as many sums
    as their number has binary digits, whatever their number is.
    """
    waiting: list[tuple[int, Any]] = []  # how many pairings each is made of, and its value
    for value in values:
        if value is None:
            continue
        waiting.append((0, value))
        while len(waiting) > 1 and waiting[-2][0] == waiting[-1][0]:
            (level, first), (_, second) = waiting[-2:]
            waiting[-2:] = [(level + 1, combine(first, second))]
    rest = [value for _, value in reversed(waiting)]
    return reduce(lambda last, each: combine(each, last), rest) if rest else None


def lengths(block: Block) -> "Counter[int]":
    """Return the rows of each chunk."""
    return Counter({block.chunk: block.A.shape[0]})


def gram(block: Block) -> FloatArray:
    """Return ``X'X``."""
    return mapped.gram(block.unweighted().A)


def total(block: Block) -> FloatArray:
    """Return the sum of the rows, or that with weights."""
    n, d = block.A.shape
    if block.weights is None:
        return mapped.gradient(block.A, Targets(np.ones(n)), np.zeros(d), 1.0)
    value = np.zeros(d)
    for own, A, _ in block.weighted():
        value += own @ A
    return value


def gradient(block: Block, theta: FloatArray, clip: float) -> FloatArray:
    """Return ``X' clip(y - X theta)``, residuals clipped to [-clip, clip]."""
    return mapped.gradient(block.unweighted().A, block.targets, theta, clip)


def joint_moments(block: Block) -> FloatArray:
    """Return ``(X, y)'(X, y)``, or that with weights."""
    return mapped.joint_moments(block.A, block.targets, block.weights)


def target_total(block: Block) -> FloatArray:
    """Return the sum of the targets, as an array of one entry."""
    n = len(block.targets.y)
    targets = mapped.map_targets(block.targets, 0, n)
    return np.array([np.sum(block.weights_of(slice(0, n)) * targets)])  # in pairs


def second_moments(block: Block, *, transform: FloatArray, longest: float) -> FloatArray:
    """Return ``Z'Z`` for rows ``T'(a, y)`` that are shortened to ``longest``."""
    return measured.second_moments(block.A, block.targets, transform, longest, block.weights)


def excess_moments(
    block: Block, *, transform: FloatArray, longest: float, norm: float, single: bool
) -> FloatArray:
    """Return what shortening rows ``T'(a, y)`` to ``longest`` takes off ``(X, y)'(X, y)``.

    ``norm`` bounds that of ``(a, y)``. A row is left alone only if a bound on its length says so;
    the others are measured once more, in double precision.
    """
    total = np.zeros_like(transform)
    n, d = block.A.shape
    step = max(1, _MEASURED_BYTES // (8 * d))
    for start in range(0, n, step):
        part = block.rows(slice(start, start + step))
        bounds = measured.row_lengths(
            part.A, transform, 0.0, targets=part.targets, norm=norm, single=single
        )
        long = np.flatnonzero(~(bounds <= longest))
        few = reference.block_rows(d)
        for first in range(0, len(long), few):
            chosen = part.rows(long[first : first + few])
            rows = np.column_stack((np.asarray(chosen.A), np.asarray(chosen.targets)))
            lengths = measured.row_lengths(Mapped(rows), transform, longest)
            rows *= np.sqrt(1.0 - (longest / lengths) ** 2)[:, None]
            total += mapped.gram(Mapped(rows))
    return total


def slopes(block: Block, theta: FloatArray, loss: Loss, *, excess: bool = False) -> Slopes:
    """Return ``X' f'(y - X theta)`` in two parts, ``X' (bend - f'') X``, residuals outside."""
    own: dict[str, Any] = {"lengths": block.lengths, "weights": block.weights}
    return mapped.slopes(block.A, block.targets, theta, loss, excess=excess, **own)


def curved(
    block: Block, theta: FloatArray, loss: Loss, v: FloatArray, *, secant: bool = False
) -> FloatArray:
    """Return ``X' f''(y - X theta) X v``, or that with secants for ``f''``."""
    own: dict[str, Any] = {"lengths": block.lengths, "weights": block.weights}
    return mapped.curved(block.A, block.targets, theta, loss, v, secant=secant, **own)


def sampled_curvature(block: Block, theta: FloatArray, loss: Loss, every: int) -> FloatArray:
    """Estimate ``X' f''(y - X theta) X`` from every k-th row, scaled by k = ``every``."""
    chosen = slice(None, None, every)
    part = block.rows(chosen)
    lengths = None if block.lengths is None else block.lengths[chosen]
    bends = mapped.terms(part.A, part.targets, theta, loss, lengths)[1]
    own = bends if block.weights is None else block.weights[chosen] * bends
    return every * mapped.scaled_gram(part.A, np.sqrt(own))


def residual_counts(block: Block, theta: FloatArray, clip: float, edges: FloatArray) -> FloatArray:
    """Return how many ``|clip(y - X theta)|`` lie in each bin of ``clip`` times ``edges``."""
    counts = np.zeros(len(edges) - 1)
    for rows, (residuals,) in block.residuals(theta):
        own = None if block.weights is None else block.weights_of(rows)
        counts += reference.binned(np.minimum(np.abs(residuals) / clip, 1.0), edges, own)
    return counts


def signed_counts(block: Block, theta: FloatArray, edges: FloatArray) -> FloatArray:
    """Return how many residuals ``y - X theta`` lie in each bin: those below 0, those above it."""
    counts = np.zeros((2, len(edges) - 1))
    for rows, (residuals,) in block.residuals(theta):
        own = block.weights_of(rows)
        for side, sizes in enumerate((-residuals, residuals)):
            counts[side] += reference.binned(np.clip(sizes, 0.0, edges[-1]), edges, own)
    return counts


def slope_counts(
    block: Block,
    theta: FloatArray,
    longest: float,
    edges: FloatArray,
    free: Slope | None = None,
) -> FloatArray:
    """Return how many gradients, slopes times the lengths of the rows, lie in each bin.

    The slopes are residuals, or ``free`` gives them. Rows longer than ``longest`` count as if they
    were shortened.
    """
    if block.lengths is None:
        raise ValueError("lengths must be known to count gradients.")
    at = block.lengths
    if free is None and block.weights is None:
        return measured.slope_counts(block.A, block.targets, theta, at, longest, edges)
    counts = np.zeros(len(edges) - 1)
    for rows, (slopes,) in block.residuals(theta):
        if free is not None:
            slopes = free(slopes, mapped.map_targets(block.targets, rows.start, rows.stop))
        size = np.abs(slopes) * np.minimum(at[rows], longest**2 / at[rows])
        own = None if block.weights is None else block.weights[rows]
        counts += reference.binned(np.minimum(size, edges[-1]), edges, own)
    return counts


def sketched(block: Block, *, draw: BlockDraw) -> FloatArray:
    """Return ``S X`` for a sketch S whose columns come in blocks."""
    return draw.partial_sketch(block.unweighted().A, block.offset)


def distortion(block: Block, *, draw: BlockDraw, Z: FloatArray) -> tuple[float, FloatArray]:
    """Return the largest row norm of ``S'Z - X`` for ``Z = S X``, and ``c'S X``.

    The second tells whether X is still what Z was made of (`BlockDraw.probe`).
    """
    n, d = block.unweighted().A.shape
    probe = Targets(draw.probe(block.offset, n))
    m_hat = draw.partial_distortion(block.A, Z, block.offset)
    return m_hat, mapped.gradient(block.A, probe, np.zeros(d), 1.0)


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
