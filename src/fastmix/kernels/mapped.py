"""Fused passes over the rows of an array that is seen through a public map.

Each pass reads the caller's array where it lies, in its own layout and dtype, maps entries on the
fly and makes no n x d copy.  Sums are taken over fixed blocks in a fixed order, so the result
does not depend on the number of threads. The NumPy versions differ by rounding only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk

from fastmix._types import FloatArray, Floats
from fastmix.kernels import reference
from fastmix.kernels._backend import is_regular, threads
from fastmix.kernels._trust import kernel
from fastmix.kernels.losses import Loss

#: Bytes of mapped rows that are handed to BLAS at a time.
_BLOCK_BYTES = 64 << 20
#: Up to this many columns the compiled Gram matrix is as fast as BLAS, or faster.
FEW_COLUMNS = 128
#: Rows that BLAS gets at a time, at most, so that they stay in cache and sums are short. It is an
#: odd number of cache lines, or columns of mapped rows would share their cache sets.
_BLAS_ROWS = 2056
#: Additions beside those of blocks: within one (`_BLAS_ROWS`), of units, and of files and workers.
_ADDITIONS = 2560


@dataclass(frozen=True)
class Mapped:
    """An n x p matrix A, never formed: an array seen through a public map of its entries.

    ``a_ij = f_i s_j (clip(x_ij, l_j, u_j) - c_j)`` for the d columns of X, of any layout, followed
    by one column of ``constant`` if that is not 0. Bounds l and u, ``center`` c, ``inverse_scale``
    s and ``factors`` f are arrays, or None for no bound, 0 and 1.
    """

    X: Floats
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    center: FloatArray | None = None
    inverse_scale: FloatArray | None = None
    factors: FloatArray | None = None
    constant: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of A."""
        n, d = self.X.shape
        return n, d + (self.constant != 0.0)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(map_rows(self, 0, self.shape[0]), dtype=dtype)


@dataclass(frozen=True)
class Targets:
    """Targets seen through a public map: ``clip((clip(y, lower, upper) - center) * s, -1, 1)``."""

    y: FloatArray
    lower: float = -1.0
    upper: float = 1.0
    center: float = 0.0
    inverse_scale: float = 1.0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(map_targets(self, 0, len(self.y)), dtype=dtype)


def compiled(name: str, A: Mapped, targets: Targets | None = None) -> Callable[..., Any] | None:
    """Return a compiled pass over A and its targets, which takes the other arguments.

    None means that NumPy takes over: without a compiled kernel, and without an entry to read.
    """
    found = kernel(name)
    if found is None or A.X.size == 0:
        return None
    seen = () if targets is None else _target_arguments(targets)
    return partial(found, *mapped_arguments(A), *seen)


def map_rows(A: Mapped, start: int, stop: int) -> FloatArray:
    """Return rows ``start`` to ``stop`` of A as a new array."""
    run = compiled("map_rows", A)
    if run is None:
        return reference.map_rows(A, start, stop)
    start, stop, _ = slice(start, stop).indices(A.shape[0])
    block = np.empty((max(0, stop - start), A.shape[1]), order="F")
    if block.size:
        run(start, block, threads())
    return block


def map_targets(targets: Targets, start: int, stop: int) -> FloatArray:
    """Return targets ``start`` to ``stop`` through their map."""
    return reference.map_targets(targets, start, stop)


def squared_norms(A: Mapped) -> FloatArray:
    """Return the squared norms of rows without factors and constant; NaN where X is not finite."""
    run = compiled("squared_norms", A)
    if run is None:
        return reference.squared_norms(A)
    norms = np.empty(A.shape[0])
    run(norms, threads())
    return norms


