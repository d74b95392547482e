"""What a bounds file may say beside numbers and categories: patterns, files, dates, terms."""

from __future__ import annotations

import datetime
import json
import math
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fastmix.data.delimited import TextFormat
from fastmix.data.encode import encode, needed, table_chunks
from fastmix.data.read import read_columns
from fastmix.errors import DataError
from fastmix.files.template import bounds_template
from fastmix.schema import Category, Number, PublicBounds, Term, read_bounds

HEAD = "[target]\ny = [0, 1]\n[features]\n"


def read(folder, text, columns=()):
    path = folder / "bounds.toml"
    path.write_text(text)
    found = read_bounds(path, lambda: columns)
    again = PublicBounds.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    assert again.to_dict() == found.to_dict()
    return found


def test_units_notes_and_codes(tmp_path):
    bounds = read(
        tmp_path,
        "[target]\ny = { bounds = [0, 1], unit = 'EUR' }\n[features]\n"
        "a = { bounds = [0, 9], missing = 3, unit = 'years', note = 'at the interview' }\n"
        "c = { categories = [1, 2, 77], note = 'see the codebook' }\n"
        "b = { categories = [true, false] }\n",
    )
    assert bounds.target == Number("y", 0, 1, unit="EUR")
    assert bounds.features == (
        Number("a", 0.0, 9.0, 3.0, "years", "at the interview"),
        Category("c", ("1", "2", "77"), "see the codebook"),
        Category("b", ("true", "false")),
    )
    assert bounds.features[0].words == "0 to 9 years"


def test_patterns_take_the_columns_that_no_entry_names(tmp_path):
    columns = ["id", "hour_1", "hour_2", "y", "hour_x", "q?", "qa", "z"]
    bounds = read(
        tmp_path,
        HEAD + '"hour_*" = [0, 24]\nhour_x = ["a"]\nid = false\n"q?" = [0, 2]\n"*" = [5, 6]\n',
        columns,
    )
    expected = {"hour_1": 24, "hour_2": 24, "q?": 2, "qa": 6, "z": 6}
    assert {f.name: f.upper for f in bounds.features if isinstance(f, Number)} == expected
    assert [f.name for f in bounds.features] == ["hour_1", "hour_2", "hour_x", "q?", "qa", "z"]
    with pytest.raises(ValueError, match="matches no column of the table"):
        read(tmp_path, HEAD + '"day_*" = [0, 24]\n', columns)


def test_columns_without_bounds_that_a_pattern_would_cover(tmp_path):
    covered = "so that the pattern covers them"
    with pytest.raises(ValueError, match=f"hour_1 and hour_2 have no bounds yet.*{covered}"):
        read(
            tmp_path, HEAD + 'hour_1 = []\nhour_2 = []\n"hour_*" = [0, 24]\n', ["hour_1", "hour_2"]
        )
    for rest in ('age = []\n"hour_*" = [0, 24]\n', '"hour_*" = []\n'):
        with pytest.raises(ValueError, match="no bounds yet") as found:
            read(tmp_path, f"{HEAD}hour_1 = []\n{rest}", ["hour_1", "hour_2", "age"])
        assert covered not in str(found.value)


