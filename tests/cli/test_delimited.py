"""A German CSV file on the command line, from bounds to predictions, without an option."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

BOUNDS = """
[target]
"größe" = [0, 10]
[features]
alter = [0, 100]
stadt = ["Köln", "Ulm"]
"""


def test_semicolons_and_decimal_commas_need_no_option(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.uniform(0, 10):.3f};{rng.uniform(0, 100):.1f};".replace(".", ",") + town
        for town in rng.choice(["Köln", "Ulm", "Bonn"], 500)
    ]
    text = "\r\n".join(["größe;alter;stadt", *rows])
    (tmp_path / "leute.csv").write_bytes(text.encode("cp1252"))
    code, out, err = run("bounds leute.csv --target größe --out b.toml")
    assert (code, err) == (0, "")
    (tmp_path / "b.toml").write_text(BOUNDS, encoding="utf-8")
    code, out, err = run(shlex.split(out.splitlines()[-1])[1:])
    assert code == 0, err
    assert run("predict model leute.csv --out p.tsv.gz")[0] == 0
    assert (tmp_path / "p.tsv.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_the_next_command_keeps_the_options(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("y;a\n1.5;2\n")
    code, out, _ = run("bounds t.csv --target y --decimal . --out b.toml")
    assert code == 0
    assert "--bounds b.toml --decimal . --epsilon 1" in out
    code, _, err = run("bounds t.csv --target z")
    assert code == 3
    assert "separated by semicolons" in err
    code, _, err = run("bounds t.csv --target y --sep ,")
    assert "The line suggests semicolons" in err
    code, _, err = run("fit t.csv --target y --bounds b.toml --decimal x")
    assert (code, "decimal must be one of" in err) == (2, True)


@pytest.fixture
def ledger(tmp_path, monkeypatch, run):
    """A bounds file, a model and a ledger, for tables with the columns y, x and c."""
    monkeypatch.chdir(tmp_path)
    Path("b.toml").write_text('[target]\ny = [0, 10]\n[features]\nx = [0, 10]\nc = ["u", "v"]\n')
    Path("t.csv").write_text("y,x,c\n" + '1,2,"u"\n' * 200)
    fit = "fit t.csv --target y --bounds b.toml --epsilon 1 --delta 1e-6"
    assert run(fit)[0] == 0
    assert run("ledger new l.jsonl --epsilon 5 --delta 1e-4")[0] == 0
    return "--ledger l.jsonl --epsilon 1 --delta 1e-6"


@pytest.mark.parametrize(
    "line",
    [
        "fit t.csv --target y --bounds b.toml --out new --engine memory {ledger}",
        "fit t.csv --target y --bounds b.toml --out new --engine stream {ledger}",
        "fit t.csv --target y --bounds b.toml --out new --private-rows {ledger}",
        "fit t.csv --target y --out new --unsafe-bounds-from-data --features x --epsilon 1",
        "compare t.csv --target y --bounds b.toml --set x --set x,c --out new {ledger}",
        "evaluate model t.csv {ledger}",
        "bounds t.csv --target y --categories c --out new.toml {ledger}",
        "predict model t.csv",
        "check t.csv --bounds b.toml",
    ],
)
@pytest.mark.parametrize("broken", ['1,2,"u', "1,2,u\r1,2,u", ""])
def test_a_line_that_is_not_a_record_stops_every_command_before_a_charge(ledger, run, line, broken):
    before = Path("l.jsonl").read_bytes()
    rows = ['1,2,"u"\n'] * 200
    rows[70] = broken + "\n"
    Path("t.csv").write_bytes(("y,x,c\n" + "".join(rows)).encode())
    code, out, err = run(line.format(ledger=ledger))
    assert (code, out) == (3, "")
    assert "t.csv: every line must be one record" in err
    assert Path("l.jsonl").read_bytes() == before
    assert not list(Path().glob("new*"))


def test_compare_reads_what_fit_reads(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rows = [f"1.{k:03},5;{1 + k % 28:02}.03.2001;0,{k % 7};ü" for k in range(400)]
    text = "\r\n".join(["lohn;tag;anteil;größe", *rows])
    Path("t.csv").write_bytes(text.encode("cp850"))
    Path("b.toml").write_text(
        "[target]\nlohn = [0, 3000]\n[features]\nanteil = [0, 1]\n"
        'tag = { dates = [2001-01-01, 2001-12-31], format = "%d.%m.%Y" }\n"größe" = ["ü", "ö"]\n',
        encoding="utf-8",
    )
    asked = "t.csv --target lohn --bounds b.toml --delta 1e-6 --thousands . --encoding cp850"
    code, _, err = run(f"compare {asked} --set anteil,tag --set größe,tag --out best --json")
    assert (code, err) == (0, "")
    assert run(f"fit {asked} --out all")[0] == 0
    assert run("compare " + asked.replace("cp850", "nothing") + " --set tag")[0] == 2
