"""Matrices that are a multiple of the identity but for few directions."""

import mpmath
import numpy as np
import pytest

from fastmix.data.reductions import Measure
from fastmix.kernels import measured
from fastmix.kernels.mapped import Mapped
from fastmix.kernels.measured import Spiked

mp = mpmath.mp.clone()
mp.dps = 50


def spiked(d, r, seed=0, unit=3.0):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((d, r)))[0]
    return Spiked(unit, vectors, rng.uniform(0.0, 1.0, r))


@pytest.mark.parametrize(("d", "r"), [(1, 0), (1, 1), (5, 2), (40, 39)])
def test_it_is_its_matrix(d, r):
    T, rng = spiked(d, r), np.random.default_rng(1)
    V, C = T.vectors, np.diag(T.shrunk)
    dense = 3.0 * (np.eye(d) - V @ C @ V.T)
    np.testing.assert_allclose(np.asarray(T), dense, atol=1e-14)
    x, A = rng.standard_normal(d), rng.standard_normal((7, d))
    np.testing.assert_allclose(T @ x, dense @ x, atol=1e-13)
    np.testing.assert_allclose(x @ T, dense @ x, atol=1e-13)
    np.testing.assert_allclose(A @ T, A @ dense, atol=1e-13)
    np.testing.assert_allclose(T @ A.T, dense @ A.T, atol=1e-13)
    assert T.shape == (d, d)
    assert Measure(T, 1.0).same(Measure(T.copy(), 1.0))
    assert not Measure(T, 1.0).same(Measure(spiked(d, r, unit=4.0), 1.0))


@pytest.mark.parametrize(("n", "d", "r"), [(1, 1, 0), (9, 1, 1), (300, 40, 3), (50, 200, 60)])
def test_lengths_are_bounds_and_close(n, d, r):
    """They are never below those of the matrix, and above by rounding alone."""
    rng = np.random.default_rng(2)
    X, factors = rng.standard_normal((n, d)), rng.uniform(0.1, 1.0, n)
    lower = -rng.uniform(0.5, 1.0, d)
    for A in (
        Mapped(X),
        Mapped(X.astype(np.float32), factors=factors),
        Mapped(X, factors=factors, constant=0.7),
        Mapped(X, lower, lower + 1.0, lower / 2.0, 1.0 - lower, factors, 0.7),
    ):
        T = spiked(A.shape[1], r)
        dense = measured.row_lengths(A, np.asarray(T), 0.5)
        found = measured.row_lengths(A, T, 0.5)
        np.testing.assert_allclose(found, dense, rtol=1e-9)
        assert found.min() >= 0.5
        assert measured.norm_bound(T) >= np.linalg.norm(np.asarray(T), 2)
    short = Measure.of(T, 1e3, 1.0)
    assert short.transform is None
    assert Measure.of(T, 1e-3, 1.0).transform is T


def test_rows_along_a_spike_are_not_too_short():
    """What cancels is covered by the bound: the lengths in 50 digits are below."""
    T = spiked(30, 4)
    T = Spiked(T.unit, T.vectors, np.array([0.0, 0.5, 1.0 - 1e-12, 1.0 - 1e-6]))
    X = np.concatenate((T.vectors.T, T.vectors.T @ np.diag(1.0 + 1e-13 * np.arange(30))))
    found = measured.row_lengths(Mapped(X), T, 1e-300)
    matrix = mp.matrix(np.asarray(T).tolist())
    for row, bound in zip(X, found, strict=True):
        exact = mp.norm(matrix.T * mp.matrix(row.tolist()))
        assert exact <= bound
        assert bound <= exact + 1e-5
