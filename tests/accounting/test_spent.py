"""The account of a release in parts, and the paper's split budgets end to end."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError

import dp_accounting
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.accounting import (
    GaussianEvent,
    LaplaceEvent,
    Part,
    PrivacySpent,
    RdpAccountant,
    SketchEvent,
    TailEvent,
)
from fastmix.accounting.account import ORDERS
from fastmix.engine import Target
from fastmix.paper import calibrate_fast_mix, calibrate_gauss_mix
from fastmix.paper.fast_ihm import _thirds
from fastmix.paper.ihm import _paper

EPSILONS = st.floats(math.log(1e-2), math.log(50.0)).map(math.exp)
DELTAS = st.floats(math.log(1e-14), math.log(1e-3)).map(math.exp)
ROWS = st.integers(1, 1000)
STEPS = st.integers(1, 12)


def third(delta):
    """A third of delta, rounded down: three times delta / 3.0 may be above delta."""
    return math.nextafter(delta / 3.0, 0.0)


def fast_ihm_in_thirds(epsilon, delta, k1, steps):
    """Write down the parts of a plan independently, with tails that fill their share."""
    got = _thirds(k1, steps, Target(epsilon, delta), delta / 10.0)
    return PrivacySpent(
        [
            Part("spectral releases", [LaplaceEvent(got.omega, 1.0, 2 * steps)], 0.0),
            Part("tails", [TailEvent(third(delta))], third(delta)),
            Part("sketches", [SketchEvent("fast_mix", got.gamma, k1 * steps)], third(delta)),
            Part("gradients", [GaussianEvent(got.sigma, 1.0, steps)], third(delta)),
        ]
    )


def ihm_in_halves(epsilon, delta, k, steps):
    got = _paper(k, steps, Target(epsilon, delta), delta / 10.0)
    return PrivacySpent(
        [
            Part("eigenvalue", [GaussianEvent(got.omega)], delta / 4.0),
            Part("tail", [TailEvent(delta / 4.0)], delta / 4.0),
            Part("sketches", [SketchEvent("gauss_mix", got.gamma, k * steps)], delta / 4.0),
            Part("gradients", [GaussianEvent(got.sigma, 1.0, steps)], delta / 4.0),
        ]
    )


# --- budgets end to end -------------------------------------------------------------------------


@settings(max_examples=25)
@given(epsilon=EPSILONS, delta=DELTAS, k1=ROWS, steps=STEPS)
def test_fast_ihm_in_thirds_spends_its_budget(epsilon, delta, k1, steps):
    spent = fast_ihm_in_thirds(epsilon, delta, k1, steps)
    assert epsilon * (1.0 - 1e-6) <= spent.epsilon <= epsilon
    assert spent.delta == pytest.approx(delta, rel=1e-15)
    assert spent.delta <= delta
    # One joint conversion of the same releases is never worse.
    assert spent.joint_epsilon(delta) <= spent.epsilon


@settings(max_examples=25)
@given(epsilon=EPSILONS, delta=DELTAS, k=ROWS, steps=STEPS)
def test_ihm_in_halves_spends_its_budget(epsilon, delta, k, steps):
    spent = ihm_in_halves(epsilon, delta, k, steps)
    assert epsilon * (1.0 - 1e-6) <= spent.epsilon <= epsilon
    assert spent.delta == delta
    parts = {part.name: part.epsilon for part in spent.parts}
    assert parts["gradients"] == pytest.approx(epsilon / 2.0, rel=1e-6)
    assert parts["eigenvalue"] + parts["sketches"] == pytest.approx(epsilon / 2.0, rel=1e-6)


@settings(max_examples=25)
@given(epsilon=EPSILONS, delta=DELTAS, k=ROWS, steps=STEPS)
def test_plans_state_the_releases_that_are_written_down_here(epsilon, delta, k, steps):
    """Sketches, gradients and bounds of a plan's own account, and nothing else."""
    target = Target(epsilon, delta)
    for plan, expected in (
        (
            _thirds(k, steps, target, delta / 10.0),
            fast_ihm_in_thirds(epsilon, delta, k, steps),
        ),
        (_paper(k, steps, target, delta / 10.0), ihm_in_halves(epsilon, delta, k, steps)),
    ):
        kinds = [
            {event for event in each.events if event.kind != "tail"}
            for each in (plan.spent, expected)
        ]
        assert kinds[0] == kinds[1]
        assert len(plan.spent.events) == len(expected.events)
        assert epsilon * (1.0 - 1e-6) <= plan.spent.epsilon <= epsilon
        assert plan.spent.delta == pytest.approx(delta, rel=1e-15)
        assert plan.spent.delta <= delta
        assert 0.0 < plan.spent.tail <= expected.tail


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_gauss_mix_in_thirds_of_delta(epsilon):
    delta, k = 1e-8, 120
    got = calibrate_gauss_mix(epsilon, delta, k)
    spent = PrivacySpent(
        [
            Part("eigenvalue", [GaussianEvent(got.omega)], third(delta)),
            Part("tail", [TailEvent(third(delta))], third(delta)),
            Part("sketch", [SketchEvent("gauss_mix", got.gamma, k)], third(delta)),
        ]
    )
    assert epsilon * (1.0 - 1e-6) <= spent.epsilon <= epsilon
    assert spent.delta <= delta


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_fast_mix_in_parts_is_the_account_of_its_plan(epsilon):
    delta, k1 = 1e-8, 120
    got = calibrate_fast_mix(epsilon, delta, k1)
    spent = PrivacySpent(
        [
            Part("spectral releases", [LaplaceEvent(got.omega, 1.0, 2)], 0.0),
            Part("tails", [TailEvent(delta / 3.0)] * 2, 2.0 * delta / 3.0),
            Part("sketch", [SketchEvent("fast_mix", got.gamma, k1)], delta / 3.0),
        ]
    )
    assert spent.epsilon == pytest.approx(got.spent.epsilon, rel=1e-12)
    assert got.spent.epsilon <= epsilon
    assert got.spent.delta <= delta
    assert epsilon * (1.0 - 1e-6) <= spent.epsilon <= epsilon
    assert spent.delta == pytest.approx(delta, rel=1e-15)


