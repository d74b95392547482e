"""Passes over rows in other coordinates: lengths, moments, counts of gradients."""

import numpy as np

from fastmix._types import FloatArray
from fastmix.kernels import reference
from fastmix.kernels._backend import threads
from fastmix.kernels._trust import kernel
from fastmix.kernels.mapped import (
    FEW_COLUMNS,
    Mapped,
    Targets,
    mapped_arguments,
    packed,
    target_arguments,
)


def row_lengths(
    A: Mapped,
    transform: FloatArray,
    least: float,
    *,
    targets: Targets | None = None,
    norm: float | None = None,
    single: bool = False,
    n_threads: int | None = None,
) -> FloatArray:
    r"""Return bounds on the lengths of ``T' a`` for the rows a of A, at least ``least``.

    With ``targets`` they are those of ``T' (a, y)``. A triangular T, with zeros below its diagonal,
    takes half the time, and ``single`` precision half of that.

    The bound is the computed length, and :math:`4 (p + 16) u \|T\|_F` times the norm of the row, or
    a ``norm`` that no row exceeds; u is the unit of rounding. Entries of T and a are rounded once,
    each of p products and sums once, and so are p squares, their sums and the root: that is less
    than half of it. In single precision, numbers that are too small for it, and their squares,
    add less than :math:`2^{-60} (1 + \|T\|_F)`.
    """
    compiled = kernel("lengths")
    if compiled is None or A.X.size == 0 or not np.linalg.norm(transform) < np.inf:
        return reference.row_lengths(A, transform, least, targets)
    size = float(np.linalg.norm(transform))
    single = single and size < 2.0**60
    hair = length_error(transform, single=single)
    speck = 2.0**-60 * (1.0 + size) if single else 0.0
    if norm is not None:
        hair, speck = 0.0, speck + hair * norm
    seen = Targets(np.empty(0)) if targets is None else targets
    lengths = np.empty(A.shape[0])
    compiled(
        *mapped_arguments(A),
        *target_arguments(seen),
        packed(transform).reshape(-1),
        single,
        hair,
        speck,
        least,
        lengths,
        threads(n_threads),
    )
    return lengths


def length_error(transform: FloatArray, *, single: bool) -> float:
    """Return what `row_lengths` adds to lengths, in units of the norm of a row."""
    unit = 2.0**-24 if single else 2.0**-53
    return 4.0 * (len(transform) + 16) * unit * float(np.linalg.norm(transform))


def second_moments(
    A: Mapped,
    targets: Targets,
    transform: FloatArray,
    longest: float,
    *,
    n_threads: int | None = None,
) -> FloatArray:
    """Return ``Z'Z`` for rows ``T'(a, y)`` that are shortened to ``longest``."""
    size = A.shape[1] + 1
    compiled = kernel("second_moments")
    if compiled is None or A.X.size == 0 or size > FEW_COLUMNS:
        return reference.second_moments(A, targets, transform, longest)
    total = np.empty((size, size))
    at = packed(transform).reshape(-1)
    compiled(
        *mapped_arguments(A),
        *target_arguments(targets),
        at,
        longest,
        total.reshape(-1),
        threads(n_threads),
    )
    return total


def slope_counts(
    A: Mapped,
    targets: Targets,
    theta: FloatArray,
    lengths: FloatArray,
    longest: float,
    edges: FloatArray,
    *,
    n_threads: int | None = None,
) -> FloatArray:
    """Return how many ``|y - a' theta|``, times the lengths of the rows, lie in each bin.

    A row that is longer than ``longest`` counts as if it, and its target, were shortened. Bin j
    holds sizes in (edge j, edge j+1], the last one all beyond; all are NaN if any is.
    """
    compiled = kernel("slope_counts")
    if compiled is None or A.X.size == 0:
        return reference.slope_counts(A, targets, theta, lengths, longest, edges)
    counts = np.empty(len(edges) - 1)
    real = compiled(
        *mapped_arguments(A),
        *target_arguments(targets),
        packed(theta),
        packed(lengths),
        longest,
        packed(edges),
        counts,
        threads(n_threads),
    )
    return counts if real else np.full_like(counts, np.nan)
