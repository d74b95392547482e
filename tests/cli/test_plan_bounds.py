"""``fastmix plan`` and ``fastmix fit --dry-run``: the same plan, which reads no value."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

BOUNDS = """
[target]
income = { bounds = [0, 200000], unit = "EUR" }
[features]
"hour_*" = [0, 24]
"""


def test_a_plan_of_a_bounds_file(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.toml").write_text(BOUNDS)
    (tmp_path / "t.csv").write_text("income;hour_1;hour_2\nRumpelstilzchen;x;y\n")
    line = "plan --rows 5000 --bounds b.toml --data t.csv --out plan.html"
    code, out, err = run(line)
    assert (code, err) == (0, "")
    assert "5,000 rows, 2 features, epsilon 1, delta 4e-08, with intervals" in out
    assert "EUR to predictions of income" in out
    assert "income within bounds half as wide" in out
    assert (tmp_path / "plan.html").read_text().count("<figure>") == 1
    assert run(line)[0] == 2  # the page exists
    told = json.loads(run(f"{line} --force --json")[1])
    assert (told["d"], told["unit"]) == (2, "EUR")
    assert len(told["by_epsilon"]) == 5
    assert "persons" not in told


def test_what_persons_cost_beside_a_plan(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.toml").write_text(BOUNDS.replace("hour_*", "hour"))
    line = "plan --rows 5000 --bounds b.toml --persons 500"
    code, out, err = run(line)
    assert (code, err) == (0, "")
    assert "naive group privacy" not in out
    assert "--max-rows" in out
    by_size = json.loads(run("plan --rows 5000 --columns 1 --persons 500 --json")[1])["persons"]
    assert json.loads(run(f"{line} --json")[1])["persons"] == by_size


def test_sizes_or_bounds(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.toml").write_text(BOUNDS)
    for line, complaint in (
        ("plan --rows 10", "--columns or --bounds"),
        ("plan --rows 10 --columns 3 --bounds b.toml", "--columns or --bounds"),
        ("plan --rows 10 --columns 3 --data x.csv", "must be given with --bounds"),
        ("plan --rows 10 --bounds b.toml", "table's columns; pass them with --data FILE."),
    ):
        code, _, err = run(line)
        assert (code, complaint in err) == (2, True), err


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of 3000 rows of 700 persons, and its bounds."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [f"{a:.3f},{b:.3f},p{i % 700},1\n" for i, (a, b) in enumerate(rng.random((3000, 2)))]
    (tmp_path / "t.csv").write_text("income,hour_1,who,weight\n" + "".join(lines))
    text = BOUNDS.replace('"hour_*"', "hour_1")
    (tmp_path / "b.toml").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("fitted", "planned"),
    [
        ("", ""),
        ("--no-intervals --epsilon 0.3", "--no-intervals --epsilon 0.3"),
        ("--method ihm", "--method ihm"),
        ("--family huber", "--family huber"),
        ("--family logistic", "--family logistic"),
        ("--family quantile --quantile 0.9", "--family quantile --quantile 0.9"),
        ("--person who --max-rows 3", "--persons 700 --max-rows 3"),
        ("--weight weight --max-weight 2", "--weighted"),
        ("--no-intercept --delta 1e-9", "--no-intercept --delta 1e-9"),
    ],
)
def test_a_dry_run_is_the_plan_of_its_fit(table, run, fitted, planned):
    if "logistic" in fitted:
        text = re.sub("(?m)^income = .*$", "income = { labels = [0, 1] }", BOUNDS)
        (table / "b.toml").write_text(text.replace('"hour_*"', "hour_1"))
    code, out, err = run(f"fit t.csv --target income --bounds b.toml --dry-run --json {fitted}")
    assert (code, err) == (0, "")
    told = json.loads(out)
    code, out, err = run(f"plan --rows 3000 --bounds b.toml --json {planned}")
    assert (code, err) == (0, "")
    same = json.loads(out)
    same.pop("persons", None)
    assert told == same
    assert sorted(path.name for path in table.iterdir()) == ["b.toml", "t.csv"]


def test_a_dry_run_counts_what_a_fit_counts(table, run):
    rows = (table / "t.csv").read_text().splitlines()
    (table / "t.csv").write_text("\n".join([*rows, ",0.5,p1,1", "1,2,p701,1"]) + "\n")
    (table / "b.toml").write_text((table / "b.toml").read_text() + '[missing]\nrule = "drop"\n')
    line = "fit t.csv --target income --bounds b.toml --no-intervals --json"
    told = json.loads(run(f"{line} --dry-run")[1])
    fitted = json.loads(run(line)[1])
    assert told["n"] == fitted["n"] == 3001
    assert told["delta"] == pytest.approx(fitted["delta"])


def test_a_dry_run_spends_nothing_and_writes_nothing(table, run):
    assert run("ledger new l.jsonl --epsilon 1 --delta 1e-6")[0] == 0
    before = {path.name: path.read_bytes() for path in table.iterdir()}
    code, out, err = run("fit t.csv --target income --bounds b.toml --dry-run --ledger l.jsonl")
    assert (code, err) == (0, "")
    assert "privacy is expected to add an error of about" in out
    assert {path.name: path.read_bytes() for path in table.iterdir()} == before


def test_a_dry_run_does_not_count_rows_that_are_not_public(table, run):
    line = "fit t.csv --target income --bounds b.toml --dry-run --private-rows --delta 1e-8"
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert "Use 'fastmix plan --private-rows'" in err
    code, out, err = run("plan --rows 3000 --bounds b.toml --private-rows --delta 1e-8")
    assert (code, err) == (0, "")
    code, _, err = run("fit t.csv --target income --unsafe-bounds-from-data --dry-run")
    assert (code, "must be given with --bounds" in err) == (2, True)


@pytest.mark.parametrize("family", ["linear", "logistic", "quantile", "huber"])
def test_every_family_has_a_plan_and_a_page(tmp_path, monkeypatch, run, family):
    monkeypatch.chdir(tmp_path)
    line = f"plan --rows 20000 --columns 4 --family {family} --out plan.html"
    code, out, err = run(line)
    assert (code, err) == (0, "")
    assert "privacy is expected to add" in out
    assert "<svg" in (tmp_path / "plan.html").read_text()
