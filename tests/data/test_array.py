"""Rows of an array: every pass against the dense formula, wherever the blocks end."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fastmix.data import ArrayRows, RowMap, TargetMap
from fastmix.kernels import reference
from fastmix.sketches import SRHT, SubsampledDCT

ROW_MAP = RowMap(
    1.2,
    lower=np.full(3, -3.0),
    upper=np.full(3, 2.5),
    center=np.array([0.1, 0.0, -0.3]),
    scale=np.array([1.0, 2.0, 0.5]),
    constant=0.6,
    divisor=1.1,
)
TARGET_MAP = TargetMap(-2.0, 3.0, 0.5, 2.5)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((37, 3)) * 2.0, rng.standard_normal(37) * 4.0


@pytest.fixture(params=[1, 3, 5, 37, 2048])
def rows(request, data, monkeypatch):
    """Blocks of one, three and five rows, of all rows exactly, and beyond."""
    monkeypatch.setattr(reference, "block_rows", lambda p: request.param)
    return ArrayRows(data[0], ROW_MAP, data[1], TARGET_MAP)


@pytest.fixture(scope="module")
def dense(data):
    return np.asarray(ROW_MAP(data[0])), np.asarray(TARGET_MAP(data[1]))


def test_shape_and_bound(rows, dense):
    assert (rows.n, rows.d) == dense[0].shape == (37, 4)
    assert rows.bound == ROW_MAP.bound
    assert (np.linalg.norm(dense[0], axis=1) <= rows.bound).all()


def test_blocks_are_consecutive_and_complete(rows, dense):
    blocks = list(rows.blocks())
    step = len(blocks[0][0])
    assert step == min(37, reference.block_rows(4))
    assert len(blocks) == -(-37 // step)
    assert (np.concatenate([A for A, _ in blocks]) == dense[0]).all()
    assert (np.concatenate([y for _, y in blocks]) == dense[1]).all()


def test_gram_and_moments(rows, dense):
    A, y = dense
    gram, cross = rows.moments()
    assert gram == pytest.approx(A.T @ A, rel=1e-12)
    assert (gram == rows.gram()).all()
    assert (gram == gram.T).all()
    assert cross == pytest.approx(A.T @ y, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("clip", [1e-3, 0.4, 1e3])
def test_gradient(rows, dense, clip):
    A, y = dense
    for theta in (np.zeros(4), np.array([0.5, -1.0, 2.0, 0.3]), np.full(4, 1e8)):
        expected = A.T @ np.clip(y - A @ theta, -clip, clip)
        assert rows.gradient(theta, clip) == pytest.approx(expected, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("draw", [SRHT(9, 37).sample(0), SubsampledDCT(9, 37).sample(1)])
def test_sketch(rows, dense, draw):
    A, S = dense[0], draw.to_dense()
    Z, m_hat = rows.sketch(draw)
    assert_allclose(Z, S @ A, rtol=1e-10, atol=1e-12)
    norms = np.linalg.norm(S, axis=0)
    U, scaled = S / norms, norms[:, None] * A
    assert m_hat == pytest.approx(np.linalg.norm(U.T @ (U @ scaled) - scaled, axis=1).max())


def test_without_targets(data, dense):
    rows = ArrayRows(data[0], ROW_MAP)
    assert all((y == 0.0).all() and len(y) == len(A) for A, y in rows.blocks())
    gram, cross = rows.moments()
    assert (gram == rows.gram()).all()
    assert (cross == 0.0).all()


def test_targets_are_clipped_by_default():
    """Without a target map, targets out of [-1, 1] are moved to its ends."""
    rows = ArrayRows(np.eye(2), RowMap(1.0), np.array([1e9, -1e9]))
    _, cross = rows.moments()
    assert cross == pytest.approx([1.0, -1.0])
    assert rows.gradient(np.zeros(2), 1e6) == pytest.approx([1.0, -1.0])


def test_passes_do_not_write_to_the_data(data):
    X, y = data[0].copy(), data[1].copy()
    X.setflags(write=False)
    y.setflags(write=False)
    rows = ArrayRows(X, RowMap(0.1), y)
    for A, t in rows.blocks():
        A[...] = 0.0
        t[...] = 0.0
    rows.gradient(np.zeros(3), 1.0)
    rows.sketch(SRHT(4, 37).sample(0))
    assert_array_equal(X, data[0])
    assert_array_equal(y, data[1])


@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed", "float32"])
def test_layouts(data, layout):
    X, y = data[0].astype(np.float32), data[1].astype(np.float32)
    expected = ArrayRows(X.astype(np.float64), ROW_MAP, y.astype(np.float64)).moments()
    if layout == "F":
        X = np.asfortranarray(X)
    elif layout == "strided":
        X, y = np.repeat(np.repeat(X, 2, 0), 3, 1)[::2, ::3], np.repeat(y, 2)[::2]
    elif layout == "reversed":
        X, y = X[::-1].copy()[::-1], y[::-1].copy()[::-1]
    elif layout == "C":
        X, y = X.astype(np.float64), y.astype(np.float64)
    for value, wanted in zip(ArrayRows(X, ROW_MAP, y).moments(), expected, strict=True):
        assert value == pytest.approx(wanted, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("y", [np.ones(36), np.ones((37, 1)), np.ones((1, 37))])
def test_targets_of_another_shape(data, y):
    with pytest.raises(ValueError, match="y must have shape") as info:
        ArrayRows(data[0], ROW_MAP, y)
    assert "1." not in str(info.value)