def test_patterns_need_the_columns(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(HEAD + '"hour_*" = [0, 24]\n')
    with pytest.raises(ValueError, match="needs the names of the table's columns"):
        read_bounds(path)


def test_a_shared_file_gives_what_this_one_does_not(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "common.toml").write_text(
        'include = "more.toml"\n[features]\nage = [0, 120]\nhours = [0, 168]\ny = [0, 9]\n'
        'elsewhere = []\n"day_*" = [0, 7]\nid = [0, 1]\n"age^2" = true\n"elsewhere^2" = true\n'
        "[missing]\nrule = 'drop'\nvalues = { age = 40, elsewhere = 1 }\n"
    )
    (tmp_path / "shared" / "more.toml").write_text("[features]\nage = [0, 1]\nz = [0, 3]\n")
    text = f'include = "shared/common.toml"\n{HEAD}hours = [0, 60]\nid = false\n'
    bounds = read(tmp_path, text, ["age", "hours", "y", "id", "day_1", "z"])
    assert {f.name: getattr(f, "upper", None) for f in bounds.features} == {
        "hours": 60,
        "age": 120,
        "day_1": 7,
        "age^2": None,
        "z": 3,
    }
    assert bounds.missing == "drop"
    assert bounds.features[1].missing == 40
    (tmp_path / "shared" / "more.toml").write_text('include = "common.toml"\n')
    with pytest.raises(ValueError, match="nested at most"):
        read(tmp_path, text, ["age"])
    with pytest.raises(ValueError, match="include must name a file that can be read"):
        read(tmp_path, 'include = "nowhere.toml"\n' + HEAD, ["age"])


def test_dates_are_days_since_a_public_one(tmp_path):
    bounds = read(
        tmp_path,
        HEAD + "d = [2000-01-01, 2000-12-31]\n"
        'e = { dates = [1990-01-01, 1999-12-31], since = 2000-01-01, format = "%d.%m.%Y",'
        " missing = 1995-01-01 }\n",
    )
    d, e = bounds.features
    assert (d.lower, d.upper, d.since) == (0, 365, datetime.date(2000, 1, 1))
    assert (e.upper, e.missing) == (-1, (datetime.date(1995, 1, 1) - d.since).days)
    assert d.words == "2000-01-01 to 2000-12-31, in days since 2000-01-01"
    expected = [[31, -1, 0.5], [365, e.lower, 0.5], [182.5, e.missing, 0.5]]
    (tmp_path / "t.csv").write_text(
        "y,d,e\n.5,2000-02-01,31.12.1999\n.5,2030-01-01,01.01.1950\n.5,,\n"
    )
    text = TextFormat().of(bounds)
    X, y = encode(read_columns(tmp_path / "t.csv", *needed(bounds), text), bounds)
    np.testing.assert_array_equal(np.column_stack([X, y]), expected)
    days = [datetime.date(2000, 2, 1), datetime.date(2030, 1, 1), None]
    times = [datetime.datetime(1999, 12, 31), datetime.datetime(1950, 1, 1), None]
    table = pa.table({"y": [0.5] * 3, "d": pa.array(days), "e": pa.array(times)})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    for path in ("t.csv", "t.parquet"):
        ((X, y),) = [next(c.read()) for c in table_chunks(tmp_path / path, bounds).chunks]
        np.testing.assert_array_equal(np.column_stack([X, y]), expected)


def test_what_is_no_date_is_refused_without_quoting_it(tmp_path):
    bounds = read(tmp_path, HEAD + "d = [2000-01-01, 2000-12-31]\n")
    text = TextFormat().of(bounds)
    (tmp_path / "t.csv").write_text("y,d\n1,Rumpelstilzchen\n")
    with pytest.raises(DataError, match="is not a date of the form %Y-%m-%d") as raised:
        read_columns(tmp_path / "t.csv", *needed(bounds), text)
    assert "Rumpel" not in str(raised.value)
    pyarrow.parquet.write_table(pa.table({"y": [1.0], "d": [1]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column 'd' must hold dates"):
        read_columns(tmp_path / "t.parquet", *needed(bounds), text)
    pyarrow.parquet.write_table(
        pa.table({"y": [1.0], "d": [datetime.date(2000, 1, 1)]}), tmp_path / "t.parquet"
    )
    with pytest.raises(DataError, match="column 'd' must hold numbers"):
        read_columns(tmp_path / "t.parquet", *needed(bounds))


TERMS = '"a^2" = true\na = [-2, 3]\nb = [1, 4]\nc = ["u", "v"]\n"a * b^2" = true\n"c*b" = true\n'


def test_terms_have_bounds_that_follow(tmp_path):
    bounds = read(tmp_path, HEAD + TERMS)
    names = ("a^2", "a", "b", "c=v", "c=other", "a * b^2", "c=v*b", "c=other*b")
    assert bounds.columns() == names
    lower, upper = bounds.feature_bounds()
    assert lower.tolist() == [0, -2, 1, -1, -1, -32, -4, -4]
    assert upper.tolist() == [9, 3, 4, 1, 1, 48, 4, 4]
    assert bounds.data_norm == math.sqrt(6)
    assert bounds.select(["b", "c", "c*b"]).columns() == names[2:5] + names[6:]
    with pytest.raises(ValueError, match=re.escape("features must have b beside c*b")):
        bounds.select(["c", "c*b"])


@pytest.mark.parametrize("intercept", [True, False])
def test_terms_are_products_of_clipped_values_within_their_bounds(tmp_path, intercept):
    """No record, however extreme, leaves the box or is longer than the public norm."""
    bounds = read(tmp_path, HEAD + TERMS)
    rng = np.random.default_rng(0)
    n = 2000
    path = tmp_path / "t.parquet"
    numbers = {name: rng.normal(0, 5, n) for name in "yab"}
    pyarrow.parquet.write_table(pa.table({**numbers, "c": rng.choice(list("uvw"), n)}), path)
    X, _ = encode(read_columns(path, *needed(bounds)), bounds, intercept=intercept)
    column = dict(zip(bounds.columns(intercept), X.T, strict=True))
    a, b = np.clip(numbers["a"], -2, 3), np.clip(numbers["b"], 1, 4)
    np.testing.assert_array_equal(column["a^2"], a**2)
    np.testing.assert_allclose(column["a * b^2"], a * b**2, rtol=1e-15)
    np.testing.assert_array_equal(column["c=v*b"], column["c=v"] * b)
    lower, upper = bounds.feature_bounds(intercept)
    np.testing.assert_array_equal(X, np.clip(X, lower, upper))
    scaled = (X - (lower + upper) / 2) / ((upper - lower) / 2)
    assert np.linalg.norm(scaled, axis=1).max() <= bounds.data_norm * (1 + 1e-12)


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        ('a = [0, 1]\n"a*z" = true', "needs bounds for its column 'z'"),
        ('a = [0, 1]\n"a^0" = true', "write 'age*hours' or 'age^2'"),
        ('a = [0, 1]\n"a^1" = true', "write 'age*hours' or 'age^2'"),
        ("a = [0, 1]\nb = true", "needs bounds for its column 'b'"),
        ('c = ["u"]\nd = ["v"]\n"c*d" = true', "have a number among its factors"),
        ('c = ["u"]\na = [0, 1]\n"c^2*a" = true', "at most one category"),
        ('a = [0, 1e50]\n"a^3" = true', "at most 1e+100"),
        ("a = { categories = [1.5] }", "be strings or integers"),
        ("a = { bounds = [0, 1], colour = 'red' }", "hold ['missing', 'note', 'unit'] only"),
        ("a = { bounds = [0, 1], categories = [1] }", "be [lower, upper]"),
        ("a = { bounds = [0, 1, 2] }", "bounds of a must be [lower, upper]"),
        ("a = { bounds = [0, 1], note = 3 }", "note of a must be text"),
        ("a = [2000-01-01, 1999-01-01]", "increase"),
        ("a = { dates = ['x', 'y'] }", "be such as 2000-12-31"),
        ("a = [0, 1, 2]", "{ categories = [1, 2, 3] }"),
        ("größe = [0, 1]", "need quotes"),
        ("a = []\nb = []\nc = []", "a, b and c have no bounds yet"),
    ],
)
def test_what_is_refused(tmp_path, entries, complaint):
    path = tmp_path / "bounds.toml"
    path.write_text(HEAD + entries + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"^bounds.toml.*{re.escape(complaint)}"):
        read_bounds(path)


def test_a_term_needs_its_factors():
    a = Number("a", 0, 1)
    with pytest.raises(ValueError, match="have a beside"):
        PublicBounds(Number("y", 0, 1), (Number("b", 0, 1), Term("a^2", ((a, 2),))))


def test_the_template_knows_dates_and_codes():
    text = bounds_template({"y": "number", "n": "number", "d": "date32[day]"}, "y")
    assert "d = []  # a date: [2000-01-01, 2025-12-31]" in text
    assert "n = []  # a number: [lower, upper]; codes: { categories = [1, 2, 3] }" in text


def test_patterns_that_match_the_same_column_are_refused(tmp_path):
    text = HEAD + '"hour_*" = [0, 24]\n"*_1" = [0, 1]\n'
    with pytest.raises(ValueError, match=r"'hour_\*' and '\*_1' both match the column 'hour_1'"):
        read(tmp_path, text, ["hour_1", "hour_2"])
    found = read(tmp_path, text + "hour_1 = [0, 12]\n", ["hour_1", "hour_2", "day_1"])
    assert {each.name: each.upper for each in found.features}["hour_1"] == 12


def test_an_asterisk_alone_covers_the_rest_wherever_it_stands(tmp_path):
    found = read(tmp_path, HEAD + '"*" = [0, 9]\n"hour_*" = [0, 24]\n', ["a", "hour_1"])
    assert {each.name: each.upper for each in found.features} == {"a": 9, "hour_1": 24}
