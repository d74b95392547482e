"""CSV formats, bounds files with everything, bounds found privately and persons, all together."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fastmix.cli.main import ExitCode
from fastmix.schema import read_bounds

KNOWN = """
include = "common.toml"
[target]
lohn = []
[features]
"std_*" = { bounds = [0, 24], unit = "hours" }
tag = { dates = [2000-01-01, 2000-12-31], format = "%d.%m.%Y" }
notiz = false
"std_1^2" = true
"std_1*alter" = true
[missing]
rule = "drop"
values = { std_1 = 8 }
"""


def columns(n=6000):
    rng = np.random.default_rng(0)
    days = np.datetime64("2000-01-01") + rng.integers(0, 366, n)
    return {
        "lohn": rng.uniform(0, 1000, n),
        "alter": rng.uniform(20, 60, n),
        "std_1": rng.uniform(0, 24, n),
        "std_2": rng.uniform(0, 24, n),
        "tag": days.astype(object),
        "stadt": rng.choice(["Köln", "Ulm"], n),
        "code": rng.integers(1, 4, n),
        "notiz": np.array(["geheim"] * n),
        "wer": np.arange(n) // 2,
    }


@pytest.fixture
def german(tmp_path, monkeypatch):
    """A German table of persons with two rows each, with thousands and dates, and what is known."""
    monkeypatch.chdir(tmp_path)
    table = columns()
    rows = [";".join(table)]
    for row in zip(*table.values(), strict=True):
        cells = [f"{x:,.2f}" if isinstance(x, float) else x for x in row]
        swapped = [x.translate(str.maketrans(",.", ".,")) if "." in str(x) else x for x in cells]
        rows.append(";".join(f"{x:%d.%m.%Y}" if hasattr(x, "year") else str(x) for x in swapped))
    Path("leute.csv").write_bytes("\r\n".join(rows).encode("cp1252"))
    Path("common.toml").write_text('[features]\nstadt = ["Köln", "Ulm"]\nfern = [0, 1]\n')
    Path("known.toml").write_text(KNOWN)


HOW = "--thousands . --encoding cp1252"


def test_from_private_bounds_of_persons_to_predictions(german, run):
    find = "bounds leute.csv --target lohn --epsilon 2 --delta 1e-7 --person wer --max-rows 2"
    code, out, err = run(f"{find} --known known.toml --categories code --out found.toml {HOW}")
    assert (code, err) == (0, "")
    found = tomllib.loads(Path("found.toml").read_text())
    names = ["alter", "std_1", "std_2", "tag", "stadt", "code", "std_1^2", "std_1*alter"]
    assert list(found["features"]) == names
    assert found["features"]["std_2"] == {"bounds": [0, 24], "unit": "hours"}
    assert sorted(found["features"]["code"]) == ["1", "2", "3"]  # noise decides on the order
    assert found["missing"] == {"rule": "drop", "values": {"std_1": 8}}
    assert found["found"]["rows_per_person"] == 2
    fit = shlex.split(out.splitlines()[-1])[1:]
    assert fit[-8:-2] == ["--encoding", "cp1252", "--person", "wer", "--max-rows", "2"]
    code, out, err = run([*fit, "--delta", "1e-6"])
    assert code == 0, err
    assert "std_1*alter" in out
    stated = json.loads(Path("model/certificate.json").read_text())["data"]
    assert stated["encoding"]["found"] == found["found"]
    assert stated["n_persons"] == 3000
    assert run("explain model --verify")[0] == 0
    assert "std_1^2" in run("summary model")[1]
    code, _, err = run(f"evaluate model leute.csv --epsilon 1 --delta 1e-6 --json {HOW}")
    assert (code, "this model protects persons" in err) == (ExitCode.USAGE, True)
    code, _, err = run(f"predict model leute.csv --out p.csv {HOW}")
    assert code == 0, err
    code, out, err = run(f"check leute.csv --bounds found.toml {HOW}")
    assert code == 0, err
    assert "6,000 rows" in out
    assert not any("%" in line for line in out.splitlines() if line.startswith("tag"))
    code, _, err = run(f"check leute.csv --bounds found.toml {HOW} --sep ,")
    assert code == ExitCode.DATA
    assert "The line suggests semicolons" in err


def test_dates_are_not_found(german, run):
    code, _, err = run(
        "bounds leute.csv --target lohn --epsilon 2 --delta 1e-7 --categories stadt,code,notiz "
        f"--dates tag --features alter,stadt,tag --out found.toml {HOW}"
    )
    assert (code, err) == (0, "")
    text = Path("found.toml").read_text()
    assert "# tag: dates need public knowledge" in text
    assert list(tomllib.loads(text)["features"]) == ["alter", "stadt"]
    code, _, err = run(f"bounds leute.csv --target lohn --dates lohn --epsilon 1 {HOW}")
    assert (code, "it is among the dates" in err) == (ExitCode.USAGE, True)


def test_a_known_term_of_a_column_without_bounds_is_left_to_the_reader(german, run):
    code, _, err = run(
        "bounds leute.csv --target lohn --epsilon 0.0001 --delta 1e-7 --known known.toml "
        f"--features alter,std_1 --out thin.toml {HOW}"
    )
    assert (code, err) == (0, "")
    text = Path("thin.toml").read_text()
    assert '"std_1^2" = true  # known' in text.splitlines()
    assert '# "std_1*alter" = true  # known' in text.splitlines()


def test_patterns_do_not_take_the_ids(german, run):
    Path("b.toml").write_text(
        '[target]\nlohn = [0, 1000]\n[features]\nstadt = ["Ulm"]\ntag = false\nnotiz = false\n'
        '"*" = [0, 60]\n'
    )
    person = "--person wer --max-rows 2 --delta 1e-6"
    code, _, err = run(f"fit leute.csv --target lohn --bounds b.toml {person} {HOW}")
    assert code == 0, err
    assert "wer" not in json.loads(Path("model/model.json").read_text())["columns"]


def test_what_was_spent_on_an_included_file_is_stated(german, run):
    spent = '[found]\nepsilon = 0.5\ndelta = 1e-7\ncoverage = 0.9\ncertificate = "sha256:{}"\n'
    Path("found.toml").write_text(f"[features]\nalter = [0, 64]\n{spent.format('a' * 64)}")
    own = 'include = ["found.toml", "common.toml"]\n[target]\nlohn = [0, 1000]\n'
    Path("b.toml").write_text(own)
    there = ["lohn", "alter", "stadt", "wer"]
    bounds = read_bounds(Path("b.toml"), lambda: there)
    assert bounds.found.epsilon == 0.5
    assert [feature.name for feature in bounds.features] == ["alter", "stadt"]
    code, _, err = run(
        f"fit leute.csv --target lohn --bounds b.toml --person wer --max-rows 2 {HOW}"
    )
    assert code == ExitCode.USAGE
    assert "must protect persons if the fit does" in err
    code, _, err = run(f"bounds leute.csv --target lohn --epsilon 1 --known b.toml {HOW}")
    assert code == ExitCode.USAGE
    assert "known bounds must be public" in err
    Path("b.toml").write_text(own + spent.format("a" * 64))  # the same release
    assert read_bounds(Path("b.toml"), lambda: there).found == bounds.found
    Path("b.toml").write_text(own + spent.format("b" * 64))
    with pytest.raises(ValueError, match=r"b.toml.*one table \[found\] at most"):
        read_bounds(Path("b.toml"), lambda: there)


@pytest.mark.parametrize("private", ["", "--epsilon 2 --delta 1e-7"])
def test_categories_mean_the_same_for_every_file(tmp_path, monkeypatch, run, private):
    monkeypatch.chdir(tmp_path)
    table = pa.table({name: columns()[name] for name in ("lohn", "alter", "code")})
    pyarrow.parquet.write_table(table, "t.parquet")
    pa.csv.write_csv(table, "t.csv")
    made = []
    for file in ("t.parquet", "t.csv"):
        code, out, err = run(f"bounds {file} --target lohn --categories code {private}")
        assert (code, err) == (0, "")
        made.append([line for line in out.splitlines() if line.startswith("code = ")])
    expected = 'code = ["1", "2", "3"]' if private else 'code = []  # a category: ["a", "b", ...]'
    assert made == [[expected], [expected]]
