"""Compares every compiled kernel with NumPy on small fixed inputs.

The inputs reach the vector code of the kernels: bodies and ends of vectors, blocks and their rests,
layouts, both precisions, maps, factors and constants, long rows, values that are not finite.
`tests/kernels/test_faults.py` damages single lanes and shows that the check finds it.
"""

from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray, Floats
from fastmix.kernels import kerdock, mapped, measured, reference, reference_sparse, sparse
from fastmix.kernels._backend import one_thread
from fastmix.kernels.fwht import fwht
from fastmix.kernels.losses import CalibratedHuber, Loss
from fastmix.kernels.mapped import Mapped, Targets
from fastmix.kernels.reference_kerdock import kerdock_distortion, kerdock_sketch
from fastmix.kernels.rounded import Sampler, draw_rounded
from fastmix.kernels.sigmoids import Logistic, SmoothedQuantile
from fastmix.random import public_generator

#: Largest difference that rounding explains, in units of the largest entry.
_ROUNDING = 2.0**-36
#: The same for lengths in single precision.
_SINGLE = 2.0**-18

#: A kernel's result, and NumPy's, with the difference that is allowed.
Pair = tuple[Any, Any, float]

#: The first leaves some residuals in its zone, the others have none.
_LOSSES: tuple[Loss, ...] = (
    CalibratedHuber(0.7, 3.0, 1.0, 1.2),
    SmoothedQuantile(0.5, 3.0, 1.0, 0.3, 0.2),
    Logistic(0.7, 3.0, 1.0),
)


def failures(names: Collection[str]) -> list[str]:
    """Return the kernels among ``names`` that differ from NumPy."""
    with one_thread(), np.errstate(all="ignore"):
        matrices = list(_matrices())
        return [name for name in names if not _agrees(_CASES[name](matrices))]


def _agrees(pairs: Iterator[Pair]) -> bool:
    try:
        return all(_is_close(*pair) for pair in pairs)
    except Exception:  # a kernel that raises is no better than one that is wrong
        return False


