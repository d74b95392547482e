"""Sensitivities: never exceeded by a neighbouring pair, and attained by some pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fastmix.data import ArrayRows, RowMap
from fastmix.releases import sensitivity

SLACK = 1.0 + 1e-9
# Attained: the constructed pair comes at least this near.
NEAR = 0.8


def spectrum(draw, X):
    """Return m-hat and lambda_min as the mechanism computes them."""
    Z, m_hat = draw.sketch_and_distortion(X)
    return m_hat, max(0.0, np.linalg.eigvalsh(Z.T @ Z)[0])


def without(X, i):
    X = X.copy()
    X[i] = 0.0
    return X


def worst_ratios(draw, X, c_x=1.0):
    """Largest change over all neighbours, as a share of the distortion and eigenvalue bounds."""
    bound = c_x * draw.column_norms.max()
    m, lam = spectrum(draw, X)
    most_m = most_lam = 0.0
    for i in range(len(X)):
        m_less, lam_less = spectrum(draw, without(X, i))
        change_m, change_lam = abs(m - m_less), abs(lam - lam_less)
        limit = sensitivity.distortion_sensitivity(draw.coherence, bound)
        rounding = 1e-12 * bound * (1.0 + m / bound) ** 2
        assert change_m <= limit * SLACK + rounding
        # Local: the bound is around the first data set, whichever of the two that is.
        for first in (m, m_less):
            local = sensitivity.sketched_eigenvalue_sensitivity(first, bound)
            assert change_lam <= local * SLACK + rounding * bound
            most_lam = max(most_lam, change_lam / local)
        most_m = max(most_m, change_m / limit if limit > 1e-9 else 0.0)
    return most_m, most_lam


@pytest.mark.parametrize("family", range(9))
def test_distortion_and_eigenvalue_over_adversarial_neighbours(tools, family):
    rng = np.random.default_rng(100 + family)
    for draw in tools.draws:
        U, norms = tools.unit_columns(draw)
        P = U.T @ U - np.diag((norms > 0).astype(float))
        for d in (1, 3):
            X = tools.families[family](draw.n, d, P, rng)
            worst_ratios(draw, X)
            worst_ratios(draw, 7.5 * X, c_x=7.5)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_distortion_and_eigenvalue_over_random_neighbours(tools, data):
    k, n, d = (data.draw(st.integers(1, high)) for high in (4, 6, 3))
    entries = st.floats(-3.0, 3.0, allow_subnormal=False).map(lambda x: round(x, 6))
    S = data.draw(arrays(np.float64, (k, n), elements=entries))
    S[0, 0] += 4.0
    X = tools.clipped(data.draw(arrays(np.float64, (n, d), elements=entries)))
    worst_ratios(tools.dense(S), X)


def test_distortion_sensitivity_is_attained_by_every_sketch(tools):
    """One row, where the columns are most coherent, and nothing else."""
    for draw in tools.draws:
        if draw.coherence < 1e-9:
            continue
        U, norms = tools.unit_columns(draw)
        gram = np.abs(U.T @ U)
        np.fill_diagonal(gram, 0.0)
        best = 0.0
        for j in range(draw.n):
            # Only the longest columns reach the bound: in X~ the row has norm |u_j| c_x.
            X = np.zeros((draw.n, 2))
            X[j, 0] = 1.0
            change = spectrum(draw, X)[0]
            best = max(best, change)
            assert change == pytest.approx(norms[j] * gram[j].max(), rel=1e-9, abs=1e-12)
        if np.ptp(norms) < 1e-9:
            limit = sensitivity.distortion_sensitivity(draw.coherence, norms.max())
            assert NEAR * limit <= best <= limit * SLACK


def test_distortion_sensitivity_is_attained_for_unequal_columns(tools):
    """Two parallel long columns among short ones: the scaled bound is met, and not too large."""
    S = np.array([[3.0, 3.0, 0.1], [0.0, 0.0, 0.2]])
    X = np.array([[0.0], [1.0], [0.0]])
    change = spectrum(tools.dense(S), X)[0]
    assert change == pytest.approx(sensitivity.distortion_sensitivity(1.0, 3.0))


def test_eigenvalue_sensitivity_is_attained_by_every_sketch(tools):
    """Rows along one axis whose signs add up at one row: then the change is 1 + 2 m exactly."""
    reached = []
    for draw in tools.draws:
        U, norms = tools.unit_columns(draw)
        P = U.T @ U - np.diag((norms > 0).astype(float))
        best = (0.0, 0.0)
        for i in range(draw.n):
            X = np.where(P[:, i] < 0, -1.0, 1.0)[:, None]
            X[i] = 1.0
            best = max(best, worst_ratios(draw, X)[::-1])
        reached.append(best[0])
        if np.ptp(norms) < 1e-9:
            assert best[0] >= NEAR
    assert max(reached) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.parametrize("c_x", [1.0, 0.2, 40.0])
def test_eigenvalue_change_grows_with_the_distortion(tools, n, c_x):
    """S = [1 ... 1], equal rows: lambda goes from n^2 to (n-1)^2, in both directions."""
    draw, X = tools.dense(np.ones((1, n))), np.full((n, 1), c_x)
    (m, lam), (m_less, lam_less) = spectrum(draw, X), spectrum(draw, without(X, 0))
    for first in (m, m_less):
        limit = sensitivity.sketched_eigenvalue_sensitivity(first, c_x)
        assert NEAR * limit <= lam - lam_less <= limit * SLACK
    # Without the distortion the bound would be far too small.
    assert lam - lam_less > 2.9 * sensitivity.sketched_eigenvalue_sensitivity(0.0, c_x)


rows_2d = arrays(np.float64, (3, 4), elements=st.floats(-1e3, 1e3, allow_subnormal=False))


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    X=rows_2d,
    y=arrays(np.float64, 3, elements=st.floats(-1e3, 1e3)),
    theta=arrays(np.float64, 4, elements=st.floats(-1e6, 1e6)),
    clip=st.floats(1e-3, 1e3),
    c_x=st.floats(1e-2, 1e2),
)
def test_statistics_of_neighbours(X, y, theta, clip, c_x):
    """Gradient, Gram matrix, moment vector and smallest eigenvalue, one row removed."""
    row_map = RowMap(c_x)
    full = ArrayRows(X, row_map, y)
    for i in range(3):
        less = ArrayRows(without(X, i), row_map, without(y[:, None], i)[:, 0])
        change = full.gradient(theta, clip) - less.gradient(theta, clip)
        limit = sensitivity.gradient_sensitivity(clip, c_x)
        assert np.linalg.norm(change) <= limit * SLACK

        (gram, cross), (gram_less, cross_less) = full.moments(), less.moments()
        assert np.linalg.norm(cross - cross_less) <= sensitivity.moment_sensitivity(c_x) * SLACK
        limit = sensitivity.gram_sensitivity(c_x)
        assert np.linalg.norm(np.triu(gram - gram_less)) <= limit * SLACK
        lam, lam_less = (np.linalg.eigvalsh(G)[0] for G in (gram, gram_less))
        assert abs(lam - lam_less) <= sensitivity.eigenvalue_sensitivity(c_x) * SLACK


@pytest.mark.parametrize("c_x", [1.0, 0.3, 25.0])
@pytest.mark.parametrize("clip", [0.5, 8.0])
def test_statistics_attain_their_sensitivities(c_x, clip):
    """A single row of full length with the largest target, far from what theta predicts."""
    X, y = np.array([[1e6]]), np.array([1e6])
    full = ArrayRows(X, RowMap(c_x), y)
    empty = ArrayRows(0.0 * X, RowMap(c_x), 0.0 * y)
    theta = np.array([-1e3 / c_x])
    change = full.gradient(theta, clip) - empty.gradient(theta, clip)
    limit = sensitivity.gradient_sensitivity(clip, c_x)
    assert NEAR * limit <= np.linalg.norm(change) <= limit * SLACK

    gram, cross = full.moments()
    for value, limit in [
        (np.linalg.norm(np.triu(gram)), sensitivity.gram_sensitivity(c_x)),
        (np.linalg.norm(cross), sensitivity.moment_sensitivity(c_x)),
        (np.linalg.eigvalsh(gram)[0], sensitivity.eigenvalue_sensitivity(c_x)),
    ]:
        assert NEAR * limit <= value <= limit * SLACK


def test_values_written_out():
    assert sensitivity.distortion_sensitivity(0.25, 3.0) == 0.75
    assert sensitivity.sketched_eigenvalue_sensitivity(2.0, 3.0) == 21.0
    assert sensitivity.eigenvalue_sensitivity(3.0) == 9.0
    assert sensitivity.gradient_sensitivity(2.0, 3.0) == 6.0
    assert sensitivity.gram_sensitivity(3.0) == 9.0
    assert sensitivity.moment_sensitivity(3.0, 2.0) == 6.0
