"""How many rows per person should count: expected errors from public sizes and a public guess."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_integer, check_real, value_error
from fastmix.accounting import objective_mu
from fastmix.engine import default_delta

#: Errors of coefficients by privacy noise, over those by sampling, are this times
#: sqrt(d / (persons mu^2)): the clipping level of gradients in units of sqrt(d) spreads.
CLIP = 3.0
#: Assumed correlation of the errors of one person's rows.
CORRELATION = 0.3
#: A larger number of rows must lower the error by at least this share.
WORTH = 0.01
#: Largest number of rows of a guess, and numbers of rows of a table, times powers of ten.
_MOST, _STEPS = 10**6, (1, 2, 5)


class RowsGuess(NamedTuple):
    """A public guess at the rows per person: numbers of rows, and the shares of persons."""

    rows: npt.NDArray[np.int64]
    shares: FloatArray

    @property
    def mean(self) -> float:
        """Mean number of rows per person."""
        return float(self.rows @ self.shares)

    def kept(self, k: int) -> FloatArray:
        """Return how many rows of a person count, at most k."""
        return np.minimum(self.rows, k).astype(np.float64)


class RowChoice(NamedTuple):
    """What to expect if up to ``rows`` rows of a person count.

    ``counted`` is the share of all rows that count; ``noise`` is the privacy noise in units of that
    for one row per person, and ``error`` the standard error of a coefficient in units of the
    smallest in the table.
    """

    rows: int
    counted: float
    noise: float
    error: float


def guess_from(text: str, name: str = "text") -> RowsGuess:
    """Return the guess that a text states: "1-40", all equally likely, or "1:0.5,5:0.3,40:0.2".

    Shares are divided by their sum. ``name`` is that of the text in messages.
    """
    form = "be a range such as 1-40, or numbers with shares such as 1:0.5,5:0.3,40:0.2"
    try:
        if ":" in text:
            pairs = [each.split(":") for each in text.split(",")]
            rows = np.array([int(number) for number, _ in pairs])
            shares = np.array([float(share) for _, share in pairs])
        else:
            low, high = (int(each) for each in text.split("-"))
            if not 1 <= low <= high <= _MOST:
                raise ValueError(text)
            rows = np.arange(low, high + 1)
            shares = np.ones(len(rows))
        valid = (rows >= 1).all() and (rows <= _MOST).all() and (shares >= 0.0).all()
        if not valid or not np.isfinite(shares).all() or not shares.sum() > 0.0:
            raise ValueError(text)
    except ValueError:
        raise value_error(name, form, text) from None
    return RowsGuess(rows, shares / shares.sum())


def usual_guess(rows: int, persons: int) -> RowsGuess:
    """Return a geometric distribution with the public mean: many persons with few rows."""
    mean = min(max(rows / persons, 1.0), _MOST / 20.0)
    most = max(1, math.ceil(20.0 * mean))
    numbers = np.arange(1, most + 1)
    shares = (1.0 - 1.0 / mean) ** (numbers - 1.0)
    return RowsGuess(numbers, shares / shares.sum())


def row_choices(
    persons: int,
    d: int,
    guess: RowsGuess,
    epsilon: float = 1.0,
    delta: float | None = None,
    correlation: float = CORRELATION,
) -> list[RowChoice]:
    r"""Return what to expect of several numbers of rows per person, from public values only.

    The mean of m errors of correlation r and variance 1 has the variance r + (1 - r)/m, and each
    person counts once. Privacy noise hardly depends on the number (docs/proofs/people.md); its
    variance is that of one row per person times :math:`c^2 d/(P\mu^2)`, with c = 3.
    """
    check_integer("persons", persons, at_least=1)
    check_integer("d", d, at_least=1)
    check_real("correlation", correlation, at_least=0.0, at_most=1.0)
    delta = default_delta(delta, persons)
    most, found = int(guess.rows[guess.shares > 0.0].max()), []
    first = objective_mu(epsilon, delta)
    for k in _numbers(most):
        mu, kept = objective_mu(epsilon, delta, rows_per_person=k), guess.kept(k)
        sampled = float(guess.shares @ (correlation + (1.0 - correlation) / kept))
        noise = CLIP**2 * d / (persons * mu**2)
        counted = float(guess.shares @ kept) / guess.mean
        found.append(RowChoice(k, counted, first / mu, math.sqrt(sampled + noise)))
    least = min(each.error for each in found)
    return [each._replace(error=each.error / least) for each in found]


def advice(choices: list[RowChoice], name: str = "max_rows_per_group") -> str:
    """Return which number of rows to choose; ``name`` is what the reader sets to it."""
    enough = next(each for each in choices if each.error <= 1.0 + WORTH)
    return (
        f"Choose {name} of {enough.rows:,} or more: {enough.counted:.0%} of the rows count with "
        f"{enough.rows:,}, and a larger number lowers the expected error by at most {WORTH:.0%}. "
        "Decide by this guess, not by the counts in your table."
    )


def _numbers(most: int) -> list[int]:
    """Return 1, 2, 5, 10, ... up to the first that is at least ``most``."""
    found, power = [], 1
    while True:
        for step in _STEPS:
            found.append(step * power)
            if found[-1] >= most:
                return found
        power *= 10
