"""A rehearsal: the fit itself on made-up rows of the same public sizes.

A table with categories has a fit of many steps, whose error and whose number of intervals no short
formula gives. The plan makes a table with the sizes of the real one, by public guesses, fits it
with and without privacy, and compares. No value of the real table is read, and nothing is charged.
"""

from __future__ import annotations

import math
import warnings
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from fastmix._types import FloatArray
from fastmix.accounting import BudgetAccountant, objective_mu
from fastmix.estimators import PrivateModel
from fastmix.random import public_generator
from fastmix.releases import make_noise

#: Entries and rows of made-up tables at most. With fewer rows than the real table has, epsilon is
#: larger, so that noise has the same size beside the rows.
MOST_ENTRIES, MOST_ROWS, LEAST_ROWS = 2_000_000, 20_000, 2_000
#: Made-up tables: shares of levels fall as this power of their rank; features correlate with a
#: hidden number, which spreads residuals; numbers crowd at their lower bound; tails of residuals
#: are those of Student's t. Chosen on Black Friday, King County and Rossmann.
RANKS, CORRELATION, UNEVEN, CROWDED, FREEDOM = 1.2, 0.7, 0.3, 3.0, 4.0
#: Errors on real tables in units of those on made-up ones: between the geometric means on these
#: three (1.45) and on diamonds, insurance, cps1988 and adult (1.0).
#: Excess log-loss has a factor of its own, the geometric mean on the first three.
HARDER, HARDER_LOSS = 1.2, 2.7
#: Where no guess is given: residuals in units of half the width of the target's bounds, and R^2.
SPREAD, R2 = 0.2, 0.5


class Rehearsal(NamedTuple):
    """Excess risk of a fit, for a target in [-1, 1], and its effects with and without intervals."""

    risk: float
    #: The risk of a model without features.
    nothing: float
    known: int | None
    effects: int


