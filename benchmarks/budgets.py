"""What a shared budget takes, and what its calibration costs: default fits inside and outside one.

How many fits of epsilon 0.1 and 0.3, delta 1e-8, a budget of (1, 1e-6) takes, for every kind of
fit; or, with ``--data-dir``, excess risks of fits that are planned for such a budget, in units of
those of single fits with the same epsilon and delta: means over seeded trials. Seeds void the
guarantee, so these fits take the plan of the budget and are not charged.

    python benchmarks/budgets.py --out budgets.csv
    python benchmarks/budgets.py --data-dir DATA --trials 10 --out budget_risks.csv
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
import warnings
from collections.abc import Iterator
from functools import partial
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
    "without intervals": (PrivateLinearRegression, {"inference": False}, {}),
    "persons": (PrivateLinearRegression, {}, {"max_rows_per_group": 4}),
    "PrivateLogisticRegression": (PrivateLogisticRegression, {"classes": [0, 1]}, {}),
    "PrivateQuantileRegressor": (PrivateQuantileRegressor, {}, {}),
    "PrivateHuberRegressor": (PrivateHuberRegressor, {}, {}),
    "ObjectivePerturbation": (ObjectivePerturbation, {}, {}),
    "IHM": (IHM, {}, {}),
    "AdaSSP": (AdaSSP, {}, {}),
}
NUMBERS = ("california", "elevators", "bike", "wine", "skillcraft", "pol", "kin40k", "protein")
TABLES = ("king_county", "diamonds", "cps1988", "insurance")
COUNTED, COMPARED = ("fit", "epsilon", "taken"), ("set", "rows", "columns", "epsilon", "risk")


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


def numbers(names: list[str], folder: Path) -> Iterator[tuple[Any, ...]]:
    """Yield sets of numbers: name, rows, targets, predictions of least squares, bounds."""
    sets, run = beside("accuracy", "sets"), beside("accuracy", "run")
    for data in sets.load([name for name in NUMBERS if name in names], folder, quick=False):
        problem = run.Problem(data)
        sizes = len(problem.y), len(problem.best)
        yield data.name, sizes, problem.X, problem.y, problem.fitted, data.bounds


def tables(names: list[str], folder: Path) -> Iterator[tuple[Any, ...]]:
    """Yield tables with categories in the same way."""
    sets = beside("tables", "sets")
    for name in TABLES:
        if name in names:
            table = sets.load(name, folder, "linear")
            A = np.c_[table.encoded(table.columns()), np.ones(len(table.frame))]
            fitted = A @ np.linalg.lstsq(A, table.targets(), rcond=None)[0]
            yield name, A.shape, table.frame, None, fitted, {"bounds": table.bounds}


def counts() -> Iterator[list[Any]]:
    """Yield how many fits of each kind a budget takes."""
    for name, (kind, options, sizes) in KINDS.items():
        yield from ([name, each, count(kind, options, sizes, each)] for each in EPSILONS)


def risks(asked: argparse.Namespace, done: set[Any]) -> Iterator[list[Any]]:
    """Yield the ratios that are not done."""
    names = asked.sets.split(",") if asked.sets else [*NUMBERS, *TABLES]
    for made in (numbers(names, asked.data_dir), tables(names, asked.data_dir)):
        for name, sizes, X, y, fitted, bounds in made:
            for epsilon in (each for each in (0.3, 1.0) if (name, each) not in done):
                make = partial(PrivateLinearRegression, epsilon=epsilon, **bounds)
                found = ratio(make, X, y, fitted, asked.trials)
                yield [name, *sizes, epsilon, f"{found:.4g}", asked.trials]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="compare risks on these sets")
    parser.add_argument("--sets", default="")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    for category in (LowAccuracyWarning, ReproducibleNoiseWarning):
        warnings.simplefilter("ignore", category)
    fresh, done = not asked.out.exists(), set()
    if not fresh:
        with asked.out.open(newline="") as file:
            done = {(row.get("set"), float(row["epsilon"])) for row in csv.DictReader(file)}
    with asked.out.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow((*COMPARED, "trials") if asked.data_dir else COUNTED)
        for line in risks(asked, done) if asked.data_dir else counts():
            writer.writerow(line)
            file.flush()


if __name__ == "__main__":
    main()
