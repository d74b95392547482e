"""Accounting of objective perturbation: known answers, 25 digits, composition, filters.

Whether the theorem behind it holds is asked in test_objective_pairs.py.
"""

from __future__ import annotations

import json
import math
import warnings

import dp_accounting
import mpmath
import numpy as np
import pytest

from fastmix.accounting import (
    GaussianEvent,
    LaplaceEvent,
    ObjectiveEvent,
    Part,
    PrivacySpent,
    RdpAccountant,
    TailEvent,
    composing_eps_c,
    event_from_dict,
    gaussian_delta,
    gaussian_sigma,
    objective_delta,
    objective_mu,
    objective_split,
    rdp_objective,
    rdp_to_delta,
)
from fastmix.accounting.filters import fits, make_filter
from fastmix.accounting.perturbation import _by_slopes
from tests.accounting import objective_oracle as oracle

mp = mpmath.mp.clone()
mp.dps = 25

SETTINGS = [(0.05, 0.1), (0.2, 0.8), (0.2, 1.0), (0.5, 0.05), (1.3, 2.0), (4.0, 3.0), (2.0, 9.0)]


def normal_mean(function, *breaks):
    """Return E function(Z) at 25 digits; ``breaks`` are where the function has a kink."""
    ends = sorted({mp.mpf(b) for b in (*breaks, *range(-20, 21, 4)) if abs(b) <= 20})
    return mp.quad(lambda z: function(z) * mp.npdf(z), ends, method="gauss-legendre", maxdegree=5)


def excess(epsilon, loss):
    return max(mp.mpf(0), 1 - mp.exp(epsilon - loss))


def profile(mu, epsilon):
    """Return the Gaussian profile from its printed formula, at any sign of epsilon."""
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    if mu == 0:
        return max(mp.mpf(0), 1 - mp.exp(epsilon))
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def quantile_losses(mu, eps_c, first, count=4001):
    """Return the bounds on the loss and their probabilities, for the two directions."""
    z = np.linspace(-11.0, 11.0, count)
    weights = np.exp(-(z**2) / 2.0)
    size = mu * z + mu**2 / 2.0 if first else mu * np.abs(z) + mu**2 / 2.0
    return np.maximum(size, eps_c) if first else size, weights / weights.sum()


def charge(*events, delta):
    return PrivacySpent([Part("all", events, delta)])


# --- one release ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [
        (1.0, 1e-6, 0.229086942728),
        (0.1, 1e-8, 0.0211614569962),
        (3.0, 1e-10, 0.476919340276),
        (10.0, 1e-6, 1.80853790831),
    ],
)
def test_known_ratios(epsilon, delta, mu):
    """Catches a lost factor 2 and a root on the wrong side."""
    found = objective_mu(epsilon, delta)
    assert found == pytest.approx(mu, rel=1e-10)
    assert 2 * profile(found, epsilon) <= delta * (1.0 + 1e-9)
    assert objective_delta(epsilon, found, epsilon) <= delta
    assert objective_mu(epsilon, delta, one_sided=True) == pytest.approx(
        1.0 / gaussian_sigma(epsilon, delta), rel=1e-12
    )


@pytest.mark.parametrize(("mu", "eps_c"), SETTINGS[::2])
def test_bounds_of_the_oracle_are_the_expectations(mu, eps_c):
    """The closed forms that pairs are compared with are the integrals of the theorem."""
    for epsilon in (0.3 * eps_c, 0.99 * eps_c, eps_c, 1.7 * eps_c):

        def first(z, epsilon=epsilon):
            return excess(epsilon, max(mp.mpf(eps_c), mu * z + mp.mpf(mu) ** 2 / 2))

        def second(z, epsilon=epsilon):
            return excess(epsilon, mu * abs(z) + mp.mpf(mu) ** 2 / 2)

        kinks = [(mp.mpf(e) - mp.mpf(mu) ** 2 / 2) / mu for e in (epsilon, eps_c)]
        assert oracle.bound_first(epsilon, mu, eps_c) == pytest.approx(
            float(normal_mean(first, *kinks)), rel=1e-9, abs=1e-25
        )
        both = [s * k for k in kinks for s in (1, -1)]
        assert oracle.bound_second(epsilon, mu) == pytest.approx(
            float(normal_mean(second, 0, *both)), rel=1e-9, abs=1e-25
        )


