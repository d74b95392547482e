import copy
import dataclasses
import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.datasets import make_correlated, make_sphere
from fastmix.kernels import fwht
from fastmix.kernels.mapped import Mapped
from fastmix.kernels.reference_kerdock import quadratic_signs
from fastmix.sketches import SRHT, KerdockSketch, SketchDraw
from fastmix.sketches._forms import BinaryField, family_size, forms
from fastmix.sketches.kerdock import KerdockDraw
from tests.sketches.welch import welch_bound

# Single blocks, full and short last blocks, even and odd powers, and the most rows of each.
SIZES = [
    *[(1, 1), (2, 2), (2, 3), (2, 4), (4, 3), (4, 5), (4, 8), (8, 5), (8, 17), (8, 64)],
    *[(16, 128), (16, 100), (32, 33), (32, 1024), (64, 300), (128, 1000)],
]
every_size = pytest.mark.parametrize(("k2", "n"), SIZES)


def signs_of(m, count):
    return np.array([quadratic_signs(form) for form in forms(m, count)])


def definition(m, a):
    """Return Q_a on all x, straight from its formula in the field."""
    if m % 2:
        field, x = BinaryField(m), np.arange(1 << m, dtype=np.uint64)
        cube = field.multiply(x, field.multiply(x, x))
        return field.trace(field.multiply(np.uint64(a), cube))
    r = m - 1
    field, t = BinaryField(r), np.arange(1 << r, dtype=np.uint64)
    z = field.multiply(np.uint64(a), t)
    f, conjugate = np.zeros_like(z), z
    for _ in range((r - 1) // 2):
        conjugate = field.multiply(conjugate, conjugate)
        f ^= field.trace(field.multiply(z, conjugate))
    return np.concatenate([f, f ^ field.trace(z)])


# Forms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", range(1, 12))
def test_forms_are_those_of_the_definition(m):
    last = family_size(m) - 1
    chosen = np.unique(np.append(np.random.default_rng(m).integers(0, last + 1, 30), [0, last]))
    table = forms(m, last + 1)
    assert table.shape == (last + 1, m)
    for a in chosen:
        np.testing.assert_array_equal(
            quadratic_signs(table[a]), 1 - 2 * definition(m, a).astype(int)
        )


def spectrum_is_flat(m, products):
    """Tell whether transforms of products of sign vectors, as columns, have the right values."""
    sums = np.abs(fwht(products.astype(np.float32), norm=None))
    most = 2.0 ** ((m + 1) // 2)
    if m % 2:
        # Of Parseval's 2^m, half of the values are 0 and half are the largest.
        return bool((((sums == 0) | (sums == most)).all()) and (sums == most).mean() == 0.5)
    return bool((sums == most).all())


def check_all_pairs(m):
    D = signs_of(m, family_size(m)).T
    step = max(1, (1 << 22) >> m)
    for a in range(1, D.shape[1]):
        for b in range(0, a, step):
            assert spectrum_is_flat(m, D[:, b : min(a, b + step)] * D[:, [a]])


@pytest.mark.parametrize("m", range(1, 10))
def test_all_pairs_of_blocks_are_mutually_unbiased(m):
    check_all_pairs(m)


@pytest.mark.slow
@pytest.mark.parametrize("m", [10, 11, 12])
def test_all_pairs_of_many_blocks_are_mutually_unbiased(m):
    check_all_pairs(m)


@pytest.mark.parametrize("m", [10, 12, 13, 14, 16])
def test_random_pairs_of_blocks_are_mutually_unbiased(m):
    rng = np.random.default_rng(m)
    last = min(family_size(m), 4096)
    table = forms(m, last)
    pairs = [rng.choice(last, 2, replace=False) for _ in range(40)]
    products = [quadratic_signs(table[a]) * quadratic_signs(table[b]) for a, b in pairs]
    assert spectrum_is_flat(m, np.array(products).T)


@pytest.mark.parametrize("m", [3, 9, 11])
def test_gold_forms_are_linear_so_that_single_blocks_stand_for_all_pairs(m):
    table = forms(m, family_size(m))
    for i in range(m):
        np.testing.assert_array_equal(table[1 << i : 2 << i], table[: 1 << i] ^ table[1 << i])
    assert spectrum_is_flat(m, signs_of(m, family_size(m))[1:].T)


# The matrix --------------------------------------------------------------------------------


@every_size
def test_matrix_is_that_of_the_definition(k2, n):
    draw = KerdockSketch(k2, n).sample(0)
    m = k2.bit_length() - 1
    H = scipy.linalg.hadamard(k2) / np.sqrt(k2)
    blocks = [(1.0 - 2.0 * definition(m, b))[:, None] * H if m else H for b in range(-(-n // k2))]
    S = np.concatenate(blocks, axis=1)[:, :n] * draw.signs
    np.testing.assert_allclose(draw.to_dense(), S, rtol=1e-14)
    np.testing.assert_array_equal(np.abs(draw.to_dense()), 1 / np.sqrt(k2))
    np.testing.assert_allclose(SketchDraw.to_dense(draw), S, atol=1e-13)


@every_size
def test_products_equal_those_of_the_dense_matrix(k2, n):
    rng = np.random.default_rng(0)
    draw = KerdockSketch(k2, n).sample(1)
    S = draw.to_dense()
    X, Z = rng.standard_normal((n, 19)), rng.standard_normal((k2, 19))
    np.testing.assert_allclose(draw.apply(X), S @ X, atol=1e-12)
    np.testing.assert_allclose(draw._backward(Z), S.T @ Z, atol=1e-12)


@every_size
def test_columns_have_norm_one(k2, n):
    draw = KerdockSketch(k2, n).sample(2)
    np.testing.assert_array_equal(draw.column_norms, np.ones(n))
    np.testing.assert_allclose(
        np.linalg.norm(draw.apply(np.eye(n)), axis=0), 1.0, rtol=0, atol=1e-12
    )


@every_size
def test_coherence_is_exact(k2, n, dense_coherence):
    draw = KerdockSketch(k2, n).sample(3)
    # In integers, so that equality is meant.
    signs = np.rint(draw.to_dense() * np.sqrt(k2)).astype(int)
    gram = np.abs(signs.T @ signs)
    np.fill_diagonal(gram, 0)
    assert draw.coherence == gram.max() / k2
    assert draw.coherence >= welch_bound(k2, n) - 1e-12
    assert draw.coherence == pytest.approx(dense_coherence(draw.to_dense()), abs=1e-12)


@pytest.mark.parametrize(
    ("k2", "n", "expected"),
    [
        (1, 1, 0.0),
        (4, 4, 0.0),
        (8, 7, 0.0),
        (2, 3, 1.0),
        (4, 5, 0.5),
        (8, 9, 0.5),
        (16384, 131072, 1 / 128),
        (8192, 131072, 1 / 64),
    ],
)
def test_coherence_of_known_sizes(k2, n, expected):
    assert KerdockSketch(k2, n).sample(0).coherence == expected


def test_coherence_is_far_below_that_of_the_srht():
    for n in (2**14, 2**16):
        assert KerdockSketch(1024, n).sample(0).coherence < SRHT(1024, n).sample(0).coherence / 3


@pytest.mark.parametrize(("k2", "n"), [(4, 8), (8, 32), (16, 128), (32, 96)])
def test_rows_are_orthogonal_without_padding(k2, n):
    S = KerdockSketch(k2, n).sample(4).to_dense()
    np.testing.assert_allclose(S @ S.T, n / k2 * np.eye(k2), atol=1e-12)


@pytest.mark.parametrize(("k2", "n"), [(1, 1), (2, 2), (4, 3), (8, 8), (128, 100)])
def test_one_block_is_an_isometry(k2, n):
    draw = KerdockSketch(k2, n).sample(5)
    X = np.random.default_rng(6).standard_normal((n, 5))
    Z, m_hat = draw.sketch_and_distortion(X)
    assert m_hat <= 1e-12
    np.testing.assert_allclose(Z.T @ Z, X.T @ X, rtol=1e-12, atol=1e-12)


# Passes ------------------------------------------------------------------------------------


@every_size
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sketch_and_distortion_equal_the_dense_ones(k2, n, order, dtype, dense_distortion):
    X = np.random.default_rng(7).standard_normal((n, 11)).astype(dtype, order=order)
    draw = KerdockSketch(k2, n).sample(8)
    Z, m_hat = draw.sketch_and_distortion(X)
    S = draw.to_dense()
    assert Z.dtype == np.float64
    np.testing.assert_allclose(Z, S @ X.astype(np.float64), atol=1e-12)
    assert m_hat == pytest.approx(dense_distortion(S, X), rel=1e-12, abs=1e-12)
    generic = SketchDraw._sketch(draw, X, distortion=True)[1]
    assert m_hat == pytest.approx(generic, rel=1e-12, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_adjoint_identity(data):
    m = data.draw(st.integers(1, 7))
    n = data.draw(st.integers(2 ** (m - 1) + 1, min(300, family_size(m) << m)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    draw = KerdockSketch(2**m, n).sample(rng)
    x, z = rng.standard_normal((n, 1)), rng.standard_normal((2**m, 1))
    product = (draw.apply(x).T @ z).item()
    assert product == pytest.approx((x.T @ draw._backward(z)).item(), rel=1e-10, abs=1e-10)


def test_rows_seen_through_a_map():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((300, 6)).astype(np.float32)
    bounds = (-np.ones(6), np.ones(6), rng.random(6), 0.5 + rng.random(6))
    A = Mapped(X, *bounds, factors=rng.random(300), constant=0.7)
    draw = KerdockSketch(64, 300).sample(10)
    Z, m_hat = draw.sketch_and_distortion(A)
    dense, wanted = draw.sketch_and_distortion(np.asarray(A))
    assert Z.shape == (64, 7)
    np.testing.assert_allclose(Z, dense, atol=1e-12)
    np.testing.assert_allclose(draw.apply(A), dense, atol=1e-12)
    assert m_hat == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(ValueError, match="X must have two axes and 300 rows"):
        draw.apply(Mapped(X[:200]))


def cuts_of(n, k2, seed):
    inner = np.random.default_rng(seed).integers(1, n, 4)
    return [[0, n], [*range(0, n, k2), n], [*range(0, n, 2 * k2), n], [0, *np.unique(inner), n]]


@pytest.mark.parametrize(("k2", "n"), [(8, 61), (16, 100), (64, 300)])
def test_parts_add_up_to_the_whole(k2, n):
    X = np.random.default_rng(11).standard_normal((n, 10))
    factors = np.random.default_rng(12).random(n)
    draw = KerdockSketch(k2, n).sample(13)
    Z, m_hat = draw.sketch_and_distortion(Mapped(X, factors=factors))
    for cuts in cuts_of(n, k2, 14):
        parts = [
            (int(a), Mapped(X[a:b], factors=factors[a:b])) for a, b in itertools.pairwise(cuts)
        ]
        total = sum(draw.partial_sketch(rows, offset) for offset, rows in parts)
        np.testing.assert_allclose(total, Z, atol=1e-12)
        largest = [draw.partial_distortion(rows, Z, offset) for offset, rows in parts]
        assert max(largest) == pytest.approx(m_hat, rel=1e-12)


def test_a_part_is_the_product_with_its_columns():
    X = np.random.default_rng(15).standard_normal((50, 3))
    draw = KerdockSketch(16, 100).sample(16)
    S = draw.to_dense()[:, 30:80]
    np.testing.assert_allclose(draw.partial_sketch(Mapped(X), 30), S @ X, atol=1e-12)
    Z = np.random.default_rng(17).standard_normal((16, 3))
    expected = np.linalg.norm(S.T @ Z - X, axis=1).max()
    assert draw.partial_distortion(Mapped(X), Z, 30) == pytest.approx(expected, rel=1e-12)


def test_a_missing_value_shows_in_the_distortion():
    X = np.ones((100, 3))
    X[70, 1] = np.nan
    assert np.isnan(KerdockSketch(16, 100).sample(0).sketch_and_distortion(X)[1])


def test_no_columns_give_no_distortion():
    Z, m_hat = KerdockSketch(4, 5).sample(0).sketch_and_distortion(np.empty((5, 0)))
    assert Z.shape == (4, 0)
    assert m_hat == 0.0


def test_no_copy_of_wide_data_is_made():
    n, d = 2**12, 512
    X = np.ones((n, d))
    draw = KerdockSketch(128, n).sample(0)
    draw.sketch_and_distortion(X)
    tracemalloc.start()
    draw.sketch_and_distortion(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 4


# Quality -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [make_sphere, make_correlated])
@pytest.mark.parametrize("k2", [1024, 2048])
def test_embedding_is_as_good_as_that_of_the_srht(make, k2):
    n, d, repeats = 2**14, 16, 20
    X = make(n, d, random_state=0)[0]
    whitened = np.linalg.qr(X)[0]

    def ends(sketch):
        grams = [
            (lambda Z: Z.T @ Z)(sketch.sample(seed).apply(whitened)) for seed in range(repeats)
        ]
        values = np.linalg.eigvalsh(grams)
        return values[:, 0].mean(), values[:, -1].mean()

    # Means of 20 have a standard error near 0.005: 5% is at least seven of them.
    np.testing.assert_allclose(ends(KerdockSketch(k2, n)), ends(SRHT(k2, n)), rtol=0.05)


def test_distortion_is_no_worse_than_that_of_the_srht():
    X = make_sphere(2**14, 16, random_state=0)[0]
    m_hat = [
        np.mean([kind(1024, 2**14).sample(seed).sketch_and_distortion(X)[1] for seed in range(5)])
        for kind in (KerdockSketch, SRHT)
    ]
    # Maxima over all rows; they vary by 3% from draw to draw.
    assert m_hat[0] < 1.05 * m_hat[1]


# Values and errors -------------------------------------------------------------------------


def test_signs_are_fair():
    repeats = 2000
    total = np.sum([KerdockSketch(8, 20).sample(seed).signs for seed in range(repeats)], axis=0)
    # Each of 20 sums within 5.5 standard deviations: false alarm below 20 * 4e-8 = 1e-6.
    assert np.abs(total).max() < 5.5 * np.sqrt(repeats)


def test_signs_of_neighbouring_rows_are_independent():
    signs = KerdockSketch(1024, 2**18).sample(0).signs.astype(float)
    # Sums of 2^18 products, for 40 lags: false alarm below 40 * 4e-8.
    for lag in (*range(1, 33), 63, 64, 128, 255, 256, 257, 512, 1024):
        assert abs(signs[lag:] @ signs[:-lag]) < 5.5 * np.sqrt(len(signs))


@pytest.mark.parametrize(("start", "length"), [(0, 1), (0, 900), (63, 2), (255, 2), (300, 555)])
def test_any_range_of_signs_follows_from_the_key(start, length):
    draw = KerdockSketch(64, 900).sample(5)
    signs, table, skipped = draw._part(start, length)
    first = start // 64
    np.testing.assert_array_equal(signs[skipped:], draw.signs[start : start + length])
    np.testing.assert_array_equal(table, draw._forms[first : first + len(table)])
    assert len(pickle.dumps(draw)) < 300


def test_a_seed_fixes_the_draw():
    sketch = KerdockSketch(16, 40)
    np.testing.assert_array_equal(sketch.sample(3).to_dense(), sketch.sample(3).to_dense())
    assert not np.array_equal(sketch.sample(3).to_dense(), sketch.sample(4).to_dense())
    assert not np.array_equal(sketch.sample().to_dense(), sketch.sample().to_dense())


@pytest.mark.parametrize("twin", [lambda d: d, copy.copy, lambda d: pickle.loads(pickle.dumps(d))])
def test_draws_are_immutable_values(twin):
    original = KerdockSketch(4, 8).sample(0)
    draw = twin(original)
    np.testing.assert_array_equal(draw.to_dense(), original.to_dense())
    for name in ("k2", "n", "signs", "coherence"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(draw, name, 1)
    for array in (draw.signs, draw.column_norms, draw._forms):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert eval(repr(KerdockSketch(4, 8))) == KerdockSketch(np.int64(4), np.int32(8))


def test_capacity_is_the_number_of_forms_times_k2():
    for m in range(1, 20):
        k2 = 2**m
        assert KerdockSketch(k2, k2).capacity == (k2**2 if m % 2 else k2**2 // 2)
    assert KerdockSketch(1, 1).capacity == 1


@pytest.mark.parametrize(
    ("k2", "n", "enough"),
    [
        (1, 2, 2),
        (2, 5, 4),
        (4, 9, 8),
        (8, 65, 16),
        (16, 129, 32),
        (64, 2049, 128),
        (4, 10**6, 2048),
    ],
)
def test_more_rows_than_there_are_blocks_for_are_refused(k2, n, enough):
    most = KerdockSketch(k2, k2).capacity
    message = rf"n must be at most {most} for k2={k2} \(k2={enough} is enough\); got n={n}\."
    with pytest.raises(ValueError, match=message):
        KerdockSketch(k2, n)
    KerdockSketch(enough, n)
    with pytest.raises(ValueError, match="n must be at most"):
        KerdockSketch(enough // 2, n)


@pytest.mark.parametrize("k2", [3, 12, 100])
def test_sizes_that_are_no_power_of_two_are_refused(k2):
    with pytest.raises(ValueError, match=rf"k2 must be a power of two; got k2={k2}\."):
        KerdockSketch(k2, 200)


def test_sizes_of_the_wrong_kind_or_range_are_refused():
    for bad in (1.0, True, "2", None):
        with pytest.raises(TypeError, match="k2 must be an integer"):
            KerdockSketch(bad, 4)
    with pytest.raises(ValueError, match="k2 must be at least 1"):
        KerdockSketch(0, 4)
    with pytest.raises(ValueError, match=r"k2 must be at most 8; got k2=16\."):
        KerdockSketch(16, 5)


def test_operands_of_the_wrong_kind_are_refused():
    draw = KerdockSketch(2, 4).sample(0)
    with pytest.raises(TypeError, match="X must hold float32 or float64 numbers"):
        draw.apply(np.ones((4, 3), dtype=int))
    with pytest.raises(ValueError, match=r"X must have two axes and 4 rows; got X=array of"):
        draw.sketch_and_distortion(np.ones((8, 3)))


def test_a_draw_checks_what_it_is_made_of():
    with pytest.raises(ValueError, match="key must be at least 0"):
        KerdockDraw(4, 5, -1)
    with pytest.raises(ValueError, match="key must be at most"):
        KerdockDraw(4, 5, 1 << 128)
    with pytest.raises(ValueError, match="n must be at most 8 for k2=4"):
        KerdockDraw(4, 9, 0)
