"""Log-likelihoods against densities of scipy and against the mechanisms themselves."""

import numpy as np
import pytest
from scipy.stats import laplace, multivariate_normal, norm

from fastmix.audit.densities import gaussian_vector, one_sided, sketch_gram


@pytest.mark.parametrize(("noise", "law"), [("laplace", laplace), ("gaussian", norm)])
def test_one_sided_is_a_probability_law(noise, law):
    location, scale = 0.7, 1.3
    grid = np.linspace(1e-9, 60.0, 600_001)
    density = np.exp(one_sided(grid, location, scale, noise))
    atom = np.exp(one_sided(np.zeros(1), location, scale, noise))[0]
    assert atom == pytest.approx(law.cdf(-location / scale))
    assert density.sum() * (grid[1] - grid[0]) + atom == pytest.approx(1.0, abs=1e-4)
    # However unlikely a release is, it has a likelihood.
    assert np.isfinite(one_sided(np.array([0.0, 1.0]), 1e4, 1.0, noise)).all()


def test_gaussian_vector_differs_from_the_density_by_a_constant():
    rng = np.random.default_rng(0)
    values, mean = rng.standard_normal((5, 3)), np.array([0.1, -1.0, 2.0])
    exact = multivariate_normal(mean, 4.0 * np.eye(3)).logpdf(values)
    difference = gaussian_vector(values, mean, 2.0) - exact
    assert difference == pytest.approx(difference[0])


def test_sketch_gram_differs_from_the_density_by_a_constant():
    rng = np.random.default_rng(1)
    A, rows = rng.standard_normal((4, 3)), 6
    eta = np.array([0.5, 1.0, 2.0])
    Y = rng.standard_normal((3, rows, 3))
    found = sketch_gram(np.swapaxes(Y, 1, 2) @ Y, rows, A.T @ A, eta)
    exact = [
        multivariate_normal(np.zeros(3), A.T @ A + e**2 * np.eye(3)).logpdf(y).sum()
        for y, e in zip(Y, eta, strict=True)
    ]
    difference = found - exact
    assert difference == pytest.approx(difference[0], abs=1e-6)


def test_a_covariance_without_noise_has_a_likelihood():
    values = sketch_gram(np.array([[[0.0]], [[1.0]]]), 2, np.zeros((1, 1)), np.zeros(2))
    assert np.isfinite(values).all()
    assert values[0] > values[1]
