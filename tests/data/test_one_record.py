"""One record decides nothing about the others: every kind of table, one record changed."""

from __future__ import annotations

import csv
import datetime
import math
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastmix.data.delimited import TextFormat
from fastmix.data.encode import complete, encode, needed, table_chunks
from fastmix.data.frames import frame_columns
from fastmix.data.read import read_columns
from fastmix.data.streams import stream_of
from fastmix.schema import Category, Labels, Number, PublicBounds

START = datetime.date(2000, 1, 1)
CODES = ("1", "2", "3", "0.1", "2.5", str(10**15), str(2**53 + 1), str(10**30), "true")
WORDS = ("Ulm", "Bonn", "1", "2.0", "false", "0.3")
FEATURES = (
    Category("code", CODES),
    Category("word", WORDS, markers=("Rom",)),
    Number("amount", -5, 5, 1.5, markers=("NR", "2.5")),
    Number("day", 0, 9000, 7, since=START),
)
TARGETS = (
    Number("y", 0, 10, markers=("NR", "1")),
    Labels("y", ("1", "2", "Ulm", "true"), markers=("Bonn",)),
    Labels("y", (0.1, 0.3, 2.0), markers=("NR",)),
)


class Hostile:
    """An object that refuses every question but its name, which a failing test prints."""

    def __repr__(self):
        return "Hostile()"

    def fail(self, *_):
        raise RuntimeError("asked")

    __eq__ = __hash__ = __str__ = __float__ = __bool__ = __len__ = fail
    __iter__ = __array__ = fail


SMALL = [0, 1, 2, 3, -1, 0.1, 0.3, 2.0, 2.5, 0.5, 1e15, -0.0, np.float32(0.1), np.float32(2.5)]
SMALL += [np.float16(0.1), np.int8(2), np.uint64(3), np.float64(0.3)]
EXACT = [Decimal(1), Decimal("1.5"), Decimal("2.00"), Decimal("0.1"), Fraction(1, 10), Fraction(2)]
LARGE = [10**15, 10**15 + 1, 2**53, 2**53 + 1, float(2**53), 10**18 + 1, 10**30, -(2**63)]
TEXT = ["Ulm", "Bonn", "Rom", "1", "1.0", "2", "2.0", "0.1", "true", "false", "", " 1", "nan"]
ABSENT = [None, math.nan]
DAYS = [START, datetime.date(1960, 5, 17), datetime.datetime(2010, 6, 1, 13, 30, 1, 500_000)]
DAYS += [datetime.datetime(1969, 12, 31, 23, 59, 59, 1), datetime.datetime(2024, 2, 29)]
ZONED = datetime.datetime(2010, 6, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
ODD = [*ABSENT, pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64(1, "s"), True, False, ZONED]
ODD += [np.bool_(True), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), math.inf, 10**400]
ODD += [Decimal("1e999999999"), [1], (1, 2), {"a": 1}, {1}, 1j, b"1", b"\xff", np.array([1, 2])]
ODD += [np.array(1), "\ud800", np.str_("Ulm"), Hostile(), object(), int, pd.Timestamp("2010-06-01")]
ODD += [np.datetime64("2010-06-01T12"), np.longdouble("0.1"), -(10**400), Fraction(10**400, 3)]
ANY = [*SMALL, *EXACT, *LARGE, *TEXT, *DAYS, *ODD]
#: Values that a typed column holds, by the type that it declares.
TYPED = {
    "int8": [0, 1, 2, 3, -1, None],
    "uint64": [0, 1, 2, 3, 10**15, 2**53 + 1, 2**64 - 1, None],
    "int64": [0, 1, 2, 3, 10**15, 10**15 + 1, 2**53 + 1, -(2**63), None],
    "float": [0.0, 1.0, 2.5, 0.1, 0.3, -0.0, math.nan, math.inf, None],
    "double": [0.0, 1.0, 2.5, 0.1, 0.3, 1e15, -0.0, math.nan, -math.inf, None],
    "bool": [True, False, None],
    "string": [*TEXT, None],
    "large_string": [*TEXT, None],
    "date32": [START, datetime.date(1960, 5, 17), None],
    "ns": [*DAYS[2:], None],
    "decimal": [Decimal(1), Decimal("1.500"), Decimal("0.1"), Decimal(10**15), None],
    "wide": [Decimal(1), Decimal("1.500"), Decimal("0.1"), Decimal(10**30), None],
}
ARROW = {
    "ns": pa.timestamp("ns"),
    "decimal": pa.decimal128(30, 3),
    "wide": pa.decimal256(50, 5),
    "date32": pa.date32(),
}
NUMBERS = ("int8", "uint64", "int64", "float", "double", "bool", "decimal", "wide")
LISTED = (*NUMBERS, "string", "large_string")
ROLES = {"code": LISTED, "word": LISTED, "amount": NUMBERS, "day": ("date32", "ns")}
NUMPY = ("int8", "uint64", "int64", "float32", "float64", "bool", "U9", "M8[ns]")


