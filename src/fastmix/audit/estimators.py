"""Cases of the estimators: what a fit publishes, scored by a classifier."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from fastmix._validation import value_error
from fastmix.audit import pairs
from fastmix.audit.absent import PresentRows
from fastmix.audit.case import Case, Claim, Data, one_by_one
from fastmix.audit.mechanisms import DELTA
from fastmix.estimators import (
    IHM,
    AdaSSP,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    PrivateLinearRegression,
)
from fastmix.estimators._base import PrivateRegressor
from fastmix.rows import Rows

__all__ = ["ESTIMATORS", "estimator_case"]

#: Public bounds that records at the norm bound just reach.
_BOUNDS = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}


def estimator_case(
    model: PrivateRegressor,
    name: str | None = None,
    *,
    n: int = 16,
    d: int = 1,
    trials: int = 10_000,
    quick: int = 200,
) -> Case:
    """Return the case of an estimator: one record of the largest effect among zeros.

    Parameters
    ----------
    model : estimator
        With the parameters to audit; its bounds and its randomness are replaced.
    name : str, optional
        Name of the case; the estimator with its parameters by default.
    n, d : int
        Size of the data.
    trials, quick : int
        Fits on each data set in a full and in a quick audit.

    Returns
    -------
    Case
        Scored by a classifier on coefficients and published noise level. Its claim is that of
        the certificate.

    Notes
    -----
    Without an intercept a record of zeros is an absent one. With an intercept no record is, and
    records are made absent behind the public map.
    """
    worst = pairs.lone_row(n, d)
    bounds_X = (-1.0, 1.0) if model.fit_intercept else None
    model = clone(model).set_params(**_BOUNDS, bounds_X=bounds_X, accountant=None, verbose=False)
    spent = clone(model).set_params(random_state=0).fit(*worst.present).privacy_
    if not math.isfinite(spent.epsilon):
        raise value_error("model", "be private, with a finite epsilon", model)

    def prepare(data: Data) -> Callable[[np.random.Generator], list[float]]:
        X, y = data.stretched()
        present = np.linalg.norm(data.X, axis=1) > 0.0
        audited = _of_present(model, present) if model.fit_intercept else model

        def release(rng: np.random.Generator) -> list[float]:
            audited.set_params(random_state=rng).fit(X, y)
            intercept = [audited.intercept_] if audited.fit_intercept else []
            return [*audited.coef_, *intercept, 0.0 if audited.eta_ is None else audited.eta_]

        return release

    return Case(
        name=name or str(model),
        claim=Claim(spent.epsilon, spent.delta),
        pair=worst,
        draw=one_by_one(prepare),
        trials=trials,
        quick=quick,
    )


def _of_present(model: PrivateRegressor, present: npt.NDArray[np.bool_]) -> PrivateRegressor:
    """Return the same estimator, to whose mechanisms only these records are present."""

    def solve(self: Any, rows: Rows, *plan: Any) -> Any:
        return kind._solve(self, PresentRows(rows, present), *plan)

    kind = type(model)
    audited: type[PrivateRegressor] = type(kind.__name__, (kind,), {"_solve": solve})
    return audited(**model.get_params(deep=False))


def _case(
    name: str,
    estimator: type[PrivateRegressor],
    delta: float = DELTA,
    fit_intercept: bool = False,
    **parameters: Any,
) -> Case:
    model = estimator(epsilon=2.0, delta=delta, fit_intercept=fit_intercept, **parameters)
    return estimator_case(model, name)


_CASES: dict[str, tuple[type[PrivateRegressor], dict[str, Any]]] = {
    "FastIHM, tuned": (FastIHM, {"sketch_size": 8, "n_steps": 3}),
    "FastIHM, tuned, with intercept": (
        FastIHM,
        {"fit_intercept": True, "sketch_size": 8, "n_steps": 3},
    ),
    "FastIHM, shared": (FastIHM, {"variant": "shared", "sketch_size": 8, "n_steps": 3}),
    "FastIHM, paper": (FastIHM, {"variant": "paper", "sketch_size": 8, "n_steps": 3}),
    "IHM, tuned": (IHM, {"n_steps": 3}),
    "IHM, paper": (IHM, {"variant": "paper", "n_steps": 3}),
    "LinearMixing": (LinearMixing, {}),
    "LinearMixing, fast": (LinearMixing, {"fast": True, "sketch_size": 8}),
    "AdaSSP": (AdaSSP, {}),
    "DPGradientDescent": (DPGradientDescent, {"n_steps": 10, "learning_rate": 1e-3}),
    "PrivateLinearRegression": (PrivateLinearRegression, {"n_steps": 3}),
}

#: Cases by name, as functions of delta that build them. IHS is not private and is not here.
ESTIMATORS: dict[str, Callable[..., Case]] = {
    name: partial(_case, name, estimator, **parameters)
    for name, (estimator, parameters) in _CASES.items()
}