def gram(A: Mapped) -> FloatArray:
    """Return ``A'A``, summed in float64; exactly symmetric."""
    n, p = A.shape
    run = compiled("gram" if p <= FEW_COLUMNS else "map_rows", A)
    if run is None:
        return reference.gram(A)
    if p <= FEW_COLUMNS:
        total = np.empty((p, p))
        run(total.reshape(-1), threads())
        return total
    step = min(_BLAS_ROWS, max(1280, _BLOCK_BYTES // (8 * p)))
    if _is_plain(A):
        whole = np.zeros((p, p))
        for start in range(0, n, step):
            rows = A.X[start : start + step]
            whole += rows.T @ rows
        return whole
    memory = np.empty((min(n, step), p), order="F")
    total = np.zeros((p, p), order="F")
    for start in range(0, n, step):
        block = memory[: n - start]
        run(start, block, threads())
        # One triangle, added in place: half the work, and no temporary per block.
        total = dsyrk(1.0, block, beta=1.0, c=total, trans=1, overwrite_c=1)
    return np.asarray(np.triu(total) + np.triu(total, 1).T)


def scaled_gram(A: Mapped, scales: FloatArray) -> FloatArray:
    """Return ``(D A)'(D A)`` for the diagonal matrix D of the scales, which are not negative."""
    factors = scales if A.factors is None else scales * A.factors
    if not A.constant:
        return gram(replace(A, factors=factors))
    # The scaled constant is a target: factors do not reach the constant column.
    size = max(float(np.max(scales, initial=0.0)), 1e-300)
    total = joint_moments(replace(A, factors=factors, constant=0.0), Targets(scales / size))
    total[-1] *= A.constant * size
    total[:, -1] *= A.constant * size
    return total


def joint_moments(A: Mapped, targets: Targets, weights: FloatArray | None = None) -> FloatArray:
    """Return ``(A, y)'(A, y)``, or that with weights, in one reading if there are few columns."""
    if weights is not None:
        return reference.weighted_moments(A, targets, weights)
    n, p = A.shape
    total = np.empty((p + 1, p + 1))
    run = compiled("moments", A, targets) if p < FEW_COLUMNS else None
    if run is not None:
        run(total.reshape(-1), threads())
        return total
    total[:p, :p] = gram(A)
    total[p, :p] = total[:p, p] = gradient(A, targets, np.zeros(p), np.inf)
    total[p, p] = np.sum(map_targets(targets, 0, n) ** 2)
    return total


def additions(n: int, p: int) -> int:
    """Return how many additions a term of any sum over n rows of p columns goes through at most.

    BLAS may add the rows of a block in order, and the sums of blocks follow in order. Compiled
    passes have lanes, blocks and units, which are fewer. Files and workers are added in pairs.
    """
    rows = reference.block_rows(p)
    return _ADDITIONS + n // rows + n // (32 * rows)


def sum_error(count: int, n: int) -> float:
    """Return the error of sums of n terms of norm 1 by so many additions: n count u, and a hair."""
    share = count * 2.0**-53
    return n * share / (1.0 - share) if share < 1.0 else math.inf


def gradient(A: Mapped, targets: Targets, theta: FloatArray, clip: float) -> FloatArray:
    """Return ``A' clip(y - A theta)``, residuals clipped to [-clip, clip]."""
    run = compiled("gradient", A, targets)
    if run is None:
        return reference.gradient(A, targets, theta, clip)
    total = np.empty(A.shape[1])
    run(packed(theta), clip, total, threads())
    return total


def residuals(A: Mapped, targets: Targets, theta: FloatArray) -> FloatArray:
    """Return ``y - A theta``."""
    run = compiled("residuals", A, targets)
    if run is None:
        return reference.residuals(A, targets, theta)
    out = np.empty(A.shape[0])
    run(packed(theta), out, threads())
    return out


def terms(
    A: Mapped, targets: Targets, theta: FloatArray, loss: Loss, lengths: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return ``f'(y - A theta)`` and ``f''(y - A theta)`` of each row; `slopes` has the lengths."""
    run = compiled("terms", A, targets) if loss.constants is not None else None
    if run is None:
        return reference.terms(A, targets, theta, loss, lengths)
    slopes, bends = np.empty(A.shape[0]), np.empty(A.shape[0])
    run(packed(theta), np.array(loss.constants), _lengths(lengths), slopes, bends, threads())
    return slopes, bends


def summation_error(loss: Loss, *, weighted: bool = False) -> float:
    """Return the error of `slopes` of a loss, relative to the sum of the absolute terms.

    It is that of each product and of sums; with weights, products are rounded once more.
    """
    if weighted:
        return reference.SUMMATION_ERROR + 2.0**-52
    known = kernel("slopes") is not None and loss.constants is not None
    return 2.0**-52 if known else reference.SUMMATION_ERROR


def slopes(
    A: Mapped,
    targets: Targets,
    theta: FloatArray,
    loss: Loss,
    *,
    excess: bool = False,
    lengths: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, int]:
    """Return ``A' f'(y - A theta)``, ``A' (bend - f'') A``, and how many residuals leave the zone.

    The first comes as two rows whose sum is exact up to `summation_error`; the second is empty
    unless ``excess``. With ``lengths`` of the rows, each has the loss for its own length; with
    ``weights`` each loss counts so often, and the error is that of the NumPy version.
    """
    run = compiled("slopes", A, targets) if _known(loss, weights) else None
    if run is None:
        return reference.slopes(A, targets, theta, loss, excess, lengths, weights)
    p = A.shape[1]
    total, square = np.empty((2, p)), np.empty((p, p) if excess else (0, 0))
    at = packed(theta), np.array(loss.constants), _lengths(lengths)
    return total, square, run(*at, *total, square.reshape(-1), threads())


def curved(
    A: Mapped,
    targets: Targets,
    theta: FloatArray,
    loss: Loss,
    v: FloatArray,
    *,
    secant: bool = False,
    lengths: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return ``A' f''(y - A theta) A v``, or that with secants for ``f''``.

    ``lengths`` and ``weights`` are as in `slopes`.
    """
    run = compiled("curved", A, targets) if _known(loss, weights) else None
    if run is None:
        return reference.curved(A, targets, theta, loss, v, secant, lengths, weights)
    total = np.empty(A.shape[1])
    at = packed(theta), np.array(loss.constants), _lengths(lengths)
    run(*at, packed(v), secant, total, threads())
    return total


def _known(loss: Loss, weights: FloatArray | None) -> bool:
    """Whether the compiled passes know a loss; rows with weights are left to NumPy."""
    return weights is None and loss.constants is not None


def srht(
    A: Mapped,
    signs: npt.NDArray[np.int8],
    rows: npt.NDArray[np.int64],
    n_pad: int,
    *,
    distortion: bool = True,
) -> tuple[FloatArray, float]:
    """Return ``S A`` for an SRHT, and its largest row distortion (0 if not asked for).

    ``signs`` and ``rows`` are the signs and the distinct sampled rows of the transform of length
    ``n_pad``, a power of two. Both outputs are functions of A and are not private.

    Paper: Appendix C.4.2. For a tile of columns: signs, transform, gather the sampled rows,
    scale by (n/k - 1) there and -1 elsewhere, transform again, add squares to n sums.
    Deviation: one pass for both; no copy of the data.
    """
    run = compiled("srht", A)
    if run is None or n_pad == 1:
        return reference.srht(A, signs, rows, n_pad, distortion)
    Z = np.empty((len(rows), A.shape[1]), order="F")
    sampled = np.ascontiguousarray(signs), np.ascontiguousarray(rows), n_pad
    return Z, run(*sampled, Z.reshape(-1, order="F"), distortion, threads())


def mapped_arguments(A: Mapped) -> tuple[npt.NDArray[Any], FloatArray, FloatArray, float]:
    """Return A as the compiled passes take it; empty arrays stand for None."""
    n, d = A.X.shape
    X = A.X if A.X.dtype in (np.float64, np.float32) else A.X.astype(np.float64)
    columns = (A.lower, A.upper, A.center, A.inverse_scale)
    bounds = np.empty((0, d))
    if any(values is not None for values in columns):
        bounds = np.empty((4, d))
        for k, default in enumerate((-np.inf, np.inf, 0.0, 1.0)):
            bounds[k] = default if columns[k] is None else columns[k]
    factors = np.empty(0) if A.factors is None else packed(np.broadcast_to(A.factors, (n,)))
    return _regular(X), bounds.reshape(-1), factors, A.constant


def _target_arguments(targets: Targets) -> tuple[Any, ...]:
    """Return targets as the compiled passes take them."""
    y = _regular(np.asarray(targets.y, dtype=np.float64))
    return y, targets.lower, targets.upper, targets.center, targets.inverse_scale


def _lengths(lengths: FloatArray | None) -> FloatArray:
    return np.empty(0) if lengths is None else packed(lengths)


def packed(a: FloatArray) -> FloatArray:
    """Return an array of doubles, row by row."""
    return np.require(a, np.float64, ["C", "A"])


def _regular(a: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return a if is_regular(a) else a.copy()


def _is_plain(A: Mapped) -> bool:
    """Tell whether A is its array, in a form that BLAS takes without a copy."""
    maps = (A.lower, A.upper, A.center, A.inverse_scale, A.factors)
    return (
        all(values is None for values in maps)
        and A.constant == 0.0
        and A.X.dtype == np.float64
        and (A.X.flags.c_contiguous or A.X.flags.f_contiguous)
    )
