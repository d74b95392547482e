"""The rules of a budget against an adversary who sees every loss and picks what hurts most."""

import math

import numpy as np
import pytest
from scipy.special import gammainccinv, gammaincinv, ndtr

from fastmix import DPGradientDescent, LinearMixing
from fastmix.accounting import (
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    Part,
    PrivacySpent,
    RdpAccountant,
    SketchEvent,
    TailEvent,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from fastmix.accounting.filters import (
    DeclaredFilter,
    RenyiFilter,
    filter_from_dict,
    fits,
    make_filter,
)

_LEGENDRE = np.polynomial.legendre.leggauss(16)
#: Nodes of the normal law; the last release of a path meets a kink and needs more of them.
_COARSE, _FINE = np.linspace(-8.0, 8.0, 97), np.linspace(-8.0, 8.0, 961)


def losses(event, sign, z):
    """Return values and weights of an event's privacy loss for its worst pair in one direction."""
    weights = np.exp(-(z**2) / 2.0) / np.exp(-(z**2) / 2.0).sum()
    if isinstance(event, GaussianEvent):
        mu = math.sqrt(event.mu_squared)
        return mu**2 / 2.0 + mu * z, weights
    if isinstance(event, LaplaceEvent):
        assert event.count == 1
        e = event.pure_epsilon
        x = e * (_LEGENDRE[0] + 1.0) / 2.0
        inside = np.exp(-x) / 2.0 * e / 2.0 * _LEGENDRE[1]
        return (
            np.concatenate(([e, -e], e - 2.0 * x)),
            np.concatenate(([0.5, math.exp(-e) / 2.0], inside)),
        )
    assert isinstance(event, SketchEvent)
    assert event.bound == "gauss_mix"
    s, half = 1.0 / event.gamma, event.rows / 2.0
    x = 2.0 * np.where(z < 0, gammaincinv(half, ndtr(z)), gammainccinv(half, ndtr(-z)))
    if sign > 0:
        return half * math.log1p(-s) + s / (2.0 * (1.0 - s)) * x, weights
    return -half * math.log1p(-s) - s / 2.0 * x, weights


def adversary(menu, accepts, epsilon, *, depth, sign=1, cells=240):
    """Return delta at ``epsilon`` when the next charge is the worst for the loss so far.

    ``menu`` are charges, ``accepts`` is told a list of them; rare events are added to delta. The
    value of a path is a function of the loss so far, on a grid; without a further charge it is
    the hockey-stick itself.
    """
    reach = 1.0 + 3.0 * epsilon
    grid = np.linspace(-reach, reach, cells + 1)

    def stop(loss):
        return np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0)

    def after(value, charge):
        rare = sum(event.tail for event in charge.events)
        for event in reversed([event for event in charge.events if not event.tail]):
            loss, weights = losses(event, sign, _FINE if value is None else _COARSE)
            reached = grid[:, None] + loss
            if value is None:
                value = stop(reached) @ weights
            else:
                logs = np.log(np.maximum(value, 1e-300))
                value = np.exp(np.interp(reached, grid, logs)) @ weights
        return np.minimum(value + rare, 1.0)

    known = {}

    def worst(path):
        key = tuple(sorted(path))
        if key not in known:
            known[key] = None
            if len(path) < depth:
                spent = [menu[i] for i in path]
                taken = [at for at, each in enumerate(menu) if accepts([*spent, each])]
                if taken:
                    # Going on never has a smaller value than stopping.
                    known[key] = np.max(
                        [after(worst((*path, at)), menu[at]) for at in taken], axis=0
                    )
        return known[key]

    value = worst(())
    return 0.0 if value is None else float(np.exp(np.interp(0.0, grid, np.log(value + 1e-300))))


def charge(*events, delta):
    return PrivacySpent([Part("all", events, delta)])


def best_after_the_fact(epsilon, delta):
    """Return the rule that is not valid: the best order and the best kind of account each time."""

    def accepts(charges):
        basic = math.inf
        if math.fsum(c.delta for c in charges) <= delta:
            basic = math.fsum(c.epsilon for c in charges)
        joint = RdpAccountant([e for c in charges for e in c.events]).get_epsilon(delta)
        return min(basic, joint) <= epsilon * (1.0 + 1e-9)

    return accepts


def test_the_adversary_is_exact_for_gaussian_releases():
    menu = [charge(GaussianEvent(6.0), delta=1e-7)]
    for depth in (1, 2, 3):
        delta = adversary(menu, lambda charges: True, 0.8, depth=depth)
        assert delta == pytest.approx(gaussian_delta(6.0, 0.8, math.sqrt(depth)), rel=5e-3)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_adversary_is_exact_for_laplace_releases(sign):
    menu = [charge(LaplaceEvent(2.0), delta=0.0)]
    exact = -math.expm1((0.3 - 0.5) / 2.0)  # 1 - exp((eps - 1/b)/2), the Laplace profile
    assert adversary(menu, lambda _: True, 0.3, depth=1, sign=sign) == pytest.approx(
        exact, rel=5e-3
    )


