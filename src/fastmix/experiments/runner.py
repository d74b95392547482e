"""Runs trials: in parallel without oversubscribing, resumable, with time left."""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from fastmix.errors import ReproducibleNoiseWarning
from fastmix.experiments.results import ResultTable, as_text

__all__ = ["one_thread", "run_trials", "trial_seed"]

Trial = TypeVar("Trial")


def trial_seed(seed: int, *parts: object) -> int:
    """Return the seed of a trial: a hash of the run's seed and of what the trial is."""
    return zlib.crc32("|".join(map(str, (seed, *parts))).encode())


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep every kernel and BLAS call of this process to one thread."""
    before = os.environ.get("FASTMIX_NUM_THREADS")
    os.environ["FASTMIX_NUM_THREADS"] = "1"
    try:
        with threadpool_limits(1):
            yield
    finally:
        if before is None:
            del os.environ["FASTMIX_NUM_THREADS"]
        else:
            os.environ["FASTMIX_NUM_THREADS"] = before


def _in_one_thread(work: Callable[[Trial], dict[str, Any]], trial: Trial) -> dict[str, Any]:
    with one_thread():
        return work(trial)


def _in_worker(work: Callable[[Trial], dict[str, Any]], trial: Trial) -> dict[str, Any]:
    """Run a trial in a process of its own, which need not say again that the noise is seeded."""
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    return _in_one_thread(work, trial)


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
            rows: Any = (_in_one_thread(work, trial) for trial in todo)
        else:
            with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
                rows = Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")(
                    delayed(_in_worker)(work, trial) for trial in todo
                )
        for row in rows:
            table.add({**row, "run": run})
            advance()
    return len(todo)


@contextmanager
def _progress(title: str, total: int, finished: int) -> Iterator[Callable[[], None]]:
    """Show a bar with the time left; where there is no terminal, a line at the end."""
    try:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        raise ImportError('the experiments need rich: pip install "fastmix[reproduce]".') from None
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns) as progress:
        task = progress.add_task(title, total=total, completed=finished)
        yield lambda: progress.advance(task)
