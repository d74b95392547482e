"""Persons whose rows lie in several files and blocks: the fit of the whole table."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from fastmix import BudgetAccountant, ObjectivePerturbation, PrivateLinearRegression
from fastmix.data import ArrayRows, ChunkRows, Measure, RowMap
from fastmix.data import rows as data_rows
from fastmix.data.arrow import file_chunks
from fastmix.data.chunks import ArrayChunk, Chunks, Streaming
from fastmix.data.maps import TargetMap
from fastmix.errors import DataError
from fastmix.kernels.losses import LinearHuber

KNOWN = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}
SECRET = "Rumpelstilzchen"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(400), rng.integers(1, 9, 400)))
    X = rng.uniform(-1, 1, (len(ids), 2))
    y = np.clip(X @ [0.5, -0.3] + 0.1 * rng.normal(size=len(ids)), -1, 1)
    return X, y, ids


@pytest.fixture
def files(table, tmp_path):
    X, y, ids = table
    whole = pa.table({"a": X[:, 0], "who": ids, "b": X[:, 1], "y": y})
    for i, start in enumerate(range(0, len(ids), 700)):
        part = whole.slice(start, 700)
        pyarrow.parquet.write_table(part, tmp_path / f"{i}.parquet", row_group_size=150)
    return tmp_path


#: A cap that leaves nothing out makes every fit the same.
ALL_ROWS = {"max_rows_per_group": 8}
GIVEN = {"random_state": 0, "epsilon": 3.0, **KNOWN}


@pytest.mark.parametrize("kind", [PrivateLinearRegression, ObjectivePerturbation])
def test_files_are_the_table(kind, table, files):
    X, y, ids = table
    memory = kind(**GIVEN).fit(X, y, groups=ids, **ALL_ROWS)
    read = kind(**GIVEN).fit_parquet(files, groups="who", **ALL_ROWS)
    np.testing.assert_allclose(read.coef_, memory.coef_, atol=1e-5)
    assert read.privacy_.data["n_persons"] == 400
    assert read.privacy_.data["n_samples"] == len(ids)
    assert read.privacy_.spent == memory.privacy_.spent


def rows_of(files, k):
    chunks = file_chunks(files, "y", None, None, "who")
    return ChunkRows(chunks, RowMap(2.0), TargetMap(), most_rows=k)


def test_intervals_of_files_are_those_of_the_table(table, files):
    """The sums of persons were refused where a table came in blocks, after the charge."""
    X, y, ids = table
    given = {**GIVEN, "epsilon": 10.0, "inference": True}
    memory = PrivateLinearRegression(**given).fit(X, y, groups=ids, **ALL_ROWS)
    read = PrivateLinearRegression(**given).fit_parquet(files, groups="who", **ALL_ROWS)
    np.testing.assert_allclose(read.coef_, memory.coef_, atol=1e-5)
    np.testing.assert_allclose(read.coef_std_, memory.coef_std_, rtol=1e-3)


@pytest.mark.parametrize("held", [1, 1000, 1 << 27], ids=["one person", "few", "all"])
@pytest.mark.parametrize("k", [3, 8])
def test_gradients_of_persons_over_blocks(k, held, table, files, monkeypatch):
    """Whatever part of the persons is held at a time, a person's rows are summed before squares."""
    X, y, ids = table
    monkeypatch.setattr(data_rows, "_PERSON_BYTES", held)
    rows = rows_of(files, k)
    rows = ChunkRows.measured(rows, Measure(np.eye(2), 0.1))
    theta, loss = np.array([0.3, 0.9]), LinearHuber(0.2, 30.0, 1.0, 2.0)
    if held == 1:
        few = rows.persons.codes < 20
        weights = np.where(few, rows.persons.weights, 0.0)
        rows.persons = replace(rows.persons, weights=weights, count=20)
        for i, (chunk, place) in enumerate(rows._chunks):
            own = rows.persons.of_rows(slice(place.start, place.stop))
            rows._chunks[i] = chunk, replace(place, persons=own)
    _, squares = rows.curvatures(theta, loss, np.eye(2), 1.0, least=0.1)
    A = np.asarray(RowMap(2.0)(X))
    lengths = np.maximum(np.linalg.norm(A, axis=1), 0.1)
    slopes = rows.persons.weights * loss.slope(y - A @ theta, lengths)
    sums = pd.DataFrame(slopes[:, None] * A).groupby(ids).sum().to_numpy()
    np.testing.assert_allclose(squares, sums.T @ sums, rtol=1e-9)
    assert len(sums) == 400


