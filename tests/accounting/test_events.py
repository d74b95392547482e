"""Events: curves, pure epsilons, tails, composition, JSON, frozen values and errors."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from fastmix.accounting import (
    ComposedEvent,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PrivacyEvent,
    RdpAccountant,
    SketchEvent,
    TailEvent,
    event_from_dict,
    rdp_fast_mix,
    rdp_fast_mix_unbounded,
    rdp_gauss_mix,
    rdp_gaussian,
    rdp_laplace,
)

ALPHA = np.array([1.5, 2.0, 5.0, 30.0])
EVENTS = [
    GaussianEvent(2.0, 0.5, 3),
    GaussianEvent(7.0),
    LaplaceEvent(4.0, 0.5, 2),
    LaplaceEvent(9.0),
    SketchEvent("gauss_mix", 50.0, 7),
    SketchEvent("fast_mix", 50.0, 7),
    SketchEvent("fast_mix_unbounded", 50.0, 7),
    TailEvent(1e-7),
    TailEvent(0.0),
    NonPrivateEvent(),
]


@pytest.mark.parametrize(
    ("event", "curve"),
    [
        (GaussianEvent(2.0, 0.5, 3), 3 * rdp_gaussian(ALPHA, 2.0, 0.5)),
        (LaplaceEvent(4.0, 0.5, 2), 2 * rdp_laplace(ALPHA, 4.0, 0.5)),
        (SketchEvent("gauss_mix", 50.0, 7), 7 * rdp_gauss_mix(ALPHA, 50.0)),
        (SketchEvent("fast_mix", 50.0, 7), 7 * rdp_fast_mix(ALPHA, 50.0)),
        (SketchEvent("fast_mix_unbounded", 50.0, 7), 7 * rdp_fast_mix_unbounded(ALPHA, 50.0)),
        (TailEvent(0.1), np.zeros(4)),
    ],
)
def test_curves(event, curve):
    np.testing.assert_allclose(event.rdp(ALPHA), curve, rtol=1e-14)


def test_pure_epsilon():
    assert LaplaceEvent(4.0, 0.5, 2).pure_epsilon == 0.25
    assert TailEvent(0.1).pure_epsilon == 0.0
    assert GaussianEvent(2.0).pure_epsilon == math.inf
    assert SketchEvent("fast_mix", 50.0, 7).pure_epsilon == math.inf
    both = LaplaceEvent(4.0) + LaplaceEvent(2.0)
    assert both.pure_epsilon == 0.75
    assert (both + GaussianEvent(1.0)).pure_epsilon == math.inf


def test_only_tails_have_a_tail():
    assert TailEvent(0.1).tail == 0.1
    assert all(event.tail == 0.0 for event in EVENTS if not isinstance(event, TailEvent))
    assert (TailEvent(0.1) + GaussianEvent(1.0) + TailEvent(0.2)).tail == pytest.approx(0.3)


def test_mu_squared_adds_up():
    assert GaussianEvent(2.0, 0.5, 3).mu_squared == pytest.approx(3 * 0.25**2)


def test_composition_adds_curves_and_is_flat():
    nested = (EVENTS[0] + EVENTS[2]) + ComposedEvent([EVENTS[5], EVENTS[7] + EVENTS[1]])
    assert nested.events == (EVENTS[0], EVENTS[2], EVENTS[5], EVENTS[7], EVENTS[1])
    np.testing.assert_allclose(
        nested.rdp(ALPHA), sum(event.rdp(ALPHA) for event in nested.events), rtol=1e-14
    )
    assert float(nested.rdp(2.0)) == pytest.approx(float(nested.rdp(ALPHA)[1]))


def test_infinite_curve_stays_infinite_in_a_sum():
    composed = GaussianEvent(1.0) + SketchEvent("fast_mix", 2.0, 1)
    assert composed.rdp(2.0) == math.inf


def test_empty_composition():
    empty = ComposedEvent([])
    assert empty.pure_epsilon == 0.0
    assert empty.tail == 0.0
    np.testing.assert_array_equal(empty.rdp(ALPHA), 0.0)


@pytest.mark.parametrize("event", [*EVENTS, ComposedEvent(EVENTS), ComposedEvent([])], ids=repr)
def test_json_round_trip(event):
    text = json.dumps(event.to_dict())
    rebuilt = event_from_dict(json.loads(text))
    assert rebuilt == event
    assert type(rebuilt) is type(event)
    np.testing.assert_array_equal(rebuilt.rdp(ALPHA), event.rdp(ALPHA))


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(np.float32(2.0), np.float64(0.5), np.int64(3)),
        LaplaceEvent(np.int32(4), 1, np.uint8(2)),
        SketchEvent("fast_mix", np.float32(50.0), np.int64(7)),
        TailEvent(np.float32(0.25)),
    ],
    ids=lambda event: event.kind,
)
def test_numpy_numbers_become_plain_ones(event):
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event


def test_an_event_that_forgets_its_curve_is_not_free():
    class Forgotten(PrivacyEvent):
        pass

    assert RdpAccountant([Forgotten()]).get_epsilon(1e-6) == math.inf
    assert RdpAccountant([Forgotten()]).get_delta(1.0) == 1.0


def test_json_names_are_stable():
    assert GaussianEvent(2.0, 0.5, 3).to_dict() == {
        "kind": "gaussian",
        "sigma": 2.0,
        "sensitivity": 0.5,
        "count": 3,
    }
    assert SketchEvent("fast_mix", 50.0, 7).to_dict() == {
        "kind": "sketch",
        "bound": "fast_mix",
        "gamma": 50.0,
        "rows": 7,
    }
    assert TailEvent(0.1).to_dict() == {"kind": "tail", "probability": 0.1}
    assert LaplaceEvent(1.0).to_dict()["kind"] == "laplace"


def test_events_are_values():
    assert GaussianEvent(2.0) == GaussianEvent(2.0, 1.0, 1)
    assert hash(GaussianEvent(2.0)) == hash(GaussianEvent(2.0, 1.0, 1))
    assert GaussianEvent(2.0) != LaplaceEvent(2.0)


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (GaussianEvent(1.0), "sigma"),
        (LaplaceEvent(1.0), "scale"),
        (SketchEvent("fast_mix", 5.0, 1), "gamma"),
        (TailEvent(0.1), "probability"),
        (ComposedEvent([]), "events"),
    ],
)
def test_events_are_frozen(event, field):
    with pytest.raises(FrozenInstanceError):
        setattr(event, field, 1e9)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: GaussianEvent(0.0), ValueError, "sigma must be greater than 0; got sigma=0.0."),
        (
            lambda: GaussianEvent(1.0, -1.0),
            ValueError,
            "sensitivity must be at least 0; got sensitivity=-1.0.",
        ),
        (lambda: GaussianEvent(1.0, 1.0, 0), ValueError, "count must be at least 1; got count=0."),
        (
            lambda: GaussianEvent(1.0, 1.0, 1.5),
            TypeError,
            "count must be an integer; got count=1.5.",
        ),
        (lambda: LaplaceEvent(-1.0), ValueError, "scale must be greater than 0; got scale=-1.0."),
        (
            lambda: SketchEvent("magic", 5.0, 1),
            ValueError,
            "bound must be one of 'gauss_mix', 'fast_mix', 'fast_mix_sharp', 'fast_mix_unbounded'; "
            "got bound='magic'.",
        ),
        (
            lambda: SketchEvent("fast_mix", 1.0, 1),
            ValueError,
            "gamma must be greater than 1; got gamma=1.0.",
        ),
        (
            lambda: SketchEvent("fast_mix", 5.0, 0),
            ValueError,
            "rows must be at least 1; got rows=0.",
        ),
        (
            lambda: TailEvent(1.0),
            ValueError,
            "probability must be at least 0 and below 1; got probability=1.0.",
        ),
        (
            lambda: TailEvent(-1e-9),
            ValueError,
            "probability must be at least 0 and below 1; got probability=-1e-09.",
        ),
        (
            lambda: ComposedEvent([3]),
            TypeError,
            "events must hold PrivacyEvent objects; got events=3.",
        ),
        (
            lambda: event_from_dict({"kind": "gaussian", "sigma": -1.0}),
            ValueError,
            "sigma must be greater than 0; got sigma=-1.0.",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("data", "shown"), [({"kind": "magic"}, "'magic'"), ({"sigma": 1.0}, "None")]
)
def test_unknown_kinds(data, shown):
    with pytest.raises(
        ValueError, match=rf"^kind must be one of 'gaussian', .*; got kind={shown}\.$"
    ):
        event_from_dict(data)


def test_non_private_release_has_no_account():
    event = NonPrivateEvent()
    assert np.isposinf(event.rdp(ALPHA)).all()
    assert event.pure_epsilon == math.inf
    assert RdpAccountant([event, GaussianEvent(9.0)]).get_epsilon(0.5) == math.inf
    assert RdpAccountant([event]).get_delta(1e6) == 1.0


def test_every_event_is_a_privacy_event():
    assert all(isinstance(event, PrivacyEvent) for event in EVENTS)


def test_an_event_that_is_no_dataclass_is_not_taken_for_another():
    class Own(PrivacyEvent):
        def __init__(self, epsilon):
            object.__setattr__(self, "epsilon", epsilon)

        @property
        def pure_epsilon(self):
            return self.epsilon

    assert RdpAccountant([Own(0.1)]).get_epsilon(1e-6) == 0.1
    assert RdpAccountant([Own(9.0)]).get_epsilon(1e-6) == 9.0
    assert Own(0.1) != Own(9.0)
