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
from fastmix.audit import pairs
from fastmix.audit.absent import PresentRows
from fastmix.audit.case import Case, Claim, Data, FloatArray, Pair
from fastmix.audit.laws import Records, log_likelihoods
from fastmix.audit.mechanisms import DELTA
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
from fastmix.rows import Rows

__all__ = ["ESTIMATORS", "estimator_case"]

#: Public bounds that records at the norm bound just reach.
_BOUNDS = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}

#: Fits whose transcripts are held in memory at a time.
_BATCH = 500


def estimator_case(
    model: PrivateRegressor,
    name: str | None = None,
    *,
    pair: Pair | None = None,
    trials: int = 10_000,
    quick: int = 800,
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
    )


class _Fits:
    """Fits of one estimator on two neighbours, with their transcripts."""

    def __init__(self, model: PrivateRegressor, pair: Pair) -> None:
        self._model, self._pair = model, pair

    def certificate(self, data: Data) -> Any:
        return self._fitted(data, np.random.default_rng(0)).privacy_

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
        model = self._model
        if model.fit_intercept:
            model = _of_present(model, np.linalg.norm(data.X, axis=1) > 0.0)
        # The samplers of exact noise take their randomness from the operating system only.
        seed = rng if model.noise == "float" else None
        fitted: PrivateRegressor = model.set_params(random_state=seed).fit(*data.stretched())
        return fitted

    def _records(self, data: Data) -> Records:
        if not self._model.fit_intercept:
            return Records(data.X, data.y)
        n, d = data.X.shape
        rows = np.column_stack((data.X, np.full(n, d**-0.5))) / math.hypot(1.0, d**-0.5)
        present = np.linalg.norm(data.X, axis=1) > 0.0
        return Records(rows * present[:, None], data.y, constant=True)


def _of_present(model: PrivateRegressor, present: npt.NDArray[np.bool_]) -> PrivateRegressor:
    """Return the same estimator, to whose mechanisms only these records are present."""

    class PresentData:
        def __init__(self, data: Any) -> None:
            self._data = data

        def __getattr__(self, name: str) -> Any:
            return getattr(self._data, name)

        def rows(self, *args: Any, **kwargs: Any) -> Rows:
            return PresentRows(self._data.rows(*args, **kwargs), present)

    def fit(self: Any, data: Any, report: Any = None) -> Any:
        return kind._fit(self, PresentData(data), report)  # type: ignore[arg-type]

    kind = type(model)
    audited: type[PrivateRegressor] = type(kind.__name__, (kind,), {"_fit": fit})
    return audited(**model.get_params(deep=False))


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
    delta: float = DELTA,
    fit_intercept: bool = False,
    pair: Pair | None = None,
    trials: int = 10_000,
    quick: int = 800,
    **parameters: Any,
) -> Case:
    model = estimator(epsilon=2.0, delta=delta, fit_intercept=fit_intercept, **parameters)
    return estimator_case(model, name, pair=pair, trials=trials, quick=quick)


#: Residuals are clipped here in the cases: so low that the record's is clipped at every step.
_CLIP = {"residual_clip": 0.01}

_CASES: dict[str, tuple[type[PrivateRegressor], dict[str, Any]]] = {
    "FastIHM, tuned": (FastIHM, {"sketch_size": 16, "n_steps": 3, **_CLIP}),
    "FastIHM, tuned, with intercept": (
        FastIHM,
        {"fit_intercept": True, "sketch_size": 16, "n_steps": 3, **_CLIP},
    ),
    "FastIHM, shared": (FastIHM, {"variant": "shared", "sketch_size": 16, "n_steps": 3, **_CLIP}),
    "FastIHM, paper": (FastIHM, {"variant": "paper", "sketch_size": 16, "n_steps": 3, **_CLIP}),
    "FastIHM, standard errors": (FastIHM, {"inference": True, "sketch_size": 16, "n_steps": 3, **_CLIP}),
    "IHM, tuned": (IHM, {"n_steps": 3, **_CLIP}),
    "IHM, paper": (IHM, {"variant": "paper", "n_steps": 3, **_CLIP}),
    "IHM, standard errors": (IHM, {"inference": True, "n_steps": 3, **_CLIP}),
    "IHM, exact noise": (IHM, {"noise": "exact", "n_steps": 3, **_CLIP}),
    "LinearMixing": (LinearMixing, {}),
    "LinearMixing, fast": (LinearMixing, {"fast": True, "sketch_size": 16}),
    "AdaSSP": (AdaSSP, {}),
    "AdaSSP, standard errors": (AdaSSP, {"inference": True}),
    "AdaSSP, exact noise": (AdaSSP, {"noise": "exact"}),
    "DPGradientDescent": (DPGradientDescent, {"n_steps": 5, "learning_rate": 1e-3, **_CLIP}),
    "PrivateLinearRegression": (PrivateLinearRegression, {"n_steps": 3, **_CLIP}),
}

#: Cases by name, as functions of delta that build them. IHS is not private and is not here.
ESTIMATORS: dict[str, Callable[..., Case]] = {
    name: partial(_case, name, estimator, **parameters)
    for name, (estimator, parameters) in _CASES.items()
}
