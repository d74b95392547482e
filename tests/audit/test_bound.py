"""Lower bounds on epsilon from counts."""

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from fastmix.audit.bound import Event, choose_event, clopper_pearson, epsilon_lower_bound


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (1, 1), (17, 4000), (3999, 4000)])
def test_clopper_pearson_against_scipy(k, n):
    lower, upper = clopper_pearson(k, n, 0.99)
    less = binomtest(k, n, alternative="less").proportion_ci(0.99, method="exact")
    greater = binomtest(k, n, alternative="greater").proportion_ci(0.99, method="exact")
    assert lower == pytest.approx(greater.low, rel=1e-9)
    assert upper == pytest.approx(less.high, rel=1e-9)


def test_coverage_is_exact_and_not_by_simulation():
    """Over all outcomes of a binomial the bounds fail with probability at most 1%, each."""
    k = np.arange(41)
    lower, upper = clopper_pearson(k, 40, 0.99)
    for p in (0.001, 0.05, 0.3, 0.77, 0.999):
        weights = binom.pmf(k, 40, p)
        assert weights[lower > p].sum() <= 0.01
        assert weights[upper < p].sum() <= 0.01


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 0.05), (0.0, 0.0)])
def test_the_bound_exceeds_the_truth_with_probability_at_most_one_percent(epsilon, delta):
    """Exactly, over all pairs of counts, for the event that attains the guarantee."""
    q, n, k = 0.2, 60, np.arange(61)
    p = math.exp(epsilon) * q + delta
    bounds = epsilon_lower_bound(k[:, None], k[None, :], n, delta, 0.99)
    weights = np.outer(binom.pmf(k, n, p), binom.pmf(k, n, q))
    assert weights[bounds > epsilon].sum() <= 0.01


def test_bound_approaches_the_truth():
    n, q = 10**7, 0.1
    p = math.e * q + 1e-5
    bound = epsilon_lower_bound(round(n * p), round(n * q), n, 1e-5, 0.99)
    assert 0.99 < bound < 1.0


def test_no_evidence_is_no_bound():
    assert epsilon_lower_bound(0, 0, 100, 0.0, 0.99) == 0.0
    assert epsilon_lower_bound(5, 90, 100, 0.0, 0.99) == 0.0
    assert epsilon_lower_bound(3, 0, 100, 0.5, 0.99) == 0.0


@pytest.mark.parametrize("above", [True, False])
def test_event_is_found_on_either_side(above):
    rng = np.random.default_rng(0)
    usual, rare = rng.normal(size=4000), rng.normal(size=4000)
    # On one data set, in 3% of releases, something happens that never happens on the other.
    rare[:120] += 20.0 if above else -20.0
    present, absent = (rare, usual) if above else (usual, rare)
    event = choose_event(present, absent, 1e-5)
    assert event.above is above
    likely, unlikely = event.counts(present, absent)
    assert likely >= 110
    assert unlikely <= 2


def test_counts_include_the_threshold():
    present, absent = np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0])
    assert Event(1.0, True).counts(present, absent) == (2, 1)
    assert Event(0.0, False).counts(present, absent) == (2, 1)
