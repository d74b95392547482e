"""Entry point of the ``fastmix`` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import fastmix
from fastmix.cli.demo import run_demo
from fastmix.cli.report import run_report
from fastmix.cli.reproduce import run_reproduce

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        Exit code: 0 on success, 1 if an audit refutes a claim, 2 on a wrong argument or a
        missing package.
    """
    parser = argparse.ArgumentParser(prog="fastmix", description=fastmix.__doc__)
    parser.add_argument("--version", action="version", version=f"fastmix {fastmix.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo", help="fit a private regression to 327,346 real flights, beside the non-private one"
    )
    demo.add_argument("--epsilon", type=float, default=1.0, help="privacy budget (default: 1)")
    demo.add_argument(
        "--method",
        default="auto",
        choices=["auto", "adassp", "dp_gd", "fast_ihm", "ihm", "linear_mixing"],
        help="how to fit (default: auto)",
    )
    bench = commands.add_parser(
        "bench", help="measure all methods side by side on this machine, as ratios"
    )
    bench.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    bench.add_argument(
        "--out", type=Path, default=Path("bench"), help="folder for CSV, plot and page"
    )
    audit = commands.add_parser(
        "audit", help="put every claim to the test: lower bounds on epsilon by experiment"
    )
    audit.add_argument("--all", action="store_true", help="many releases, strong bounds: minutes")
    audit.add_argument("--quick", action="store_true", help="few releases: seconds (the default)")
    audit.add_argument("--plot", type=Path, help="draw the histograms of all scores to this file")
    audit.add_argument("--json", action="store_true", help="print JSON instead of a table")
    audit.add_argument("--seed", type=int, default=0, help="seed of the audit (default: 0)")
    reproduce = commands.add_parser(
        "reproduce", help="run the paper's experiments, or continue them, and write the report"
    )
    reproduce.add_argument(
        "experiment",
        choices=["figure1", "figure2", "table-speed", "airline", "table-datasets", "all"],
    )
    reproduce.add_argument("--quick", action="store_true", help="small sizes, a few minutes")
    reproduce.add_argument("--config", type=Path, help="a TOML file instead of the paper's set-up")
    reproduce.add_argument("--data-dir", type=Path, help="folder with data files")
    reproduce.add_argument("--download", action="store_true", help="fetch from OpenML")
    reproduce.add_argument("--trials", type=int, help="trials of each fit; more may follow")
    reproduce.add_argument(
        "--redo-defaults", action="store_true", help="run the package's own defaults again"
    )
    reproduce.add_argument("--jobs", type=int, help="processes (default: one a core)")
    reproduce.add_argument("--out", type=Path, default=Path("results"), help="folder for results")
    report = commands.add_parser("report", help="write one HTML page from results")
    report.add_argument("results", type=Path, nargs="?", default=Path("results"))
    report.add_argument("--out", type=Path, help="the page (default: report.html beside results)")
    report.add_argument("--docs", type=Path, help="folder for a Markdown page as well")
    parsed = parser.parse_args(arguments)
    try:
        if parsed.command == "audit":
            from fastmix.cli.audit import audit as run_audit

            return run_audit(
                all_=parsed.all,
                quick=parsed.quick,
                plot=parsed.plot,
                json_=parsed.json,
                seed=parsed.seed,
            )
        if parsed.command == "bench":
            _bench(parsed.out, quick=parsed.quick)
        elif parsed.command == "reproduce":
            options = {k: v for k, v in vars(parsed).items() if k != "command"}
            run_reproduce(options.pop("experiment"), **options)
        elif parsed.command == "report":
            run_report(parsed.results, out=parsed.out, docs=parsed.docs)
        else:
            print(run_demo(epsilon=parsed.epsilon, method=parsed.method))
    except (FileNotFoundError, ImportError, ValueError) as error:
        print(f"fastmix: {error}", file=sys.stderr)
        return 2
    return 0


def _bench(folder: Path, *, quick: bool) -> None:
    from fastmix.cli import bench

    rows = list(bench.run_bench(quick=quick, seconds=0.05 if quick else 1.5))
    folder.mkdir(parents=True, exist_ok=True)
    bench.write_csv(rows, folder / "performance.csv")
    (folder / "performance.md").write_text(bench.performance_page(rows))
    try:
        bench.plot_sweep(rows, folder / "performance.png")
    except ImportError:
        print('no plot: it needs matplotlib (pip install "fastmix[plot]").', file=sys.stderr)
    print(f"wrote performance.csv and performance.md to {folder}")
