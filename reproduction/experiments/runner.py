"""Runs trials: in parallel without oversubscribing, resumable, with time left."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from threadpoolctl import threadpool_limits

from fastmix.errors import LowAccuracyWarning, ReproducibleNoiseWarning
from fastmix.kernels import one_thread
from reproduction.experiments.results import ResultTable, as_text

__all__ = ["run_trials", "trial_seed"]

Trial = TypeVar("Trial")


def trial_seed(seed: int, *parts: object) -> int:
    """Return the seed of a trial: a hash of the run's seed and of what the trial is."""
    return zlib.crc32("|".join(map(str, (seed, *parts))).encode())


def _quietly(work: Callable[[Trial], dict[str, Any]], trial: Trial) -> dict[str, Any]:
    """Run a trial on one thread; seeds and poor accuracy are part of the experiments."""
    with warnings.catch_warnings(), one_thread(), threadpool_limits(1):
        for expected in (LowAccuracyWarning, ReproducibleNoiseWarning):
            warnings.simplefilter("ignore", expected)
        return work(trial)


def run_trials(
    trials: Sequence[Trial],
    work: Callable[[Trial], dict[str, Any]],
    table: ResultTable,
    *,
    run: str,
    jobs: int,
    title: str,
) -> int:
    """Run the trials that are not in the table yet, and append each as it ends.

    Parameters
    ----------
    trials : sequence
        Named tuples; the first fields are the key of the table.
    work : callable
        Runs one trial and returns its row; importable, so that other processes can call it.
    table : ResultTable
        Where rows go.
    run : str
        Name of this run.
    jobs : int
        Processes; each keeps to one thread. Timings want 1.
    title : str
        What the progress bar says.

    Returns
    -------
    int
        Number of trials that were run.
    """
    done = table.done()
    names = table.columns[: table.key]
    todo = [t for t in trials if tuple(as_text(getattr(t, name)) for name in names) not in done]
    with _progress(title, len(trials), len(trials) - len(todo)) as advance:
        if jobs == 1:
            rows: Any = (_quietly(work, trial) for trial in todo)
        else:
            with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
                rows = Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")(
                    delayed(_quietly)(work, trial) for trial in todo
                )
        for row in rows:
            table.add({**row, "run": run})
            advance()
    return len(todo)


@contextmanager
def _progress(title: str, total: int, finished: int) -> Iterator[Callable[[], None]]:
    """Show a bar with the time left; where there is no terminal, a line at the end."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns) as progress:
        task = progress.add_task(title, total=total, completed=finished)
        yield lambda: progress.advance(task)
