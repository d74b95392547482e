"""The benchmark runs and writes what it says."""

import csv

from fastmix.cli import main
from fastmix.cli.bench import BASELINE, MODELLED


def test_quick_bench_writes_table_plot_and_page(tmp_path, capsys):
    assert main(["bench", "--quick", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "x literal IHM" in out
    with (tmp_path / "out" / "performance.csv").open() as file:
        rows = list(csv.DictReader(file))
    suite = [row for row in rows if row["kind"] == "suite"]
    assert {BASELINE, *MODELLED} <= {row["method"] for row in suite}
    assert all(float(row["seconds"]) > 0.0 for row in rows)
    page = (tmp_path / "out" / "performance.md").read_text()
    assert "| IHM, literal |" in page
    assert "Predicted over measured" in page
    assert (tmp_path / "out" / "performance.png").stat().st_size > 10_000
