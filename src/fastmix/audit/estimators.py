"""Cases of the estimators: whole fits, scored by the likelihood ratio of their transcripts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from fastmix._validation import value_error
from fastmix.accounting import BudgetAccountant
from fastmix.audit import pairs
from fastmix.audit.absent import PresentRows
from fastmix.audit.case import Case, Claim, Data, FloatArray, Pair
from fastmix.audit.laws import Records, log_likelihoods
from fastmix.audit.transcript import Release, recording, replaying
from fastmix.estimators import (
    IHM,
    AdaSSP,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    PrivateLinearRegression,
)
from fastmix.estimators._base import PrivateRegressor
from fastmix.estimators._plan import Plan
from fastmix.random import public_generator
from fastmix.rows import Rows

__all__ = ["ESTIMATORS", "LONG", "estimator_case"]

#: Public bounds that records at the norm bound just reach.
_BOUNDS = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}

#: The claim of the cases. Noise is calibrated to it by the code that calibrates it to any other,
#: and counting some thousand fits shows most of it, which would take millions at delta = 1e-6.
EPSILON, DELTA = 3.0, 0.05

#: Fits whose transcripts are held in memory at a time.
_BATCH = 500


def estimator_case(
    model: PrivateRegressor,
    name: str | None = None,
    *,
    pair: Pair | None = None,
    trials: int = 6_000,
    quick: int = 480,
) -> Case:
    """Return the case of an estimator: its fits with and without one record.

    Parameters
    ----------
    model : estimator
        With the parameters to audit; its bounds and its randomness are replaced.
    name : str, optional
        Name of the case; the estimator with its parameters by default.
    pair : Pair, optional
        Neighbours with one column; by default one record at the norm bound among zeros.
    trials, quick : int
        Fits on each data set in a full and in a quick audit.

    Returns
    -------
    Case
        Scored by the log-likelihood ratio of the transcript. Its claim is that of the
        certificate.

    Notes
    -----
    A release of the case holds the log-likelihood ratio of the transcript, its parts by kind of
    release, and the coefficients with the noise level of the sketch.
    Without an intercept a record of zeros is an absent one. With an intercept no record is, and
    records are made absent behind the public map.
    """
    pair = pair or pairs.lone_row(16)
    bounds_X = (-1.0, 1.0) if model.fit_intercept else None
    model = clone(model).set_params(**_BOUNDS, bounds_X=bounds_X, accountant=None, verbose=False)
    fit = _Fits(model, pair)
    spent = fit.certificate(pair.present)
    if not math.isfinite(spent.epsilon):
        raise value_error("model", "be private, with a finite epsilon", model)
    return Case(
        name=name or str(model),
        claim=Claim(spent.epsilon, spent.delta),
        pair=pair,
        draw=fit.draw,
        score=lambda values: values[:, 0],
        trials=trials,
        quick=quick,
        sealed=fit.replay,
        account=spent.spent.joint_epsilon,
    )


class _Fits:
    """Fits of one estimator on two neighbours, with their transcripts."""

    def __init__(self, model: PrivateRegressor, pair: Pair) -> None:
        self._pair, self._intercept = pair, model.fit_intercept
        self._plans: dict[tuple[int, int], Plan] = {}
        self._models = [self._planned(model, data) for data in (pair.absent, pair.present)]

    def certificate(self, data: Data) -> Any:
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
        present, absent = (
            log_likelihoods(transcripts, self._records(each))
            for each in (self._pair.present, self._pair.absent)
        )
        ratios = [present[part] - absent[part] for part in present]
        return np.column_stack([sum(ratios), *ratios, np.array(coefficients)])

    def _fitted(self, data: Data, rng: np.random.Generator) -> PrivateRegressor:
        model = self._models[data is self._pair.present]
        # The samplers of exact noise take their randomness from the operating system only.
        model.random_state = rng if model.noise == "float" else None
        fitted: PrivateRegressor = model.fit(*data.stretched())
        return fitted

    def _planned(self, model: PrivateRegressor, data: Data) -> PrivateRegressor:
        """Return the estimator with a plan that is made once, and absent records where there are.

        A plan is a function of public sizes and parameters, and all fits of a case share it.
        """
        kind, plans = type(model), self._plans
        present = _present(data) if self._intercept else None
        prepared: list[_Prepared] = []

        def make_plan(self: Any, n: int, d: int) -> Plan:
            if (n, d) not in plans:
                plans[n, d] = kind._make_plan(self, n, d)
            return plans[n, d]

        def fit(self: Any, data: Any, report: Any = None) -> Any:
            if not prepared:
                prepared.append(_Prepared(data, present))
            return kind._fit(self, prepared[0], report)

        # An audit is of a weak guarantee on few rows, on purpose.
        quiet = {"_advise": lambda *_: None}
        audited: type[PrivateRegressor] = type(
            kind.__name__, (kind,), {"_fit": fit, "_make_plan": make_plan, **quiet}
        )
        return audited(**{**model.get_params(deep=False), "accountant": _NoBudget()})

    def _records(self, data: Data) -> Records:
        if not self._intercept:
            return Records(data.X, data.y)
        n, d = data.X.shape
        rows = np.column_stack((data.X, np.full(n, d**-0.5))) / math.hypot(1.0, d**-0.5)
        return Records(rows * _present(data)[:, None], data.y, constant=True)


class _NoBudget(BudgetAccountant):
    """Pays for fits on data that are made up: nobody's budget is spent, and none is looked for."""

    def __init__(self) -> None:
        pass

    def check(self, spent: Any, *, leaks: Any = ()) -> None:
        """Refuse nothing."""

    def spend(self, spent: Any, label: str = "", *, leaks: Any = ()) -> None:
        """Write nothing."""