@pytest.mark.parametrize(("mu", "eps_c"), SETTINGS)
def test_delta_is_at_least_both_expectations(mu, eps_c):
    """Catches a bound of one direction only; alone and at eps_c or above it is 2 delta_mu."""
    for epsilon in (0.0, 0.3 * eps_c, 0.99 * eps_c, eps_c, 1.7 * eps_c):
        delta = objective_delta(epsilon, mu, eps_c)
        assert delta >= oracle.bound_first(epsilon, mu, eps_c) * (1.0 - 1e-9)
        assert delta >= oracle.bound_second(epsilon, mu) * (1.0 - 1e-9)
        if epsilon >= eps_c:
            twice = min(1.0, 2.0 * gaussian_delta(1.0, epsilon, mu))
            assert delta == pytest.approx(twice, rel=1e-12)
            assert objective_delta(epsilon, mu, eps_c, one_sided=True) == pytest.approx(
                gaussian_delta(1.0, epsilon, mu), rel=1e-12
            )


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize(("mu", "eps_c"), SETTINGS)
@pytest.mark.parametrize("mu_gaussian", [0.0, 1e-3, 0.1, 1.0])
def test_delta_is_the_formula_at_25_digits(mu, eps_c, mu_gaussian, one_sided):
    """Catches a wrong sign or branch of the profile where epsilon is below eps_c."""
    for epsilon in (0.0, 0.4 * eps_c, eps_c, 1.1 * eps_c, 3.0 * eps_c):
        total = profile(mp.sqrt(mp.mpf(mu) ** 2 + mp.mpf(mu_gaussian) ** 2), epsilon)
        first = total + profile(mu_gaussian, mp.mpf(epsilon) - mp.mpf(eps_c))
        exact = min(mp.mpf(1), first if one_sided else max(first, 2 * total))
        assert objective_delta(
            epsilon, mu, eps_c, mu_gaussian, one_sided=one_sided
        ) == pytest.approx(float(exact), rel=1e-8, abs=1e-300)


@pytest.mark.parametrize(("mu", "eps_c"), SETTINGS)
@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
def test_delta_covers_the_composed_expectations(mu, eps_c, share):
    """E over Z of the Gaussian profile at what the objective leaves, by integration.

    Catches a composition without the floor eps_c, or without the second sign.
    """
    gaussian = share * mu
    for epsilon in (0.7 * eps_c, eps_c, eps_c + 2.0 * gaussian, eps_c + 5.0 * gaussian):
        exact = []
        for first in (True, False):
            loss, p = quantile_losses(mu, eps_c, first)
            exact.append(p @ oracle.gaussian_profile(gaussian, epsilon - loss))
        delta = objective_delta(epsilon, mu, eps_c, gaussian)
        # The larger of two terms is most of their sum.
        assert 0.4 * delta <= max(exact) <= delta * (1.0 + 1e-4)


@pytest.mark.parametrize("first", [True, False])
def test_the_composed_expectation_at_25_digits(first):
    """The sum over a grid that other tests use is the integral."""
    mu, eps_c, gaussian, epsilon = 0.3, 0.7, 0.1, 0.9

    def left(z):
        size = mu * (z if first else abs(z)) + mp.mpf(mu) ** 2 / 2
        return profile(gaussian, epsilon - (max(mp.mpf(eps_c), size) if first else size))

    kinks = [(mp.mpf(eps_c) - mp.mpf(mu) ** 2 / 2) / mu, 0]
    loss, p = quantile_losses(mu, eps_c, first)
    grid = p @ oracle.gaussian_profile(gaussian, epsilon - loss)
    assert grid == pytest.approx(float(normal_mean(left, *kinks)), rel=1e-5)


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize(("mu", "eps_c"), SETTINGS)
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_epsilon_is_least_and_private(mu, eps_c, delta, one_sided):
    for gaussian in (0.0, 0.3 * mu):
        events = [ObjectiveEvent(mu, eps_c, one_sided), GaussianEvent(1.0, gaussian)]
        epsilon = RdpAccountant(events).get_epsilon(delta)
        assert objective_delta(epsilon, mu, eps_c, gaussian, one_sided=one_sided) <= delta
        if epsilon > 1e-9:
            less = epsilon * (1.0 - 1e-7)
            assert objective_delta(less, mu, eps_c, gaussian, one_sided=one_sided) > delta