def _is_close(got: Any, want: Any, tolerance: float) -> bool:
    """Tell whether two results differ by rounding only; the same entries must not be numbers."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return False
    if tolerance == 0.0:
        return bool(np.array_equal(got, want))
    real = ~np.isnan(want)
    if not np.array_equal(real, ~np.isnan(got)):
        return False
    size = np.max(np.abs(want), initial=0.0, where=real)
    return not real.any() or bool(np.max(np.abs(got - want)[real]) <= tolerance * size)


def _numbers(n: int, d: int, dtype: str = "d") -> npt.NDArray[Any]:
    """Return an n x d array of fixed numbers between -1 and 1; their period is a prime, 8191."""
    return np.resize(_period()[: n * d], (n, d)).astype(dtype)


@cache
def _period() -> FloatArray:
    return np.asarray(np.sin(np.arange(1.0, 8192.0) ** 1.5))


def _matrices() -> Iterator[tuple[Mapped, Targets]]:
    """Yield matrices of each layout, type and kind of map, with targets."""

    def seen(X: Floats, *, bounds: bool, factors: bool, constant: float = 0.0) -> Mapped:
        n, d = X.shape
        lower = -0.9 + 0.3 * _numbers(1, d)[0]
        own = 1.5 + _numbers(n, 1)[:, 0] if factors else None
        if not bounds:
            return Mapped(X, factors=own, constant=constant)
        return Mapped(X, lower, lower + 1.3, lower / 3.0, 1.5 + lower, own, constant)

    both = _numbers(90, 24)[::-2, ::3]
    for A in (
        seen(_numbers(523, 7), bounds=True, factors=True, constant=0.5),
        seen(np.asfortranarray(_numbers(48, 13)), bounds=False, factors=False),
        seen(np.asfortranarray(_numbers(43, 3)), bounds=False, factors=True),
        seen(np.asfortranarray(_numbers(45, 6, "f")), bounds=True, factors=False),
        seen(_numbers(37, 11, "f"), bounds=False, factors=True, constant=-0.5),
        seen(both, bounds=True, factors=True),
        seen(_numbers(19, 1), bounds=False, factors=False),
        seen(_numbers(22, 133), bounds=False, factors=True),
        seen(_numbers(21, 134, "f"), bounds=True, factors=True, constant=0.5),
    ):
        n = A.shape[0]
        y = 2.0 * _numbers(3 * n, 1)[:, 0]
        yield A, Targets(y[:n] if n % 2 else y[::3], -1.4, 1.5, 0.1, 0.9)


Matrices = list[tuple[Mapped, Targets]]


def _theta(A: Mapped) -> FloatArray:
    return np.asarray(_numbers(A.shape[1], 1)[:, 0] / np.sqrt(A.shape[1]))


def _rounded(_: Matrices) -> Iterator[Pair]:
    fractions = np.array([0.0, 0.25, -1.0 / 3.0, 1.0 - 2.0**-53, -(2.0**-200)] * 4)
    for law in ("gaussian", "laplace"):
        for scale in (1, 2, 3, 8, 1000, 2**32 + 12345, 2**40):
            got = draw_rounded(law, scale, fractions, public_generator(scale))
            draw = getattr(Sampler(public_generator(scale), scale), law)
            yield got, [draw(f) for f in fractions], 0.0


def _fwht(_: Matrices) -> Iterator[Pair]:
    shapes = [(2**k, 1) for k in range(1, 11)]
    shapes += [(2, 3), (4, 5), (8, 2), (16, 37), (32, 4), (64, 8), (8, 300), (128, 71)]
    for dtype in "df":
        for n, d in shapes:
            x, want = _numbers(n, d, dtype), np.empty((n, d), dtype)
            reference.fwht(x, want, 1.0 / float(np.sqrt(n)))
            # Whole rows that do not start with a cache line, columns, parts of rows, and steps.
            wide = np.empty((n, 2 * d), dtype)
            shifted = np.empty(n * d + 1, dtype)[1:].reshape(n, d)
            outs = shifted, wide[:, ::2], wide[:, :d], np.empty_like(x, order="F")
            for out in outs[: 2 if d == 1 else 4]:
                yield fwht(x, out=out), want, 0.0
        # The transform of a Kronecker product is that of its factors. These are whole numbers, of
        # which all sums are exact.
        for n, d in ((2**14, 5), (2**17 if dtype == "d" else 2**18, 1)):
            a = np.rint(2.0 * _numbers(256, 1, dtype))
            b = np.rint(2.0 * _numbers(n // 256, d, dtype))
            x = np.multiply.outer(a[:, 0], b).reshape(n, d)
            reference.fwht(a, a, 1.0)
            reference.fwht(b, b, 1.0)
            want = np.multiply.outer(a[:, 0], b).reshape(n, d)
            yield fwht(x, norm=None, out=np.empty((n, 2 * d), dtype)[:, :d]), want, 0.0
            yield fwht(x, norm=None, out=x), want, 0.0


def _map_rows(matrices: Matrices) -> Iterator[Pair]:
    for A, _ in matrices:
        n = A.shape[0]
        yield mapped.map_rows(A, 2, n), reference.map_rows(A, 2, n), _ROUNDING


def _squared_norms(matrices: Matrices) -> Iterator[Pair]:
    for A, _ in matrices:
        yield mapped.squared_norms(A), reference.squared_norms(A), _ROUNDING
        # Each column of an array has an entry that is not finite, in bodies and ends of vectors.
        X = A.X.copy()
        X[np.arange(X.shape[1]) % len(X), np.arange(X.shape[1])] = np.nan
        X[len(X) // 2 :, X.shape[1] // 2][:2] = np.inf
        B = Mapped(X, A.lower, A.upper, A.center, A.inverse_scale)
        yield mapped.squared_norms(B), reference.squared_norms(B), _ROUNDING


def _gram(matrices: Matrices) -> Iterator[Pair]:
    for A, _ in matrices:
        if A.shape[1] <= mapped.FEW_COLUMNS:
            yield mapped.gram(A), reference.gram(A), _ROUNDING


def _moments(matrices: Matrices) -> Iterator[Pair]:
    for A, y in matrices:
        p = A.shape[1]
        if p < mapped.FEW_COLUMNS:
            joined = np.column_stack((reference.map_rows(A, 0, len(A.X)), np.asarray(y)))
            yield mapped.joint_moments(A, y), joined.T @ joined, _ROUNDING


def _gradient(matrices: Matrices) -> Iterator[Pair]:
    for A, y in matrices:
        at = A, y, _theta(A), 0.6
        yield mapped.gradient(*at), reference.gradient(*at), _ROUNDING


def _residuals(matrices: Matrices) -> Iterator[Pair]:
    for A, y in matrices:
        yield mapped.residuals(A, y, _theta(A)), reference.residuals(A, y, _theta(A)), _ROUNDING


def _terms(matrices: Matrices) -> Iterator[Pair]:
    for A, y, loss, lengths in _losses(matrices):
        at = A, y, _theta(A), loss, lengths
        for got, want in zip(mapped.terms(*at), reference.terms(*at), strict=True):
            yield got, want, _ROUNDING


def _losses(matrices: Matrices) -> Iterator[tuple[Mapped, Targets, Loss, FloatArray | None]]:
    """Yield each matrix with a loss, with lengths of the rows or without."""
    for k, (A, y) in enumerate((*matrices, matrices[0], *matrices[:3])):
        lengths = 1.0 + 0.5 * _numbers(A.shape[0], 1)[:, 0]
        yield A, y, _LOSSES[0 if k < 10 else k - 10], lengths if k % 2 else None


def _slopes(matrices: Matrices) -> Iterator[Pair]:
    for A, y, loss, lengths in _losses(matrices):
        at = A, y, _theta(A), loss
        got = mapped.slopes(*at, excess=True, lengths=lengths)
        want = reference.slopes(*at, True, lengths)
        yield got[0].sum(axis=0), want[0].sum(axis=0), _ROUNDING
        yield got[1], want[1], _ROUNDING
        yield got[2], want[2], 0.0
    # A lone residual outside the zone, in each lane of a vector.
    for lane in range(8):
        outlier = Targets(np.where(np.arange(24) == 8 + lane, 1.0, 0.1))
        got = mapped.slopes(Mapped(_numbers(24, 2)), outlier, np.zeros(2), _LOSSES[0])
        yield got[2], 1, 0.0
    # Columns of small numbers next to 2^60 and -2^60: sums that lose their rounding errors are 0.
    for d in (9, 131):
        small = 1.0 + np.arange(48 * d).reshape(48, d) % 7
        large = np.full((48, d), 2.0**60)
        X = np.concatenate((small, large, -small / 4.0, -large))
        X = X[np.argsort(_numbers(len(X), 1)[:, 0])]
        ones, square = Targets(np.ones(len(X))), CalibratedHuber(4.0, 10.0, 1.0)
        got = mapped.slopes(Mapped(X), ones, np.zeros(d), square)
        yield got[0].sum(axis=0), 0.75 * small.sum(axis=0), 0.0


def _curved(matrices: Matrices) -> Iterator[Pair]:
    for A, y, loss, lengths in _losses(matrices):
        v = _theta(A)[::-1] + 0.1
        for secant in (False, True):
            got = mapped.curved(A, y, _theta(A), loss, v, secant=secant, lengths=lengths)
            want = reference.curved(A, y, _theta(A), loss, v, secant, lengths)
            yield got, want, _ROUNDING


def _lengths(matrices: Matrices) -> Iterator[Pair]:
    for A, y in matrices:
        for targets in (None, y):
            p = A.shape[1] + (targets is not None)
            T = _numbers(p, p) / p
            want = reference.row_lengths(A, T, 0.1, targets)
            yield measured.row_lengths(A, T, 0.1, targets=targets), want, _ROUNDING
            T = np.triu(T)
            want = reference.row_lengths(A, T, 0.1, targets)
            for single in (False, True):
                got = measured.row_lengths(A, T, 0.1, targets=targets, norm=0.0, single=single)
                yield got, want, _SINGLE if single else _ROUNDING
    # Lengths that consist of the margin for rounding.
    X, T = _numbers(43, 13), np.zeros((13, 13))
    X[:, 0], T[0, 0] = 0.0, 2.0**50
    want = measured.length_error(T, single=False) * np.sqrt(np.sum(X**2, axis=1))
    yield measured.row_lengths(Mapped(X), T, 0.0), want, _ROUNDING


def _second_moments(matrices: Matrices) -> Iterator[Pair]:
    for A, y in matrices:
        p = A.shape[1] + 1
        if p <= mapped.FEW_COLUMNS:
            for T in (_numbers(p, p), np.triu(_numbers(p, p))):
                at = A, y, T, 1.1
                yield measured.second_moments(*at), reference.second_moments(*at), _ROUNDING


def _slope_counts(matrices: Matrices) -> Iterator[Pair]:
    for A, y in matrices:
        lengths = 1.0 + 0.5 * _numbers(A.shape[0], 1)[:, 0]
        at = A, y, _theta(A), lengths, 1.1, np.linspace(0.05, 1.2, 24)
        yield measured.slope_counts(*at), reference.slope_counts(*at), 0.0
    y, ones, edges = Targets(np.zeros(19)), np.ones(19), np.linspace(0.0, 1.0, 3)
    for row in (3, 17, 18):
        X = _numbers(19, 2)
        X[row, 1] = np.nan
        got = measured.slope_counts(Mapped(X), y, ones[:2], ones, 1.0, edges)
        yield got, np.full(2, np.nan), _ROUNDING


def _srht(matrices: Matrices) -> Iterator[Pair]:
    for A, _ in matrices:
        n = A.shape[0]
        n_pad = 1 << (n - 1).bit_length()
        signs = np.where(_numbers(n, 1)[:, 0] < 0.0, -1, 1).astype(np.int8)
        rows = np.argsort(_numbers(n_pad, 1)[:, 0])[: n_pad // 2 + 1]
        got, want = mapped.srht(A, signs, rows, n_pad), reference.srht(A, signs, rows, n_pad, True)
        yield from ((*pair, _ROUNDING) for pair in zip(got, want, strict=True))
        got = mapped.srht(A, signs, rows, n_pad, distortion=False)
        yield got[0], want[0], _ROUNDING
        yield got[1], 0.0, 0.0


def _kerdock_inputs(matrices: Matrices) -> Iterator[tuple[Mapped, Any, Any]]:
    """Yield matrices with signs and forms of blocks of two sizes."""
    for k in (0, 3, 4, 5, 8):
        A = matrices[k][0]
        n = A.shape[0]
        for m in (6, 9)[: 1 + (k == 0)]:
            blocks = -(-(n + 70) >> m)
            signs = np.where(_numbers(n + 70, 1)[:, 0] < 0.0, -1, 1).astype(np.int8)
            forms = (np.abs(_numbers(blocks, m)) * 2.0 ** np.arange(1, m + 1)).astype(np.uint32)
            yield A, signs, forms


def _kerdock(matrices: Matrices) -> Iterator[Pair]:
    for A, signs, forms in _kerdock_inputs(matrices):
        got, Z = kerdock.sketch_and_distortion(A, signs, forms), kerdock_sketch(A, signs, forms, 0)
        yield got[0], Z, _ROUNDING
        # A single block has no distortion.
        yield 1.0 + got[1], 1.0 + kerdock_distortion(A, Z, signs, forms, 0), _ROUNDING


def _kerdock_parts(matrices: Matrices) -> Iterator[Pair]:
    for A, signs, forms in _kerdock_inputs(matrices):
        at = signs, forms, 69
        yield kerdock.sketch(A, *at), kerdock_sketch(A, *at), _ROUNDING
        Z = np.asfortranarray(_numbers(1 << forms.shape[1], A.shape[1]))
        yield kerdock.distortion(A, Z, *at), kerdock_distortion(A, Z, *at), _ROUNDING


def _sparse(matrices: Matrices) -> Iterator[Pair]:
    for k, (A, _) in enumerate(matrices):
        words = (2.0**31 * (1.0 + _numbers(A.shape[0], (1, 4)[k % 2]))).astype(np.uint32)
        Z = reference_sparse.sparse_sketch(A, words, 24)
        yield sparse.sketch(A, words, 24), Z, _ROUNDING
        want = reference_sparse.sparse_distortion(A, Z, words)
        yield sparse.distortion(A, Z, words), want, _ROUNDING


_CASES: dict[str, Callable[[Matrices], Iterator[Pair]]] = {
    "rounded": _rounded,
    "fwht": _fwht,
    "map_rows": _map_rows,
    "squared_norms": _squared_norms,
    "gram": _gram,
    "moments": _moments,
    "gradient": _gradient,
    "slopes": _slopes,
    "curved": _curved,
    "lengths": _lengths,
    "second_moments": _second_moments,
    "slope_counts": _slope_counts,
    "residuals": _residuals,
    "terms": _terms,
    "srht": _srht,
    "kerdock": _kerdock,
    **dict.fromkeys(("kerdock_sketch", "kerdock_distortion"), _kerdock_parts),
    **dict.fromkeys(("sparse_sketch", "sparse_distortion"), _sparse),
}
