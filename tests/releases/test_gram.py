"""Released Gram matrices: solving, shifting, adding the mean back."""

import numpy as np
import pytest

from fastmix.releases import PrivateGram


@pytest.fixture
def gram():
    rng = np.random.default_rng(0)
    return PrivateGram((np.triu(rng.standard_normal((4, 4))) + 3.0 * np.eye(4),), triangular=True)


def test_shifted_is_the_matrix_plus_a_multiple_of_the_identity(gram):
    b = np.arange(4.0)
    low = np.linalg.eigvalsh(gram.matrix())[0]
    for shift in (2.0, -0.9 * low):
        shifted = gram.shifted(shift)
        assert shifted.matrix() == pytest.approx(gram.matrix() + shift * np.eye(4))
        assert (gram.matrix() + shift * np.eye(4)) @ shifted.solve(b) == pytest.approx(b)
    # Beyond positive definite the matrix is left as it is.
    assert gram.shifted(-1.1 * low) is gram


def test_bordered_adds_the_mean_to_a_larger_matrix(gram):
    mean = np.array([0.3, -0.2, 0.1, 0.0, 0.5])
    expected = 7.0 * np.outer(mean, mean)
    expected[:4, :4] += gram.matrix()
    bordered = gram.bordered(mean, 7.0)
    assert bordered.matrix() == pytest.approx(expected)
    assert expected @ bordered.solve(np.ones(5)) == pytest.approx(np.ones(5))


def test_bordered_of_a_singular_matrix_has_a_least_norm_solution():
    few = PrivateGram((np.array([[1.0, 2.0, 3.0]]),))
    bordered = few.bordered(np.array([0.0, 0.0, 0.0, 0.5]), 4.0)
    b = bordered.matrix() @ np.array([1.0, 0.0, 0.0, 1.0])
    assert bordered.matrix() @ bordered.solve(b) == pytest.approx(b)