@pytest.mark.parametrize("share", [0.01, 0.15, 0.4])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-8), (1.0, 1e-6), (10.0, 1e-5)])
def test_split_uses_the_budget_and_no_more(epsilon, delta, share):
    mu, eps_c, gaussian = objective_split(epsilon, delta, share)
    assert gaussian**2 == pytest.approx(share * (mu**2 + gaussian**2), rel=1e-12)
    assert 0.0 < eps_c < epsilon
    spent = objective_delta(epsilon, mu, eps_c, gaussian)
    assert delta * (1.0 - 1e-6) <= spent <= delta
    # Both terms are at their limit: nothing is left to either.
    assert profile(gaussian, epsilon - eps_c) == pytest.approx(delta / 2.0, rel=1e-6)
    assert 2 * profile(math.hypot(mu, gaussian), epsilon) == pytest.approx(delta, rel=1e-6)


def test_eps_c_equal_to_epsilon_beside_other_releases_certifies_nothing():
    """The mistake that looked best: eps_c = eps although 15% of mu^2 goes elsewhere."""
    mu, eps_c, gaussian = objective_split(1.0, 1e-6, 0.15)
    assert objective_delta(1.0, mu, eps_c, gaussian) <= 1e-6
    assert objective_delta(1.0, mu, 1.0, gaussian) == pytest.approx(0.0353850, rel=1e-5)
    # It is no artefact of the bound: one row, nothing in the background.
    pair = oracle.Pair(
        oracle.steepest(1.0, 1.0, 1.0),
        1.0 / mu,
        1.0,
        np.zeros((0, 1)),
        np.zeros(0),
        np.zeros(0),
        np.ones((1, 1)),
        np.zeros(1),
    )
    exact, *masses = pair.by_density(1.0, True, gaussian)
    assert masses == pytest.approx([1.0, 1.0], abs=1e-12)
    assert exact > 200e-6
    # With eps_c as it was split off, the same data are safe.
    safe = oracle.Pair(
        oracle.steepest(1.0, 1.0, eps_c),
        *(getattr(pair, n) for n in ("scale", "ridge", "rows", "targets", "weights")),
        pair.own_rows,
        pair.own_targets,
    )
    assert safe.by_density(1.0, True, gaussian)[0] <= 1e-6


# --- the Rényi curve and the event ---------------------------------------------------------------


@pytest.mark.parametrize(("mu", "eps_c"), SETTINGS[::2])
def test_curve_at_25_digits(mu, eps_c):
    """Catches a wrong order, a lost direction, a floor at the wrong place.

    This is the bound that also holds for persons of several rows.
    """
    for alpha in (1.001, 2.0, 7.3, 40.0):
        less = mp.mpf(alpha) - 1

        def first(z, less=less):
            return mp.exp(less * max(mp.mpf(eps_c), mu * z + mp.mpf(mu) ** 2 / 2))

        def second(z, less=less):
            return mp.exp(less * (mu * abs(z) + mp.mpf(mu) ** 2 / 2))

        # The integrand is largest at (alpha - 1) mu.
        at, peak = (mp.mpf(eps_c) - mp.mpf(mu) ** 2 / 2) / mu, less * mu
        ends = sorted({at, 0, *(s * peak + j for j in (-12, -4, 0, 4, 12) for s in (1, -1))})
        rule = {"method": "gauss-legendre", "maxdegree": 4}
        values = [
            mp.log(mp.quad(lambda z, f=f: f(z) * mp.npdf(z), ends, **rule)) / less
            for f in (first, second)
        ]
        person = {"rows_per_person": 2}
        two, one = (rdp_objective(alpha, mu, eps_c, one_sided=o, **person) for o in (False, True))
        assert two == pytest.approx(float(max(values)), rel=1e-9)
        assert one == pytest.approx(float(values[0]), rel=1e-9)
        assert rdp_objective(alpha, mu, eps_c) <= two


