"""Logistic, quantile and robust regression from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import fastmix
from fastmix import BudgetAccountant, PrivateLogisticRegression

BOUNDS = """
[target]
y = [{low}, {high}]
[features]
a = [-1, 1]
b = [-1, 1]
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 2))
    t = 2.0 * X[:, 0] - X[:, 1]
    labels = (t + rng.logistic(size=6000) > 0).astype(float)
    numbers = t + rng.normal(size=6000)
    for name, y, ends in (("labels", labels, (0, 1)), ("numbers", numbers, (-6, 6))):
        made = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
        pyarrow.csv.write_csv(made, tmp_path / f"{name}.csv")
        pyarrow.parquet.write_table(made, tmp_path / f"{name}.parquet")
        text = BOUNDS.format(low=ends[0], high=ends[1])
        (tmp_path / f"{name}.toml").write_text(text)
    return X, t


def fitted(run, name, options):
    line = f"fit {name} --target y --bounds {name.split('.')[0]}.toml --epsilon 3 --json {options}"
    code, out, err = run(line)
    assert code == 0, err
    code, out, err = run("explain model/certificate.json --verify")
    assert code == 0, out + err
    return fastmix.load("model")


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet"])
@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_logistic(table, run, name, engine):
    model = fitted(run, name, f"--family logistic --engine {engine}")
    assert isinstance(model, PrivateLogisticRegression)
    np.testing.assert_allclose(model.coef_, [[2.0, -1.0]], atol=0.5)
    code, _, err = run(f"predict model {name} --out labels_out.csv")
    assert code == 0, err
    found = pyarrow.csv.read_csv("labels_out.csv")["predicted_y"].to_numpy()
    assert set(found) == {0.0, 1.0}
    assert np.mean((found > 0.5) == (table[1] > 0.0)) > 0.9
    code, _, err = run(f"predict model {name} --proba --out likely.csv")
    assert code == 0, err
    likely = pyarrow.csv.read_csv("likely.csv")["probability_y"].to_numpy()
    np.testing.assert_allclose(likely, 1.0 / (1.0 + np.exp(-table[1])), atol=0.12)


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_quantile(table, run, quantile):
    model = fitted(run, "numbers.csv", f"--family quantile --quantile {quantile}")
    X, _ = table
    y = pyarrow.csv.read_csv("numbers.csv")["y"].to_numpy()
    assert np.mean(y <= X @ model.coef_ + model.intercept_) == pytest.approx(quantile, abs=0.03)


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_several_quantiles(table, run, engine):
    levels = [0.1, 0.5, 0.9]
    options = f"--family quantile --quantile 0.1,0.5,0.9 --engine {engine}"
    model = fitted(run, "numbers.csv", options)
    assert model.quantile == levels
    assert np.isfinite(model.coef_std_).all()
    page = Path("model/report.html").read_text()
    assert "10%, 50% and 90% quantiles of y" in page
    code, _, err = run("predict model numbers.csv --out p.csv")
    assert code == 0, err
    found = pyarrow.csv.read_csv("p.csv")
    assert found.column_names == [f"predicted_y={each}" for each in levels]
    values = np.column_stack([each.to_numpy() for each in found.columns])
    assert (np.diff(values, axis=1) >= 0.0).all()
    y = pyarrow.csv.read_csv("numbers.csv")["y"].to_numpy()
    np.testing.assert_allclose(np.mean(y[:, None] <= values, axis=0), levels, atol=0.03)


def test_huber(table, run):
    model = fitted(run, "numbers.parquet", "--family huber --engine stream")
    np.testing.assert_allclose(np.ravel(model.coef_), [2.0, -1.0], atol=0.2)
    assert "Private regression of y" in Path("model/report.html").read_text()
    code, _, err = run("predict model numbers.csv --proba --out likely.csv")
    assert code != 0
    assert "logistic" in err


