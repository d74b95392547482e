"""Fits of persons on a cluster of two workers: what a person changes in what workers add up.

A fit of a table is recorded. The same fit without one person is handed the same releases, so that
it asks for the same statistics; each must differ by at most its sensitivity. Workers are threads
of this process, so that a flaw that is put into it is theirs, too; it must show. At a released
minimiser the sum of slopes is compared, which the noise of the objective hides up to their limit.
"""

from __future__ import annotations

import itertools
from functools import partial
from unittest import mock

import numpy as np
import pytest

from fastmix.audit.transcript import judging, numbers
from fastmix.data import chunks, curvatures, persons
from fastmix.engine import fit as engine_fit
from fastmix.releases import MINIMISER, SIZE, Noise
from fastmix.releases.objective import _seen
from fastmix.releases.release import Public
from tests.audit.person_cases import (
    MODELS,
    UNITS,
    one_by_one,
    panel,
    released,
    twice,
    undivided,
    unlimited,
)
from tests.audit.test_person_releases import statistics
from tests.transcripts import recording

da = pytest.importorskip("dask.array")


def blocks(X):
    """Return rows in blocks on the cluster; rows of one person are in several."""
    return da.from_array(X, chunks=(max(len(X) // 3, 1), X.shape[1]))


def without_first(table, unit):
    """Return the table without the first record: without rows if hidden, else without weight."""
    X, y, ids, weights = table
    grouped, _, hidden = UNITS[unit]
    others = ids > 0 if grouped else np.arange(len(ids)) > 0
    if hidden:
        return tuple(each[others] for each in table)
    return X, y, ids, np.where(others, weights, 0.0)


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


#: Units in which all models are watched; in those of the flaws below each of them must show.
WATCHED = ("persons, hidden", "weights, hidden", "persons, weights", "persons, weights, hidden")
CASES = [*itertools.product(MODELS, WATCHED)]


@pytest.mark.parametrize(
    ("name", "unit"),
    [pytest.param(*each, marks=[pytest.mark.slow] * (i > 0)) for i, each in enumerate(CASES)],
)
def test_no_person_changes_what_a_cluster_adds_up_by_more_than_its_sensitivity(client, name, unit):
    found = watched(name, unit)
    assert {"slopes", "second moments", "curvature", "squares of gradients"} <= set(found)
    for key, share in found.items():
        assert share <= 1.0, key
    assert found["second moments"] > 0.99
    assert UNITS[unit][2] == (found.get("number of rows") == 1.0)


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * (each != "linear")) for each in MODELS]
)
def test_a_cluster_records_the_releases_of_the_table_in_memory(client, name):
    """With the same noise they are the same numbers, up to points of their grids."""
    table, transcripts = panel(1, MODELS[name][1]), []
    for source in (np.asarray, blocks):
        with recording() as transcript:
            released(name, "persons, weights, hidden", table, source=source)
        transcripts.append(transcript)
    first, second = ([entry.release for entry in each] for each in transcripts)
    assert first == second
    memory, cluster = map(numbers, transcripts)
    np.testing.assert_allclose(cluster, memory, rtol=1e-4, atol=1e-4)


#: Flaws, where they sit, and a unit in which they must show.
MUTANTS = {
    "a person counts once for each row": (persons, "person_weights", undivided, WATCHED[0]),
    "a bound of weights that is off by 2": (chunks, "row_weights", twice, WATCHED[1]),
    "the gradient of a person is not clipped as a whole": (
        *(curvatures, "_terms", one_by_one),
        WATCHED[0],
    ),
    "gradients that are not limited": (curvatures, "_terms", unlimited, WATCHED[2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("flaw", MUTANTS)
@pytest.mark.parametrize("name", MODELS)
def test_mutants_on_a_cluster_are_caught(client, name, flaw):
    where, function, mutant, unit = MUTANTS[flaw]
    with mock.patch.object(where, function, mutant(getattr(where, function))):
        found = watched(name, unit)
    assert max(found.values()) > 1.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "quantile", "two classes"])
def test_a_hidden_number_without_noise_is_noticed_on_a_cluster(client, name):
    """The number is released, and the fit goes on with the true one, which the replay has not."""

    def bare(rows, scale, noise):
        noise.release(SIZE, engine_fit.one_view(rows), sigma=scale)
        return rows

    table = panel(1, MODELS[name][1])
    fit = partial(released, name, "persons, hidden", source=blocks)
    with mock.patch.object(engine_fit, "with_size", bare), recording() as transcript:
        fit(table)
    follower = judging(Noise)[1](np.random.default_rng(0)).follow(transcript, strict=True)
    patch = mock.patch.multiple(Noise, _value=lambda self, *given: follower._value(*given))
    with mock.patch.object(engine_fit, "with_size", bare), patch, pytest.raises(RuntimeError):
        fit(without_first(table, "persons, hidden"))