def fine_bound(a, p, mu, eps_c):
    """Return the bound of Theorem 5 by 100,000 midpoints, over the constants that are tried."""
    m = a * (a + 1.0) * mu**2 / 2.0
    y = (np.arange(100_000) + 0.5) / 100_000
    r, S = y**2, np.expm1(eps_c * y**2)
    grown, line = p * eps_c * r - m * (2.0 * r - r**2), 1.0 + p * S
    highest = max(0.0, float((grown - np.log(np.where(line > 0.0, line, np.inf))).max()))
    constants = np.exp(highest * np.linspace(0.0, 1.0, 9))
    rests = [np.mean(np.maximum(np.exp(grown) - A * line, 0.0) * 2.0 * y / S) for A in constants]
    return m + math.log((constants + 2.0 * mu / math.sqrt(2.0 * math.pi) * np.array(rests)).min())


def test_bound_by_slopes_is_the_integral_rounded_up():
    """300 settings up to the steepest; catches a wrong factor, and a sum that is no upper sum."""
    rng, tried, nearest = np.random.default_rng(13), 0, math.inf
    while tried < 300:
        a, mu = 10.0 ** rng.uniform(-1.0, 3.0), 10.0 ** rng.uniform(-3.0, 0.3)
        eps_c = mu * 10.0 ** rng.uniform(-1.0, 1.5)
        p = float(rng.choice([a + 1.0, -a]))
        found = float(_by_slopes(np.float64(a), np.float64(p), mu, eps_c, 2.0 * mu))
        steepest = max(a * (a + 1.0) * mu**2, (a + 1.0) * eps_c)
        assert (steepest <= 300.0) == math.isfinite(found)
        if not steepest <= 300.0:
            continue
        fine = fine_bound(a, p, mu, eps_c)
        assert fine - 1e-7 * (1.0 + fine) <= found <= 1.05 * fine + 1e-9
        nearest, tried = min(nearest, found / fine - 1.0), tried + 1
    assert nearest < 1e-3


def test_composing_eps_c():
    """It is as large as the charge allows, and no larger; for rows in units of a Gaussian's."""
    for mu, order in ((0.02, 22.5), (0.06, 22.5), (0.2, 22.5), (0.2, 8.0)):
        eps_c = composing_eps_c(mu, order, 1.25)
        gaussian = order * mu**2 / 2.0
        assert rdp_objective(order, mu, eps_c) <= 1.25 * gaussian * (1.0 + 1e-3)
        assert rdp_objective(order, mu, eps_c * 1.01) > 1.25 * gaussian
        assert eps_c > composing_eps_c(mu, order, 1.05) > mu / 3.0
        person = composing_eps_c(mu, order, 1.25, rows_per_person=2)
        assert person < eps_c
    with pytest.raises(ValueError, match="most must be greater than 1"):
        composing_eps_c(0.1, 20.0, 1.0)


