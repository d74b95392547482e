"""Readable NumPy kernels: the oracle of every kernel test, and the path without a compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray, Floats

if TYPE_CHECKING:
    from fastmix.kernels.losses import Loss
    from fastmix.kernels.mapped import Mapped, Targets

Signs = npt.NDArray[np.int8]

#: Rows that are held at a time: a mebibyte of them, within these numbers.
_FEWEST_ROWS, _MOST_ROWS = 1280, 2048
#: Error of `slopes` relative to the sum of the absolute terms: products, and up to 2^20 sums.
SUMMATION_ERROR = 2.0**-52 + 2.0**20 * float(np.finfo(np.longdouble).eps)


def fwht(x: Floats, out: Floats, scale: float) -> None:
    """Write ``scale`` times the Walsh-Hadamard transform of the columns of ``x`` to ``out``.

    ``x`` has a power of two as its number of rows; ``out`` may be ``x`` itself. Level ``h``
    replaces each pair of entries ``(a, b)`` whose positions differ in bit ``h`` alone by ``(a + b,
    a - b)``. Levels run from the lowest bit to the highest and the factor, rounded to the dtype of
    ``x``, comes last; the compiled kernel keeps this order, so the two agree to the last bit.
    """
    n, d = x.shape
    y = np.array(x, order="C")
    h = 1
    while h < n:
        pairs = y.reshape(n // (2 * h), 2, h, d)
        a, b = pairs[:, 0], pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = a + b, a - b
        h *= 2
    np.multiply(y, y.dtype.type(scale), out=out)


def map_rows(A: Mapped, start: int, stop: int) -> FloatArray:
    """Return rows ``start`` to ``stop`` of a mapped matrix as a new array."""
    n, p = A.shape
    stop = min(stop, n)
    block = np.empty((stop - start, p))
    features = block[:, : A.X.shape[1]]
    features[...] = A.X[start:stop]
    if A.lower is not None or A.upper is not None:
        np.clip(features, A.lower, A.upper, out=features)
    if A.center is not None:
        features -= A.center
    if A.inverse_scale is not None:
        features *= A.inverse_scale
    if A.factors is not None:
        features *= A.factors[start:stop, None]
    if A.constant != 0.0:
        block[:, -1] = A.constant
    return block


def map_targets(targets: Targets, start: int, stop: int) -> FloatArray:
    """Return targets ``start`` to ``stop`` through their map."""
    y = np.asarray(targets.y[start:stop], dtype=np.float64)
    clipped = np.clip(y, targets.lower, targets.upper)
    return np.asarray(np.clip((clipped - targets.center) * targets.inverse_scale, -1.0, 1.0))


def squared_norms(A: Mapped) -> FloatArray:
    """Return the squared norms of the rows, without factors and constant; NaN as in `passes`."""
    plain = replace(A, factors=None, constant=0.0)
    norms = np.empty(A.shape[0])
    for start, stop in row_blocks(A):
        with np.errstate(over="ignore", invalid="ignore"):
            block = map_rows(plain, start, stop)
            norms[start:stop] = np.einsum("ij,ij->i", block, block)
        norms[start:stop][~np.isfinite(A.X[start:stop]).all(axis=1)] = np.nan
    return norms


def gram(A: Mapped) -> FloatArray:
    """Return ``A'A``."""
    total = np.zeros((A.shape[1], A.shape[1]))
    for start, stop in row_blocks(A):
        block = map_rows(A, start, stop)
        total += block.T @ block
    return total


def weighted_moments(A: Mapped, targets: Targets, weights: FloatArray) -> FloatArray:
    """Return ``(A, y)' W (A, y)`` for a diagonal matrix W."""
    size = A.shape[1] + 1
    total = np.zeros((size, size))
    for start, stop in row_blocks(A):
        block = np.column_stack((map_rows(A, start, stop), map_targets(targets, start, stop)))
        block *= np.sqrt(weights[start:stop])[:, None]
        total += block.T @ block
    return total


def gradient(A: Mapped, targets: Targets, theta: FloatArray, clip: float) -> FloatArray:
    """Return ``A' clip(y - A theta)``."""
    total = np.zeros(A.shape[1])
    for block, residual, _, _ in _residuals(A, targets, theta):
        total += block.T @ np.clip(residual, -clip, clip)
    return total


def residuals(A: Mapped, targets: Targets, theta: FloatArray) -> FloatArray:
    """Return ``y - A theta``."""
    parts = [residual for _, residual, _, _ in _residuals(A, targets, theta)]
    return np.concatenate([np.empty(0), *parts])


