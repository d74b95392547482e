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
