"""Persons on a real cluster: workers hash ids, and a mutant that forgets the key is caught."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from fastmix import PrivateLinearRegression
from fastmix.data import ChunkRows, RowMap, curvatures, persons
from fastmix.data import chunks as data_chunks
from fastmix.data.dask import Cluster, dask_chunks
from fastmix.data.maps import TargetMap
from fastmix.kernels.losses import LinearHuber
from fastmix.releases import CURVATURES
from fastmix.releases.release import Public

da = pytest.importorskip("dask.array")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(300), rng.integers(1, 9, 300)))
    X = rng.uniform(-1, 1, (len(ids), 2))
    return X, np.clip(X @ [0.5, -0.3], -1, 1), ids


def test_a_cluster_fits_the_table(client, table):
    X, y, ids = table
    given = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "random_state": 0}
    counting = {"groups": ids, "max_rows_per_group": 8}
    memory = PrivateLinearRegression(epsilon=3.0, **given).fit(X, y, **counting)
    blocks = da.from_array(X, chunks=(200, 2))
    read = PrivateLinearRegression(epsilon=3.0, **given).fit(blocks, y, **counting)
    np.testing.assert_allclose(read.coef_, memory.coef_, atol=1e-5)


def test_mutant_a_block_with_another_key_is_caught(client, table, monkeypatch):
    X, y, ids = table
    proper = Cluster.hashed

    def forgetful(self, chunks, key):
        return [*proper(self, chunks[:-1], key), *proper(self, chunks[-1:], bytes(32))]

    sums = []
    for method in (proper, forgetful):
        monkeypatch.setattr(Cluster, "hashed", method)
        chunks = dask_chunks(da.from_array(X, chunks=(200, 2)), y, client, groups=ids)
        rows = ChunkRows(chunks, RowMap(2.0), TargetMap(), most_rows=3)
        sums.append(np.bincount(ids, rows.persons.weights).max())
    assert sums[0] <= 1.0
    assert sums[1] > 1.5


def test_mutants_on_a_cluster_are_caught(client, table, monkeypatch):
    """Cap off, weights off: what the workers are sent no longer adds up to one record."""
    X, y, ids = table
    real = persons.person_weights

    def weights_off(*args):
        found = real(*args)
        return replace(found, weights=(found.weights > 0.0).astype(float))

    def cap_off(parts, most_rows, key):
        found = real(parts, 10**6, key)
        sizes = np.rint(1.0 / found.weights)
        return replace(found, weights=1.0 / np.minimum(sizes, most_rows))

    sums = []
    for version in (real, weights_off, cap_off):
        monkeypatch.setattr(persons, "person_weights", version)
        chunks = dask_chunks(da.from_array(X, chunks=(200, 2)), y, client, groups=ids)
        rows = ChunkRows(chunks, RowMap(2.0), TargetMap(), most_rows=3)
        # By what workers add up, not by the weights themselves: one person, all others absent.
        worst = 0.0
        for person in range(20):
            own = np.flatnonzero(ids == person)
            kept = np.zeros(len(ids))
            kept[own] = rows.persons.weights[own]
            alone, only = copy(rows), replace(rows.persons, weights=kept)
            alone._chunks = [
                (chunk, replace(place, persons=only.of_rows(slice(place.start, place.stop))))
                for chunk, place in rows._chunks
            ]
            total = alone.second_moments(np.diag([0.0, 0.0, 1e9]))
            worst = max(worst, float(total[2, 2]))
        sums.append(worst)
    assert sums[0] <= 1.0
    assert sums[1] > 2.0
    assert sums[2] > 2.0


def test_intervals_of_persons_on_a_cluster(client, table):
    """Workers send sums of persons, some of whom have rows on several workers."""
    X, y, ids = table
    most = int(np.bincount(ids).max())
    given = {"epsilon": 10.0, "delta": 1e-6, "random_state": 0, "inference": True}
    model = PrivateLinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), **given)
    counting = {"groups": ids, "max_rows_per_group": most}
    memory = model.fit(X, y, **counting).coef_std_
    read = model.fit(da.from_array(X, chunks=(200, 2)), y, **counting).coef_std_
    np.testing.assert_allclose(read, memory, rtol=1e-3)


def test_weights_of_rows_on_a_cluster(client, table):
    X, y, ids = table
    weights = np.random.default_rng(1).uniform(0, 4, len(ids))
    blocks = da.from_array(X, chunks=(200, 2))
    given = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "random_state": 0}
    counting = {"sample_weight": weights, "max_weight": 2.0}
    memory = PrivateLinearRegression(epsilon=3.0, **given).fit(X, y, **counting)
    read = PrivateLinearRegression(epsilon=3.0, **given).fit(blocks, y, **counting)
    np.testing.assert_allclose(read.coef_, memory.coef_, atol=1e-5)
    chunks = dask_chunks(blocks, y, client, None, weights)
    rows = ChunkRows(chunks, RowMap(2.0), TargetMap(), most_weight=2.0)
    assert rows.n == len(ids)
    np.testing.assert_allclose(rows.persons.weights, np.minimum(weights / 2.0, 1.0), atol=1e-8)


def undivided(real):
    """Count every row of a person as one record."""

    def weights(*given):
        found = real(*given)
        return replace(found, weights=(found.weights > 0.0).astype(float))

    return weights


def doubled(real):
    """Return weights of up to twice their bound."""
    return lambda values, most: 2.0 * real(values, most)


def unlimited(real):
    """Return slopes ten times as large as their limit allows."""

    def terms(*given):
        for own, Z, bends, slopes in real(*given):
            yield own, Z, bends, 10.0 * slopes

    return terms


MUTANTS = {
    "none": None,
    "a person counts once for each row": (persons, "person_weights", undivided),
    "the bound of weights is off by 2": (data_chunks, "row_weights", doubled),
    "gradients of a person are not limited": (curvatures, "_terms", unlimited),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_releases_of_intervals_on_a_cluster_keep_to_their_sensitivities(
    client, table, monkeypatch, name
):
    """By what workers add up for one person alone, of the curvature and squares of gradients."""
    if MUTANTS[name] is not None:
        where, function, mutant = MUTANTS[name]
        monkeypatch.setattr(where, function, mutant(getattr(where, function)))
    X, y, ids = table
    blocks = da.from_array(np.sign(X), chunks=(200, 2))
    chunks = dask_chunks(blocks, np.sign(y), client, ids, np.full(len(ids), 9.0))
    rows = ChunkRows(chunks, RowMap(2.0), TargetMap(), most_rows=8, most_weight=2.0)
    given = {"theta": np.array([3.0, -2.0]), "loss": LinearHuber(0.2, 20.0, 1.0, 3.0)}
    given |= {"transform": 2.0 * np.eye(2), "least": 0.1, "square": 1.5, "weights": None}
    largest = 0.0
    for person in range(10):
        own = replace(rows.persons, weights=np.where(ids == person, rows.persons.weights, 0.0))
        alone = copy(rows)
        alone._chunks = [
            (chunk, replace(place, persons=own.of_rows(slice(place.start, place.stop))))
            for chunk, place in rows._chunks
        ]
        alone.persons = own
        found = CURVATURES.statistic(alone, **given)
        for part, value in zip(CURVATURES.parts, found, strict=True):
            most = part.sensitivity(Public.of(rows), **given)
            largest = max(largest, float(np.linalg.norm(value)) / most)
    assert (largest > 1.0) == (name != "none")
    assert largest > 0.5
