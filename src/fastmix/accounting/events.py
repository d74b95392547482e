"""Privacy events: what was released, in terms an accountant can compose.

An event is a frozen value that knows three things about itself, whatever its kind:

``rdp(alpha)``
    a Rényi-DP curve that holds unless the rare event ``tail`` happens;
``pure_epsilon``
    its pure-DP epsilon, ``inf`` when it has none;
``tail``
    the probability of the rare event on which the curve does not hold.

Rare events are counted once each, by a union bound; see ``docs/proofs/rare_events.md``.
All events are for zero-out neighbours: one record is absent, its row and target (after the public
scaling) are zeros, and n is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_choice, check_integer, check_real, type_error, value_error
from fastmix.accounting import rdp as _rdp
from fastmix.accounting.objective import rdp_objective


@dataclass(frozen=True, eq=False)
class PrivacyEvent:
    """Base class of all events; composes with ``+``.

    Events are compared, and accounts remembered, by value: a subclass is a frozen dataclass. One
    that is not is equal to itself only.
    """

    kind: ClassVar[str] = ""

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        """Return the Rényi-DP curve at ``alpha``; ``inf`` unless a subclass knows better."""
        return np.full_like(np.asarray(alpha, dtype=np.float64), np.inf)

    @property
    def pure_epsilon(self) -> float:
        """Pure-DP epsilon, ``inf`` when there is none."""
        return math.inf

    @property
    def tail(self) -> float:
        """Probability of the rare event on which the curve does not hold."""
        return 0.0

    def _set(self, name: str, value: float | int) -> None:
        """Store a checked number as a plain one."""
        object.__setattr__(self, name, value)

    def __iter__(self) -> Iterator[PrivacyEvent]:
        yield self

    def __add__(self, other: PrivacyEvent) -> ComposedEvent:
        return ComposedEvent((*self, *other))

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain JSON types."""
        return {"kind": self.kind} | {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True)
class GaussianEvent(PrivacyEvent):
    """Gaussian noise added ``count`` times to something of bounded l2 sensitivity."""

    sigma: float
    sensitivity: float = 1.0
    count: int = 1
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        self._set("sigma", check_real("sigma", self.sigma, above=0.0, allow_inf=True))
        self._set("sensitivity", check_real("sensitivity", self.sensitivity, at_least=0.0))
        self._set("count", check_integer("count", self.count, at_least=1))

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        """Return ``count`` times the curve of one Gaussian release."""
        return self.count * _rdp.rdp_gaussian(alpha, self.sigma, self.sensitivity)

    @property
    def mu(self) -> float:
        """Ratio of sensitivity to noise of all ``count`` releases together."""
        return math.sqrt(self.count) * self.sensitivity / self.sigma

    @property
    def mu_squared(self) -> float:
        """Sum of squared sensitivity-to-noise ratios, which is what Gaussian releases add."""
        ratio = self.sensitivity / self.sigma
        return self.count * ratio * ratio  # infinite, not an error, for next to no noise


@dataclass(frozen=True)
class LaplaceEvent(PrivacyEvent):
    """Laplace noise added ``count`` times to something of bounded l1 sensitivity."""

    scale: float
    sensitivity: float = 1.0
    count: int = 1
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        self._set("scale", check_real("scale", self.scale, above=0.0))
        self._set("sensitivity", check_real("sensitivity", self.sensitivity, at_least=0.0))
        self._set("count", check_integer("count", self.count, at_least=1))

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        """Return ``count`` times the curve of one Laplace release."""
        return self.count * _rdp.rdp_laplace(alpha, self.scale, self.sensitivity)

    @property
    def pure_epsilon(self) -> float:
        """Pure-DP epsilon of all ``count`` releases."""
        return self.count * self.sensitivity / self.scale


@dataclass(frozen=True)
class SketchEvent(PrivacyEvent):
    """Rows of a Gaussian sketch, each with the curve of the lemma named by ``bound``."""

    bound: str
    gamma: float
    rows: int
    kind: ClassVar[str] = "sketch"
    BOUNDS: ClassVar[dict[str, Any]] = {
        "gauss_mix": _rdp.rdp_gauss_mix,
        "fast_mix": _rdp.rdp_fast_mix,
        "fast_mix_sharp": _rdp.rdp_fast_mix_sharp,
        "fast_mix_unbounded": _rdp.rdp_fast_mix_unbounded,
    }

    def __post_init__(self) -> None:
        check_choice("bound", self.bound, tuple(self.BOUNDS))
        self._set("gamma", check_real("gamma", self.gamma, above=1.0))
        self._set("rows", check_integer("rows", self.rows, at_least=1))

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        """Return ``rows`` times the curve of one row."""
        return self.rows * self.BOUNDS[self.bound](alpha, self.gamma)


