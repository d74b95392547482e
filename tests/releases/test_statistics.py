"""Noisy sufficient statistics: every coordinate has the noise that the event states.

Means and covariances are compared at 6 standard errors: below 5e-8 for each of 65 comparisons, by
the chi-square distribution and Chernoff's bound for products.  Kolmogorov-Smirnov tests reject
below 1e-8.  So the false-alarm rate of this file is below 1e-5 over its seeds.
"""

import math

import numpy as np
import pytest
from scipy import stats

from fastmix.accounting import GaussianEvent
from fastmix.data import ArrayRows, RowMap
from fastmix.releases import MOMENTS, STATISTICS, Noise, make_noise
from tests.floats import FloatNoise

ERRORS = 6.0
P_VALUE = 1e-8
N = 5000
BOUND = 1.5
SIGMA = 0.7
UPPER = np.triu_indices(3)


@pytest.fixture(scope="module")
def rows():
    """Half of the rows are longer than the bound, and are shortened to it."""
    rng = np.random.default_rng(0)
    return ArrayRows(rng.standard_normal((40, 3)), RowMap(BOUND), rng.uniform(-1.0, 1.0, 40))


def standardized(rows, noise, draws):
    """Return the noise of 6 Gram entries, 3 moments and the eigenvalue, in units of the event."""
    X, y = (np.concatenate(parts) for parts in zip(*rows.blocks(), strict=True))
    gram = sum(np.outer(x, x) for x in X)
    moment = sum(x * target for x, target in zip(X, y, strict=True))
    least = np.linalg.eigvalsh(gram)[0]
    # A row x of norm C moves x x' and its smallest eigenvalue by C^2, and x y by C.
    scale = SIGMA * np.array([BOUND**2] * 6 + [BOUND] * 3 + [BOUND**2])
    exact = np.array([*gram[UPPER], *moment, least])
    seen = []
    for _ in range(draws):
        release = noise.release(STATISTICS, rows, sigma=SIGMA)
        assert (release.gram == release.gram.T).all()
        seen.append([*release.gram[UPPER], *release.moment, release.eigenvalue])
    return (np.array(seen) - exact) / scale


def assert_standard_normal(z):
    n, size = z.shape
    assert (np.abs(z.mean(axis=0)) <= ERRORS / math.sqrt(n)).all()
    error = np.sqrt((1.0 + np.eye(size)) / n)
    assert (np.abs(z.T @ z / n - np.eye(size)) <= ERRORS * error).all()
    for column in z.T:
        assert stats.kstest(column, stats.norm.cdf).pvalue > P_VALUE


def test_noise_of_every_statistic_is_independent_and_that_of_the_event(rows):
    z = standardized(rows, Noise(np.random.default_rng(1)), N)
    assert_standard_normal(z)
    noise = Noise(np.random.default_rng(1))
    noise.release(STATISTICS, rows, sigma=SIGMA)
    assert noise.drawn == [GaussianEvent(SIGMA)] * 3
    assert STATISTICS.event(SIGMA) == GaussianEvent(SIGMA, 1.0, 3)


@pytest.mark.parametrize(
    "column", [0, 7, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 9))]
)
def test_the_comparison_would_notice(rows, column):
    """Noise of one coordinate that is 10% off, that is shared with another, or a shift.

    The shift is 4.6 standard errors above the limit.
    """
    z = standardized(rows, Noise(np.random.default_rng(2)), N)
    for wrong in (0.9 * z[:, column], z[:, column - 1], z[:, column] + 0.15):
        changed = z.copy()
        changed[:, column] = wrong
        with pytest.raises(AssertionError):
            assert_standard_normal(changed)


def test_exact_noise_has_the_same_distribution(rows):
    assert_standard_normal(standardized(rows, make_noise(3), 1000))


def test_a_matrix_below_its_diagonal_is_not_drawn_again(rows):
    """As many normal variables are drawn as there are statistics: 6 + 3 + 1."""
    rng, other = np.random.default_rng(3), np.random.default_rng(3)
    FloatNoise(rng).release(STATISTICS, rows, sigma=1.0)
    for size in (6, 3, 1):
        other.standard_normal(size)
    assert rng.bit_generator.state == other.bit_generator.state


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_errors_draw_nothing(rows, sigma):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(ValueError, match="sigma must"):
        Noise(rng).release(STATISTICS, rows, sigma=sigma)
    assert rng.bit_generator.state == before


def test_moments_have_half_the_variance_off_the_diagonal(rows):
    """In units of the event: the diagonal, the entries above it times sqrt(2), the moments."""
    X, y = (np.concatenate(parts) for parts in zip(*rows.blocks(), strict=True))
    above, noise, seen = np.triu_indices(3, 1), Noise(np.random.default_rng(4)), []
    for _ in range(N):
        gram, moment = noise.release(MOMENTS, rows, sigma=SIGMA)
        assert (gram == gram.T).all()
        change = (gram - X.T @ X) / (SIGMA * BOUND**2)
        rest = (moment - X.T @ y) / (SIGMA * BOUND)
        seen.append([*np.diag(change), *(math.sqrt(2.0) * change[above]), *rest])
    assert_standard_normal(np.array(seen))
    assert MOMENTS.event(SIGMA) == GaussianEvent(SIGMA, 1.0, 2)
    assert noise.drawn == [GaussianEvent(SIGMA)] * (2 * N)
