"""Composition and conversion of events."""

from __future__ import annotations

import itertools
import math

import dp_accounting
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmix.accounting import (
    ComposedEvent,
    GaussianEvent,
    LaplaceEvent,
    RdpAccountant,
    SketchEvent,
    TailEvent,
    gaussian_delta,
    gaussian_epsilon,
    rdp_to_epsilon,
)
from fastmix.accounting.account import ORDERS

SKETCH = SketchEvent("fast_mix", 200.0, 400)
GRADIENTS = GaussianEvent(12.0, 1.0, 4)
LAPLACE = LaplaceEvent(8.0, 1.0, 2)
MIXTURES = {
    "sketch": [SKETCH],
    "sketch, gradients": [SKETCH, GRADIENTS],
    "everything": [LAPLACE, TailEvent(2e-7), SKETCH, GRADIENTS],
    "laplace, gaussian": [LAPLACE, GRADIENTS],
    "many laplace": [LaplaceEvent(30.0, 1.0, 100)],
    "gaussian sketch": [SketchEvent("gauss_mix", 90.0, 300), GaussianEvent(9.0)],
}


# --- pure ---------------------------------------------------------------------------------------


def test_pure_laplace_is_at_most_its_pure_epsilon_and_tends_to_it():
    accountant = RdpAccountant([LaplaceEvent(4.0, 1.0, 2), LaplaceEvent(3.0)])
    pure = 2.0 / 4.0 + 1.0 / 3.0
    assert accountant.get_epsilon(1e-3) < accountant.get_epsilon(1e-9) <= pure
    assert accountant.get_epsilon(1e-200) == pytest.approx(pure, rel=1e-12)
    assert accountant.get_delta(pure) == 0.0
    assert 0.0 < accountant.get_delta(pure * 0.9) < 1.0


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2, 0.2])
def test_one_laplace_release_is_never_below_its_exact_epsilon(delta):
    exact = 0.5 + 2.0 * math.log1p(-delta)
    assert RdpAccountant([LaplaceEvent(2.0)]).get_epsilon(delta) >= max(0.0, exact)


def test_many_laplace_releases_gain_from_the_curve():
    accountant = RdpAccountant([LaplaceEvent(30.0, 1.0, 100)])
    expected = rdp_to_epsilon(LaplaceEvent(30.0, 1.0, 100).rdp, 1e-6)
    assert accountant.get_epsilon(1e-6) == pytest.approx(expected, rel=1e-12)
    assert expected < 100.0 / 30.0


# --- Gaussian -----------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-2])
def test_gaussian_releases_are_composed_exactly(delta):
    events = [GaussianEvent(5.0, 2.0, 3), GaussianEvent(3.0), GaussianEvent(11.0, 0.5, 7)]
    mu = math.sqrt(3 * 0.4**2 + 1.0 / 9.0 + 7 * (0.5 / 11.0) ** 2)
    accountant = RdpAccountant(events)
    assert accountant.get_epsilon(delta) == pytest.approx(
        dp_accounting.get_epsilon_gaussian(1.0 / mu, delta), rel=1e-8
    )
    assert accountant.get_delta(1.3) == pytest.approx(gaussian_delta(1.0 / mu, 1.3), rel=1e-9)
    assert accountant.get_epsilon(delta) < rdp_to_epsilon(ComposedEvent(events).rdp, delta)


def test_known_gaussian():
    assert RdpAccountant([GaussianEvent(5.0)]).get_epsilon(1e-6) == pytest.approx(
        0.834118, abs=5e-7
    )


def test_gaussian_beside_laplace_is_exact_plus_pure():
    accountant = RdpAccountant([GaussianEvent(5.0), LaplaceEvent(10.0)])
    assert accountant.get_epsilon(1e-6) == pytest.approx(
        0.1 + gaussian_epsilon(5.0, 1e-6), rel=1e-12
    )


# --- mixtures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_never_above_dp_accounting_and_close_to_it(name, delta):
    """Everything in one curve, tails off the target: what another accountant would say."""
    events = MIXTURES[name]
    tail = sum(event.tail for event in events)
    if tail >= delta:
        assert RdpAccountant(events).get_epsilon(delta) == math.inf
        return
    curve = ComposedEvent(events).rdp(np.array(ORDERS))
    theirs, _ = dp_accounting.rdp.compute_epsilon(ORDERS, curve.tolist(), delta - tail)
    ours = RdpAccountant(events).get_epsilon(delta)
    assert ours <= theirs * (1.0 + 1e-9)
    assert ours >= 0.8 * theirs


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_both_ways_to_add_pure_events_are_tried(delta):
    events = [LAPLACE, SKETCH, GRADIENTS]
    outside = LAPLACE.pure_epsilon + rdp_to_epsilon((SKETCH + GRADIENTS).rdp, delta)
    inside = rdp_to_epsilon(ComposedEvent(events).rdp, delta)
    assert RdpAccountant(events).get_epsilon(delta) == pytest.approx(
        min(outside, inside), rel=1e-12
    )


# --- tails --------------------------------------------------------------------------------------


