"""What is audited: a claim, two neighbouring data sets, a release, and how to score it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastmix._types import FloatArray


class Claim(NamedTuple):
    """The guarantee that is put to the test."""

    epsilon: float
    delta: float


class Data(NamedTuple):
    """A data set inside its public bounds: rows of norm at most 1, targets in [-1, 1]."""

    X: FloatArray
    y: FloatArray

    def stretched(self) -> Data:
        """Return the records thrice as long as allowed; a mechanism that clips undoes this."""
        return Data(3.0 * self.X, 3.0 * self.y)


class Pair(NamedTuple):
    """Two neighbouring data sets: in the second one record is zeros."""

    description: str
    present: Data
    absent: Data


@dataclass(frozen=True)
class Case:
    """One line of an audit.

    Parameters
    ----------
    name : str
        What is audited.
    claim : Claim
        Its guarantee, from the events that it charges.
    pair : Pair
        Neighbours that are hard to hide from each other.
    draw : callable
        ``draw(data, trials, rng)`` returns that many independent releases, one per row.
    score : callable, optional
        Log-likelihood ratio of releases, present over absent; without it one is learned.
    trials : int
        Releases on each data set in a full audit.
    quick : int
        Releases on each data set in a quick one.
    sealed : callable, optional
        Tells whether nothing leaves but what is scored; if it does, the claim is refuted.
    account : callable, optional
        Epsilon of the same releases, composed at once, at any delta.
    limit : callable, optional
        Epsilon at any delta that the releases on this pair cannot exceed, where it is known to be
        less than the account.
    """

    name: str
    claim: Claim
    pair: Pair
    draw: Callable[[Data, int, np.random.Generator], FloatArray]
    score: Callable[[FloatArray], FloatArray] | None = None
    trials: int = 20_000
    quick: int = 2_000
    sealed: Callable[[np.random.Generator], bool] | None = None
    account: Callable[[float], float] | None = None
    limit: Callable[[float], float] | None = None

    def attainable(self, claim: Claim) -> float:
        """Return the largest epsilon that any test on this pair could show: at most the claim."""
        known = [each(claim.delta) for each in (self.account, self.limit) if each is not None]
        return min(claim.epsilon, *known) if known and claim.delta > 0.0 else claim.epsilon


def one_by_one(prepare: Callable[[Data], Callable[[np.random.Generator], Any]]) -> Any:
    """Return the ``draw`` of a case of which ``prepare(data)(rng)`` gives one release."""

    def draw(data: Data, trials: int, rng: np.random.Generator) -> FloatArray:
        release = prepare(data)
        return np.array([release(rng) for _ in range(trials)], dtype=np.float64)

    return draw
