"""One record decides nothing about the others in fits, predictions, scores and pipelines."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from fastmix import PrivateLinearRegression, PrivateLogisticRegression, PublicEncoder
from fastmix.data import LabelMap
from fastmix.data.frames import frame_columns
from fastmix.data.persons import InvalidGroupError, hash_ids
from fastmix.data.read import read_columns
from fastmix.errors import DataError
from fastmix.estimators._labels import codes
from fastmix.schema import Labels, PublicBounds
from fastmix.schema.elements import MISSING, UNLISTED, PublicList, days, real
from fastmix.schema.values import as_reals

N = 300
FAR = 10**15

#: Codes of the records, the public list, and what one record is changed to.
CASES = {
    "decimals": ([Decimal(1), Decimal(2), Decimal(3)], [1, 2, 3], Decimal("1.5")),
    "integers and a decimal": ([1, 2, 3], [1, 2, 3], Decimal("1.5")),
    "integers and the same decimal": ([1, 2, 3], [1, 2, 3], Decimal("3.0")),
    "large integers and a float": ([FAR, FAR + 1, FAR + 2], [FAR, FAR + 1, FAR + 2], 0.5),
    "single precision": (list(map(np.float32, [0.1, 0.3, 2])), ["0.1", "0.3", "2"], 0.7),
    "text": (["1", "2", "3"], [1, 2, 3], Decimal("1.5")),
    "integers and a list": ([1, 2, 3], [1, 2, 3], [1, 2]),
    "integers and text": ([1, 2, 3], [1, 2, 3], "Rom"),
}
FORMS = {
    "pandas": lambda code, y: pd.DataFrame({"code": pd.Series(code, dtype=object), "y": y}),
    "dict": lambda code, y: {"code": code, "y": y},
    "polars": lambda code, y: pl.DataFrame({"code": pl.Series(code, dtype=pl.Object), "y": y}),
}


def tables(form, case):
    """Return bounds, a table, and the same table with one record changed."""
    values, listed, odd = CASES[case]
    code = [values[i % 3] for i in range(N)]
    y = 10.0 * (np.arange(N) % 3 == 1)
    public = {
        "target": {"y": (0, 20)},
        "features": {"code": {"categories": list(map(_level, listed))}},
    }
    return public, FORMS[form](code, y), FORMS[form]([*code[:-1], odd], y)


def _level(value):
    return value if isinstance(value, (int, str)) else str(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", FORMS)
def test_one_code_of_another_type(form, case):
    public, table, changed = tables(form, case)
    encoder = PublicEncoder(bounds=public["features"], drop_first=False)
    rows, others = encoder.fit_transform(table), encoder.fit(changed).transform(changed)
    np.testing.assert_array_equal(rows[:, :3], np.eye(3)[np.arange(N) % 3])
    np.testing.assert_array_equal(rows[:-1], others[:-1])
    given = {"epsilon": math.inf, "bounds": public}
    model = PrivateLinearRegression(**given).fit(table)
    other = PrivateLinearRegression(**given).fit(changed)
    assert model.coef_[0] == pytest.approx(10.0, abs=1e-6)
    assert other.coef_[0] == pytest.approx(10.0, abs=1e-6)
    np.testing.assert_array_equal(model.predict(table)[:-1], model.predict(changed)[:-1])
    for data in (table, changed):
        assert model.evaluate(data, epsilon=1e5, delta=1e-6)["r2"] > 0.95


@pytest.mark.parametrize("form", ["list", "tuple", "pandas", "polars", "array"])
def test_labels_of_text_beside_decimals(form):
    features = PublicBounds.from_dict({"target": {"y": [0, 1]}, "features": {"a": [0, 1]}}).features
    public = PublicBounds(Labels("y", ("1", "2", "Ulm")), features)
    y = ["Ulm", Decimal(1), "1", 2, Decimal("2.0"), Decimal("1.5"), None]
    forms = {
        "list": list,
        "tuple": tuple,
        "pandas": lambda y: pd.Series(y, dtype=object),
        "polars": lambda y: pl.Series(y, dtype=pl.Object),
        "array": lambda y: np.array(y, dtype=object),
    }
    found = frame_columns({"a": np.zeros(len(y))}, public, forms[form](y)).codes["y"]
    assert found.tolist() == [2, 0, 0, 1, 1, UNLISTED, MISSING]
    for i, value in enumerate(y):
        alone = frame_columns({"a": np.zeros(1)}, public, forms[form]([value])).codes["y"]
        assert alone[0] == found[i]


def test_labels_in_a_list_beside_text():
    """NumPy makes text of a number that stands beside text."""
    classes = np.array(["1", "2"])
    assert codes([1, 2, "1"], classes).tolist() == [-1, -1, 0]
    assert codes([1, 2, 1], classes).tolist() == [-1, -1, -1]
    assert codes(["1", "2", ["1"]], classes).tolist() == [0, 1, -1]
    assert codes(("2", None, b"1"), classes).tolist() == [1, -1, -1]


@pytest.mark.parametrize("width", [np.float16, np.float32, np.float64])
def test_labels_with_decimals_in_every_precision(width, tmp_path):
    known = np.array([0.1, 0.3, 2.0, 16_777_217.0])
    y = np.array([0.3, 0.1, 2.0, 0.2, np.nan, np.inf], dtype=width)
    expected = [1, 0, 2, -1, -1, -1]
    assert codes(y[:4], known).tolist() == expected[:4]
    assert Labels("y", tuple(known)).places(y).tolist() == expected
    signs = LabelMap(known, np.ones(4), own=1)(y.astype(np.float64)).y
    assert signs.tolist() == [1, -1, -1, 0, 0, 0]
    # Integers are compared exactly: this is the next one in single precision.
    assert codes(np.array([16_777_216.0]), known).tolist() == [-1]
    listed = {"y": ["0.1", "0.3", "2"]}
    assert frame_columns_of(y, listed["y"]) == [1, 0, 2, UNLISTED, MISSING, UNLISTED]
    if width is not np.float16:
        pyarrow.parquet.write_table(pa.table({"y": y}), tmp_path / "t.parquet")
        found = read_columns(tmp_path / "t.parquet", [], listed).codes["y"]
        assert found.tolist() == [1, 0, 2, UNLISTED, MISSING, UNLISTED]


def frame_columns_of(values, listed):
    entries = {"target": {"t": [0, 1]}, "features": {"y": {"categories": listed}}}
    public = PublicBounds.from_dict(entries)
    return frame_columns({"y": values}, public, target=False).codes["y"].tolist()


@pytest.mark.parametrize(
    "kind", [pa.decimal128(12, 4), pa.decimal256(50, 2), pa.float32(), pa.int16(), pa.uint64()]
)
def test_declared_numbers_match_codes(kind, tmp_path):
    values = pa.array([Decimal(1), Decimal(2), None, Decimal(7)], pa.decimal128(12, 4)).cast(kind)
    pyarrow.parquet.write_table(pa.table({"y": values}), tmp_path / "t.parquet")
    found = read_columns(tmp_path / "t.parquet", [], {"y": ["1", "2"]})
    assert found.codes["y"].tolist() == [0, 1, MISSING, UNLISTED]
    found = read_columns(tmp_path / "t.parquet", ["y"], {})
    np.testing.assert_array_equal(found.numbers["y"], [1, 2, np.nan, 7])
    assert frame_columns_of(values, [1, 2]) == [0, 1, MISSING, UNLISTED]


def test_spellings_of_one_number():
    listed = PublicList.of(
        ["1.0", "1", "007", "0.50", "0.5", "1e3", "-0", "1_0", "nan", "inf", "1e-400"]
    )
    numbers = [1, 1.0, 7, 0.5, 1000, 0, 10, math.inf, 10**400, Decimal("1e999999999")]
    assert [listed.place(each) for each in numbers] == [1, 1, -1, 4, 5, 6, -1, -1, -1, -1]
    assert [listed.place(each) for each in ("1.0", "007", "nan", "7")] == [0, 2, 8, -1]
    assert listed.place(Decimal("1.00000000000000000000000000001")) == UNLISTED
    assert listed.place(math.nan) == MISSING


class Hostile(float):
    """A number that refuses to be one."""

    def fail(self, *_):
        raise RuntimeError("asked")

    __eq__ = __ne__ = __hash__ = __str__ = __repr__ = __float__ = __bool__ = __gt__ = fail


def test_hostile_objects_are_missing_or_not_listed():
    listed = PublicList.of(["1", "2"])
    assert listed.place(Hostile(1.0)) == UNLISTED
    assert math.isnan(real(Hostile(1.0)))
    assert math.isnan(days(Hostile(1.0)))
    assert real(10**400) == math.inf
    assert real(Fraction(-(10**400), 3)) == -math.inf


def test_lists_of_numbers_are_stored_alike():
    rows = [[np.float32(0.1), np.float32(0.2)], [np.float32(0.3), np.float32(0.4)]]
    changed = [rows[0], [0.3, 0.4]]
    first, second = as_reals("X", rows), as_reals("X", changed)
    assert first.dtype == second.dtype == np.float64
    np.testing.assert_array_equal(first[0], second[0])
    parts = [np.array(row, np.float32) for row in rows]
    assert as_reals("X", parts).dtype == np.float64


@pytest.mark.parametrize("form", [list, lambda ids: np.array(ids, object), pd.Series, pl.Series])
def test_ids_do_not_depend_on_other_ids(form):
    key = bytes(32)
    ids = [1, 2, 3, 2**53 - 1, 5]
    first = hash_ids(form(ids), key).hashes
    for odd in (7, 2.0, Hostile(1.0), Decimal(9), None, 0.5, "x", math.nan, 10**30, [1], b"1"):
        try:
            second = hash_ids(form([*ids[:-1], odd]), key).hashes
        except (InvalidGroupError, TypeError, OverflowError):
            continue  # a table cannot hold it, or the fit refuses it
        np.testing.assert_array_equal(first[:-1], second[:-1])


@pytest.mark.filterwarnings("ignore")
def test_decimal_labels_are_fitted():
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 1, 400)
    flag = (a > 0.5).astype(int).tolist()
    public = {"target": {"flag": {"labels": ["0", "1"]}}, "features": {"a": [0, 1]}}
    given = {"epsilon": math.inf, "bounds": public}
    expected = PrivateLogisticRegression(**given).fit({"a": a}, list(map(str, flag)))
    for y in ([*map(Decimal, flag)], flag, [*map(Decimal, flag[:-1]), str(flag[-1])]):
        found = PrivateLogisticRegression(**given).fit({"a": a}, y)
        np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[1], [2]]),
        pl.Series([{"a": 1}, {"a": 2}]),
        pa.array([[1], None]),
        pa.array([b"1", b"2"]),
        np.array([b"1", b"2"], dtype="V1"),
        np.array([1, 2], dtype="m8[s]"),
    ],
)
def test_nested_and_other_declared_types_are_refused(column):
    """By the type alone: the same error for all values."""
    for values in (column, column[:1]):
        with pytest.raises(DataError, match=r"must hold categories|cannot read"):
            frame_columns_of(values, [1, 2])


def test_bytes_that_are_no_text():
    for last in (b"Ulm", b"\xff"):
        found = frame_columns_of(np.array([b"Ulm", b"Bonn", last]), ["Ulm", "Bonn"])
        assert found[:2] == [0, 1]
    assert found[2] == UNLISTED


@pytest.mark.parametrize("odd", ["Rom", 2.5, None, pd.Timestamp("2020-01-01")])
@pytest.mark.parametrize("kind", [pd.Timestamp("2020-01-01"), "text", 1, True])
def test_the_type_of_categories_decides_nothing(kind, odd):
    """Pandas takes it from the values, so that one of them decides for all records."""
    bounds = {"target": {"y": [0, 1]}, "features": {"code": ["1", "true", "text"], "n": [0, 9]}}
    public = PublicBounds.from_dict(bounds)
    made = []
    for values in ([kind] * 3, [kind, kind, odd]):
        column = pd.Series(values, dtype=object).astype("category")
        frame = pd.DataFrame({"code": column, "n": column})
        found = frame_columns(frame, public, target=False)
        made.append((found.codes["code"][:2].tolist(), found.numbers["n"][:2].tolist()))
    np.testing.assert_equal(made[0], made[1])


def test_masked_labels_are_absent():
    for dtype in ("U1", object):
        y = np.ma.array(np.array(["a", "b", "b"], dtype), mask=[False, False, True])
        np.testing.assert_array_equal(codes(y, np.array(["a", "b"])), [0, 1, -1])
    with pytest.raises(ValueError, match="y must hold text"):
        codes(np.ma.array([1, 2], mask=[False, True]), np.array(["a", "b"]))