def test_tails_come_off_delta_once():
    plain = RdpAccountant([SKETCH])
    tailed = RdpAccountant([TailEvent(2e-7), SKETCH, TailEvent(1e-7)])
    assert tailed.get_epsilon(1e-6) == pytest.approx(plain.get_epsilon(7e-7), rel=1e-12)
    assert tailed.get_delta(1.0) == pytest.approx(plain.get_delta(1.0) + 3e-7, rel=1e-12)


@pytest.mark.parametrize("tail", [1e-6, 2e-6, 0.5])
def test_tail_that_uses_up_delta_gives_inf(tail):
    for events in ([SKETCH], [GaussianEvent(5.0)], [LaplaceEvent(5.0)]):
        assert RdpAccountant([TailEvent(tail), *events]).get_epsilon(1e-6) == math.inf
        assert RdpAccountant([TailEvent(tail), *events]).get_delta(50.0) >= tail


def test_two_tails_of_half_delta_give_inf():
    assert RdpAccountant([TailEvent(5e-7), TailEvent(5e-7), SKETCH]).get_epsilon(1e-6) == math.inf


def test_tails_alone():
    accountant = RdpAccountant([TailEvent(1e-7), TailEvent(2e-7)])
    assert accountant.get_epsilon(3.1e-7) == 0.0
    assert accountant.get_epsilon(2e-7) == math.inf
    assert accountant.get_delta(0.0) == pytest.approx(3e-7)


def test_delta_is_at_most_one():
    assert RdpAccountant([TailEvent(0.9), TailEvent(0.9)]).get_delta(1.0) == 1.0
    assert RdpAccountant([GaussianEvent(1e-3), TailEvent(0.5)]).get_delta(0.0) == 1.0


# --- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("delta", [1e-6, 1e-4])
def test_epsilon_and_delta_are_inverse(name, delta):
    accountant = RdpAccountant(MIXTURES[name])
    epsilon = accountant.get_epsilon(delta)
    assert accountant.get_delta(epsilon) == pytest.approx(delta, rel=1e-6)
    assert accountant.get_epsilon(accountant.get_delta(1.1)) == pytest.approx(1.1, rel=1e-6)


def test_order_of_composition_is_irrelevant():
    events = [LAPLACE, TailEvent(1e-7), SKETCH, GRADIENTS]
    expected = RdpAccountant(events).get_epsilon(1e-6)
    for order in itertools.permutations(events):
        assert RdpAccountant(order).get_epsilon(1e-6) == pytest.approx(expected, rel=1e-13)


def test_count_repeats_an_event():
    once = RdpAccountant().compose(GaussianEvent(9.0), count=5).compose(SKETCH)
    assert once.events == (GaussianEvent(9.0),) * 5 + (SKETCH,)
    assert once.get_epsilon(1e-6) == pytest.approx(
        RdpAccountant([GaussianEvent(9.0, 1.0, 5), SKETCH]).get_epsilon(1e-6), rel=1e-12
    )


def test_compose_returns_itself_and_nothing_is_shared():
    first = RdpAccountant([SKETCH])
    second = RdpAccountant(first.events)
    assert second.compose(LAPLACE + GRADIENTS) is second
    assert first.events == (SKETCH,)
    assert second.events == (SKETCH, LAPLACE, GRADIENTS)


def test_nothing_released():
    accountant = RdpAccountant()
    assert accountant.events == ()
    assert accountant.get_epsilon(1e-9) == 0.0
    assert accountant.get_delta(0.0) == 0.0
    np.testing.assert_array_equal(accountant.rdp([1.5, 2.0]), 0.0)


def test_rdp_is_the_sum():
    orders = [1.5, 2.0, 9.0]
    np.testing.assert_allclose(
        RdpAccountant([SKETCH, LAPLACE]).rdp(orders), SKETCH.rdp(orders) + LAPLACE.rdp(orders)
    )


@settings(max_examples=20)
@given(
    gamma=st.floats(20.0, 1e4),
    rows=st.integers(1, 500),
    sigma=st.floats(0.5, 100.0),
    scale=st.floats(0.5, 100.0),
    tail=st.floats(0.0, 9e-7),
)
def test_more_releases_never_cost_less(gamma, rows, sigma, scale, tail):
    events = [
        SketchEvent("fast_mix", gamma, rows),
        GaussianEvent(sigma),
        LaplaceEvent(scale),
        TailEvent(tail),
    ]
    everything = RdpAccountant(events).get_epsilon(1e-6)
    for left_out in range(4):
        some = [event for at, event in enumerate(events) if at != left_out]
        assert RdpAccountant(some).get_epsilon(1e-6) <= everything * (1.0 + 1e-9)


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: RdpAccountant([1.0]),
            TypeError,
            "events must hold PrivacyEvent objects; got events=1.0.",
        ),
        (
            lambda: RdpAccountant().compose(SKETCH, count=0),
            ValueError,
            "count must be at least 1; got count=0.",
        ),
        (
            lambda: RdpAccountant().get_epsilon(0.0),
            ValueError,
            "target_delta must lie strictly between 0 and 1; got target_delta=0.0.",
        ),
        (
            lambda: RdpAccountant().get_delta(-1.0),
            ValueError,
            "target_epsilon must be at least 0; got target_epsilon=-1.0.",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
