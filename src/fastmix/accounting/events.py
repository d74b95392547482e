"""Privacy events: descriptions of releases that an accountant can compose.

Rare events are counted once each, by a union bound; see ``docs/proofs/rare_events.md``.
All events are for zero-out neighbours: one record is absent, its row and target (after the public
scaling) are zeros, and n is public.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_choice, check_integer, check_real, type_error, value_error
from fastmix.accounting import rdp as _rdp
from fastmix.accounting.perturbation import rdp_objective

#: Takes the name and the value of a parameter, and returns it as a plain number or refuses it.
Check: TypeAlias = Callable[[str, Any], Any]

_AT_LEAST_0: Check = partial(check_real, at_least=0.0)
_ABOVE_0: Check = partial(check_real, above=0.0)
_COUNT: Check = partial(check_integer, at_least=1)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise type_error(name, "be a bool", value)
    return value


def _probability(name: str, value: Any) -> float:
    value = check_real(name, value)
    if not 0.0 <= value < 1.0:
        raise value_error(name, "be at least 0 and below 1", value)
    return float(value)


@dataclass(frozen=True, eq=False)
class PrivacyEvent:
    """Base class of all events: frozen dataclasses that are compared by value and add up.

    An instance of a subclass that is not a frozen dataclass equals only itself.
    """

    kind: ClassVar[str] = ""
    #: The check of each parameter.
    _checks: ClassVar[dict[str, Check]] = {}

    def __post_init__(self) -> None:
        for name, check in self._checks.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        """Return the Rényi-DP curve, which holds outside the rare event; ``inf`` if unknown."""
        return np.full_like(np.asarray(alpha, dtype=np.float64), np.inf)

    @property
    def pure_epsilon(self) -> float:
        """Pure-DP epsilon, ``inf`` when there is none."""
        return math.inf

    @property
    def tail(self) -> float:
        """Probability of the rare event on which the curve does not hold."""
        return 0.0

    def __iter__(self) -> Iterator["PrivacyEvent"]:
        yield self

    def __add__(self, other: "PrivacyEvent") -> "ComposedEvent":
        return ComposedEvent((*self, *other))

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain JSON types."""
        values = {each.name: _plain(getattr(self, each.name)) for each in fields(self)}
        return {"kind": self.kind} | values


def _plain(value: Any) -> Any:
    """Return events, and those inside a tuple, as plain JSON types."""
    if isinstance(value, PrivacyEvent):
        return value.to_dict()
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class GaussianEvent(PrivacyEvent):
    """Gaussian noise added ``count`` times to something of bounded l2 sensitivity."""

    sigma: float
    sensitivity: float = 1.0
    count: int = 1
    kind = "gaussian"
    _checks: ClassVar = {
        "sigma": partial(check_real, above=0.0, allow_inf=True),
        "sensitivity": _AT_LEAST_0,
        "count": _COUNT,
    }

    def rdp(self, alpha: npt.ArrayLike) -> Any:
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
    kind = "laplace"
    _checks: ClassVar = {"scale": _ABOVE_0, "sensitivity": _AT_LEAST_0, "count": _COUNT}

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        return self.count * _rdp.rdp_laplace(alpha, self.scale, self.sensitivity)

    @property
    def pure_epsilon(self) -> float:
        return self.count * self.sensitivity / self.scale


@dataclass(frozen=True)
class SketchEvent(PrivacyEvent):
    """Rows of a Gaussian sketch, each with the curve of the lemma named by ``bound``.

    For ``fast_mix_sharp`` and ``fast_mix_unbounded`` all rows are of one fast sketch; other fast
    sketches have their own events (docs/proofs/fast_account.md).
    """

    bound: str
    gamma: float
    rows: int
    kind = "sketch"
    BOUNDS: ClassVar[dict[str, Any]] = {
        "gauss_mix": _rdp.rdp_gauss_mix,
        "fast_mix": _rdp.rdp_fast_mix,
        "fast_mix_sharp": _rdp.rdp_fast_mix_sharp,
        "fast_mix_unbounded": _rdp.rdp_fast_mix_unbounded,
    }
    _checks: ClassVar = {
        "bound": partial(check_choice, choices=tuple(BOUNDS)),
        "gamma": partial(check_real, above=1.0),
        "rows": _COUNT,
    }

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        return self.rows * self.BOUNDS[self.bound](alpha, self.gamma)


