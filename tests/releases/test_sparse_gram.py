"""The Gram matrix of a sparse sketch: its sensitivity on hostile rows, its law, its charge."""

import math

import numpy as np
import pytest

from fastmix.data import ArrayRows, RowMap
from fastmix.releases import SPARSE_GRAM, Noise, sparse_gram
from fastmix.releases.gram import _shortened_gram
from fastmix.releases.sensitivity import shortened_gram_sensitivity
from fastmix.sketches import SparseSketch

BOUND = 1.3


def rows_of(X):
    return ArrayRows(X, RowMap(BOUND), np.zeros(len(X)))


def moved(draw, X, i, longest):
    """Return how far one row moves the statistic, in Frobenius norm."""
    absent = X.copy()
    absent[i] = 0.0
    grams = [_shortened_gram(rows_of(data), draw, longest) for data in (X, absent)]
    return np.linalg.norm(grams[0] - grams[1])


@pytest.mark.parametrize("entries", [1, 4])
def test_no_row_moves_the_matrix_by_more_than_its_sensitivity(entries):
    """Free rows, equal rows, rows that fill a row of the sketch, and orthogonal rows."""
    rng, closest = np.random.default_rng(0), 0.0
    for seed in range(300):
        n, d = int(rng.integers(1, 40)), int(rng.integers(1, 4))
        draw = SparseSketch(entries * int(rng.integers(1, 4)), n, entries).sample(seed)
        longest = float(rng.choice([0.3, 1.0, 1.4, 2.0, 5.0]))
        i, S = int(rng.integers(n)), draw.to_dense()
        X = rng.standard_normal((n, d))
        if seed % 3 == 1:  # all rows of the sketch that the record is in point its way
            signs = np.sign(S.T @ S[:, i] + 1e-9)
            X = np.outer(signs, np.eye(d)[0]) * rng.choice([0.0, 1.0], n)[:, None]
            X[i] = signs[i] * np.eye(d)[0]
        elif seed % 3 == 2 and d > 1:  # it stands across the others
            X = np.tile(np.eye(d)[0], (n, 1))
            X[i] = np.eye(d)[1]
        X *= BOUND / np.maximum(np.linalg.norm(X, axis=1), 1e-12)[:, None]
        most = shortened_gram_sensitivity(longest, draw.k2, entries, BOUND)
        found = moved(draw, X, i, longest)
        assert found <= most
        closest = max(closest, found / most)
    assert closest > 0.85


@pytest.mark.parametrize("longest", [0.3, 1.0, 1.3, 1.5, 3.0])
def test_the_sensitivity_is_attained_by_two_rows_of_the_plane(longest):
    """The supremum over pairs of vectors in a disc, at most a apart, on a fine grid."""
    radii = np.linspace(0.0, longest, 60)
    angles = np.linspace(0.0, np.pi, 120)
    u, v, t = np.meshgrid(radii, radii, angles, indexing="ij")
    apart = u**2 + v**2 - 2.0 * u * v * np.cos(t)
    square = u**4 + v**4 - 2.0 * (u * v * np.cos(t)) ** 2
    found = math.sqrt(float(square[apart <= BOUND**2].max()))
    most = shortened_gram_sensitivity(longest, 1, 1, BOUND)
    assert 0.97 * most < found <= most


def test_rows_below_the_longest_are_left_alone():
    X = np.random.default_rng(1).standard_normal((50, 3))
    X *= BOUND / np.linalg.norm(X, axis=1)[:, None]
    draw = SparseSketch(8, 50, 4).sample(0)
    Z = draw.apply(X)
    np.testing.assert_allclose(_shortened_gram(rows_of(X), draw, 1e3), Z.T @ Z, rtol=1e-12)
    short = _shortened_gram(rows_of(X), draw, 0.5)
    assert np.trace(short) == pytest.approx(8 * 0.25, rel=1e-12)


def test_noise_and_events():
    """Means and variances of 3,000 draws at 6 standard errors: false alarms below 1e-7."""
    X = np.random.default_rng(2).standard_normal((64, 2))
    X *= BOUND / np.linalg.norm(X, axis=1)[:, None]
    draw, noise, seen = SparseSketch(16, 64, 1).sample(0), Noise(np.random.default_rng(0)), []
    longest = BOUND * 2.0
    gram = _shortened_gram(rows_of(X), draw, longest)
    for _ in range(3000):
        out = sparse_gram(rows_of(X), sketch=draw, sigma=0.7, noise=noise, public=None)
        difference = (out.gram - gram) / out.scale
        seen.append([difference[0, 0], difference[1, 1], math.sqrt(2.0) * difference[0, 1]])
    assert out.scale == 0.7 * shortened_gram_sensitivity(longest, 16, 1, BOUND)
    seen = np.array(seen)
    assert (np.abs(seen.mean(axis=0)) < 6.0 / math.sqrt(3000)).all()
    assert (np.abs(seen.var(axis=0) - 1.0) < 6.0 * math.sqrt(2.0 / 3000)).all()
    assert noise.drawn == [SPARSE_GRAM.event(0.7)] * 3000
