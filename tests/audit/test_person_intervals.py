"""Fits with intervals, of persons and with weights: how much a person changes in each release.

A fit is watched while it runs. At every release with Gaussian noise the statistic is computed
again, with the same given values, for the same table without one person: the difference must be at
most the stated sensitivity. Replays show that a fit depends on its table by its releases alone.
"""

from __future__ import annotations

import itertools
import warnings
from copy import copy
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from fastmix import (
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
)
from fastmix.data import ArrayRows, chunks, curvatures, persons
from fastmix.engine import table_fit
from fastmix.estimators import _input
from fastmix.releases import Noise
from fastmix.releases.release import Gaussian, Joint, folded
from tests.audit.person_cases import twice, undivided, unlimited
from tests.transcripts import names, recording, replaying

KINDS = [PrivateLinearRegression, PrivateHuberRegressor, PrivateLogisticRegression]
#: Quantiles have no coordinates of tables.
QUANTILES = [
    partial(PrivateQuantileRegressor, quantile=0.8),
    partial(PrivateQuantileRegressor, quantile=[0.2, 0.5]),
]
WARDS, SEXES = ["a", "b", "c", "d"], ["f", "m"]
#: Releases that the watch does not see: they have no statistic, and tests of their own.
UNSEEN = {"minimiser", "number of rows"}


def table(seed, kind, n=60):
    """Return rows of persons, of whom the first has rows at the ends of all bounds, and weights."""
    rng = np.random.default_rng(seed)
    age, ward, sex = rng.uniform(0.3, 0.6, n), rng.choice(WARDS[:3], n), rng.choice(SEXES, n)
    ids = rng.integers(1, 25, n)
    pay = np.clip(0.4 + 0.2 * age + 0.02 * rng.normal(size=n), 0.0, 1.0)
    ids[:8], age[:8], ward[:8], sex[:8], pay[:8] = 0, 1.0, "d", "m", rng.choice([0.0, 1.0])
    frame = pd.DataFrame({"age": age, "ward": ward, "sex": sex})
    frame["pay"] = np.where(pay > 0.5, "high", "low") if kind is KINDS[2] else pay
    weights = rng.uniform(0.0, 2.0, n)
    weights[:8] = 10.0
    order = rng.permutation(n)
    return frame.iloc[order].reset_index(drop=True), ids[order], weights[order]


def options(kind, seed=0, *, numbers=True, grouped=True, weighted=False, hidden=False, share=0.0):
    """Return a model whose table fit has little noise, so that decisions vary with the data."""
    features = {"age": (0.0, 1.0)} if numbers else {}
    target = ["high", "low"] if kind is KINDS[2] else (0.0, 1.0)
    bounds = {"target": {"pay": target}, "features": {**features, "ward": WARDS, "sex": SEXES}}
    given = {"epsilon": 60.0, "delta": 1e-3, "inference": True, "random_state": seed}
    model = kind(bounds=bounds, public_rows=not hidden, score_share=share, **given)
    model.counted = grouped, weighted
    return model


def fitted(model, frame, ids, weights, most=np.inf):
    """Fit by the releases of a table, with steps if their noise is at most ``most``."""
    grouped, weighted = model.counted
    given = {"groups": ids, "max_rows_per_group": 3} if grouped else {}
    given |= {"sample_weight": weights, "max_weight": 2.0} if weighted else {}
    columns = [*(model.bounds["features"]), "pay"]
    limits = {"MOST_COLUMNS": np.inf, "MOST_WITH_STEPS": np.inf, "MOST_NOISE": most}
    with (
        warnings.catch_warnings(),
        mock.patch.multiple(table_fit, **limits),
        # The same rows of a person count in every run.
        mock.patch.object(_input, "new_key", return_value=bytes(32)),
        mock.patch.object(chunks, "new_key", return_value=bytes(32)),
    ):
        warnings.simplefilter("ignore")
        return model.fit(frame[columns], **given)