@dataclass(frozen=True)
class ObjectiveEvent(PrivacyEvent):
    """The minimiser of a perturbed objective; not a Gaussian release (docs/proofs/objective.md).

    Parameters
    ----------
    mu : float
        Ratio of the slope bound of the loss to the noise of the objective.
    eps_c : float
        Epsilon that the curvature of the loss is calibrated to.
    one_sided : bool, default False
        Whether the slope of the loss has one sign for each record.
    """

    mu: float
    eps_c: float
    one_sided: bool = False

    kind: ClassVar[str] = "objective"

    def __post_init__(self) -> None:
        self._set("mu", check_real("mu", self.mu, above=0.0))
        self._set("eps_c", check_real("eps_c", self.eps_c, above=0.0))
        if not isinstance(self.one_sided, bool):
            raise type_error("one_sided", "be a bool", self.one_sided)

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        """Return the curve of the bound on the privacy loss."""
        return rdp_objective(alpha, self.mu, self.eps_c, one_sided=self.one_sided)


@dataclass(frozen=True)
class TailEvent(PrivacyEvent):
    """A rare event that adds its probability to delta and nothing to epsilon."""

    probability: float
    kind: ClassVar[str] = "tail"
    pure_epsilon = 0.0  # outside the rare event nothing is released

    def __post_init__(self) -> None:
        self._set("probability", check_real("probability", self.probability))
        if not 0.0 <= self.probability < 1.0:
            raise value_error("probability", "be at least 0 and below 1", self.probability)

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        """Return 0: outside the rare event nothing is released."""
        return np.zeros_like(np.asarray(alpha, dtype=np.float64))

    @property
    def tail(self) -> float:
        """Probability of the rare event."""
        return self.probability


@dataclass(frozen=True)
class NonPrivateEvent(PrivacyEvent):
    """A release without noise: no finite budget covers it."""

    kind: ClassVar[str] = "non_private"


@dataclass(frozen=True)
class ComposedEvent(PrivacyEvent):
    """Several events, adaptively composed."""

    events: tuple[PrivacyEvent, ...]
    kind: ClassVar[str] = "composed"

    def __init__(self, events: Iterable[PrivacyEvent]) -> None:
        flat: list[PrivacyEvent] = []
        for event in events:
            if not isinstance(event, PrivacyEvent):
                raise type_error("events", "hold PrivacyEvent objects", event)
            flat.extend(event)
        object.__setattr__(self, "events", tuple(flat))

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        """Return the sum of the curves."""
        alpha = np.asarray(alpha, dtype=np.float64)
        gaussian = [event.mu_squared for event in self.events if isinstance(event, GaussianEvent)]
        others = (event for event in self.events if not isinstance(event, GaussianEvent))
        total = sum((event.rdp(alpha) for event in others), np.zeros_like(alpha))
        if gaussian:  # they are one release with all their ratios together
            total = total + _rdp.rdp_gaussian(alpha, 1.0, math.sqrt(math.fsum(gaussian)))
        return total

    @property
    def pure_epsilon(self) -> float:
        """Sum of the pure-DP epsilons."""
        return math.fsum(event.pure_epsilon for event in self.events)

    @property
    def tail(self) -> float:
        """Union bound over the rare events."""
        return math.fsum(event.tail for event in self.events)

    def __iter__(self) -> Iterator[PrivacyEvent]:
        yield from self.events

    def to_dict(self) -> dict[str, Any]:
        """Return the events as plain JSON types."""
        return {"kind": self.kind, "events": [event.to_dict() for event in self.events]}


@dataclass(frozen=True)
class ChoiceEvent(PrivacyEvent):
    """One of several options, chosen from what was released before."""

    options: tuple[ComposedEvent, ...]
    kind: ClassVar[str] = "choice"

    def __init__(self, options: Iterable[PrivacyEvent]) -> None:
        composed = tuple(ComposedEvent([option]) for option in options)
        if not composed:
            raise value_error("options", "hold at least one event", composed)
        object.__setattr__(self, "options", composed)

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        """Return the largest of the curves at each order."""
        return np.max([option.rdp(alpha) for option in self.options], axis=0)

    @property
    def pure_epsilon(self) -> float:
        """The largest pure-DP epsilon."""
        return max(option.pure_epsilon for option in self.options)

    @property
    def tail(self) -> float:
        """The largest probability of the options' rare events."""
        return max(option.tail for option in self.options)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain JSON types."""
        return {"kind": self.kind, "options": [option.to_dict() for option in self.options]}


_KINDS: dict[str, type[PrivacyEvent]] = {
    cls.kind: cls
    for cls in (
        GaussianEvent,
        LaplaceEvent,
        NonPrivateEvent,
        ObjectiveEvent,
        SketchEvent,
        TailEvent,
    )
}


def event_from_dict(data: dict[str, Any]) -> PrivacyEvent:
    """Rebuild an event from what `PrivacyEvent.to_dict` returned."""
    parameters = dict(data)
    nested = (ChoiceEvent.kind, ComposedEvent.kind)
    kind = check_choice("kind", parameters.pop("kind", None), (*_KINDS, *nested))
    if kind == ComposedEvent.kind:
        return ComposedEvent(event_from_dict(event) for event in parameters["events"])
    if kind == ChoiceEvent.kind:
        return ChoiceEvent(event_from_dict(event) for event in parameters["options"])
    return _KINDS[kind](**parameters)
