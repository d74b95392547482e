"""The exact account against dp_accounting's discretised losses, Monte Carlo and the Rényi bound."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fastmix.accounting import (
    GaussianEvent,
    LaplaceEvent,
    RdpAccountant,
    SketchEvent,
    TailEvent,
)
from fastmix.accounting.conversion import rdp_to_delta, rdp_to_epsilon
from fastmix.accounting.events import ComposedEvent
from fastmix.accounting.exact import (
    WorstPair,
    _gaussian_profile,
    exact_delta,
    exact_epsilon,
    known_pair,
)

CASES = [(150.0, 768, 0.15), (20.0, 768, 0.8), (400.0, 6744, 0.1), (2.0, 24, 1.0)]


def sketch(gamma, rows):
    return SketchEvent("gauss_mix", gamma, rows)


def loss_distribution(gamma, rows, mu, interval=1e-3):
    """The pair N(0,1)^K, N(0,1-1/gamma)^K by its chi-square statistic in fine cells, and a normal.

    Cells of the statistic lose nothing but what varies inside a cell.
    """
    edges = stats.chi2.isf([1.0 - 1e-18, 1e-18], rows)
    x = np.linspace(max(edges[0], 0.0), edges[1], 60_001)
    probabilities = []
    for scaled in (x, x / (1.0 - 1.0 / gamma)):
        lower, upper = stats.chi2.cdf(scaled, rows), stats.chi2.sf(scaled, rows)
        mass = np.where(lower[1:] < 0.5, np.diff(lower), -np.diff(upper))
        probabilities.append(np.maximum(mass, 1e-300))
    one, other = (dict(enumerate(np.log(p / p.sum()))) for p in probabilities)
    cells = pld.from_two_probability_mass_functions(
        log_probability_mass_function_lower=other,
        log_probability_mass_function_upper=one,
        value_discretization_interval=interval,
        symmetric=False,
    )
    normal = pld.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=interval)
    return cells.compose(normal)


@pytest.mark.parametrize(("gamma", "rows", "mu"), CASES)
def test_delta_is_that_of_dp_accounting(gamma, rows, mu):
    oracle = loss_distribution(gamma, rows, mu)
    ours = known_pair([sketch(gamma, rows), GaussianEvent(1.0 / mu)])
    for delta in (1e-3, 1e-6, 1e-9):
        epsilon = oracle.get_epsilon_for_delta(delta)
        assert exact_epsilon(ours, delta, 1e3) == pytest.approx(epsilon, rel=3e-3)


@pytest.mark.parametrize(("gamma", "rows", "mu"), CASES)
def test_delta_is_that_of_a_simulation(gamma, rows, mu):
    """A mean of 400,000 draws; a false alarm needs five standard errors (6e-7 each)."""
    rng = np.random.default_rng(0)
    s, n = 1.0 / gamma, 400_000
    ours = WorstPair(gamma, rows, mu)
    epsilon = exact_epsilon(ours, 1e-2, 1e3)
    x, z = rng.chisquare(rows, n), rng.standard_normal(n)
    normal = mu**2 / 2.0 + mu * z
    directions = [
        rows / 2.0 * math.log1p(-s) + s / (2.0 * (1.0 - s)) * x + normal,
        -rows / 2.0 * math.log1p(-s) - s / 2.0 * x + normal,
    ]
    gains = [np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0))) for loss in directions]
    largest = max(gains, key=np.mean)
    error = 5.0 * largest.std() / math.sqrt(n)
    assert -error <= exact_delta(ours, epsilon) - largest.mean() <= error + 2e-3 * largest.mean()


@pytest.mark.parametrize(("gamma", "rows", "mu"), CASES)
def test_never_above_the_renyi_bound(gamma, rows, mu):
    events = [sketch(gamma, rows), GaussianEvent(1.0 / mu)]
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        bound = rdp_to_delta(ComposedEvent(events).rdp, epsilon)
        assert exact_delta(known_pair(events), epsilon) <= bound * 1.01 + 1e-24
        assert RdpAccountant(events).get_delta(epsilon) <= bound


@pytest.mark.parametrize(
    ("case", "delta"), list(zip(CASES, (1e-10, 1e-6, 1e-10, 1e-5), strict=True))
)
def test_the_renyi_conversion_asks_for_more(case, delta):
    gamma, rows, mu = case
    events = [sketch(gamma, rows), GaussianEvent(1.0 / mu)]
    renyi = rdp_to_epsilon(ComposedEvent(events).rdp, delta)
    assert 1.05 < renyi / RdpAccountant(events).get_epsilon(delta) < 1.14


def test_smaller_perturbations_are_dominated():
    for sign in (0.3, 1.0, 3.0):
        deltas = [exact_delta(WorstPair(g, 300, 0.3), sign) for g in (20, 40, 160)]
        assert deltas == sorted(deltas, reverse=True)


def test_only_known_pairs_have_an_exact_account():
    gaussian, tail = GaussianEvent(3.0), TailEvent(1e-9)
    assert known_pair([sketch(9.0, 5), gaussian, tail]) is not None
    assert known_pair([sketch(9.0, 5), sketch(9.0, 7), gaussian]).rows == 12
    assert known_pair([gaussian]) is None
    assert known_pair([sketch(9.0, 5), sketch(8.0, 5), gaussian]) is None
    assert known_pair([sketch(9.0, 5), LaplaceEvent(3.0)]) is None
    assert known_pair([SketchEvent("fast_mix", 9.0, 5), gaussian]) is None
    # A normal loss too narrow to be computed is left to the Rényi conversion.
    assert known_pair([sketch(3.0, 500), GaussianEvent(1e7)]) is None


def test_levels_near_one_are_not_below_a_computation_at_30_digits():
    """K = 2, where the chi-square is an exponential: one integral by mpmath."""
    gamma, mu, epsilon = 1.0136, 1.0, 1000.0
    with mpmath.workdps(30):
        s = 1 / mpmath.mpf(gamma)

        def integrand(x):
            left = epsilon - mpmath.log(1 - s) - s / (2 * (1 - s)) * x
            gain = mpmath.ncdf(mu / 2 - left / mu)
            return (gain - mpmath.exp(left) * mpmath.ncdf(-mu / 2 - left / mu)) * mpmath.exp(-x / 2)

        edge = float(2 * (1 - s) / s * (epsilon - mpmath.log(1 - s)))
        cuts = [edge + step for step in (-2, -0.5, 0, 0.5, 2, 20, 200)]
        truth = float(mpmath.quad(integrand, cuts) / 2)
    ours = exact_delta(WorstPair(gamma, 2, mu), epsilon)
    assert truth <= ours <= 1.5 * truth


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    log_gap=st.floats(-4.0, 6.0),
    log_rows=st.floats(0.0, 9.0),
    log_mu=st.floats(-4.0, 1.5),
    log_delta=st.floats(-28.0, -2.0),
)
def test_never_below_a_dense_quadrature(log_gap, log_rows, log_mu, log_delta):
    option = WorstPair(1.0 + math.exp(log_gap), int(math.exp(log_rows)), math.exp(log_mu))
    ours = option
    epsilon = exact_epsilon(ours, math.exp(log_delta), 1e5)
    if 0.0 < epsilon < math.inf:
        assert dense(option, epsilon) <= exact_delta(ours, epsilon)


def dense(option, epsilon):
    """Both directions by 40,000 trapezoids in a normal coordinate."""
    s, law = 1.0 / option.gamma, stats.chi2(option.rows)
    u = np.linspace(-11.0, 11.0, 40_001)
    x = np.where(u < 0.0, law.ppf(stats.norm.cdf(u)), law.isf(stats.norm.sf(u)))
    deltas = []
    for sign, slope in ((1.0, s / (2.0 * (1.0 - s))), (-1.0, s / 2.0)):
        left = epsilon - sign * (option.rows / 2.0 * math.log1p(-s) + slope * x)
        first = stats.norm.logsf(left / option.mu - option.mu / 2)
        second = left + stats.norm.logsf(left / option.mu + option.mu / 2)
        profile = np.exp(first) * -np.expm1(np.minimum(second - first, 0.0))
        deltas.append(np.trapezoid(profile * stats.norm.pdf(u), u))
    return max(deltas)


def test_no_finite_epsilon_beyond_the_bracket():
    ours = known_pair([sketch(9.0, 50), GaussianEvent(3.0)])
    assert exact_epsilon(ours, 1e-9, 0.1) == math.inf
    assert exact_epsilon(ours, 0.999, 10.0) == 0.0


@pytest.mark.parametrize("mu", [1e-6, 1e-4, 1e-2, 0.2, 1.0, 5.0, 30.0, 1000.0])
def test_the_profile_is_never_below_the_truth(mu):
    """In both signs of epsilon and far into the tails, by no more than the rounding granted."""
    sizes = [mu * k for k in (0, 1e-3, 0.1, 1, 3, 8, 9, 12, 20, 30, 36)] + [1e-8, 0.5, 700, 5000]
    sizes += [mu**2 / 2 + mu * k for k in (-8, -3, 0, 3, 8, 20, 36)]
    epsilons = np.array([sign * size for size in sizes for sign in (1.0, -1.0)])
    with mpmath.workdps(60):
        ratio = mpmath.mpf(mu)
        for epsilon, found in zip(epsilons, _gaussian_profile(mu, epsilons), strict=True):
            at = mpmath.mpf(float(epsilon))
            truth = mpmath.ncdf(ratio / 2 - at / ratio)
            truth -= mpmath.exp(at) * mpmath.ncdf(-ratio / 2 - at / ratio)
            if truth < 1e-280:
                assert 0.0 <= found < 1e-250
            else:
                assert min(1.0, truth) <= found <= truth * 1.00003
