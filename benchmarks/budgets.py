"""What a shared budget takes, and what its calibration costs: default fits inside and outside one.

First, how many fits of epsilon 0.1 and 0.3, delta 1e-8, a budget of (1, 1e-6) takes, for every
kind of fit. Then, with ``--data-dir``, excess risks of fits that are planned for such a budget, in
units of those of single fits with the same epsilon and delta: means over seeded trials. Seeds void
the guarantee, so these fits take the plan of the budget and are not charged.

    python benchmarks/budgets.py
    python benchmarks/budgets.py --data-dir DATA --trials 10
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from fastmix import (
    IHM,
    AdaSSP,
    BudgetAccountant,
    ObjectivePerturbation,
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
)
from fastmix.errors import LowAccuracyWarning, ReproducibleNoiseWarning

BUDGET, DELTA = (1.0, 1e-6), 1e-8
EPSILONS = (0.1, 0.3)
N, D = 20_000, 9
KINDS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "PrivateLinearRegression": (PrivateLinearRegression, {}, {}),
    "  with intervals": (PrivateLinearRegression, {"inference": True}, {}),
    "  of persons": (PrivateLinearRegression, {}, {"max_rows_per_group": 4}),
    "PrivateLogisticRegression": (PrivateLogisticRegression, {"classes": [0, 1]}, {}),
    "PrivateQuantileRegressor": (PrivateQuantileRegressor, {}, {}),
    "PrivateHuberRegressor": (PrivateHuberRegressor, {}, {}),
    "ObjectivePerturbation": (ObjectivePerturbation, {}, {}),
    "IHM": (IHM, {}, {}),
    "AdaSSP": (AdaSSP, {}, {}),
}
NUMBERS = ("california", "elevators", "bike", "wine", "skillcraft", "pol", "kin40k", "protein")
TABLES = ("king_county", "diamonds", "cps1988", "insurance")


class Planned(BudgetAccountant):
    """A budget that fits are planned for and not charged to."""

    def check(self, *spent: Any, **units: Any) -> None:
        pass

    def spend(self, spent: Any, label: str = "", **units: Any) -> None:
        pass


def count(kind: Any, options: dict[str, Any], sizes: dict[str, Any], epsilon: float) -> int:
    """Return how many equal fits a budget takes."""
    budget = BudgetAccountant(*BUDGET)
    model = kind(epsilon=epsilon, delta=DELTA, accountant=budget, bounds_X=(-1, 1), **options)
    spent = model.account(N, D, **sizes)
    taken = 0
    while budget._filter.total([spent] * (taken + 1)) <= BUDGET[0]:
        taken += 1
    return taken


def excess(fitted: Any, model: Any, X: Any) -> float:
    """Return the mean squared distance of predictions from those of least squares."""
    return float(np.mean((model.predict(X, clip=False) - fitted) ** 2))


def ratio(make: Any, X: Any, y: Any, fitted: Any, trials: int) -> float:
    """Return the excess risk of fits planned for a budget over that of single fits."""
    risks = {}
    for budget in (None, Planned(*BUDGET)):
        found = [
            make(delta=DELTA, accountant=budget, random_state=seed).fit(X, y)
            for seed in range(trials)
        ]
        risks[budget] = np.mean([excess(fitted, model, X) for model in found])
    alone, inside = risks.values()
    return float(inside / alone)


def beside(folder: str, name: str) -> Any:
    """Import a module of another benchmark, with what it imports from its own folder."""
    sys.path.insert(0, str(Path(__file__).parent / folder))
    for other in ("sets", "compared"):
        sys.modules.pop(other, None)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def numbers(folder: Path, epsilon: float, trials: int) -> None:
    """Print ratios of sets of numbers."""
    sets, run = beside("accuracy", "sets"), beside("accuracy", "run")
    for data in sets.load(list(NUMBERS), folder, quick=False):
        problem = run.Problem(data)

        def make(data: Any = data, **options: Any) -> Any:
            return PrivateLinearRegression(epsilon=epsilon, **data.bounds, **options)

        found = ratio(make, problem.X, problem.y, problem.fitted, trials)
        print(f"{data.name}\t{len(problem.y)}\t{len(problem.best)}\t{epsilon:g}\t{found:.2f}")


def tables(folder: Path, epsilon: float, trials: int) -> None:
    """Print ratios of tables with categories."""
    sets = beside("tables", "sets")
    for name in TABLES:
        table = sets.load(name, folder, "linear")
        A = np.c_[table.encoded(table.columns()), np.ones(len(table.frame))]
        y = table.targets()
        fitted = A @ np.linalg.lstsq(A, y, rcond=None)[0]

        def make(table: Any = table, **options: Any) -> Any:
            return PrivateLinearRegression(epsilon=epsilon, bounds=table.bounds, **options)

        found = ratio(make, table.frame, None, fitted, trials)
        print(f"{name}, categories\t{len(y)}\t{A.shape[1]}\t{epsilon:g}\t{found:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--trials", type=int, default=10)
    asked = parser.parse_args()
    print("fits under (1, 1e-6)", *EPSILONS, sep="\t")
    for name, (kind, options, sizes) in KINDS.items():
        print(name, *(count(kind, options, sizes, each) for each in EPSILONS), sep="\t")
    if asked.data_dir is None:
        return
    print("set\trows\tcolumns\tepsilon\texcess risk in a budget, over that of a single fit")
    with warnings.catch_warnings():
        for category in (LowAccuracyWarning, ReproducibleNoiseWarning):
            warnings.simplefilter("ignore", category)
        for epsilon in (0.3, 1.0):
            numbers(asked.data_dir, epsilon, asked.trials)
            tables(asked.data_dir, epsilon, asked.trials)


if __name__ == "__main__":
    main()
