"""The cheap draws have the distribution of the literal ones (docs/proofs/exact_sampling.md).

Sample moments are compared with their exact values at 6 standard errors: about 2e-9 for each of
a few hundred comparisons.  Kolmogorov-Smirnov tests reject below 1e-6.  So the false-alarm rate
of this file, over its seeds, is below 1e-4.
"""

import numpy as np
import pytest
from scipy import stats

from fastmix.releases import sampling

ERRORS = 6.0
P_VALUE = 1e-6
N = 40_000


@pytest.fixture(scope="module")
def sketched():
    rng = np.random.default_rng(0)
    return rng.standard_normal((6, 3)) @ np.diag([2.0, 0.5, 1.0]) + [0.3, -0.2, 0.0]


def covariance(Z, eta):
    return Z.T @ Z + eta**2 * np.eye(Z.shape[1])


def assert_moments(rows, sigma):
    """First two moments of independent rows N(0, sigma), against their exact standard errors."""
    n = len(rows)
    scale = np.sqrt(np.diag(sigma))
    assert (np.abs(rows.mean(axis=0)) <= ERRORS * scale / np.sqrt(n)).all()
    error = np.sqrt((np.outer(scale, scale) ** 2 + sigma**2) / n)
    assert (np.abs(rows.T @ rows / n - sigma) <= ERRORS * error).all()


def assert_wishart_moments(grams, k, sigma):
    """Mean and covariance of a sample of Wishart(k, sigma) matrices, every pair of entries."""
    n, d, _ = grams.shape
    flat = grams.reshape(n, -1)
    exact = np.einsum("ik,jl->ijkl", sigma, sigma) + np.einsum("il,jk->ijkl", sigma, sigma)
    exact = k * exact.reshape(d * d, d * d)
    centred = flat - k * sigma.ravel()
    assert (np.abs(centred.mean(axis=0)) <= ERRORS * np.sqrt(np.diag(exact) / n)).all()
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(products.mean(axis=0) - exact) <= ERRORS * error).all()


def same_distribution(first, second):
    return stats.ks_2samp(first, second, method="asymp").pvalue > P_VALUE


