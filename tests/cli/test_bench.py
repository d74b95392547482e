"""The benchmark runs and writes what it says."""

import csv

from fastmix.cli import main
from fastmix.cli.bench import BASELINE, EXAMPLES, MODELLED


def test_quick_bench_writes_table_plot_and_page(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert EXAMPLES == ("fastmix bench --quick --out bench",)
    assert main(EXAMPLES[0].split()[1:]) == 0
    out = capsys.readouterr().out
    assert "x literal IHM" in out
    with (tmp_path / "bench" / "performance.csv").open() as file:
        rows = list(csv.DictReader(file))
    suite = [row for row in rows if row["kind"] == "suite"]
    assert {BASELINE, *MODELLED} <= {row["method"] for row in suite}
    assert all(float(row["seconds"]) > 0.0 for row in rows)
    page = (tmp_path / "bench" / "performance.md").read_text()
    assert "| IHM, literal |" in page
    assert "Predicted over measured" in page
    assert (tmp_path / "bench" / "performance.png").stat().st_size > 10_000
