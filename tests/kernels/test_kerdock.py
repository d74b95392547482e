"""Compiled passes of the Kerdock sketch against the NumPy versions, and against threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.kernels import kerdock, reference_kerdock
from fastmix.kernels.mapped import Mapped
from tests.kernels.test_mapped import LAYOUTS as EVERY_LAYOUT

DTYPES = [np.float64, np.float32]
LAYOUTS = {
    name: EVERY_LAYOUT[name]
    for name in (
        "C",
        "F",
        "C rows cut",
        "C columns skipped",
        "F rows skipped",
        "both reversed",
        "broadcast row",
        "broadcast column",
        "unaligned",
    )
}
# Which of bounds, center, inverse_scale, factors and constant a map has.
MAPS = list(itertools.product([False, True], repeat=4))
NO_MAP, FULL_MAP = MAPS[0], MAPS[-1]
# rows, columns, log2 of k2, offset: one block and many, one tile and many, ranges and groups.
SHAPES = [
    *[(1, 1, 1, 0), (1, 3, 2, 1), (2, 2, 1, 1), (5, 1, 2, 3), (64, 9, 3, 0), (61, 17, 3, 2)],
    *[(100, 5, 5, 0), (100, 5, 5, 32), (101, 40, 6, 7), (1000, 8, 6, 0), (1000, 3, 7, 100)],
    *[(3000, 20, 9, 0), (2500, 1, 8, 13), (700, 90, 10, 0), (5000, 12, 5, 1)],
]


def mapped(n, d, dtype=np.float64, layout="C", parts=NO_MAP, seed=0) -> Mapped:
    rng = np.random.default_rng(seed)
    X = LAYOUTS[layout](rng.standard_normal((2 * n, 2 * d)).astype(dtype), n, d)
    bounds, center, factors, constant = parts
    return Mapped(
        X,
        lower=-rng.uniform(0.5, 1.0, d) if bounds else None,
        upper=rng.uniform(0.5, 1.0, d) if bounds else None,
        center=rng.standard_normal(d) if center else None,
        inverse_scale=rng.uniform(0.5, 2.0, d) if center else None,
        factors=rng.uniform(0.1, 1.0, n) if factors else None,
        constant=0.7 if constant else 0.0,
    )


def parameters(n, m, offset, seed=1):
    """Return signs and forms: any signs and any forms will do for the kernels."""
    rng = np.random.default_rng(seed)
    forms = rng.integers(0, 1 << np.arange(1, m + 1), (-(-(offset + n) >> m), m), dtype=np.uint32)
    return 2 * rng.integers(0, 2, offset + n, dtype=np.int8) - 1, forms


def assert_close(got, want):
    assert got.shape == want.shape
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.abs(want).max(initial=0.0))


def check(A: Mapped, m: int, offset: int) -> None:
    """Compare every pass with its oracle."""
    signs, forms = parameters(A.shape[0], m, offset)
    Z = reference_kerdock.kerdock_sketch(A, signs, forms, offset)
    m_hat = reference_kerdock.kerdock_distortion(A, Z, signs, forms, offset)
    got = kerdock.sketch(A, signs, forms, offset)
    assert_close(got, Z)
    for given_z in (Z, np.asfortranarray(Z), got):
        found = kerdock.distortion(A, given_z, signs, forms, offset)
        assert found == pytest.approx(m_hat, rel=1e-12, abs=1e-12)
    if offset == 0:
        both, found = kerdock.sketch_and_distortion(A, signs, forms)
        assert_close(both, Z)
        assert found == pytest.approx(m_hat, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("parts", [NO_MAP, FULL_MAP])
def test_layouts(layout, dtype, parts):
    for n, d, m, offset in SHAPES:
        check(mapped(n, d, dtype, layout, parts), m, offset)


@pytest.mark.parametrize("parts", MAPS)
def test_maps(parts):
    for layout, dtype in itertools.product(["C", "F", "C columns skipped"], DTYPES):
        check(mapped(300, 18, dtype, layout, parts), 5, 0)


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize(
    ("n", "d", "m"), [(70_000, 17, 12), (200_000, 3, 10), (2**20 + 9, 2, 14), (600, 700, 8)]
)
def test_large_shapes(n, d, m, layout):
    check(mapped(n, d, layout=layout, parts=FULL_MAP), m, 0)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    n=st.integers(1, 700),
    d=st.integers(1, 40),
    m=st.integers(1, 10),
    offset=st.integers(0, 300),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(sorted(LAYOUTS)),
    parts=st.sampled_from(MAPS),
)
def test_anything(n, d, m, offset, dtype, layout, parts):
    check(mapped(n, d, dtype, layout, parts), m, offset)


@pytest.mark.parametrize("m", range(9))
def test_signs_are_those_of_the_quadratic_form(m):
    form = parameters(1, m, 0)[1][0] if m else np.empty(0, np.uint32)
    x = np.arange(1 << m)[:, None] >> np.arange(m) & 1
    upper = np.array([[row >> j & 1 for j in range(m)] for row in form.tolist()]).reshape(m, m)
    expected = np.einsum("xi,ij,xj->x", x, upper, x) % 2
    np.testing.assert_array_equal(reference_kerdock.quadratic_signs(form), 1 - 2 * expected)


# Enough rows and columns for threads to start, and for ranges and groups in turn; the last shapes
# are too long for one read in each layout.
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize(
    ("n", "d", "m"), [(40_000, 20, 9), (200_000, 2, 11), (6000, 90, 12), (2**20 + 1, 1, 13)]
)
def test_threads_change_no_bit(n, d, m, layout, monkeypatch):
    A = mapped(n, d, layout=layout)
    signs, forms = parameters(n, m, 0)
    monkeypatch.setenv("FASTMIX_NUM_THREADS", "1")
    Z, m_hat = kerdock.sketch_and_distortion(A, signs, forms)
    streamed = kerdock.sketch(A, signs, forms)
    largest = kerdock.distortion(A, Z, signs, forms)
    assert_close(streamed, Z)
    assert largest == pytest.approx(m_hat, rel=1e-12)
    for threads in (2, 3, 8):
        monkeypatch.setenv("FASTMIX_NUM_THREADS", str(threads))
        other, found = kerdock.sketch_and_distortion(A, signs, forms)
        np.testing.assert_array_equal(other, Z)
        assert found == m_hat
        np.testing.assert_array_equal(kerdock.sketch(A, signs, forms), streamed)
        assert kerdock.distortion(A, Z, signs, forms) == largest


def test_a_missing_value_spreads():
    A = mapped(1000, 20)
    A.X[777, 13] = np.nan
    signs, forms = parameters(1000, 6, 0)
    Z, m_hat = kerdock.sketch_and_distortion(A, signs, forms)
    assert np.isnan(Z[:, 13]).all()
    assert not np.isnan(Z[:, :13]).any()
    assert np.isnan(m_hat)


def test_nothing_is_written_to_the_input():
    A = mapped(500, 6, parts=FULL_MAP)
    A.X.setflags(write=False)
    signs, forms = parameters(500, 6, 0)
    Z = kerdock.sketch(A, signs, forms)
    Z.setflags(write=False)
    kerdock.distortion(A, Z, signs, forms)


def test_no_rows_or_columns():
    signs, forms = parameters(16, 4, 0)
    Z, m_hat = kerdock.sketch_and_distortion(Mapped(np.empty((16, 0))), signs, forms)
    assert Z.shape == (16, 0)
    assert m_hat == 0.0
