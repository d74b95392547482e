"""What all sketches have in common, each against its own dense matrix."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.sketches import SRHT, Sketch, SketchDraw, SubsampledDCT
from tests.sketches.gaussian import GaussianSketch

SKETCHES = [SRHT, SubsampledDCT, GaussianSketch]
SIZES = [(1, 1), (1, 2), (2, 2), (1, 7), (3, 7), (7, 7), (5, 16), (16, 16), (20, 33), (40, 100)]

every_sketch = pytest.mark.parametrize("kind", SKETCHES)
every_size = pytest.mark.parametrize(("k2", "n"), SIZES)


def arrays_of(draw):
    values = [getattr(draw, field.name) for field in dataclasses.fields(draw)]
    return [value for value in values if isinstance(value, np.ndarray)]


@every_sketch
@every_size
def test_products_equal_those_of_the_dense_matrix(kind, k2, n):
    rng = np.random.default_rng(0)
    draw = kind(k2, n).sample(1)
    S = draw.to_dense()
    X, Z = rng.standard_normal((n, 19)), rng.standard_normal((k2, 19))
    assert S.shape == (k2, n)
    np.testing.assert_allclose(draw.apply(X), S @ X, atol=1e-12)
    np.testing.assert_allclose(draw._backward(Z), S.T @ Z, atol=1e-12)


@every_sketch
@every_size
def test_generic_dense_matrix_is_the_map_on_the_identity(kind, k2, n):
    draw = kind(k2, n).sample(2)
    np.testing.assert_allclose(SketchDraw.to_dense(draw), draw.to_dense(), atol=1e-13)


@every_sketch
@every_size
def test_column_norms_and_coherence_equal_the_dense_ones(kind, k2, n, dense_coherence):
    for seed in range(5):
        draw = kind(k2, n).sample(seed)
        S = draw.to_dense()
        np.testing.assert_allclose(draw.column_norms, np.linalg.norm(S, axis=0), atol=1e-12)
        assert draw.coherence == pytest.approx(dense_coherence(S), abs=1e-12)
        assert 0.0 <= draw.coherence <= 1.0


@every_sketch
@every_size
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sketch_and_distortion_equal_the_dense_ones(kind, k2, n, order, dtype, dense_distortion):
    X = np.random.default_rng(3).standard_normal((n, 11)).astype(dtype, order=order)
    draw = kind(k2, n).sample(4)
    Z, m_hat = draw.sketch_and_distortion(X)
    S = draw.to_dense()
    assert Z.dtype == np.float64
    np.testing.assert_allclose(Z, S @ X.astype(np.float64), atol=1e-12)
    assert m_hat == pytest.approx(dense_distortion(S, X), rel=1e-12, abs=1e-12)
    generic = SketchDraw._sketch(draw, X, distortion=True)[1]
    assert m_hat == pytest.approx(generic, rel=1e-12, abs=1e-12)


@every_sketch
def test_no_columns_give_no_distortion(kind):
    Z, m_hat = kind(3, 5).sample(0).sketch_and_distortion(np.empty((5, 0)))
    assert Z.shape == (3, 0)
    assert m_hat == 0.0


@every_sketch
def test_the_layout_of_the_data_does_not_matter(kind):
    X = np.random.default_rng(7).standard_normal((50, 40))
    draw = kind(20, 50).sample(8)
    expected = draw.apply(X)
    for view in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X[::-1][::-1]):
        np.testing.assert_allclose(draw.apply(view), expected, atol=1e-13)


@every_sketch
def test_float32_loses_nothing_after_it_is_read(kind):
    X = np.random.default_rng(9).standard_normal((300, 3)).astype(np.float32)
    draw = kind(64, 300).sample(10)
    assert draw.apply(X).dtype == np.float64
    np.testing.assert_allclose(draw.apply(X), draw.apply(X.astype(np.float64)), atol=1e-13)


@every_sketch
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_adjoint_identity(kind, data):
    n = data.draw(st.integers(1, 70))
    k2 = data.draw(st.integers(1, n))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    draw = kind(k2, n).sample(rng)
    x, z = rng.standard_normal((n, 1)), rng.standard_normal((k2, 1))
    product = (draw.apply(x).T @ z).item()
    assert product == pytest.approx((x.T @ draw._backward(z)).item(), rel=1e-10, abs=1e-10)


@every_sketch
def test_the_input_is_not_changed(kind):
    X = np.random.default_rng(11).standard_normal((9, 4))
    before = X.copy()
    draw = kind(5, 9).sample(12)
    draw.sketch_and_distortion(X)
    draw._backward(draw.apply(X))
    np.testing.assert_array_equal(X, before)


@every_sketch
def test_a_seed_fixes_the_draw(kind):
    sketch = kind(10, 40)
    np.testing.assert_array_equal(sketch.sample(3).to_dense(), sketch.sample(3).to_dense())
    assert not np.array_equal(sketch.sample(3).to_dense(), sketch.sample(4).to_dense())
    assert not np.array_equal(sketch.sample().to_dense(), sketch.sample().to_dense())
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(sketch.sample(rng).to_dense(), sketch.sample(3).to_dense())
    assert not np.array_equal(sketch.sample(rng).to_dense(), sketch.sample(3).to_dense())


@every_sketch
def test_sketches_are_values(kind):
    sketch = kind(np.int64(3), np.int32(8))
    assert type(sketch.k2) is int
    assert type(sketch.n) is int
    assert sketch == kind(3, 8)
    assert hash(sketch) == hash(kind(3, 8))
    assert sketch != kind(4, 8)
    assert eval(repr(sketch)) == sketch
    assert pickle.loads(pickle.dumps(sketch)) == sketch
    with pytest.raises(dataclasses.FrozenInstanceError):
        sketch.k2 = 4


@every_sketch
@pytest.mark.parametrize("twin", [lambda d: d, copy.copy, lambda d: pickle.loads(pickle.dumps(d))])
def test_draws_are_immutable(kind, twin):
    original = kind(3, 8).sample(0)
    draw = twin(original)
    np.testing.assert_array_equal(draw.to_dense(), original.to_dense())
    for name in ("k2", "n", "coherence", "column_norms", "anything"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(draw, name, 1)
    held = [*arrays_of(draw), draw.column_norms]
    assert len(held) > 1
    for array in held:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@every_sketch
def test_a_draw_does_not_share_the_arrays_that_it_is_made_of(kind):
    draw = kind(3, 8).sample(0)
    arrays = [array.copy() for array in arrays_of(draw)]
    twin = type(draw)(3, 8, *arrays)
    for array in arrays:
        array[...] = 0
    np.testing.assert_array_equal(twin.to_dense(), draw.to_dense())


@every_sketch
def test_the_dense_matrix_is_a_new_array(kind):
    draw = kind(3, 8).sample(0)
    before = draw.to_dense()
    draw.to_dense()[...] = 0
    np.testing.assert_array_equal(draw.to_dense(), before)


@every_sketch
def test_cached_quantities_are_computed_once(kind):
    draw = kind(3, 8).sample(0)
    assert draw.column_norms is draw.column_norms
    assert draw.coherence is draw.coherence


@every_sketch
@pytest.mark.parametrize("bad", [0, -1])
def test_sizes_below_one_are_refused(kind, bad):
    with pytest.raises(ValueError, match=rf"k2? must be at least 1; got k2?={bad}\."):
        kind(bad, 4)
    with pytest.raises(ValueError, match=rf"n must be at least 1; got n={bad}\."):
        kind(1, bad)


@every_sketch
@pytest.mark.parametrize("bad", [1.0, True, "2", None])
def test_sizes_that_are_no_integers_are_refused(kind, bad):
    with pytest.raises(TypeError, match=r"k2? must be an integer"):
        kind(bad, 4)
    with pytest.raises(TypeError, match="n must be an integer"):
        kind(1, bad)


@every_sketch
def test_operands_of_the_wrong_kind_are_refused(kind):
    draw = kind(2, 4).sample(0)
    for dtype in (int, complex, bool, object, np.float16, str):
        for method in (draw.apply, draw.sketch_and_distortion):
            with pytest.raises(TypeError, match="X must hold float32 or float64 numbers"):
                method(np.ones((4, 3)).astype(dtype))


@every_sketch
def test_operands_of_the_wrong_shape_are_refused(kind):
    draw = kind(2, 5).sample(0)
    for method in (draw.apply, draw.sketch_and_distortion):
        for shape in ((8, 3), (5, 3, 1), (5,), ()):
            with pytest.raises(ValueError, match="X must have two axes and 5 rows; got X=array"):
                method(np.ones(shape))


def test_base_classes_are_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Sketch(1, 1)
    with pytest.raises(TypeError, match="abstract"):
        SketchDraw(1, 1)