def test_curve_at_every_order():
    """Catches a curve that is not a number, or falls, at an extreme order."""
    orders = np.array([0.5, 1.0, 1.0 + 2e-16, 1.0 + 1e-9, 1.1, 3.0, 1e3, 1e9, 1e15, np.inf])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        extreme = (
            (1e-9, 0.5),
            (30.0, 1e-3),
            (0.15, 5e-324),
            (1.0, 1e-307),
            (1e-300, 1.0),
            (1.0, 1e3),
        )
        for mu, eps_c in (*SETTINGS, *extreme):
            curve = rdp_objective(orders, mu, eps_c)
            assert np.isinf(curve[[0, 1, -1]]).all()
            assert np.isfinite(curve[2:-1]).all()
            person = rdp_objective(orders, mu, eps_c, rows_per_person=2)
            assert (np.diff(person[2:-1]) >= -1e-9 * person[2:-2]).all()
            assert (curve[2:] <= person[2:]).all()
            assert (curve[2:] >= rdp_objective(orders, mu, eps_c, one_sided=True)[2:]).all()
            assert rdp_objective(math.inf, mu, eps_c) == math.inf


def test_event():
    event = ObjectiveEvent(0.2, 0.8, one_sided=True)
    assert event.pure_epsilon == math.inf
    assert event.tail == 0.0
    data = json.loads(json.dumps(event.to_dict()))
    assert data == {"kind": "objective", "mu": 0.2, "eps_c": 0.8, "one_sided": True}
    assert event_from_dict(data) == event
    assert event_from_dict({"kind": "objective", "mu": 0.2, "eps_c": 0.8}).one_sided is False
    orders = np.array([1.5, 8.0])
    assert np.array_equal(event.rdp(orders), rdp_objective(orders, 0.2, 0.8, one_sided=True))
    spent = charge(event, GaussianEvent(9.0), LaplaceEvent(20.0), delta=1e-6)
    assert PrivacySpent.from_dict(json.loads(json.dumps(spent.to_dict()))) == spent


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0.0, 1.0), ValueError),
        ((0.2, 0.0), ValueError),
        ((0.2, -0.5), ValueError),
        ((math.inf, 1.0), ValueError),
        ((0.2, math.nan), ValueError),
        ((0.2, 1.0, 1), TypeError),
        (("0.2", 1.0), TypeError),
    ],
)
def test_event_refuses(arguments, error):
    with pytest.raises(error):
        ObjectiveEvent(*arguments)


def test_export_to_dp_accounting():
    """The exported curve gives what our conversion of it gives, and more than the exact account."""
    spent = charge(ObjectiveEvent(0.2, 0.6), GaussianEvent(12.0), delta=1e-6)
    orders, curve, tail = spent.to_dp_accounting()
    assert tail == 0.0
    epsilon, _ = dp_accounting.rdp.compute_epsilon(orders, curve, 1e-6)
    assert np.isfinite(epsilon)
    assert spent.epsilon < epsilon < 1.3 * spent.epsilon
    assert rdp_to_delta(spent.rdp, epsilon) == pytest.approx(1e-6, rel=0.05)


# --- accounts of several releases ----------------------------------------------------------------


def test_one_objective_release_with_gaussian_and_laplace_releases():
    mu, eps_c, gaussian = objective_split(1.0, 1e-6, 0.2)
    objective = ObjectiveEvent(mu, eps_c)
    parts = [GaussianEvent(math.sqrt(2.0) / gaussian, count=2), objective]
    accountant = RdpAccountant(parts)
    assert accountant.get_delta(1.0) == pytest.approx(
        objective_delta(1.0, mu, eps_c, gaussian), rel=1e-9
    )
    assert accountant.get_epsilon(1e-6) == pytest.approx(1.0, abs=1e-6)
    # Pure releases add their epsilon, rare events their probability.
    both = RdpAccountant([LaplaceEvent(10.0), *parts, TailEvent(1e-7)])
    assert both.get_delta(1.1) == pytest.approx(accountant.get_delta(1.0) + 1e-7, rel=1e-6)
    assert both.get_epsilon(1.1e-6) == pytest.approx(1.1, abs=1e-6)
    # A curve of the whole is a bound too, of which the least is taken.
    many = RdpAccountant([LaplaceEvent(400.0, count=200), *parts])
    assert many.get_epsilon(1e-6) < 1.0 + 0.5
    one_sided = RdpAccountant([ObjectiveEvent(0.2, 1.0, one_sided=True)])
    assert one_sided.get_delta(1.0) == gaussian_delta(1.0, 1.0, 0.2)
    assert RdpAccountant([ObjectiveEvent(0.2, 1.0)]).get_delta(1.0) == 2.0 * gaussian_delta(
        1.0, 1.0, 0.2
    )


