import tracemalloc

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.sketches import SRHT
from fastmix.sketches.subsampled import SRHTDraw
from tests.sketches.welch import welch_bound


@pytest.mark.parametrize(
    ("n", "n_pad"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (1000, 1024), (1025, 2048)]
)
def test_padded_length(n, n_pad):
    assert SRHT(1, n).n_pad == n_pad
    assert SRHT(1, n).sample(0).n_pad == n_pad


@pytest.mark.parametrize(("k2", "n"), [(1, 1), (3, 4), (6, 11), (16, 16), (13, 16)])
def test_matrix_is_that_of_definition_3(k2, n):
    draw = SRHT(k2, n).sample(0)
    H = scipy.linalg.hadamard(draw.n_pad) / np.sqrt(draw.n_pad)
    expected = np.sqrt(draw.n_pad / k2) * H[draw.rows][:, :n] * draw.signs
    np.testing.assert_allclose(draw.to_dense(), expected, rtol=1e-14)
    np.testing.assert_array_equal(np.abs(draw.to_dense()), 1 / np.sqrt(k2))


@pytest.mark.parametrize(("k2", "n"), [(1, 1), (3, 4), (100, 300), (512, 512), (777, 1024)])
def test_columns_have_norm_one(k2, n):
    draw = SRHT(k2, n).sample(1)
    np.testing.assert_array_equal(draw.column_norms, np.ones(n))
    dense = draw.apply(np.eye(n))
    np.testing.assert_allclose(np.linalg.norm(dense, axis=0), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("k2", "n"), [(1, 1), (3, 4), (32, 64), (100, 128), (128, 128)])
def test_rows_are_orthogonal_without_padding(k2, n):
    S = SRHT(k2, n).sample(2).to_dense()
    np.testing.assert_allclose(S @ S.T, n / k2 * np.eye(k2), atol=1e-12)


def test_rows_are_sampled_without_replacement_and_signs_are_fair():
    counts = np.zeros(16)
    signs = np.zeros(12)
    repeats = 2000
    for seed in range(repeats):
        draw = SRHT(5, 12).sample(seed)
        assert draw.rows.dtype == np.int64
        assert draw.signs.dtype == np.int8
        assert np.unique(draw.rows).size == 5
        assert set(draw.signs) <= {-1, 1}
        counts[draw.rows] += 1
        signs += draw.signs
    # Each of 28 sums within 5.5 standard deviations: false alarm below 28 * 4e-8 = 2e-6.
    p = 5 / 16
    assert np.abs(counts - repeats * p).max() < 5.5 * np.sqrt(repeats * p * (1 - p))
    assert np.abs(signs).max() < 5.5 * np.sqrt(repeats)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_coherence_is_exact_for_any_length(data):
    n = data.draw(st.integers(1, 150))
    k2 = data.draw(st.integers(1, SRHT(1, n).n_pad))
    draw = SRHT(k2, n).sample(data.draw(st.integers(0, 2**32)))
    # In integers, so that equality is meant.
    signs = np.rint(draw.to_dense() * np.sqrt(k2)).astype(int)
    gram = np.abs(signs.T @ signs)
    np.fill_diagonal(gram, 0)
    assert draw.coherence == gram.max() / k2
    assert draw.coherence >= welch_bound(k2, n) - 1e-12


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 100, 256])
def test_all_rows_give_an_isometry(n):
    sketch = SRHT(1, n)
    draw = SRHT(sketch.n_pad, n).sample(3)
    X = np.random.default_rng(4).standard_normal((n, 5))
    Z, m_hat = draw.sketch_and_distortion(X)
    assert draw.coherence == 0.0
    assert m_hat <= 1e-12
    np.testing.assert_allclose(Z.T @ Z, X.T @ X, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(draw._backward(Z), X, rtol=1e-12, atol=1e-12)


def test_a_single_row_of_data_is_not_distorted():
    draw = SRHT(1, 1).sample(0)
    Z, m_hat = draw.sketch_and_distortion(np.array([[3.0, -4.0]]))
    assert draw.coherence == 0.0
    assert m_hat == 0.0
    np.testing.assert_array_equal(np.abs(Z), [[3.0, 4.0]])


def test_one_row_is_fully_coherent():
    assert SRHT(1, 2).sample(0).coherence == 1.0
    assert SRHT(1, 100).sample(0).coherence == 1.0


def test_zero_rows_of_data_change_nothing():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((20, 3))
    short = SRHT(9, 20).sample(6)
    signs = np.concatenate([short.signs, rng.choice([-1, 1], 12)])
    long = SRHTDraw(9, 32, short.rows, signs)
    padded = np.vstack([X, np.zeros((12, 3))])
    np.testing.assert_allclose(short.apply(X), long.apply(padded), atol=1e-14)


def test_no_copy_of_wide_data_is_made():
    n, d = 2**10, 512
    X = np.ones((n, d))
    draw = SRHT(16, n).sample(0)
    draw.sketch_and_distortion(X)
    tracemalloc.start()
    draw.sketch_and_distortion(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 4


@pytest.mark.parametrize(("k2", "n"), [(2, 1), (5, 4), (9, 5)])
def test_more_rows_than_the_transform_has_are_refused(k2, n):
    with pytest.raises(ValueError, match=rf"k2 must be at most {SRHT(1, n).n_pad}; got k2={k2}\."):
        SRHT(k2, n)


def test_a_draw_checks_what_it_is_made_of():
    signs = np.ones(5)
    for rows in ([0, 0], [0, 8], [-1, 2]):
        with pytest.raises(ValueError, match="rows must be distinct indices below 8"):
            SRHTDraw(2, 5, np.array(rows), signs)
    with pytest.raises(ValueError, match=r"rows must have shape \(2,\)"):
        SRHTDraw(2, 5, np.arange(3), signs)
    with pytest.raises(ValueError, match=r"signs must have shape \(5,\)"):
        SRHTDraw(2, 5, np.arange(2), np.ones(8))
    with pytest.raises(ValueError, match="signs must hold only -1 and 1"):
        SRHTDraw(2, 5, np.arange(2), np.zeros(5))