class Owned(ArrayChunk):
    """Records in memory, with ids."""

    def read_ids(self):
        yield self.ids


def owned(name, X, y, ids):
    chunk = Owned(name, X, y)
    object.__setattr__(chunk, "ids", ids)
    return chunk


def test_a_chunk_may_have_no_rows(table):
    X, y, ids = table
    parts = [slice(0, 0), slice(0, 5), slice(5, 5), slice(5, None)]
    chunks = [owned(str(i), X[p], y[p], ids[p]) for i, p in enumerate(parts)]
    rows = ChunkRows(Chunks(chunks, 2, grouped=True), RowMap(2.0), TargetMap(), most_rows=8)
    rows = rows.measured(Measure(np.eye(2), 0.1))
    loss = LinearHuber(0.2, 30.0, 1.0, 2.0)
    whole = ArrayRows(X, RowMap(2.0), y, persons=rows.persons).measured(Measure(np.eye(2), 0.1))
    found = rows.curvatures(np.zeros(2), loss, np.eye(2), 1.0, least=0.1)
    wanted = whole.curvatures(np.zeros(2), loss, np.eye(2), 1.0, least=0.1)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_progress_does_not_tell_how_many_persons_there_are(table, monkeypatch):
    """How many passes sum the gradients of persons depends on their number, which may be hidden."""
    X, y, ids = table
    monkeypatch.setattr(data_rows, "_PERSON_BYTES", 1000)
    told = []
    for n in (0, 1, len(ids)):
        seen = []
        chunks = Chunks([owned("X", X[:n], y[:n], ids[:n])], 2, grouped=True)
        heard = partial(lambda heard, *given: heard.append(given), seen)
        rows = ChunkRows(chunks, RowMap(2.0), TargetMap(), heard, 8)
        rows = rows.measured(Measure(np.eye(2), 0.1))
        loss = LinearHuber(0.2, 30.0, 1.0, 2.0)
        curvature, squares = rows.curvatures(np.zeros(2), loss, np.eye(2), 1.0, least=0.1)
        assert curvature.shape == squares.shape == (2, 2)
        told.append([name for name, part in seen if part == 1.0])
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize("k", [1, 3, 8])
def test_weights_over_files(k, table, files):
    _, _, ids = table
    rows = rows_of(files, k)
    assert rows.n == 400
    for person in range(400):
        own = rows.persons.weights[ids == person]
        assert (own > 0).sum() == min(k, len(own))
        assert own.sum() == pytest.approx(1.0)


def test_every_pass_uses_the_weights(table, files):
    X, y, _ = table
    rows = rows_of(files, 3)
    w = rows.persons.weights
    gram, moment = rows.moments()
    np.testing.assert_allclose(gram, (X * w[:, None]).T @ X, atol=1e-10)
    np.testing.assert_allclose(moment, X.T @ (w * y), atol=1e-10)
    assert rows.target_total() == pytest.approx(w @ y)
    Z = np.column_stack([X, y]) / 2.0
    np.testing.assert_allclose(
        rows.second_moments(np.eye(3) / 2.0), (Z * w[:, None]).T @ Z, atol=1e-9
    )
    np.testing.assert_allclose(rows.total(), w @ X, atol=1e-9)
    for refused in (rows.gram, lambda: rows.gradient(np.zeros(2), 1.0)):
        with pytest.raises(ValueError, match="rows with weights"):
            refused()


