"""Evaluations and comparisons of persons, with weights and hidden numbers: what a person changes.

They are watched as fits are (`test_person_intervals`): at every release with Gaussian noise the
statistic is computed again without one person, and must change by at most its sensitivity.
"""

from __future__ import annotations

import itertools
import warnings
from functools import partial
from unittest import mock

import numpy as np
import pytest

from fastmix import (
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
    compare,
)
from fastmix.data import ArrayRows, RowMap, curvatures, persons, scores
from fastmix.estimators import _input
from fastmix.releases import Noise
from fastmix.releases.release import Gaussian, Joint
from fastmix.releases.sensitivity import contrast_sensitivity
from tests.audit.person_cases import one_by_one, twice, undivided, unlimited
from tests.audit.test_person_intervals import changes, without
from tests.transcripts import names, recording, replaying

KINDS = [
    PrivateLinearRegression,
    PrivateHuberRegressor,
    PrivateQuantileRegressor,
    PrivateLogisticRegression,
]
#: Whether there are persons, whether weights, and whether the number of rows is hidden.
CASES = list(itertools.product([True, False], repeat=3))
MODELS = [*((kind, 2) for kind in KINDS), (PrivateLogisticRegression, 3)]
#: Number of classes of a case, for classifiers; 2 stands for all other models.


