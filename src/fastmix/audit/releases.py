"""Cases of single releases, or of a few, scored by their log-densities."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.accounting import RdpAccountant
from fastmix.audit.case import Case, Claim, Data, Pair, lone_row
from fastmix.audit.transcript import judging, numbers, ratios
from fastmix.data import ArrayRows, RowMap
from fastmix.random import public_generator
from fastmix.releases import Noise

#: Delta of the claims, unless a caller asks for another one.
DELTA = 1e-2

#: Draws releases of data; what it returns, such as bounds before a sketch, is for later releases.
Draw = Callable[[Any, Noise], Any]


def bounded_rows(data: Data) -> ArrayRows:
    """Return careless records as releases see them: brought to norm 1 and to [-1, 1]."""
    X, y = data.stretched()
    return ArrayRows(X, RowMap(1.0), y)


def release_case(
    release: Draw,
    first: Draw = lambda rows, noise: rows,
    *,
    name: str,
    pair: Pair | None = None,
    rows_of: Callable[[Data], Any] = bounded_rows,
    claim: Claim | None = None,
    trials: int = 100_000,
    quick: int = 4_000,
    delta: float = DELTA,
    kind: type[Noise] = Noise,
    **rest: Any,
) -> Case:
    """Return the case of releases, by their joint likelihood.

    ``first`` draws what all trials share, and ``release`` takes what it returns. The claim is the
    account of the events that both charge.
    """
    pair = pair or lone_row()
    listening, replaying = judging(kind)

    def shared(data: Data, rng: np.random.Generator) -> tuple[Any, Any, Noise]:
        """Apply ``first`` to a data set and to its neighbour; return both results and the noise."""
        other = pair.absent if data is pair.present else pair.present
        before = listening(rng)
        here = first(rows_of(data), before)
        follow = replaying(rng).follow(before.transcript, strict=False)
        return here, first(rows_of(other), follow), before

    def draw(data: Data, trials: int, rng: np.random.Generator) -> FloatArray:
        here, there, _ = shared(data, rng)
        own, other, shown = [], [], []
        for _ in range(trials):
            drawn = listening(rng)
            release(here, drawn)
            again = replaying(rng).follow(drawn.transcript, strict=False)
            release(there, again)
            own.append(drawn.likelihoods)
            other.append(again.likelihoods)
            shown.append(numbers(drawn.transcript))
        sign = 1.0 if data is pair.present else -1.0
        return np.column_stack((ratios(own, other, sign), shown))

    if claim is None:
        rng = public_generator(0)
        here, _, before = shared(pair.present, rng)
        once = listening(rng)
        release(here, once)
        events = [*before.drawn, *once.drawn]
        claim = Claim(RdpAccountant(events).get_epsilon(delta), delta)
    score: Callable[[FloatArray], FloatArray] = lambda values: values[:, 0]  # noqa: E731
    return Case(name, claim, pair, draw, score, trials, quick, **rest)
