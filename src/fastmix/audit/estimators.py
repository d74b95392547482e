"""Cases of the estimators: whole fits, scored by the likelihood ratio of their transcripts."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import clone

from fastmix._validation import value_error
from fastmix.audit import pairs
from fastmix.audit.case import Case, Claim, Pair
from fastmix.audit.fits import Fits
from fastmix.estimators import (
    IHM,
    AdaSSP,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    ObjectivePerturbation,
    PrivateLinearRegression,
    PrivateRegressor,
)

#: Public bounds that records at the norm bound just reach.
_BOUNDS = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}

#: The claim of the cases. Noise is calibrated to it by the code that calibrates it to any other,
#: and counting some thousand fits shows most of it, which would take millions at delta = 1e-6.
EPSILON, DELTA = 3.0, 0.05

#: What in a line of the table below is of the case, not of the estimator.
_SIZES = ("trials", "quick", "sketch_alone")


def estimator_case(
    model: PrivateRegressor,
    name: str | None = None,
    *,
    pair: Pair | None = None,
    trials: int = 6_000,
    quick: int = 480,
    sketch_alone: bool = False,
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
    sketch_alone : bool, default False
        Whether the limit of the pair is computed: for `LinearMixing` and a lone row.

    Returns
    -------
    Case
        Its claim is that of the certificate. A release of it holds the log-likelihood ratio of the
        transcript, which is its score, the parts of that by kind of release, and the coefficients
        with the noise level of the sketch. Absent records are absent behind the public map.
    """
    pair = pair or pairs.lone_row(16)
    bounds_X = (-1.0, 1.0) if model.fit_intercept else None
    model = clone(model).set_params(**_BOUNDS, bounds_X=bounds_X, accountant=None, verbose=False)
    fit = Fits(model, pair)
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
        limit=fit.rows_alone if sketch_alone else None,
    )


def _case(
    name: str,
    estimator: type[PrivateRegressor],
    pair: Pair,
    epsilon: float = EPSILON,
    delta: float = DELTA,
    **parameters: Any,
) -> Case:
    sizes = {key: parameters.pop(key) for key in _SIZES if key in parameters}
    model = estimator(epsilon=epsilon, delta=delta, **{"fit_intercept": False, **parameters})
    return estimator_case(model, name, pair=pair, **sizes)


#: A lone record: the sketch shows all that it may. Among equal ones the eigenvalue shows, too.
_LONE, _EQUAL = pairs.lone_row(4), pairs.one_direction(64)

#: Residuals are clipped so low that the record's is clipped at every step, whatever the noise; of
#: so many rows a sketch is nearly Gaussian, and shows nearly what its Rényi curve allows.
_STEPS: dict[str, Any] = {"residual_clip": 0.01, "n_steps": 2, "gaussian_size": 100_000}

#: Thirds of a larger epsilon add up to less waste.
_THIRDS: dict[str, Any] = {
    **_STEPS,
    "sketch": "srht",
    "sketch_size": 64,
    "epsilon": 6.0,
    "trials": 40_000,
}

_CASES: dict[str, tuple[type[PrivateRegressor], Pair, dict[str, Any]]] = {
    "FastIHM": (FastIHM, _LONE, {**_STEPS, "sketch_size": 4, "trials": 8_000, "quick": 800}),
    "FastIHM, with intercept": (
        FastIHM,
        pairs.lone_row(16),
        {**_STEPS, "fit_intercept": True, "sketch_size": 16, "trials": 16_000},
    ),
    "FastIHM, shared": (FastIHM, _EQUAL, {**_THIRDS, "variant": "shared"}),
    "FastIHM, paper": (FastIHM, _EQUAL, {**_THIRDS, "variant": "paper"}),
    "IHM": (IHM, _EQUAL, _STEPS),
    "IHM, paper": (IHM, _EQUAL, {**_STEPS, "variant": "paper"}),
    "IHM, standard errors": (
        IHM,
        _EQUAL,
        {**_STEPS, "n_steps": 1, "inference": True, "trials": 4_000},
    ),
    "IHM, exact noise": (IHM, _EQUAL, {**_STEPS, "noise": "exact", "quick": 640}),
    "LinearMixing": (LinearMixing, _LONE, {"gaussian_size": 100_000}),
    # So few rows need so little noise that an eigenvalue on the wrong side would show.
    "LinearMixing, four rows": (
        LinearMixing,
        _LONE,
        {"gaussian_size": 4, "sketch_alone": True, "trials": 16_000},
    ),
    "LinearMixing, fast": (
        LinearMixing,
        _LONE,
        {
            "gaussian_size": 100_000,
            "fast": True,
            "sketch_size": 4,
            "trials": 10_000,
            "quick": 1_000,
        },
    ),
    "AdaSSP": (AdaSSP, _LONE, {}),
    "AdaSSP, standard errors": (AdaSSP, _LONE, {"inference": True}),
    "AdaSSP, exact noise": (AdaSSP, _LONE, {"noise": "exact", "quick": 640}),
    "DPGradientDescent": (
        DPGradientDescent,
        _LONE,
        {"residual_clip": 0.01, "n_steps": 5, "learning_rate": 1e-3},
    ),
    "ObjectivePerturbation": (ObjectivePerturbation, _EQUAL, {"residual_clip": 0.01}),
    "ObjectivePerturbation, exact noise": (
        ObjectivePerturbation,
        _EQUAL,
        {"residual_clip": 0.01, "noise": "exact", "quick": 640},
    ),
    "PrivateLinearRegression": (PrivateLinearRegression, _LONE, {"method": IHM(**_STEPS)}),
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
