"""Arrow streams of every kind give the same fit, and every pass the same records."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from fastmix import PrivateLinearRegression
from fastmix.data.chunks import Chunks
from fastmix.data.encode import table_chunks
from fastmix.data.kept import KeptChunk, decoded_once
from fastmix.data.read import read_columns
from fastmix.data.streams import Stream, is_stream, reader_of, stream_of
from fastmix.errors import DataError
from fastmix.schema import Category, Number, PublicBounds

PUBLIC = PublicBounds(Number("y", 0, 10), (Number("a", -1, 1), Category("c", ("x", "z"))))
N = 600


def table(seed=0):
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, N)
    return pa.table({
        "who": rng.integers(0, 200, N).astype(str),
        "a": a,
        "c": rng.choice(["x", "z", "w"], N),
        "y": 5 + 2 * a,
        "w": rng.uniform(0, 1, N),
    })  # fmt: skip


def model():
    return PrivateLinearRegression(epsilon=2.0, delta=1e-6, bounds=PUBLIC, random_state=0)


STREAMS = {
    "reader": lambda t: t.to_reader(max_chunksize=100),
    "lazy": lambda t: pl.from_arrow(t).lazy(),
    "dataset": pa.dataset.dataset,
    "scanner": lambda t: pa.dataset.dataset(t).scanner(),
    "callable": lambda t: lambda: t.to_reader(max_chunksize=70),
    "callable of a frame": lambda t: lambda: pl.from_arrow(t),
    "batch": lambda t: lambda: t.combine_chunks().to_batches()[0],
}


@pytest.mark.parametrize("kind", STREAMS)
def test_every_stream_gives_the_fit_of_the_table_in_chunks(kind, tmp_path):
    pa.parquet.write_table(table(), tmp_path / "t.parquet")
    same = model().fit_parquet(tmp_path / "t.parquet")
    found = model().fit(STREAMS[kind](table()))
    np.testing.assert_allclose(found.coef_, same.coef_, rtol=1e-9)
    assert found.privacy_.epsilon == same.privacy_.epsilon
    assert found.predict(STREAMS[kind](table())).shape == (N,)


@pytest.mark.parametrize("kind", ["reader", "callable"])
def test_ids_and_weights_are_columns_of_the_stream(kind, tmp_path):
    pa.parquet.write_table(table(), tmp_path / "t.parquet")
    beside = {"groups": "who", "sample_weight": "w", "max_rows_per_group": 2, "max_weight": 0.5}
    found = model().fit(STREAMS[kind](table()), **beside)
    same = model().fit_parquet(tmp_path / "t.parquet", **beside)
    public = [{**fit.privacy_.data, "chosen": None} for fit in (found, same)]
    assert public[0] == public[1]
    with pytest.raises(TypeError, match="name of a column"):
        model().fit(STREAMS[kind](table()), groups=table()["who"].to_pylist(), max_rows_per_group=2)


def test_tables_in_memory_are_no_streams():
    t = table()
    for frame in (t, t.to_pandas(), pl.from_arrow(t), {"a": [1]}, np.ones((2, 2)), [[1]]):
        assert not is_stream(frame)


def blocks(chunks: Chunks):
    return [(X.tobytes(), y.tobytes()) for chunk in chunks.chunks for X, y in chunk.read()]


def reopened(*tables, memory=1):
    """Return a stream that gives the next of some tables each time it is opened."""
    left = iter(tables)
    return Stream("X", lambda: reader_of(next(left)), again=True, memory=memory)


def test_a_large_stream_is_opened_for_each_pass_and_must_stay_the_same():
    t = table()
    stream = reopened(t, t, t, t, t)
    chunks = table_chunks(stream, PUBLIC, person="who", memory=0)
    first = blocks(chunks)
    assert stream.reopened
    assert blocks(chunks) == first
    ids = np.concatenate(list(chunks.chunks[0].read_ids()))
    assert ids.tolist() == t["who"].to_pylist()


@pytest.mark.parametrize("other", [table(1), table().slice(1), table().take([1, 0, *range(2, N)])])
def test_a_stream_that_changes_or_is_in_another_order_is_refused(other):
    t = table()
    chunks = table_chunks(reopened(t, t, t, other, other), PUBLIC, person="who", memory=0)
    blocks(chunks)
    with pytest.raises(DataError, match="have changed"):
        blocks(chunks)
    with pytest.raises(DataError, match="have changed"):
        list(chunks.chunks[0].read_ids())


def test_a_stream_that_cannot_be_opened_again_must_fit():
    stream = Stream("X", lambda: reader_of(table().to_reader()), memory=1000)
    with pytest.raises(DataError, match="must fit"):
        table_chunks(stream, PUBLIC)


def test_errors_of_a_stream_are_not_passed_on():
    def broken():
        yield table().to_batches()[0]
        raise ValueError("Rumpelstilzchen")

    reader = pa.RecordBatchReader.from_batches(table().schema, broken())
    with pytest.raises(DataError, match="could not be read") as raised:
        model().fit(reader)
    assert "Rumpel" not in str(raised.value)
    assert raised.value.__context__ is None
    with pytest.raises(DataError, match="Arrow stream"):
        model().fit(lambda: 3)


def test_a_frame_of_objects_is_converted_one_by_one():
    """pandas would find one type for all values of an object column: no stream is made of it."""
    assert not is_stream(pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)}))


def test_records_are_decoded_once_and_are_the_same_bits(tmp_path):
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(table(), path, row_group_size=130)
    plain = table_chunks(path, PUBLIC, memory=0)
    once = decoded_once(table_chunks(path, PUBLIC))
    assert decoded_once(plain) is plain
    assert all(isinstance(chunk, KeptChunk) for chunk in once.chunks)
    first = blocks(once)
    path.unlink()
    assert blocks(once) == first
    assert not any(X.flags.writeable for chunk in once.chunks for X, _ in chunk.read())
    pa.parquet.write_table(table(), path, row_group_size=130)
    assert blocks(plain) == first


def test_fits_are_the_same_bits_with_and_without_memory(tmp_path):
    path = tmp_path / "t.csv"
    pl.from_arrow(table()).write_csv(path)
    found = []
    for memory in (0, 20_000, 1 << 30):
        chunks = table_chunks(path, PUBLIC, memory=memory)
        fit = PrivateLinearRegression(
            epsilon=2.0, delta=1e-6, bounds_X=PUBLIC.feature_bounds(), bounds_y=PUBLIC.ends,
            data_norm=PUBLIC.data_norm, random_state=0,
        ).fit_chunks(chunks)  # fmt: skip
        found.append(fit.coef_.tobytes())
    assert found[0] == found[1] == found[2]


def test_no_more_is_kept_than_the_memory(tmp_path):
    path = tmp_path / "t.csv"
    pl.from_arrow(table()).write_csv(path)
    once = decoded_once(table_chunks(path, PUBLIC, memory=1000))
    first = blocks(once)
    path.write_text(path.read_text().replace("x", "z"))
    assert blocks(once) != first


def test_an_opaque_number_of_a_database_is_a_number():
    kind = pa.opaque(pa.string(), "numeric", "PostgreSQL")
    column = pa.ExtensionArray.from_storage(kind, pa.array(["1.25", None, "NaN"]))
    stream = stream_of(pa.table({"n": column}).to_reader())
    assert stream.fields(None) == {"n": "number"}


@pytest.mark.parametrize("kind", [pa.binary(), pa.list_(pa.int64()), pa.struct([("f", pa.int8())])])
def test_the_declared_type_of_a_category_is_refused_not_a_value(kind):
    """Text that is not valid in one record would stop the fit, and other bytes would not."""
    made = pa.table({"y": [1.0, 2.0], "a": [0.0, 1.0], "c": pa.array([None, None], kind)})
    with pytest.raises(DataError, match=r"column 'c' must hold text.*it is of type"):
        model().fit(made.to_reader())


def test_no_callable_gives_a_frame_whose_types_are_inferred():
    frame = pd.DataFrame({"y": [1.0, 2.0], "a": [0.0, 1.0], "c": np.array(["x", 2], dtype=object)})
    for each in (frame, frame.iloc[:1]):
        with pytest.raises(DataError, match="as it is"):
            model().fit(lambda each=each: each)


@pytest.mark.skipif(not hasattr(pa, "decimal32"), reason="of newer versions of pyarrow")
@pytest.mark.parametrize("kind", ["decimal32", "decimal64"])
def test_narrow_decimals_are_categories(kind):
    codes = pa.array([Decimal("1.50"), Decimal("2.00"), None], getattr(pa, kind)(5, 2))
    stream = stream_of(pa.table({"code": codes}).to_reader())
    assert read_columns(stream, [], {"code": ("2", "1.5")}).codes["code"].tolist() == [1, 0, -2]