def panel(seed, classes=0, n=90):
    """Return rows of persons, of whom the first has four rows at the ends of all bounds."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.arange(n) // 3) + 1
    X, y = rng.uniform(-0.3, 0.3, (n, 3)), rng.uniform(-0.3, 0.3, n)
    ids[:4], X[:4], y[:4] = 0, rng.choice([-1.0, 1.0], 3), rng.choice([-1.0, 1.0])
    if classes:
        y = np.digitize(y, np.linspace(-0.2, 0.2, classes - 1)).astype(float)
    weights = rng.uniform(0.0, 2.0, n)
    weights[:4] = 10.0
    return X, y, ids, weights


def model_of(kind, classes, *, hidden, theta_seed=0):
    """Return a model with arbitrary coefficients: scores must protect whatever was released."""
    X, y, *_ = panel(0, classes if kind is PrivateLogisticRegression else 0)
    known = {"bounds_X": (-1.0, 1.0), "epsilon": 5.0, "delta": 1e-3, "random_state": 0}
    if kind is PrivateLogisticRegression:
        known["classes"] = np.arange(float(classes))
    else:
        known["bounds_y"] = (-1.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(public_rows=not hidden, **known).fit(X, y)
    rng = np.random.default_rng(theta_seed)
    model.coef_ = rng.normal(0.0, 1.0, np.shape(model.coef_))
    return model


def given_of(ids, weights, *, grouped, weighted):
    given = {"groups": ids, "max_rows_per_group": 3} if grouped else {}
    return given | ({"sample_weight": weights, "max_weight": 2.0} if weighted else {})


def watch(run):
    """Return the largest change by a person over the sensitivity of each release of a run."""
    largest, real = {}, Noise._value

    def value(self, release, rows, public, given):
        if isinstance(release, (Gaussian, Joint)):
            views = rows if isinstance(rows, tuple) else (rows,)
            codes = views[0].persons.codes if views[0].persons is not None else None
            every = np.arange(len(views[0]._block.targets.y)) if codes is None else codes
            rare = np.abs(np.asarray(views[0]._block.A)[:, :3]).min(axis=1).argmax()
            people = {*np.unique(every)[:6].tolist(), int(every[rare])}
            if isinstance(rows, tuple):
                found = several(release, rows, public, given, people)
            else:
                found = changes(release, rows, public, given, people)
            for name, share in found:
                largest[name] = max(largest.get(name, 0.0), share)
        return real(self, release, rows, public, given)

    with mock.patch.object(Noise, "_value", value), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()
    return largest


def several(release, views, public, given, people):
    """Yield the same for a release of several views of the rows."""
    rest = {name: each for name, each in given.items() if name != "sigma"}
    whole, most = release.statistic(views, **rest), 0.0
    for person in people:
        less = release.statistic(tuple(without(rows, person) for rows in views), **rest)
        most = max(most, float(np.linalg.norm(whole - less)))
    yield release.name, most / release.sensitivity(public, **rest)


@pytest.mark.parametrize(("grouped", "weighted", "hidden"), CASES)
@pytest.mark.parametrize(("kind", "classes"), MODELS)
def test_no_person_changes_a_score_by_more_than_its_sensitivity(
    kind, classes, grouped, weighted, hidden
):
    reached = {}
    for seed in range(3):
        model = model_of(kind, classes, hidden=hidden, theta_seed=seed)
        X, y, ids, weights = panel(seed, classes if kind is PrivateLogisticRegression else 0)
        given = given_of(ids, weights, grouped=grouped, weighted=weighted)
        asked = {"epsilon": 5.0, "delta": 1e-3, "random_state": seed, **given}
        for name, share in watch(partial(model.evaluate, X, y, **asked)).items():
            assert share <= 1.0, (name, seed)
            reached[name] = max(reached.get(name, 0.0), share)
    assert len(reached) >= 2
    assert weighted == ("total weight" in reached)
    # A person at the ends of all bounds comes near to the bound, so that a factor would show.
    assert max(reached.values()) > 0.9


@pytest.mark.parametrize(("grouped", "weighted", "hidden"), CASES)
def test_no_person_changes_a_comparison_by_more_than_its_sensitivity(grouped, weighted, hidden):
    reached = {}
    for seed in range(2):
        watched = watch(partial(compared, panel(seed), seed, grouped, weighted, hidden))
        for name, share in watched.items():
            assert share <= 1.0, (name, seed)
            reached[name] = max(reached.get(name, 0.0), share)
    assert {"second moments", "residual counts", "contrasts"} <= set(reached)
    assert reached["residual counts"] > 0.9


def test_a_person_can_change_contrasts_by_their_sensitivity():
    """By rows on the line of half of the models and far from that of the others."""
    own = persons.person_weights([persons.hash_ids([1, 1, 1, 1], b"key")], 3, b"key")
    kept = own.weights > 0.0
    X, y = np.tile([1.0, 0.0], (4, 1))[kept], np.ones(3)
    rows = ArrayRows(X, RowMap(row_norm=1.0), y, persons=own.of_rows(kept))
    thetas = np.array([[1.0, 1.0, 9.0, 9.0], [0.0] * 4])
    change = np.linalg.norm(rows.contrasts(thetas, 0.5)) / contrast_sensitivity(0.5, 4)
    assert 1.0 - 1e-6 < change <= 1.0


def compared(table, seed, grouped, weighted, hidden):
    """Compare feature sets of a table."""
    X, y, ids, weights = table
    known = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0), "epsilon": 60.0, "delta": 1e-3}
    model = PrivateLinearRegression(
        public_rows=not hidden, inference=True, random_state=seed, **known
    )
    given = given_of(ids, weights, grouped=grouped, weighted=weighted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compare([[0, 1], [1, 2], [0, 1, 2]], X, y, model=model, **given)


@pytest.mark.parametrize(("grouped", "weighted", "hidden"), CASES)
def test_no_person_changes_a_fit_of_classes_by_more_than_its_sensitivity(grouped, weighted, hidden):
    reached = {}
    for seed in range(2):
        fit = partial(classified, panel(seed, 3), seed, grouped, weighted, hidden)
        for name, share in watch(fit).items():
            assert share <= 1.0, (name, seed)
            reached[name] = max(reached.get(name, 0.0), share)
    assert {"curvature", "squares of gradients", "class hits"} <= set(reached)
    assert reached["class hits"] > 0.9


def classified(table, seed, grouped, weighted, hidden):
    """Fit three classes with intervals and scores."""
    X, y, ids, weights = table
    known = {"bounds_X": (-1.0, 1.0), "classes": [0.0, 1.0, 2.0], "epsilon": 90.0, "delta": 1e-3}
    model = PrivateLogisticRegression(
        public_rows=not hidden, inference=True, score_share=0.05, random_state=seed, **known
    )
    given = given_of(ids, weights, grouped=grouped, weighted=weighted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, **given)


def repeated(real):
    """Return layers that count terms twice."""
    return lambda terms, edges, own: 2.0 * real(terms, edges, own)


MUTANTS = {
    "a person counts once for each row": (persons, "person_weights", undivided),
    "a bound of weights that is off by 2": (_input, "row_weights", twice),
    "terms that count twice": (scores, "layers", repeated),
}


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("kind", [PrivateLinearRegression, PrivateLogisticRegression])
def test_mutants_are_caught(name, kind):
    where, function, mutant = MUTANTS[name]
    grouped = name != "a bound of weights that is off by 2"
    X, y, ids, weights = panel(1, 2 if kind is PrivateLogisticRegression else 0)
    model = model_of(kind, 2, hidden=False)
    given = given_of(ids, weights, grouped=grouped, weighted=not grouped)
    asked = {"epsilon": 5.0, "delta": 1e-3, "random_state": 0, **given}
    with mock.patch.object(where, function, mutant(getattr(where, function))):
        found = watch(partial(model.evaluate, X, y, **asked))
    assert max(found.values()) > 1.0


FIT_MUTANTS = {
    **dict(itertools.islice(MUTANTS.items(), 2)),
    "the gradient of a person is not clipped as a whole": (curvatures, "_terms", one_by_one),
    "gradients that are not limited": (curvatures, "_terms", unlimited),
}


@pytest.mark.parametrize("name", FIT_MUTANTS)
def test_mutants_of_comparisons_and_fits_of_classes_are_caught(name):
    where, function, mutant = FIT_MUTANTS[name]
    grouped = name != "a bound of weights that is off by 2"
    with mock.patch.object(where, function, mutant(getattr(where, function))):
        ranked = watch(partial(compared, panel(1), 1, grouped, not grouped, False))
        fitted = watch(partial(classified, panel(1, 3), 1, grouped, not grouped, False))
    assert max(ranked.values()) > 1.0
    assert max(fitted.values()) > 1.0


@pytest.mark.parametrize(("grouped", "weighted"), [each[:2] for each in CASES[::2]])
@pytest.mark.parametrize(("kind", "classes"), MODELS)
def test_hidden_scores_depend_on_their_table_by_their_releases_alone(
    kind, classes, grouped, weighted
):
    """Tables of other sizes, and empty ones, give the same scores from the same releases."""
    model = model_of(kind, classes, hidden=True)
    labels = classes if kind is PrivateLogisticRegression else 0

    def scored(table):
        X, y, ids, weights = table
        given = given_of(ids, weights, grouped=grouped, weighted=weighted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.evaluate(X, y, epsilon=5.0, delta=1e-3, random_state=0, **given)

    with recording() as transcript:
        told = scored(panel(1, labels))
    assert "number of rows" in names(transcript)
    for other in (panel(2, labels, n=30), [each[:0] for each in panel(2, labels)]):
        with replaying(transcript):
            again = scored(other)
        assert (again.n, again.to_dict()) == (told.n, told.to_dict())
