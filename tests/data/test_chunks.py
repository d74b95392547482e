"""Rows in chunks: every pass equals that of the same rows in memory, wherever blocks end."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from fastmix.data import (
    ArrayChunk,
    ArrayRows,
    AugmentedRows,
    Chunk,
    ChunkRows,
    Chunks,
    RowMap,
    Streaming,
    TargetMap,
    chunks,
)
from fastmix.data.arrow import file_chunks
from fastmix.data.chunks import read_ahead
from fastmix.data.dask import Cluster, dask_chunks
from fastmix.errors import DataError, InvalidValueError
from fastmix.sketches import SRHT, KerdockSketch, SparseSketch

N, D = 150, 3
ROW_MAP = RowMap(
    1.2,
    lower=np.full(D, -3.0),
    upper=np.full(D, 2.5),
    center=np.array([0.1, 0.0, -0.3]),
    scale=np.array([1.0, 2.0, 0.5]),
    constant=0.6,
    divisor=1.1,
)
TARGET_MAP = TargetMap(-2.0, 3.0, 0.5, 2.5)
NAMES = ["a", "b", "c"]
EDGES = np.array([0.0, 0.1, 0.5, 1.0])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, D)) * 2.0, rng.standard_normal(N) * 4.0


@pytest.fixture(scope="module")
def dense(data):
    return ArrayRows(data[0], ROW_MAP, data[1], TARGET_MAP)


def in_arrays(data, folder):
    X, y = data
    cuts = [0, 1, 64, 64, 100, N]  # one chunk is empty
    parts = [ArrayChunk(f"part {i}", X[a:b], y[a:b]) for i, (a, b) in enumerate(pairwise(cuts))]
    return Chunks(parts, D)


def as_table(X, y):
    return pa.table([*X.T, y], names=[*NAMES, "y"])


def in_parquet(data, folder):
    X, y = data
    for k, rows in enumerate((slice(0, 90), slice(90, 90), slice(90, N))):
        pq.write_table(as_table(X[rows], y[rows]), folder / f"{k}.parquet", row_group_size=37)
    return file_chunks(folder, "y", NAMES)


def in_arrow(data, folder):
    pyarrow.feather.write_feather(as_table(*data), folder / "all.arrow", chunksize=41)
    return file_chunks(folder / "all.arrow", "y")


def in_dask(data, folder):
    da = pytest.importorskip("dask.array")
    X, y = data
    return dask_chunks(da.from_array(X, chunks=(40, 2)), da.from_array(y, chunks=33))


def in_dask_frame(data, folder):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(as_table(*data).to_pandas(), npartitions=4)
    return dask_chunks(frame[NAMES], frame["y"])


def in_parquet_by_dask(data, folder):
    table = in_parquet(data, folder)
    return Chunks(table.chunks, table.d, table.names, Cluster())


KINDS = [in_arrays, in_parquet, in_arrow, in_dask, in_dask_frame, in_parquet_by_dask]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def table(request, data, tmp_path):
    return request.param(data, tmp_path)


@pytest.fixture(params=[1, 5 * 8 * D, 1 << 20], ids=["blocks of 1", "blocks of 5", "all"])
def rows(request, table, monkeypatch):
    monkeypatch.setattr(chunks, "BLOCK_BYTES", request.param)
    monkeypatch.setattr("fastmix.data.arrow.BLOCK_BYTES", request.param)
    return ChunkRows(table, ROW_MAP, TARGET_MAP)


def test_every_pass_equals_that_in_memory(rows, dense):
    assert (rows.n, rows.d, rows.bound, rows.constant) == (N, D + 1, dense.bound, dense.constant)
    theta = np.array([0.5, -1.0, 2.0, 0.3])
    assert_allclose(rows.gram(), dense.gram(), rtol=1e-12)
    assert_allclose(rows.total(), dense.total(), rtol=1e-12, atol=1e-13)
    for found, expected in zip(rows.moments(), dense.moments(), strict=True):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    assert_allclose(rows.gradient(theta, 0.4), dense.gradient(theta, 0.4), rtol=1e-11, atol=1e-12)
    counts = rows.residual_counts(theta, 0.7, EDGES)
    assert (counts == dense.residual_counts(theta, 0.7, EDGES)).all()
    assert counts.sum() == N
    for sketch in (KerdockSketch(32, N), SparseSketch(10, N, 1), SparseSketch(32, N, 16)):
        draw = sketch.sample(0)
        Z, m_hat = rows.sketch(draw)
        expected, expected_m = dense.sketch(draw)
        assert_allclose(Z, expected, rtol=1e-11, atol=1e-12)
        assert_allclose(rows.apply(draw), expected, rtol=1e-11, atol=1e-12)
        assert m_hat == pytest.approx(expected_m, rel=1e-12)


def test_centred_and_augmented_rows(rows, dense):
    mean = np.array([0.05, -0.1, 0.2, 0.6 / 1.1])
    found, expected = rows.centred(mean), dense.centred(mean)
    assert (found.n, found.d, found.bound) == (expected.n, expected.d, expected.bound)
    assert found.constant == expected.constant == 0.0
    assert_allclose(found.gram(), expected.gram(), rtol=1e-12)
    assert rows.d == D + 1  # as it was
    assert_allclose(AugmentedRows(rows).gram(), AugmentedRows(dense).gram(), rtol=1e-12)


def test_what_needs_memory_is_refused(table):
    rows = ChunkRows(table, ROW_MAP, TARGET_MAP)
    with pytest.raises(ValueError, match="sketch must be 'kerdock' or 'sparse' for data"):
        rows.sketch(SRHT(8, N).sample(0))
    with pytest.raises(ValueError, match="rows must be in memory"):
        next(rows.blocks())


@pytest.mark.parametrize("executor", [Streaming(), Cluster()])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_error_for_a_bad_value_does_not_say_where_it_is(data, executor, bad):
    """A chunk may be one record."""
    X, y = data[0][:4].copy(), data[1][:4].copy()
    parts = [ArrayChunk(f"part {i}", X[i : i + 1], y[i : i + 1]) for i in range(4)]
    for array, at in ((X, (0, 1)), (X, (3, 0)), (y, (0,)), (y, (2,))):
        kept = array[at]
        array[at] = bad
        with pytest.raises(InvalidValueError) as caught:
            ChunkRows(Chunks(parts, D, executor=executor), ROW_MAP, TARGET_MAP)
        assert str(caught.value) == InvalidValueError.MESSAGE
        array[at] = kept


@pytest.mark.parametrize("bad", [None, "0.5", 1j, np.timedelta64(3, "s")])
def test_chunks_of_objects_are_converted_or_refused(data, bad):
    X, y = data[0][:4].astype(object), data[1][:4].astype(object)
    chunks = Chunks([ArrayChunk("part", X, y)], D)
    plain = Chunks([ArrayChunk("part", data[0][:4], data[1][:4])], D)
    found, expected = (ChunkRows(each, ROW_MAP, TARGET_MAP).moments() for each in (chunks, plain))
    assert_allclose(found[0], expected[0])
    assert_allclose(found[1], expected[1])
    for array, at in ((X, (2, 1)), (y, (1,))):
        kept = array[at]
        array[at] = bad
        with pytest.raises(InvalidValueError):
            ChunkRows(chunks, ROW_MAP, TARGET_MAP)
        array[at] = kept


@pytest.mark.parametrize("executor", [Streaming(), Cluster()])
def test_no_rows_at_all(executor):
    for parts in ([], [ArrayChunk("empty", np.empty((0, D)), np.empty(0))]):
        table = Chunks(parts, D, executor=executor)
        rows = ChunkRows(table, ROW_MAP, TARGET_MAP)
        assert (rows.n, rows.table_rows) == (0, 0)
        np.testing.assert_array_equal(rows.joint_moments(), np.zeros((rows.d + 1, rows.d + 1)))


class Growing(Chunk):
    """Has a row more at every reading."""

    name, length = "log", None

    def __init__(self):
        self.size = 10

    def read(self):
        self.size += 1
        yield np.zeros((self.size, D)), np.zeros(self.size)


def test_a_chunk_that_grows_is_noticed():
    rows = ChunkRows(Chunks([Growing()], D), ROW_MAP, TARGET_MAP)
    with pytest.raises(DataError, match=r"^the data have changed while they were being fitted"):
        rows.gram()


class Broken(Chunk):
    name, length = "tape", 5

    def read(self):
        raise OSError("the value 61.2345 cannot be read")


def test_failures_on_workers_are_values_without_data():
    with pytest.raises(DataError) as caught:
        ChunkRows(Chunks([Broken()], D, executor=Cluster()), ROW_MAP, TARGET_MAP)
    assert str(caught.value) == "tape cannot be read: OSError."


def test_progress_is_reported(table):
    heard = []
    rows = ChunkRows(table, ROW_MAP, TARGET_MAP, lambda *told: heard.append(told))
    rows.gram()
    assert heard[0] == ("check", 0.0)
    assert heard[-1] == ("Gram matrix", 1.0)
    for name in ("check", "Gram matrix"):
        parts = [part for told, part in heard if told == name]
        assert parts == sorted(parts)
        assert parts[-1] == 1.0


def test_reading_ahead_keeps_order_and_errors():
    assert list(read_ahead(iter(range(5)))) == list(range(5))
    assert list(read_ahead(iter(()))) == []

    def failing():
        yield 1
        raise DataError("gone")

    ahead = read_ahead(failing())
    assert next(ahead) == 1
    with pytest.raises(DataError, match="gone"):
        next(ahead)


def test_only_a_cluster_reads_blocks_of_a_collection(data):
    table = in_dask(data, None)
    with pytest.raises(ValueError, match="executor must be a Cluster"):
        ChunkRows(Chunks(table.chunks, D), ROW_MAP, TARGET_MAP)


class Spoiling(Chunk):
    """Is good once, and then has a NaN."""

    name, length = "day", 10

    def __init__(self):
        self.readings = 0

    def read(self):
        self.readings += 1
        yield np.full((10, D), 0.0 if self.readings == 1 else np.nan), np.zeros(10)


@pytest.mark.parametrize("row_norm", [1.2, 1e3], ids=["norms are taken", "norms are not taken"])
def test_nothing_comes_of_data_that_spoil(row_norm):
    row_map = replace(ROW_MAP, row_norm=row_norm)
    assert row_map.shortens == (row_norm == 1.2)
    theta = np.ones(D + 1)
    for run in (ChunkRows.gram, ChunkRows.total, lambda rows: rows.gradient(theta, 1.0)):
        rows = ChunkRows(Chunks([Spoiling()], D), row_map, TARGET_MAP)
        with pytest.raises(DataError):
            run(rows)
