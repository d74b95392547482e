"""Lemmas 9 and 10: how well fast sketches preserve the spectrum and the rows of every set."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from fastmix.paper import distortions
from fastmix.sketches import Sketch
from reproduction.experiments.methods import sketch_rows
from reproduction.experiments.problems import TITLES, open_problem
from reproduction.experiments.runner import run_trials, trial_seed
from reproduction.experiments.workspace import Workspace

__all__ = ["FAMILIES", "run_sketches"]

_OFFERED = vars(import_module(Sketch.__module__.rpartition(".")[0]))
#: Every sketch of fastmix by its name, also those that are added later.
FAMILIES: dict[str, type[Sketch]] = {
    name: _OFFERED[name]
    for name in _OFFERED["__all__"]
    if issubclass(_OFFERED[name], Sketch) and _OFFERED[name] is not Sketch
}

COLUMNS = (
    *("set", "n", "sketch", "ratio", "draw"),
    *("d", "k2", "seed", "lambda_min", "lambda_max", "row", "coherence", "embedding"),
)


class Draw(NamedTuple):
    """One drawn sketch of one set."""

    set: str
    n: int
    sketch: str
    ratio: int
    draw: int
    steps: int
    seed: int
    folder: Path


def _run(one: Draw) -> dict[str, Any]:
    problem = open_problem(one.folder)
    n, d = problem.X.shape
    kind = FAMILIES[one.sketch]
    k2 = sketch_rows(one.ratio, n, d, one.steps, kind)
    found = distortions(kind(k2, n).sample(one.seed), problem.X)
    return {**one._asdict(), **found._asdict(), "d": d, "k2": k2}


def run_sketches(work: Workspace) -> None:
    """Draw sketches of every set of Figure 2 and measure what they do to it.

    Parameters
    ----------
    work : Workspace
        What the run shares.
    """
    config, table = work.config, work.results.table("sketches", COLUMNS, 5)
    for chosen, folder in work.problems("figure2"):
        draws = [
            Draw(*what, config.steps, trial_seed(config.seed, *what), folder)
            for draw in range(config.draws)
            for family in FAMILIES
            for what in ((chosen.set, chosen.n, family, r, draw) for r in chosen.ratios)
        ]
        title = f"sketches: {TITLES[chosen.set]}"
        run_trials(draws, _run, table, run=work.results.run, jobs=work.jobs, title=title)
