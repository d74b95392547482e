"""Defects that were found in rows in chunks, each with the shortest case that shows it."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from fastmix.data import ArrayChunk, ArrayRows, Chunk, ChunkRows, Chunks, RowMap, TargetMap
from fastmix.data.arrow import file_chunks, table_files
from fastmix.data.dask import dask_chunks
from fastmix.data.encode import table_bytes
from fastmix.errors import DataError
from fastmix.schema import Number, PublicBounds
from fastmix.sketches import KerdockSketch

D = 3
BOX = np.full(D, 2.0)
ROW_MAP = RowMap(4.0, lower=-BOX, upper=BOX)
X = np.random.default_rng(0).uniform(-1.0, 1.0, (256, D))
Y = X @ np.array([0.1, 0.2, 0.3])


class Changing(Chunk):
    """Is another table at every reading, and the last one from then on."""

    name, length = "day", None

    def __init__(self, *tables):
        self._tables = list(tables)

    def read(self):
        table = self._tables.pop(0) if len(self._tables) > 1 else self._tables[0]
        for start in range(0, len(table), 100):
            yield table[start : start + 100], np.zeros(len(table[start : start + 100]))


@pytest.mark.parametrize("left", [0, 99, 100, 255])
@pytest.mark.parametrize("others", [0, 1])
def test_a_chunk_that_shrinks_is_noticed(left, others):
    chunks = [Changing(X, X[:left]), *[Changing(X)] * others]
    rows = ChunkRows(Chunks(chunks, D), ROW_MAP, TargetMap())
    with pytest.raises(DataError, match=r"^the data have changed while they were being fitted\.$"):
        rows.gram()


def replaced(value):
    other = X.copy()
    other[5] = value
    return other


@pytest.mark.parametrize(
    "later",
    [replaced(2.0), replaced(np.nan), X[::-1], X + 1e-6],
    ids=["row", "NaN", "order", "all"],
)
def test_data_that_change_after_the_sketch_have_no_distortion(later):
    """The distortion of other rows moves by up to 2 for one record, not by the coherence."""
    draw = KerdockSketch(64, len(X)).sample(0)
    same = ChunkRows(Chunks([Changing(X)], D), ROW_MAP, TargetMap())
    _, expected = ArrayRows(X, ROW_MAP).sketch(draw)
    assert same.sketch(draw)[1] == pytest.approx(expected, rel=1e-12)
    rows = ChunkRows(Chunks([Changing(X, X, later)], D), ROW_MAP, TargetMap())
    with pytest.raises(DataError, match="the data have changed while they were being fitted"):
        rows.sketch(draw)


@pytest.mark.parametrize("k2", [1, 2, 8, 64])
def test_the_probe_of_a_sketch_is_its_first_row(k2):
    n = KerdockSketch(k2, k2).capacity
    draw = KerdockSketch(k2, n).sample(1)
    assert_allclose(draw.probe(0, n), draw.to_dense()[0], rtol=1e-15)
    assert_allclose(draw.probe(n // 2, 1), draw.to_dense()[0, n // 2], rtol=1e-15)


@pytest.mark.parametrize(("width", "length"), [(D - 1, 256), (D + 1, 256), (D, 255)])
def test_a_chunk_of_another_shape_is_refused(width, length):
    chunk = ArrayChunk("part", np.zeros((256, width)), np.zeros(length))
    with pytest.raises(
        DataError, match=r"^the data must have 3 features and a target in each row\.$"
    ):
        ChunkRows(Chunks([chunk], D), RowMap(1.0), TargetMap())


def write(path, table=None):
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table or pa.table({"a": X[:, 0], "y": Y}), path)
    return path


def test_what_a_writer_left_in_a_folder_is_not_read(tmp_path):
    """Else the same records are in the data twice, each with twice its share."""
    for name in ("_temporary", ".checkpoints"):
        write(tmp_path / name / "part.parquet")
    wanted = [write(tmp_path / "A.PARQUET"), write(tmp_path / "part.parquet" / "0.parquet")]
    assert table_files(tmp_path) == wanted


def test_a_folder_may_itself_be_hidden(tmp_path):
    wanted = write(tmp_path / ".data" / "part.parquet")
    assert table_files(wanted.parent) == [wanted]


def test_no_file_is_read_twice(tmp_path):
    file = write(tmp_path / "part.parquet")
    for name, link in (("symbolic", Path.symlink_to), ("hard", Path.hardlink_to)):
        (tmp_path / name).mkdir()
        link(tmp_path / name / "link.parquet", file)
    (tmp_path / "symbolic" / "part.parquet").symlink_to(file)
    twice = [
        [file, file],
        [tmp_path / "x" / ".." / "part.parquet", file],
        [file, tmp_path / "hard"],
        tmp_path / "symbolic",
        tmp_path,
    ]
    for path in twice:
        with pytest.raises(ValueError, match="path must name each file once"):
            file_chunks(path, "y")
    assert file_chunks(tmp_path / "hard", "y").n == len(X)


def test_tables_that_are_not_read_in_chunks_are_left_to_memory(tmp_path):
    """The command line asked for their size, and refused Arrow streams and missing files by it."""
    bounds = PublicBounds(Number("y", -1.0, 1.0), (Number("a", -1.0, 1.0),), "impute")
    table = pa.table({"a": X[:, 0], "y": Y})
    with pa.ipc.new_stream(tmp_path / "stream.arrow", table.schema) as file:
        file.write_table(table)
    for name in ("stream.arrow", "missing.csv", "missing.parquet"):
        assert table_bytes(tmp_path / name, bounds) == 0
    assert table_bytes(write(tmp_path / "part.parquet", table), bounds) == 8 * len(X) * 2


@pytest.fixture
def frame():
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(
        pa.table([*X.T, Y], names=["a", "b", "c", "y"]).to_pandas(), npartitions=3
    )


def gram_of(table):
    return ChunkRows(table, ROW_MAP, TargetMap()).moments()[0]


@pytest.mark.parametrize("name", ["dtype", "chunks", "numblocks", "columns", 7])
def test_columns_may_be_named_like_attributes(frame, name):
    frame = frame.rename(columns={"a": name})
    table = dask_chunks(frame[[name, "b", "c"]], frame["y"])
    assert_allclose(gram_of(table), X.T @ X, rtol=1e-12)
    assert table.names == (None if name == 7 else [name, "b", "c"])


def test_targets_of_float32_frames_are_mapped_in_float64(frame):
    frame = frame.astype(np.float32)
    table = dask_chunks(frame[["a", "b", "c"]], frame["y"])
    target_map = TargetMap(-0.3, 0.4, 0.05, 0.35)
    edges = np.linspace(0.0, 1.0, 40)
    found = ChunkRows(table, ROW_MAP, target_map).residual_counts(np.zeros(D), 0.7, edges)
    exact = ArrayRows(X, ROW_MAP, Y.astype(np.float32).astype(np.float64), target_map)
    assert (found == exact.residual_counts(np.zeros(D), 0.7, edges)).all()


def test_targets_may_be_a_list():
    da = pytest.importorskip("dask.array")
    table = dask_chunks(da.from_array(X, chunks=(100, 2)), list(Y))
    assert_allclose(gram_of(table), X.T @ X, rtol=1e-12)
    with pytest.raises(ValueError, match="y must be passed with X"):
        dask_chunks(da.from_array(X), None)


def test_blocks_of_a_collection_and_other_chunks_do_not_mix():
    """The others were left out without a word."""
    da = pytest.importorskip("dask.array")
    table = dask_chunks(da.from_array(X, chunks=(100, D)), Y)
    mixed = [*table.chunks, ArrayChunk("part", X, Y)]
    with pytest.raises(ValueError, match="chunks must all be blocks of a Dask collection"):
        ChunkRows(Chunks(mixed, D, executor=table.executor), ROW_MAP, TargetMap())


def test_errors_of_the_callers_own_tasks_are_not_quoted():
    da = pytest.importorskip("dask.array")

    def failing(block):
        raise ValueError(f"cannot convert {block[0, 0]}")

    blocks = da.from_array(X, chunks=(100, D)).map_blocks(failing, dtype=float, meta=X[:0])
    with pytest.raises(DataError) as caught:
        ChunkRows(dask_chunks(blocks, Y), ROW_MAP, TargetMap())
    assert str(caught.value) == "blocks of X and y cannot be computed: ValueError."
    assert caught.value.__suppress_context__
