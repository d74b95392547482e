"""Curvatures of a loss and squares of its gradients: sums over the rows of blocks, and persons."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fastmix._types import FloatArray
from fastmix.data.reductions import Block
from fastmix.kernels import mapped, measured
from fastmix.kernels.losses import Loss

#: Numbers of persons, and a sum of each.
Sums: TypeAlias = tuple[npt.NDArray[np.int64], FloatArray]

#: Rows whose terms are limited at a time, so that they stay in cache.
_LIMITED_ROWS = 1 << 14


class At(NamedTuple):
    """The coefficients and the loss that terms are of, and the coordinates of their rows.

    Coordinates may have ``weights`` of at most 1, which shorten all rows.
    """

    theta: FloatArray
    loss: Loss
    transform: FloatArray
    weights: FloatArray | None = None


def curvatures(block: Block, at: At, *, square: float, squares: bool = True) -> FloatArray:
    """Return sums of ``f'' z z'`` and ``f'^2 z z'`` for rows ``z = T'a``, the first limited.

    No term of the first has a norm above ``square``; gradients, whose squares the second has, are
    limited by the loss. With weights w of rows the sums are those of ``w f'' z z'`` and
    ``(w f')^2 z z'``; without ``squares`` the second is 0.
    """
    totals = np.zeros((2, at.transform.shape[1], at.transform.shape[1]))
    for own, Z, bends, slopes in _terms(block, at, square):
        if squares:
            steep = Z * (own * slopes)[:, None]
            totals[1] += steep.T @ steep  # a product with itself takes half the time
        Z *= np.sqrt(own * bends)[:, None]
        totals[0] += Z.T @ Z
    return totals


def whole_curvatures(
    block: Block,
    at: At,
    *,
    square: float,
    steepest: float,
    squares: bool = True,
    lacking: bool = False,
) -> FloatArray:
    """Return Gram matrices G of rows with scales: `curvatures` are ``T' G T``.

    No row is formed. Gradients are limited to ``steepest``. If curvatures are ``lacking``, the
    first has what they lack of 1, which is 0 for most rows of a loss of squares.
    """
    if block.lengths is None:
        raise ValueError("lengths must be known to limit curvatures.")
    A, long = block.A, block.lengths
    if at.weights is not None:
        long = measured.row_lengths(A, at.transform * at.weights, 1e-150)
    slopes, bends = mapped.terms(A, block.targets, at.theta, at.loss, block.lengths)
    for start in range(0, len(bends), _LIMITED_ROWS):
        part = slice(start, start + _LIMITED_ROWS)
        np.minimum(bends[part], square / np.square(long[part]), out=bends[part])
        np.minimum(np.abs(slopes[part]), steepest / block.lengths[part], out=slopes[part])
    grams = np.zeros((2, *np.shape(at.transform)))
    if lacking:
        few = np.flatnonzero(bends != 1.0)
        grams[0] = mapped.scaled_gram(block.rows(few).A, np.sqrt(1.0 - bends[few]))
    else:
        own = bends if block.weights is None else block.weights * bends
        grams[0] = mapped.scaled_gram(A, np.sqrt(own))
    if squares:
        own = slopes if block.weights is None else block.weights * slopes
        grams[1] = mapped.scaled_gram(A, own)
    return grams


def person_gradients(block: Block, at: At, *, persons: tuple[int, int]) -> Sums:
    """Return the sums ``w f' z`` of the rows of each person whose number is in a range."""
    codes = np.zeros(0, np.int64) if block.persons is None else block.persons
    inside = (codes >= persons[0]) & (codes < persons[1])
    chosen = slice(None) if inside.all() else np.flatnonzero(inside)
    part = block.rows(chosen)
    if block.lengths is not None:
        part = replace(part, lengths=block.lengths[chosen])
    if block.weights is not None:
        part = replace(part, weights=block.weights[chosen])
    found, places = np.unique(codes[chosen], return_inverse=True)
    sums, start = np.zeros((len(found), at.transform.shape[1])), 0
    for own, Z, _, slopes in _terms(part, at, np.inf):
        Z *= (own * slopes)[:, None]
        few, whose = np.unique(places[start : start + len(Z)], return_inverse=True)
        owners = csr_array((np.ones(len(Z)), (whose, np.arange(len(Z)))), (len(few), len(Z)))
        sums[few] += np.asarray(owners @ Z)
        start += len(Z)
    return found, sums


def add_persons(first: Sums, second: Sums) -> Sums:
    """Return the sums of each person that has rows in one of two blocks, or in both."""
    found = np.union1d(first[0], second[0])
    sums = np.zeros((len(found), first[1].shape[1]))
    for codes, own in (first, second):
        sums[np.searchsorted(found, codes)] += own
    return found, sums


def _terms(
    block: Block, at: At, square: float
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
    """Yield weights of rows, rows ``z = T'a``, limited curvatures, and slopes, some at a time."""
    if block.lengths is None:
        raise ValueError("lengths must be known to limit curvatures.")
    start, room = 0, 1.0 - 2.0**-40  # so that rounding cannot exceed the limits
    found = np.concatenate([np.empty(0), *(r for _, (r,) in block.residuals(at.theta))])
    for own, A, y in block.weighted():
        lengths = block.lengths[start : start + len(y)]
        residuals, Z = found[start : start + len(y)], A @ at.transform
        squared = lengths**2
        if at.weights is not None:
            Z *= at.weights
            squared = np.maximum(np.einsum("ij,ij->i", Z, Z), 1e-300)
        bends = np.minimum(at.loss.curvature(residuals, lengths, y), square / squared)
        most = at.loss.lipschitz / lengths
        slopes = np.clip(at.loss.slope(residuals, lengths, y), -most, most)
        yield own, Z, room**2 * bends, room * slopes
        start += len(y)
