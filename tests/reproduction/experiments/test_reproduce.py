"""The experiments run from one call, resume after a crash, and do not depend on the processes."""

import csv

import pytest

from reproduction.experiments import accuracy as accuracy_module
from reproduction.experiments import load_config, reproduce


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def risks(folder):
    key = ("set", "method", "ratio", "epsilon", "trial")
    return {
        tuple(row[name] for name in key): (row["seed"], row["excess_risk"])
        for row in rows(folder / "figure2.csv")
    }


def test_everything_that_needs_no_file(tiny, tmp_path):
    said = []
    reproduce(["all"], load_config(tiny), tmp_path / "out", command="test", say=said.append)
    assert [line.split(":")[0] for line in said] == ["skipped Rossman", "skipped Airline"]
    out = tmp_path / "out"
    assert len(rows(out / "figure1.csv")) == 5 * 2
    # Two trials of three methods and of three ratios.
    assert len(rows(out / "figure2.csv")) == 2 * (3 + 3)
    assert {row["set"] for row in rows(out / "airline.csv")} == {"correlated"}
    assert len(rows(out / "speed.csv")) == (3 + 3) + (3 + 2)
    assert {row["set"] for row in rows(out / "datasets.csv")} == {"sphere", "correlated"}
    # One draw of every sketch and ratio; two trials, two ratios and four variants; two algorithms.
    families = {row["sketch"] for row in rows(out / "sketches.csv")}
    assert families >= {"SRHT", "SubsampledDCT", "KerdockSketch"}
    assert len(rows(out / "sketches.csv")) == 3 * len(families)
    assert len(rows(out / "hessians.csv")) == 2 * 2 * 4
    assert len(rows(out / "orders.csv")) == 2 * 2**4
    assert {row["method"] for row in rows(out / "crossover.csv")} >= {"ihm", "srht", "kerdock"}
    for name in ("figure1", "figure2", "airline", "speed", "datasets", "sketches", "hessians"):
        runs = {row["run"] for row in rows(out / f"{name}.csv")}
        assert runs == {rows(out / "runs.csv")[0]["run"]}
    assert all(float(row["excess_risk"]) >= 0.0 for row in rows(out / "figure2.csv"))


@pytest.fixture
def no_fits(monkeypatch):
    """Let every trial give a risk that follows from its seed, without a fit."""

    def run(trial):
        risk = {"excess_risk": trial.seed / 2**32, "eta": None, "seconds": 0.0}
        return {**trial._asdict(), "d": 32, "k2": None, **risk}

    monkeypatch.setattr(accuracy_module, "_run", run)


def test_a_crash_loses_one_trial_and_the_rest_is_the_same(tiny, tmp_path, no_fits, monkeypatch):
    config = load_config(tiny)
    reproduce(["figure2"], config, tmp_path / "whole", say=str)
    whole = risks(tmp_path / "whole")
    run, left = accuracy_module._run, [7]

    def crash(trial):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return run(trial)

    monkeypatch.setattr(accuracy_module, "_run", crash)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["figure2"], config, tmp_path / "out", say=str)
    assert len(risks(tmp_path / "out")) == 7
    calls = []
    monkeypatch.setattr(accuracy_module, "_run", lambda t: calls.append(t) or run(t))
    reproduce(["figure2"], config, tmp_path / "out", say=str)
    assert len(calls) == len(whole) - 7
    assert risks(tmp_path / "out") == whole
    assert len(rows(tmp_path / "out" / "runs.csv")) == 2
    reproduce(["figure2"], config, tmp_path / "out", say=str)
    assert len(calls) == len(whole) - 7  # nothing left to do


@pytest.mark.slow  # starting processes takes seconds
def test_processes_change_nothing(tiny, tmp_path, capfd):
    config = load_config(tiny)
    for jobs in (1, 2):
        reproduce(["figure2"], config, tmp_path / str(jobs), jobs=jobs, say=str)
    assert "Warning" not in capfd.readouterr().err
    one, two = risks(tmp_path / "1"), risks(tmp_path / "2")
    assert one.keys() == two.keys()
    for key, (seed, risk) in one.items():
        assert two[key][0] == seed
        assert float(two[key][1]) == pytest.approx(float(risk), rel=1e-6)


def test_methods_are_run_again_when_told(tiny, tmp_path, no_fits):
    config = load_config(tiny)
    reproduce(["figure2"], config, tmp_path, say=str)
    before = rows(tmp_path / "figure2.csv")
    reproduce(["figure2"], config, tmp_path, redo=("ihm_paper", "default"), say=str)
    after = rows(tmp_path / "figure2.csv")
    first = before[0]["run"]
    assert len(after) == len(before)
    for row in after:
        assert (row["run"] == first) == (row["method"] not in ("ihm_paper", "default"))
    with pytest.raises(ValueError, match="redo must be one of"):
        reproduce(["figure2"], config, tmp_path, redo=("ols",), say=str)


def test_unknown_experiment(tiny, tmp_path):
    with pytest.raises(ValueError, match="experiment must be one of"):
        reproduce(["figure3"], load_config(tiny), tmp_path)
    with pytest.raises(ValueError, match="data_dir must exist"):
        reproduce(["all"], load_config(tiny), tmp_path / "out", data_dir=tmp_path / "no")
    assert not (tmp_path / "out").exists()
