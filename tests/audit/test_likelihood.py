"""Log-densities of releases against scipy's densities of formulas from the proof pages.

The statistics of a release and the formulas here must agree: both say what is released.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import laplace, multivariate_normal, norm

from fastmix.data import ArrayRows, RowMap
from fastmix.kernels.losses import CalibratedHuber
from fastmix.kernels.sigmoids import Logistic
from fastmix.releases import (
    CURVATURES,
    GRADIENT,
    GRADIENT_COUNTS,
    GRAM,
    LINE,
    MEAN,
    MINIMISER,
    MOMENTS,
    RESIDUAL_COUNTS,
    SECOND_MOMENTS,
    SIGNED_COUNTS,
    SIZE,
    SKETCHES,
    STATISTICS,
    TARGET_MEAN,
)
from fastmix.releases.bounds import DISTORTION, SKETCHED_EIGENVALUE, Source
from fastmix.releases.release import Public, one_sided
from fastmix.sketches import SRHT

rng = np.random.default_rng(0)
X = rng.normal(size=(5, 2)) / 3.0
Y = rng.uniform(-1.0, 1.0, 5)
THETA = np.array([0.3, -2.0])


def rows_of(X, y=None):
    return ArrayRows(X, RowMap(1.0), y)


def neighbours():
    """Return rows with their arrays, with a record and without it."""
    B, z = X.copy(), Y.copy()
    B[0], z[0] = 0.0, 0.0
    return [(rows_of(X, Y), X, Y), (rows_of(B, z), B, z)]


def ratio(release, value, **given):
    """Return the log-likelihood ratio of a value, present over absent."""
    one, other = (
        release.density(value, rows, Public.of(rows), release.checked(Public.of(rows), given))
        for rows, _, _ in neighbours()
    )
    return one - other


def exact_ratio(values, mean, covariance):
    one, other = (
        multivariate_normal(mean(A, y), covariance).logpdf(values) for _, A, y in neighbours()
    )
    return one - other


def counted(sizes, edges):
    return [np.sum((low < sizes) & (sizes <= high)) for low, high in itertools.pairwise(edges)]


def test_gradient():
    value = np.array([0.1, 0.4])
    # The noise is in units of the sensitivity, which is the clipping level.
    exact = exact_ratio(
        value, lambda A, y: A.T @ np.clip(y - A @ THETA, -0.2, 0.2), (0.7 * 0.2) ** 2 * np.eye(2)
    )
    assert ratio(GRADIENT, value, theta=THETA, clip=0.2, sigma=0.7) == pytest.approx(exact)


def test_moments_statistics_and_means():
    gram, moment = np.array([[1.0, 0.2], [0.2, 0.9]]), np.array([0.2, 0.1])
    upper = np.triu_indices(2)

    # Off the diagonal the noise of a symmetric matrix has half the variance.
    half = 0.25 * np.diag([1.0, 0.5, 1.0])
    exact = exact_ratio(gram[upper], lambda A, y: (A.T @ A)[upper], half)
    assert ratio(GRAM, gram, sigma=0.5) == pytest.approx(exact)
    exact += exact_ratio(moment, lambda A, y: A.T @ y, 0.25 * np.eye(2))
    assert ratio(MOMENTS, (gram, moment), sigma=0.5) == pytest.approx(exact)

    def published(A, y):
        return [*(A.T @ A)[upper], *A.T @ y, np.linalg.eigvalsh(A.T @ A)[0]]

    exact = exact_ratio([*gram[upper], *moment, 0.3], published, 0.25 * np.eye(6))
    value = (gram[upper], moment, np.array([0.3]))
    assert ratio(STATISTICS, value, sigma=0.5) == pytest.approx(exact)

    exact = exact_ratio(moment, lambda A, y: A.sum(axis=0), 0.25 * np.eye(2))
    assert ratio(MEAN, moment, sigma=0.5) == pytest.approx(exact)
    exact = exact_ratio([0.4], lambda A, y: [y.sum()], 0.25)
    assert ratio(TARGET_MEAN, np.array([0.4]), sigma=0.5) == pytest.approx(exact)


def test_second_moments():
    T, value = np.array([[2.0, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.7]]), np.eye(3)
    upper, variances = np.triu_indices(3), np.where(np.eye(3) > 0.0, 1.0, 0.5)

    def mean(A, y):
        Z = np.column_stack((A, y)) @ T
        Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1))[:, None]
        return (Z.T @ Z)[upper]

    exact = exact_ratio(value[upper], mean, 0.49 * np.diag(variances[upper]))
    assert ratio(SECOND_MOMENTS, value, transform=T, sigma=0.7) == pytest.approx(exact, rel=1e-6)


def test_counts():
    edges = 2.0 ** (np.arange(-40, 1) / 2.0)

    def sizes(A, y):
        return counted(np.minimum(np.abs(y - A @ THETA) / 0.5, 1.0), edges)

    exact = exact_ratio(np.zeros(40), sizes, 4.0 * np.eye(40))
    found = ratio(RESIDUAL_COUNTS, np.zeros(40), theta=THETA, clip=0.5, sigma=2.0)
    assert found == pytest.approx(exact)

    ends = np.array([0.0, 0.7, 1.1])

    def signed(A, y):
        r = y - A @ THETA
        return [*counted(np.minimum(-r, 1.1), ends), *counted(np.minimum(r, 1.1), ends)]

    exact = exact_ratio(np.zeros(4), signed, 4.0 * np.eye(4))
    found = ratio(SIGNED_COUNTS, np.zeros((2, 2)), theta=THETA, edges=ends, sigma=2.0)
    assert found == pytest.approx(exact)


@pytest.mark.parametrize("loss", [None, Logistic(1.0, 1.0, 1.0)], ids=["squares", "logistic"])
def test_counts_of_gradients(loss):
    T, edges = np.array([[3.0, 1.0], [0.0, 2.0]]), np.array([0.05, 0.3, 0.6, 1.0])

    def lengths(A, y):
        rho = np.maximum(np.linalg.norm(A @ T, axis=1), 0.5)
        sizes = np.abs(y - A @ THETA)
        if loss is not None:
            sizes = np.abs(y) / (1.0 + np.exp(np.sign(y) * (A @ THETA)))
        return counted(np.minimum(sizes * np.minimum(rho, 0.8**2 / rho), 1.0), edges)

    given = {"transform": T, "least": 0.5, "longest": 0.8, "edges": edges, "loss": loss}
    exact = exact_ratio(np.zeros(3), lengths, 4.0 * np.eye(3))
    found = ratio(GRADIENT_COUNTS, np.zeros(3), theta=THETA, sigma=2.0, **given)
    assert found == pytest.approx(exact)


def test_line():
    center, move, widths = np.array([0.1, -0.4]), np.array([0.5, 1.0]), (0.3, 0.6)

    def sums(A, y):
        p = np.clip(A @ move / widths[0], -1.0, 1.0)
        r = np.clip((y - A @ center) / widths[1], -1.0, 1.0)
        e = np.clip(y - A @ (center + move), -1.0, 1.0)
        return np.column_stack((p, e, p * r, p * p)).sum(axis=0)

    exact = exact_ratio(np.zeros(4), sums, (2.0 * 0.7) ** 2 * np.eye(4))
    given = {"center": center, "move": move, "widths": widths, "sigma": 0.7}
    assert ratio(LINE, np.zeros(4), **given) == pytest.approx(exact)


def test_curvatures():
    loss, T, upper = CalibratedHuber(0.5, 20.0, 1.0, 3.0), 2.0 * np.eye(2), np.triu_indices(2)

    def parts(A, y):
        Z = A @ T
        rho = np.maximum(np.linalg.norm(Z, axis=1), 0.4)
        bend = np.minimum(loss.curvature(y - A @ THETA, rho), 1.5 / rho**2)
        steep = loss.slope(y - A @ THETA, rho)[:, None] * Z
        return [*((bend[:, None] * Z).T @ Z)[upper], *(steep.T @ steep)[upper]]

    scales = np.array([2.0 * 1.5] * 3 + [3.0 * 0.5**2] * 3)
    covariance = np.diag(scales**2 * np.tile([1.0, 0.5, 1.0], 2))
    value = np.eye(2), 0.5 * np.eye(2)
    exact = exact_ratio([*value[0][upper], *value[1][upper]], parts, covariance)
    given = {"theta": THETA, "loss": loss, "transform": T, "least": 0.4, "square": 1.5}
    given["weights"] = None
    assert ratio(CURVATURES, value, sigma=(2.0, 3.0), **given) == pytest.approx(exact)


@pytest.mark.parametrize("transformed", [False, True])
def test_minimiser_has_the_density_of_its_noise(transformed):
    """In one column, by the change of variables from b to the minimiser, slopes by differences."""
    x, y, ridge, at = np.array([0.9, -0.5, 0.3]), np.array([1.0, 0.2, -0.7]), 20.0, 0.11
    loss = CalibratedHuber(0.5, ridge, 1.0, 3.0)
    T, center = (2.0, 0.3) if transformed else (1.0, 0.0)
    rho = np.maximum(np.abs(x) * T, 1.0)

    def b(phi):
        residuals = y - x * (center + T * phi)
        slopes = loss.slope(residuals, rho) if transformed else loss.slope(residuals)
        return slopes @ (x * T) - ridge * phi

    def density(phi):
        change = abs(b(phi + 1e-6) - b(phi - 1e-6)) / 2e-6
        return norm(0.0, 0.5 / 3.0).logpdf(b(phi)) + math.log(change)

    rows = rows_of(x[:, None], y)
    given = {"loss": loss, "ridge": ridge, "mu": 3.0, "eps_c": 1.0, "mu_output": 9.0}
    if transformed:
        given |= {"center": np.array([center]), "transform": np.array([[T]]), "least": 1.0}
    given = MINIMISER.checked(Public.of(rows), given)
    found = [MINIMISER.density(np.array([phi]), rows, Public.of(rows), given) for phi in (at, -0.4)]
    assert found[0] - found[1] == pytest.approx(density(at) - density(-0.4), rel=1e-6)


def test_sketches_and_bounds_of_a_fast_sketch():
    draw, released = SRHT(4, 5).sample(0), rng.normal(size=(7, 2))
    found, exact, m_hat = [], [], []
    given = {"k": 7, "eta": 1.5}
    for rows, A, _ in neighbours():
        source = Source.sketched(rows, draw)
        found.append(SKETCHES.density((released,), (source,), Public.of(source), given))
        Z = draw.apply(A)
        law = multivariate_normal(np.zeros(2), Z.T @ Z + 2.25 * np.eye(2))
        exact.append(law.logpdf(released).sum())
        level = {"sigma": 2.0, "tau": 1.0, "law": "gaussian"}
        m_hat.append(draw.sketch_and_distortion(A)[1])
        scale = 2.0 * draw.coherence * draw.largest_norm
        known = {**level, "coherence": draw.coherence}
        assert DISTORTION.density(0.4, source, Public.of(source), known) == pytest.approx(
            norm(m_hat[-1] + scale, scale).logpdf(0.4)
        )
        c = draw.largest_norm
        scale = 2.0 * c * (c + 2.0 * 0.4)
        smallest = max(0.0, np.linalg.eigvalsh(Z.T @ Z)[0])
        known = {**level, "m": 0.4}
        assert SKETCHED_EIGENVALUE.density(0.0, source, Public.of(source), known) == pytest.approx(
            norm(smallest - scale, scale).logcdf(0.0)
        )
    assert found[0] - found[1] == pytest.approx(exact[0] - exact[1], abs=1e-6)


def test_a_covariance_without_noise_has_a_likelihood():
    source = Source(rows_of(np.zeros((2, 1))), 1.0, np.zeros((1, 1)))
    values = [
        SKETCHES.density((np.array([[x]]),), (source,), Public.of(source), {"k": 2, "eta": 0.0})
        for x in (0.0, 1.0)
    ]
    assert np.isfinite(values).all()
    assert values[0] > values[1]


def test_the_number_of_rows():
    rows = rows_of(X, Y)
    values = [SIZE.density(v, rows, Public.of(rows), {"sigma": 3.0}) for v in (7.0, 0.0)]
    assert values == pytest.approx([laplace(5.0, 3.0).logpdf(7.0), laplace(5.0, 3.0).logcdf(0.0)])


@pytest.mark.parametrize(("noise", "law"), [("laplace", laplace), ("gaussian", norm)])
def test_one_sided_is_a_probability_law(noise, law):
    location, scale = 0.7, 1.3
    for value in (1e-9, 0.3, 5.0):
        found = one_sided(value, location, scale, noise)
        assert found == pytest.approx(law(location, scale).logpdf(value))
    assert one_sided(0.0, location, scale, noise) == pytest.approx(law.logcdf(-location / scale))
    # However unlikely a release is, it has a likelihood.
    assert all(math.isfinite(one_sided(v, 1e4, 1.0, noise)) for v in (0.0, 1.0))