def rehearse(model: PrivateModel, n: int, d: int, *, spread: float, r2: float) -> Rehearsal:
    """Fit a made-up table of n records and d columns, with the categories of a model.

    ``spread`` is a public guess at residuals, in units of half the width of the target's bounds,
    and ``r2`` at the share of the variance that the features explain.
    """
    sizes = [*map(len, model._categories or model._dummies)]
    rows = min(n, MOST_ROWS, max(LEAST_ROWS, MOST_ENTRIES // d))
    X, fit, hidden = _features(rows, d, sizes)
    signal = spread * math.sqrt(r2 / (1.0 - r2))
    family = model._resolve().family
    y = _targets(model, fit, hidden, spread, signal)
    made: Any = copy(model)
    made._categories = made._unlisted = ()
    ends = {"bounds_y": (-1.0, 1.0)} if family != "logistic" else {}
    made.set_params(
        bounds_X=(0.0, 1.0),
        data_norm=None,
        random_state=None,
        accountant=BudgetAccountant(math.inf, 0.5),  # made-up rows must not charge a real budget
        epsilon=_raised(model, n / rows),
        score_share=0.0,
        **ends,
    )
    # Seed the noise, without the warning that fits of real data give.
    made._make_noise = lambda: make_noise(1, warn=False)
    starts = np.cumsum([0, *sizes])
    given: dict[str, Any] = {
        "categories": [[*range(a, a + size)] for a, size in zip(starts, sizes, strict=False)]
    }
    population = model._population
    if population.persons:
        given |= {"groups": np.arange(rows), "max_rows_per_group": population.rows_per_person}
    if population.weighted:
        given["sample_weight"] = np.ones(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(X, y, **given)
        exact = copy(made).set_params(epsilon=math.inf, inference=False)
        exact._population = type(population)()
        exact.fit(X, y, categories=given["categories"])
    summary = made.summary()
    slopes = [line for line in summary.lines if not line.is_intercept]
    known = sum(line.identified for line in slopes) if summary.has_errors else None
    effects = len(slopes) + len(summary.pooled) - sum(size > 1 for size in sizes)
    excess, nothing = _excess(made, exact, X, y)
    harder = HARDER_LOSS if family == "logistic" else HARDER**2
    return Rehearsal(harder * excess, nothing, known, effects)


def _raised(model: PrivateModel, ratio: float) -> float:
    """Return an epsilon with noise that is smaller by this ratio."""
    if ratio <= 1.0:
        return float(model.epsilon)
    delta = float(model.delta or 0.0)
    wanted = ratio * objective_mu(model.epsilon, delta)
    low, high = float(model.epsilon), 1e5
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if objective_mu(middle, delta) < wanted else (low, middle)
    return high


def _features(n: int, d: int, sizes: list[int]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return made-up rows, the part of the target that they explain, and the hidden number."""
    rng = public_generator(0)
    hidden, fit = rng.normal(size=n), np.zeros(n)

    def ranks() -> FloatArray:
        """Return numbers that are spread evenly over [0, 1] and correlate with the hidden one."""
        own = math.sqrt(1.0 - CORRELATION**2) * rng.normal(size=n)
        return np.asarray(ndtr(CORRELATION * hidden + own))

    X, at = np.zeros((n, d)), 0
    for size in sizes:
        shares = 1.0 / np.arange(1.0, size + 2.0) ** RANKS
        shares[-1] *= size == 1  # the last level is for values outside the list
        level = np.searchsorted(np.cumsum(shares / shares.sum()), ranks()).clip(0, size)
        fit += rng.normal(size=size + 1)[level]
        there = np.flatnonzero(level)
        X[there, at + level[there] - 1] = 1.0
        at += size
    for column in range(at, d):
        X[:, column] = ranks() ** CROWDED
        fit += abs(rng.normal()) * X[:, column] / X[:, column].std()
    return X, (fit - fit.mean()) / max(fit.std(), 1e-12), hidden


def _targets(
    model: PrivateModel, fit: FloatArray, hidden: FloatArray, spread: float, signal: float
) -> Any:
    """Return made-up targets, or labels."""
    rng = public_generator(1)
    if model._resolve().family == "logistic":
        labels = np.asarray(model._labels()[0])
        odds = fit * signal / spread * math.pi / math.sqrt(3.0) + rng.logistic(size=len(fit))
        cuts = np.quantile(odds, np.arange(1, len(labels)) / len(labels))
        return labels[np.searchsorted(cuts, odds)]
    tails = rng.standard_t(FREEDOM, len(fit)) / math.sqrt(FREEDOM / (FREEDOM - 2.0))
    return (signal * fit + spread * tails * np.exp(UNEVEN * hidden - UNEVEN**2)).clip(-1.0, 1.0)


def _losses(model: Any, predicted: FloatArray, y: Any) -> FloatArray:
    """Return the losses of predicted numbers, or of probabilities of the second label."""
    if hasattr(model, "classes_"):
        right = np.where(y == model.classes_[1], predicted, 1.0 - predicted)
        return np.asarray(-np.log(np.maximum(right, 1e-12)))
    q = getattr(model, "quantile", None)
    rest = y - predicted
    return np.asarray(rest**2 if q is None else np.maximum(q * rest, (q - 1.0) * rest))


def _excess(made: Any, exact: Any, X: FloatArray, y: Any) -> tuple[float, float]:
    """Return mean losses beyond the fit without privacy: of a fit, and without features.

    Of squares, the first is the mean square by which predictions differ.
    """
    labels, q = hasattr(made, "classes_"), getattr(made, "quantile", None)
    own, best = (m.predict_proba(X)[:, 1] if labels else m.predict(X) for m in (made, exact))
    targets = y == made.classes_[1] if labels else y
    constant = np.mean(targets) if q is None else np.quantile(targets, q)
    mean, least, most = (
        float(np.mean(_losses(made, each, y))) for each in (own, best, np.full(len(y), constant))
    )
    excess = mean - least if labels or q is not None else float(np.mean((own - best) ** 2))
    return max(excess, 1e-12), max(most - least, 1e-12)
