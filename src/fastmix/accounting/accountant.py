"""Composition of events into (epsilon, delta), in RDP."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_integer, check_probability, check_real
from fastmix.accounting.conversion import rdp_to_delta, rdp_to_epsilon
from fastmix.accounting.events import ComposedEvent, GaussianEvent, PrivacyEvent
from fastmix.accounting.exact import exact_delta, exact_epsilon, mixture
from fastmix.accounting.gaussian import gaussian_delta, gaussian_epsilon

__all__ = ["RdpAccountant"]


#: Where the search for an exact epsilon ends if the Rényi curve has none.
_LARGEST_EPSILON = 1e9


class RdpAccountant:
    r"""Compose privacy events and convert the whole once.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Parameters
    ----------
    events : iterable of PrivacyEvent, optional
        Events to start with.

    Notes
    -----
    Paper: Proposition 1 with the rare-event lemma of Appendix C.3.
    Deviation: several valid bounds are formed and the least is returned. Events with a pure
    epsilon may be added outside the conversion (their epsilon) or inside it (their curve);
    what is left is converted exactly when its worst pair is known (all Gaussian, or with one
    dense Gaussian sketch: docs/proofs/exact_account.md) and through RDP otherwise. Tails
    are subtracted from delta once (docs/proofs/rare_events.md).
    Sensitive inputs: none.
    """

    def __init__(self, events: Iterable[PrivacyEvent] = ()) -> None:
        self._events: tuple[PrivacyEvent, ...] = ComposedEvent(events).events

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """The events composed so far."""
        return self._events

    def compose(self, event: PrivacyEvent, count: int = 1) -> RdpAccountant:
        """Add an event ``count`` times and return the accountant itself."""
        count = check_integer("count", count, at_least=1)
        self._events += ComposedEvent([event] * count).events
        return self

    def rdp(self, orders: npt.ArrayLike) -> Any:
        """Return the composed Rényi-DP curve, which holds outside the rare events."""
        return ComposedEvent(self._events).rdp(np.asarray(orders, dtype=np.float64))

    def get_epsilon(self, target_delta: float) -> float:
        """Return an epsilon for which (epsilon, ``target_delta``)-DP holds; ``inf`` if none."""
        delta = check_probability("target_delta", target_delta) - self._tail
        if math.fsum(event.pure_epsilon for event in self._events) == 0.0 and delta >= 0.0:
            return 0.0
        if delta <= 0.0:
            return self._pure if self._tail == 0.0 else math.inf
        return min(pure + _epsilon(rest, delta) for pure, rest in self._splits())

    def get_delta(self, target_epsilon: float) -> float:
        """Return a delta for which (``target_epsilon``, delta)-DP holds; at most 1."""
        target = check_real("target_epsilon", target_epsilon, at_least=0.0)
        best = 1.0
        for pure, rest in self._splits():
            if target >= pure:
                best = min(best, _delta(rest, target - pure))
        return min(1.0, best + self._tail)

    @property
    def _tail(self) -> float:
        return ComposedEvent(self._events).tail

    @property
    def _pure(self) -> float:
        return ComposedEvent(self._events).pure_epsilon

    def _splits(self) -> list[tuple[float, tuple[PrivacyEvent, ...]]]:
        """Ways to add up: pure events outside the conversion, or everything inside it."""
        outside = [event for event in self._events if math.isfinite(event.pure_epsilon)]
        inside = tuple(event for event in self._events if not math.isfinite(event.pure_epsilon))
        return [
            (math.fsum(event.pure_epsilon for event in outside), inside),
            (0.0, self._events),
        ]


def _gaussian_mu(events: tuple[PrivacyEvent, ...]) -> float | None:
    """Return the ratio of sensitivity to noise of an all-Gaussian composition."""
    squares = [event.mu_squared for event in events if isinstance(event, GaussianEvent)]
    return math.sqrt(math.fsum(squares)) if len(squares) == len(events) else None


def _epsilon(events: tuple[PrivacyEvent, ...], delta: float) -> float:
    mu = _gaussian_mu(events)
    if mu is not None:
        return gaussian_epsilon(1.0, delta, mu)
    by_renyi = rdp_to_epsilon(ComposedEvent(events).rdp, delta)
    exact = mixture(events)
    if exact is None:
        return by_renyi
    return min(by_renyi, exact_epsilon(exact, delta, min(by_renyi, _LARGEST_EPSILON)))


def _delta(events: tuple[PrivacyEvent, ...], epsilon: float) -> float:
    mu = _gaussian_mu(events)
    if mu is not None:
        return gaussian_delta(1.0, epsilon, mu)
    by_renyi = rdp_to_delta(ComposedEvent(events).rdp, epsilon)
    exact = mixture(events)
    return by_renyi if exact is None else min(by_renyi, exact_delta(exact, epsilon))
