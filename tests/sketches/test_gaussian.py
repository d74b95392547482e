import numpy as np
import pytest
import scipy.stats

from fastmix.random import secret_generator
from tests.sketches import gaussian
from tests.sketches.gaussian import GaussianSketch


def test_entries_are_standard_normal():
    entries = GaussianSketch(200, 300).sample(0).to_dense().ravel()
    # Seeded, so it never alarms by chance; the test itself does at rate 1e-3.
    assert scipy.stats.kstest(entries, "norm").pvalue > 1e-3


def test_there_may_be_more_rows_than_columns():
    draw = GaussianSketch(7, 3).sample(0)
    assert draw.to_dense().shape == (7, 3)
    assert draw.apply(np.ones((3, 2))).shape == (7, 2)


def test_rows_are_called_k():
    assert GaussianSketch(k=4, n=6).k2 == 4
    with pytest.raises(ValueError, match=r"k must be at least 1; got k=0\."):
        GaussianSketch(k=0, n=6)


def test_unseeded_draws_come_from_the_generator_of_secret_noise(monkeypatch):
    asked = []
    monkeypatch.setattr(
        gaussian, "secret_generator", lambda rng: asked.append(rng) or secret_generator(rng)
    )
    GaussianSketch(2, 3).sample()
    assert asked == [None]


def test_a_given_generator_is_used_as_it_is():
    expected = np.random.default_rng(1).standard_normal((2, 3))
    draw = GaussianSketch(2, 3).sample(np.random.default_rng(1))
    np.testing.assert_array_equal(draw.to_dense(), expected)


def test_the_secret_is_not_printed():
    draw = GaussianSketch(2, 3).sample(0)
    assert repr(draw) == "GaussianSketchDraw(k2=2, n=3)"


def test_wide_data_is_cut_into_tiles():
    X = np.random.default_rng(2).standard_normal((5, 600))
    draw = GaussianSketch(4, 5).sample(3)
    np.testing.assert_allclose(draw.apply(X), draw.matrix @ X, atol=1e-13)


def test_coherence_is_exact_across_blocks_of_columns(dense_coherence):
    draw = GaussianSketch(20, 700).sample(4)
    assert draw.coherence == pytest.approx(dense_coherence(draw.to_dense()), abs=1e-14)
