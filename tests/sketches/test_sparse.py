import pickle

import numpy as np
import pytest

from fastmix.kernels.mapped import Mapped
from fastmix.sketches import SparseSketch
from fastmix.sketches.sparse import SparseDraw
from tests.sketches.welch import welch_bound

SIZES = [(1, 1, 1), (4, 3, 4), (7, 50, 1), (24, 100, 4), (64, 37, 16), (12, 300, 4)]


@pytest.mark.parametrize(("k2", "n", "entries"), SIZES)
def test_columns_have_one_entry_in_each_part_and_norm_one_without_rounding(k2, n, entries):
    S = SparseSketch(k2, n, entries).sample(0).to_dense()
    parts = np.count_nonzero(S.reshape(entries, k2 // entries, n), axis=1)
    assert (parts == 1).all()
    assert {*np.abs(S[S != 0.0])} == {entries**-0.5}
    assert (np.sum(S * S, axis=0) == 1.0).all()


@pytest.mark.parametrize(("k2", "n", "entries"), SIZES)
def test_passes_equal_the_dense_matrix(k2, n, entries, dense_coherence, dense_distortion):
    draw = SparseSketch(k2, n, entries).sample(1)
    S, X = draw.to_dense(), np.random.default_rng(2).standard_normal((n, 13))
    for data in (X, np.asfortranarray(X), X.astype(np.float32)):
        Z, m_hat = draw.sketch_and_distortion(data)
        np.testing.assert_allclose(Z, S @ data, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(draw.apply(data), Z)
        assert m_hat == pytest.approx(dense_distortion(S, data), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(draw._backward(Z), S.T @ Z, atol=1e-12)
    assert draw.coherence == pytest.approx(dense_coherence(S), abs=1e-15)
    assert draw.coherence >= welch_bound(k2, n) - 1e-12
    assert draw.largest_norm == 1.0
    assert (draw.column_norms == 1.0).all()


def test_blocks_of_any_size_give_the_same_sketch():
    draw = SparseSketch(40, 500, 4).sample(3)
    X = np.random.default_rng(4).standard_normal((500, 6))
    Z, m_hat = draw.sketch_and_distortion(X)
    for cuts in ([250], [1, 2, 3], [7, 100, 101, 499]):
        ends = list(zip([0, *cuts], [*cuts, 500], strict=True))
        parts = sum(draw.partial_sketch(Mapped(X[a:b]), a) for a, b in ends)
        np.testing.assert_allclose(parts, Z, rtol=1e-12, atol=1e-12)
        found = max(draw.partial_distortion(Mapped(X[a:b]), Z, a) for a, b in ends)
        assert found == pytest.approx(m_hat, rel=1e-12)
        probes = np.concatenate([draw.probe(a, b - a) for a, b in ends])
        np.testing.assert_allclose(probes @ X, draw.probed(Z), atol=1e-12)
    assert np.abs(probes).min() > 0.0  # no row can change unseen
    assert np.abs(probes).max() <= 1.0


def test_places_and_signs_are_uniform_and_independent_of_each_other():
    """Counts of 80,000 entries in 20 places with 2 signs: 6 standard errors, alarms below 1e-6."""
    draw = SparseSketch(80, 20_000, 4).sample(5)
    words = draw.words(0, draw.n)
    places = ((words >> 1).astype(np.uint64) * 20 >> np.uint64(31)).astype(int)
    for part in range(4):
        for sign in (0, 1):
            found = np.bincount(places[(words[:, part] & 1) == sign, part], minlength=20)
            assert np.abs(found - 500).max() < 6.0 * np.sqrt(500)
    # Two parts meet in a pair of places, with equal signs, as often as chance says.
    pairs = np.bincount(places[:, 0] * 20 + places[:, 1], minlength=400)
    assert np.abs(pairs - 50).max() < 6.0 * np.sqrt(50)


def test_a_sketch_keeps_squared_lengths_on_average():
    """The mean of 400 draws at 6 standard errors: false alarms below 1e-8."""
    x = np.random.default_rng(6).standard_normal((60, 1))
    for entries in (1, 4):
        found = [
            float(np.sum(SparseSketch(8, 60, entries).sample(seed).apply(x) ** 2))
            for seed in range(400)
        ]
        assert abs(np.mean(found) - np.sum(x**2)) < 6.0 * np.std(found) / 20.0


def test_the_law_of_a_draw_is_its_key():
    draw = SparseSketch(8, 30).sample(7)
    again = pickle.loads(pickle.dumps(draw))
    assert isinstance(again, SparseDraw)
    assert again.key == draw.key == SparseSketch(8, 30).sample(7).key
    np.testing.assert_array_equal(again.to_dense(), draw.to_dense())
    assert SparseSketch(8, 30).sample(8).key != draw.key


@pytest.mark.parametrize("n", [1, 2**15, 2**15 + 1, 10**7])
def test_the_least_size_exists(n):
    k2 = SparseSketch.least_size(n, 4)
    SparseSketch(k2, n, 4)
    if k2 > 4:
        with pytest.raises(ValueError, match="n must be at most"):
            SparseSketch(k2 - 4, n, 4)


def test_the_coherence_of_many_columns_is_a_bound():
    assert SparseSketch(4096, 2**14 + 1).sample(0).coherence == 1.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((8, 5, 2), r"entries must be 1, 4 or 16; got entries=2\."),
        ((6, 5, 4), r"k2 must be a multiple of entries=4; got k2=6\."),
        ((0, 5, 1), "k2 must be at least 1"),
        ((2, 2**16 + 1, 1), r"n must be at most 65536 for k2=2; got n=65537\."),
        ((2**31 + 4, 5, 4), "k2 must be at most 2147483648"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(ValueError, match=message):
        SparseSketch(*given)