def counterexample():
    """Return a first fit and what may follow it, each of which the best account would take."""
    first = DPGradientDescent(epsilon=0.85, delta=1e-7, n_steps=4).account(10_000, 5)
    menu = [DPGradientDescent(epsilon=0.684, delta=1e-7, n_steps=4).account(10_000, 5)]
    for size, epsilon in ((1, 0.967), (4, 0.883), (16, 0.803)):
        model = LinearMixing(epsilon=epsilon, delta=1e-7, gaussian_size=size)
        menu.append(model.account(10_000, 5))
    return first, menu


def spent_after_first(rule, first, menu):
    """Return the exact delta when the first fit is followed by the worst that a rule accepts."""
    return max(
        adversary(
            [first, *menu],
            lambda charges: (
                charges[0] is first and all(c is not first for c in charges[1:]) and rule(charges)
            ),
            1.0,
            depth=2,
            sign=sign,
        )
        for sign in (1, -1)
    )


def test_the_best_account_after_the_fact_is_not_a_filter():
    first, menu = counterexample()
    invalid = best_after_the_fact(1.0, 1e-6)
    assert all(invalid([first, each]) for each in menu)
    assert spent_after_first(invalid, first, menu) > 1.15e-6


@pytest.mark.parametrize("rule", ["renyi", "basic"])
def test_the_counterexample_does_not_pass_a_filter(rule):
    first, menu = counterexample()
    valid = make_filter(rule, 1.0, 1e-6)
    assert spent_after_first(lambda charges: fits(valid, charges), first, menu) <= 1e-6


def random_menu(rng, epsilon, delta):
    """Return charges of every kind, so large that one to four of them fill the budget."""
    mu = 1.0 / gaussian_sigma(epsilon, delta)
    menu = []
    for _ in range(3):
        share = math.sqrt(rng.uniform(0.05, 0.6))
        own = delta * 10.0 ** rng.uniform(-3.0, -0.3)
        kind = rng.integers(4)
        if kind == 0:
            events = [GaussianEvent(1.0 / (share * mu))]
        elif kind == 1:
            events = [LaplaceEvent(1.0 / (epsilon * rng.uniform(0.05, 0.6)))]
        elif kind == 2:
            rows = int(rng.integers(1, 200))
            # Large K: the loss is near N(., K s^2 / 2).
            gamma = max(math.sqrt(rows / 2.0) / (share * mu), 1.05)
            events = [SketchEvent("gauss_mix", gamma, rows)]
        else:
            rows = int(rng.integers(20, 400))
            gamma = max(math.sqrt(rows) / (share * mu), 1.05)
            events = [
                SketchEvent("gauss_mix", gamma, rows),
                GaussianEvent(math.sqrt(2.0) / (share * mu)),
                TailEvent(own / 20.0),
            ]
        pure = kind == 1 and rng.random() < 0.5
        menu.append(charge(*events, delta=0.0 if pure else own))
    return menu


