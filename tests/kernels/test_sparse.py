"""Compiled passes of the sparse sketch against the NumPy versions, and against threads."""

import numpy as np
import pytest

from fastmix.kernels import reference_sparse, sparse
from tests.kernels.test_kerdock import DTYPES, FULL_MAP, LAYOUTS, MAPS, NO_MAP, assert_close, mapped

# rows, columns, rows of the sketch, entries: one piece of work and many, one tile and many.
SHAPES = [
    *[(1, 1, 1, 1), (1, 3, 4, 4), (5, 1, 3, 1), (64, 9, 8, 4), (61, 17, 32, 16), (300, 300, 20, 4)],
    *[(1000, 8, 500, 1), (3000, 20, 12, 4), (700, 90, 1024, 16), (257, 513, 96, 1)],
]


def words(n, s, seed=1):
    return np.random.default_rng(seed).integers(0, 1 << 32, (n, s), dtype=np.uint32)


def check(A, k2, s):
    own = words(A.shape[0], s)
    Z = reference_sparse.sparse_sketch(A, own, k2)
    assert_close(sparse.sketch(A, own, k2), Z)
    m_hat = reference_sparse.sparse_distortion(A, Z, own)
    for given in (Z, np.asfortranarray(Z)):
        assert sparse.distortion(A, given, own) == pytest.approx(m_hat, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_shapes_and_layouts(shape, dtype, layout):
    n, d, k2, s = shape
    for parts in (NO_MAP, FULL_MAP):
        check(mapped(n, d, dtype, layout, parts), k2, s)


@pytest.mark.parametrize("parts", MAPS)
@pytest.mark.parametrize("layout", ["C", "F"])
def test_maps(parts, layout):
    check(mapped(150, 11, layout=layout, parts=parts), 24, 4)


@pytest.mark.parametrize("layout", ["C", "F"])
def test_threads_change_no_bit(layout, monkeypatch):
    A, own = mapped(2000, 300, layout=layout, parts=FULL_MAP), words(2000, 4)
    found = []
    for count in ("1", "2", "7"):
        monkeypatch.setenv("FASTMIX_NUM_THREADS", count)
        Z = sparse.sketch(A, own, 400)
        found.append((Z.tobytes(), sparse.distortion(A, Z, own)))
    assert found[0] == found[1] == found[2]


def test_what_is_not_finite_stays_so():
    A, own = mapped(40, 5), words(40, 4)
    A.X[7, 2] = np.nan
    Z = sparse.sketch(A, own, 16)
    assert np.isnan(Z[:, 2]).sum() == 4
    assert not np.isnan(np.delete(Z, 2, axis=1)).any()
    assert np.isnan(sparse.distortion(A, Z, own))
