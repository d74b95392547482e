"""What counts as a number, in every container."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from fastmix.errors import DataError, InvalidValueError
from fastmix.schema.values import as_reals, check_finite, column_labels, object_columns

NUMBERS = [True, 2, 0.5, np.float32(0.25), np.int8(3), np.True_, Decimal("0.5"), Fraction(1, 4)]


def test_numbers_of_all_kinds():
    expected = [1.0, 2.0, 0.5, 0.25, 3.0, 1.0, 0.5, 0.25]
    for values in (NUMBERS, tuple(NUMBERS), np.array(NUMBERS, object), pd.Series(NUMBERS)):
        found = as_reals("y", values)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_of_floats_are_not_copied(dtype):
    X = np.ones((4, 2), dtype)
    assert as_reals("X", X) is X
    frame = pd.DataFrame(X, columns=["a", "b"])
    assert np.shares_memory(as_reals("X", frame), frame.to_numpy())


def test_lists_and_objects_are_converted_once():
    """What is checked is what is used, whatever happens to the original later."""
    for values in ([1.0, 2], np.array([1.0, 2], object)):
        found = as_reals("y", values)
        values[0] = "text"
        np.testing.assert_array_equal(found, [1.0, 2.0])


BAD = [
    None, "0.5", b"0.5", 1j, 10**400, Decimal("sNaN"), object(), [0.5], np.array([0.5]),
    datetime.datetime(2020, 1, 1), np.datetime64("NaT"), np.timedelta64(3, "s"), pd.NaT, pd.NA,
    np.ma.masked,
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_what_is_not_a_number(bad):
    for at in (0, 2):
        values = [1.0, 2.0, 3.0]
        values[at] = bad
        array = np.empty(3, dtype=object)
        for i, value in enumerate(values):
            array[i] = value
        for data in (values, tuple(values), array):
            with pytest.raises(InvalidValueError) as caught:
                check_finite(as_reals("y", data))
            assert str(caught.value) == InvalidValueError.MESSAGE
            assert caught.value.__context__ is None


def test_what_overflows_is_infinite():
    for values in (
        np.array([np.longdouble("1e4000")]),
        [Decimal("1e4000")],
        [np.longdouble("1e4000")],
    ):
        with pytest.raises(InvalidValueError):
            check_finite(as_reals("y", values))


def test_masked_values_are_missing():
    array = np.ma.MaskedArray([[1.0, 2.0], [3.0, 4.0]], mask=[[False, False], [False, True]])
    for data in (array, list(array), array.astype(object), array.astype(int)):
        with pytest.raises(InvalidValueError):
            as_reals("X", data)
    array.mask = False
    np.testing.assert_array_equal(as_reals("X", array), [[1.0, 2.0], [3.0, 4.0]])


NULLABLE = {
    "Int64": pd.array([1, None], dtype="Int64"),
    "Float64": pd.array([1.0, None], dtype="Float64"),
    "boolean": pd.array([True, None], dtype="boolean"),
    "pandas on Arrow": pd.array([1, None], dtype="int64[pyarrow]"),
    "category": pd.Series([1.0, None]).astype("category"),
    "Polars": pl.Series([1, None]),
    "Polars bool": pl.Series([True, None]),
    "Polars null": pl.Series([None, None]),
    "Arrow": pa.array([1, None]),
    "Arrow bool": pa.array([True, None]),
    "Arrow decimal": pa.array([Decimal("1.5"), None]),
    "Arrow dictionary": pa.array([1.5, None]).dictionary_encode(),
    "Arrow chunks": pa.chunked_array([[1.0], [None]]),
}


@pytest.mark.parametrize("kind", NULLABLE)
def test_missing_values_of_nullable_columns(kind):
    values = NULLABLE[kind]
    with pytest.raises(InvalidValueError):
        check_finite(as_reals("y", values))
    if "null" not in kind:
        assert as_reals("y", values[:1]) in (1.0, 1.5)


@pytest.mark.parametrize(
    ("dtype", "what"),
    [("datetime64[s]", "dates"), ("timedelta64[s]", "time spans"), (complex, "complex numbers"),
     (str, "text"), (bytes, "bytes"), ("i4,f8", "records")],
)  # fmt: skip
def test_the_type_of_an_array_is_named(dtype, what):
    with pytest.raises(
        ValueError, match=rf"^X must hold real numbers; got an array that holds {what}"
    ):
        as_reals("X", np.zeros(5, dtype=dtype))


def test_the_length_of_text_is_not_told():
    messages = set()
    for text in ("a", "much longer"):
        with pytest.raises(ValueError, match="text") as caught:
            as_reals("X", np.array([[text]]))
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_columns_are_named_by_their_type():
    when = [datetime.date(2020, 1, 1)] * 2
    table = {"a": [1.0, 2.0], "b": ["x", "y"], "c": when}
    tables = [
        pd.DataFrame(table).astype({"c": "datetime64[s]"}),
        pd.DataFrame(table).astype({"b": "string", "c": "datetime64[s]"}),
        pl.DataFrame(table),
        pa.table(table),
        pa.RecordBatch.from_pydict(table),
    ]
    for each in tables:
        assert column_labels(each) == ["a", "b", "c"]
        with pytest.raises(ValueError, match=r"X\['b' \(text\), 'c' \(dates\)\]\.$"):
            as_reals("X", each)
    assert column_labels(np.ones((2, 2))) is None
    assert object_columns(pd.DataFrame(table, dtype=object)) == ["a", "b", "c"]


def test_sparse_data_are_refused():
    with pytest.raises(TypeError, match="Sparse data were passed as X"):
        as_reals("X", csr_array(np.eye(3)))


def test_the_error_survives_pickling():
    error = pickle.loads(pickle.dumps(InvalidValueError()))
    assert str(error) == InvalidValueError.MESSAGE
    assert isinstance(error, DataError)
    assert isinstance(error, TypeError)
