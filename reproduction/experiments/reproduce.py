"""Runs the experiments that are asked for, in an order that shows something early."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from reproduction.checks import check_one_of, require
from reproduction.experiments.accuracy import run_airline, run_figure2
from reproduction.experiments.config import Config
from reproduction.experiments.crossover import run_crossover
from reproduction.experiments.figure1 import run_figure1
from reproduction.experiments.hessians import run_hessians
from reproduction.experiments.methods import LABELS
from reproduction.experiments.orders import run_orders
from reproduction.experiments.results import Results
from reproduction.experiments.sketches import run_sketches
from reproduction.experiments.speed import run_speed
from reproduction.experiments.statistics import run_statistics
from reproduction.experiments.workspace import Workspace

__all__ = ["EXPERIMENTS", "reproduce"]

EXPERIMENTS: dict[str, Callable[[Workspace], None]] = {
    "figure1": run_figure1,
    "table-datasets": run_statistics,
    "sketches": run_sketches,
    "figure2": run_figure2,
    "hessians": run_hessians,
    "airline": run_airline,
    "orders": run_orders,
    "crossover": run_crossover,
    "table-speed": run_speed,
}


def reproduce(
    names: Sequence[str],
    config: Config,
    folder: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = False,
    jobs: int = 1,
    redo: Sequence[str] = (),
    command: str = "",
    say: Callable[[str], None] = print,
) -> None:
    """Run experiments; finished trials of an earlier run are kept.

    Parameters
    ----------
    names : sequence of str
        Keys of `EXPERIMENTS`, or ``"all"``.
    config : Config
        What is run.
    folder : path
        Where results go.
    data_dir : path, optional
        Folder with data files; by default the one named by ``FASTMIX_DATA``.
    download : bool, default False
        Fetch from OpenML what is there.
    jobs : int, default 1
        Processes for trials whose time does not matter; each keeps to one thread.
    redo : sequence of str, default ()
        Methods whose earlier results are removed and run again, as after a change of them.
    command : str, default ""
        The command that was given, for the record.
    say : callable
        Where messages go.
    """
    for name in names:
        check_one_of("experiment", name, (*EXPERIMENTS, "all"))
    if data_dir is not None:
        require("data_dir", "exist", Path(data_dir).exists(), os.fspath(data_dir))
    for name in redo:
        check_one_of("redo", name, LABELS)
    results = Results(Path(folder), config, command)
    results.forget(tuple(redo))
    with tempfile.TemporaryDirectory(prefix="fastmix-") as scratch:
        work = Workspace(config, results, Path(scratch), data_dir, download, jobs, say)
        for name, run in EXPERIMENTS.items():
            if name in names or "all" in names:
                run(work)
