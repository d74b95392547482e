"""What ``fastmix check`` shows, where, and what it never shows."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

BOUNDS = """
[target]
income = [0, 100]

[features]
age = [0, 10]
same = [0, 5]
gone = [0, 1]
city = ["Ulm", "Bonn"]
"""


@pytest.fixture
def table():
    return pa.table(
        {
            "income": pa.array([1.0, -7.125, 250.0, None]),
            "age": pa.array([1.0, 2.0, 3.0, 4.0]),
            "same": pa.array([9.0, 8.0, 7.0, 6.0]),
            "gone": pa.array([None, None, None, None], pa.float64()),
            "city": pa.array(["ulm", " Bonn ", "Rumpelstilzchen", None]),
        }
    )


def cells(out):
    table, _, _ = out.partition("\n\nincome:")
    return {line.split()[0]: line.split() for line in table.splitlines() if line.strip()}


@pytest.mark.parametrize("form", ["csv", "parquet", "folder"])
def test_shares_and_remarks(form, table, tmp_path, run):
    bounds = tmp_path / "bounds.toml"
    bounds.write_text(BOUNDS)
    data = tmp_path / f"data.{form}"
    if form == "csv":
        pyarrow.csv.write_csv(table, data)
    elif form == "parquet":
        pyarrow.parquet.write_table(table, data)
    else:
        data = tmp_path / "parts"
        data.mkdir()
        pyarrow.parquet.write_table(table.slice(0, 1), data / "a.parquet")
        pyarrow.parquet.write_table(table.slice(1), data / "b.parquet")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    code, out, err = run(["check", str(data), "--bounds", str(bounds)])
    assert (code, err) == (0, "")
    assert out.count("FOR YOUR EYES ONLY: NOT PRIVATE") == 2
    found = cells(out)
    assert found["income"][1:5] == ["25.0%", "25.0%", "25.0%", "-"]
    assert "missing values become 50.0, the middle of the bounds" in out
    assert found["age"][1:] == ["-", "-", "-", "-"]
    assert found["same"][1:] == ["-", "-", "100.0%", "-"]
    assert "same: constant within its bounds; many values are outside the bounds." in out
    assert found["gone"][1:] == ["100.0%", "-", "-", "-"]
    assert "gone: all values are missing." in out
    assert found["city"][1:] == ["25.0%", "-", "-", "75.0%"]
    assert "capitals or spaces differ from the list" in out
    assert "4 rows" in out
    # Shares, never a value; on the screen, never in a file.
    for value in ("Rumpel", "250", "7.125", "ulm"):
        assert value not in out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_it_has_no_way_to_write_a_file(run):
    code, out, _ = run(["check", "--help"])
    assert code == 0
    assert "--out" not in out
    assert "--json" not in out


def test_an_empty_table_is_refused(table, tmp_path, run):
    bounds = tmp_path / "bounds.toml"
    bounds.write_text(BOUNDS)
    pyarrow.parquet.write_table(table.slice(0, 0), tmp_path / "none.parquet")
    code, _, err = run(["check", str(tmp_path / "none.parquet"), "--bounds", str(bounds)])
    assert code == 3
    assert "at least one row" in err
