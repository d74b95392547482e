"""What each number of rows per person costs, from public numbers."""

import math
from typing import NamedTuple

from fastmix._validation import check_integer
from fastmix.accounting import objective_mu
from fastmix.methods import default_delta


class PersonCost(NamedTuple):
    r"""The noise of fits that protect persons, in units of a fit that protects single rows.

    ``noise`` is that of a fit with ``max_rows_per_group`` of ``rows``, ``naive`` that of group
    privacy: k rows of each person as single rows, at epsilon/k and the delta that this asks for,
    :math:`\delta e^{-\epsilon (k - 1)/k} / k`.
    """

    rows: int
    noise: float
    naive: float


def group_delta(epsilon: float, delta: float, k: int) -> float:
    r"""Return :math:`\delta e^{-\epsilon (k - 1)/k} / k`, of one row so that k rows have delta.

    Paper: beyond it; group privacy, as in any textbook.
    """
    return delta * math.exp(-epsilon * (k - 1) / k) / k


def records_of(n: int, persons: int | None) -> int:
    """Return how many records a fit protects: each person counts as one."""
    check_integer("n", n, at_least=1)
    return n if persons is None else check_integer("persons", persons, at_least=1, at_most=n)


def rows_of_each(n: int, persons: int | None) -> int | None:
    """Return the rows that persons have on average, rounded up: a cap that a fit might have."""
    return None if persons is None else -(-n // persons)


def size_in_words(n: int, persons: int | None) -> str:
    """Return how many rows there are, and of how many persons."""
    return f"{n:,} rows" + ("" if persons is None else f" of {persons:,} persons")


def person_costs(
    n: int, persons: int, epsilon: float = 1.0, delta: float | None = None
) -> list[PersonCost]:
    """Return what it costs to let 1, 10, 100, ... rows of a person count.

    Parameters
    ----------
    n : int
        Rows of the table.
    persons : int
        Persons whose rows they are.
    epsilon : float, default 1.0
        Target epsilon.
    delta : float, optional
        Target delta; ``1 / persons**2`` by default.

    Returns
    -------
    list of PersonCost
        Up to the first number of rows that persons have on average.

    Notes
    -----
    Paper: beyond it; docs/proofs/people.md. Noise on the mean of n gradients is that of the
    objective over n; of persons there are fewer.
    """
    persons = records_of(n, persons)
    delta = default_delta(delta, persons)
    single = n * objective_mu(epsilon, delta)
    costs, k = [], 1
    while True:
        ours = persons * objective_mu(epsilon, delta, rows_per_person=k)
        kept = min(n, k * persons)
        naive = kept * objective_mu(epsilon / k, group_delta(epsilon, delta, k))
        costs.append(PersonCost(k, single / ours, single / naive))
        if k * persons >= n or k >= 10**6:
            return costs
        k *= 10