@pytest.mark.parametrize(
    "options",
    [
        "--family poisson",
        "--family logistic --method ihm",
        "--quantile 0.9",
        "--min-listed 0.9",
        "--family quantile --quantile 0.9,0.1",
        "--family quantile --quantile half",
        "--family quantile --quantile 1.5",
    ],
)
def test_what_does_not_go_together_is_refused(table, run, options):
    code, _, err = run(f"fit numbers.csv --target y --bounds numbers.toml {options}")
    assert code != 0
    assert "must" in err


@pytest.mark.parametrize("family", ["logistic", "quantile", "huber"])
def test_weights_and_a_hidden_number_of_rows(table, run, family):
    name = "labels" if family == "logistic" else "numbers"
    made = pyarrow.csv.read_csv(f"{name}.csv")
    heavy = pa.array(np.where(np.arange(len(made)) % 2, 2.0, 1.0))
    pyarrow.csv.write_csv(made.append_column("w", heavy), f"{name}.csv")
    options = f"--family {family} --weight w --max-weight 2 --private-rows --delta 1e-8"
    model = fitted(run, f"{name}.csv", options)
    assert not model.public_rows
    np.testing.assert_allclose(np.ravel(model.coef_), [2.0, -1.0], atol=0.6)


def test_json_names_the_family(table, run):
    line = "fit labels.csv --target y --bounds labels.toml --json --family logistic"
    _, out, _ = run(line)
    told = json.loads(out)
    assert told["family"] == "logistic"
    assert len(told["coefficients"]) + len(told["hidden"]) == 3


def test_evaluate_and_the_calibration_of_a_report(table, run):
    model = fitted(run, "labels.csv", "--family logistic --score-share 0.1")
    assert model.scores_["auc"] > 0.5
    report = Path("model/report.html").read_text()
    assert "Calibration</h2>" in report
    said = "always predicting the more frequent label would be right for about 5"
    assert said in report
    line = "evaluate model labels.parquet --epsilon 3 --delta 1e-6"
    code, out, err = run(f"{line} --json")
    assert code == 0, err
    told = json.loads(out)
    assert set(told["scores"]) == {"accuracy", "log_loss", "auc"}
    assert 0.7 < told["scores"]["auc"]["value"] < 0.95
    assert told["calibration"]
    code, out, err = run(f"{line} --metrics accuracy")
    assert code == 0, err
    assert said.capitalize() in out
    code, out, err = run(f"{line} --metrics auc")
    assert code == 0, err
    assert said.capitalize() not in out
    assert "observed" in out
    assert run(f"{line} --metrics r2")[0] == 2


def test_evaluate_a_quantile_and_a_robust_fit(table, run):
    model = fitted(run, "numbers.csv", "--family quantile --quantile 0.9")
    assert model.quantile == 0.9
    line = "evaluate model numbers.csv --epsilon 3 --delta 1e-6 --json"
    code, out, err = run(line)
    assert code == 0, err
    assert json.loads(out)["scores"]["below"]["value"] == pytest.approx(0.9, abs=0.04)
    fitted(run, "numbers.csv", "--family huber --force")
    code, out, err = run(line)
    assert code == 0, err
    assert set(json.loads(out)["scores"]) == {"r2", "mse", "mae"}


def test_intervals_of_log_odds(table, run):
    model = fitted(run, "labels.csv", "--family logistic")
    assert model.coef_std_.shape == (1, 2)
    code, out, err = run("summary model")
    assert code == 0, err
    assert "Private logistic regression of y" in out
    assert "odds ratio" in out
    assert "The classes are 0, 1;" in run("explain model/certificate.json")[1]
    report = Path("model/report.html").read_text()
    assert "odds ratio" in report
    assert "change in the log-odds of y = 1 across" in report
    model = fitted(run, "labels.csv", "--family logistic --no-intervals --force")
    assert not hasattr(model, "coef_std_")


