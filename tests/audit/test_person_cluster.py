"""Fits of persons on a cluster of two workers: what a person changes in what workers add up.

A fit of a table is recorded. The same fit without one person is handed the same releases, so that
it asks for the same statistics; each must differ by at most its sensitivity. Workers are threads
of this process, so that a flaw that is put into it is theirs, too; it must show. At a released
minimiser the sum of slopes is compared, which the noise of the objective hides up to their limit.
"""

from __future__ import annotations

from functools import partial
from unittest import mock

import numpy as np
import pytest

from fastmix.audit.transcript import judging
from fastmix.data import chunks, curvatures, persons
from fastmix.engine import fit as engine_fit
from fastmix.releases import MINIMISER, SIZE, Noise
from fastmix.releases.objective import _seen
from fastmix.releases.release import Public
from tests.audit.person_cases import MODELS, UNITS, panel, released
from tests.audit.test_person_intervals import twice, undivided, unlimited
from tests.audit.test_person_releases import statistics
from tests.audit.test_person_scores import one_by_one
from tests.transcripts import recording

da = pytest.importorskip("dask.array")


def blocks(X):
    """Return rows in blocks on the cluster; rows of one person are in several."""
    return da.from_array(X, chunks=(max(len(X) // 3, 1), X.shape[1]))


def without_first(table, unit):
    """Return the table without the first person: without rows if hidden, else without weight."""
    X, y, ids, weights = table
    if UNITS[unit][2]:
        return tuple(each[ids > 0] for each in table)
    return X, y, ids, np.where(ids > 0, weights, 0.0)


def asked(entry, rows, public):
    """Yield the name of each statistic of a release, its value and its sensitivity."""
    if entry.release is MINIMISER:
        loss, seen = entry.given["loss"], _seen(rows, entry.given)
        yield "slopes", seen.slopes(entry.value, loss)[0].sum(axis=0), loss.lipschitz
        return
    rest = {name: each for name, each in entry.given.items() if name != "sigma"}
    for part, value in zip(*statistics(entry.release, rows, rest), strict=True):
        yield part.name, value, part.sensitivity(public, **rest)


def watched(name, unit, source=blocks):
    """Return the largest change of each statistic by the first person, over its sensitivity."""
    table = panel(1, MODELS[name][1], alone=not UNITS[unit][0])
    found, real, largest = [], Noise._value, {}

    def first(self, release, rows, public, given):
        value = real(self, release, rows, public, given)
        entry = mock.Mock(release=release, given=given, value=value)
        found.append([*asked(entry, rows, public)])
        return value

    def again(self, release, rows, public, given):
        entry = follower._next(release)
        pairs = zip(next(before), asked(entry, rows, Public.of(rows)), strict=True)
        for (key, whole, most), (_, less, _) in pairs:
            share = float(np.linalg.norm(whole - less)) / most
            largest[key] = max(largest.get(key, 0.0), share)
        return entry.value

    with recording() as transcript, mock.patch.object(Noise, "_value", first):
        released(name, unit, table, source=source)
    before = iter(found)
    follower = judging(Noise)[1](np.random.default_rng(0)).follow(transcript, strict=True)
    with mock.patch.object(Noise, "_value", again):
        released(name, unit, without_first(table, unit), source=source)
    follower.finished()
    return largest


CASES = [
    ("linear", "persons, weights"),
    ("linear", "persons, hidden"),
    ("Huber", "weights, hidden"),
    ("quantile", "persons, hidden"),
    ("two classes", "persons, weights, hidden"),
    ("three classes", "persons, weights"),
]


@pytest.mark.parametrize(
    ("name", "unit"),
    [pytest.param(*each, marks=[pytest.mark.slow] * (i != 1)) for i, each in enumerate(CASES)],
)
def test_no_person_changes_what_a_cluster_adds_up_by_more_than_its_sensitivity(client, name, unit):
    found = watched(name, unit)
    assert {"slopes", "second moments", "curvature", "squares of gradients"} <= set(found)
    for key, share in found.items():
        assert share <= 1.0, key
    assert found["second moments"] > 0.99
    assert UNITS[unit][2] == (found.get("number of rows") == 1.0)


#: Flaws, where they sit, and a unit in which they must show.
MUTANTS = {
    "a person counts once for each row": (persons, "person_weights", undivided, 1),
    "a bound of weights that is off by 2": (chunks, "row_weights", twice, 0),
    "the gradient of a person is not clipped as a whole": (curvatures, "_terms", one_by_one, 1),
    "gradients that are not limited": (curvatures, "_terms", unlimited, 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("flaw", MUTANTS)
def test_mutants_on_a_cluster_are_caught(client, flaw):
    where, function, mutant, case = MUTANTS[flaw]
    with mock.patch.object(where, function, mutant(getattr(where, function))):
        found = watched(*CASES[case])
    assert max(found.values()) > 1.5


@pytest.mark.slow
def test_a_hidden_number_without_noise_is_noticed_on_a_cluster(client):
    """The number is released, and the fit goes on with the true one, which the replay has not."""

    def bare(rows, scale, noise):
        noise.release(SIZE, engine_fit.one_view(rows), sigma=scale)
        return rows

    table = panel(1)
    fit = partial(released, "linear", "persons, hidden", source=blocks)
    with mock.patch.object(engine_fit, "with_size", bare), recording() as transcript:
        fit(table)
    follower = judging(Noise)[1](np.random.default_rng(0)).follow(transcript, strict=True)
    patch = mock.patch.multiple(Noise, _value=lambda self, *given: follower._value(*given))
    with mock.patch.object(engine_fit, "with_size", bare), patch, pytest.raises(RuntimeError):
        fit(without_first(table, "persons, hidden"))