def arrow_type(kind):
    return ARROW[kind] if kind in ARROW else pa.type_for_alias(kind)


def arrow_column(kind):
    return lambda values: pa.array(values, arrow_type(kind))


def coded_column(kind):
    return lambda values: pa.array(values, arrow_type(kind)).dictionary_encode()


def objects(values):
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def series(values):
    return pd.Series(objects(values), dtype=object)


def categorical(values):
    """Return a categorical; its categories are objects or what pandas makes of them."""
    return pd.Series(pd.Categorical(values))


def polars_objects(values):
    return pl.Series(values, dtype=pl.Object)


#: Columns that declare no type, or one that is found in the values, with what they may hold.
FREE = {
    "pandas": {
        "object": (series, ANY),
        "numbers": (pd.Series, [*SMALL, *ABSENT]),
        "mixed": (pd.Series, [*SMALL, *EXACT, None]),
        "category": (categorical, [*SMALL[:9], *EXACT, None]),
        "nullable": (lambda values: pd.Series(values).convert_dtypes(), [*SMALL[:9], None]),
    },
    "polars": {
        "object": (polars_objects, ANY),
        "decimals": (pl.Series, [*EXACT[:4], None]),
        "numbers": (lambda values: pl.Series(values, strict=False), [0.1, 2.5, 1.0, None]),
    },
    "dict": {
        "list": (list, ANY),
        "tuple": (tuple, ANY),
        "object": (objects, ANY),
        "series": (series, ANY),
        "extension": (lambda values: pd.arrays.NumpyExtensionArray(objects(values)), ANY),
        "array": (np.array, SMALL),
    },
}
#: The same for columns of text.
FREE_TEXT = {
    "pandas": {
        "text": (pd.Series, [*TEXT, None]),
        "string": (lambda values: pd.Series(values, dtype="string"), [*TEXT, None]),
        "category": (categorical, [*TEXT, 7, 2.5, None]),
        "beside numbers": (pd.Series, [*TEXT, *SMALL, None]),
    },
    "polars": {
        "categorical": (lambda values: pl.Series(values, dtype=pl.Categorical), [*TEXT, None]),
        "enum": (lambda values: pl.Series(values, dtype=pl.Enum(TEXT)), [*TEXT, None]),
    },
    "dict": {"text": (lambda values: np.array(values, "U9"), TEXT)},
}
LIBRARIES = ("pandas", "polars", "dict", "arrow", "parquet", "csv", "stream", "duckdb", "xlsx")
CSV = {
    "code": [*map(str, SMALL[:9]), *TEXT, *map(str, LARGE), "ü,;'"],
    "word": [*TEXT, 'a "b"', "1,5"],
    "amount": ["", "1", "-2.5", "1e3", "inf", "nan", "NR", "2.5"],
    "day": ["", "2001-02-03", "1960-12-31"],
}
#: What cells of a sheet may hold.
CELLS = {
    "code": [0, 1, 2.5, 0.1, 10**15, True, False, None, *TEXT[:7], *DAYS, "#N/A"],
    "word": [*TEXT, 1, 2.0, 0.3, False, None, "#REF!"],
    "amount": [0, 1, -2.5, 2.5, 1e300, True, None, "1.5", "NR", "#DIV/0!", " 3 "],
    "day": [*DAYS, None, "2001-02-03", "#N/A"],
}