# --- parts --------------------------------------------------------------------------------------


def test_part_at_delta_zero_is_pure_or_nothing():
    assert Part("a", [LaplaceEvent(4.0, 1.0, 2)], 0.0).epsilon == 0.5
    assert Part("a", [GaussianEvent(4.0)], 0.0).epsilon == math.inf
    assert Part("a", [SketchEvent("fast_mix", 50.0, 1)], 0.0).epsilon == math.inf
    assert Part("a", [LaplaceEvent(4.0), TailEvent(1e-9)], 0.0).epsilon == math.inf
    assert Part("a", [], 0.0).epsilon == 0.0


def test_part_of_tails():
    assert Part("a", [TailEvent(1e-7)], 1e-7).epsilon == 0.0
    assert Part("a", [TailEvent(1e-7), TailEvent(1e-7)], 1e-7).epsilon == math.inf


def test_part_composes_its_events():
    events = [SketchEvent("fast_mix", 50.0, 10), GaussianEvent(9.0) + TailEvent(1e-7)]
    part = Part("a", events, 1e-6)
    assert len(part.events) == 3
    assert part.epsilon == RdpAccountant(events).get_epsilon(1e-6)


def test_a_part_without_a_finite_account_makes_the_whole_infinite():
    spent = PrivacySpent(
        [Part("a", [LaplaceEvent(1.0)], 0.0), Part("b", [GaussianEvent(1.0)], 0.0)]
    )
    assert spent.epsilon == math.inf


def test_sums_over_parts():
    spent = fast_ihm_in_thirds(1.0, 1e-6, 50, 3)
    assert spent.epsilon == math.fsum(part.epsilon for part in spent.parts)
    assert spent.tail == pytest.approx(1e-6 / 3.0)
    assert [event.kind for event in spent.events] == ["laplace", "tail", "sketch", "gaussian"]
    orders = [1.5, 4.0]
    np.testing.assert_allclose(spent.rdp(orders), RdpAccountant(spent.events).rdp(orders))
    assert spent.neighboring_relation == "zero-out"
    assert PrivacySpent([]).epsilon == 0.0


# --- for other accountants ----------------------------------------------------------------------


def test_export_to_dp_accounting():
    spent = fast_ihm_in_thirds(1.0, 1e-6, 50, 3)
    orders, curve, tail = spent.to_dp_accounting()
    assert tail == spent.tail
    theirs, _ = dp_accounting.rdp.compute_epsilon(orders, curve, 1e-6 - tail)
    assert spent.joint_epsilon(1e-6) <= theirs * (1.0 + 1e-12)
    assert theirs <= spent.epsilon
    json.dumps(spent.to_dp_accounting())


def test_export_orders():
    assert list(ORDERS) == sorted(set(ORDERS))
    assert min(ORDERS) > 1.01
    assert all(math.isfinite(order) for order in ORDERS)
    spent = PrivacySpent([Part("a", [GaussianEvent(2.0)], 1e-6)])
    assert spent.to_dp_accounting(3.0) == ([3.0], [0.375], 0.0)
    curve = PrivacySpent([Part("a", [SketchEvent("fast_mix", 2.0, 1)], 1e-6)]).to_dp_accounting()
    assert curve.rdp[-1] == math.inf


@pytest.mark.parametrize("orders", [[2.0, math.inf], [math.nan], [1.0, 2.0], [0.5]])
def test_export_refuses_orders_that_other_accountants_misread(orders):
    """dp_accounting returns epsilon 0 for an infinite order with an infinite curve."""
    spent = fast_ihm_in_thirds(1.0, 1e-6, 50, 3)
    with pytest.raises(ValueError, match=r"^orders must .*; got orders="):
        spent.to_dp_accounting(orders)


# --- JSON and frozen values ---------------------------------------------------------------------


@pytest.mark.parametrize("make", [fast_ihm_in_thirds, ihm_in_halves])
def test_json_round_trip(make):
    spent = make(0.7, 1e-7, 33, 5)
    text = json.dumps(spent.to_dict())
    rebuilt = PrivacySpent.from_dict(json.loads(text))
    assert rebuilt == spent
    assert rebuilt.epsilon == spent.epsilon
    assert rebuilt.delta == spent.delta
    assert json.dumps(rebuilt.to_dict()) == text


def test_json_epsilon_is_recomputed_not_believed():
    data = fast_ihm_in_thirds(0.7, 1e-7, 33, 5).to_dict()
    honest = data["epsilon"]
    data["epsilon"] = 0.0
    for part in data["parts"]:
        part["epsilon"] = 0.0
    assert PrivacySpent.from_dict(data).epsilon == honest


def test_frozen():
    spent = fast_ihm_in_thirds(1.0, 1e-6, 50, 3)
    for thing, field in ((spent, "parts"), (spent.parts[0], "delta"), (spent.parts[0], "events")):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, field, ())
    with pytest.raises(AttributeError):
        spent.epsilon = 0.0


def test_errors():
    with pytest.raises(ValueError, match=r"^delta must be at least 0; got delta=-0.1\.$"):
        Part("a", [], -0.1)
    with pytest.raises(TypeError, match=r"^events must hold PrivacyEvent objects; got events=1\.$"):
        Part("a", [1], 0.1)
