"""``fastmix fit --weight``: sample weights on the command line."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import fastmix
from fastmix.accounting import BudgetAccountant

FIT = "fit survey.{} --target income --bounds survey.toml --epsilon 3 --delta 1e-6 --out model"
BOUNDS = '[target]\nincome = [0, 100]\n[features]\nage = [0, 100]\nward = ["a", "b"]\n'


@pytest.fixture(autouse=True)
def survey(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, 4000)
    weights = np.where(age > 50, 300.0, 3.0)
    age[::7] = np.nan
    ward = rng.choice(["a", "b"], 4000)
    income = np.where(weights > 100, 80.0, 20.0) + rng.normal(0, 3, 4000)
    table = pa.table(
        {
            "weight": weights,
            "age": pa.array(age, from_pandas=True),
            "ward": ward,
            "income": income,
            "who": np.arange(4000) // 2,
        }
    )
    pyarrow.csv.write_csv(table, tmp_path / "survey.csv")
    pyarrow.parquet.write_table(table, tmp_path / "survey.parquet", row_group_size=900)
    (tmp_path / "survey.toml").write_text(BOUNDS)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("rule", ["impute", "drop"])
def test_a_weighted_fit(form, rule, run):
    Path("survey.toml").write_text(f'{BOUNDS}[missing]\nrule = "{rule}"\n')
    line = FIT.format(form) + " --weight weight --max-weight 300"
    code, _, err = run(line)
    assert code == 0, err
    certificate = json.loads(Path("model/certificate.json").read_text())
    assert certificate["data"]["max_weight"] == 300.0
    assert certificate["parameters"]["inference"]  # intervals come by default
    assert certificate["data"]["chosen"]["mean_weight"] == pytest.approx(0.5, abs=0.1)
    code, out, _ = run("explain model --verify")
    assert code == 0, out
    assert "survey weights" in " ".join(out.split())
    assert "survey or sample weights, clipped at" in Path("model/report.html").read_text()
    # The heavy half of the rows decides on the level.
    model = fastmix.load("model")
    assert model.intercept_ + 75 * model.coef_[0] > 65.0


def test_weights_and_persons(run):
    options = "--weight weight --max-weight 300 --person who --max-rows 2"
    code, out, err = run(f"{FIT.format('parquet')} {options}")
    assert code == 0, err
    assert "2,000 persons" in out
    assert run("explain model --verify")[0] == 0


@pytest.mark.parametrize("who", ["", "--person who --max-rows 2"])
def test_a_number_of_rows_that_is_not_public(who, run):
    assert run("ledger new mine.jsonl --epsilon 4 --delta 1e-5")[0] == 0
    code, out, err = run(f"{FIT.format('parquet')} --private-rows --ledger mine.jsonl {who}")
    assert code == 0, err
    assert "(released with noise)" in out
    assert len(BudgetAccountant.load("mine.jsonl")) == 2
    assert run("explain model --verify")[0] == 0
    evaluate = "evaluate model survey.parquet --epsilon 0.5 --ledger mine.jsonl"
    code, _, err = run(evaluate)
    assert code == 2
    assert ("protects persons" if who else "delta must be given") in err
    assert len(BudgetAccountant.load("mine.jsonl")) == 2
    code, scores, err = run(f"{evaluate} --delta 1e-6 {'--person who' if who else ''}")
    assert code == 0, err
    assert re.search("^about [0-9,]+ " + ("persons" if who else "rows"), scores, re.MULTILINE)
    assert "added or removed" in scores
    assert len(BudgetAccountant.load("mine.jsonl")) == 3
    rows, report = (1800 if who else 3900), Path("model/report.html").read_text()
    facts = json.loads(Path("model/certificate.json").read_text())["data"]
    assert rows < facts["n_samples"] < rows + 300
    assert f"{facts['n_samples']:,} (released with noise)" in report
    told = "".join(file.read_text() for file in Path("model").iterdir()) + out + scores
    assert "4,000" not in told
    assert not re.search(r"(?<![0-9.])4000(?![0-9])", told)
    code, _, err = run(
        f"{FIT.format('parquet').replace('--delta 1e-6', '')} --private-rows --force"
    )
    assert code in (2, 3)
    assert "delta must be given" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--weight weight", "--weight and --max-weight must be given together"),
        ("--max-weight 3", "--weight and --max-weight must be given together"),
        ("--weight weight --max-weight 0", "max_weight must be at least"),
        ("--weight heft --max-weight 3", "has no column 'heft'"),
        ("--weight weight --max-weight 3 --engine memory", "--engine stream or dask"),
        ("--weight weight --max-weight 3 --method ihm", "counts all rows alike"),
        ("--weight ward --max-weight 3", "must hold numbers"),
        ("--weight age --max-weight 3", "sample_weight must hold a finite number"),
    ],
)
def test_refusals(options, said, run):
    assert run("ledger new mine.jsonl --epsilon 3 --delta 1e-5")[0] == 0
    code, _, err = run(f"{FIT.format('parquet')} --ledger mine.jsonl {options}")
    assert code in (2, 3)
    assert said in err
    assert len(BudgetAccountant.load("mine.jsonl")) == 0
    assert not Path("model").exists()
