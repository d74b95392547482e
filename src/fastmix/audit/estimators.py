"""Cases of the estimators: whole fits, scored by the likelihood ratio of their transcripts."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from fastmix._validation import value_error
from fastmix.audit.case import (
    Case,
    Claim,
    Pair,
    added_row,
    heaviest_row,
    lone_row,
    one_direction,
    opposed_row,
    person_of,
)
from fastmix.audit.fits import Fits
from fastmix.audit.releases import release_case
from fastmix.engine.ranges import BINS, LARGEST, SMALLEST, octave_edges, plan_ranges
from fastmix.estimators import (
    IHM,
    AdaSSP,
    DPGradientDescent,
    FastIHM,
    LinearMixing,
    ObjectivePerturbation,
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateModel,
    PrivateQuantileRegressor,
)
from fastmix.estimators.models import fixing
from fastmix.releases import COLUMN_COUNTS, Noise
from fastmix.releases.columns import Columns

#: Public bounds that records at the norm bound just reach.
_BOUNDS = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
#: The labels of targets of 1 and -1, which data stretch; 0 is none. A third one nobody has.
_CLASSES, _THREE = (-3.0, 3.0), (-3.0, 3.0, 6.0)

#: The claim of the cases. The same code calibrates noise for every claim. A few thousand fits can
#: show most of this epsilon; at delta = 1e-6 it would take millions.
EPSILON, DELTA = 3.0, 0.05
#: Arguments in the table below that belong to the case, not to the estimator.
_SIZES = ("trials", "quick", "kind")


def estimator_case(
    model: PrivateModel,
    name: str | None = None,
    *,
    pair: Pair | None = None,
    trials: int = 6_000,
    quick: int = 640,
    kind: type[Noise] = Noise,
) -> Case:
    """Return the case of an estimator: its fits with and without one record.

    ``model`` has the parameters to audit; its bounds and its randomness are replaced. ``pair`` has
    one column; by default one record at the norm bound is among zeros. ``trials`` and ``quick`` are
    the fits on each data set in a full and in a quick audit; ``kind`` replaces the noise.

    The claim is that of the certificate. A release holds the log-likelihood ratio of the
    transcript, which is its score, the parts of that by kind of release, and the coefficients with
    the noise level of the sketch. Absent records are absent behind the public map.
    """
    pair = pair or lone_row(16)
    bounds_X = (-1.0, 1.0) if model.fit_intercept else None
    named = model.get_params(deep=False)
    bounds = {name: value for name, value in _BOUNDS.items() if name in named}
    model = clone(model).set_params(**bounds, bounds_X=bounds_X, accountant=None, random_state=None)
    fit = Fits(model, pair, kind)
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


def _case(estimator: type[PrivateModel], pair: Pair, *, name: str, **given: Any) -> Case:
    sizes = {key: given.pop(key) for key in _SIZES if key in given}
    if fixed := given.pop("fixed", None):
        estimator = fixing(estimator, **fixed)
    usual = {"epsilon": EPSILON, "delta": DELTA, "fit_intercept": False}
    return estimator_case(estimator(**{**usual, **given}), name, pair=pair, **sizes)


def _bounds_case(*, epsilon: float = EPSILON, delta: float = DELTA, **rest: Any) -> Case:
    """Return the case of `PrivateBounds`: counts of a feature and a target, in two grids.

    The finer bins are fixed here; in a fit they are those that the first counts choose.
    """
    plan = plan_ranges(epsilon, delta, 2)
    grids = octave_edges(None, (SMALLEST, LARGEST)), np.linspace(-1.0, 1.0, BINS + 1)

    def counts(columns: Columns, noise: Noise) -> None:
        for edges, sigma in zip(grids, (plan.sigma, plan.fine_sigma), strict=True):
            noise.release(COLUMN_COUNTS, columns, edges=[edges] * 2, threshold=None, sigma=sigma)

    return release_case(
        counts,
        pair=one_direction(64),
        rows_of=lambda data: Columns([data.X[data.present, 0], data.y[data.present]]),
        claim=Claim(plan.spent.epsilon, plan.spent.delta),
        account=plan.spent.joint_epsilon,
        trials=6_000,
        quick=640,
        **rest,
    )


#: A lone record: the sketch shows all that it may. Among equal ones the eigenvalue shows, too.
_LONE, _EQUAL = lone_row(4), one_direction(64)

#: Residuals are clipped so low that the record's is clipped at every step, whatever the noise; of
#: so many rows a sketch is nearly Gaussian, and shows nearly what its Rényi curve allows.
_ROWS = 100_000
_STEPS: dict[str, Any] = {"residual_clip": 0.01, "n_steps": 2, "gaussian_size": _ROWS}

_IHM = partial(_case, IHM, _EQUAL, n_steps=2)
_LINEAR = partial(_case, LinearMixing, _LONE)
_ADASSP = partial(_case, AdaSSP, _LONE)
_OBJECTIVE = partial(_case, ObjectivePerturbation, _EQUAL, residual_clip=0.01)

_LOGISTIC = partial(
    _case, PrivateLogisticRegression, opposed_row(64), classes=_CLASSES, quick=1_000
)

#: Thirds of a larger epsilon add up to less waste.
_THIRDS = partial(
    _case, FastIHM, _EQUAL, **_STEPS, sketch="srht", sketch_size=64, epsilon=6.0, trials=40_000
)

_CASES: dict[str, Callable[..., Case]] = {
    "PrivateLinearRegression": partial(_case, PrivateLinearRegression, _EQUAL, quick=1_400),
    "PrivateLinearRegression, two rounds": partial(
        _case, PrivateLinearRegression, _EQUAL, fixed={"rounds": 2}, quick=1_400
    ),
    "PrivateLinearRegression, persons": partial(
        _case, PrivateLinearRegression, person_of(16, 64), quick=1_000
    ),
    "PrivateLinearRegression, weights": partial(
        _case, PrivateLinearRegression, heaviest_row(64), quick=1_000
    ),
    "FastIHM": partial(_case, FastIHM, _EQUAL, n_steps=2, sketch_size=16),
    "FastIHM, with intercept": partial(
        _case, FastIHM, _EQUAL, n_steps=2, fit_intercept=True, sketch_size=16
    ),
    "FastIHM, paper": partial(_THIRDS, variant="paper"),
    "IHM": _IHM,
    "IHM, paper": partial(_case, IHM, _EQUAL, **_STEPS, variant="paper"),
    "IHM, standard errors": partial(_IHM, n_steps=1, inference=True, trials=4_000),
    "LinearMixing": partial(_LINEAR, gaussian_size=_ROWS),
    # Few rows need little noise, so an eigenvalue on the wrong side would show.
    "LinearMixing, four rows": partial(_LINEAR, gaussian_size=4, trials=16_000),
    "LinearMixing, fast": partial(
        _LINEAR, gaussian_size=_ROWS, fast=True, sketch_size=4, trials=10_000, quick=1_000
    ),
    "AdaSSP": _ADASSP,
    "AdaSSP, paper": partial(_ADASSP, variant="paper"),
    "AdaSSP, standard errors": partial(_ADASSP, inference=True),
    "DPGradientDescent": partial(
        _case, DPGradientDescent, _LONE, residual_clip=0.01, n_steps=5, learning_rate=1e-3
    ),
    "ObjectivePerturbation": _OBJECTIVE,
    "ObjectivePerturbation, persons": partial(
        _case, ObjectivePerturbation, person_of(16, 64), residual_clip=0.01
    ),
    "ObjectivePerturbation, weights": partial(
        _case, ObjectivePerturbation, heaviest_row(64), residual_clip=0.01
    ),
    # Not an adaptive fit: its later releases depend on the released number of rows.
    "ObjectivePerturbation, rows not public": partial(
        _case, ObjectivePerturbation, added_row(64), residual_clip=0.01, public_rows=False
    ),
    "PrivateBounds": _bounds_case,
    "PrivateHuberRegressor": partial(_case, PrivateHuberRegressor, _EQUAL, trials=12_000),
    "PrivateLogisticRegression": _LOGISTIC,
    "PrivateLogisticRegression, two rounds": partial(_LOGISTIC, fixed={"rounds": 2}),
    # Without intervals, whose releases this pair shows little of.
    "PrivateLogisticRegression, three classes": partial(_LOGISTIC, classes=_THREE, inference=False),
    "PrivateQuantileRegressor": partial(
        _case,
        PrivateQuantileRegressor,
        opposed_row(4),
        fixed={"rounds": 0, "smoothing": 1e-3},
        quick=1_000,
    ),
}

#: Cases that need many fits: the claim adds up parts, so that fits spend less than it says; or
#: standard errors take long to compute.
LONG = frozenset(
    {
        *("FastIHM, with intercept", "FastIHM, paper"),
        *("IHM, paper", "IHM, standard errors", "LinearMixing, four rows"),
        *("PrivateLinearRegression, persons", "PrivateLinearRegression, weights"),
        "PrivateLogisticRegression, three classes",
    }
)

#: Cases by name, as functions of delta that build them. IHS is not private and is not here.
ESTIMATORS: dict[str, Callable[..., Case]] = {
    name: partial(build, name=name) for name, build in _CASES.items()
}
