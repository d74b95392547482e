"""The paper's two synthetic data sets have the statistics that Appendix H gives them."""

from __future__ import annotations

import numpy as np
import pytest

from fastmix.datasets import make_correlated, make_sphere

N, D = 2**15, 2**5


def test_sphere_has_the_largest_possible_smallest_eigenvalue():
    X, y = make_sphere(n=N, d=D, random_state=0)
    assert X.shape == (N, D)
    assert y.shape == (N,)
    norms = np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-14)
    assert norms.max() <= 1.0 + 1e-15
    values = np.linalg.eigvalsh(X.T @ X)
    # Mean exactly n/d; the spread is about 2 sqrt(d/n) = 6%.
    assert values.mean() == pytest.approx(N / D, rel=1e-12)
    assert 0.9 * N / D < values[0] <= values[-1] < 1.1 * N / D
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=6.0 / np.sqrt(N * D))


def test_sphere_follows_its_linear_model():
    X, y = make_sphere(n=N, d=D, random_state=0)
    assert np.abs(y).max() == 1.0
    theta = np.linalg.lstsq(X, y, rcond=None)[0]
    residual = y - X @ theta
    # Before scaling by s the coefficients have norm 1 and the noise variance 0.1.
    s = np.linalg.norm(theta)
    assert residual.var() / s**2 == pytest.approx(0.1, rel=0.05)
    assert residual.mean() == pytest.approx(0.0, abs=6.0 * residual.std() / np.sqrt(N))


@pytest.mark.parametrize("correlation", [0.99, 0.5, 0.0])
def test_correlated_rows_have_the_covariance(correlation):
    X, y = make_correlated(n=N, d=D, correlation=correlation, random_state=1)
    assert np.linalg.norm(X, axis=1).max() == pytest.approx(1.0, abs=1e-15)
    assert np.linalg.norm(X, axis=1).max() <= 1.0 + 1e-15
    assert np.abs(y).max() == 1.0
    covariance = X.T @ X / N
    at = np.arange(D)
    expected = correlation ** np.abs(at[:, None] - at)
    # Entries of a correlation matrix from n rows err by about 1/sqrt(n) = 0.0055.
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(covariance / np.outer(scale, scale), expected, atol=0.03)
    # One scale for all columns: the variance is 2 before it.
    assert np.ptp(scale) < 0.05 * scale.mean()


def test_correlated_is_badly_conditioned():
    X, _ = make_correlated(n=N, d=D, random_state=1)
    values = np.linalg.eigvalsh(X.T @ X)
    assert values[-1] > 1000 * values[0]


def test_correlated_follows_its_linear_model():
    X, y = make_correlated(n=N, d=4, random_state=2, noise_variance=0.4)
    raw_scale = np.sqrt(2.0 / np.mean(X**2))  # X was divided by this
    theta = np.linalg.lstsq(X * raw_scale, y, rcond=None)[0]
    residual = y - X @ theta * raw_scale
    noise = np.sqrt(residual.var())
    # Coefficients have norm 1 and noise sqrt(0.4) before both are divided by max |y|.
    assert noise / np.linalg.norm(theta) == pytest.approx(np.sqrt(0.4), rel=0.1)


@pytest.mark.parametrize("make", [make_sphere, make_correlated])
def test_seeds_shapes_and_defaults(make):
    X, y = make(n=7, d=3, random_state=3)
    again = make(n=7, d=3, random_state=3)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert not np.array_equal(X, make(n=7, d=3, random_state=4)[0])
    assert not np.array_equal(make(n=7, d=3)[0], make(n=7, d=3)[0])
    for n, d in [(1, 1), (1, 5), (5, 1), (100, 3)]:
        X, y = make(n=n, d=d, random_state=0)
        assert X.shape == (n, d)
        assert X.dtype == y.dtype == np.float64
        assert np.linalg.norm(X, axis=1).max() <= 1.0 + 1e-15
        assert np.abs(y).max() <= 1.0
    import inspect

    defaults = inspect.signature(make).parameters
    assert (defaults["n"].default, defaults["d"].default) == (2**19, 2**5)
    assert defaults["noise_variance"].default == 0.1


@pytest.mark.parametrize("make", [make_sphere, make_correlated])
def test_bad_parameters(make):
    with pytest.raises(ValueError, match=r"n must be at least 1; got n=0\."):
        make(n=0)
    with pytest.raises(TypeError, match=r"d must be an integer; got d=2\.5\."):
        make(n=4, d=2.5)
    with pytest.raises(ValueError, match=r"noise_variance must be at least 0"):
        make(n=4, d=2, noise_variance=-1.0)
    with pytest.raises(TypeError, match="random_state must"):
        make(n=4, d=2, random_state="seed")
