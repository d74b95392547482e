"""Chunks of files: types, schemas, damage; errors name the file and quote no value."""

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from fastmix.data.arrow import file_chunks
from fastmix.errors import DataError, InvalidValueError

N = 100


def table(**columns):
    rng = np.random.default_rng(0)
    return pa.table({"a": rng.random(N), "b": rng.random(N), "y": rng.random(N)} | columns)


def read(chunks):
    parts = [records for chunk in chunks.chunks for records in chunk.read()]
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def test_kinds_of_numbers(tmp_path):
    values = np.arange(N) % 7
    kinds = {
        "i": pa.array(values, pa.int16()),
        "f": pa.array(values.astype(np.float32)),
        "t": pa.array(values > 3),
        "k": pa.array(values.astype(float)).dictionary_encode(),
        "m": pa.array(values).cast(pa.decimal128(21, 2)),
        "h": pa.array(values.astype(np.float16)),
    }
    pq.write_table(table(**kinds), tmp_path / "kinds.parquet", row_group_size=30)
    chunks = file_chunks(tmp_path / "kinds.parquet", "y", list(kinds))
    X, y = read(chunks)
    assert chunks.n == N
    assert X.dtype == np.float64
    for j, name in enumerate(kinds):
        expected = values > 3 if name == "t" else values
        np.testing.assert_array_equal(X[:, j], expected)
    np.testing.assert_array_equal(y, table()["y"].to_numpy())


def test_features_are_all_other_columns_and_only_they_are_read(tmp_path):
    pq.write_table(table(name=["x"] * N), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: column 'name' must hold numbers; it is of"):
        file_chunks(tmp_path / "a.parquet", "y")
    chunks = file_chunks(tmp_path / "a.parquet", "y", ["b"])
    assert (chunks.d, list(chunks.names)) == (1, ["b"])
    pq.write_table(table(), tmp_path / "a.parquet")
    assert list(file_chunks(str(tmp_path / "a.parquet"), "y").names) == ["a", "b"]
    for features in ([], ["a", "a"], ["a", "y"]):
        with pytest.raises(ValueError, match="features must be different columns"):
            file_chunks(tmp_path / "a.parquet", "y", features)


def test_folders_are_read_in_the_order_of_names(tmp_path):
    for k in (2, 0, 1):
        folder = tmp_path / f"day={k}"
        folder.mkdir()
        part = pa.table({"a": [float(k)] * 3, "y": [0.0] * 3})
        pq.write_table(part, folder / "x.parquet")
    pyarrow.feather.write_feather(pa.table({"a": [9.0], "y": [0.0]}), tmp_path / "z.feather")
    (tmp_path / "_metadata.parquet").write_text("no table")
    (tmp_path / "notes.txt").write_text("no table")
    X, _ = read(file_chunks(tmp_path, "y"))
    assert X[:, 0].tolist() == [0.0] * 3 + [1.0] * 3 + [2.0] * 3 + [9.0]
    chosen = [tmp_path / "z.feather", tmp_path / "day=1"]
    assert read(file_chunks(chosen, "y"))[0][:, 0].tolist() == [9.0, 1.0, 1.0, 1.0]


def test_a_schema_that_changes_names_the_file(tmp_path):
    pq.write_table(table(), tmp_path / "0.parquet")
    pq.write_table(table().drop_columns("b"), tmp_path / "1.parquet")
    with pytest.raises(DataError, match=r"^1\.parquet has no column 'b'; it has \['a', 'y'\]\.$"):
        file_chunks(tmp_path, "y")
    pq.write_table(table(b=["61.2345"] * N), tmp_path / "1.parquet")
    with pytest.raises(DataError, match=r"^1\.parquet: column 'b' must hold numbers; it is of typ"):
        file_chunks(tmp_path, "y")
    # Another order, another kind of number and further columns are no change.
    pq.write_table(
        table(b=np.arange(N), c=["x"] * N).select(["c", "y", "b", "a"]), tmp_path / "1.parquet"
    )
    X, _ = read(file_chunks(tmp_path, "y", ["a", "b"]))
    assert X[N:, 1].tolist() == list(range(N))


@pytest.mark.parametrize("column", ["b", "y"])
@pytest.mark.parametrize("at", [0, N - 1])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16(), pa.int8(), pa.bool_()])
def test_missing_values_are_refused_wherever_they_are(tmp_path, column, at, kind):
    """Neither the file nor the column is named: where a value is missing depends on the data."""
    values = [1] * N
    values[at] = None
    pq.write_table(table(**{column: pa.array(values).cast(kind)}), tmp_path / "0.parquet")
    with pytest.raises(InvalidValueError) as caught:
        read(file_chunks(tmp_path, "y"))
    assert str(caught.value) == InvalidValueError.MESSAGE


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("left", [0, 5, 0.3, 0.9])
def test_a_truncated_file_is_named(tmp_path, suffix, left):
    path = tmp_path / f"day.{suffix}"
    write = pq.write_table if suffix == "parquet" else pyarrow.feather.write_feather
    write(table(), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(left * len(content)) if left < 1 else left])
    with pytest.raises(
        DataError, match=rf"^day\.{suffix} is damaged, or not what its name says\.$"
    ):
        read(file_chunks(path, "y"))


def test_damage_inside_a_file_is_named(tmp_path):
    path = tmp_path / "day.parquet"
    pq.write_table(table(), path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[40:600] = bytes(560)
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"^day\.parquet is damaged"):
        read(file_chunks(path, "y"))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match=r"^no\.parquet is not there, or is not a file\.$"):
        file_chunks(tmp_path / "no.parquet", "y")
    with pytest.raises(ValueError, match="path must name Parquet or Arrow files"):
        file_chunks(tmp_path, "y")
    (tmp_path / "a.csv").write_text("a,y\n1,2\n")
    with pytest.raises(DataError, match=r"^a\.csv must end in one of \.parquet, \.arrow"):
        file_chunks(tmp_path / "a.csv", "y")


def test_chunks_are_small_to_send(tmp_path):
    import pickle

    pq.write_table(table(), tmp_path / "a.parquet")
    chunk = pickle.loads(pickle.dumps(file_chunks(tmp_path, "y").chunks[0]))
    assert next(chunk.read())[0].shape == (N, 2)
    assert len(pickle.dumps(chunk)) < 1000
