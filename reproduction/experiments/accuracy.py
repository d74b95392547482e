"""Figure 2 and the Airline appendix: excess empirical risk against epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from reproduction.experiments.config import SetConfig
from reproduction.experiments.methods import DEFAULT, sketch_rows, timed_fit
from reproduction.experiments.problems import TITLES
from reproduction.experiments.runner import run_trials, trial_seed
from reproduction.experiments.workspace import Workspace

__all__ = ["run_airline", "run_figure2"]

COLUMNS = (
    *("set", "n", "method", "ratio", "epsilon", "trial"),
    *("d", "k2", "seed", "excess_risk", "eta", "seconds"),
)


class Trial(NamedTuple):
    """One fit."""

    set: str
    n: int
    method: str
    ratio: int | None
    epsilon: float | None
    trial: int
    steps: int
    seed: int
    folder: Path


def _run(trial: Trial) -> dict[str, Any]:
    problem, model, seconds = timed_fit(
        trial.folder,
        trial.method,
        ratio=trial.ratio,
        epsilon=1.0 if trial.epsilon is None else trial.epsilon,
        steps=trial.steps,
        seed=trial.seed,
    )
    n, d = problem.X.shape
    return {
        **trial._asdict(),
        "d": d,
        "k2": None if trial.ratio is None else sketch_rows(trial.ratio, n, d, trial.steps),
        "excess_risk": problem.excess_risk(model.coef_),
        "eta": model.eta_,
        "seconds": seconds,
    }


def _methods(ratios: tuple[int, ...]) -> list[tuple[str, int | None]]:
    """Return the methods of a figure with their ratios, the quickest to run first."""
    paper: list[tuple[str, int | None]] = [("fast_ihm_paper", ratio) for ratio in ratios]
    return [("fast_ihs", None), ("ihm_paper", None), (DEFAULT, None), *paper]


def _trials(work: Workspace, chosen: SetConfig, folder: Path) -> list[Trial]:
    config = work.config
    found = []
    for trial in range(config.trials):
        for method, ratio in _methods(chosen.ratios):
            for epsilon in (None,) if method == "fast_ihs" else config.epsilons:
                what = (chosen.set, chosen.n, method, ratio, epsilon, trial)
                seed = trial_seed(config.seed, *what)
                found.append(Trial(*what, config.steps, seed, folder))
    return found


def _run_sets(work: Workspace, experiment: str) -> None:
    for chosen, folder in work.problems(experiment):
        run_trials(
            _trials(work, chosen, folder),
            _run,
            work.results.table(experiment, COLUMNS, 6),
            run=work.results.run,
            jobs=work.jobs,
            title=f"{experiment}: {TITLES[chosen.set]}",
        )


def run_figure2(work: Workspace) -> None:
    """Run the trials of Figure 2.

    Parameters
    ----------
    work : Workspace
        What the run shares.
    """
    _run_sets(work, "figure2")


def run_airline(work: Workspace) -> None:
    """Run the trials of the Airline appendix, on the first of its sets that is there.

    Parameters
    ----------
    work : Workspace
        What the run shares.
    """
    _run_sets(work, "airline")
