"""Cases of the estimators: what a fit publishes, scored by a classifier."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from fastmix._validation import value_error
from fastmix.audit import pairs
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

__all__ = ["ESTIMATORS", "estimator_case"]

#: Public scaling under which records of zeros are zeros, which is what an absent record is.
_SCALING = {"data_norm": 1.0, "bounds_X": None, "bounds_y": (-1.0, 1.0), "fit_intercept": False}


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
    """
    worst = pairs.lone_row(n, d)
    model = clone(model).set_params(**_SCALING, accountant=None, verbose=False)
    spent = clone(model).set_params(random_state=0).fit(*worst.present).privacy_
    if not math.isfinite(spent.epsilon):
        raise value_error("model", "be private, with a finite epsilon", model)

    def prepare(data: Data) -> Callable[[np.random.Generator], list[float]]:
        X, y = data.stretched()

        def release(rng: np.random.Generator) -> list[float]:
            model.set_params(random_state=rng).fit(X, y)
            return [*model.coef_, 0.0 if model.eta_ is None else model.eta_]

        return release

    return Case(
        name=name or str(model),
        claim=Claim(spent.epsilon, spent.delta),
        pair=worst,
        draw=one_by_one(prepare),
        trials=trials,
        quick=quick,
    )


def _case(
    name: str, estimator: type[PrivateRegressor], delta: float = DELTA, **parameters: Any
) -> Case:
    return estimator_case(estimator(epsilon=2.0, delta=delta, **parameters), name)


_CASES: dict[str, tuple[type[PrivateRegressor], dict[str, Any]]] = {
    "FastIHM, tuned": (FastIHM, {"sketch_size": 8, "n_steps": 3}),
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
