"""Noise levels, sizes and accounts of every method, and seeded fits, as they were stored.

``python tests/engine/golden.py`` writes ``golden.json`` anew. Do that only when mathematics is
meant to change, and say in the change log what changed: the tests compare with it to 1e-12.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import fastmix
from fastmix.datasets import make_sphere
from fastmix.estimators.models import fixing

PATH = Path(__file__).with_name("golden.json")

#: Every method with every variant, by a name of its own.
CONFIGURATIONS = {
    "AdaSSP": (fastmix.AdaSSP, {}),
    "AdaSSP paper": (fastmix.AdaSSP, {"variant": "paper"}),
    "AdaSSP published": (fastmix.AdaSSP, {"variant": "paper", "calibration": "published"}),
    "AdaSSP intervals": (fastmix.AdaSSP, {"inference": True}),
    "DPGradientDescent": (fastmix.DPGradientDescent, {}),
    "IHM": (fastmix.IHM, {}),
    "IHM intervals": (fastmix.IHM, {"inference": True}),
    "IHM paper": (fastmix.IHM, {"variant": "paper"}),
    "IHM paper intervals": (fastmix.IHM, {"variant": "paper", "inference": True}),
    "FastIHM": (fastmix.FastIHM, {}),
    "FastIHM intervals": (fastmix.FastIHM, {"inference": True}),
    "FastIHM srht": (fastmix.FastIHM, {"sketch": "srht"}),
    "FastIHM sketch": (fastmix.FastIHM, {"sketch_size": 256}),
    "FastIHM paper": (fastmix.FastIHM, {"variant": "paper"}),
    "LinearMixing": (fastmix.LinearMixing, {}),
    "LinearMixing published": (fastmix.LinearMixing, {"calibration": "published"}),
    "LinearMixing fast": (fastmix.LinearMixing, {"fast": True}),
    "LinearMixing fast published": (
        fastmix.LinearMixing,
        {"fast": True, "calibration": "published"},
    ),
    "IHS": (fastmix.IHS, {}),
    "ObjectivePerturbation": (fastmix.ObjectivePerturbation, {}),
    "AdaptiveRegression": (fastmix.PrivateLinearRegression, {}),
    "AdaptiveRegression rounds": (fixing(fastmix.PrivateLinearRegression, rounds=3), {}),
    "PrivateLinearRegression": (fastmix.PrivateLinearRegression, {}),
    "PrivateLinearRegression intervals": (fastmix.PrivateLinearRegression, {"inference": True}),
}

#: Settings of a plan: parameters that all methods take, and the shape of the data.
SETTINGS = 40


def settings():
    """Yield 40 settings, spread over what people use and somewhat beyond."""
    rng = np.random.default_rng(20260)
    for number in range(SETTINGS):
        parameters = {
            "epsilon": float(f"{10 ** rng.uniform(-1.5, 1.5):.3g}"),
            "delta": None if number % 3 else float(f"{10 ** rng.uniform(-10, -4):.3g}"),
            "fit_intercept": bool(number % 2),
            "bounds_X": (-1.0, 1.0),
            "bounds_y": (-1.0, 1.0),
        }
        n = round(10 ** rng.uniform(2.5, 6.5))
        d = round(10 ** rng.uniform(0.0, 2.8))
        yield parameters, n, d


def summary(events):
    """Return events with runs of Gaussian ones as count, first and last sigma, sum of squares."""
    short = []
    for kind, run in itertools.groupby(events, lambda event: event["kind"]):
        if kind == "gaussian":
            run = list(run)
            sigmas = [event["sigma"] for event in run]
            squares = [e["count"] * (e["sensitivity"] / e["sigma"]) ** 2 for e in run]
            short.append([len(run), sigmas[0], sigmas[-1], math.fsum(squares)])
        else:
            short += [list(event.values()) for event in run]
    return short


def plan_of(name, parameters, n, d):
    """Return what a fit of this size would charge and draw, or the kind of its refusal."""
    cls, more = CONFIGURATIONS[name]
    more = {"inference": False, **more}
    try:
        spent = cls(**more, **parameters).account(n, d)
        return {
            "epsilon": spent.epsilon,
            "delta": spent.delta,
            "parts": [[part.name, part.delta] for part in spent.parts],
            "events": summary(event.to_dict() for event in spent.events),
        }
    except ValueError as error:
        return type(error).__name__


def fit_of(name):
    """Return the coefficients of a seeded fit."""
    cls, more = CONFIGURATIONS[name]
    more = {"inference": False, **more}
    X, y = make_sphere(n=3000, d=5, random_state=7)
    model = cls(
        epsilon=2.0, delta=1e-6, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), random_state=11, **more
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return [*model.coef_.tolist(), float(model.intercept_)]


#: Fits of a table with categories, by name.
TABLES = {"table": {}, "table intervals": {"inference": True}, "table score": {"score_share": 0.1}}


def table_of(name):
    """Return the account and the coefficients of a seeded fit of a table, and standard errors."""
    rng = np.random.default_rng(8)
    n, cities = 6000, ["Ulm", "Bonn", "Kiel", "Jena"]
    frame = pd.DataFrame({"city": rng.choice(cities[:3], n), "sex": rng.choice(["f", "m"], n)})
    frame["age"], frame["hours"] = rng.uniform(0, 100, n), rng.normal(35, 8, n)
    frame["pay"] = 3.0 + 0.02 * frame["age"] + (frame["city"] == "Bonn") + rng.normal(0, 0.5, n)
    bounds = {
        "target": {"pay": (0, 10)},
        "features": {"age": (0, 100), "city": cities, "hours": (0, 60), "sex": ["f", "m"]},
    }
    model = fastmix.PrivateLinearRegression(
        epsilon=2.0,
        delta=1e-6,
        bounds=bounds,
        random_state=11,
        **{"inference": False, **TABLES[name]},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame)
    spent = model.privacy_.spent
    finite = [each if math.isfinite(each) else None for each in getattr(model, "coef_std_", ())]
    return {
        "events": summary(event.to_dict() for event in spent.events),
        "coef": [*model.coef_.tolist(), float(model.intercept_)],
        "std": finite,
    }


def main():
    """Write the file."""
    plans = {name: [plan_of(name, *setting) for setting in settings()] for name in CONFIGURATIONS}
    fits = {name: fit_of(name) for name in CONFIGURATIONS}
    tables = {name: table_of(name) for name in TABLES}
    text = json.dumps({"plans": plans, "fits": fits, "tables": tables}).replace(
        '{"epsilon"', '\n{"epsilon"'
    )
    PATH.write_text(text + "\n")


if __name__ == "__main__":
    main()
