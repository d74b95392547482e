"""The commands as a stranger would use them, and what they never say."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import typer

import fastmix
from fastmix.cli import main
from fastmix.cli.app import COMMANDS, make_app
from fastmix.cli.main import ExitCode
from fastmix.data.encode import encode
from fastmix.data.read import read_columns
from fastmix.estimators.saving import model_document
from fastmix.files.loading import load
from fastmix.schema import read_bounds

FIT = "fit people.csv --target income --bounds bounds.toml --epsilon 1 --delta 1e-6"
#: They may appear by chance in the middle of another number.
SECRET = re.compile(r"Rumpelstilzchen|(?<![0-9.])(77123|61\.2345)")


def examples(name):
    return import_module(f"fastmix.cli.{name}").EXAMPLES


def test_a_command_that_is_not_loaded_has_the_same_line_of_help():
    loaded, listed = (typer.main.get_command(make_app(names)) for names in (COMMANDS, ()))
    assert list(loaded.commands) == list(listed.commands) == list(COMMANDS)
    for name in COMMANDS:
        short = loaded.commands[name].get_short_help_str(200)
        assert listed.commands[name].get_short_help_str(200) == short


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_its_examples(name, run):
    code, out, _ = run([name, "--help"])
    assert code == 0
    words = " ".join(re.sub(r"[│\n]", " ", out).split())
    for example in examples(name):
        assert f"$ {example}" in words
    assert "Example" in out


#: Takes longer and has tests of its own.
ELSEWHERE = ("audit",)


def visits(run, *, fit):
    """Write a table of the visits of 400 patients and its bounds, and fit a model if asked."""
    rng = np.random.default_rng(0)
    patient = rng.integers(0, 400, 3000)
    age = rng.uniform(0, 100, 3000)
    table = {"patient": patient, "age": age, "cost": 0.5 * age + rng.normal(0, 3, 3000)}
    pyarrow.csv.write_csv(pa.table(table), "visits.csv")
    Path("visits.toml").write_text("[target]\ncost = [0, 100]\n[features]\nage = [0, 100]\n")
    if fit:
        line = "fit visits.csv --target cost --bounds visits.toml --epsilon 1 --force"
        assert run(f"{line} --person patient --max-rows 10")[0] == 0


def smokers():
    """Write a table with labels and its bounds."""
    rng = np.random.default_rng(0)
    age, city = rng.uniform(0, 100, 3000), rng.choice(["Ulm", "Bonn"], 3000)
    smoker = np.where(rng.uniform(0, 100, 3000) < age, "yes", "no")
    pyarrow.csv.write_csv(pa.table({"age": age, "city": city, "smoker": smoker}), "smokers.csv")
    features = 'age = [0, 100]\ncity = ["Ulm", "Bonn"]\n'
    Path("smokers.toml").write_text(f'[target]\nsmoker = ["yes", "no"]\n[features]\n{features}')


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ELSEWHERE])
def test_examples_run(name, folder, run):
    needs_model = name in ("predict", "explain", "summary", "evaluate")
    if needs_model:
        stated = 'curator = "Office"\npurpose = "Planning"\nregion = "Ulm"\n'
        Path("papers.toml").write_text(stated)
        assert run("key institution")[0] == 0
        assert run(f"{FIT} --papers papers.toml --sign institution.key")[0] == 0
    for example in examples(name):
        program, *arguments = example.split()
        assert program == "fastmix"
        if "visits.csv" in arguments:
            visits(run, fit="model" in arguments)
        if "smokers.csv" in arguments:
            smokers()
        code, _, err = run(arguments)
        assert code == 0, (example, err)


def test_a_table_of_ones_own_in_three_commands(folder, run):
    code, out, _ = run("bounds people.csv --target income --out mine.toml")
    assert code == 0
    assert "fastmix fit people.csv --target income --bounds mine.toml" in out
    code, _, err = run("fit people.csv --target income --bounds mine.toml")
    assert code == ExitCode.USAGE
    assert err == (
        "fastmix: mine.toml: income, age and city have no bounds yet. Fill in [lower, upper], or "
        "for a feature a list of categories, from public knowledge.\n"
    )
    code, out, _ = run(FIT)
    assert code == 0
    assert "differentially private" in out
    assert {p.name for p in Path("model").iterdir()} >= {"model.json", "certificate.json"}
    code, out, _ = run("explain model --verify")
    assert code == 0
    assert "Verified" in out


def test_the_next_command_can_be_pasted(folder, run):
    (folder / "people.csv").rename(folder / "our people.csv")
    code, out, _ = run(["bounds", "our people.csv", "--target", "income", "--out", "mine.toml"])
    assert code == 0
    program, *arguments = shlex.split(out.splitlines()[-1])
    assert program == "fastmix"
    (folder / "bounds.toml").rename(folder / "mine.toml")
    assert run(arguments)[0] == 0


def test_nothing_of_the_data_is_ever_said(folder, run):
    """Every command, working and failing, prints and writes no value of the table."""
    lines = [
        "bounds people.csv --target income",
        "bounds people.parquet --target income --json",
        FIT,
        f"{FIT} --force --json",
        f"{FIT} --features city --out other",
        f"{FIT} --method linear_mixing --out mixing",
        "explain model --verify --json",
        "predict model people.csv",
        "predict model people.parquet --force --json",
        "fit people.csv --target city --bounds bounds.toml",
        "fit people.csv --target nothing --bounds bounds.toml",
        "ledger new b.jsonl --epsilon 0.1 --delta 1e-6",
        f"{FIT} --ledger b.jsonl --out refused",
    ]
    (folder / "wrong.toml").write_text("[target]\nincome = [0, 1]\n[features]\ncity = [0, 1]\n")
    lines.append("fit people.csv --target income --bounds wrong.toml --out wrong")
    (folder / "ragged.csv").write_text("age,city,income\n1,Rumpelstilzchen,77123.4567,8\n")
    lines.append("fit ragged.csv --target income --bounds bounds.toml --out ragged")
    codes = []
    for line in lines:
        code, out, err = run(line)
        codes.append(code)
        assert err.count("\n") <= 1, line
        assert not SECRET.search(out + err), line
    assert codes == [0] * 9 + [2, 2, 0, 4, 3, 3]
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".html", ".jsonl", ".toml"):
            assert not SECRET.search(path.read_text()), path


def test_bounds_from_the_data_must_be_asked_for_and_are_marked(folder, run):
    code, out, err = run("fit people.csv --target income")
    assert code == ExitCode.USAGE
    assert out == ""
    assert "public knowledge" in err
    line = "fit people.csv --target income --features age --unsafe-bounds-from-data"
    code, out, err = run(line)
    assert code == 0
    assert "NOT PRIVATE" in out
    assert "warning" in err
    certificate = json.loads(Path("model/certificate.json").read_text())
    assert certificate["private"] is False
    assert json.loads(Path("model/model.json").read_text())["certificate"]["private"] is False
    code, out, _ = run("explain model --verify")
    assert code == 0
    assert out.startswith("NOT PRIVATE")
    code, _, _ = run(f"{FIT} --unsafe-bounds-from-data --out both")
    assert code == ExitCode.USAGE


def test_a_fit_is_the_estimators_fit(folder, run):
    """Noise aside: at a huge epsilon the command agrees with least squares on the same matrix."""
    code, out, _ = run(
        "fit people.parquet --target income --bounds bounds.toml --epsilon 1e5 --delta 1e-6 --json"
    )
    assert code == 0
    found = json.loads(out)
    bounds = read_bounds(Path("bounds.toml"))
    columns = read_columns(
        Path("people.parquet"), ["income", "age"], {"city": ("Ulm", "Bonn", "Kiel")}
    )
    X, y = encode(columns, bounds)
    A = np.column_stack([X, np.ones(len(y))])
    exact = np.linalg.lstsq(A, y, rcond=None)[0]
    model = load("model")
    np.testing.assert_allclose([*model.coef_, model.intercept_], exact, rtol=0.02, atol=100)
    # Effects as in the summary: against the most frequent level, the largest first.
    told = json.loads(run("summary model --json")[1])
    assert found["coefficients"] == told["coefficients"]
    reference = found["references"]["city"]
    others = {f"city={name}" for name in ("Ulm", "Bonn", "Kiel", "other") if name != reference}
    names = [each["name"] for each in found["coefficients"]]
    assert {*names} | {*found["pooled"]} <= {"age", "intercept", *others}
    assert names[-1] == "intercept"


def test_model_round_trips_exactly_and_predicts(folder, run):
    assert run(FIT)[0] == 0
    written = json.loads(Path("model/model.json").read_text())
    model = fastmix.load("model")
    assert model_document(model)[0] == written
    assert run("predict model people.csv --out p.parquet")[0] == 0
    columns = read_columns(Path("people.csv"), ["age"], {"city": ("Ulm", "Bonn", "Kiel")})
    written = pyarrow.parquet.read_table("p.parquet")["predicted_income"]
    np.testing.assert_array_equal(written.to_numpy(), model.predict(columns))
    age = columns.numbers["age"][3]
    city = ("Ulm", "Bonn", "Kiel", "other")[columns.codes["city"][3]]
    effects = dict(zip(model.schema_.columns(), model.coef_, strict=True))
    expected = model.intercept_ + effects["age"] * age + effects.get(f"city={city}", 0.0)
    assert model.predict(columns)[3] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("key", "value"),
    [("format", "x"), ("format", "fastmix-model-5"), ("columns", ["a"]), ("fitted", {})],
)
def test_a_damaged_model_is_refused(folder, run, key, value):
    assert run(FIT)[0] == 0
    path = Path("model/model.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    code, _, err = run("predict model people.csv")
    assert code == ExitCode.DATA
    assert "fastmix-model-7" in err
    assert ("Fit the model again" in err) == (value == "fastmix-model-5")


def test_an_existing_model_is_not_lost(folder, run):
    assert run(FIT)[0] == 0
    code, _, err = run(FIT)
    assert code == ExitCode.USAGE
    assert "--force" in err
    assert run(f"{FIT} --force")[0] == 0
    code, _, err = run("bounds people.csv --target income --out bounds.toml")
    assert code == ExitCode.USAGE


def test_a_ledger_is_shared_and_refuses(folder, run):
    assert run("ledger new b.jsonl --epsilon 1.2 --delta 1e-6 --rule basic")[0] == 0
    assert run("ledger new b.jsonl --epsilon 1 --delta 1e-6")[0] == ExitCode.USAGE
    line = "fit people.csv --target income --bounds bounds.toml --delta 1e-7 --ledger b.jsonl"
    assert run(f"{line} --out one")[0] == 0
    code, _, err = run(f"{line} --out two")
    assert code == ExitCode.BUDGET
    assert "Nothing was charged" in err
    assert not Path("two").exists()
    code, out, _ = run("ledger show b.jsonl --json")
    shown = json.loads(out)
    assert len(shown["charges"]) == 1
    assert 0.0 < shown["left"] < 0.4
    assert run("ledger show nothing.jsonl")[0] == ExitCode.DATA


def test_errors_are_one_line_with_a_code(folder, run):
    for line, expected in (
        (FIT.replace("--epsilon 1", "--epsilon -1"), ExitCode.USAGE),
        (FIT.replace("--epsilon 1", "--epsilon one"), ExitCode.USAGE),
        (FIT.replace("people.csv", "nobody.csv"), ExitCode.DATA),
        (FIT.replace("bounds.toml", "nothing.toml"), ExitCode.DATA),
        ("explain bounds.toml", ExitCode.DATA),
        ("fit", ExitCode.USAGE),
        ("frobnicate", ExitCode.USAGE),
        ("calibrate --rows 0 --columns 2 --method nope", ExitCode.USAGE),
    ):
        code, out, err = run(line)
        assert code == expected, (line, err)
        assert out == ""
        assert err.startswith("fastmix: ")
        assert err.count("\n") == 1


def test_an_unexpected_error_keeps_its_message(folder, run, monkeypatch):
    def explode(*_args, **_kwargs):
        raise RuntimeError("Rumpelstilzchen")

    monkeypatch.setattr("fastmix.cli._asked.read_columns", explode)
    code, out, err = run(FIT)
    assert code == ExitCode.INTERNAL
    assert "Rumpelstilzchen" not in out + err
    assert "RuntimeError" in err


def test_calibrate_tells_what_the_fit_will_do(folder, run):
    code, out, _ = run("calibrate --rows 4000 --columns 1 --epsilon 1 --delta 1e-6 --json")
    assert code == 0
    planned = json.loads(out)
    assert run(f"{FIT} --features age")[0] == 0
    certificate = json.loads(Path("model/certificate.json").read_text())
    assert planned["account"] == certificate["account"]
    assert certificate["parameters"]["inference"]  # intervals come by default


def test_the_command_explains_what_it_lacks(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "fastmix.cli.app")
    assert main(["demo"]) == ExitCode.MISSING_PACKAGE
    assert 'pip install "fastmix[cli]"' in capsys.readouterr().err


def test_the_library_does_not_load_the_command_line():
    """``import fastmix`` stays quick: no module outside the command line imports its packages."""
    root = Path(fastmix.__file__).parent
    for path in root.rglob("*.py"):
        if "cli" in path.relative_to(root).parts:
            continue
        tree = ast.parse(path.read_text())
        for node in tree.body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] not in {"typer", "rich", "pyarrow", "matplotlib"}, path


def test_completion_is_offered():
    done = subprocess.run(
        [sys.executable, "-m", "fastmix", "--show-completion", "bash"],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": "/usr/bin:/bin",
            "SHELL": "/bin/bash",
            "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        },
    )
    assert "_FASTMIX_COMPLETE" in done.stdout, done.stderr


def test_summary_prints_the_table_of_a_model(folder, run):
    assert run(FIT)[0] == 0
    code, out, _ = run("summary model --level 0.9")
    assert code == 0
    assert "P>|z|" in out
    assert "[0.05" in out
    assert "intercept" in out
    code, out, _ = run("summary model --json")
    made = json.loads(out)
    assert made["level"] == 0.95
    assert {"name", "coef", "std_err", "z", "p_value"} <= set(made["coefficients"][0])
    assert made["hidden"] == []
    assert run("summary model --level 2")[0] == 2


def test_evaluate_charges_a_ledger_and_prints_scores(folder, run):
    assert run(FIT)[0] == 0
    assert run("ledger new budget.ledger --epsilon 1 --delta 1e-5")[0] == 0
    line = "evaluate model people.csv --epsilon 0.5 --delta 1e-6 --ledger budget.ledger"
    code, out, _ = run(f"{line} --json")
    assert code == 0
    found = json.loads(out)
    assert set(found["scores"]) == {"r2", "mse", "mae"}
    assert 0.0 < found["epsilon"] <= 0.5
    code, out, _ = run(f"{line.replace('0.5', '0.1')} --metrics r2")
    assert code == 0
    assert "r2" in out
    assert "mse" not in out
    assert run(f"{line.replace('0.5', '0.9')}")[0] == 4
    assert run("evaluate model people.csv --epsilon 0.5 --metrics rmse")[0] == 2


def test_compare_fits_the_best_set_and_charges_once(folder, run):
    assert run("ledger new budget.ledger --epsilon 1 --delta 1e-5")[0] == 0
    line = (
        "compare people.csv --target income --bounds bounds.toml --epsilon 0.8 --delta 1e-6 "
        "--set age,city --set age --ledger budget.ledger --out best"
    )
    code, out, err = run(f"{line} --json")
    assert code == 0, err
    found = json.loads(out)
    assert found["best"] in ("age,city", "age")
    assert found["ranking"][0]["features"] == found["best"]
    assert run("explain best --verify")[0] == 0
    assert run("predict best people.csv --out p.csv")[0] == 0
    assert run(f"{line} --force")[0] == 4
    one = "compare people.csv --target income --bounds bounds.toml --set age --out other"
    assert run(one)[0] == 2
    assert run(f"{one} --set height")[0] == 2
    # Of equal sets one would lend its name to the columns of another.
    assert run(f"{one} --set age --set city")[0] == 2


def test_a_share_of_the_budget_shows_r2(folder, run):
    code, out, _ = run(f"{FIT} --score-share 0.1 --out scored")
    assert code == 0
    assert re.search(r"R-squared \(private\): -?\d\.\d+ \(-?\d\.\d+ to -?\d\.\d+\)\.", out)
    assert "private R² (training rows)" in Path("scored/report.html").read_text()
    assert run("explain scored --verify")[0] == 0
    score = json.loads(run(f"{FIT} --score-share 0.1 --out other --json")[1])["scores"]["r2"]
    assert score["low"] < score["value"] < score["high"]
    assert "scores" not in json.loads(run(f"{FIT} --out third --json")[1])
