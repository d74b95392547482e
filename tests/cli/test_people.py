"""``fastmix fit --person``: persons on the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import fastmix
from fastmix.accounting import BudgetAccountant
from fastmix.engine.population import Population
from fastmix.schema.kinds import looks_like_id

FIT = "fit visits.{} --target cost --bounds visits.toml --epsilon 2 --delta 1e-6 --out model"
BOUNDS = '[target]\ncost = [0, 100]\n[features]\nage = [0, 100]\nward = ["a", "b"]\n'
SECRET = "Rumpelstilzchen"


@pytest.fixture(autouse=True)
def visits(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    who = rng.permutation(np.repeat(np.arange(600), rng.integers(1, 9, 600)))
    age = rng.uniform(0, 100, len(who))
    age[::7] = np.nan
    ward = rng.choice(["a", "b", "c"], len(who))
    cost = np.clip(0.5 * np.nan_to_num(age, nan=50) + 10 * (ward == "b"), 0, 100)
    table = pa.table(
        {
            "who": [f"{SECRET}-{i}" for i in who],
            "age": pa.array(age, from_pandas=True),
            "ward": ward,
            "cost": cost,
        }
    )
    pyarrow.csv.write_csv(table, tmp_path / "visits.csv")
    pyarrow.parquet.write_table(table, tmp_path / "visits.parquet", row_group_size=500)
    (tmp_path / "visits.toml").write_text(BOUNDS)
    monkeypatch.chdir(tmp_path)


def test_columns_are_ids_by_their_names():
    ids = ["id", "patient_id", "PatientID", "uuid", "Case no.", "case_number", "CaseNo"]
    ids += ["Personen-Nr.", "PatNr", "Fallnummer"]
    assert [name for name in ids if not looks_like_id(name)] == []
    values = ["age", "INR", "snr", "NO", "NO2", "casino", "number of rooms", "paid", "width"]
    assert [name for name in values if looks_like_id(name)] == []


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("rule", ["impute", "drop"])
def test_a_fit_of_persons(form, rule, run):
    Path("visits.toml").write_text(f'{BOUNDS}[missing]\nrule = "{rule}"\n')
    assert run("ledger new mine.jsonl --epsilon 3 --delta 1e-5")[0] == 0
    line = FIT.format(form) + " --person who --max-rows 3 --ledger mine.jsonl"
    code, out, err = run(line)
    assert code == 0, err
    assert "one person (of whom at most 3 rows count)" in out
    certificate = json.loads(Path("model/certificate.json").read_text())
    assert certificate["data"]["max_rows_per_person"] == 3
    assert certificate["data"]["n_persons"] == (
        600 if rule == "impute" else pytest.approx(590, abs=10)
    )
    (charge,) = BudgetAccountant.load("mine.jsonl").charges
    assert "per person of up to 3 rows" in charge.label
    code, out, _ = run("explain model --verify")
    assert code == 0, out
    assert "person" in out
    assert "rows of a person that count" in Path("model/report.html").read_text()
    code, out, _ = run("ledger show mine.jsonl")
    assert "per person of up to 3 rows" in " ".join(out.split())
    for file in (*Path("model").iterdir(), Path("mine.jsonl")):
        assert SECRET not in file.read_text()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_intervals_and_scores_of_persons(form, run):
    """Intervals come by default; the report and the loaded model have both."""
    fit = FIT.format(form).replace("--epsilon 2", "--epsilon 20")  # so that noise hides no effect
    code, out, err = run(f"{fit} --person who --max-rows 3 --score-share 0.1")
    assert code == 0, err
    assert "95% interval of it" in " ".join(out.split())
    assert "R-squared (private)" in out
    loaded = fastmix.load("model")
    assert np.isfinite(loaded.coef_std_).any()
    assert loaded.scores_["r2"] <= 1.0
    assert run("explain model --verify")[0] == 0
    code, out, err = run(f"{FIT.format(form)} --person who --max-rows 3 --no-intervals --force")
    assert code == 0, err
    assert not hasattr(fastmix.load("model"), "coef_std_")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--person who", "--person and --max-rows must be given together"),
        ("--max-rows 3", "--person and --max-rows must be given together"),
        ("--person who --max-rows 0", "'--max-rows': Input should be greater than or equal to 1"),
        ("--person whom --max-rows 3", "has no column 'whom'"),
        ("--person who --max-rows 3 --engine memory", "--engine stream or dask"),
        ("--person who --max-rows 3 --method ihm", "protects single rows only"),
        ("--weight age --max-weight 3 --method ihm", "--weight must not be given with --method"),
        ("--private-rows --method ihm", "--private-rows must not be given with --method"),
        ("--person age --max-rows 3", "groups must hold an id"),
    ],
)
def test_refusals(options, said, run):
    assert run("ledger new mine.jsonl --epsilon 3 --delta 1e-5")[0] == 0
    code, _, err = run(f"{FIT.format('parquet')} --ledger mine.jsonl {options}")
    assert code in (2, 3)
    assert said in err
    assert SECRET not in err
    assert len(BudgetAccountant.load("mine.jsonl")) == 0
    assert not Path("model").exists()


def test_persons_of_several_classes(run):
    Path("wards.toml").write_text('[target]\nward = ["a", "b", "c"]\n[features]\nage = [0, 100]\n')
    line = "fit visits.csv --target ward --bounds wards.toml --family logistic --delta 1e-6"
    code, _, err = run(f"{line} --epsilon 8 --person who --max-rows 3 --score-share 0.1")
    assert code == 0, err
    assert fastmix.load("model").coef_std_.shape == (3, 1)
    code, out, _ = run("summary model")
    assert (code, "all others together" in " ".join(out.split())) == (0, True)
    assert run("explain model --verify")[0] == 0
    code, out, err = run("evaluate model visits.csv --epsilon 1 --delta 1e-6 --person who")
    assert code == 0, err
    assert "600 persons" in out


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_bounds_found_for_persons(form, run):
    find = f"bounds visits.{form} --target cost --epsilon 1 --delta 1e-6 --features age,ward"
    find += " --categories ward" if form == "csv" else ""
    code, _, err = run(f"{find} --person who --max-rows 4 --out persons.toml")
    assert code == 0, err
    text = Path("persons.toml").read_text()
    assert "rows_per_person = 4" in text
    assert SECRET not in text
    fit = f"fit visits.{form} --target cost --epsilon 2 --delta 1e-6 --person who --max-rows 3"
    code, _, err = run(f"{fit} --bounds persons.toml --out one")
    assert code == 0, err
    assert run("explain one --verify")[0] == 0
    # Those that protect rows only are refused beside persons.
    assert run(f"{find} --out rows.toml")[0] == 0
    code, _, err = run(f"{fit} --bounds rows.toml --out two")
    assert code == 2
    assert "must protect persons" in err
    assert run(f"{find} --person who --out x.toml")[0] == 2


def test_scores_of_single_rows_are_refused_for_persons(run):
    assert run("ledger new mine.jsonl --epsilon 3 --delta 1e-5")[0] == 0
    assert run(f"{FIT.format('csv')} --person who --max-rows 3")[0] == 0
    code, _, err = run("evaluate model visits.csv --epsilon 0.5 --delta 1e-6 --ledger mine.jsonl")
    assert (code, "groups must be given: this model protects persons" in err) == (2, True)
    assert len(BudgetAccountant.load("mine.jsonl")) == 0
    loaded = fastmix.load("model")
    assert (loaded._population, loaded.public_rows) == (Population(rows_per_person=3), True)
    with pytest.raises(ValueError, match="protects persons"):
        loaded.evaluate(pd.read_csv("visits.csv"), epsilon=0.5, delta=1e-6)
    # A model that does not say whom it protects is not read as one that protects rows.
    path = Path("model/model.json")
    entries = json.loads(path.read_text())
    stated = entries["certificate"]["parameters"]
    for changed in ({"max_rows_per_group": None}, {"public_rows": False}):
        entries["certificate"]["parameters"] = stated | changed
        path.write_text(json.dumps(entries))
        assert run("explain model --verify")[0] == 1
    del stated["max_rows_per_group"]
    entries["certificate"]["parameters"] = stated
    path.write_text(json.dumps(entries))
    assert run("evaluate model visits.csv --epsilon 0.5 --delta 1e-6")[0] == 3


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_template_leaves_the_ids_out(form, run):
    """The next step names them, with an example of the rows that count."""
    code, out, err = run(f"bounds visits.{form} --target cost --person who --out t.toml")
    assert code == 0, err
    assert "--person who --max-rows 10 " in out
    names = Path("t.toml").read_text()
    assert "age = " in names
    assert "who" not in names
    code, _, err = run(f"bounds visits.{form} --target cost --person nobody")
    assert code == 3
    assert "nobody" in err


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("rule", ["impute", "drop"])
def test_scores_and_comparisons_of_persons(form, rule, run):
    Path("visits.toml").write_text(f'{BOUNDS}[missing]\nrule = "{rule}"\n')
    assert run("ledger new mine.jsonl --epsilon 30 --delta 1e-4")[0] == 0
    who = "--person who --max-rows 3"
    assert run(f"{FIT.format(form)} {who}")[0] == 0
    line = f"evaluate model visits.{form} --epsilon 2 --delta 1e-6 --ledger mine.jsonl"
    code, out, err = run(f"{line} --person who")
    assert code == 0, err
    assert "for one person (of whom at most 3 rows count)" in " ".join(out.split())
    code, out, err = run(f"{line} --person who --weight cost --max-weight 50 --json")
    assert code == 0, err
    told = json.loads(out)
    assert told["unit"] == "person"
    assert told["epsilon"] <= 2.0
    code, _, err = run(f"{line} --max-rows 3")
    assert (code, "--max-rows must be given with --person" in err) == (2, True)
    line = f"compare visits.{form} --target cost --bounds visits.toml --epsilon 2 --delta 1e-6"
    line += " --set age,ward --set ward --out best --ledger mine.jsonl"
    code, out, err = run(f"{line} {who} --weight cost --max-weight 50 --private-rows")
    assert code == 0, err
    assert "age,ward" in out
    assert run("explain best --verify")[0] == 0
    assert fastmix.load("best")._population == Population(None, 3, 50.0, True)
    units = [charge.rows_per_person for charge in BudgetAccountant.load("mine.jsonl").charges]
    assert units == [3, 3, 3, 3]
    code, _, err = run(f"{line} --person who --force")
    assert (code, "--person and --max-rows must be given together" in err) == (2, True)
    for file in (*Path("best").iterdir(), Path("mine.jsonl")):
        assert SECRET not in file.read_text()


def test_a_ledger_for_persons_refuses_rows(run):
    assert run("ledger new mine.jsonl --epsilon 9 --delta 1e-4 --unit person")[0] == 0
    line = f"{FIT.format('csv')} --ledger mine.jsonl --force"
    code, _, err = run(line)
    assert code != 0
    assert "--person and --max-rows" in " ".join(err.split())
    assert len(BudgetAccountant.load("mine.jsonl")) == 0
    assert run(f"{line} --person who --max-rows 3")[0] == 0
    assert "refuses fits that protect single rows" in " ".join(
        run("ledger show mine.jsonl")[1].split()
    )
    assert json.loads(run("ledger show mine.jsonl --json")[1])["unit"] == "person"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_check_advises_on_rows_by_public_numbers_alone(form, run):
    """Another division of the rows among the persons gives the same advice."""
    line = f"check visits.{form} --bounds visits.toml --person who --typical-rows 1-8"
    code, out, err = run(line)
    assert code == 0, err
    said = out[out.index("600 persons") :]
    assert "Choose --max-rows of" in said
    table = pd.read_csv("visits.csv")
    table["who"] = [f"{SECRET}-{max(0, i - len(table) + 600)}" for i in range(len(table))]
    getattr(table, f"to_{form}")(f"visits.{form}", index=False)
    code, out, _ = run(line)
    assert out[out.index("600 persons") :] == said
    assert SECRET not in out
