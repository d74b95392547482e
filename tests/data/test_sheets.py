"""Excel files, and files of SAS, SPSS and Stata: what statisticians have."""

from __future__ import annotations

import datetime

import numpy as np
import openpyxl
import pandas as pd
import pyreadstat
import pytest

from fastmix.cli import main
from fastmix.data.delimited import TextFormat
from fastmix.data.read import read_arrow, read_columns, table_fields
from fastmix.data.sheets import Sheet
from fastmix.errors import DataError
from fastmix.schema import Category, Number, PublicBounds

DAY = datetime.date(2020, 2, 29)
BOUNDS = PublicBounds(
    Number("y", 0, 10),
    (
        Number("n", 0, 100, markers=("NR", "99")),
        Category("c", ("1", "2", "Ulm")),
        Number("d", 0, 9999, since=datetime.date(2000, 1, 1), form="%d.%m.%Y"),
    ),
)
TEXT = TextFormat().of(BOUNDS)
NUMBERS, LISTS = ["y", "n", "d"], {"c": ("1", "2", "Ulm")}


@pytest.fixture
def sheet(tmp_path):
    def write(*rows, title=None):
        path = tmp_path / "t.xlsx"
        book = openpyxl.load_workbook(path) if title else openpyxl.Workbook()
        page = book.create_sheet(title) if title else book.active
        for row in rows:
            page.append(row)
        book.save(path)
        return path

    return write


ROWS = [
    ("n", "c", "d", "y", None),
    (1, 1, DAY, 2.5, None),
    (2.5, 2.0, datetime.datetime(2020, 2, 29, 12), True, None),
    ("NR", "Ulm", "29.02.2020", " 7 ", None),
    (99, None, None, None, None),
    (None, None, None, None, None),
    ("#N/A", "#REF!", "#DIV/0!", "3", "beside"),
]


def test_a_title_above_the_names_is_told(sheet):
    path = sheet(("Survey of 2020",), *ROWS)
    with pytest.raises(DataError, match="Delete titles above the names, or choose another sheet"):
        read_arrow(path, NUMBERS, LISTS, TEXT)


