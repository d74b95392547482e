"""The table of data statistics, next to the paper's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.experiments.config import load_config
from reproduction.experiments.problems import SYNTHETIC, open_problem
from reproduction.experiments.runner import run_trials, trial_seed
from reproduction.experiments.workspace import Workspace

__all__ = ["run_statistics"]

COLUMNS = (
    *("set", "n", "d", "lambda_min", "lambda_max", "ols_mse", "mean_y2", "n_over_d"),
    *("theta_squared", "seed"),
)
DRAWS = ("set", "n", "draw", "ols_mse", "mean_y2", "seed")


class Chosen(NamedTuple):
    """One data set."""

    set: str
    n: int
    seed: int
    folder: Path


def _run(chosen: Chosen) -> dict[str, Any]:
    problem = open_problem(chosen.folder)
    n, d = problem.X.shape
    eigenvalues, vectors = np.linalg.eigh(problem.gram)
    reached = eigenvalues > 1e-9 * eigenvalues[-1]
    shortest = vectors[:, reached].T @ problem.optimum  # of the coefficients that are optimal
    return {
        **chosen._asdict(),
        "d": d,
        "lambda_min": float(max(0.0, eigenvalues[0])),
        "lambda_max": float(eigenvalues[-1]),
        "ols_mse": float(np.mean((problem.y - problem.X @ problem.optimum) ** 2)),
        "mean_y2": float(np.mean(np.square(problem.y))),
        "n_over_d": n / d,
        "theta_squared": float(shortest @ shortest),
    }


class SyntheticDraw(NamedTuple):
    """One draw of a synthetic set."""

    set: str
    n: int
    draw: int
    seed: int


def _run_draw(one: SyntheticDraw) -> dict[str, Any]:
    X, y = SYNTHETIC[one.set](one.n, random_state=one.seed)
    theta = np.linalg.solve(X.T @ X, X.T @ y)
    risk = float(np.mean((y - X @ theta) ** 2))
    return {**one._asdict(), "ols_mse": risk, "mean_y2": float(np.mean(np.square(y)))}


def run_statistics(work: Workspace) -> None:
    """Compute the statistics of every data set that is there.

    Parameters
    ----------
    work : Workspace
        What the run shares.
    """
    config = load_config() if work.config.full_statistics else work.config
    table = work.results.table("datasets", COLUMNS, 2)
    for chosen in dict.fromkeys((*config.figure2, *config.airline)):
        folder = work.problem(chosen)
        if folder is not None:
            rows = [Chosen(chosen.set, chosen.n, work.config.seed, folder)]
            title = f"statistics: {chosen.set}"
            run_trials(rows, _run, table, run=work.results.run, jobs=1, title=title)
    draws = [
        SyntheticDraw(chosen.set, chosen.n, draw, trial_seed(work.config.seed, chosen.set, draw))
        for chosen in config.figure2
        if chosen.set in SYNTHETIC
        for draw in range(work.config.synthetic_draws)
    ]
    table = work.results.table("draws", DRAWS, 3)
    title = "draws of synthetic sets"
    run_trials(draws, _run_draw, table, run=work.results.run, jobs=work.jobs, title=title)
