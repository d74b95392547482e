"""``fastmix reproduce``: run the paper's experiments and draw their figures."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fastmix._validation import check_integer

__all__ = ["command", "run_reproduce"]

EXAMPLES = ("fastmix reproduce figure1 --quick",)


class Experiment(StrEnum):
    """What can be reproduced."""

    FIGURE1 = "figure1"
    FIGURE2 = "figure2"
    TABLE_SPEED = "table-speed"
    AIRLINE = "airline"
    TABLE_DATASETS = "table-datasets"
    ALL = "all"


def command(
    experiment: Annotated[Experiment, typer.Argument(help="What to reproduce.")] = Experiment.ALL,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, a few minutes.")] = False,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file instead of the paper's set-up.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with data files.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch from OpenML.")] = False,
    trials: Annotated[int | None, typer.Option(help="Trials of each fit; more may follow.")] = None,
    redo_defaults: Annotated[
        bool, typer.Option("--redo-defaults", help="Run the package's own defaults again.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes; one a core by default.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
) -> None:
    """Run the paper's experiments, or continue them, and write the report."""
    run_reproduce(
        experiment.value,
        quick=quick,
        config=config,
        data_dir=data_dir,
        download=download,
        trials=trials,
        jobs=jobs,
        redo_defaults=redo_defaults,
        out=out,
    )


def run_reproduce(
    experiment: str = "all",
    *,
    quick: bool = False,
    config: Path | None = None,
    data_dir: Path | None = None,
    download: bool = False,
    trials: int | None = None,
    jobs: int | None = None,
    redo_defaults: bool = False,
    out: Path = Path("results"),
) -> None:
    """Run experiments of the paper, or continue an earlier run, then draw and write the report.

    Parameters
    ----------
    experiment : str, default "all"
        One of ``figure1``, ``figure2``, ``table-speed``, ``airline``, ``table-datasets``, ``all``.
    quick : bool, default False
        Small sizes, a few minutes.
    config : Path, optional
        A TOML file of your own instead of the paper's set-up.
    data_dir : Path, optional
        Folder with data files; by default the one named by ``FASTMIX_DATA``.
    download : bool, default False
        Fetch from OpenML what is there.
    trials : int, optional
        Trials of each fit instead of those of the set-up, and at most as many timed fits; a later
        run may add more.
    jobs : int, optional
        Processes, each with one thread; by default one a core.
    redo_defaults : bool, default False
        Run the package's own defaults again, as after an upgrade; the paper's methods are kept.
    out : Path, default "results"
        Folder for results, figures and the report.
    """
    from fastmix.cli.report import run_report
    from fastmix.experiments import load_config, reproduce
    from fastmix.experiments.methods import OURS

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    shown = [f"fastmix reproduce {experiment}"]
    shown += ["--quick"] if quick else []
    shown += [f"--config {config.name}"] if config else []
    # The folder's name is the user's business and stays out of the record.
    shown += ["--data-dir DIR"] if data_dir else []
    shown += ["--download"] if download else []
    shown += [f"--trials {trials}"] if trials else []
    shown += ["--redo-defaults"] if redo_defaults else []
    chosen = load_config(config, quick=quick)
    earlier = (out / "config.json").is_file() and (out / "runs.csv").is_file()
    if out.exists() and not earlier and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(
            f"out must be a new folder, or one with results of 'fastmix reproduce'; got "
            f"out={str(out)!r}."
        )
    if trials is not None:
        check_integer("trials", trials, at_least=1)
        repeats = min(trials, chosen.timing_repeats)
        chosen = replace(chosen, trials=trials, timing_repeats=repeats)
    try:
        reproduce(
            [experiment],
            chosen,
            out,
            data_dir=data_dir,
            download=download,
            jobs=jobs or cores or 1,
            redo=OURS if redo_defaults else (),
            command=" ".join(shown),
        )
    except KeyboardInterrupt:
        print(f"interrupted; the same command continues from {out}.", file=sys.stderr)
        raise SystemExit(130) from None
    run_report(out)
