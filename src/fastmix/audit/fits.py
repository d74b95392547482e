"""Many fits of one estimator on two neighbours, with their transcripts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

from fastmix._types import BoolArray, FloatArray
from fastmix.accounting import BudgetAccountant, SketchEvent
from fastmix.audit.case import Data, Pair
from fastmix.audit.laws import Records, scored
from fastmix.audit.transcript import Release, recording, replaying
from fastmix.data import ArrayRows, RowMap, Rows
from fastmix.estimators import PrivateRegressor
from fastmix.methods import Method, Plan
from fastmix.random import public_generator

#: Fits whose transcripts are held in memory at a time.
_BATCH = 500


class Fits:
    """Fits of one estimator on two neighbours."""

    def __init__(self, model: PrivateRegressor, pair: Pair) -> None:
        self._pair, self._intercept = pair, model.fit_intercept
        self._once = _Once()
        self._models = [self._planned(model, data) for data in (pair.absent, pair.present)]

    def certificate(self, data: Data) -> Any:
        """Return the certificate of a fit."""
        return self._fitted(data, public_generator(0)).privacy_

    def draw(self, data: Data, trials: int, rng: np.random.Generator) -> FloatArray:
        """Fit that many times and return the scores of the transcripts and the coefficients."""
        batches = [min(_BATCH, trials - done) for done in range(0, trials, _BATCH)]
        return np.concatenate([self._batch(data, size, rng) for size in batches])

    def replay(self, rng: np.random.Generator) -> bool:
        """Tell whether fits publish nothing but functions of their transcripts."""
        data = self._pair.present, self._pair.absent
        for first, second in (data, data[::-1]):
            with recording() as transcript:
                published = _published(self._fitted(first, rng))
            try:
                with replaying(transcript):
                    again = _published(self._fitted(second, rng))
            except RuntimeError:
                return False
            if not _equal(published, again):
                return False
        return True

    def rows_alone(self, delta: float) -> float:
        """Return the exact epsilon of a sketch of (X, y) whose eigenvalue says nothing, lone row.

        The smallest eigenvalue of one row is 0 with it and without it. What is released about it
        is 0 as well, outside a rare event, and the sketch has all of its noise. Its rows differ in
        variance along the record: their squares add up to one chi-square variable, and the sets
        that tell most are rays.
        """
        spent = self.certificate(self._pair.present).spent
        (sketch,) = (each for each in spent.events if isinstance(each, SketchEvent))
        k, record = sketch.rows, np.column_stack(self._pair.present)
        ratio = 1.0 + float((record**2).sum()) / (2.0 * sketch.gamma)

        def excess(epsilon: float) -> float:
            shift = k * math.log(ratio)
            high, low = ((shift + 2.0 * e) / (1.0 - 1.0 / ratio) for e in (epsilon, -epsilon))
            present = chi2.sf(high / ratio, k) - math.exp(epsilon) * chi2.sf(high, k)
            absent = chi2.cdf(low, k) - math.exp(epsilon) * chi2.cdf(low / ratio, k)
            return float(max(present, absent) - delta + spent.tail)

        return float(brentq(excess, 0.0, 100.0, xtol=1e-12)) if excess(0.0) > 0.0 else 0.0

    def _batch(self, data: Data, size: int, rng: np.random.Generator) -> FloatArray:
        transcripts: list[list[Release]] = []
        coefficients: list[list[float]] = []
        with recording() as transcript:
            for _ in range(size):
                fitted = self._fitted(data, rng)
                transcripts.append(transcript.copy())
                transcript.clear()
                eta = 0.0 if fitted.eta_ is None else fitted.eta_
                coefficients.append([*fitted.coef_, fitted.intercept_, eta])
        present, absent = map(self._records, (self._pair.present, self._pair.absent))
        return scored(transcripts, present, absent, coefficients)

    def _fitted(self, data: Data, rng: np.random.Generator) -> PrivateRegressor:
        model = self._models[data is self._pair.present]
        # The samplers of exact noise take their randomness from the operating system only.
        model.random_state = rng if model.noise == "float" else None
        fitted: PrivateRegressor = model.fit(*data.stretched())
        return fitted

    def _planned(self, model: PrivateRegressor, data: Data) -> PrivateRegressor:
        """Return the estimator, its absent records absent, that plans and checks only once."""
        kind, present = type(model), _present(data) if self._intercept else None
        shared, own = self._once, _Once()

        def planned(self: Any, n: int, d: int) -> tuple[Method, Plan]:
            plan: tuple[Method, Plan] = shared((n, d), lambda: kind._planned(self, n, d))
            return plan

        def check_parameters(self: Any) -> None:
            shared("parameters", lambda: kind._check_parameters(self))

        def fit(self: Any, data: Any, report: Any = None) -> Any:
            return kind._fit(self, own("data", lambda: _Prepared(data, present)), report)

        methods = {
            "_advise": lambda *_: None,  # a weak guarantee on few rows, on purpose
            "_check_parameters": check_parameters,
            "_fit": fit,
            "_planned": planned,
        }
        audited: type[PrivateRegressor] = type(kind.__name__, (kind,), methods)
        return audited(**{**model.get_params(deep=False), "accountant": _NoBudget()})

    def _records(self, data: Data) -> Records:
        if not self._intercept:
            return Records(data.X, data.y)
        n, d = data.X.shape
        rows = np.column_stack((data.X, np.full(n, d**-0.5))) / math.hypot(1.0, d**-0.5)
        return Records(rows * _present(data)[:, None], data.y, constant=True)


class PresentRows(ArrayRows):
    """Rows some of which are absent: zeros in all columns, that of the intercept included."""

    def __init__(self, rows: Rows, present: BoolArray) -> None:
        A, y = (np.concatenate(parts) for parts in zip(*rows.blocks(), strict=True))
        super().__init__(A * present[:, None], RowMap(rows.bound), y * present)
        self.constant = rows.constant
        self._all, self._present = rows, present

    def centred(self, mean: FloatArray) -> PresentRows:
        """Return the features minus a public mean where a record is present, zeros elsewhere."""
        return PresentRows(self._all.centred(mean), self._present)


class _Once:
    """Makes each thing once."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}

    def __call__(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made under this key, or make it."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


class _NoBudget(BudgetAccountant):
    """Pays for fits on data that are made up: nobody's budget is spent, and none is looked for."""

    def __init__(self) -> None:
        pass

    def check(self, spent: Any, *, leaks: Any = ()) -> None:
        """Refuse nothing."""

    def spend(self, spent: Any, label: str = "", *, leaks: Any = ()) -> None:
        """Write nothing."""


class _Prepared:
    """The data set of many fits, checked and scaled once, with some records absent or none."""

    def __init__(self, data: Any, present: BoolArray | None) -> None:
        self._data, self._present, self._once = data, present, _Once()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._data, name)
        if name not in ("check", "scaling", "rows"):
            return found
        return lambda *a, **k: self._once(name, lambda: self._without_absent(found(*a, **k)))

    def _without_absent(self, made: Any) -> Any:
        if self._present is None or not isinstance(made, Rows):
            return made
        return PresentRows(made, self._present)


def _present(data: Data) -> BoolArray:
    return np.asarray(np.linalg.norm(data.X, axis=1) > 0.0)


def _published(model: PrivateRegressor) -> dict[str, Any]:
    """Return everything that a fitted model holds beyond its parameters."""
    return {name: value for name, value in vars(model).items() if name not in model.get_params()}


def _equal(first: dict[str, Any], second: dict[str, Any]) -> bool:
    def same(one: Any, other: Any) -> bool:
        if isinstance(one, np.ndarray):
            return np.array_equal(one, other, equal_nan=True)
        return str(one) == str(other)

    return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
