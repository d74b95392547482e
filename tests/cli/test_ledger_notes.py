"""The ledger tells which fit each charge was for."""

from __future__ import annotations

import json

LINE = "fit people.csv --target income --bounds bounds.toml --delta 1e-7 --ledger b.jsonl"


def test_show_names_file_target_and_folder(folder, run):
    assert run("ledger new b.jsonl --epsilon 5 --delta 1e-5")[0] == 0
    assert run(f"{LINE} --label income-2026 --out models/one")[0] == 0
    assert run(f"{LINE} --out two")[0] == 0
    code, out, _ = run("ledger show b.jsonl")
    assert code == 0
    header, first, second, *_ = out.splitlines()
    assert header.split() == ["fit", "time", "(UTC)", "target", "file", "model", "epsilon", "delta"]
    assert first.split()[0] == "income-2026"
    assert first.split()[-5:-2] == ["income", "people.csv", "models/one"]
    assert second.split()[0] == "PrivateLinearRegression"
    charges = json.loads(run("ledger show b.jsonl --json")[1])["charges"]
    assert charges[0]["file"] == "people.csv"
    assert charges[0]["model"] == "models/one"


def test_what_is_left_is_left_for_a_default_fit(folder, run):
    """The smaller number that is shown is covered, and more than the larger one is not."""
    assert run("ledger new b.jsonl --epsilon 2 --delta 1e-6")[0] == 0
    assert run(f"{LINE} --epsilon 1 --out one")[0] == 0
    told = json.loads(run("ledger show b.jsonl --json")[1])
    low, high = told["left_default"]
    assert 0.3 < low <= high <= told["left"]
    shown = run("ledger show b.jsonl")[1]
    assert "of the default method with delta 1e-07 and epsilon up to 1." in shown
    assert run(f"{LINE} --epsilon {1.2 * high} --out two")[0] != 0
    assert run(f"{LINE} --epsilon {low} --out two")[0] == 0


def test_a_label_of_ones_own_does_not_hide_whom_a_charge_protects(folder, run):
    assert run("ledger new b.jsonl --epsilon 9 --delta 1e-5")[0] == 0
    (folder / "bounds.toml").write_text("[target]\nincome = [0, 1e5]\n[features]\nage = [0, 120]\n")
    code, _, err = run(f"{LINE} --label mine --person city --max-rows 3 --out one")
    assert code == 0, err
    charge = json.loads(run("ledger show b.jsonl --json")[1])["charges"][0]
    assert charge["label"] == "mine, per person of up to 3 rows"
    assert run(f"{LINE} --label other --out two")[0] == 0
    assert json.loads(run("ledger show b.jsonl --json")[1])["mixed_units"]


def test_every_command_that_spends_says_for_what(folder, run):
    assert run("ledger new b.jsonl --epsilon 20 --delta 1e-4")[0] == 0
    assert run(f"{LINE} --out model --label fitted")[0] == 0
    spent = "--delta 1e-7 --ledger b.jsonl --label"
    table = "people.csv --target income"
    assert run(f"evaluate model people.csv --epsilon 1 {spent} scored")[0] == 0
    sets = "--bounds bounds.toml --set age --set age,city --out best"
    assert run(f"compare {table} {sets} {spent} compared")[0] == 0
    found = "--categories city --epsilon 1 --out found.toml"
    assert run(f"bounds {table} {found} {spent} found")[0] == 0
    charges = json.loads(run("ledger show b.jsonl --json")[1])["charges"]
    assert [each["label"] for each in charges] == ["fitted", "scored", "compared", "found"]
    assert {(each["file"], each["target"]) for each in charges} == {("people.csv", "income")}