def test_laplace_beside_it_is_covered():
    """Worst loss of a Laplace release, bound of the objective, Gaussian profile: by integration.

    The account of a person's rows covers the bounds, that of one row the steepest loss.
    """
    mu, eps_c, gaussian, pure = 0.25, 0.6, 0.1, 0.2
    others = [GaussianEvent(1.0 / gaussian), LaplaceEvent(1.0 / pure)]
    x, w = np.polynomial.legendre.leggauss(40)
    x = pure * (x + 1.0) / 2.0
    laplace = np.concatenate([[pure, -pure], pure - 2.0 * x])
    mass = np.concatenate([[0.5, math.exp(-pure) / 2.0], np.exp(-x) / 2.0 * pure / 2.0 * w])
    assert mass.sum() == pytest.approx(1.0, rel=1e-12)
    for epsilon in (0.7, 1.0, 1.3):
        for rows, losses in ((2, quantile_losses), (1, steepest_losses)):
            events = [ObjectiveEvent(mu, eps_c, rows_per_person=rows), *others]
            delta = RdpAccountant(events).get_delta(epsilon)
            for first in (True, False):
                loss, p = losses(mu, eps_c, first)
                left = epsilon - loss[:, None] - laplace
                assert p @ oracle.gaussian_profile(gaussian, left) @ mass <= delta * (1.0 + 1e-6)


def steepest_losses(mu, eps_c, first, count=0):
    """Return the losses of one row with the most curvature that is allowed, and probabilities."""
    ridge = 1.0 / math.expm1(eps_c)
    empty = np.zeros((0, 1)), np.zeros(0), np.zeros(0)
    own = np.ones((1, 1)), np.zeros(1)
    pair = oracle.Pair(oracle.steepest(1.0, ridge, eps_c), 1.0 / mu, ridge, *empty, *own)
    loss, p, _ = pair.losses(first, 20)
    return loss, p


def composed(losses, mu, eps_c, other_eps_c, epsilon, first):
    """Return E (1 - exp(eps - W - W'))_+ for two releases with these losses."""
    (a, p), (b, q) = (losses(mu, each, first, 1501) for each in (eps_c, other_eps_c))
    return float(p @ np.maximum(-np.expm1(np.minimum(epsilon - a[:, None] - b, 0.0)), 0.0) @ q)


@pytest.mark.parametrize(("mu", "eps_c"), [(0.1, 0.2), (0.1, 0.4), (0.5, 1.0), (0.02, 0.5)])
def test_two_objective_releases_go_through_their_curves(mu, eps_c):
    """The account of two of them covers the composition of their losses, in both directions.

    For persons these are the bounds on the losses, for rows those of the steepest loss.
    """
    orders, both = np.array([1.5, 4.0, 30.0]), (eps_c, 0.7 * eps_c)
    for rows, losses in ((2, quantile_losses), (1, steepest_losses)):
        accountant = RdpAccountant(ObjectiveEvent(mu, e, rows_per_person=rows) for e in both)
        sums = sum(rdp_objective(orders, mu, e, rows_per_person=rows) for e in both)
        assert accountant.rdp(orders) == pytest.approx(sums, rel=1e-12)
        for delta in (1e-8, 1e-5, 1e-3):
            epsilon = accountant.get_epsilon(delta)
            for first in (True, False):
                assert composed(losses, mu, *both, epsilon, first) <= delta * (1.0 + 1e-3)


# --- filters -------------------------------------------------------------------------------------


