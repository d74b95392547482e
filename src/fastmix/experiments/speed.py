"""The table of Figure 2 and of the Airline appendix: runtimes against literal IHM."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from fastmix.experiments.config import SetConfig
from fastmix.experiments.methods import OURS, make_method
from fastmix.experiments.problems import TITLES, open_problem
from fastmix.experiments.runner import run_trials, trial_seed
from fastmix.experiments.workspace import Workspace

__all__ = ["run_speed"]

COLUMNS = ("experiment", "set", "n", "method", "ratio", "repeat", "d", "seed", "seconds")


class Timing(NamedTuple):
    """One timed fit; the paper's methods do all the work that the paper counts."""

    experiment: str
    set: str
    n: int
    method: str
    ratio: int | None
    repeat: int
    steps: int
    seed: int
    folder: Path


def _run(timing: Timing) -> dict[str, Any]:
    problem = open_problem(timing.folder)
    n, d = problem.X.shape
    model = make_method(
        timing.method,
        ratio=timing.ratio,
        epsilon=1.0,
        n=n,
        d=d,
        steps=timing.steps,
        seed=timing.seed,
        engine="literal",
    )
    start = perf_counter()
    model.fit(problem.X, problem.y)
    return {**timing._asdict(), "d": d, "seconds": perf_counter() - start}


def _time_set(work: Workspace, experiment: str, chosen: SetConfig) -> bool:
    folder = work.problem(chosen)
    if folder is None:
        return False
    methods: list[tuple[str, int | None]] = [
        ("ihm_paper", None),
        ("fast_ihs", None),
        *(("fast_ihm_paper", ratio) for ratio in chosen.ratios),
        *((name, None) for name in OURS),
    ]
    config = work.config
    timings = [
        Timing(*what, config.steps, trial_seed(config.seed, *what), folder)
        for repeat in range(config.timing_repeats)
        for what in ((experiment, chosen.set, chosen.n, *method, repeat) for method in methods)
    ]
    run_trials(
        timings,
        _run,
        work.results.table("speed", COLUMNS, 6),
        run=work.results.run,
        jobs=1,  # nothing else runs while a fit is timed
        title=f"runtimes: {TITLES[chosen.set]}",
    )
    return True


def run_speed(work: Workspace) -> None:
    """Time the methods one after the other, on one thread.

    Parameters
    ----------
    work : Workspace
        What the run shares.
    """
    for chosen in work.config.figure2:
        _time_set(work, "figure2", chosen)
    for chosen in work.config.airline:
        if _time_set(work, "airline", chosen):
            break
