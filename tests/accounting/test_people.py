"""Persons of several rows: exact divergences by integration against what is certified."""

import math

import numpy as np
import pytest

from fastmix.accounting import GaussianEvent, ObjectiveEvent, RdpAccountant
from fastmix.accounting.events import event_from_dict
from fastmix.accounting.gaussian import gaussian_delta
from fastmix.accounting.perturbation import (
    _hinges,
    _mean_excess,
    objective_delta,
    objective_mu,
    objective_split,
)
from tests.accounting import objective_oracle as oracle
from tests.accounting.objective_oracle import Pair
from tests.accounting.test_objective_pairs import LEAST, QUADRATURE, ROUNDING, draw_person


def attack(count, dimension, seed, panels=30, change=lambda pair: pair):
    """Return the largest ratio of an exact delta to the certified one, and how many exceed it."""
    rng = np.random.default_rng(seed)
    worst, broken = 0.0, 0
    for _ in range(count):
        pair, mu, epsilon, eps_c = draw_person(rng, dimension)
        k = len(pair.own_rows)
        pair = change(pair)
        for e in (epsilon, eps_c, 0.9 * eps_c):
            certified = objective_delta(e, mu, eps_c, rows_per_person=k)
            if certified < LEAST:
                continue
            for first in (True, False):
                if dimension == 1:
                    exact, slack = pair.by_intervals(e, first)[0], ROUNDING
                else:
                    exact, slack = pair.by_density(e, first, panels=panels)[0], QUADRATURE
                broken += exact > certified * (1.0 + slack)
                worst = max(worst, exact / certified)
    return worst, broken


def test_no_person_exceeds_the_certificate():
    worst, broken = attack(120, 1, seed=21)
    assert broken == 0
    assert worst > 0.98  # and it is nearly reached


@pytest.mark.slow
def test_two_thousand_persons_do_not_exceed_the_certificate():
    line, broken = attack(1960, 1, seed=22)
    plane, more = attack(40, 2, seed=23)
    assert broken == more == 0
    assert 0.99 < line <= 1.0
    assert plane <= 1.0


def test_weights_are_needed():
    """Mutant: every row of a person counts fully."""

    assert attack(40, 1, seed=24, change=_changed(own_weights=1.0))[1] > 10


def test_the_cap_is_needed():
    """Mutant: weights are for k rows, and the person has twice as many."""
    assert attack(40, 1, seed=25, change=_changed(twice=True))[1] > 10


def test_a_person_in_two_blocks_is_one_person():
    """Mutant: a block that does not know the ids of another gives the person its weight again."""
    assert attack(40, 1, seed=26, change=_changed(again=True))[1] > 10


def _changed(own_weights=None, twice=False, again=False):
    def change(pair):
        rows, targets, weights = pair.own_rows, pair.own_targets, pair.own_weights
        if own_weights is not None:
            weights = np.full(len(rows), own_weights)
        if twice or again:
            rows, targets = np.vstack([rows, rows]), np.concatenate([targets, targets])
            weights = np.concatenate([weights, weights])
        centre = {} if pair.centre is None else {"centre": pair.centre}
        return Pair(
            pair.loss,
            pair.scale,
            pair.ridge,
            pair.rows,
            pair.targets,
            pair.weights,
            rows,
            targets,
            weights,
            **centre,
        )

    return change


@pytest.mark.parametrize(("epsilon", "mu", "least"), [(1.0, 0.22, 400.0), (2.0, 0.4, 6000.0)])
def test_the_linear_condition_is_needed(epsilon, mu, least):
    """Two orthogonal rows of weight 1/2: what is enough for one row is far from enough here."""
    empty = np.zeros((0, 2)), np.zeros(0), np.zeros(0)
    own = np.eye(2), np.zeros(2), np.full(2, 0.5)
    certified = objective_delta(epsilon, mu, epsilon, rows_per_person=2)
    # Both losses are largest where both residuals are small: narrow panels there.
    ends = np.concatenate(
        [np.linspace(-9, -1, 8), np.linspace(-0.5, 0.5, 60), np.linspace(1, 9, 8)]
    )
    wrong = Pair(oracle.steepest(1.0, 1.0, epsilon), 1.0 / mu, 1.0, *empty, *own)
    right = Pair(oracle.steepest_of_persons(1.0, 1.0, epsilon), 1.0 / mu, 1.0, *empty, *own)
    assert wrong.by_density(epsilon, True, panels=ends)[0] > least * certified
    assert right.by_density(epsilon, True, panels=ends)[0] <= certified


# --- formulas ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 7.0])
def test_hinges_are_nowhere_below(epsilon):
    slope, start = _hinges(epsilon)
    loss = np.linspace(epsilon - 3.0, epsilon + 12.0, 4001)
    hinge = slope[:, None] * np.maximum(loss - start[:, None], 0.0)
    assert (hinge >= np.maximum(-np.expm1(epsilon - loss), 0.0) - 1e-14).all()


