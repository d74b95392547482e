import math

import numpy as np
import pytest

from fastmix.sketches import SRHT, SketchDraw, SubsampledDCT
from tests.sketches.gaussian import GaussianSketch
from tests.sketches.welch import welch_bound


def row_distortion(X, draw):
    return draw.sketch_and_distortion(X)[1]


@pytest.mark.parametrize("kind", [SRHT, SubsampledDCT, GaussianSketch])
@pytest.mark.parametrize(("k2", "n"), [(1, 1), (2, 3), (10, 37), (64, 64), (50, 128)])
def test_row_distortion_equals_the_dense_one(kind, k2, n, dense_distortion):
    draw = kind(k2, n).sample(0)
    X = np.random.default_rng(1).standard_normal((n, 13))
    for data in (X, np.asfortranarray(X), X.astype(np.float32)):
        expected = dense_distortion(draw.to_dense(), data)
        assert row_distortion(data, draw) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_row_distortion_is_the_papers_for_unit_columns():
    draw = SRHT(12, 40).sample(2)
    X = np.random.default_rng(3).standard_normal((40, 4))
    S = draw.to_dense()
    rows = [np.linalg.norm((S @ X).T @ S[:, i] - X[i]) for i in range(40)]
    assert row_distortion(X, draw) == pytest.approx(max(rows), rel=1e-12)


@pytest.mark.parametrize("kind", [SRHT, SubsampledDCT, GaussianSketch])
def test_removing_a_row_moves_row_distortion_by_at_most_the_coherence(kind):
    rng = np.random.default_rng(4)
    for seed in range(20):
        draw = kind(8, 24).sample(seed)
        X = rng.standard_normal((24, 3))
        X /= np.linalg.norm(X, axis=1)[:, None]
        bound = draw.coherence * draw.column_norms.max()
        whole = row_distortion(X, draw)
        for i in range(24):
            other = X.copy()
            other[i] = 0.0
            assert abs(row_distortion(other, draw) - whole) <= bound + 1e-12


def test_columns_that_are_not_of_unit_length_are_repaired():
    # The paper's m-hat is 0 here, although the four rows of data are far from orthogonal.
    class Average(SketchDraw):
        def _forward(self, tile):
            return 0.5 * tile.sum(axis=0, keepdims=True)

        def _backward(self, tile):
            return 0.5 * np.repeat(tile, 4, axis=0)

    draw = Average(1, 4)
    X = np.ones((4, 1))
    np.testing.assert_array_equal(draw._backward(draw.apply(X)), X)
    np.testing.assert_allclose(draw.column_norms, 0.5)
    assert draw.coherence == pytest.approx(1.0)
    assert row_distortion(X, draw) == pytest.approx(1.5)


def test_welch_bound_of_appendix_f():
    assert welch_bound(4, 16) == pytest.approx(math.sqrt(12 / (4 * 15)))
    assert welch_bound(1, 2) == 1.0
    assert welch_bound(1, 1000) == 1.0
    # A simplex attains it: k + 1 vectors in k dimensions.
    assert welch_bound(5, 6) == pytest.approx(1 / 5)


@pytest.mark.parametrize(("k", "n"), [(1, 1), (2, 1), (8, 8), (9, 8)])
def test_welch_bound_is_zero_where_columns_can_be_orthogonal(k, n):
    assert welch_bound(k, n) == 0.0


@pytest.mark.parametrize("kind", [SRHT, SubsampledDCT, GaussianSketch])
@pytest.mark.parametrize(("k2", "n"), [(1, 2), (3, 10), (16, 64), (50, 100), (64, 500)])
def test_welch_bound_is_below_coherence(kind, k2, n):
    for seed in range(5):
        draw = kind(k2, n).sample(seed)
        columns = np.count_nonzero(draw.column_norms)
        assert draw.coherence >= welch_bound(k2, columns) - 1e-12


def test_welch_bound_checks_its_arguments():
    with pytest.raises(ValueError, match=r"k must be at least 1; got k=0\."):
        welch_bound(0, 4)
    with pytest.raises(ValueError, match=r"n must be at least 1; got n=0\."):
        welch_bound(1, 0)
    with pytest.raises(TypeError, match="n must be an integer"):
        welch_bound(1, 2.5)
