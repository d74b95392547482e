"""What is measured of fits of a table: predictions, intervals, scores, and unknown levels.

Each measure takes a cell and returns quantities by name. It uses the public interface only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from intervals import Intervals
from reference import least_squares, maximum_likelihood
from scipy.special import expit
from sets import Table
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import fastmix
from fastmix.accounting import objective_mu

SCORE_SHARE = 0.05
#: Standard errors of a fit that knows the second moments of its rows and spends all of its budget
#: on the minimiser, with gradients clipped at this many residuals times the root of the columns.
CLIP = 3.0
ROWS_OF_LEVELS = 200
TINY = 1e-12


class NotPrivate:
    """Least squares or maximum likelihood with the names of a private fit.

    Its intervals are right, so a benchmark of it shows whether the measures are.
    """

    def __init__(self, table: Table, linear: bool) -> None:
        self.feature_names_in_ = table.columns()
        X, y = table.encoded(self.feature_names_in_), table.targets()
        self.fit_ = least_squares(X, y, table.ends) if linear else maximum_likelihood(X, y)
        self.table, self.coef_ = table, self.fit_.theta[:-1]
        self.coef_covariance_ = self.fit_.covariance[:-1, :-1]
        self.coef_std_ = self.fit_.std(np.eye(len(self.coef_)))

    def predict(self, frame: Any) -> Any:
        rows = Table(self.table.name, frame, self.table.bounds)
        return self.fit_.predict(rows.encoded(self.feature_names_in_))

    def predict_proba(self, frame: Any) -> Any:
        second = self.predict(frame)
        return np.column_stack([1.0 - second, second])


class TooFewRowsError(Exception):
    """A table has fewer training rows than a cell needs."""


@dataclass(frozen=True)
class Cell:
    """A table with a number of rows, a budget, and whether the fit has intervals."""

    table: Table
    n: int | None
    epsilon: float
    intervals: bool
    family: str
    most: int
    estimator: str = "default"

    @property
    def linear(self) -> bool:
        return self.family == "linear"

    def split(self, seed: int) -> tuple[Table, Table]:
        """Return rows for training and for tests."""
        return _split(self.table, self.n, self.most, seed)

    def model(self, seed: int, table: Table, **given: Any) -> Any:
        """Return the fit of the rows by their bounds."""
        usual = "PrivateLinearRegression" if self.linear else "PrivateLogisticRegression"
        if self.estimator == "not_private":
            return NotPrivate(table, self.linear)
        kind = getattr(fastmix, usual if self.estimator == "default" else self.estimator)
        given = {"epsilon": self.epsilon, "inference": self.intervals, **given}
        return kind(bounds=table.bounds, random_state=seed, **given).fit(table.frame)

    def predict(self, model: Any, table: Table) -> Any:
        """Return predicted numbers, or probabilities of the second label."""
        frame = table.frame.drop(columns=table.target)
        return model.predict(frame) if self.linear else model.predict_proba(frame)[:, 1]


@lru_cache(maxsize=2)
def _split(table: Table, n: int | None, most: int, seed: int) -> tuple[Table, Table]:
    found = table.split(seed, n, most)
    if found is None:
        raise TooFewRowsError(f"{table.name} has fewer than {n} training rows")
    return found


@lru_cache(maxsize=2)
def _not_private(train: Table, test: Table, linear: bool) -> tuple[Any, Any]:
    """Return predictions of the fit without privacy, and which columns have values."""
    names = train.columns()
    X, y = train.encoded(names), train.targets()
    fit = least_squares(X, y, train.ends) if linear else maximum_likelihood(X, y)
    return fit.predict(test.encoded(names)), X.any(axis=0)


def prediction(cell: Cell, seed: int) -> dict[str, float]:
    """Return risks out of sample, and the excess risk as a share of what is to be explained.

    The excess is over the fit of the same rows without privacy, which is too good a start where
    columns are many, and over the fit of all training rows.
    """
    train, test = cell.split(seed)
    plain, there = _not_private(train, test, cell.linear)
    most, _ = _not_private(*_split(cell.table, None, cell.most, seed), cell.linear)
    started = time.perf_counter()
    model = cell.model(seed, train)
    seconds = time.perf_counter() - started
    own, y = cell.predict(model, test), test.targets()
    made = {"rows": len(train.frame), "columns": len(there), "seconds": seconds}
    if cell.linear:
        total = y.var()
        loss, usual, best = (np.mean((y - each) ** 2) for each in (own, plain, most))
        made |= {"r2": 1.0 - loss / total, "r2_not_private": 1.0 - usual / total}
        inside = own.clip(*test.ends)
        made["r2_inside_bounds"] = 1.0 - np.mean((y - inside) ** 2) / total
        made["distance"] = np.mean((inside - plain) ** 2) / total
    else:
        total = log_loss(y, np.full(len(y), y.mean()))
        loss, usual, best = (log_loss(y, each) for each in (own, plain, most))
        made |= {"log_loss": loss, "log_loss_not_private": usual}
        made |= {"auc": roc_auc_score(y, own), "auc_not_private": roc_auc_score(y, plain)}
        made["distance"] = np.mean((own - plain) ** 2) / y.var()
    made |= {"excess": (loss - usual) / total, "excess_over_all_rows": (loss - best) / total}
    if cell.intervals:
        made["identified_share"] = float(np.isfinite(np.ravel(model.coef_std_))[there].mean())
    return made


def coverage(cell: Cell, fits: int) -> dict[str, float]:
    """Return how intervals cover a simulated truth, and the fit without privacy of real targets."""
    train, _ = cell.split(0)
    rng = np.random.default_rng(1)
    names = [str(name) for name in cell.model(0, train).feature_names_in_]
    X, y = train.encoded(names), train.targets()
    real = least_squares(X, y, train.ends) if cell.linear else maximum_likelihood(X, y)
    fitted = real.scores(X)
    errors = y - fitted - np.mean(y - fitted)
    ends = train.ends
    if cell.linear:
        ends = min(ends[0], fitted.min() + errors.min()), max(ends[1], fitted.max() + errors.max())
    simulated, observed = Intervals(real, names, X), Intervals(real, names, X)
    for fit in range(fits):
        if cell.linear:
            drawn = train.with_targets(fitted + rng.choice(errors, len(fitted)), ends)
        else:
            second = rng.random(len(fitted)) < expit(fitted)
            drawn = train.with_targets(np.where(second, ends[1], ends[0]))
        simulated.add(cell.model(fit + 1, drawn))
        observed.add(cell.model(fit + 1, train))
    made = {"rows": len(y), "columns": len(names), "fits": fits, **simulated.quantities()}
    if cell.linear and cell.estimator == "default":
        mu = objective_mu(cell.epsilon, cell.model(0, train).privacy_.delta)
        made["limit"] = np.sqrt(1.0 + CLIP**2 * (len(names) + 1) / (len(y) * mu**2))
        ratio = made.get("contrast_std_over_not_private", np.nan)
        made["contrast_std_over_limit"] = ratio / made["limit"]
    return made | {f"real_{name}": value for name, value in observed.quantities().items()}


def scores(cell: Cell, seed: int) -> dict[str, float]:
    """Return whether intervals of private scores contain the scores of the same rows."""
    train, _ = cell.split(seed)
    model = cell.model(seed, train, score_share=SCORE_SHARE)
    own, y = cell.predict(model, train), train.targets()
    made = {"rows": float(len(y))}
    for name in model.scores_.scores:
        if name == "r2":
            true = 1.0 - np.sum((y - own) ** 2) / np.sum((y - y.mean()) ** 2)
        elif name in ("mse", "mae"):
            true = np.mean(np.abs(y - own) ** (2 if name == "mse" else 1))
        else:
            true = {"accuracy": accuracy_score, "auc": roc_auc_score, "log_loss": log_loss}[name](
                y, own >= 0.5 if name == "accuracy" else own
            )
        low, high = model.scores_.interval(name)
        made |= {f"{name}_low": low, f"{name}_high": high, f"{name}_width": high - low}
        made |= {f"{name}_true": float(true), f"{name}_covered": float(low <= true <= high)}
    return made


def levels(cell: Cell, seed: int) -> dict[str, float]:
    """Return how often unknown levels predict within the range of known levels, and how far off.

    The distance from the range is in units of its width. Categories whose values are missing in
    some rows are counted apart (seen): these rows have an effect of their own.
    """
    train, test = cell.split(seed)
    model, few = cell.model(seed, train), test.rows(np.arange(ROWS_OF_LEVELS))
    made: dict[str, list[Any]] = {}
    for name, listed in train.categories.items():
        there = set(train.frame[name].dropna())
        known = np.array([_at(cell, model, few, name, v) for v in listed if v in there])
        low, high = known.min(axis=0), known.max(axis=0)
        unseen: Any = 10**6 if isinstance(listed[0], int) else f"{listed[0]} misspelt"
        for kind, value in (("unseen", unseen), ("missing", None)):
            own = _at(cell, model, few, name, value)
            outside = np.maximum(low - own, own - high).clip(0.0) / np.maximum(high - low, TINY)
            kind = "seen" if train.frame[name].isna().any() else kind
            made.setdefault(kind, []).append(np.where(outside > 1e-9, outside, 0.0))
    found = {f"{k}_inside": float(np.mean(np.array(each) == 0.0)) for k, each in made.items()}
    return found | {f"{k}_furthest": float(np.max(each)) for k, each in made.items()}


def _at(cell: Cell, model: Any, table: Table, name: str, value: Any) -> Any:
    """Return predictions with one category set to a value."""
    kind = table.frame[name].dtype
    changed = pd.Series([value] * len(table.frame), dtype=kind, index=table.frame.index)
    frame = table.frame.assign(**{name: changed})
    return cell.predict(model, Table(table.name, frame, table.bounds))
