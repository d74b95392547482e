"""Excess risk and test R^2 of every method on every set, over seeded trials.

    python benchmarks/accuracy/run.py --data-dir DATA --out accuracy.csv

Rows are appended as they are found, and what is in the file already is not run again. Risks are in
units of the scaled target, which lies in [-1, 1]; nothing here is private but the fits themselves.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sets
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from fastmix import IHM, AdaSSP, FastIHM, ObjectivePerturbation

EPSILONS = (0.3, 1.0, 3.0, 10.0)
METHODS: dict[str, Any] = {
    "ObjectivePerturbation": ObjectivePerturbation,
    "IHM": IHM,
    "IHM, paper": lambda **o: IHM(variant="paper", **o),
    "FastIHM": FastIHM,
    "FastIHM, paper": lambda **o: FastIHM(variant="paper", **o),
    "AdaSSP": AdaSSP,
}


@dataclass(frozen=True)
class Row:
    data: str
    method: str
    epsilon: float
    seed: int
    excess_risk: float
    test_r2: float


class Problem:
    """A set split nine to one, with the least-squares solution of the larger part."""

    def __init__(self, data: sets.DataSet) -> None:
        order = np.random.default_rng(0).permutation(len(data.y))
        held_out, self.rows = np.split(order, [len(order) // 10])
        self.data = data
        self.X, self.y = np.ascontiguousarray(data.X[self.rows]), data.y[self.rows]
        self.X_test, self.y_test = data.X[held_out], data.y[held_out]
        low, high = data.bounds["bounds_y"]
        self.unit = (high - low) / 2.0
        A = self._design(self.X)
        self.best = np.linalg.lstsq(A, self.y, rcond=None)[0]
        self.gram = A.T @ A

    def _design(self, X: Any) -> Any:
        return np.c_[X, np.ones(len(X))] if self.data.fit_intercept else X

    def measure(self, coefficients: Any) -> tuple[float, float]:
        residuals = self.y_test - self._design(self.X_test) @ coefficients
        fitted = self._design(self.X) @ (coefficients - self.best)
        return (
            float(np.mean(fitted**2)) / self.unit**2,
            1.0 - float(np.mean(residuals**2)) / float(self.y_test.var()),
        )

    def trial(self, method: str, epsilon: float, seed: int) -> Row:
        options = {**self.data.bounds, "fit_intercept": self.data.fit_intercept}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = METHODS[method](epsilon=epsilon, random_state=seed, **options)
            model.fit(self.X, self.y)
        tail = [model.intercept_] if self.data.fit_intercept else []
        return Row(
            self.data.name, method, epsilon, seed, *self.measure(np.append(model.coef_, tail))
        )


def finished(path: Path) -> set[tuple[str, str, float, int]]:
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {
            (row["data"], row["method"], float(row["epsilon"]), int(row["seed"]))
            for row in csv.DictReader(file)
        }


def trials(problem: Problem, n_trials: int, done: set[Any]) -> Iterator[tuple[str, float, int]]:
    for method in METHODS:
        for epsilon in EPSILONS:
            for seed in range(n_trials):
                if (problem.data.name, method, epsilon, seed) not in done:
                    yield method, epsilon, seed


def run(problem: Problem, batch: list[tuple[str, float, int]]) -> list[Row]:
    with threadpool_limits(1):
        return [problem.trial(*each) for each in batch]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder with the data files")
    parser.add_argument("--out", type=Path, default=Path("accuracy.csv"))
    parser.add_argument("--sets", nargs="*", default=list(sets.NAMES))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="3 trials, small generated sets")
    options = parser.parse_args()
    n_trials = 3 if options.quick else options.trials
    done = finished(options.out)
    fresh = not options.out.exists()
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(Row.__dataclass_fields__))
        if fresh:
            writer.writeheader()
        for data in sets.load(options.sets, options.data_dir, options.quick):
            problem = Problem(data)
            wanted = trials(problem, n_trials, done)
            left = [each for each in wanted if each[0] in options.methods]
            batches = [left[i : i + n_trials] for i in range(0, len(left), n_trials)]
            work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
                delayed(run)(problem, batch) for batch in batches
            )
            for count, rows in enumerate(work, start=1):
                writer.writerows(asdict(row) for row in rows)
                file.flush()
                print(f"\r{data.name}: {count} of {len(batches)} ", end="", flush=True)
            if batches:
                print()


if __name__ == "__main__":
    main()