@pytest.fixture
def words(table, tmp_path):
    """A table with labels in words, some of them not in the public list or missing."""
    X, t = table
    rng = np.random.default_rng(1)
    y = np.array(["high", "low", "mid"], dtype=object)[
        np.argmax(np.column_stack([3 * t, -3 * t, 0 * t]) + rng.gumbel(size=(6000, 3)), axis=1)
    ]
    y[:40], y[40:60] = "unheard", None
    made = pa.table({"a": X[:, 0], "b": X[:, 1], "y": pa.array(y)})
    pyarrow.csv.write_csv(made, tmp_path / "words.csv")
    pyarrow.parquet.write_table(made, tmp_path / "words.parquet", row_group_size=900)
    text = (tmp_path / "labels.toml").read_text()
    labels = '["high", "low", "mid"]'
    (tmp_path / "words.toml").write_text(text.replace("[0, 1]", labels, 1))
    return X, y


@pytest.mark.parametrize("name", ["words.csv", "words.parquet"])
@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_several_labels_in_words(words, run, name, engine):
    _, y = words
    model = fitted(run, name, f"--family logistic --engine {engine}")
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert model.coef_.shape == (3, 2)
    code, out, err = run(f"predict model {name} --out labels_out.csv")
    assert code == 0, err
    found = pyarrow.csv.read_csv("labels_out.csv")["predicted_y"].to_pylist()
    assert np.mean(np.array(found)[60:] == y[60:]) > 0.6
    code, out, err = run(f"predict model {name} --proba --out likely.parquet")
    assert code == 0, err
    likely = pyarrow.parquet.read_table("likely.parquet")
    assert likely.column_names == [f"probability_y={label}" for label in model.classes_]
    np.testing.assert_allclose(sum(each.to_numpy() for each in likely.columns), 1.0)
    report = Path("model/report.html").read_text()
    assert "6 and 3 intercepts" in report
    assert "log-odds of a label of y against the others" in report
    code, out, err = run("summary model")
    assert code == 0, err
    assert "mid: intercept" in out
    line = f"evaluate model {name} --epsilon 3 --delta 1e-6 --json"
    code, out, err = run(line)
    assert code == 0, err
    assert json.loads(out)["scores"]["accuracy"]["value"] > 0.6


def test_labels_give_the_same_from_files_and_arrays(words, run):
    X, y = words
    given = {"epsilon": 3.0, "random_state": 0, "data_norm": 2**0.5}
    model = PrivateLogisticRegression(
        bounds_X=([-1, -1], [1, 1]), classes=["low", "mid", "high"], **given
    ).fit(X, y)
    found = PrivateLogisticRegression(bounds="words.toml", epsilon=3.0, random_state=0).fit_parquet(
        "words.parquet"
    )
    np.testing.assert_allclose(found.coef_, model.coef_, rtol=1e-6, atol=1e-9)


def test_labels_on_a_cluster(words, run):
    pytest.importorskip("distributed")
    model = fitted(run, "words.parquet", "--family logistic --engine dask")
    assert model.coef_.shape == (3, 2)


@pytest.mark.parametrize(("target", "family"), [("y", " --family logistic"), ("a", "")])
def test_the_next_step_for_a_target_of_text_is_a_logistic_regression(words, run, target, family):
    code, out, err = run(f"bounds words.parquet --target {target} --out t.toml")
    assert code == 0, err
    assert out.endswith(
        f"  fastmix fit words.parquet --target {target} --bounds t.toml{family} --epsilon 1\n"
    )


def test_plans_and_checks_of_labels(words, run):
    code, out, err = run("plan --rows 6000 --bounds words.toml --family logistic --json")
    assert code == 0, err
    known = {"family": "logistic", "classes": range(3)}
    three = fastmix.plan(6000, 2, min_listed=0.5, **known)  # the default of commands
    assert json.loads(out)["asked"]["typical"] == three.asked.typical
    code, out, err = run(
        "plan --rows 6000 --bounds words.toml --family logistic --min-listed 0 --json"
    )
    assert code == 0, err
    assert json.loads(out)["asked"]["typical"] == fastmix.plan(6000, 2, **known).asked.typical
    code, out, err = run("check words.csv --bounds words.toml")
    assert code == 0, err
    for line in (
        "fit words.csv --target y --bounds words.toml",
        "fit words.csv --target y --bounds words.toml --family huber",
        "plan --rows 6000 --bounds words.toml",
        "compare words.csv --target y --bounds words.toml --set a --set b",
        "compare words.csv --target y --bounds words.toml --set a --set b --family linear",
    ):
        code, _, err = run(line)
        assert code == 2
        assert "Labels need a logistic regression: --family logistic" in err
    line = "fit words.csv --target y --bounds words.toml --family logistic --intervals"
    assert run(line)[0] == 0
    assert "OR [0.025" in run("summary model")[1]