def test_cells_become_what_they_spell(sheet):
    path = sheet(*ROWS)
    assert table_fields(path) == dict.fromkeys(["n", "c", "d", "y"], "unknown")
    found = read_columns(path, NUMBERS, LISTS, TEXT)
    day = (DAY - datetime.date(1970, 1, 1)).days
    np.testing.assert_array_equal(found.numbers["n"], [1, 2.5, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(found.numbers["y"], [2.5, 1, 7, np.nan, 3])
    np.testing.assert_array_equal(found.numbers["d"], [day, day, day, np.nan, np.nan])
    assert found.codes["c"].tolist() == [0, 1, 2, -2, -2]


def test_numbers_are_the_same_bits(sheet):
    values = [0.1, 1 / 3, 1e-300, 123456.789, 2.0**53 - 1]  # openpyxl writes 16 digits
    path = sheet(("n",), *[(value,) for value in values])
    for decimal in (".", ","):
        found = read_columns(path, ["n"], {}, TextFormat(decimal=decimal))
        assert found.numbers["n"].tolist() == values


def test_a_sheet_is_chosen_by_name(sheet):
    path = sheet(("a", "b"), (1, 2))
    sheet(("n", "y"), (3, 4), title="second")
    assert list(table_fields(path)) == ["a", "b"]
    assert list(Sheet(path, "second").fields(TextFormat())) == ["n", "y"]
    with pytest.raises(ValueError, match="one of the sheets"):
        Sheet(path, "third").fields(TextFormat())


def test_a_word_among_numbers_is_refused_and_not_quoted(sheet):
    path = sheet(("n", "y"), (1, 2), ("Rumpelstilzchen", 3))
    with pytest.raises(DataError, match="column 'n' has an entry that is not a number") as raised:
        read_columns(path, ["n", "y"], {})
    assert "Rumpel" not in str(raised.value)


def test_a_damaged_file_is_named(tmp_path):
    for name in ("t.xlsx", "t.sav", "t.dta", "t.sas7bdat", "t.xpt"):
        (tmp_path / name).write_bytes(b"Rumpelstilzchen" * 50)
        with pytest.raises(DataError, match=f"{name} is damaged") as raised:
            table_fields(tmp_path / name)
        assert raised.value.__context__ is None


def test_a_sheet_without_names(sheet):
    path = sheet((1, "Ulm"), (2, "Bonn"))
    text = TextFormat(header=False)
    assert list(table_fields(path, text)) == ["c1", "c2"]
    assert read_arrow(path, ["c1"], ["c2"], text)["c1"].to_pylist() == [1.0, 2.0]
    named = TextFormat(names=("n", "c"))
    assert read_arrow(path, ["n"], ["c"], named)["c"].to_pylist() == ["Ulm", "Bonn"]


WRITERS = {
    "t.sav": pyreadstat.write_sav,
    "t.zsav": lambda frame, path: pyreadstat.write_sav(frame, path, compress=True),
    "t.dta": pyreadstat.write_dta,
    "t.xpt": lambda frame, path: pyreadstat.write_xport(frame, path, file_format_version=8),
}


@pytest.mark.parametrize("name", WRITERS)
def test_statistical_files(name, tmp_path):
    frame = pd.DataFrame({
        "n": [1.5, np.nan, 99.0],
        "c": ["Ulm", "", "1"],
        "code": [1.0, 2.0, 3.0],
        "d": [DAY, None, datetime.date(1950, 1, 1)],
        "t": [datetime.datetime(2020, 2, 29, 12), None, None],
        "clock": [datetime.time(3, 4), None, None],
    })  # fmt: skip
    path = tmp_path / name
    WRITERS[name](frame, path)
    fields = table_fields(path)
    assert [fields[each] for each in ("n", "c", "code")] == ["number", "text", "number"]
    assert fields["d"].startswith("date")
    text = TextFormat(dates=(("d", ""), ("t", "")), markers=(("n", ("99",)),))
    found = read_columns(path, ["n", "d", "t"], {"c": ("Ulm", "1"), "code": ("1", "2")}, text)
    day = (DAY - datetime.date(1970, 1, 1)).days
    np.testing.assert_array_equal(found.numbers["n"], [1.5, np.nan, np.nan])
    np.testing.assert_array_equal(found.numbers["d"], [day, np.nan, -7305.0])
    np.testing.assert_array_equal(found.numbers["t"], [day + 0.5, np.nan, np.nan])
    assert found.codes["c"].tolist() == [0, -2, 1]
    assert found.codes["code"].tolist() == [0, 1, -1]
    with pytest.raises(DataError, match="must hold numbers"):
        read_columns(path, ["d"], {})
    with pytest.raises(DataError):
        read_columns(path, ["clock"], {})


def test_missing_values_that_spss_declares_are_missing(tmp_path):
    path = tmp_path / "t.sav"
    pyreadstat.write_sav(pd.DataFrame({"n": [1.0, 9.0]}), path, missing_ranges={"n": [9]})
    np.testing.assert_array_equal(read_columns(path, ["n"], {}).numbers["n"], [1.0, np.nan])


def test_commands_fit_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": rng.integers(0, 300, 900), "n": rng.uniform(0, 9, 900)})
    frame["y"] = frame.n + rng.normal(0, 0.1, 900)
    frame.to_excel("t.xlsx", index=False)
    pyreadstat.write_dta(frame, "t.dta")
    (tmp_path / "b.toml").write_text("[target]\ny = [0, 10]\n[features]\nn = [0, 9]\n")
    for file in ("t.xlsx", "t.dta"):
        for more in ([], ["--person", "who", "--max-rows", "3"]):
            line = ["fit", file, "--target", "y", "--bounds", "b.toml", "--force", *more]
            assert main(line) == 0, capsys.readouterr().err