class _Prepared:
    """The data set of many fits, checked and scaled once, with some records absent or none.

    None of this draws noise: it is the same in every fit of a case.
    """

    def __init__(self, data: Any, present: npt.NDArray[np.bool_] | None) -> None:
        self._data, self._present = data, present
        self._made: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def check(self, model: PrivateRegressor) -> int:
        """Return the number of features of data that have been checked."""
        return int(self._once("check", lambda: self._data.check(model)))

    def scaling(self, **parameters: Any) -> Any:
        """Return the public scaling."""
        return self._once("scaling", lambda: self._data.scaling(**parameters))

    def rows(self, *args: Any, **kwargs: Any) -> Rows:
        """Return the rows that are present."""
        rows: Rows = self._once("rows", lambda: self._rows(*args, **kwargs))
        return rows

    def _rows(self, *args: Any, **kwargs: Any) -> Rows:
        rows: Rows = self._data.rows(*args, **kwargs)
        return rows if self._present is None else PresentRows(rows, self._present)

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


def _present(data: Data) -> npt.NDArray[np.bool_]:
    return np.asarray(np.linalg.norm(data.X, axis=1) > 0.0)


def _published(model: PrivateRegressor) -> dict[str, Any]:
    """Return everything that a fitted model holds beyond its parameters."""
    return {name: value for name, value in vars(model).items() if name not in model.get_params()}


def _equal(first: dict[str, Any], second: dict[str, Any]) -> bool:
    if first.keys() != second.keys():
        return False
    for name, value in first.items():
        if isinstance(value, np.ndarray):
            if not np.array_equal(value, second[name], equal_nan=True):
                return False
        elif str(value) != str(second[name]):
            return False
    return True


def _case(
    name: str,
    estimator: type[PrivateRegressor],
    pair: Pair,
    delta: float = DELTA,
    trials: int = 6_000,
    quick: int = 480,
    **parameters: Any,
) -> Case:
    model = estimator(epsilon=EPSILON, delta=delta, **{"fit_intercept": False, **parameters})
    return estimator_case(model, name, pair=pair, trials=trials, quick=quick)


#: A lone record: the sketch shows all that it may. Among equal ones the eigenvalue shows, too.
_LONE, _FEW, _EQUAL = pairs.lone_row(4), pairs.one_direction(16), pairs.one_direction(64)

#: Residuals are clipped so low that the record's is clipped at every step, whatever the noise; of
#: so many rows a sketch is nearly Gaussian, and shows nearly what its Rényi curve allows.
_STEPS: dict[str, Any] = {"residual_clip": 0.01, "n_steps": 2, "gaussian_size": 100_000}
_FULL: dict[str, Any] = {"sketch": "srht", "sketch_size": 16}

_CASES: dict[str, tuple[type[PrivateRegressor], Pair, dict[str, Any]]] = {
    "FastIHM": (FastIHM, _LONE, {**_STEPS, "sketch_size": 4, "quick": 640}),
    "FastIHM, with intercept": (
        FastIHM,
        pairs.lone_row(16),
        {**_STEPS, "fit_intercept": True, "sketch_size": 16},
    ),
    "FastIHM, shared": (FastIHM, _FEW, {**_STEPS, **_FULL, "variant": "shared"}),
    "FastIHM, paper": (FastIHM, _FEW, {**_STEPS, **_FULL, "variant": "paper"}),
    "IHM": (IHM, _EQUAL, _STEPS),
    "IHM, paper": (IHM, _EQUAL, {**_STEPS, "variant": "paper"}),
    "IHM, standard errors": (IHM, _EQUAL, {**_STEPS, "n_steps": 1, "inference": True}),
    "IHM, exact noise": (IHM, _EQUAL, {**_STEPS, "noise": "exact"}),
    "LinearMixing": (LinearMixing, _LONE, {"gaussian_size": 100_000}),
    # So few rows need so little noise that an eigenvalue on the wrong side would show.
    "LinearMixing, four rows": (LinearMixing, _LONE, {"gaussian_size": 4}),
    "LinearMixing, fast": (
        LinearMixing,
        _LONE,
        {"gaussian_size": 100_000, "fast": True, "sketch_size": 4},
    ),
    "AdaSSP": (AdaSSP, _LONE, {}),
    "AdaSSP, standard errors": (AdaSSP, _LONE, {"inference": True}),
    "AdaSSP, exact noise": (AdaSSP, _LONE, {"noise": "exact"}),
    "DPGradientDescent": (
        DPGradientDescent,
        _LONE,
        {"residual_clip": 0.01, "n_steps": 5, "learning_rate": 1e-3},
    ),
    "PrivateLinearRegression": (PrivateLinearRegression, _LONE, _STEPS),
}

#: Cases that few fits cannot test: claims that add up parts use less than they say, and standard
#: errors take long to compute.
LONG = frozenset(
    {
        "FastIHM, with intercept",
        "FastIHM, shared",
        "FastIHM, paper",
        "IHM, paper",
        "IHM, standard errors",
        "LinearMixing, four rows",
    }
)

#: Cases by name, as functions of delta that build them. IHS is not private and is not here.
ESTIMATORS: dict[str, Callable[..., Case]] = {
    name: partial(_case, name, estimator, pair, **parameters)
    for name, (estimator, pair, parameters) in _CASES.items()
}
