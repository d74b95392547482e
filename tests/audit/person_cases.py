"""Fits and scores of persons, weights and hidden numbers for audits, and flaws they must see."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np

from fastmix import (
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
)
from fastmix.data import chunks
from fastmix.estimators import _input

#: Models by name: what makes one, how many classes it has, and whether it can score its own rows.
MODELS = {
    "linear": (PrivateLinearRegression, 0, True),
    "Huber": (PrivateHuberRegressor, 0, True),
    "quantile": (partial(PrivateQuantileRegressor, quantile=0.8), 0, True),
    "two quantiles": (partial(PrivateQuantileRegressor, quantile=[0.2, 0.5]), 0, False),
    "two classes": (PrivateLogisticRegression, 2, True),
    "three classes": (PrivateLogisticRegression, 3, True),
}
#: Whether there are persons, whether weights, and whether the number of records is hidden.
UNITS = {
    "persons": (True, False, False),
    "weights": (False, True, False),
    "persons, weights": (True, True, False),
    "hidden": (False, False, True),
    "persons, hidden": (True, False, True),
    "weights, hidden": (False, True, True),
    "persons, weights, hidden": (True, True, True),
}
#: Rows of a person that count, and the bound of weights.
MOST_ROWS, MOST_WEIGHT = 3, 2.0
BOUNDS = {"bounds_X": (-1.0, 1.0), "delta": 1e-3}


def panel(seed, classes=0, n=60, *, spread=0.3, far=True, alone=False):
    """Return rows of persons, of whom the first has four rows at the ends of all bounds.

    Its target is ``far`` from the line of the others, and its weights are above their bound.
    ``alone`` leaves one row of it.
    """
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.arange(n) // 3) + 1
    X = rng.uniform(-spread, spread, (n, 3))
    y = np.clip(X[:, 0] + 0.02 * rng.normal(size=n), -1.0, 1.0)
    first = slice(0, 1 if alone else 4)
    ids[:4], X[first] = 0, rng.choice([-1.0, 1.0], 3)
    X[first, 0] = (-1.0) ** seed
    y[first] = -X[0, 0] if far else X[0, 0]
    if classes:
        y = np.digitize(y, [0.0] if classes == 2 else [-0.1, 0.1]).astype(float)
    weights = rng.uniform(0.0, MOST_WEIGHT, n)
    weights[first] = 10.0
    return X, y, ids, weights


def counting(unit, ids, weights):
    """Return the arguments that say who the records are and how much they count."""
    grouped, weighted, _ = UNITS[unit]
    given = {"groups": ids, "max_rows_per_group": MOST_ROWS} if grouped else {}
    return given | ({"sample_weight": weights, "max_weight": MOST_WEIGHT} if weighted else {})


def model_of(name, unit, seed=0, **given):
    """Return a model with intervals that has not been fitted."""
    kind, classes, scores = MODELS[name]
    known = {"classes": np.arange(float(classes))} if classes else {"bounds_y": (-1.0, 1.0)}
    if scores and "Quantile" not in str(kind):
        known["score_share"] = 0.05
    known |= {"epsilon": 60.0, "inference": True, "random_state": seed, **BOUNDS, **given}
    return kind(public_rows=not UNITS[unit][2], **known)


def released(name, unit, table, seed=0, source=np.asarray):
    """Fit a model of a table and score the same table: all releases that persons are in."""
    X, y, ids, weights = table
    model, given = model_of(name, unit, seed), counting(unit, ids, weights)
    with the_same_rows(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(source(X), y, **given)
        if MODELS[name][2]:
            # Scores must protect whatever a model has released, also coefficients that are wrong.
            wrong = [[-9.0], [0.0], [9.0]] if MODELS[name][1] == 3 else [9.0]
            model.coef_ = np.zeros_like(model.coef_)
            model.coef_[..., :1] = wrong
            asked = {"epsilon": 60.0, "delta": 1e-3, "random_state": seed}
            model.evaluate(source(X), y, **asked, **given)
    return model


@contextmanager
def the_same_rows():
    """Let the same rows of a person count in every run: their choice has a fixed key."""
    key = {"return_value": bytes(32)}
    with mock.patch.object(_input, "new_key", **key), mock.patch.object(chunks, "new_key", **key):
        yield


def twice(real):
    """Return sample weights of twice their bound."""
    return lambda values, most: 2.0 * real(values, most)


def undivided(real):
    """Return persons whose rows all have the weight 1."""

    def weights(*given):
        found = real(*given)
        return replace(found, weights=np.where(found.weights > 0.0, 1.0, 0.0))

    return weights


def unlimited(real):
    """Return terms whose slopes are ten times as large."""

    def terms(*given):
        for own, Z, bends, slopes in real(*given):
            yield own, Z, bends, 10.0 * slopes

    return terms


def one_by_one(real):
    """Return terms of persons whose rows are clipped one by one, and their sum is not."""

    def terms(*given):
        for own, Z, bends, slopes in real(*given):
            yield np.ones_like(own), Z, bends, slopes

    return terms
