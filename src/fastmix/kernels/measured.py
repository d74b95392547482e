"""Passes over rows in other coordinates: lengths, moments, counts of gradients."""

import numpy as np

from fastmix._types import FloatArray
from fastmix.kernels import reference
from fastmix.kernels._backend import threads
from fastmix.kernels.mapped import FEW_COLUMNS, Mapped, Targets, compiled, packed


def row_lengths(
    A: Mapped,
    transform: FloatArray,
    least: float,
    *,
    targets: Targets | None = None,
    norm: float | None = None,
    single: bool = False,
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
    size = float(np.linalg.norm(transform))
    run = compiled("lengths", A, Targets(np.empty(0)) if targets is None else targets)
    if run is None or not size < np.inf:
        return reference.row_lengths(A, transform, least, targets)
    single = single and size < 2.0**60
    hair = length_error(transform, single=single)
    speck = 2.0**-60 * (1.0 + size) if single else 0.0
    if norm is not None:
        hair, speck = 0.0, speck + hair * norm
    lengths = np.empty(A.shape[0])
    run(packed(transform).reshape(-1), single, hair, speck, least, lengths, threads())
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
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return ``Z'Z``, or that with weights, for rows ``T'(a, y)`` shortened to ``longest``."""
    size = A.shape[1] + 1
    few = size <= FEW_COLUMNS and weights is None
    run = compiled("second_moments", A, targets) if few else None
    if run is None:
        return reference.second_moments(A, targets, transform, longest, weights)
    total = np.empty((size, size))
    run(packed(transform).reshape(-1), longest, total.reshape(-1), threads())
    return total


def slope_counts(
    A: Mapped,
    targets: Targets,
    theta: FloatArray,
    lengths: FloatArray,
    longest: float,
    edges: FloatArray,
) -> FloatArray:
    """Return how many ``|y - a' theta|``, times the lengths of the rows, lie in each bin.

    A row that is longer than ``longest`` counts as if it, and its target, were shortened. Bin j
    holds sizes in (edge j, edge j+1], the last one all beyond; all are NaN if any is.
    """
    run = compiled("slope_counts", A, targets)
    if run is None:
        return reference.slope_counts(A, targets, theta, lengths, longest, edges)
    counts = np.empty(len(edges) - 1)
    real = run(packed(theta), packed(lengths), longest, packed(edges), counts, threads())
    return counts if real else np.full_like(counts, np.nan)
