"""Where a fast sketch pays: IHM drawn from one Gram matrix beside FastIHM, as columns grow."""

from __future__ import annotations

from time import process_time
from typing import Any, NamedTuple

from fastmix import IHM, FastIHM
from fastmix.datasets import make_sphere
from fastmix.paper import FastIterativeHessianMixing
from fastmix.sketches import SRHT, KerdockSketch, Sketch, SparseSketch
from reproduction.experiments.methods import sketch_rows
from reproduction.experiments.runner import run_trials, trial_seed
from reproduction.experiments.workspace import Workspace

__all__ = ["run_crossover"]

COLUMNS = ("method", "literal", "n", "d", "repeat", "seed", "seconds")
#: Rows of the fast sketch, in the paper's units: its smallest, which favours the sketch.
_RATIO = 4
#: Kinds of sketches that the paper's FastIHM can use.
_KINDS = [kind for kind in FastIterativeHessianMixing.choices["sketch"] if kind != "auto"]
#: Kinds that do not take every number of rows.
_OWN_ROWS: dict[str, type[Sketch]] = {"kerdock": KerdockSketch, "sparse": SparseSketch}


class Timing(NamedTuple):
    """One timed fit: ``method`` is ihm, or a kind of fast sketch."""

    method: str
    literal: bool
    n: int
    d: int
    repeat: int
    steps: int
    seed: int


def _run(timing: Timing) -> dict[str, Any]:
    X, y = make_sphere(timing.n, timing.d, random_state=timing.seed)
    common: dict[str, Any] = {
        "epsilon": 1.0, "variant": "paper", "n_steps": timing.steps, "literal": timing.literal,
        "data_norm": 1.0, "bounds_y": (-1.0, 1.0), "fit_intercept": False,
        "random_state": timing.seed,
    }  # fmt: skip
    model: Any = IHM(**common)
    if timing.method != "ihm":
        kind = _OWN_ROWS.get(timing.method, SRHT)
        k2 = sketch_rows(_RATIO, timing.n, timing.d, timing.steps, kind)
        model = FastIHM(**common, sketch=timing.method, sketch_size=k2)
    model.account(timing.n, timing.d)  # these two are what only the first fit of a process pays
    IHM(**common).fit(X[:256], y[:256])
    start = process_time()
    model.fit(X, y)
    return {**timing._asdict(), "seconds": process_time() - start}


def run_crossover(work: Workspace) -> None:
    """Time the paper's methods over numbers of columns, one after the other.

    Parameters
    ----------
    work : Workspace
        What the run shares.
    """
    config, grid = work.config, work.config.crossover
    fits = [
        (method, literal, grid["n"], d)
        for d in grid["d"]
        for method in ("ihm", *_KINDS)
        for literal in (False, True)
        if not literal or d == grid["literal_d"]
    ]
    timings = [
        Timing(*fit, repeat, config.steps, trial_seed(config.seed, *fit, repeat))
        for repeat in range(config.timing_repeats)
        for fit in fits
    ]
    table = work.results.table("crossover", COLUMNS, 5)
    run_trials(timings, _run, table, run=work.results.run, jobs=1, title="where sketches pay")