def test_labels_that_are_spelled_otherwise_stop_the_fit(words, run, tmp_path):
    text = (tmp_path / "words.toml").read_text()
    wrong = text.replace('"low"', '"Low"').replace('"mid"', '"Mid"')
    assert wrong != text
    (tmp_path / "wrong.toml").write_text(wrong)
    assert run("ledger new ledger.jsonl --epsilon 9 --delta 1e-3")[0] == 0
    line = "--target y --bounds wrong.toml --family logistic --ledger ledger.jsonl --delta 1e-6"
    for command in ("fit words.csv", "fit words.parquet --engine stream", "compare words.csv"):
        sets = " --set a,b --set a" if command.startswith("compare") else ""
        code, _, err = run(f"{command} {line}{sets}")
        assert code != 0
        assert "fewer than 50% of the records have a label of the public list" in err
        assert "the charge is for 2% of epsilon" in err
        assert not (tmp_path / "model").exists()
    charges = BudgetAccountant.load("ledger.jsonl").charges
    assert [each.spent.epsilon for each in charges] == pytest.approx([0.02] * 3)
    assert all(each.label.endswith(", check of labels") for each in charges)
    code, out, err = run("check words.csv --bounds wrong.toml")
    assert code == 0, err
    (own,) = (each for each in out.splitlines() if each.split()[:1] == ["y"])
    assert float(own.split()[-1].rstrip("%")) > 50.0  # what the error advises shows the cause
    assert run(f"fit words.csv {line} --min-listed 0.2")[0] == 0
    assert run(f"fit words.csv {line} --min-listed 0 --force")[0] == 0


def test_sets_of_columns_are_compared_for_labels(words, run):
    line = "compare words.csv --target y --bounds words.toml --family logistic --epsilon 3"
    code, out, err = run(f"{line} --set a,b --set b --json")
    assert code == 0, err
    assert json.loads(out)["best"] == "a,b"
    code, out, err = run("explain model --verify")
    assert code == 0, out + err
    model = fastmix.load("model")
    assert isinstance(model, PrivateLogisticRegression)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert model.privacy_.parameters["compared"] == 2
    code, _, err = run("predict model words.csv --out out.csv")
    assert code == 0, err
    assert set(pyarrow.csv.read_csv("out.csv")["predicted_y"].to_pylist()) <= {"high", "low", "mid"}


def test_two_labels_in_words(words, run, tmp_path):
    text = (tmp_path / "words.toml").read_text().replace(', "mid"', "")
    (tmp_path / "words.toml").write_text(text)
    model = fitted(run, "words.csv", "--family logistic")
    assert model.classes_.tolist() == ["high", "low"]
    assert model.coef_std_.shape == (1, 2)
    assert model.coef_[0, 0] < 0.0  # "low" is the second label
    code, _, err = run("predict model words.csv --out out.csv")
    assert code == 0, err
    assert set(pyarrow.csv.read_csv("out.csv")["predicted_y"].to_pylist()) == {"high", "low"}


def test_a_logistic_regression_of_a_number_is_refused(table, run):
    for line in (
        "fit numbers.csv --target y --bounds numbers.toml --family logistic",
        "plan --rows 6000 --bounds numbers.toml --family logistic",
    ):
        code, out, err = run(line)
        assert (code, out) == (2, "")
        assert "List its labels in the bounds file: y = { labels = [0, 1] }" in err