@pytest.mark.parametrize("eta", [0.0, 0.7, 30.0])
def test_root_of_the_covariance(sketched, eta):
    root = sampling.covariance_root(sketched.T @ sketched, eta).matrix
    assert root.T @ root == pytest.approx(covariance(sketched, eta), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_root_of_a_singular_covariance(rank):
    Z = np.random.default_rng(rank).standard_normal((max(rank, 1), 4)) * (rank > 0)
    root = sampling.covariance_root(Z.T @ Z, 0.0).matrix
    assert np.isfinite(root).all()
    assert root.T @ root == pytest.approx(Z.T @ Z, abs=1e-12)


def test_root_of_an_indefinite_rounding_error():
    """An eigenvalue that rounding has made negative is taken as zero, not as its absolute value."""
    root = sampling.covariance_root(np.diag([1.0, -1e-17]), 0.0).matrix
    assert root.T @ root == pytest.approx(np.diag([1.0, 0.0]), abs=1e-20)


@pytest.mark.parametrize("eta", [0.0, 0.7, 5.0])
def test_rows_have_the_covariance_of_the_mechanism(sketched, eta):
    sigma = covariance(sketched, eta)
    root = sampling.covariance_root(sketched.T @ sketched, eta)
    cheap = sampling.gaussian_rows(root, N, np.random.default_rng(1))
    literal = sampling.literal_rows([sketched], N, eta, np.random.default_rng(2))
    assert cheap.shape == literal.shape == (N, 3)
    assert_moments(cheap, sigma)
    assert_moments(literal, sigma)
    for direction in (*np.eye(3), [1.0, -2.0, 0.5]):
        assert same_distribution(cheap @ direction, literal @ direction)
    quadratic = [np.einsum("ij,jk,ik->i", rows, sigma, rows) for rows in (cheap, literal)]
    assert same_distribution(*quadratic)
    whitened = np.linalg.solve(np.linalg.cholesky(sigma), cheap.T)
    assert stats.kstest((whitened**2).sum(axis=0), stats.chi2(3).cdf).pvalue > P_VALUE
    # Consecutive rows are independent, not only uncorrelated.
    assert abs(np.corrcoef(whitened[0, ::2] ** 2, whitened[0, 1::2] ** 2)[0, 1]) < 6 / np.sqrt(
        N / 2
    )


@pytest.mark.parametrize("k", [1, 2, 3, 4, 11])
def test_gram_is_wishart(sketched, k):
    """Both branches: k < d forms the rows, k >= d is Bartlett's decomposition."""
    eta, n = 0.7, 15_000
    sigma = covariance(sketched, eta)
    root = sampling.covariance_root(sketched.T @ sketched, eta)
    rng = np.random.default_rng(k)
    cheap = np.array([sampling.gaussian_gram(root, k, rng) for _ in range(n)])
    rows = sampling.literal_rows([sketched], n * k, eta, rng).reshape(n, k, 3)
    literal = np.swapaxes(rows, 1, 2) @ rows
    assert_wishart_moments(cheap, k, sigma)
    assert_wishart_moments(literal, k, sigma)
    for direction in (*np.eye(3), [1.0, -2.0, 0.5]):
        forms = [np.einsum("i,nij,j->n", direction, grams, direction) for grams in (cheap, literal)]
        assert same_distribution(*forms)
        scale = direction @ sigma @ np.asarray(direction)
        assert stats.kstest(forms[0] / scale, stats.chi2(k).cdf).pvalue > P_VALUE
    for function in (np.linalg.det, lambda grams: np.linalg.eigvalsh(grams)[:, -1]):
        assert same_distribution(function(cheap), function(literal)) or k < 3
    assert np.abs(cheap - np.swapaxes(cheap, 1, 2)).max() == 0.0
    ranks = np.linalg.matrix_rank(cheap[:50], tol=1e-9)
    assert (ranks == min(k, 3)).all()


def test_gram_depends_on_the_covariance_only(sketched):
    """Any root will do: a rotated one gives the same distribution."""
    n, k, sigma = 15_000, 5, covariance(sketched, 0.3)
    values, vectors = np.linalg.eigh(sigma)
    root = sampling.CovarianceRoot(np.sqrt(values)[:, None] * vectors.T, triangular=False)
    rng = np.random.default_rng(5)
    assert_wishart_moments(
        np.array([sampling.gaussian_gram(root, k, rng) for _ in range(n)]), k, sigma
    )


def test_moments_would_notice(sketched):
    """The comparisons above can fail: a covariance 8% off is seen, and so is R R' for R'R."""
    sigma = covariance(sketched, 0.7)
    root = sampling.covariance_root(sketched.T @ sketched, 0.7)
    rows = sampling.gaussian_rows(root, N, np.random.default_rng(1))
    with pytest.raises(AssertionError):
        assert_moments(np.sqrt(1.08) * rows, sigma)
    with pytest.raises(AssertionError):
        assert_moments(
            sampling.gaussian_rows(
                sampling.CovarianceRoot(root.matrix.T, triangular=False),
                N,
                np.random.default_rng(1),
            ),
            sigma,
        )
    rng = np.random.default_rng(4)
    grams = np.array([sampling.gaussian_gram(root, 5, rng) for _ in range(15_000)])
    with pytest.raises(AssertionError):
        assert_wishart_moments(grams, 4, sigma)


def test_one_feature():
    """d = 1, where the Bartlett factor is a single chi variable."""
    grams = np.array(
        [
            sampling.gaussian_gram(
                sampling.CovarianceRoot(np.array([[2.0]]), True), 3, rng
            ).matrix()[0, 0]
            for rng in [np.random.default_rng(0)]
            for _ in range(N // 4)
        ]
    )
    assert stats.kstest(grams / 4.0, stats.chi2(3).cdf).pvalue > P_VALUE


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("eta", [0.0, 0.7])
def test_solving_with_the_factors_is_solving_with_the_matrix(sketched, k, eta):
    root = sampling.covariance_root(sketched.T @ sketched, eta)
    gram = sampling.gaussian_gram(root, k, np.random.default_rng(3))
    b = np.array([1.0, -2.0, 0.5])
    assert gram.triangular == (k >= 3)
    assert gram.solve(b) == pytest.approx(np.linalg.pinv(gram.matrix()) @ b, rel=1e-8)
