"""The benchmark runs and writes what it says."""

import csv

import pytest

from reproduction import bench
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
    page = (folder / "performance.md").read_text()
    assert "| IHM, literal |" in page
    assert "predicted over measured" in page
    assert "| persons with 5 rows each |" in page
    assert page.startswith("# Performance\n\n**The default fit, with intervals, takes ")
    assert (folder / "performance.png").stat().st_size > 10_000


def test_the_bench_writes_table_plot_and_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "QUICK_CASES", [(512, 4, 64)])
    monkeypatch.setattr(bench, "QUICK_SWEEP", [(512, 4, 64), (512, 4, 128)])
    assert main(["bench", "--quick", "--out", str(tmp_path / "bench")]) == 0
    check(tmp_path / "bench", capsys.readouterr().out)


@pytest.mark.slow  # the same at the sizes of --quick
def test_the_quick_bench(tmp_path, capsys):
    assert main(["bench", "--quick", "--out", str(tmp_path / "bench")]) == 0
    check(tmp_path / "bench", capsys.readouterr().out)
