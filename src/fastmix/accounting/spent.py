"""What a fit has spent: parts of the budget, each converted on its own, added up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_real, value_error
from fastmix.accounting.accountant import RdpAccountant
from fastmix.accounting.events import ComposedEvent, PrivacyEvent, event_from_dict

__all__ = ["ORDERS", "Part", "PrivacySpent", "RenyiCurve"]

#: Orders at which a Rényi curve is tabulated for other accountants.
ORDERS: tuple[float, ...] = (
    *(round(1.0 + x / 10.0, 1) for x in range(1, 100)),
    *(float(x) for x in range(11, 64)),
    *(float(2**x) for x in range(6, 15)),
)


class RenyiCurve(NamedTuple):
    """A tabulated curve: ``compute_epsilon(orders, rdp, delta - tail)`` in dp_accounting."""

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
        if self.delta == 0.0:
            event = ComposedEvent(self.events)
            return event.pure_epsilon if event.tail == 0.0 else math.inf
        return RdpAccountant(self.events).get_epsilon(self.delta)

    def __repr__(self) -> str:
        return f"Part(name={self.name!r}, events={len(self.events)}, delta={self.delta:.3g})"


@dataclass(frozen=True)
class PrivacySpent:
    r"""The account of a release: (epsilon, delta) as the sum over its parts.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Parameters
    ----------
    parts : iterable of Part
        Groups of events. One part is a joint account; several are the paper's split budget.

    Notes
    -----
    Paper: Appendix C.4 and Appendix E add up parts converted at shares of delta.
    Deviation: the rare event is counted once (docs/proofs/rare_events.md).
    Sensitive inputs: none.
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
        return ComposedEvent(self.events).rdp(np.asarray(orders, dtype=np.float64))

    def joint_epsilon(self, delta: float) -> float:
        """Return the epsilon of all events composed and converted once, at ``delta``."""
        return RdpAccountant(self.events).get_epsilon(delta)

    def to_dp_accounting(self, orders: npt.ArrayLike = ORDERS) -> RenyiCurve:
        """Return the curve as ``dp_accounting.rdp.compute_epsilon`` takes it.

        Parameters
        ----------
        orders : array_like
            Rényi orders; a wide default grid.

        Returns
        -------
        RenyiCurve
            ``(orders, rdp, tail)``; the rare events' ``tail`` comes off the target delta.
        """
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
    def from_dict(cls, data: dict[str, Any]) -> PrivacySpent:
        """Rebuild an account from its events; epsilon is recomputed, not read."""
        return cls(
            Part(part["name"], map(event_from_dict, part["events"]), part["delta"])
            for part in data["parts"]
        )
