"""Excess risk and test R^2 of every method on every set, over seeded trials.

    python benchmarks/accuracy/run.py --data-dir DATA --out accuracy.csv
    python benchmarks/accuracy/run.py --data-dir DATA --out accuracy.csv --ridges --trials 2

Rows are appended as they are found, and what is in the file already is not run again. Risks are in
units of the scaled target, which lies in [-1, 1]; nothing here is private but the fits themselves.
Risks are those of linear predictions; with ``--within-bounds`` test R^2 is that of predictions
moved to the nearer bound of the target, for all methods.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sets
from compared import METHODS, PUBLISHED, RIDGES, SLOW, Diffprivlib
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from fastmix.errors import LowAccuracyWarning, ReproducibleNoiseWarning
from fastmix.estimators import PrivateRegressor

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
#: Sets with more columns are wide: fixed ridges are compared there, at these epsilons.
WIDE, RIDGE_EPSILONS = 250, (1.0, 3.0)
#: Slow methods are left out on sets with more columns.
WIDEST = 400


@dataclass(frozen=True)
class Row:
    data: str
    method: str
    epsilon: float
    seed: int
    excess_risk: float
    test_r2: float
    seconds: float
    n: int
    d: int
    variance: float


class Problem:
    """A set split nine to one, with the least-squares solution of the larger part."""

    def __init__(self, data: sets.DataSet, within_bounds: bool = False) -> None:
        order = np.random.default_rng(0).permutation(len(data.y))
        held_out, rows = np.split(order, [len(order) // 10])
        rows = rows[: data.most_rows]
        self.data, self.within_bounds = data, within_bounds
        self.X, self.y = np.ascontiguousarray(data.X[rows]), data.y[rows]
        self.X_test, self.y_test = data.X[held_out], data.y[held_out]
        low, high = data.bounds["bounds_y"]
        self.unit = (high - low) / 2.0
        self.best = least_squares(self._design(self.X), self.y)
        self.fitted = self._design(self.X) @ self.best

    def _design(self, X: Any) -> Any:
        return np.c_[X, np.ones(len(X))] if self.data.fit_intercept else X

    def row(self, method: str, epsilon: float, seed: int, predict: Any, seconds: float) -> Row:
        """Measure predictions; seconds are those of the processor for the fit."""
        error = predict(self.X) - self.fitted
        predicted = predict(self.X_test)
        if self.within_bounds:
            predicted = predicted.clip(*self.data.bounds["bounds_y"])
        residuals = self.y_test - predicted
        # The second term is zero for what is linear in the design, and not for a constant alone.
        excess = np.mean(error**2) - 2.0 * np.mean(error * (self.y - self.fitted))
        return Row(
            data=self.data.name,
            method=method,
            epsilon=epsilon,
            seed=seed,
            excess_risk=float(excess) / self.unit**2,
            test_r2=1.0 - float(np.mean(residuals**2)) / float(self.y_test.var()),
            seconds=seconds,
            n=len(self.y),
            d=len(self.best),
            variance=float(self.y.var()) / self.unit**2,
        )

    def least_squares(self) -> Row:
        return self.row(
            "least squares", math.inf, 0, lambda X: self._design(X) @ self.best, seconds=0.0
        )

    def trial(self, method: str, epsilon: float, seed: int) -> Row:
        options = {**self.data.bounds, "fit_intercept": self.data.fit_intercept}
        make = {**METHODS, **PUBLISHED, **RIDGES}[method]
        with warnings.catch_warnings():
            for category in (LowAccuracyWarning, ReproducibleNoiseWarning):
                warnings.simplefilter("ignore", category)
            started = time.process_time()
            model = make(epsilon=epsilon, random_state=seed, **options).fit(self.X, self.y)
            seconds = time.process_time() - started
        predict = model.predict
        if isinstance(model, PrivateRegressor):
            predict = partial(predict, clip=False)
        return self.row(method, epsilon, seed, predict, seconds)


def least_squares(A: Any, y: Any) -> Any:
    """Solve least squares by the triangular factor of columns of length 1, with the target."""
    lengths = np.linalg.norm(A, axis=0)
    lengths[lengths == 0.0] = 1.0
    R = np.linalg.qr(np.c_[A / lengths, y], mode="r")
    return np.linalg.lstsq(R[:-1, :-1], R[:-1, -1], rcond=1e-11)[0] / lengths


def finished(path: Path) -> set[tuple[str, str, float, int]]:
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {
            (row["data"], row["method"], float(row["epsilon"]), int(row["seed"]))
            for row in csv.DictReader(file)
        }


def wanted(data: sets.DataSet, options: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """Yield methods and epsilons for a set."""
    columns = data.X.shape[1]
    if options.ridges:
        if columns > WIDE:
            yield from ((method, epsilon) for method in RIDGES for epsilon in RIDGE_EPSILONS)
        return
    for method in options.methods:
        if method in SLOW and columns > WIDEST:
            print(f"{data.name}: {method} is left out, it takes too long")
        elif method == "diffprivlib" and (Diffprivlib is None or "data_norm" in data.bounds):
            print(f"{data.name}: diffprivlib is left out, it is not installed or needs bounds_X")
        else:
            yield from ((method, epsilon) for epsilon in options.epsilons)


def run(problem: Problem, batch: list[tuple[str, float, int]], most_seconds: float) -> list[Row]:
    """Run the trials of a cell, and no more of them once one has taken too long."""
    rows: list[Row] = []
    with threadpool_limits(1):
        for each in batch:
            try:
                rows.append(problem.trial(*each))
            except Exception as error:
                print(f"{problem.data.name}, {each}: failed, {error!r}", flush=True)
            if rows and rows[-1].seconds > most_seconds:
                break
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder with the data files")
    parser.add_argument("--out", type=Path, default=Path("accuracy.csv"))
    parser.add_argument("--sets", nargs="*", default=list(sets.NAMES))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--epsilons", nargs="*", type=float, default=list(EPSILONS))
    parser.add_argument("--within-bounds", action="store_true", help="R^2 of clipped predictions")
    parser.add_argument("--ridges", action="store_true", help="fixed ridges on wide sets instead")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--most-seconds", type=float, default=math.inf, help="one trial if a fit takes longer"
    )
    parser.add_argument("--quick", action="store_true", help="3 trials at most, few rows")
    options = parser.parse_args()
    n_trials = min(options.trials, 3) if options.quick else options.trials
    done = finished(options.out)
    fresh = not options.out.exists()
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(Row.__dataclass_fields__))
        if fresh:
            writer.writeheader()
        for data in sets.load(options.sets, options.data_dir, options.quick):
            cells = [
                [(method, epsilon, seed) for seed in range(n_trials)]
                for method, epsilon in wanted(data, options)
            ]
            left = [[each for each in cell if (data.name, *each) not in done] for cell in cells]
            left = [cell for cell in left if cell]
            if not left:
                continue
            problem = Problem(data, options.within_bounds)
            if (data.name, "least squares", math.inf, 0) not in done:
                writer.writerow(asdict(problem.least_squares()))
            work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
                delayed(run)(problem, cell, options.most_seconds) for cell in left
            )
            for count, rows in enumerate(work, start=1):
                writer.writerows(asdict(row) for row in rows)
                file.flush()
                print(f"\r{data.name}: {count} of {len(left)} ", end="", flush=True)
            print()


if __name__ == "__main__":
    main()
