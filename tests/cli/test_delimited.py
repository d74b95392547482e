"""A German CSV file on the command line, from bounds to predictions, without an option."""

from __future__ import annotations

import shlex

import numpy as np

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
