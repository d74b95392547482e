"""Compiled passes against the NumPy versions, over layouts, types, maps and shapes."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.kernels import NATIVE, reference
from fastmix.kernels import mapped as kernels
from fastmix.kernels.losses import CalibratedHuber, LinearHuber
from fastmix.kernels.mapped import Mapped, Targets

DTYPES = [np.float64, np.float32]
#: A loss whose zone is so small that most residuals leave it.
LOSS = CalibratedHuber(0.3, 3.0, 1.0)
# The name of a layout, and how to get an n x d matrix that has it.
LAYOUTS = {
    "C": lambda big, n, d: np.ascontiguousarray(big[:n, :d]),
    "F": lambda big, n, d: np.asfortranarray(big[:n, :d]),
    "C rows cut": lambda big, n, d: big[:n, :d],
    "C rows skipped": lambda big, n, d: np.ascontiguousarray(big[:, :d])[::2],
    "C columns skipped": lambda big, n, d: big[:n, ::2],
    "F rows cut": lambda big, n, d: np.asfortranarray(big)[:n, :d],
    "F rows skipped": lambda big, n, d: np.asfortranarray(big)[::2, :d],
    "C rows reversed": lambda big, n, d: big[n - 1 :: -1, :d],
    "both reversed": lambda big, n, d: big[n - 1 :: -1, d - 1 :: -1],
    "F reversed": lambda big, n, d: np.asfortranarray(big)[n - 1 :: -1, :d],
    "F columns reversed": lambda big, n, d: np.asfortranarray(big)[:n, d - 1 :: -1],
    "broadcast row": lambda big, n, d: np.broadcast_to(big[:1, :d], (n, d)),
    "broadcast column": lambda big, n, d: np.broadcast_to(big[:n, :1], (n, d)),
    "unaligned": lambda big, n, d: _unaligned(big[:n, :d]),
}
# Which of lower, upper, center, inverse_scale, factors and constant a map has.
MAPS = list(itertools.product([False, True], repeat=6))
NO_MAP, FULL_MAP = MAPS[0], MAPS[-1]
SHAPES = [
    *[(1, 1), (1, 5), (2, 1), (3, 2), (7, 3), (8, 4), (9, 1), (33, 17), (100, 16), (130, 7)],
    *[(515, 5), (1024, 33), (2500, 12), (700, 90), (150, 140), (83, 151)],
]


def _unaligned(a: np.ndarray) -> np.ndarray:
    records = np.zeros(a.shape, dtype=[("tag", "u1"), ("value", a.dtype)])
    records["value"] = a
    return records["value"]


def mapped(n, d, dtype=np.float64, layout="C", parts=NO_MAP, seed=0) -> Mapped:
    rng = np.random.default_rng(seed)
    X = LAYOUTS[layout](rng.standard_normal((2 * n, 2 * d)).astype(dtype), n, d)
    lower, upper, center, scale, factors, constant = parts
    return Mapped(
        X,
        lower=-rng.uniform(0.5, 1.0, d) if lower else None,
        upper=rng.uniform(0.5, 1.0, d) if upper else None,
        center=rng.standard_normal(d) if center else None,
        inverse_scale=rng.uniform(0.5, 2.0, d) if scale else None,
        factors=rng.uniform(0.1, 1.0, n) if factors else None,
        constant=0.7 if constant else 0.0,
    )


def srht_draw(n, k2, seed=1):
    rng = np.random.default_rng(seed)
    n_pad = 1 << (n - 1).bit_length()
    rows = np.sort(rng.choice(n_pad, min(k2, n_pad), replace=False))
    return (2 * rng.integers(0, 2, n, dtype=np.int8) - 1), rows, n_pad


def targets(n, seed=2):
    return Targets(np.random.default_rng(seed).standard_normal(n), -1.5, 1.2, 0.1, 0.8)


def assert_close(got, want):
    assert got.shape == want.shape
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.abs(want).max(initial=0.0))


def check_loss(A: Mapped, theta) -> None:
    """Compare slopes and curvatures with their oracle: few residuals leave the zone, or many."""
    n, p = A.shape
    for loss in (CalibratedHuber(1.5, 3.0, 1.0), LOSS):
        for excess in (False, True):
            total, square, outside = kernels.slopes(A, targets(n), theta, loss, excess=excess)
            want = reference.slopes(A, targets(n), theta, loss, excess)
            assert_close(total.sum(axis=0), want[0].sum(axis=0))
            assert_close(square, want[1])
            assert outside == want[2]
        v = np.linspace(-1.0, 2.0, p)
        for secant in (False, True):
            assert_close(
                kernels.curved(A, targets(n), theta, loss, v, secant=secant),
                reference.curved(A, targets(n), theta, loss, v, secant),
            )
        at = A, targets(n), theta, loss
        for got, want in zip(kernels.terms(*at), reference.terms(*at), strict=True):
            assert_close(got, want)


def rows_of(A: Mapped):
    return reference.map_rows(A, 0, len(A.X))


def check(A: Mapped, k2: int = 11, clip: float = 0.4) -> None:
    """Compare every pass with its oracle."""
    n, p = A.shape
    assert_close(kernels.map_rows(A, 0, n), reference.map_rows(A, 0, n))
    assert_close(kernels.squared_norms(A), reference.squared_norms(A))
    G = kernels.gram(A)
    assert_close(G, reference.gram(A))
    np.testing.assert_array_equal(G, G.T)
    theta = np.random.default_rng(3).standard_normal(p)
    assert_close(
        kernels.gradient(A, targets(n), theta, clip), reference.gradient(A, targets(n), theta, clip)
    )
    assert_close(kernels.residuals(A, targets(n), theta), reference.residuals(A, targets(n), theta))
    moments = kernels.joint_moments(A, targets(n))
    assert_close(moments[:p, :p], reference.gram(A))
    assert_close(moments[:p, p], reference.gradient(A, targets(n), np.zeros(p), np.inf))
    scales = np.abs(np.sin(np.arange(n)))
    assert_close(kernels.scaled_gram(A, scales), (rows_of(A) * scales[:, None] ** 2).T @ rows_of(A))
    check_loss(A, theta / max(1.0, float(np.linalg.norm(theta))))
    signs, rows, n_pad = srht_draw(n, k2)
    Z, m_hat = kernels.srht(A, signs, rows, n_pad)
    want, wanted = reference.srht(A, signs, rows, n_pad, True)
    assert_close(Z, want)
    assert m_hat == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    Z, none = kernels.srht(A, signs, rows, n_pad, distortion=False)
    assert_close(Z, want)
    assert none == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("parts", [NO_MAP, FULL_MAP])
def test_layouts(layout, dtype, parts):
    for n, d in SHAPES:
        check(mapped(n, d, dtype, layout, parts))


@pytest.mark.parametrize("parts", MAPS)
def test_maps(parts):
    for (n, d), layout, dtype in itertools.product(
        [(37, 5), (300, 18)], ["C", "F", "C columns skipped"], DTYPES
    ):
        check(mapped(n, d, dtype, layout, parts))


@pytest.mark.parametrize("k2", [1, 2, 64, 10**9])
@pytest.mark.parametrize("n", [2, 3, 64, 65, 128, 1000])
def test_sketch_sizes(n, k2):
    for layout in ("C", "F"):
        check(mapped(n, 9, layout=layout), k2)


# Shapes with several blocks of rows, several tiles of columns, or long columns.
@pytest.mark.parametrize(("layout", "parts"), [("C", NO_MAP), ("F", FULL_MAP)])
@pytest.mark.parametrize(
    ("n", "d", "k2"), [(2**15, 40, 999), (70_000, 17, 5000), (300_000, 3, 100), (600, 1500, 40)]
)
def test_large_shapes(n, d, k2, layout, parts):
    check(mapped(n, d, layout=layout, parts=parts), k2)


def test_very_long_columns():
    A = mapped(2**20 + 1, 2, np.float32)
    signs, rows, n_pad = srht_draw(len(A.X), 1000)
    Z, m_hat = kernels.srht(A, signs, rows, n_pad)
    want, wanted = reference.srht(A, signs, rows, n_pad, True)
    assert_close(Z, want)
    assert m_hat == pytest.approx(wanted, rel=1e-12)


def test_one_row():
    A = mapped(1, 3, parts=FULL_MAP)
    check(A, 1)
    Z, m_hat = kernels.srht(A, np.array([-1], np.int8), np.array([0]), 1)
    np.testing.assert_allclose(Z, -np.asarray(kernels.map_rows(A, 0, 1)) * [1, 1, 1, 1])
    assert m_hat == 0.0


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    n=st.integers(1, 700),
    d=st.integers(1, 40),
    k2=st.integers(1, 1024),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(sorted(LAYOUTS)),
    parts=st.sampled_from(MAPS),
    clip=st.sampled_from([0.1, 1.0, np.inf]),
)
def test_anything(n, d, k2, dtype, layout, parts, clip):
    check(mapped(n, d, dtype, layout, parts), k2, clip)


@pytest.mark.parametrize("layout", ["C", "F"])
def test_sketch_is_column_major(layout):
    Z, _ = kernels.srht(mapped(100, 5, layout=layout), *srht_draw(100, 7))
    assert Z.flags.f_contiguous or not NATIVE


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 3), (0, 1), (5, 17), (90, 200), (99, 100)])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_some_rows(start, stop, layout):
    A = mapped(100, 6, layout=layout, parts=FULL_MAP)
    assert_close(kernels.map_rows(A, start, stop), reference.map_rows(A, start, stop))
    np.testing.assert_array_equal(
        kernels.map_targets(targets(100), start, stop),
        reference.map_targets(targets(100), start, stop),
    )


@pytest.mark.parametrize(
    "y",
    [
        np.broadcast_to(0.3, (50,)),
        np.arange(100.0)[::-2] / 50,
        np.linspace(-1, 1, 50).astype(np.float32),
        _unaligned(np.linspace(-3, 3, 50)),
    ],
)
def test_layouts_of_targets(y):
    A, theta = mapped(50, 4), np.linspace(-1, 1, 4)
    seen = replace(targets(50), y=y)
    got = kernels.gradient(A, seen, theta, 0.5)
    assert_close(got, reference.gradient(A, seen, theta, 0.5))


def test_layouts_of_vectors():
    A = mapped(50, 4, parts=FULL_MAP)
    strided = replace(
        A,
        lower=np.repeat(A.lower, 2)[::2],
        factors=np.repeat(A.factors, 3)[::3],
        inverse_scale=np.broadcast_to(2.0, 4),
    )
    check(strided)
    theta = np.arange(10.0)[::2]
    signs, rows, n_pad = srht_draw(50, 8)
    got = kernels.srht(A, np.repeat(signs, 2)[::2], np.repeat(rows, 2)[::2], n_pad)[0]
    assert_close(got, reference.srht(A, signs, rows, n_pad, False)[0])
    assert_close(
        kernels.gradient(A, targets(50), theta, 1.0),
        reference.gradient(A, targets(50), theta, 1.0),
    )


def test_no_clipping_of_residuals():
    A = mapped(1000, 6)
    theta = 1e6 * np.ones(6)
    y = np.zeros(1000)
    got = kernels.gradient(A, Targets(y), theta, np.inf)
    np.testing.assert_allclose(got, -A.X.T @ (A.X @ theta), rtol=1e-11)
    bounded = kernels.gradient(A, Targets(y), theta, 1e-3)
    np.testing.assert_allclose(bounded, -1e-3 * A.X.T @ np.sign(A.X @ theta), rtol=1e-11)


@pytest.mark.parametrize("layout", ["C", "F", "C rows skipped"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("parts", [NO_MAP, FULL_MAP])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_norms_tell_rows_that_are_not_finite(value, parts, dtype, layout):
    for n, d in [(1, 1), (9, 3), (700, 20), (50, 135)]:
        A = mapped(n, d, dtype, layout, parts)
        X = A.X.copy()
        X[n // 2, d - 1] = value
        bad = np.arange(n) == n // 2
        A = replace(A, X=np.asarray(X, order="F" if layout == "F" else "C"))
        norms = kernels.squared_norms(A)
        np.testing.assert_array_equal(np.isnan(norms), bad)
        np.testing.assert_allclose(norms[~bad], reference.squared_norms(A)[~bad], rtol=1e-12)


def test_huge_entries():
    for layout in ("C", "F"):
        A = mapped(100, 5, layout=layout)
        X = A.X.copy(order="K")
        X[17, 2] = 1e300
        A = replace(A, X=X)
        norms = kernels.squared_norms(A)
        assert norms[17] == np.inf
        assert np.isfinite(np.delete(norms, 17)).all()
        bounded = replace(A, lower=-np.ones(5), upper=np.ones(5))
        assert np.isfinite(kernels.squared_norms(bounded)).all()
        check(bounded)
        Z, m_hat = kernels.srht(A, *srht_draw(100, 7))
        assert np.isfinite(Z).all()
        assert m_hat == np.inf


def test_nan_reaches_the_results():
    A = mapped(100, 5, parts=FULL_MAP)
    A.X[3, 1] = np.nan
    assert np.isnan(kernels.map_rows(A, 3, 4)[0, 1])
    assert np.isnan(kernels.srht(A, *srht_draw(100, 7))[1])
    assert np.isnan(kernels.gradient(A, targets(100), np.ones(6), 1.0)[1])
    np.testing.assert_array_equal(np.isnan(kernels.gram(A)[1]), True)


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize(("n", "d"), [(2**17, 5), (40_000, 20), (3000, 200)])
@pytest.mark.parametrize("parts", [NO_MAP, FULL_MAP])
def test_number_of_threads_changes_no_bit(n, d, layout, parts, monkeypatch):
    A = mapped(n, d, layout=layout, parts=parts)
    draw = srht_draw(n, 500)
    theta = np.linspace(-1, 1, A.shape[1])

    def results(threads):
        monkeypatch.setenv("FASTMIX_NUM_THREADS", threads)
        Z, m_hat = kernels.srht(A, *draw)
        return (
            Z,
            m_hat,
            kernels.gradient(A, targets(n), theta, 0.5),
            *kernels.slopes(A, targets(n), theta, LOSS, excess=True),
            kernels.curved(A, targets(n), theta, LOSS, theta),
            kernels.joint_moments(A, targets(n)),
            kernels.squared_norms(A),
            kernels.gram(A),
        )

    one = results("1")
    for threads in ("2", "3", "8", ""):
        for got, want in zip(results(threads), one, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("d", [3, 130])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_slopes_sum_without_loss(layout, d):
    """Terms that nearly cancel: the sum of the two parts is right to the last digits of a term."""
    n = 100_000
    X = np.ones((n, d), order=layout)
    X[:, 1] = np.where(np.arange(n) % 2, 1.0, -1.0)
    X[:, 2:] = 1.0 / 3.0
    y = np.random.default_rng(0).uniform(-1, 1, n)
    loss = CalibratedHuber(2.0, 50.0, 1.0)
    total, _, outside = kernels.slopes(Mapped(X), Targets(y), np.zeros(d), loss)
    assert outside == 0
    columns = [0, 1, 2, d - 1]
    want = [math.fsum(X[:, j] * y) for j in columns]
    error = np.abs(total.sum(axis=0)[columns] - want)
    terms = np.array([math.fsum(np.abs(X[:, j] * y)) for j in columns])
    assert (error <= kernels.summation_error(loss) * terms).all()
    # The two columns of ones have no error at all; ordinary sums do.
    assert (error[:2] <= 2.0**-52).all()
    assert abs(kernels.gradient(Mapped(X), Targets(y), np.zeros(d), 2.0)[0] - want[0]) > 2.0**-52


def test_numpy_takes_over_for_a_loss_without_compiled_passes():
    A, y, theta = mapped(500, 4), targets(500), np.full(4, 0.1)
    loss = LinearHuber(0.5, 40.0, 0.5)
    got, want = kernels.slopes(A, y, theta, loss), reference.slopes(A, y, theta, loss, excess=False)
    np.testing.assert_array_equal(got[0], want[0])
    got, want = (module.curved(A, y, theta, loss, theta) for module in (kernels, reference))
    np.testing.assert_array_equal(got, want)
    assert kernels.summation_error(loss) == reference.SUMMATION_ERROR


@pytest.mark.parametrize("d", [3, 130])
def test_slopes_let_nan_through(d):
    X = np.ones((40, d))
    X[17, 1] = np.nan
    theta = np.ones(d)
    for loss in (CalibratedHuber(1.5, 3.0, 1.0), LOSS):
        assert np.isnan(kernels.slopes(Mapped(X), targets(40), theta, loss)[0][0]).any()
        assert np.isnan(kernels.curved(Mapped(X), targets(40), theta, loss, theta)).any()


def test_calls_from_several_threads():
    maps = [mapped(20_000, 9, layout="CF"[k % 2], parts=FULL_MAP, seed=k) for k in range(6)]
    draw = srht_draw(20_000, 300)

    def run(A):
        theta = np.ones(A.shape[1])
        return (
            *kernels.srht(A, *draw),
            kernels.gradient(A, targets(20_000), theta, 1.0),
            kernels.gram(A),
            kernels.squared_norms(A),
        )

    wanted = [run(A) for A in maps]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            for got, want in zip(pool.map(run, maps), wanted, strict=True):
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_input_is_not_written_to():
    A = mapped(500, 20, parts=FULL_MAP)
    before = A.X.copy()
    A.X.flags.writeable = False
    check(A)
    np.testing.assert_array_equal(A.X, before)


def test_other_types_are_converted():
    A = mapped(60, 4)
    for dtype in (np.float16, A.X.dtype.newbyteorder()):
        check(replace(A, X=A.X.astype(dtype)))


def test_both_paths_agree():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import test_mapped as t;"
        "assert not t.NATIVE;"
        "t.check(t.mapped(700, 9, parts=t.FULL_MAP)); t.check(t.mapped(1, 1))"
    )
    subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__)],
        env={**os.environ, "FASTMIX_NO_NATIVE": "1"},
        check=True,
    )


def test_public_values_need_not_be_aligned():
    """As arrays are that came over a network."""
    rng = np.random.default_rng(0)
    X, y, theta = rng.standard_normal((50, 3)), rng.standard_normal(50), rng.standard_normal(3)

    def shifted(a):
        memory = np.empty(a.nbytes + 1, dtype=np.uint8)[1:]
        twin = memory.view(a.dtype).reshape(a.shape)
        twin[...] = a
        assert not twin.flags.aligned
        return twin

    expected = kernels.gradient(Mapped(X), Targets(y), theta, 1.0)
    found = kernels.gradient(
        Mapped(shifted(X), factors=shifted(np.ones(50))), Targets(shifted(y)), shifted(theta), 1.0
    )
    np.testing.assert_array_equal(found, expected)