def test_the_gaussian_rule_refuses_it():
    """It is no Gaussian release: a mu^2 filter would certify delta hundreds of times too low."""
    rule = make_filter("gaussian", 1.0, 1e-6)
    objective = charge(ObjectiveEvent(0.05, 0.1), delta=1e-7)
    gaussian = charge(GaussianEvent(50.0), delta=1e-7)
    assert rule.total([gaussian, objective]) == math.inf
    assert rule.total([objective, gaussian]) == math.inf
    # Alone it counts by its own account, and closes the budget.
    assert fits(rule, [objective])
    assert rule.remaining([objective]) == 0.0


def test_the_renyi_rule_takes_it_at_its_curve():
    rule = make_filter("renyi", 1.0, 1e-6)
    event = ObjectiveEvent(0.08, 0.3)
    objective, gaussian = charge(event, delta=9e-7), charge(GaussianEvent(20.0), delta=9e-7)
    expected = event.rdp(rule.order) + GaussianEvent(20.0).rdp(rule.order) + rule._overhead
    assert rule.total([gaussian, objective]) == pytest.approx(expected, rel=1e-12)
    assert rule.total([objective, gaussian]) == pytest.approx(expected, rel=1e-12)


def test_an_eps_c_of_next_to_nothing_costs_as_much_as_a_gaussian_release():
    """Catches 0 times infinity in the integral."""
    for eps_c in (1e-30, 1e-307, 5e-324):
        assert rdp_objective(22.5, 0.15, eps_c) == pytest.approx(22.5 * 0.15**2 / 2.0, rel=1e-3)


def test_the_basic_rule_takes_it_at_its_epsilon():
    rule = make_filter("basic", 1.0, 1e-6)
    objective = charge(ObjectiveEvent(0.08, 0.3), delta=4e-7)
    gaussian = charge(GaussianEvent(20.0), delta=4e-7)
    alone = objective.epsilon
    assert objective_delta(alone, 0.08, 0.3) == pytest.approx(4e-7, rel=1e-6)
    expected = alone + gaussian.epsilon
    assert rule.total([objective, gaussian]) == pytest.approx(expected, rel=1e-12)
    assert rule.total([objective, objective, gaussian]) == math.inf


@pytest.mark.parametrize("share", [0.3, 0.5])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-8), (1.0, 1e-6), (5.0, 1e-4)])
def test_what_the_renyi_rule_grants_to_two_of_them_is_private(epsilon, delta, share):
    """Two releases that fill a budget: exact losses of a pair, and the bounds, composed.

    Both are fixed beforehand; test_filters.py has adaptive choices, of other kinds.
    Catches a rule that enters an objective release by its mu^2 or at a curve that is too low.
    """
    rule = make_filter("renyi", epsilon, delta)
    eps_c = share * 0.6 * epsilon

    def largest(rows):
        def charges(mu):
            both = eps_c, 0.5 * eps_c
            events = [ObjectiveEvent(mu, each, rows_per_person=rows) for each in both]
            return [charge(event, delta=delta) for event in events]

        low, high = 1e-6, 10.0
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if fits(rule, charges(middle)) else (low, middle)
        assert fits(rule, charges(low))
        return low

    mu = largest(2)
    assert mu > 1e-5
    for first in (True, False):
        assert composed(quantile_losses, mu, eps_c, 0.5 * eps_c, epsilon, first) <= delta
    mu = largest(1)
    # A concrete pair: one row whose loss is as steep as allowed.
    empty = np.zeros((0, 1)), np.zeros(0), np.zeros(0)
    for first in (True, False):
        exact = 0.0
        for target in (0.0, 100.0):
            one, two = (
                oracle.Pair(
                    oracle.steepest(1.0, 1.0, c),
                    1.0 / mu,
                    1.0,
                    *empty,
                    np.ones((1, 1)),
                    np.full(1, target),
                ).losses(first, 60)[:2]
                for c in (eps_c, 0.5 * eps_c)
            )
            hurt = np.maximum(-np.expm1(np.minimum(epsilon - one[0][:, None] - two[0], 0.0)), 0.0)
            exact = max(exact, float(one[1] @ hurt @ two[1]))
        assert exact <= delta
