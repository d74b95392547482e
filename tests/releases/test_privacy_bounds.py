"""The exact Rényi divergence of neighbouring pairs against every bound that is claimed for it.

Nothing here trusts a proof: covariances are formed densely, determinants are taken, every row is
removed in turn, and both directions are bounded with the distortion and the smallest eigenvalue of
the data that come first.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fastmix.accounting import (
    rdp_fast_mix,
    rdp_fast_mix_unbounded,
    rdp_gauss_mix,
)
from fastmix.sketches import SRHT
from tests.accounting.paper import rdp_fast_mix_simple

LEVELS = (1.26, 3.0, 40.0)
SHARES = np.array([1e-3, 0.3, 0.7, 0.95, 0.999])
RTOL, ATOL = 1e-7, 1e-11


def divergence(first, second, alpha):
    """Closed form for N(0, first) || N(0, second), stacks of matrices; inf where it diverges."""
    alpha = np.asarray(alpha)
    middle = first + alpha[..., None, None] * (second - first)
    value = np.linalg.slogdet(middle)[1]
    value = value - (1.0 - alpha) * np.linalg.slogdet(first)[1]
    value = value - alpha * np.linalg.slogdet(second)[1]
    diverges = np.linalg.eigvalsh(middle)[..., 0] <= 0.0
    return np.where(diverges, np.inf, -value / (2.0 * (alpha - 1.0)))


def highest_order(gamma, c_sq):
    return gamma / (0.5 * (1.0 + np.sqrt(1.0 + (1.0 / c_sq - 1.0) ** 2)))


class Pairs:
    """X and its n neighbours under one sketch, scaled so that the row bound is 1."""

    def __init__(self, draw, X, tools, c_x=1.0, repair=True):
        U, norms = tools.unit_columns(draw)
        if not repair:
            U, norms = draw.to_dense(), np.ones(draw.n)
        c = c_x * norms.max()
        rows = norms[:, None] * X / c
        n = len(rows)
        P = U.T @ U - np.diag((norms > 0).astype(float))
        removed = np.stack([rows] * n)
        removed[np.arange(n), np.arange(n)] = 0.0
        Z = U @ rows
        self.gram = Z.T @ Z
        Z = U @ removed
        self.grams = np.swapaxes(Z, 1, 2) @ Z
        self.m = np.linalg.norm(P @ rows, axis=1).max()
        self.ms = np.linalg.norm(P @ removed, axis=2).max(axis=1)
        self.lam = max(0.0, np.linalg.eigvalsh(self.gram)[0])
        self.lams = np.maximum(0.0, np.linalg.eigvalsh(self.grams)[:, 0])
        self.c = c

    def ratios(self, level):
        """Return D / phi for all pairs and orders, after checking the whole chain of bounds.

        Noise brings the first of the two data sets to ``level``, unless it is above without.
        """
        eye, n = np.eye(len(self.gram)), len(self.grams)
        c_sq, base = 1.0 + 2.0 * self.m, np.broadcast_to(self.gram, self.grams.shape)
        found = [self._check(base, self.grams, c_sq, self.lam, level, eye)]
        for i in range(n):
            c_sq, pair = 1.0 + 2.0 * self.ms[i], (self.grams[i : i + 1], base[:1])
            found.append(self._check(*pair, c_sq, self.lams[i], level, eye))
        return np.concatenate(found)

    def _check(self, first, second, c_sq, lam, level, eye):
        sigma_sq = max(0.0, level * c_sq - lam)
        gamma = (lam + sigma_sq) / c_sq
        alpha = 1.0 + SHARES * (highest_order(gamma, c_sq) - 1.0)
        noise = sigma_sq * eye
        exact = divergence(first[:, None] + noise, second[:, None] + noise, alpha[None, :])
        chain = [
            exact.max(axis=0),
            rdp_fast_mix(alpha, gamma, c_sq),
            rdp_fast_mix(alpha, gamma),
            rdp_fast_mix_simple(alpha, gamma),
        ]
        for below, above in itertools.pairwise(chain):
            assert (below <= above * (1.0 + RTOL) + ATOL).all(), (chain, alpha, gamma, c_sq)
        # Sharper than the paper: the two terms of phi are never at their largest together.
        sharper = rdp_gauss_mix(alpha, gamma)
        assert (chain[0] <= sharper * (1.0 + RTOL) + ATOL).all(), (chain[0], sharper, alpha)
        unbounded = rdp_fast_mix_unbounded(alpha, lam + sigma_sq)
        assert (chain[0] <= unbounded * (1.0 + RTOL) + ATOL).all(), (chain[0], unbounded, alpha)
        return (exact / chain[1]).ravel()


@pytest.mark.parametrize("family", range(9))
def test_every_pair_obeys_every_bound(tools, family):
    rng = np.random.default_rng(family)
    count, largest = 0, 0.0
    for draw in tools.draws:
        U, norms = tools.unit_columns(draw)
        P = U.T @ U - np.diag((norms > 0).astype(float))
        for d in (1, 2, 4):
            X = tools.families[family](draw.n, d, P, rng)
            pairs = Pairs(draw, X, tools)
            for level in LEVELS:
                ratios = pairs.ratios(level)
                count += len(ratios)
                largest = max(largest, ratios.max())
    assert count > 10_000
    # A search that finds nothing near the bound would prove nothing about it.
    assert largest > (0.9 if family not in (0, 7) else 0.3)


def test_mechanism_uses_the_quantities_of_the_bounds(tools):
    """What the pass over the data returns is m-hat and lambda_min of the repaired pair."""
    rng = np.random.default_rng(8)
    for draw in tools.draws:
        X = tools.clipped(rng.standard_normal((draw.n, 3)))
        pairs = Pairs(draw, X, tools)
        Z, m_hat = draw.sketch_and_distortion(X)
        assert draw.column_norms.max() == pytest.approx(pairs.c, rel=1e-12)
        assert m_hat / pairs.c == pytest.approx(pairs.m, rel=1e-9, abs=1e-12)
        lambda_hat = np.linalg.eigvalsh(Z.T @ Z)[0] / pairs.c**2
        assert lambda_hat == pytest.approx(pairs.lam, rel=1e-9, abs=1e-12)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_any_matrix_and_any_data(tools, data):
    k, n, d = (data.draw(st.integers(1, high)) for high in (4, 5, 3))
    entries = st.floats(-3.0, 3.0, allow_subnormal=False).map(lambda x: round(x, 6))
    S = data.draw(arrays(np.float64, (k, n), elements=entries))
    if not np.linalg.norm(S, axis=0).max() > 1e-3:
        S[0, 0] = 1.0
    X = tools.clipped(data.draw(arrays(np.float64, (n, d), elements=entries)))
    level = data.draw(st.floats(1.26, 200.0))
    Pairs(tools.dense(S), X, tools).ratios(level)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_general_row_bound(tools, data):
    """Scaling data and bound together changes nothing: only gamma matters."""
    draw = data.draw(st.sampled_from(tools.draws))
    c_x = data.draw(st.floats(1e-3, 1e3))
    seed = data.draw(st.integers(0, 2**20))
    X = tools.clipped(np.random.default_rng(seed).standard_normal((draw.n, 2)) * 2.0)
    pairs = Pairs(draw, c_x * X, tools, c_x=c_x)
    pairs.ratios(3.0)
    plain = Pairs(draw, X, tools)
    assert pairs.m == pytest.approx(plain.m, rel=1e-9, abs=1e-12)
    assert pairs.lam == pytest.approx(plain.lam, rel=1e-9, abs=1e-12)


def test_counterexample_breaks_the_paper_but_not_the_repair(tools):
    """S = (1/2)[1 1 1 1], X = (1, 1, 1, 1)': short columns, m-hat = 0, lambda_min = 4."""
    draw, X, alpha = tools.dense(np.full((1, 4), 0.5)), np.ones((4, 1)), 2.0
    paper = Pairs(draw, X, tools, repair=False)
    assert paper.m == pytest.approx(0.0, abs=1e-15)
    assert paper.lam == pytest.approx(4.0)
    exact = float(divergence(paper.gram + 6.0, paper.grams[0] + 6.0, alpha))
    assert exact == pytest.approx(0.02302, abs=5e-6)
    assert exact > rdp_fast_mix_simple(alpha, 10.0) > rdp_fast_mix(alpha, 10.0)
    with pytest.raises(AssertionError):
        paper.ratios(10.0)

    repaired = Pairs(draw, X, tools)
    assert repaired.c == 0.5
    assert repaired.m * repaired.c == pytest.approx(1.5)
    gamma = (4.0 + 6.0) / (repaired.c * (repaired.c + 2.0 * 1.5))
    assert exact <= rdp_fast_mix(alpha, gamma, 1.0 + 2.0 * repaired.m)
    repaired.ratios(10.0)