def attack(count, seed):
    """Attack filters with random menus; return the largest exact delta over the budget's."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(count):
        epsilon, delta = 10.0 ** rng.uniform(-1.0, 0.7), 10.0 ** rng.uniform(-9.0, -2.0)
        rule = str(rng.choice(["renyi", "renyi", "basic", "gaussian"]))
        valid = make_filter(rule, epsilon, delta)
        menu = random_menu(rng, epsilon, delta)
        sign = int(rng.choice([1, -1]))
        for cells in (240, 4000):
            exact = adversary(
                menu, lambda c, v=valid: fits(v, c), epsilon, depth=3, sign=sign, cells=cells
            )
            # Where a loss ends (Laplace), a coarse grid blurs its end: look again, closely.
            if exact <= delta:
                break
        worst = max(worst, exact / delta)
    return worst


def test_an_adversary_stays_within_the_budget():
    worst = attack(60, seed=0)
    assert 0.5 < worst <= 1.005  # what the quadrature is good for


@pytest.mark.slow
def test_ten_thousand_adversaries_stay_within_the_budget():
    worst = attack(10_000, seed=1)
    assert 0.9 < worst <= 1.005


def test_renyi_constants():
    rule = make_filter("renyi", 1.0, 1e-6)
    assert isinstance(rule, RenyiFilter)
    assert rule.conversion + rule.tails + rule.basic == pytest.approx(1.0)
    # Gaussian releases: no other order takes more of them.
    taken = {}
    for order in (0.9 * rule.order, rule.order, 1.1 * rule.order):
        other = RenyiFilter(1.0, 1e-6, order, rule.conversion, rule.tails, rule.basic)
        taken[order] = (1.0 - other._overhead) / order
    assert max(taken, key=taken.get) == rule.order


@pytest.mark.parametrize("rule", ["renyi", "gaussian", "basic"])
def test_rules_come_back_from_json(rule):
    made = make_filter(rule, 1.0, 1e-6)
    assert filter_from_dict(made.to_dict(), 1.0, 1e-6) == made


def test_declared_fits_come_back_from_json():
    made = DeclaredFilter(1.0, 1e-6, (charge(GaussianEvent(9.0), delta=1e-7),) * 2)
    assert filter_from_dict(made.to_dict(), 1.0, 1e-6) == made


@pytest.mark.parametrize(
    "constants",
    [
        {"rule": "best"},
        {"rule": "renyi"},
        {"rule": "renyi", "order": 1.0, "conversion": 0.7, "tails": 0.1, "basic": 0.1},
        {"rule": "renyi", "order": 20.0, "conversion": 0.9, "tails": 0.1, "basic": 0.1},
        {"rule": "renyi", "order": 20.0, "conversion": 0.9, "tails": -0.1, "basic": 0.1},
        {"rule": "renyi", "order": 20.0, "conversion": 0.0, "tails": 0.1, "basic": 0.1},
    ],
)
def test_rules_that_guarantee_nothing_are_refused(constants):
    with pytest.raises((TypeError, ValueError)):
        filter_from_dict(constants, 1.0, 1e-6)


def test_one_charge_may_use_the_whole_budget_and_then_nothing_fits():
    rule = make_filter("renyi", 1.0, 1e-6)
    whole = charge(GaussianEvent(gaussian_sigma(1.0, 1e-6)), delta=1e-6)
    assert fits(rule, [whole])
    assert not fits(rule, [whole, charge(GaussianEvent(1e6), delta=1e-12)])
    assert rule.remaining([whole]) < 1e-6


def test_first_charge_needs_its_delta():
    rule = make_filter("renyi", 1.0, 1e-6)
    assert not fits(rule, [charge(GaussianEvent(4.0), delta=2e-6)])


def test_rare_events_beyond_their_share_certify_nothing():
    rule = make_filter("renyi", 1.0, 1e-6)
    one = charge(GaussianEvent(50.0), TailEvent(6e-8), delta=3e-7)
    assert fits(rule, [one])
    assert rule.total([one, one]) == math.inf


def test_gaussian_rule():
    rule = make_filter("gaussian", 1.0, 1e-6)
    part = charge(GaussianEvent(2.0 * gaussian_sigma(1.0, 1e-6)), delta=1e-6)
    assert fits(rule, [part] * 4)
    assert not fits(rule, [part] * 5)
    assert rule.total([part] * 4) == pytest.approx(1.0, rel=1e-9)
    assert rule.remaining([part] * 3) == pytest.approx(gaussian_epsilon(8.4493578, 1e-6), rel=1e-6)
    sketch = charge(SketchEvent("gauss_mix", 5000.0, 100), delta=1e-7)
    assert rule.total([part, sketch]) == math.inf


@pytest.mark.parametrize("rule", ["renyi", "gaussian", "basic"])
def test_releases_without_noise_never_fit(rule):
    made = make_filter(rule, 1.0, 1e-6)
    assert not fits(made, [charge(NonPrivateEvent(), delta=0.0)])


@pytest.mark.parametrize("delta", [1e-9, 1e-7, 4e-7])
def test_what_remains_fits(delta):
    """The epsilon that is said to remain is really left, for a Gaussian release."""
    rule = make_filter("renyi", 1.0, 1e-6)
    for sigma in (8.0, 12.0, 40.0):
        charges = [charge(GaussianEvent(sigma), delta=delta)] * 3
        left = rule.remaining(charges)
        last = charge(GaussianEvent(gaussian_sigma(0.999 * left, 1e-6)), delta=1e-9)
        more = charge(GaussianEvent(gaussian_sigma(1.2 * left, 1e-6)), delta=1e-6)
        assert 0.0 < left < 1.0
        assert fits(rule, [*charges, last])
        assert not fits(rule, [*charges, more])


def test_totals_grow_with_every_charge():
    rng = np.random.default_rng(3)
    for name in ("renyi", "gaussian", "basic"):
        rule = make_filter(name, 3.0, 1e-5)
        charges, before = [], 0.0
        for each in random_menu(rng, 3.0, 1e-5) + random_menu(rng, 3.0, 1e-5):
            charges.append(each)
            now = rule.total(charges)
            # The first charge counts by its own account, which may be less than its share later.
            assert now >= before or len(charges) == 2
            before = now


def test_an_empty_budget_has_spent_nothing():
    assert make_filter("renyi", 1e-12, 0.5).total([]) == 0.0


def test_a_curve_that_is_not_a_number_does_not_fit():
    """Catches comparisons that a value that is not a number passes as 0."""

    class Unknown(NonPrivateEvent):
        def rdp(self, alpha):
            return math.nan

    rule = make_filter("renyi", 1.0, 1e-6)
    charges = [
        PrivacySpent([Part("all", [event], 1e-6)]) for event in (GaussianEvent(50.0), Unknown())
    ]
    assert fits(rule, charges[:1])
    assert rule.total(charges) == math.inf
