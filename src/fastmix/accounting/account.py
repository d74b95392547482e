"""Composition of events into (epsilon, delta), and the account of a fit."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_integer, check_probability, check_real, value_error
from fastmix.accounting.conversion import rdp_to_delta, rdp_to_epsilon
from fastmix.accounting.events import (
    ComposedEvent,
    GaussianEvent,
    ObjectiveEvent,
    PrivacyEvent,
    event_from_dict,
)
from fastmix.accounting.exact import exact_delta, exact_epsilon, known_pair
from fastmix.accounting.gaussian import least_epsilon, profile
from fastmix.accounting.perturbation import objective_delta

#: Largest epsilon that the search for an exact account tries if the Rényi curve is infinite.
_LARGEST_EPSILON = 1e9

#: Orders at which a Rényi curve is tabulated for other accountants.
ORDERS: tuple[float, ...] = (
    *(round(1.0 + x / 10.0, 1) for x in range(1, 100)),
    *(float(x) for x in range(11, 64)),
    *(float(2**x) for x in range(6, 15)),
)


class RdpAccountant:
    """Compose privacy events, and convert their sum once.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Paper: Proposition 1 with the rare-event lemma of Appendix C.3.
    Deviation: the least of several valid bounds is returned. Events with a pure epsilon are added
    outside the conversion (their epsilon) or inside it (their curve); the rest is converted exactly
    where its worst pair is known (all Gaussian, one objective, or one dense Gaussian sketch:
    docs/proofs/exact_account.md) and through RDP otherwise. Tails are subtracted from delta once
    (docs/proofs/rare_events.md).
    """

    def __init__(self, events: Iterable[PrivacyEvent] = ()) -> None:
        self.events = ComposedEvent(events).events

    def compose(self, event: PrivacyEvent, count: int = 1) -> Self:
        """Add an event ``count`` times and return the accountant itself."""
        self.events += ComposedEvent([event] * check_integer("count", count, at_least=1)).events
        return self

    def rdp(self, orders: npt.ArrayLike) -> Any:
        """Return the composed Rényi-DP curve, which holds outside the rare events."""
        return ComposedEvent(self.events).rdp(orders)

    def get_epsilon(self, target_delta: float) -> float:
        """Return an epsilon for which (epsilon, ``target_delta``)-DP holds; ``inf`` if none."""
        return joint_epsilon(self.events, check_probability("target_delta", target_delta))

    def get_delta(self, target_epsilon: float) -> float:
        """Return a delta for which (``target_epsilon``, delta)-DP holds; at most 1."""
        epsilon = check_real("target_epsilon", target_epsilon, at_least=0.0)
        return joint_delta(self.events, epsilon)


@lru_cache(maxsize=4096)
def joint_epsilon(events: tuple[PrivacyEvent, ...], delta: float) -> float:
    """Return the epsilon of composed events at a delta, as `RdpAccountant` computes it."""
    whole = ComposedEvent(events)
    left = delta - whole.tail
    if whole.pure_epsilon == 0.0 and left >= 0.0:
        return 0.0
    if left <= 0.0:
        return whole.pure_epsilon if whole.tail == 0.0 else math.inf
    return min(pure + _epsilon(rest, left) for pure, rest in _splits(events))


@lru_cache(maxsize=4096)
def joint_delta(events: tuple[PrivacyEvent, ...], epsilon: float) -> float:
    """Return the delta of composed events at an epsilon, as `RdpAccountant` computes it."""
    deltas = [_delta(rest, epsilon - pure) for pure, rest in _splits(events) if epsilon >= pure]
    return min(1.0, min([1.0, *deltas]) + ComposedEvent(events).tail)


def _splits(events: tuple[PrivacyEvent, ...]) -> list[tuple[float, tuple[PrivacyEvent, ...]]]:
    """Return the ways to add up: pure events outside the conversion, or all inside it."""
    outside = [event for event in events if math.isfinite(event.pure_epsilon)]
    inside = tuple(event for event in events if not math.isfinite(event.pure_epsilon))
    pure = math.fsum(event.pure_epsilon for event in outside)
    return [(pure, inside), (0.0, events)] if pure else [(0.0, inside)]


def _profile(events: tuple[PrivacyEvent, ...]) -> Callable[[float], float] | None:
    """Return delta as a function of epsilon for Gaussian releases beside at most one objective."""
    ratios = [event.mu for event in events if isinstance(event, GaussianEvent)]
    objectives = [event for event in events if isinstance(event, ObjectiveEvent)]
    if len(objectives) > 1 or len(ratios) + len(objectives) < len(events):
        return None
    mu = math.hypot(*ratios)
    if not objectives:
        return lambda epsilon: profile(mu, epsilon)
    one = objectives[0]
    return lambda epsilon: objective_delta(
        epsilon,
        one.mu,
        one.eps_c,
        mu,
        one_sided=one.one_sided,
        rows_per_person=one.rows_per_person,
    )


def _epsilon(events: tuple[PrivacyEvent, ...], delta: float) -> float:
    if (profile := _profile(events)) is not None:
        return least_epsilon(lambda epsilon: profile(epsilon) - delta)
    by_renyi = rdp_to_epsilon(ComposedEvent(events).rdp, delta)
    if (pair := known_pair(events)) is None:
        return by_renyi
    return min(by_renyi, exact_epsilon(pair, delta, min(by_renyi, _LARGEST_EPSILON)))


def _delta(events: tuple[PrivacyEvent, ...], epsilon: float) -> float:
    if (profile := _profile(events)) is not None:
        return profile(epsilon)
    pair = known_pair(events)
    delta = 1.0 if pair is None else exact_delta(pair, epsilon)
    # Where it is known the exact account is the smaller one, down to what it leaves out.
    if 1e-20 < delta < 1.0:
        return delta
    return min(delta, rdp_to_delta(ComposedEvent(events).rdp, epsilon))


class RenyiCurve(NamedTuple):
    """A tabulated curve, for ``compute_epsilon(orders, rdp, delta - tail)`` of dp_accounting."""

    orders: list[float]
    rdp: list[float]
    tail: float


@dataclass(frozen=True)
class Part:
    """Events that are composed in RDP and converted together at their share of delta."""

    name: str
    events: tuple[PrivacyEvent, ...]
    delta: float

    def __init__(self, name: str, events: Iterable[PrivacyEvent], delta: float) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "events", ComposedEvent(events).events)
        object.__setattr__(self, "delta", check_real("delta", delta, at_least=0.0))

    @property
    def epsilon(self) -> float:
        """Epsilon of the part at its delta."""
        if self.delta > 0.0:
            check_probability("delta", self.delta)
        return joint_epsilon(self.events, self.delta)

    def __repr__(self) -> str:
        return f"Part(name={self.name!r}, events={len(self.events)}, delta={self.delta:.3g})"


@dataclass(frozen=True)
class PrivacySpent:
    """The account of a release: (epsilon, delta) as the sum over its parts.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public). One part is a joint account; several are the paper's split budget.

    Paper: Appendix C.4 and Appendix E add up parts converted at shares of delta.
    Deviation: the rare event is counted once (docs/proofs/rare_events.md).
    """

    parts: tuple[Part, ...]

    neighboring_relation = "zero-out"

    def __init__(self, parts: Iterable[Part]) -> None:
        object.__setattr__(self, "parts", tuple(parts))

    def __repr__(self) -> str:
        return f"PrivacySpent(parts={list(self.parts)!r})"

    @property
    def epsilon(self) -> float:
        """Sum of the parts' epsilons."""
        return math.fsum(part.epsilon for part in self.parts)

    @property
    def delta(self) -> float:
        """Sum of the parts' deltas."""
        return math.fsum(part.delta for part in self.parts)

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """All events, in the order of the parts."""
        return tuple(event for part in self.parts for event in part.events)

    @property
    def tail(self) -> float:
        """Probability of the rare events on which the Rényi curve does not hold."""
        return ComposedEvent(self.events).tail

    def rdp(self, orders: npt.ArrayLike) -> Any:
        """Return the Rényi-DP curve of all events together."""
        return ComposedEvent(self.events).rdp(orders)

    def joint_epsilon(self, delta: float) -> float:
        """Return the epsilon of all events composed and converted once, at ``delta``."""
        return joint_epsilon(self.events, check_probability("delta", delta))

    def to_dp_accounting(self, orders: npt.ArrayLike = ORDERS) -> RenyiCurve:
        """Return the curve, at given orders, as ``dp_accounting.rdp.compute_epsilon`` takes it."""
        at = np.atleast_1d(np.asarray(orders, dtype=np.float64))
        if not (np.isfinite(at) & (at > 1.0)).all():
            raise value_error("orders", "be finite and above 1", at)
        return RenyiCurve(at.tolist(), np.atleast_1d(self.rdp(at)).tolist(), self.tail)

    def to_dict(self) -> dict[str, Any]:
        """Return the account as plain JSON types."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighboring_relation": self.neighboring_relation,
            "parts": [
                {
                    "name": part.name,
                    "epsilon": part.epsilon,
                    "delta": part.delta,
                    "events": [event.to_dict() for event in part.events],
                }
                for part in self.parts
            ],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild an account from its events; epsilon is recomputed, not read."""
        return cls(
            Part(part["name"], map(event_from_dict, part["events"]), part["delta"])
            for part in data["parts"]
        )