@pytest.mark.parametrize("n", [1, 3, 8, 13])
def test_full_size_sketch_has_the_bound_of_the_gaussian_sketch(tools, n):
    """k2 = n_pad: no distortion, C^2 = 1, and the bound is that of the Gaussian sketch, tight."""
    draw = SRHT(1 << (n - 1).bit_length(), n).sample(3)
    X = np.zeros((n, 1 if n == 1 else 2))
    X[1:, 0] = 1.0
    X[0, -1] = 1.0
    pairs = Pairs(draw, X, tools)
    assert draw.coherence == 0.0
    assert draw.sketch_and_distortion(X)[1] == 0.0
    assert pairs.m == pytest.approx(0.0, abs=1e-14)
    assert pairs.lam == pytest.approx(1.0)
    for gamma in (1.5, 3.0, 50.0):
        alpha = 1.0 + SHARES * (gamma - 1.0)
        gauss = rdp_gauss_mix(alpha, gamma)
        assert rdp_fast_mix(alpha, gamma, 1.0) == pytest.approx(gauss, rel=1e-12)
        # The row that alone carries the weakest direction attains it.
        noise = (gamma - 1.0) * np.eye(X.shape[1])
        exact = divergence(pairs.gram + noise, pairs.grams[0] + noise, alpha)
        assert exact == pytest.approx(gauss, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_unbounded_curve_is_attained(tools, n):
    """S = [1 ... 1], X = (1, ..., 1)' without noise: lambda_min = n^2."""
    pairs = Pairs(tools.dense(np.ones((1, n))), np.ones((n, 1)), tools)
    top = n**2 / (2.0 * n - 1.0)
    alpha = 1.0 + SHARES * (top - 1.0)
    exact = divergence(pairs.gram, pairs.grams[0], alpha)
    assert exact == pytest.approx(rdp_fast_mix_unbounded(alpha, float(n**2)), rel=1e-6, abs=1e-11)


def test_divergence_oracle_against_quadrature():
    """The determinant formula itself, for scalar Gaussians, by numerical integration."""
    x = np.linspace(-60.0, 60.0, 400_001)
    for first, second, alpha in [(1.0, 1.3, 2.5), (2.0, 1.4, 1.5), (1.0, 0.8, 3.0)]:
        log_p, log_q = (-(x**2) / (2 * v) - 0.5 * np.log(2 * np.pi * v) for v in (first, second))
        integral = np.exp(alpha * log_p + (1.0 - alpha) * log_q).sum() * (x[1] - x[0])
        exact = divergence(np.array([[first]]), np.array([[second]]), alpha)
        assert exact == pytest.approx(np.log(integral) / (alpha - 1.0), rel=1e-8)
    assert np.isinf(divergence(np.array([[1.0]]), np.array([[0.5]]), 2.5))
