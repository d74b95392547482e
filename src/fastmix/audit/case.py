"""Audit cases: a claim, a release, and the two neighbours that are hardest to hide."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fastmix._types import BoolArray, FloatArray

#: How many times longer than allowed the records of an audit are.
STRETCH = 3.0


class Claim(NamedTuple):
    """The guarantee that is put to the test."""

    epsilon: float
    delta: float


#: Rows of a person that count at most.
PERSON_ROWS = 4


class Data(NamedTuple):
    """A data set inside its public bounds: rows of norm at most 1, targets in [-1, 1].

    An absent record consists of zeros. Rows may belong to persons (``groups``), all of whose rows
    count, or have sample ``weights`` in [0, 1].
    """

    X: FloatArray
    y: FloatArray
    groups: FloatArray | None = None
    weights: FloatArray | None = None

    @property
    def present(self) -> BoolArray:
        """Mask of the records that are present."""
        return np.asarray(np.linalg.norm(self.X, axis=1) > 0.0)

    def stretched(self) -> tuple[FloatArray, FloatArray]:
        """Return the records thrice as long as allowed; a mechanism that clips undoes this."""
        return STRETCH * self.X, STRETCH * self.y

    def counting(self) -> dict[str, FloatArray | int]:
        """Return the ids or weights for a fit; the heaviest rows are four times too heavy."""
        given: dict[str, FloatArray | int] = {}
        if self.groups is not None:
            given |= {"groups": self.groups, "max_rows_per_group": PERSON_ROWS}
        if self.weights is not None:
            given["sample_weight"] = np.where(self.weights == 1.0, 4.0, self.weights)
        return given


class Pair(NamedTuple):
    """Two neighbouring data sets: in the second one record is zeros."""

    description: str
    present: Data
    absent: Data


@dataclass(frozen=True)
class Case:
    """One line of an audit: a claim about a release on two neighbours, and how to score it.

    ``draw(data, trials, rng)`` returns that many independent releases, one per row, and ``score``
    their log-likelihood ratios, present over absent; without ``score``, the audit learns one.
    ``trials`` and ``quick`` are the numbers of releases on each data set in a full and in a quick
    audit. ``sealed`` says whether a fit publishes only functions of its scored releases; if not,
    the claim is refuted. ``account`` returns the epsilon of all releases together at any delta.
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

    def attainable(self, claim: Claim) -> float:
        """Return the largest epsilon that a test on this pair can show, at most the claim."""
        if self.account is None or not claim.delta > 0.0:
            return claim.epsilon
        return min(claim.epsilon, self.account(claim.delta))


def lone_row(n: int = 4, d: int = 1) -> Pair:
    """Return one record at the norm bound among n - 1 of zeros, in the last of d columns."""
    X = np.zeros((n, d))
    X[0, -1] = 1.0
    return without("one row at the norm bound, zeros elsewhere", X, 0)


def one_direction(n: int) -> Pair:
    """Return n equal rows of one column, one of which is removed."""
    return without(f"one of {n} equal rows at the norm bound", np.ones((n, 1)), 0)


def person_of(rows: int, n: int) -> Pair:
    """Return n persons with equal rows; one person, with several rows, is removed."""
    groups = np.concatenate((np.zeros(rows), np.arange(1.0, n)))
    X, y = np.ones((len(groups), 1)), (groups == 0.0).astype(float)
    there = groups > 0.0
    description = f"one of {n} persons, with {rows} equal rows at the norm bound"
    absent = Data(X * there[:, None], y * there, groups=groups)
    return Pair(description, Data(X, y, groups=groups), absent)


def heaviest_row(n: int) -> Pair:
    """Return n equal rows; the row with the largest weight is removed."""
    description, present, absent = one_direction(n)
    weights = np.append(1.0, np.full(n - 1, 0.25))
    without = np.append(0.0, weights[1:])
    pair = present._replace(weights=weights), absent._replace(weights=without)
    return Pair(f"{description}, four times as heavy as the others", *pair)


def added_row(n: int) -> Pair:
    """Return n equal rows and the same without one: the number of rows is not public."""
    description, present, _ = one_direction(n)
    fewer = Data(present.X[1:], present.y[1:])
    return Pair(f"{description}, and n - 1 are left", present, fewer)


def opposed_row(n: int) -> Pair:
    """Return n equal rows of one column, one of which has target -1 where the others have 1."""
    y = np.ones(n)
    y[0] = -1.0
    absent = Data(np.ones((n, 1)), y.copy())
    absent.X[0] = absent.y[0] = 0.0
    description = f"one of {n} equal rows at the norm bound, with a target opposed to the others'"
    return Pair(description, Data(np.ones((n, 1)), y), absent)


def without(description: str, X: FloatArray, i: int) -> Pair:
    """Return the pair in which record i is present with target 1, the others having 0."""
    y = np.zeros(len(X))
    y[i] = 1.0
    absent = X.copy()
    absent[i] = 0.0
    return Pair(description, Data(X, y), Data(absent, np.zeros(len(X))))
