"""Markers of missing values, dates as text, and files without a line of names."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fastmix.data.delimited import TextFormat, resolve
from fastmix.data.encode import encode, needed, table_chunks
from fastmix.data.frames import frame_columns
from fastmix.data.read import read_columns, table_fields
from fastmix.errors import DataError
from fastmix.schema import PublicBounds, read_bounds

MARKED = {
    "target": {"y": [0, 10]},
    "features": {"n": [0, 100], "c": ["a", "b"], "d": [datetime.date(2000, 1, 1),
                                                      datetime.date(2030, 1, 1)]},
    "missing": {"markers": {"*": ["?"], "n": ["NR", 999, 9.5], "c": [7]}},
}  # fmt: skip


def bounds(**missing):
    return PublicBounds.from_dict({**MARKED, "missing": {**MARKED["missing"], **missing}})


def columns(path, public):
    return read_columns(path, *needed(public), TextFormat().of(public))


TEXTS = {
    "n": ["1.5", "NR", "999", "999.0", " ? ", "9.5", ""],
    "c": ["a", "?", "7", "b", "z", "NR", ""],
    "d": ["2001-02-03", "?", "", "2001-02-03", "2001-02-03", "2001-02-03", "2001-02-03"],
    "y": ["1", "?", "3", "4", "5", "6", "7"],
}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_markers_are_missing_values(form, tmp_path):
    path, public = tmp_path / f"t.{form}", bounds()
    if form == "csv":
        rows = [",".join(TEXTS), *map(",".join, zip(*TEXTS.values(), strict=True))]
        path.write_text("\n".join(rows) + "\n")
    else:  # numbers, dates and target are text here
        pa.parquet.write_table(pa.table(TEXTS), path)
    found = columns(path, public)
    assert np.isnan(found.numbers["n"]).tolist() == [False, *[True] * 6]
    assert found.codes["c"].tolist() == [0, -2, -2, 1, -1, -1, -2]
    assert np.isnan(found.numbers["d"]).tolist() == [False, True, True, *[False] * 4]
    (chunk,) = table_chunks(path, public).chunks
    for one, two in zip(encode(found, public), next(chunk.read()), strict=True):
        np.testing.assert_array_equal(one, two)


def test_markers_in_typed_columns_and_frames():
    frame = {
        "n": pa.array([1.0, 999.0, 9.5, None]),
        "c": pa.array(["a", "?", "7", "b"]),
        "d": pa.array([datetime.date(2001, 2, 3)] * 4),
        "y": np.array([1.0, 2.0, 3.0, 4.0]),
    }
    for table in (frame, pa.table(frame), frame | {"n": [1.0, 999, 9.5, None]}):
        found = frame_columns(table, bounds())
        assert np.isnan(found.numbers["n"]).tolist() == [False, True, True, True]
        assert found.codes["c"].tolist() == [0, -2, -2, 1]


def test_markers_survive_the_file_and_the_model():
    public = bounds()
    assert PublicBounds.from_dict(public.to_dict()) == public
    assert public.to_dict()["missing"]["markers"]["n"] == ["?", "NR", "999", "9.5"]


def test_a_list_of_markers_is_for_all_columns(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text('[target]\ny=[0,1]\n[features]\n"n_*"=[0,1]\n[missing]\nmarkers=["NR", -1]\n')
    public = read_bounds(path, lambda: ["y", "n_1"])
    assert dict(public.markers) == {"y": ("NR", "-1"), "n_1": ("NR", "-1")}


@pytest.mark.parametrize(
    "markers",
    [{"x": ["NR"]}, {"c": ["a"]}, {"n": "NR"}, {"n": [True]}, {"n": [" NR"]}, {"n": [[]]}, 7],
)
def test_bad_markers_are_refused(markers):
    with pytest.raises(ValueError, match="markers"):
        bounds(markers=markers)


def test_text_beside_numeric_bounds_needs_markers(tmp_path):
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table(TEXTS), path)
    with pytest.raises(DataError, match=r"must hold numbers.*markers"):
        columns(path, bounds(markers={}))


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(("name", "entry"), [("n", "Rumpel"), ("d", "03.02.2001"), ("n", "1,5")])
def test_an_entry_that_spells_nothing_is_refused(form, name, entry, tmp_path):
    path, texts = tmp_path / f"t.{form}", {key: [*values] for key, values in TEXTS.items()}
    texts[name][3] = entry
    if form == "csv":
        rows = ["\t".join(texts), *map("\t".join, zip(*texts.values(), strict=True))]
        path = path.with_suffix(".tsv")
        path.write_text("\n".join(rows) + "\n")
    else:
        pa.parquet.write_table(pa.table(texts), path)
    with pytest.raises(DataError, match=f"column '{name}' has an entry that is not") as raised:
        columns(path, bounds())
    assert entry not in str(raised.value)


def test_a_file_without_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,Ulm,3\n2,Bonn,4\n")
    text = TextFormat(header=False)
    assert list(table_fields(path, text)) == ["c1", "c2", "c3"]
    found = read_columns(path, ["c1"], {"c2": ("Ulm", "Bonn")}, text)
    assert found.numbers["c1"].tolist() == [1.0, 2.0]
    assert found.codes["c2"].tolist() == [0, 1]
    named = PublicBounds.from_dict({
        "columns": ["a", "city", "y"],
        "target": {"y": [0, 9]},
        "features": {"a": [0, 9], "city": ["Ulm", "Bonn"]},
    })  # fmt: skip
    assert PublicBounds.from_dict(named.to_dict()) == named
    (chunk,) = table_chunks(path, named).chunks
    assert next(chunk.read())[1].tolist() == [3.0, 4.0]
    with pytest.raises(DataError, match="has no column 'z'; it has") as raised:
        read_columns(path, ["z"], {}, text)
    assert "Ulm" not in str(raised.value)
    with pytest.raises(DataError, match="2 columns that its bounds name"):
        table_fields(path, TextFormat(names=("a", "b")))


def test_a_first_record_decides_nothing_about_the_format(tmp_path):
    """Separator and encoding follow from fixed rules if the first line is a record."""
    said = set()
    for first in (b"1,2", b"1;2,3;", b"\xe9|||,2", b"1,\t\t\t"):
        path = tmp_path / "t.csv"
        path.write_bytes(first + b"\n3,4\n")
        found = resolve(path, TextFormat(header=False))
        said.add((found.sep, found.encoding, found.guessed, found.suggested, len(found.names)))
    assert said == {(",", "utf-8", False, ",", 2)}


@pytest.mark.parametrize("columns", [["a", "a"], "a", [1]])
def test_names_of_columns_are_different_texts(columns):
    with pytest.raises(ValueError, match="columns must be a list of different names"):
        PublicBounds.from_dict({**MARKED, "columns": columns})
