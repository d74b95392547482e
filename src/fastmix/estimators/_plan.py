"""What passes between an estimator and its method: target, plan, draws and solution."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastmix.accounting import (
    ChoiceEvent,
    ComposedEvent,
    NonPrivateEvent,
    PrivacyEvent,
    PrivacySpent,
)
from fastmix.estimators.inference import Trace

__all__ = ["Plan", "Solution", "Streams", "Target"]

FloatArray = npt.NDArray[np.float64]


class Streams(NamedTuple):
    """Where a fit draws from: secret noise of some kind, and public choices such as a sketch."""

    secret: np.random.Generator
    public: np.random.Generator
    noise: str = "float"


class Target(NamedTuple):
    """The guarantee that is asked for, and the utility failure probability."""

    epsilon: float
    delta: float
    varrho: float


@dataclass(frozen=True)
class Plan:
    """What a fit will do, from public quantities only: its account, sizes and noise levels.

    ``extra`` are events that are charged and belong to no single release.
    """

    spent: PrivacySpent
    parameters: dict[str, Any]
    extra: tuple[PrivacyEvent, ...] = ()

    @property
    def is_private(self) -> bool:
        """Whether the method adds noise at all."""
        return not any(isinstance(event, NonPrivateEvent) for event in self.spent.events)

    def covers(self, event: PrivacyEvent) -> bool:
        """Whether releases are those that were planned, with one option of each choice."""
        options = [
            each.options if isinstance(each, ChoiceEvent) else (each,) for each in self.events
        ]
        drawn = Counter((*event, *self.extra))
        return drawn in [Counter(ComposedEvent(plan)) for plan in product(*options)]

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """The events that are charged."""
        return self.spent.events

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]


@dataclass(frozen=True)
class Solution:
    """What a method gives back: private coefficients and the events of its releases."""

    theta: FloatArray
    event: PrivacyEvent
    gamma: float | None = None
    eta: float | None = None
    gradient_noise: float | None = None
    trace: Trace | None = None
    residuals: FloatArray | None = None