def terms(
    A: Mapped,
    targets: Targets,
    theta: FloatArray,
    loss: Loss,
    lengths: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return ``f'(y - A theta)`` and ``f''(y - A theta)`` of each row."""
    found = [np.empty((2, 0))]
    for _, residual, at, y in _residuals(A, targets, theta, lengths):
        found.append(np.stack([loss.slope(residual, at, y), loss.curvature(residual, at, y)]))
    slopes, bends = np.concatenate(found, axis=1)
    return slopes, bends


def row_lengths(
    A: Mapped, transform: FloatArray, least: float, targets: Targets | None = None
) -> FloatArray:
    """Return bounds on the lengths of ``T' a`` for the rows a of A, at least ``least``.

    With targets they are those of ``T' (a, y)``. They are a hair longer than the computed lengths:
    rounding cannot exceed them.
    """
    hair = (len(transform) + 16) * 2.0**-51 * float(np.linalg.norm(transform))
    lengths = np.empty(A.shape[0])
    for start, stop in row_blocks(A):
        block = map_rows(A, start, stop)
        if targets is not None:
            block = np.column_stack((block, map_targets(targets, start, stop)))
        rows = products(block, transform)
        lengths[start:stop] = _norms(rows) + hair * _norms(block)
    return np.maximum(lengths, least)


def second_moments(
    A: Mapped,
    targets: Targets,
    transform: FloatArray,
    longest: float,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return ``Z'Z``, or that with weights, for rows ``T'(a, y)`` shortened to ``longest``."""
    total = np.zeros((len(transform), len(transform)))
    for start, stop in row_blocks(A):
        block = np.column_stack((map_rows(A, start, stop), map_targets(targets, start, stop)))
        rows = _shortened(products(block, transform), longest)
        if weights is not None:
            rows *= np.sqrt(weights[start:stop])[:, None]
        total += rows.T @ rows
    return total


def slope_counts(
    A: Mapped,
    targets: Targets,
    theta: FloatArray,
    lengths: FloatArray,
    longest: float,
    edges: FloatArray,
) -> FloatArray:
    """Return how many ``|y - a' theta|``, times the lengths of the rows, lie in each bin."""
    counts, start = np.zeros(len(edges) - 1), 0
    for block, residual, _, _ in _residuals(A, targets, theta):
        at = lengths[start : start + len(block)]
        size = np.abs(residual) * np.minimum(at, longest**2 / at)
        counts += binned(np.minimum(size, edges[-1]), edges)
        start += len(block)
    return counts


def binned(sizes: FloatArray, edges: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Count sizes up to the last edge by bins; NaN if any is: rows refuse data that changed.

    Bin j holds sizes in (edge j, edge j+1]; 0 and everything tiny falls out at the left.
    """
    if np.isnan(sizes).any():
        return np.full(len(edges) - 1, np.nan)
    at, bins = np.searchsorted(edges, sizes, side="left") - 1, len(edges) - 1
    inside = at >= 0
    if weights is None:
        return np.bincount(at[inside], minlength=bins).astype(np.float64)
    return weighted_counts(at[inside], weights[inside], bins)


def weighted_counts(at: npt.NDArray[np.int64], weights: FloatArray, bins: int) -> FloatArray:
    """Return the sum of weights in each bin, added up in blocks."""
    total = np.zeros(bins)
    for start in range(0, len(at), _MOST_ROWS):
        part = slice(start, start + _MOST_ROWS)
        total += np.bincount(at[part], weights[part], minlength=bins)
    return total


def added(terms: FloatArray) -> FloatArray:
    """Return the sum over rows of terms, added up in blocks."""
    starts = np.arange(0, len(terms), _MOST_ROWS)
    return np.asarray(np.add.reduceat(terms, starts, axis=0).sum(axis=0) if len(starts) else 0.0)


def _shortened(rows: FloatArray, longest: float) -> FloatArray:
    """Return rows no longer than ``longest``; those far too short for their squares are."""
    rows *= np.minimum(1.0, longest / np.maximum(_norms(rows), 2.0**-40))[:, None]
    return rows


def _norms(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def slopes(
    A: Mapped,
    targets: Targets,
    theta: FloatArray,
    loss: Loss,
    excess: bool,
    lengths: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, int]:
    """Return ``A' f'(y - A theta)`` in two parts, ``A' (bend - f'') A``, and a count."""
    p = A.shape[1]
    total = np.zeros(p, dtype=np.longdouble)
    square = np.zeros((p, p) if excess else (0, 0))
    outside = 0
    start = 0
    for block, residual, at, y in _residuals(A, targets, theta, lengths):
        slope = loss.slope(residual, at, y)
        own = None if weights is None else weights[start : start + len(residual)]
        start += len(residual)
        if own is not None:
            slope = slope * own
        total += np.sum(block * slope[:, None], axis=0, dtype=np.longdouble)
        leaves = loss.leaves(residual, at)
        outside += int(leaves.sum())
        if excess:
            rows, less = block[leaves], (loss.bend - loss.curvature(residual, at, y))[leaves]
            if own is not None:
                less = less * own[leaves]
            square += (rows * less[:, None]).T @ rows
    high = total.astype(np.float64)
    return np.stack([high, (total - high).astype(np.float64)]), square, outside


def curved(
    A: Mapped,
    targets: Targets,
    theta: FloatArray,
    loss: Loss,
    v: FloatArray,
    secant: bool = False,
    lengths: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return ``A' f''(y - A theta) A v``, or that with secants for ``f''``."""
    total, start = np.zeros(A.shape[1]), 0
    for block, residual, at, y in _residuals(A, targets, theta, lengths):
        curvature = (loss.secant if secant else loss.curvature)(residual, at, y)
        if weights is not None:
            curvature = curvature * weights[start : start + len(residual)]
        start += len(residual)
        total += block.T @ (curvature * (block @ v))
    return total


def srht(
    A: Mapped, signs: Signs, rows: npt.NDArray[np.int64], n_pad: int, distortion: bool
) -> tuple[FloatArray, float]:
    """Return ``S A`` for an SRHT and its largest row distortion."""
    n, p = A.shape
    k2 = len(rows)
    Z = np.empty((k2, p))
    squares = np.zeros(n)
    for j in range(0, p, 8):
        tile = _map_columns(A, j, min(j + 8, p))
        work = np.zeros((n_pad, tile.shape[1]))
        work[:n] = tile * signs[:, None]
        fwht(work, work, 1.0 / float(np.sqrt(n_pad)))
        Z[:, j : j + 8] = work[rows] * np.sqrt(n_pad / k2)
        if distortion:
            # S'S - I = B H ((n/k2) P'P - I) H B; the last B changes no norm.
            sampled = work[rows] * (n_pad / k2 - 1.0)
            np.negative(work, out=work)
            work[rows] = sampled
            fwht(work, work, 1.0 / float(np.sqrt(n_pad)))
            squares += np.einsum("ij,ij->i", work[:n], work[:n])
    return Z, float(np.sqrt(squares.max()))


def _map_columns(A: Mapped, start: int, stop: int) -> FloatArray:
    """Return columns ``start`` to ``stop`` of a mapped matrix as a new array."""
    chosen = slice(start, stop)
    names = ("lower", "upper", "center", "inverse_scale")
    maps = {name: side[chosen] for name in names if (side := getattr(A, name)) is not None}
    constant = A.constant if stop > A.X.shape[1] else 0.0
    return map_rows(replace(A, X=A.X[:, chosen], constant=constant, **maps), 0, A.shape[0])


def row_blocks(A: Mapped) -> Iterator[tuple[int, int]]:
    """Cut the rows into blocks."""
    n, p = A.shape
    step = block_rows(p)
    return ((start, min(start + step, n)) for start in range(0, n, step))


def block_rows(p: int) -> int:
    """Return how many rows of p columns one product adds up: few, so that rounding is small."""
    return min(_MOST_ROWS, max(_FEWEST_ROWS, (1 << 17) // max(p, 1)))


def products(rows: FloatArray, transform: FloatArray) -> FloatArray:
    """Return ``A T``, or ``A v``, each row as if it were alone.

    BLAS rounds a row according to where it stands, and so would a bin or a limit of its record.
    """
    rows = np.ascontiguousarray(rows)
    return np.asarray(np.einsum("ij,j...->i...", rows, np.ascontiguousarray(transform)))


def _residuals(
    A: Mapped, targets: Targets, theta: FloatArray, lengths: FloatArray | None = None
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray | None, FloatArray]]:
    """Yield blocks of mapped rows with residuals, lengths if there are any, and targets."""
    for start, stop in row_blocks(A):
        block = map_rows(A, start, stop)
        y = map_targets(targets, start, stop)
        yield block, y - products(block, theta), None if lengths is None else lengths[start:stop], y