def without(rows, person):
    """Return rows without those of a person, as a table without the person has them."""
    assert isinstance(rows, ArrayRows)
    rows, block, known = copy(rows), rows._block, rows.persons
    codes = np.arange(len(block.targets.y)) if block.persons is None else block.persons
    kept = np.flatnonzero(codes != person)
    part = block.rows(kept)
    if known is not None:
        own = known.of_rows(codes != person)
        part = replace(part, weights=own.weights, persons=own.codes)
        rows.persons = own
    rows._block, rows._measured, rows._joint = part, None, None
    return rows


def changes(release, rows, public, given, people):
    """Yield the name of each statistic and the largest change by a person over its sensitivity."""
    rest = {name: value for name, value in given.items() if name != "sigma"}
    parts = release.parts if isinstance(release, Joint) else (release,)

    def statistics(rows):
        found = release.statistic(rows, **rest)
        found = found if isinstance(release, Joint) else (found,)
        return [folded(v) if p.symmetric else v for v, p in zip(found, parts, strict=True)]

    whole, most = statistics(rows), np.zeros(len(parts))
    for person in people:
        less = statistics(without(rows, person))
        most = np.maximum(most, [np.linalg.norm(a - b) for a, b in zip(whole, less, strict=True)])
    for part, change in zip(parts, most, strict=True):
        yield part.name, change / part.sensitivity(public, **rest)


def watched(model, frame, ids, weights, most=np.inf, people=5):
    """Return the largest change by a person over its sensitivity, for each statistic of a fit."""
    return watch(lambda: fitted(model, frame, ids, weights, most), people)


def watch(fit, people=5):
    """Return the same for any fit; the first persons are looked at, and one in a rare ward."""
    largest, real = {}, Noise._value

    def value(self, release, rows, public, given):
        if isinstance(release, (Gaussian, Joint)):
            codes = rows.persons.codes if rows.persons is not None else None
            every = np.arange(len(rows._block.targets.y)) if codes is None else np.unique(codes)
            # The first person's rows are the only ones of their ward, in a column of levels.
            rare = np.flatnonzero(np.asarray(rows._block.A)[:, -3] > 0.0)[:1]
            first = rare if codes is None else codes[rare]
            for name, share in changes(release, rows, public, given, [*first, *every[:people]]):
                largest[name] = max(largest.get(name, 0.0), share)
        else:
            assert release.name in UNSEEN
        return real(self, release, rows, public, given)

    with mock.patch.object(Noise, "_value", value):
        fit()
    return largest


CASES = list(itertools.product(KINDS, [True, False], [True, False], [True, False]))


