"""``fastmix bounds --epsilon``: a bounds file found privately, and the fit that uses it."""

import errno
import json
import os
import tomllib
from pathlib import Path

import pytest

from fastmix.accounting import BudgetAccountant
from fastmix.cli import bounds
from fastmix.schema import read_bounds

FIND = "bounds people.parquet --target income --epsilon 0.5 --delta 1e-7 --out found.toml"


def test_from_bounds_to_a_certificate_that_says_so(folder, run):
    assert run("ledger new mine.jsonl --epsilon 3 --delta 1e-5")[0] == 0
    code, out, err = run(f"{FIND} --ledger mine.jsonl")
    assert (code, err) == (0, "")
    assert "differentially private" in out
    assert "--ledger mine.jsonl" in out
    found = read_bounds(Path("found.toml"))
    assert found.found.epsilon <= 0.5
    assert found.target.lower < 25_000 < 45_000 < found.target.upper
    age, city = found.features
    assert age.lower >= 8
    assert age.upper <= 256
    # Everybody's cities, and nobody's alone.
    assert set(city.categories) == {"Ulm", "Bonn", "Kiel", "Rom"}
    assert "Rumpel" not in Path("found.toml").read_text()
    fit = "fit people.parquet --target income --bounds found.toml --epsilon 2 --delta 1e-6"
    assert run(f"{fit} --ledger mine.jsonl")[0] == 0
    budget = BudgetAccountant.load("mine.jsonl")
    assert next(charge.label for charge in budget.charges) == "PrivateBounds"
    assert len(budget) == 2
    certificate = json.loads(Path("model/certificate.json").read_text())
    assert certificate["data"]["encoding"]["found"]["epsilon"] == found.found.epsilon
    code, out, _ = run("explain model --verify")
    assert code == 0
    assert "found privately" in " ".join(out.split())


def test_what_is_known_is_kept(folder, run):
    Path("known.toml").write_text("[target]\nincome = []\n[features]\nage = [0, 120]\ncity = []\n")
    code, _, err = run(f"{FIND} --known known.toml")
    assert (code, err) == (0, "")
    found = tomllib.loads(Path("found.toml").read_text())
    assert found["features"]["age"] == [0, 120]
    assert found["target"]["income"] != []


def test_csv_needs_to_be_told_its_categories(folder, run):
    code, _, err = run("bounds people.csv --target income --epsilon 0.5 --out a.toml")
    assert code == 3
    assert "column 'city' has an entry that is not a number" in err
    told = "--delta 1e-7 --categories city --out a.toml"
    code, _, err = run(f"bounds people.csv --target income --epsilon 0.5 {told}")
    assert (code, err) == (0, "")
    assert read_bounds(Path("a.toml")).features[1].name == "city"


def test_a_budget_that_does_not_cover_it_writes_nothing(folder, run):
    assert run("ledger new small.jsonl --epsilon 0.1 --delta 1e-6")[0] == 0
    code, _, _err = run(f"{FIND} --ledger small.jsonl")
    assert code == 4
    assert not Path("found.toml").exists()


@pytest.mark.parametrize("option", ["--known bounds.toml", "--delta 1e-6", "--ledger x.jsonl"])
def test_options_that_need_epsilon(option, folder, run):
    code, _, err = run(f"bounds people.csv --target income {option}")
    assert code == 2
    assert "be given with --epsilon" in err


def test_too_little_data_for_any_bound(folder, run):
    code, _out, _ = run(
        "bounds people.parquet --target income --epsilon 0.0001 --delta 1e-7 --out thin.toml"
    )
    assert code == 0
    text = Path("thin.toml").read_text()
    assert "nothing was found above the noise" in text
    code, _, err = run("fit people.parquet --target income --bounds thin.toml")
    assert code == 2
    assert "income has no bounds yet" in err


def no_space(*given):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_found_before_the_charge(folder, run, monkeypatch):
    assert run("ledger new mine.jsonl --epsilon 3 --delta 1e-5")[0] == 0
    monkeypatch.setattr(os, "posix_fallocate", no_space)
    code, _, err = run(f"{FIND} --ledger mine.jsonl")
    assert code != 0
    assert "No space left" in err
    assert len(BudgetAccountant.load("mine.jsonl")) == 0
    assert not [path for path in folder.iterdir() if "found" in path.name or path.name[0] == "."]


def test_bounds_that_cannot_be_written_are_on_the_screen(folder, run, monkeypatch):
    """They are charged by then: finding them again would cost as much again."""
    assert run("ledger new mine.jsonl --epsilon 3 --delta 1e-5")[0] == 0
    monkeypatch.setattr(bounds, "fill", no_space)
    code, out, err = run(f"{FIND} --ledger mine.jsonl")
    assert code != 0
    assert "could not be written" in err
    assert tomllib.loads(out)["found"]["epsilon"] <= 0.5
    assert len(BudgetAccountant.load("mine.jsonl")) == 1
    assert not Path("found.toml").exists()
