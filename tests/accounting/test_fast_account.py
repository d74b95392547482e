"""The exact account of fast sketches: docs/proofs/fast_account.md, step by step."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate
from scipy.special import gammainc, gammaincc, gammaincinv

from fastmix import releases
from fastmix.accounting import GaussianEvent, RdpAccountant, SketchEvent
from fastmix.accounting.conversion import rdp_to_epsilon
from fastmix.accounting.events import ComposedEvent
from fastmix.accounting.exact import WorstPair, exact_delta, exact_epsilon, known_pair
from fastmix.accounting.rdp import unbounded_level
from fastmix.sketches import SRHT


def first(epsilon, s, rows):
    """The divergence of N(0, 1)^K from N(0, 1 - s)^K."""
    a, r = rows / 2.0, 1.0 - s
    x = np.maximum(0.0, (epsilon - a * math.log(r)) * r / s)
    return gammaincc(a, x) - np.exp(epsilon) * gammaincc(a, x / r)


def second(epsilon, s, rows):
    """The divergence of N(0, 1 - s)^K from N(0, 1)^K."""
    a, r = rows / 2.0, 1.0 - s
    x = np.maximum(0.0, (-a * math.log(r) - epsilon) * r / s)
    return gammainc(a, x / r) - np.exp(epsilon) * gammainc(a, x)


def larger(epsilon, s, rows):
    return np.maximum(first(epsilon, s, rows), second(epsilon, s, rows))


#: Nodes and weights on (0, 1).
_T, _W = np.polynomial.legendre.leggauss(80)


def in_a_plane(epsilon, low, high, rows):
    """The divergence of N(0, I) from N(0, diag(low, high)) in K rows.

    The event is a half-plane in the two chi-square variables; one of them is integrated, over its
    quantiles, on both sides of where the half-plane begins.
    """
    a = rows / 2.0
    c = epsilon - a * math.log(low) - a * math.log(high)
    total = 0.0
    for sign, slope, scale in (
        (1.0, 1.0 - 1.0 / high, 1.0 / low - 1.0),
        (-math.exp(epsilon), high - 1.0, 1.0 - low),
    ):
        # Bends are where the argument of the other variable is 0, and where it passes its bulk.
        ends = [a - 8.0 * math.sqrt(a), a, a + 8.0 * math.sqrt(a) + 8.0]
        bends = gammainc(a, np.maximum(0.0, (scale * np.append(ends, 0.0) - c) / slope))
        edges = np.unique(np.concatenate([[0.0, 1e-6, 1e-3, 0.5, 1.0 - 1e-3, 1.0], bends]))
        for left, right in itertools.pairwise(edges):
            v = gammaincinv(a, left + (right - left) * (1.0 + _T) / 2.0)
            p = gammaincc(a, np.maximum(0.0, c + slope * v) / scale)
            total += sign * (right - left) / 2.0 * float(_W @ p)
    return total


@pytest.mark.parametrize("cases", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_plane_is_below_the_larger_direction(cases):
    rng, closest = np.random.default_rng(cases), 0.0
    for _ in range(cases):
        s = 10.0 ** rng.uniform(-3.0, -0.02)
        e1 = s * rng.choice([rng.uniform(), 10.0 ** rng.uniform(-4.0, -0.01)])
        e2, rows = s - e1, int(rng.choice([1, 2, 3, 8, 40, 300, 4000]))
        epsilon = 2.5 * rng.standard_normal() * s * math.sqrt(rows / 2.0)
        found = in_a_plane(epsilon, 1.0 - e1, 1.0 + e2, rows)
        limit = float(larger(epsilon, (e1 + e2) / (1.0 + e2), rows))
        assert found <= limit + 2e-6
        assert limit <= float(larger(epsilon, s, rows)) + 1e-12
        if limit > 1e-2:
            closest = max(closest, found / limit)
    assert closest > 0.99


def test_the_oracle_is_exact_where_the_plane_is_a_line():
    for epsilon in (-0.3, 0.0, 0.2, 1.0):
        near = in_a_plane(epsilon, 1.0 - 0.3, 1.0 + 1e-12, 12)
        assert near == pytest.approx(float(first(epsilon, 0.3, 12)), abs=1e-7)


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 100, 5000])
def test_the_first_direction_is_the_larger_above_zero(rows):
    for s in (0.001, 0.01, 0.1, 0.5, 0.9, 0.99):
        epsilon = np.linspace(0.0, min(600.0, -0.6 * rows * math.log1p(-s)), 2000)
        a, b = first(epsilon, s, rows), second(epsilon, s, rows)
        assert np.all(a >= b - 1e-12)
        assert a[0] == pytest.approx(b[0], abs=1e-12)


def neighbours(rng):
    """Sketched data with unit columns and rows at most 1, and what they are without a row."""
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    S = rng.standard_normal((int(rng.integers(1, 7)), n))
    S /= np.linalg.norm(S, axis=0)
    X = rng.standard_normal((n, d)) * rng.choice([0.3, 1.0, 3.0])
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    i = int(rng.integers(n))
    without = X.copy()
    without[i] = 0.0
    return (S, X, without) if rng.uniform() < 0.5 else (S, without, X)


def test_ratios_of_eigenvalues_are_within_the_level():
    """Of both analyses, with the distortion and without it, for rows that go and that come."""
    rng, closest = np.random.default_rng(1), [0.0, 0.0]
    for _ in range(4000):
        S, X, other = neighbours(rng)
        Z, Z2 = S @ X, S @ other
        eta2 = 10.0 ** rng.uniform(-1.0, 1.5)
        cov, cov2 = (z.T @ z + eta2 * np.eye(X.shape[1]) for z in (Z, Z2))
        root = np.linalg.inv(np.linalg.cholesky(cov))
        values = np.append(np.linalg.eigvalsh(root @ cov2 @ root.T), 1.0)
        s = 1.0 - values.min() / values.max()
        m = max(np.linalg.norm(Z.T @ S[:, j] - X[j]) for j in range(len(X)))
        smallest = np.linalg.eigvalsh(cov)[0]
        levels = [smallest / (1.0 + 2.0 * m)]
        levels.append(unbounded_level(smallest) if smallest > 1.0 else 0.0)
        for k, gamma in enumerate(levels):
            if gamma > 1.0:
                assert s <= 1.0 / gamma + 1e-9
                closest[k] = max(closest[k], s * gamma)
    assert min(closest) > 0.9, closest


def test_appendix_c2_is_attained():
    """Ones in one dimension: N(0, n^2) against N(0, (n - 1)^2)."""
    for n in (2, 5, 40):
        assert 1.0 - (n - 1) ** 2 / n**2 == pytest.approx(1.0 / unbounded_level(float(n * n)))


@pytest.mark.parametrize(
    ("gamma", "rows", "mu"), [(150.0, 768, 0.15), (20.0, 90, 0.8), (3.0, 8, 1)]
)
def test_delta_is_the_integral_of_the_larger_direction(gamma, rows, mu):
    ours = known_pair([SketchEvent("fast_mix_sharp", gamma, rows), GaussianEvent(1.0 / mu)])
    assert ours == WorstPair(gamma, rows, pytest.approx(mu), fast=True)
    for delta in (1e-2, 1e-4, 1e-6):
        epsilon = exact_epsilon(ours, delta, 1e3)

        def mass(z, epsilon=epsilon):
            loss = mu**2 / 2.0 + mu * z
            density = math.exp(-(z**2) / 2.0) / math.sqrt(2.0 * math.pi)
            return float(larger(epsilon - loss, 1.0 / gamma, rows)) * density

        truth = integrate.quad(mass, -9.0, 12.0, epsabs=1e-13, limit=400)[0]
        assert truth <= exact_delta(ours, epsilon) <= 1.03 * truth
        one_direction = known_pair([SketchEvent("gauss_mix", gamma, rows), GaussianEvent(1.0 / mu)])
        assert exact_delta(one_direction, epsilon) <= exact_delta(ours, epsilon) * (1.0 + 1e-6)


def test_the_renyi_account_asks_for_more():
    events = [SketchEvent("fast_mix_sharp", 150.0, 768), GaussianEvent(1.0 / 0.15)]
    by_renyi = rdp_to_epsilon(ComposedEvent(events).rdp, 1e-10)
    assert by_renyi > 1.04 * RdpAccountant(events).get_epsilon(1e-10)


def test_the_bound_without_distortion_has_its_level():
    h = 1.0 / math.sqrt(40.0)
    ours = known_pair([SketchEvent("fast_mix_unbounded", 40.0, 10), GaussianEvent(2.0)])
    assert 1.0 / ours.gamma == pytest.approx(2.0 * h - h * h)


def test_only_one_fast_sketch_has_an_exact_account():
    sharp, noise = SketchEvent("fast_mix_sharp", 40.0, 10), GaussianEvent(2.0)
    assert known_pair([sharp, noise]) is not None
    assert known_pair([sharp, sharp, noise]) is None
    assert known_pair([sharp, SketchEvent("gauss_mix", 40.0, 10), noise]) is None
    assert known_pair([SketchEvent("fast_mix", 40.0, 10), noise]) is None


@pytest.mark.parametrize(("count", "rows"), [(1, [6]), (2, [6, 6]), (3, [12, 6])])
def test_every_fast_sketch_has_its_event(count, rows):
    X = np.full((16, 2), 0.1)
    bounds = {"tau": 3.0, "omega": 5.0, "law": "gaussian", "sharp": True, "rng": 0}
    spectrum = releases.fast_bounds(X, sketch=SRHT(8, 16), count=2, **bounds)
    release = releases.mix(spectrum, k=6, gamma=50.0, count=count, rng=0)
    sketches = [event for event in release.event if isinstance(event, SketchEvent)]
    assert [event.rows for event in sketches] == rows


def test_a_level_that_rounds_to_one_has_no_account():
    events = [SketchEvent("fast_mix_unbounded", 1.0 + 1e-12, 4), GaussianEvent(2.0)]
    assert known_pair(events) is None
    assert RdpAccountant().compose(ComposedEvent(events)).get_epsilon(1e-6) == math.inf