@dataclass(frozen=True)
class ObjectiveEvent(PrivacyEvent):
    """The minimiser of a perturbed objective; not a Gaussian release (docs/proofs/objective.md).

    ``mu`` is the ratio of the slope bound of the loss to the noise of the objective, ``eps_c`` the
    epsilon that the curvature of the loss is calibrated to; ``one_sided`` says that the slope of
    the loss has one sign for each record. With ``rows_per_person`` of k the neighbours differ by a
    person of up to k rows (docs/proofs/people.md).
    """

    mu: float
    eps_c: float
    one_sided: bool = False
    rows_per_person: int = 1
    kind = "objective"
    _checks: ClassVar = {
        "mu": _ABOVE_0,
        "eps_c": _ABOVE_0,
        "one_sided": _flag,
        "rows_per_person": _COUNT,
    }

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        form: Any = {"one_sided": self.one_sided, "rows_per_person": self.rows_per_person}
        return rdp_objective(alpha, self.mu, self.eps_c, **form)

    def to_dict(self) -> dict[str, Any]:
        # A certificate that protects single rows does not mention persons.
        data = super().to_dict()
        if self.rows_per_person == 1:
            del data["rows_per_person"]
        return data


@dataclass(frozen=True)
class TailEvent(PrivacyEvent):
    """A rare event that adds its probability to delta and nothing to epsilon."""

    probability: float
    kind = "tail"
    _checks: ClassVar = {"probability": _probability}
    pure_epsilon = 0.0  # outside the rare event there is no release

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        return np.zeros_like(np.asarray(alpha, dtype=np.float64))

    @property
    def tail(self) -> float:
        return self.probability


@dataclass(frozen=True)
class NonPrivateEvent(PrivacyEvent):
    """A release without noise: no finite budget covers it."""

    kind = "non_private"


@dataclass(frozen=True)
class ComposedEvent(PrivacyEvent):
    """Several events, adaptively composed."""

    events: tuple[PrivacyEvent, ...]
    kind = "composed"

    def __init__(self, events: Iterable[PrivacyEvent]) -> None:
        flat: list[PrivacyEvent] = []
        for event in events:
            if not isinstance(event, PrivacyEvent):
                raise type_error("events", "hold PrivacyEvent objects", event)
            flat.extend(event)
        object.__setattr__(self, "events", tuple(flat))

    def rdp(self, alpha: npt.ArrayLike) -> Any:
        alpha = np.asarray(alpha, dtype=np.float64)
        gaussian = [event.mu_squared for event in self.events if isinstance(event, GaussianEvent)]
        others = Counter(event for event in self.events if not isinstance(event, GaussianEvent))
        curves = (times * event.rdp(alpha) for event, times in others.items())
        total = sum(curves, np.zeros_like(alpha))
        if gaussian:  # they compose to one Gaussian release
            total = total + _rdp.rdp_gaussian(alpha, 1.0, math.sqrt(math.fsum(gaussian)))
        return total

    @property
    def pure_epsilon(self) -> float:
        return math.fsum(event.pure_epsilon for event in self.events)

    @property
    def tail(self) -> float:
        return math.fsum(event.tail for event in self.events)

    def __iter__(self) -> Iterator[PrivacyEvent]:
        yield from self.events


_KINDS: dict[str, Any] = {
    each.kind: each
    for each in (
        *(GaussianEvent, LaplaceEvent, SketchEvent, ObjectiveEvent, TailEvent, NonPrivateEvent),
        ComposedEvent,
    )
}


def event_from_dict(data: dict[str, Any]) -> PrivacyEvent:
    """Rebuild an event from what `PrivacyEvent.to_dict` returned."""
    parameters = {
        name: map(event_from_dict, value) if isinstance(value, list) else value
        for name, value in data.items()
    }
    kind = check_choice("kind", parameters.pop("kind", None), tuple(_KINDS))
    event: PrivacyEvent = _KINDS[kind](**parameters)
    return event
