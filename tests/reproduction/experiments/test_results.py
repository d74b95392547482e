"""Results grow by whole lines and survive a crash."""

import pytest

from reproduction.experiments import load_config
from reproduction.experiments.results import Results, ResultTable
from reproduction.machine import machine


def test_lines_are_kept_and_keys_are_found(tmp_path):
    path = tmp_path / "t.csv"
    table = ResultTable(path, ("set", "epsilon", "risk"), 2)
    table.add({"set": "a,b", "epsilon": 0.3, "risk": 1.0 / 3.0})
    table.add({"set": "c", "epsilon": None, "risk": 2.0})
    again = ResultTable(path, ("set", "epsilon", "risk"), 2)
    assert again.done() == {("a,b", "0.3"), ("c", "")}
    assert [float(row["risk"]) for row in again.rows()] == [pytest.approx(1 / 3, rel=1e-7), 2.0]


def test_half_a_line_is_forgotten(tmp_path):
    path = tmp_path / "t.csv"
    ResultTable(path, ("key", "value"), 1).add({"key": 1, "value": 2.0})
    with path.open("a") as file:
        file.write("2,3.")  # a crash
    table = ResultTable(path, ("key", "value"), 1)
    assert table.done() == {("1",)}
    table.add({"key": 3, "value": 4.0})
    assert path.read_text() == "key,value\n1,2\n3,4\n"


def test_other_columns_and_other_configurations_are_refused(tmp_path, tiny):
    ResultTable(tmp_path / "t.csv", ("key", "value"), 1)
    with pytest.raises(ValueError, match="has other columns"):
        ResultTable(tmp_path / "t.csv", ("key", "other"), 1)
    Results(tmp_path / "r", load_config(tiny), "one")
    Results(tmp_path / "r", load_config(tiny), "two")
    with pytest.raises(ValueError, match="holds results of another configuration"):
        Results(tmp_path / "r", load_config(), "three")


def test_runs_name_versions_and_machine(tmp_path, tiny):
    results = Results(tmp_path / "r", load_config(tiny), "python -m reproduction all")
    text = (tmp_path / "r" / "runs.csv").read_text()
    assert results.run in text
    assert "python -m reproduction all" in text
    assert set(machine()) < set(text.splitlines()[0].split(","))
    for name, fact in machine().items():
        assert name == "load" or fact in text  # the load moves
