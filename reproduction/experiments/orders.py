"""Theorems 1.2 and 2.3: orders of running time, from measured processor time."""

from __future__ import annotations

from time import process_time
from typing import Any, NamedTuple

from fastmix.datasets import make_sphere
from fastmix.paper import algorithm_1, algorithm_2, calibrate_fast_ihm
from fastmix.sketches import SRHT
from reproduction.experiments.runner import run_trials, trial_seed
from reproduction.experiments.workspace import Workspace

__all__ = ["run_orders"]

COLUMNS = ("algorithm", "n", "d", "k1", "k2", "repeat", "seed", "seconds")
_STEPS = 2


class Timing(NamedTuple):
    """One timed run of an algorithm of the paper."""

    algorithm: int
    n: int
    d: int
    k1: int
    k2: int
    repeat: int
    seed: int


def _run(timing: Timing) -> dict[str, Any]:
    X, y = make_sphere(timing.n, timing.d, random_state=timing.seed)
    plan = calibrate_fast_ihm(
        1.0, 1e-6, n=timing.n, d=timing.d, steps=_STEPS, k1=timing.k1, k2=timing.k2
    )
    common: dict[str, Any] = {name: getattr(plan, name) for name in ("gamma", "tau", "omega", "k1")}
    start = process_time()
    if timing.algorithm == 1:
        algorithm_1(X, **common, sketch=SRHT(timing.k2, timing.n), rng=timing.seed)
    else:
        algorithm_2(X, y, **common, sigma=plan.sigma, k2=timing.k2, steps=_STEPS, rng=timing.seed)
    return {**timing._asdict(), "seconds": process_time() - start}


def run_orders(work: Workspace) -> None:
    """Time Algorithms 1 and 2 over a grid of sizes, one after the other.

    Parameters
    ----------
    work : Workspace
        What the run shares.
    """
    grid = work.config.orders
    sizes = [
        (algorithm, n, d, k1 * d, k2 * d)
        for algorithm in (1, 2)
        for n in grid["n"]
        for d in grid["d"]
        for k1 in grid["k1_per_column"]
        for k2 in grid["k2_per_column"]
    ]
    timings = [
        Timing(*size, repeat, trial_seed(work.config.seed, *size, repeat))
        for repeat in range(work.config.timing_repeats)
        for size in sizes
    ]
    table = work.results.table("orders", COLUMNS, 6)
    run_trials(timings, _run, table, run=work.results.run, jobs=1, title="orders of running time")
