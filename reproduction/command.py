"""The command line of the reproduction: experiments, report and benchmark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reproduction.checks import check_new, require

__all__ = ["main", "make_parser"]

#: What can be reproduced; the names are those of `reproduction.experiments.EXPERIMENTS`.
_EXPERIMENTS = {
    "all": "every experiment",
    "figure1": "Figure 1: noise against epsilon",
    "figure2": "Figure 2: accuracy against epsilon",
    "table-speed": "the table of Figure 2: runtimes",
    "airline": "the Airline appendix: accuracy and runtime",
    "table-datasets": "the table of data statistics",
    "sketches": "Lemmas 9 and 10: what sketches do to the spectrum and to rows",
    "orders": "Theorems 1.2 and 2.3: orders of running time",
    "crossover": "IHM from one Gram matrix beside FastIHM, as columns grow",
    "hessians": "the private Hessian: noise of each step, steps without bias",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        Exit code: 0 on success, 2 for a wrong argument, 3 for a file that cannot be read or
        written, 5 for a missing package, 130 after an interrupt.
    """
    chosen = make_parser().parse_args(arguments)
    run = {"report": _report, "bench": _bench}.get(chosen.command, _reproduce)
    try:
        run(chosen)
    except KeyboardInterrupt:
        if run is _reproduce:
            return _fail(f"interrupted; the same command continues from {chosen.out}.", 130)
        return _fail("interrupted.", 130)
    except ModuleNotFoundError as error:
        return _fail(f'{error.name} is missing: pip install -e ".[reproduction]".', 5)
    except OSError as error:
        return _fail(str(error), 3)
    except ValueError as error:
        return _fail(str(error), 2)
    return 0


def _fail(message: str, code: int) -> int:
    print(f"reproduction: {message}", file=sys.stderr)
    return code


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Run the paper's experiments, or continue them, and write the report.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    option = shared.add_argument
    option("--quick", action="store_true", help="small sizes, a few minutes")
    option("--config", type=Path, help="a TOML file instead of the paper's set-up")
    option("--data-dir", type=Path, help="folder with data files; by default FASTMIX_DATA")
    option("--download", action="store_true", help="fetch from OpenML what is there")
    option("--trials", type=int, help="trials of each fit; a later run may add more")
    option("--redo-defaults", action="store_true", help="run fastmix's default fit again")
    option("--jobs", type=int, help="processes; by default one per core")
    option("--out", type=Path, default=Path("results"), help="folder for results and report")
    for name, text in _EXPERIMENTS.items():
        commands.add_parser(name, parents=[shared], help=text)
    report = commands.add_parser("report", help="write one page, with all figures, from results")
    option = report.add_argument
    option("results", type=Path, nargs="?", default=Path("results"), help="folder of results")
    option("--out", type=Path, help="the page; by default report.html in the folder of results")
    option("--docs", type=Path, help="folder for a Markdown page as well")
    bench = commands.add_parser("bench", help="time all methods side by side on this machine")
    option = bench.add_argument
    option("--quick", action="store_true", help="small sizes, to see that it runs")
    option("--out", type=Path, default=Path("bench"), help="folder for table and plot")
    for command in (report, bench):
        command.add_argument("--force", action="store_true", help="replace files that exist")
    return parser


def _reproduce(chosen: argparse.Namespace) -> None:
    from reproduction.experiments import load_config, reproduce
    from reproduction.experiments.methods import DEFAULT
    from reproduction.machine import available_cores
    from reproduction.report import write_report

    out: Path = chosen.out
    config = load_config(chosen.config, quick=chosen.quick)
    earlier = (out / "config.json").is_file() and (out / "runs.csv").is_file()
    empty = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    require("out", "be a new folder, or one with earlier results", earlier or empty, str(out))
    for name in ("trials", "jobs"):
        value = getattr(chosen, name)
        require(name, "be at least 1", value is None or value >= 1, value)
    if chosen.trials is not None:
        repeats = min(chosen.trials, config.timing_repeats)
        config = replace(config, trials=chosen.trials, timing_repeats=repeats)
    reproduce(
        [chosen.command],
        config,
        out,
        data_dir=chosen.data_dir,
        download=chosen.download,
        jobs=chosen.jobs or available_cores(),
        redo=(DEFAULT,) if chosen.redo_defaults else (),
        command=_recorded(chosen),
    )
    print(f"wrote {write_report(out)} and {out / 'figures'}")
    if chosen.quick:
        print(f"This was a quick run with {config.trials} trials: its conclusions are rough.")


def _recorded(chosen: argparse.Namespace) -> str:
    """Return the command for the record, without the name of the user's data folder."""
    words = [f"python -m reproduction {chosen.command}"]
    words += ["--quick"] if chosen.quick else []
    words += [f"--config {chosen.config.name}"] if chosen.config else []
    words += ["--data-dir DIR"] if chosen.data_dir else []
    words += ["--download"] if chosen.download else []
    words += [f"--trials {chosen.trials}"] if chosen.trials else []
    words += ["--redo-defaults"] if chosen.redo_defaults else []
    return " ".join(words)


def _report(chosen: argparse.Namespace) -> None:
    from reproduction.report import write_docs, write_report

    results: Path = chosen.results
    page = results / "report.html" if chosen.out is None else chosen.out
    pages = [page] if chosen.docs is None else [page, chosen.docs / "reproduction.md"]
    check_new(*pages, results / "figures", force=chosen.force)
    print(f"wrote {write_report(results, page)} and {results / 'figures'}")
    if chosen.docs is not None:
        print(f"wrote {write_docs(results, chosen.docs)}")


def _bench(chosen: argparse.Namespace) -> None:
    from reproduction.bench import run_bench, write_csv
    from reproduction.performance import plot_sweep

    out: Path = chosen.out
    table, plot = (out / f"performance.{kind}" for kind in ("csv", "png"))
    check_new(table, plot, force=chosen.force)
    out.mkdir(parents=True, exist_ok=True)
    rows = list(run_bench(quick=chosen.quick, seconds=0.05 if chosen.quick else 1.5))
    write_csv(rows, table)
    plot_sweep(rows, plot)
    print(f"wrote {table} and {plot.name}")
