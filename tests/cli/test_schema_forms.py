"""Patterns, dates and terms on the command line, from the bounds file to a verified model."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

BOUNDS = """
include = "common.toml"
[target]
y = { bounds = [0, 10], unit = "EUR" }
[features]
"hour_*" = [0, 24]
day = [2000-01-01, 2000-12-31]
code = { categories = [1, 2] }
"hour_1*hour_2" = true
"code*hour_1" = true
"""


def test_a_bounds_file_with_everything(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 400
    columns = {name: rng.uniform(0, 24, n) for name in ("hour_1", "hour_2", "age")}
    table = pa.table(
        {
            **columns,
            "y": rng.uniform(0, 10, n),
            "code": rng.integers(1, 4, n),
            "day": pa.array(rng.integers(10957, 11300, n).astype(np.int32), pa.date32()),
        }
    )
    pyarrow.csv.write_csv(table, "t.csv")
    (tmp_path / "folder").mkdir()
    pyarrow.parquet.write_table(table, "folder/t.parquet")
    (tmp_path / "common.toml").write_text("[features]\nage = [0, 120]\nheight = [0, 3]\n")
    (tmp_path / "b.toml").write_text(BOUNDS)
    for data, out in (("t.csv", "one"), ("folder", "two")):
        code, _, err = run(f"fit {data} --target y --bounds b.toml --out {out}")
        assert code == 0, err
        # What is printed are effects that noise does not hide; the model has all columns.
        model = (tmp_path / out / "model.json").read_text()
        assert "code=2*hour_1" in model
        assert "hour_1*hour_2" in model
        assert run(f"explain {out} --verify")[0] == 0
        assert (
            "2000-01-01 to 2000-12-31, in days since"
            in (tmp_path / out / "report.html").read_text()
        )
    assert run("predict one t.csv")[0] == 0
    code, told, _ = run("bounds t.csv --target y --categories code --dates day")
    assert code == 0
    assert 'code = []  # a category: ["a", "b", ...]' in told
    assert "day = []  # a date" in told
    assert "age = []  # a number" in told
    assert run("bounds t.csv --target y --dates nothing")[0] == 3


def test_categories_of_a_column_of_dates_are_refused(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    days = pa.array(np.arange(10957, 10997, dtype=np.int32), pa.date32())
    table = pa.table({"y": np.arange(40.0), "admitted": days})
    (tmp_path / "folder").mkdir()
    pyarrow.parquet.write_table(table, "t.parquet")
    pyarrow.parquet.write_table(table, "folder/t.parquet")
    (tmp_path / "b.toml").write_text(
        '[target]\ny = [0, 40]\n[features]\nadmitted = ["2000-01-01", "2000-12-31"]\n'
    )
    assert run("ledger new mine.jsonl --epsilon 3 --delta 1e-2")[0] == 0
    before = (tmp_path / "mine.jsonl").read_text()
    for line in (
        "fit t.parquet --target y --bounds b.toml --ledger mine.jsonl",
        "fit folder --target y --bounds b.toml --ledger mine.jsonl",
        "check t.parquet --bounds b.toml",
        "bounds t.parquet --target y --categories admitted",
    ):
        code, _, err = run(line)
        assert (code, "without quotes, such as [2018-01-01, 2023-12-31]" in err) == (3, True), err
    assert (tmp_path / "mine.jsonl").read_text() == before
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("column", ["flag", "count"])
@pytest.mark.parametrize("data", ["t.parquet", "folder"])
def test_labels_that_a_declared_type_cannot_hold_are_refused(
    tmp_path, monkeypatch, run, column, data
):
    """Before any charge; the type decides, so a CSV file, which has none, is not refused."""
    monkeypatch.chdir(tmp_path)
    flag = np.arange(40) % 3 == 0
    table = pa.table({"flag": flag, "count": flag.astype(int), "a": np.linspace(0, 1, 40)})
    (tmp_path / "folder").mkdir()
    pyarrow.parquet.write_table(table, "t.parquet")
    pyarrow.parquet.write_table(table, "folder/t.parquet")
    pyarrow.csv.write_csv(table, "t.csv")
    head = f"[target]\n{column} = {{}}\n[features]\na = [0, 1]\n"
    (tmp_path / "b.toml").write_text(head.format('["no", "yes"]'))
    assert run("ledger new mine.jsonl --epsilon 9 --delta 1e-1")[0] == 0
    before = (tmp_path / "mine.jsonl").read_text()
    fit = f"fit {{}} --target {column} --bounds b.toml --family logistic --ledger mine.jsonl"
    said = "{ labels = [false, true] }" if column == "flag" else "{ labels = [0, 1] }"
    for line in (fit.format(data), f"check {data} --bounds b.toml"):
        code, _, err = run(line)
        assert (code, said in " ".join(err.split())) == (3, True), err
    assert (tmp_path / "mine.jsonl").read_text() == before
    assert not (tmp_path / "model").exists()
    code, _, err = run(fit.format("t.csv"))
    assert code == 0, err
    for written in ("[false, true]", "{ labels = [false, true] }"):
        listed = written if column == "flag" else "{ labels = [0, 1] }"
        (tmp_path / "b.toml").write_text(head.format(listed))
        code, _, err = run(f"{fit.format(data)} --force")
        assert code == 0, err