@st.composite
def column(draw, library, role):
    """Draw how a column is made of values, and the values that it may hold."""
    if library == "csv":
        return list, CSV[role]
    if library == "xlsx":
        return list, CELLS[role]
    if role in ("day", "amount") and library in ("parquet", "stream") and draw(st.booleans()):
        return arrow_column("string"), [*CSV[role], None]
    free = dict(FREE.get(library, {}))
    if role == "day":
        free = {name: each for name, each in free.items() if each[1] is ANY}
    if role in ("code", "word"):
        free |= FREE_TEXT.get(library, {})
    typed = draw(st.sampled_from(ROLES[role]))
    make, pool = draw(st.sampled_from([*free.values(), (arrow_column(typed), TYPED[typed])]))
    if pool is not TYPED[typed]:
        return make, pool
    if library == "pandas":
        backed = pd.ArrowDtype(arrow_type(typed))
        return lambda values: pd.Series(arrow_column(typed)(values), dtype=backed), pool
    if library == "polars":
        if typed == "wide":  # Polars has no such type
            typed = "decimal"
        return lambda values: pl.from_arrow(arrow_column(typed)(values)), TYPED[typed]
    if library == "duckdb":
        typed = "decimal" if typed == "wide" else typed
        return arrow_column(typed), TYPED[typed]
    if typed not in ("bool", "decimal", "wide", "ns") and draw(st.booleans()):
        return coded_column(typed), pool
    return arrow_column(typed), pool


@st.composite
def tables(draw):
    """Draw a library, columns, records, and another record for one of them."""
    library = draw(st.sampled_from(LIBRARIES))
    target = draw(st.sampled_from(TARGETS))
    text = isinstance(target, Labels) and not target.numbers
    roles = {feature.name: feature.name for feature in FEATURES} | {
        "y": "word" if text else "amount"
    }
    columns = {name: draw(column(library, role)) for name, role in roles.items()}
    # Places in the pools, because Hypothesis compares and prints what it draws.
    places = {name: st.integers(0, len(pool) - 1) for name, (_, pool) in columns.items()}
    record = st.fixed_dictionaries(places)
    records = draw(st.lists(record, min_size=1, max_size=5))
    place = draw(st.integers(0, len(records) - 1))
    rule = draw(st.sampled_from(["impute", "drop"]))
    bounds = PublicBounds(target, FEATURES, rule)
    return library, columns, bounds, records, place, draw(record), draw(st.booleans())


def write_sheet(path, columns):
    book = openpyxl.Workbook()
    for row in (list(columns), *zip(*columns.values(), strict=True)):
        book.active.append(row)
    book.save(path)


def encoded(library, columns, bounds, records, apart):
    """Return every record as numbers: features, target, and whether it is complete."""
    made = {
        name: make([pool[record[name]] for record in records])
        for name, (make, pool) in columns.items()
    }
    frames = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "dict": dict}
    if library in frames:
        y = made.pop("y") if apart else None
        found = frame_columns(frames[library](made), bounds, y)
    elif library == "arrow":
        found = frame_columns(pa.table(made), bounds)
    elif library in ("stream", "duckdb"):
        table = pa.table(made)
        made = table.to_reader() if library == "stream" else duckdb.from_arrow(table)
        found = read_columns(stream_of(made), *needed(bounds), TextFormat().of(bounds))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"t.{library}"
            if library == "parquet":
                pyarrow.parquet.write_table(pa.table(made), path)
            elif library == "xlsx":
                write_sheet(path, made | {"row": [1] * len(records)})
            else:
                with path.open("w", newline="") as file:
                    csv.writer(file).writerows([list(made), *zip(*made.values(), strict=True)])
            found = read_columns(path, *needed(bounds), TextFormat().of(bounds))
            parts = [each for chunk in table_chunks(path, bounds).chunks for each in chunk.read()]
            whole = [np.concatenate(each) for each in zip(*parts, strict=True)]
            for each, same in zip(encode(found, bounds), whole, strict=True):
                np.testing.assert_array_equal(each, same)
    plain = PublicBounds(bounds.target, bounds.features)
    return np.column_stack([*encode(found, plain), complete(found, bounds)])


def check(table):
    library, columns, bounds, records, place, other, apart = table
    first = encoded(library, columns, bounds, records, apart)
    changed = [*records[:place], other, *records[place + 1 :]]
    second = encoded(library, columns, bounds, changed, apart)
    rest = np.arange(len(records)) != place
    np.testing.assert_array_equal(first[rest], second[rest])
    for i, record in enumerate(changed):
        alone = encoded(library, columns, bounds, [record], apart)
        np.testing.assert_array_equal(alone[0], second[i])


QUICK = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


@given(tables())
@settings(max_examples=200, derandomize=True, **QUICK)
def test_no_record_changes_another(table):
    check(table)


@pytest.mark.slow
@given(tables())
@settings(max_examples=20_000, **QUICK)
def test_no_record_changes_another_in_twenty_thousand_tables(table):
    check(table)