@pytest.mark.parametrize(("mean", "scale"), [(0.02, 0.2), (0.5, 1.0), (1e-4, 0.01), (3.0, 0.0)])
def test_mean_excess_at_25_digits(mean, scale):
    mp = pytest.importorskip("mpmath")
    start = np.array([mean - 3.0 * scale, mean, mean + 2.0 * scale, mean + 9.0 * scale, mean + 1.0])
    found = _mean_excess(mean, scale, start)
    for t, value in zip(start, found, strict=True):
        if scale == 0.0:
            assert value == max(mean - t, 0.0)
            continue
        z = (mp.mpf(mean) - mp.mpf(float(t))) / mp.mpf(scale)
        exact = float(mp.mpf(scale) * (mp.npdf(z) + z * mp.ncdf(z)))
        assert exact <= value * (1.0 + 1e-12) + 1e-300
        if exact > 1e-200:
            assert value == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("k", [2, 5, 1000])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (3.0, 1e-8), (10.0, 1e-5)]
)
def test_many_rows_cost_little(k, epsilon, delta):
    one, many = objective_mu(epsilon, delta), objective_mu(epsilon, delta, rows_per_person=k)
    assert 0.98 * one < many < one
    mu, eps_c, mu_gaussian = objective_split(epsilon, delta, 0.15, rows_per_person=k)
    certified = objective_delta(epsilon, mu, eps_c, mu_gaussian, rows_per_person=k)
    assert 0.9 * delta < certified <= delta
    assert eps_c > 0.4 * epsilon


def test_bounds_by_simulation():
    """The two bounds against persons whose rows depend on each other in hostile ways."""
    rng = np.random.default_rng(0)
    mu, eps_c, epsilon, k = 1.0, 0.8, 1.5, 4
    z = rng.standard_normal(400_000)
    alike = np.tile(z, (k, 1))
    apart = rng.standard_normal((k, len(z)))
    # In the upper tail all rows move together, each still standard normal.
    order = np.sort(rng.standard_normal((k, len(z))), axis=1)
    top = int(0.85 * len(z))
    mixed = order.copy()
    for row in mixed:
        rng.shuffle(row[:top])
        rng.shuffle(row[top:])
    certified = objective_delta(epsilon, mu, eps_c, rows_per_person=k)
    for normal in (alike, apart, mixed):
        first = np.maximum(eps_c, mu * normal + mu**2 / 2.0).mean(axis=0)
        second = (mu * np.abs(normal) + mu**2 / 2.0).mean(axis=0)
        for loss in (first, second):
            exact = np.maximum(-np.expm1(epsilon - loss), 0.0)
            assert exact.mean() - 4.0 * exact.std() / math.sqrt(len(z)) <= certified


def test_one_row_is_as_before():
    assert objective_delta(1.0, 0.2, 0.6, 0.1) == objective_delta(
        1.0, 0.2, 0.6, 0.1, rows_per_person=1
    )
    few = objective_delta(1.0, 0.2, 0.6, 0.0, rows_per_person=2)
    assert few <= 4.0 * gaussian_delta(1.0, 1.0, 0.2)


def test_event_and_account():
    event = ObjectiveEvent(0.2, 0.6, False, 7)
    assert event_from_dict(event.to_dict()) == event
    old = {"kind": "objective", "mu": 0.2, "eps_c": 0.6, "one_sided": False}
    assert event_from_dict(old).rows_per_person == 1  # ledgers from before
    assert ObjectiveEvent(0.2, 0.6).to_dict() == old
    with pytest.raises(ValueError, match="rows_per_person"):
        ObjectiveEvent(0.2, 0.6, False, 0)
    account = RdpAccountant([event, GaussianEvent(10.0)])
    assert account.get_delta(1.0) == objective_delta(1.0, 0.2, 0.6, 0.1, rows_per_person=7)
    # The sharper curve of one row does not hold for several.
    orders = np.array([1.5, 2.0, 8.0, 64.0])
    assert (event.rdp(orders[:3]) > ObjectiveEvent(0.2, 0.6).rdp(orders[:3])).all()
    assert (event.rdp(orders) == ObjectiveEvent(0.2, 0.6, False, 2).rdp(orders)).all()


# --- weights of single rows ----------------------------------------------------------------------


def test_single_rows_with_weights_need_no_more_than_the_condition_for_one():
    """Docs/proofs/people.md, Section 6: a weight of at most 1 keeps the certificate of one row."""
    rng = np.random.default_rng(31)
    worst = 0.0
    for _ in range(60):
        mu, eps_c = 10.0 ** rng.uniform(-1.0, 0.3), 10.0 ** rng.uniform(-0.7, 0.5)
        lipschitz, ridge = 10.0 ** rng.uniform(-1.0, 1.0), 10.0 ** rng.uniform(-2.0, 2.0)
        loss = oracle.steepest(lipschitz, ridge, eps_c)
        spread = lipschitz / (mu * ridge)
        target = rng.choice([0.0, lipschitz * rng.normal(), spread * rng.normal()])
        weight = float(rng.choice([1.0, 0.9, 0.5, 0.1]))
        pair = Pair(
            loss,
            lipschitz / mu,
            ridge,
            np.zeros((0, 1)),
            np.zeros(0),
            np.zeros(0),
            np.ones((1, 1)),
            np.array([target]),
            np.array([weight]),
        )
        for e in (eps_c, 0.9 * eps_c, 1.5 * eps_c):
            certified = objective_delta(e, mu, eps_c)
            if certified < LEAST:
                continue
            for first in (True, False):
                exact = pair.by_intervals(e, first)[0]
                assert exact <= certified * (1.0 + 1e-7), (mu, eps_c, weight, first)
                worst = max(worst, exact / certified)
    assert worst > 0.9
