"""CSV files as people have them: what is not given is taken from the first line alone."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from fastmix.data.delimited import TextFormat, resolve
from fastmix.data.encode import encode, table_chunks
from fastmix.data.read import read_columns, table_fields, write_predictions
from fastmix.errors import DataError
from fastmix.schema import Category, Number, PublicBounds

BOUNDS = PublicBounds(
    Number("größe", 0, 1e6), (Number("alter", 0, 100), Category("stadt", ("Köln", "Ulm")))
)
HEADER = ("größe", "alter", "stadt")
ROWS = [("1234.5", "10", "Köln"), ("7", "20.25", "Ulm"), ("", "1", "")]
EXPECTED = np.array([[10, 0, 0, 1234.5], [20.25, 1, 0, 7], [1, 0, 1, 5e5]])


def text_of(sep, decimal, group=""):
    rows = [(a.replace("1234", f"1{group}234"), b, c) for a, b, c in ROWS]
    marked = [(a.replace(".", decimal), b.replace(".", decimal), c) for a, b, c in rows]
    if group == ".":
        marked[0] = ("1.234,5", *marked[0][1:])
    quoted = sep in (decimal, group)
    lines = [HEADER, *([f'"{x}"' for x in row] if quoted else row for row in marked)]
    return "".join(sep.join(line) + "\r\n" for line in lines)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"])
@pytest.mark.parametrize(
    ("sep", "decimal", "group", "options"),
    [
        (",", ".", "", {}),
        (";", ",", "", {}),
        (";", ".", "", {"decimal": "."}),
        (";", ",", ".", {"thousands": "."}),
        (",", ".", ",", {"thousands": ","}),
        (",", ",", "", {"decimal": ","}),
        (";", ".", "'", {"thousands": "'"}),
        ("\t", ".", "", {}),
        ("|", ",", " ", {"decimal": ",", "thousands": "space"}),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_every_way_to_write_a_table_gives_the_same_matrix(
    tmp_path, encoding, sep, decimal, group, options, ending
):
    path = tmp_path / f"t{ending}"
    content = text_of(sep, decimal, group).encode(encoding)
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    text = TextFormat(**options)
    numbers, categories = ["größe", "alter"], {"stadt": ("Köln", "Ulm")}
    X, y = encode(read_columns(path, numbers, categories, text), BOUNDS)
    np.testing.assert_array_equal(np.column_stack([X, y]), EXPECTED)
    ((X, y),) = [next(c.read()) for c in table_chunks(path, BOUNDS, text=text).chunks]
    np.testing.assert_array_equal(np.column_stack([X, y]), EXPECTED)


@pytest.mark.parametrize("name", ["t.tsv", "t.tab", "t.TSV.GZ"])
def test_a_name_tells_that_tabs_separate(tmp_path, name):
    path = tmp_path / name
    content = b"a,b\tc\n1\t2\n"
    path.write_bytes(gzip.compress(content) if name.endswith("GZ") else content)
    assert list(table_fields(path)) == ["a,b", "c"]
    assert read_columns(path, ["c"], {}).numbers["c"].tolist() == [2.0]


def test_the_first_line_of_excel_gives_the_separator(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sep=|\na;b|c\n1|2\n")
    assert list(table_fields(path)) == ["a;b", "c"]
    assert read_columns(path, ["c", "a;b"], {}).numbers == {"c": [2.0], "a;b": [1.0]}


def test_only_the_first_line_is_looked_at(tmp_path):
    """Whatever the values are, the format and every message about columns is the same."""
    said = set()
    for values in ("1;2\n", "1,5;2,5\n", "1.5;2.5\n", "\xe9;\xff\n", "1\t2\n", ",,,,,,,\n", ""):
        path = tmp_path / "t.csv"
        path.write_bytes(b"a;b\n" + values.encode("latin-1"))
        found = resolve(path, TextFormat())
        with pytest.raises(DataError) as raised:
            read_columns(path, ["z"], {})
        said.add((found, str(raised.value)))
    assert len(said) == 1
    ((found, message),) = said
    assert (found.sep, found.spelling.decimal, found.encoding) == (";", ",", "utf-8")
    assert message == (
        "t.csv has no column 'z' in its first line, which must name the columns, separated by "
        "semicolons."
    )


def test_quoted_names_do_not_count(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"income, in EUR, net, per year";age\n1;2\n')
    assert list(table_fields(path)) == ["income, in EUR, net, per year", "age"]


def test_a_missing_column_says_what_the_first_line_suggests(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y;age\n1;2\n")
    with pytest.raises(DataError, match=r"separated by commas\. The line suggests semicolons: use"):
        read_columns(path, ["y"], {}, TextFormat(sep=","))


@pytest.mark.parametrize(
    ("content", "options", "complaint"),
    [
        ("y;a\n1.5;2\n", {}, "decimal mark ',', as in 1,5, and nothing between thousands"),
        ("y,a\n1 500,2\n", {}, "decimal mark '.', as in 1.5"),
        ("y;a\n1.5;2\n", {"thousands": "."}, "'.' between groups of three digits"),
        ("y;a\n1.2345;2\n", {"thousands": "."}, "'.' between groups of three digits"),
        ("y;a\n1,234.5;2\n", {"thousands": ".", "decimal": ","}, "as in 1,5"),
        ("y;a\nRumpelstilzchen;2\n", {"thousands": "."}, "column 'y'"),
        (b"y,a\n1,\xff\n", {}, "is not text in utf-8. Give the encoding"),
        (b"y,a\n1,\x81\n", {"encoding": "cp1252"}, "is not text in cp1252"),
        (b"y\xc3,a\n1,2\n", {"encoding": "utf-8"}, "is not text in utf-8"),
    ],
)
def test_an_entry_that_does_not_fit_is_refused_and_never_read_in_another_way(
    tmp_path, content, options, complaint
):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as raised:
        read_columns(path, ["y"], {"a": ["2"]}, TextFormat(**options))
    assert complaint in str(raised.value)
    assert "Rumpel" not in str(raised.value)
    assert "5678" not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_a_compressed_file_that_is_not_one(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_text("y,a\n1,2\n")
    with pytest.raises(DataError, match="cannot be read as text"):
        read_columns(path, ["y"], {})
    whole = gzip.compress(b"y,a\n" + b"1,2\n3,4\n5,6\n" * 100_000)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        read_columns(path, ["y"], {})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"sep": ";;"}, "sep must be one character"),
        ({"sep": "a"}, "sep must be one character"),
        ({"decimal": ";"}, "decimal must be one of"),
        ({"thousands": "x"}, "thousands must be one of"),
        ({"thousands": ",", "decimal": ","}, "thousands must differ from decimal"),
        ({"encoding": "nothing"}, "encoding must be one such as"),
        ({"encoding": "base64"}, "encoding must be one such as"),
    ],
)
def test_what_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        TextFormat(**options)


def test_the_options_ask_for_the_same_format():
    text = TextFormat(sep="tab", decimal=",", encoding="cp1252")
    assert text.options() == ["--sep", "tab", "--decimal", ",", "--encoding", "cp1252"]
    assert text == TextFormat(sep="\\t", decimal=",", encoding="cp1252")


@pytest.mark.parametrize("ending", [".tsv", ".csv.gz"])
def test_predictions_round_trip(tmp_path, ending):
    values = np.array([1 / 3, -2e-17, 1e300])
    write_predictions(tmp_path / f"p{ending}", "predicted, all", values)
    found = read_columns(tmp_path / f"p{ending}", ["predicted, all"], {})
    assert found.numbers["predicted, all"].tolist() == values.tolist()
