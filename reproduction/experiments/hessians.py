"""The private Hessian of FastIHM, four ways: its noise level, and the length of its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from fastmix.paper import algorithm_2, calibrate_fast_ihm, debiased_step
from reproduction.experiments.methods import sketch_rows
from reproduction.experiments.problems import TITLES, open_problem
from reproduction.experiments.runner import run_trials, trial_seed
from reproduction.experiments.workspace import Workspace

__all__ = ["VARIANTS", "run_hessians"]

#: Name in figures, whether each step has its own noise level, and whether steps are debiased.
VARIANTS: dict[str, tuple[str, bool, bool]] = {
    "paper": ("as in the paper: the largest η", False, False),
    "per_step": ("each step its own η", True, False),
    "debiased": ("debiased steps", False, True),
    "both": ("own η, debiased steps", True, True),
}
COLUMNS = (
    *("set", "n", "variant", "ratio", "epsilon", "trial"),
    *("d", "k1", "k2", "seed", "excess_risk", "eta"),
)


class Trial(NamedTuple):
    """One run of Algorithm 2."""

    set: str
    n: int
    variant: str
    ratio: int
    epsilon: float
    trial: int
    steps: int
    seed: int
    folder: Path


def _run(trial: Trial) -> dict[str, Any]:
    problem = open_problem(trial.folder)
    n, d = problem.X.shape
    delta = 1.0 / n**2
    k2 = sketch_rows(trial.ratio, n, d, trial.steps)
    plan = calibrate_fast_ihm(
        trial.epsilon, delta, n=n, d=d, steps=trial.steps, k2=k2, varrho=delta / 10.0
    )
    _, own, debiased = VARIANTS[trial.variant]
    found = algorithm_2(
        problem.X,
        problem.y,
        **{name: getattr(plan, name) for name in ("gamma", "tau", "sigma", "omega", "k1", "k2")},
        steps=trial.steps,
        shrinkage=False,
        eta_per_step=own,
        step_length=debiased_step(plan.k1, d) if debiased else 1.0,
        rng=trial.seed,
    )
    return {
        **trial._asdict(),
        "d": d,
        "k1": plan.k1,
        "k2": k2,
        "excess_risk": problem.excess_risk(found.theta),
        "eta": max(found.etas),
    }


def run_hessians(work: Workspace) -> None:
    """Run every variant on the synthetic sets, with the two larger sketches of each.

    Parameters
    ----------
    work : Workspace
        What the run shares.
    """
    config, table = work.config, work.results.table("hessians", COLUMNS, 6)
    for chosen, folder in work.problems("hessians"):
        trials = [
            # The same seed for all variants: they differ in nothing else.
            Trial(chosen.set, chosen.n, variant, ratio, epsilon, trial, config.steps,
                  trial_seed(config.seed, chosen.set, ratio, epsilon, trial), folder)
            for trial in range(config.trials)
            for ratio in chosen.ratios
            for epsilon in config.epsilons
            for variant in VARIANTS
        ]  # fmt: skip
        title = f"Hessians: {TITLES[chosen.set]}"
        run_trials(trials, _run, table, run=work.results.run, jobs=work.jobs, title=title)
