"""The table of Figure 2 and of the Airline appendix: runtimes against literal IHM."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from reproduction.experiments.config import SetConfig
from reproduction.experiments.methods import DEFAULT, timed_fit
from reproduction.experiments.problems import TITLES
from reproduction.experiments.runner import run_trials, trial_seed
from reproduction.experiments.workspace import Workspace

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
    problem, _, seconds = timed_fit(
        timing.folder,
        timing.method,
        ratio=timing.ratio,
        epsilon=1.0,
        steps=timing.steps,
        seed=timing.seed,
        literal=True,
    )
    return {**timing._asdict(), "d": problem.X.shape[1], "seconds": seconds}


def _timings(work: Workspace, experiment: str, chosen: SetConfig, folder: Path) -> list[Timing]:
    methods: list[tuple[str, int | None]] = [
        ("ihm_paper", None),
        ("fast_ihs", None),
        *(("fast_ihm_paper", ratio) for ratio in chosen.ratios),
        (DEFAULT, None),
    ]
    config = work.config
    return [
        Timing(*what, config.steps, trial_seed(config.seed, *what), folder)
        for repeat in range(config.timing_repeats)
        for what in ((experiment, chosen.set, chosen.n, *method, repeat) for method in methods)
    ]


def run_speed(work: Workspace) -> None:
    """Time the methods one after the other, on one thread.

    Parameters
    ----------
    work : Workspace
        What the run shares.
    """
    for experiment in ("figure2", "airline"):
        for chosen, folder in work.problems(experiment):
            run_trials(
                _timings(work, experiment, chosen, folder),
                _run,
                work.results.table("speed", COLUMNS, 6),
                run=work.results.run,
                jobs=1,  # nothing else runs while a fit is timed
                title=f"runtimes: {TITLES[chosen.set]}",
            )
