import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.sketches import SubsampledDCT, subsampled
from fastmix.sketches.subsampled import SubsampledDCTDraw
from tests.sketches.welch import welch_bound


@st.composite
def draws(draw, least=1, most=120):
    n = draw(st.integers(least, most))
    k2 = draw(st.integers(1, n))
    return SubsampledDCT(k2, n).sample(draw(st.integers(0, 2**32)))


def make(rows, n):
    return SubsampledDCTDraw(len(rows), n, np.array(rows), np.ones(n))


@pytest.mark.parametrize(("k2", "n"), [(1, 1), (2, 3), (7, 12), (12, 12), (30, 101)])
def test_matrix_is_the_sampled_cosine_transform(k2, n):
    draw = SubsampledDCT(k2, n).sample(0)
    r, i = draw.rows[:, None], np.arange(n)
    C = np.where(r == 0, 1.0, np.sqrt(2.0)) * np.cos(np.pi * r * (2 * i + 1) / (2 * n))
    np.testing.assert_allclose(draw.to_dense(), C / np.sqrt(k2) * draw.signs, atol=1e-13)


@pytest.mark.parametrize(("k2", "n"), [(1, 1), (3, 5), (40, 64), (99, 99)])
def test_rows_are_orthogonal(k2, n):
    S = SubsampledDCT(k2, n).sample(1).to_dense()
    np.testing.assert_allclose(S @ S.T, n / k2 * np.eye(k2), atol=1e-12)


def test_rows_are_sampled_without_replacement():
    for seed in range(50):
        rows = SubsampledDCT(9, 12).sample(seed).rows
        assert np.unique(rows).size == 9
        assert rows.min() >= 0
        assert rows.max() < 12


@settings(max_examples=100, deadline=None)
@given(draws())
def test_column_norms_are_exact(draw):
    expected = np.linalg.norm(draw.to_dense(), axis=0)
    np.testing.assert_allclose(draw.column_norms, expected, rtol=1e-9, atol=1e-12)
    assert draw.column_norms.max() <= np.sqrt(2) + 1e-12


def test_columns_can_be_longer_than_one():
    draw = make([1, 2], 64)
    assert draw.column_norms[0] == pytest.approx(np.sqrt(2), rel=1e-2)


def test_small_column_norms_keep_their_digits():
    n = 10001
    draw = make([1], n)
    i = n // 2 + 1
    # Next to the zero of the cosine in the middle: sqrt(2) sin(pi / n).
    assert draw.column_norms[i] == pytest.approx(np.sqrt(2) * np.sin(np.pi / n), rel=1e-13)
    assert draw.column_norms[n // 2] == 0.0


@settings(max_examples=100, deadline=None)
@given(draw=draws(least=2))
def test_coherence_is_exact_and_below_its_bound(draw):
    U = draw.to_dense()
    norms = np.linalg.norm(U, axis=0)
    U = U[:, norms > 1e-12] / norms[norms > 1e-12]
    gram = np.abs(U.T @ U)
    np.fill_diagonal(gram, 0.0)
    assert draw.coherence == pytest.approx(gram.max(), abs=1e-9)
    assert draw._coherence_bound() >= draw.coherence - 1e-12
    assert draw._coherence_bound() <= 1.0
    assert draw.coherence >= welch_bound(draw.k2, U.shape[1]) - 1e-9


def test_bound_is_of_use_and_takes_over_for_long_data(monkeypatch):
    draw = SubsampledDCT(2048, 4096).sample(0)
    exact, bound = draw.coherence, draw._coherence_bound()
    assert exact < bound < 3 * exact
    monkeypatch.setattr(subsampled, "_SCAN_LIMIT", 4095)
    assert SubsampledDCT(2048, 4096).sample(0).coherence == bound


@pytest.mark.parametrize("n", [1, 2, 3, 50, 64])
def test_all_rows_give_an_isometry(n):
    draw = SubsampledDCT(n, n).sample(2)
    X = np.random.default_rng(3).standard_normal((n, 5))
    np.testing.assert_allclose(draw.column_norms, 1.0, atol=1e-12)
    assert draw.coherence <= 1e-12
    assert draw.sketch_and_distortion(X)[1] <= 1e-12


def test_a_zero_column_takes_no_part(dense_distortion):
    # Every odd cosine vanishes in the middle of an odd number of points.
    draw = make([1, 3, 5], 9)
    X = np.random.default_rng(4).standard_normal((9, 2))
    Z, m_hat = draw.sketch_and_distortion(X)
    assert draw.column_norms[4] == 0.0
    assert (draw.column_norms[np.arange(9) != 4] > 0.1).all()
    X[4] = 1e6
    Z_other, m_other = draw.sketch_and_distortion(X)
    np.testing.assert_allclose(Z_other, Z, atol=1e-9)
    assert m_other == pytest.approx(m_hat, rel=1e-9)
    assert m_hat == pytest.approx(dense_distortion(draw.to_dense(), X), rel=1e-9)
    # Symmetric points give the same column up to sign.
    assert draw.coherence == pytest.approx(1.0)


def test_a_sketch_with_zero_columns_only_but_one_pair(dense_coherence):
    draw = make([1], 3)
    np.testing.assert_allclose(draw.column_norms, [np.sqrt(1.5), 0.0, np.sqrt(1.5)], atol=1e-15)
    assert draw.coherence == pytest.approx(dense_coherence(draw.to_dense()))
    assert draw._coherence_bound() == 1.0


@pytest.mark.parametrize(("k2", "n"), [(2, 1), (4, 3), (9, 8)])
def test_more_rows_than_the_transform_has_are_refused(k2, n):
    with pytest.raises(ValueError, match=rf"k2 must be at most {n}; got k2={k2}\."):
        SubsampledDCT(k2, n)


def test_a_draw_checks_what_it_is_made_of():
    with pytest.raises(ValueError, match="rows must be distinct indices below 5"):
        make([1, 5], 5)
    with pytest.raises(ValueError, match="signs must hold only -1 and 1"):
        SubsampledDCTDraw(1, 3, np.arange(1), np.zeros(3))