@pytest.mark.parametrize(("kind", "grouped", "weighted", "hidden"), CASES)
def test_no_person_changes_a_release_by_more_than_its_sensitivity(kind, grouped, weighted, hidden):
    reached = {}
    for seed, numbers in itertools.product(range(4), [True, False]):
        given = {"grouped": grouped, "weighted": weighted, "hidden": hidden}
        model = options(kind, seed, numbers=numbers, **given)
        for name, share in watched(model, *table(seed, kind)).items():
            assert share <= 1.0, (name, seed, numbers)
            reached[name] = max(reached.get(name, 0.0), share)
    assert {"level counts", "slopes", "gradient counts", "curvature"} < set(reached)
    # The bound is tight where a person can reach it, so that a factor too few would show.
    assert reached["level counts"] > 0.99
    assert reached["slopes"] > 0.3


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_tables_without_steps_keep_to_their_sensitivities(kind, weighted):
    reached = {}
    for seed, most in itertools.product(range(2), [0.0, np.inf]):
        model = options(kind, seed, weighted=weighted, share=0.2)
        for name, share in watched(model, *table(seed, kind), most).items():
            assert share <= 1.0, (name, seed, most)
            reached[name] = max(reached.get(name, 0.0), share)
    assert len(reached) >= 8


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("kind", [*KINDS, *QUANTILES])
def test_fits_of_arrays_keep_to_their_sensitivities(kind, n, grouped):
    reached = {}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.choice([-1.0, 1.0, 0.1, 0.3], (n, 3)), rng.choice([-1.0, 0.0, 0.1, 1.0], n)
        given = {"groups": np.arange(n) // 3, "max_rows_per_group": 2}
        if not grouped:
            given = {"sample_weight": y + 2.0, "max_weight": 2.0}
        known = {}
        if kind is KINDS[2]:
            y, known["classes"] = np.sign(y + 0.5), (-1.0, 1.0)
        else:
            known["bounds_y"] = (-1.0, 1.0)
        known |= {"epsilon": 60.0, "delta": 1e-3, "inference": True, "random_state": seed}
        model = kind(bounds_X=(-1.0, 1.0), public_rows=seed > 0, **known)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = watch(partial(model.fit, X, y, **given), people=12)
        for name, share in found.items():
            assert share <= 1.0, (name, seed)
            reached[name] = max(reached.get(name, 0.0), share)
    assert {"curvature", "squares of gradients"} < set(reached)
    assert max(reached.values()) > 0.5


MUTANTS = {
    "weights of a person's rows not divided": (persons, "person_weights", undivided),
    "a bound of weights that is off by 2": (_input, "row_weights", twice),
    "gradients that are not limited": (curvatures, "_terms", unlimited),
}


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_caught(name, kind):
    where, function, mutant = MUTANTS[name]
    model = options(kind, grouped=name != "a bound of weights that is off by 2", weighted=True)
    caught = {}
    with mock.patch.object(where, function, mutant(getattr(where, function))):
        for seed in range(2):
            caught |= {k: v for k, v in watched(model, *table(seed, kind)).items() if v > 1.0}
    assert caught


@pytest.mark.parametrize(("kind", "grouped", "weighted", "hidden"), CASES)
def test_a_fit_depends_on_its_table_by_its_releases_alone(kind, grouped, weighted, hidden):
    """Another table with the same releases gives the same model: no number of it comes past them.

    Where the number of persons is hidden, the other table has another one, and 0 rows in the end.
    """
    model = options(kind, grouped=grouped, weighted=weighted, hidden=hidden)
    first, second = table(1, kind), table(2, kind)
    if grouped and not hidden:  # as many persons
        second = second[0], first[1], second[2]
    others = [second, *([[each[:7] for each in second], [each[:0] for each in second]] * hidden)]
    with recording() as transcript:
        one = fitted(model, *first)
    assert "curvature" in names(transcript)
    told = facts(one)
    for other in others:
        with replaying(transcript):
            again = facts(fitted(model, *other))
        assert again.keys() == told.keys()
        for name, value in told.items():
            np.testing.assert_array_equal(value, again[name], err_msg=name)


@pytest.mark.parametrize("kind", QUANTILES)
def test_so_does_a_fit_of_quantiles(kind):
    """Curvatures and counts decide what is identified; another table must not."""
    rng = np.random.default_rng(0)
    X, given = rng.uniform(-1, 1, (400, 3)), {"groups": np.arange(400) // 2}
    model = kind(epsilon=60.0, delta=1e-3, bounds_X=(-1, 1), bounds_y=(-1, 1), inference=True)

    def fit(y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return facts(model.fit(X, y, **given, max_rows_per_group=2))

    with recording() as transcript:
        told = fit(np.clip(X[:, 0] + 0.1 * rng.normal(size=400), -1, 1))
    assert np.isfinite(told["coef_std_"]).any()
    with replaying(transcript):
        again = fit(rng.choice([-1.0, 1.0], 400))
    for name, value in told.items():
        np.testing.assert_array_equal(value, again[name], err_msg=name)


def facts(model):
    """Return what a fitted model says in numbers."""
    found = {}
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, (float, int, np.ndarray)):
            found[name] = value
    found |= {f"chosen {name}": value for name, value in getattr(model, "chosen_", {}).items()}
    assert {"coef_", "coef_std_", "coef_noise_std_"} < set(found)
    return found
