"""``fastmix plan --bounds``: a dry run that reads no value."""

from __future__ import annotations

import json

BOUNDS = """
[target]
income = { bounds = [0, 200000], unit = "EUR" }
[features]
"hour_*" = [0, 24]
"""


def test_a_dry_run_of_a_bounds_file(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.toml").write_text(BOUNDS)
    (tmp_path / "t.csv").write_text("income;hour_1;hour_2\nRumpelstilzchen;x;y\n")
    line = "plan --rows 5000 --bounds b.toml --data t.csv --out plan.html"
    code, out, err = run(line)
    assert (code, err) == (0, "")
    assert "5,000 rows, 2 columns after encoding" in out
    assert "EUR to predictions of income" in out
    assert "income within bounds half as wide" in out
    assert (tmp_path / "plan.html").read_text().count("<figure>") == 1
    assert run(line)[0] == 2  # the page exists
    told = json.loads(run(f"{line} --force --json")[1])
    assert (told["d"], told["unit"]) == (2, "EUR")
    assert len(told["by_epsilon"]) == 5
    assert "persons" not in told


def test_what_persons_cost_beside_a_dry_run(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.toml").write_text(BOUNDS.replace("hour_*", "hour"))
    line = "plan --rows 5000 --bounds b.toml --persons 500"
    code, out, err = run(line)
    assert (code, err) == (0, "")
    assert "naive group privacy" in out
    by_size = json.loads(run("plan --rows 5000 --columns 1 --persons 500 --json")[1])["persons"]
    assert json.loads(run(f"{line} --json")[1])["persons"] == by_size


def test_sizes_or_bounds(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.toml").write_text(BOUNDS)
    for line, complaint in (
        ("plan --rows 10", "--columns or --bounds"),
        ("plan --rows 10 --columns 3 --bounds b.toml", "--columns or --bounds"),
        ("plan --rows 10 --columns 3 --out x.html", "must be given with --bounds"),
        ("plan --rows 10 --bounds b.toml", "table's columns; pass them with --data FILE."),
    ):
        code, _, err = run(line)
        assert (code, complaint in err) == (2, True), err