def test_mutant_ids_that_one_block_ignores_are_caught(table, files, monkeypatch):
    """Sums of weights of a person tell that a block took its rows for somebody else's."""
    _, _, ids = table
    proper = Streaming.hashed

    def forgetful(self, chunks, key):
        parts = proper(self, chunks, key)
        return [*parts[:-1], *proper(self, chunks[-1:], bytes(32))]

    monkeypatch.setattr(Streaming, "hashed", forgetful)
    rows = rows_of(files, 3)
    sums = np.bincount(ids, rows.persons.weights)
    assert sums.max() > 1.5
    assert rows.n > 400


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5] * 10),
        pa.array([None, *range(9)]),
        pa.array([SECRET, "", *"abcdefgh"]),
        pa.array([SECRET, None, *"abcdefgh"]),
        pa.array([True, False] * 5),
        pa.array([b"a"] * 10),
    ],
)
def test_bad_ids_in_files_are_refused_before_a_charge(column, tmp_path):
    file = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(
        pa.table({"a": np.zeros(10), "y": np.zeros(10), "who": column}), file
    )
    budget = BudgetAccountant(10.0, 1e-3)
    model = PrivateLinearRegression(accountant=budget, **KNOWN)
    with pytest.raises(DataError, match="groups must hold an id") as caught:
        model.fit_parquet(file, groups="who", max_rows_per_group=2)
    assert SECRET not in str(caught.value)
    assert len(budget) == 0


def test_files_must_agree_on_the_kind_of_ids(tmp_path):
    for i, ids in enumerate([pa.array([1, 2]), pa.array(["1", "2"])]):
        part = pa.table({"a": np.zeros(2), "y": np.zeros(2), "who": ids})
        pyarrow.parquet.write_table(part, tmp_path / f"{i}.parquet")
    with pytest.raises(DataError, match="groups must hold an id"):
        PrivateLinearRegression(**KNOWN).fit_parquet(tmp_path, groups="who", max_rows_per_group=2)


def test_a_column_of_ids_without_a_cap(files):
    with pytest.raises(ValueError, match="max_rows_per_group must be given"):
        PrivateLinearRegression(**KNOWN).fit_parquet(files, groups="who")
    with pytest.raises(ValueError, match="must be None without groups"):
        PrivateLinearRegression(**KNOWN).fit_parquet(files, max_rows_per_group=2)
    with pytest.raises(DataError, match="no column 'whom'"):
        PrivateLinearRegression(**KNOWN).fit_parquet(files, groups="whom", max_rows_per_group=2)


# --- Dask ----------------------------------------------------------------------------------------


def test_dask_arrays_and_frames_are_the_table(table):
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    X, y, ids = table
    memory = PrivateLinearRegression(**GIVEN).fit(X, y, groups=ids, **ALL_ROWS)
    blocks = da.from_array(X, chunks=(333, 2))
    targets = da.from_array(y, chunks=333)
    names = np.array([f"{SECRET}-{i}" for i in ids], dtype=object)
    for groups in (ids, da.from_array(ids, chunks=100), names):
        read = PrivateLinearRegression(**GIVEN).fit(blocks, targets, groups, **ALL_ROWS)
        np.testing.assert_allclose(read.coef_, memory.coef_, atol=1e-5)
        assert read.privacy_.data["n_persons"] == 400
    frame = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "who": names}), 4)
    read = PrivateLinearRegression(**GIVEN)
    read.fit(frame[["a", "b"]], frame["y"], frame["who"], **ALL_ROWS)
    np.testing.assert_allclose(read.coef_, memory.coef_, atol=1e-5)
    budget = BudgetAccountant(10.0, 1e-3)
    with budget:
        for bad in (np.full(len(ids), np.nan), np.where(ids > 3, None, "a"), ids[1:]):
            with pytest.raises(ValueError, match="groups must"):
                PrivateLinearRegression(**GIVEN).fit(blocks, targets, bad, **ALL_ROWS)
    assert len(budget) == 0
