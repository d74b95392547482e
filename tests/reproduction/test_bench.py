"""The benchmark runs and writes what it says."""

import csv

import pandas as pd
import pytest

from reproduction import bench, performance
from reproduction.bench import BASELINE, DEFAULT, MODELLED, UNPRIVATE, WITHOUT
from reproduction.command import main


def check(folder, out):
    assert "x literal IHM" in out
    with (folder / "performance.csv").open() as file:
        rows = list(csv.DictReader(file))
    suite = [row for row in rows if row["kind"] == "suite"]
    assert {BASELINE, DEFAULT, WITHOUT, UNPRIVATE} <= {row["method"] for row in suite}
    assert {row["method"] for row in rows if row["kind"] == "sweep"} == {DEFAULT, *MODELLED}
    assert all(float(row["seconds"]) > 0.0 for row in rows)
    shown = performance.view(pd.read_csv(folder / "performance.csv"))
    assert all(seconds > 0.0 for seconds in shown["methods"]["IHM, literal"])
    assert len(shown["model"]) == sum(row["method"] in MODELLED for row in rows)
    assert "persons with 5 rows each" in [line["fit"] for line in shown["everyday"]]
    assert float(shown["over_plain"].split(" to ")[0]) >= 0.0
    assert (folder / "performance.png").stat().st_size > 10_000


def test_the_bench_writes_table_and_plot(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "QUICK_CASES", [(512, 4, 64)])
    monkeypatch.setattr(bench, "QUICK_SWEEP", [(512, 4, 64), (512, 4, 128)])
    assert main(["bench", "--quick", "--out", str(tmp_path / "bench")]) == 0
    check(tmp_path / "bench", capsys.readouterr().out)


@pytest.mark.slow  # the same at the sizes of --quick
def test_the_quick_bench(tmp_path, capsys):
    assert main(["bench", "--quick", "--out", str(tmp_path / "bench")]) == 0
    check(tmp_path / "bench", capsys.readouterr().out)
