"""Excess log-loss, accuracy and AUC of private logistic regression, over seeded trials.

    python benchmarks/classification/run.py --data-dir DATA --diffprivlib ENV/bin/python

Rows are appended as they are found, and what is in the file already is not run again. Excess
log-loss is that of the training rows over the least of any coefficients; accuracy and AUC are those
of a tenth of the rows that was held out. Nothing here is private but the fits themselves.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import labelled
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from fastmix import PrivateLogisticRegression
from fastmix.data import ArrayRows
from fastmix.data.scaling import public_scaling
from peers import PEERS, diffprivlib

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Row:
    data: str
    method: str
    epsilon: float
    seed: int
    setting: str
    excess: float
    accuracy: float
    auc: float
    seconds: float
    n: int
    d: int


class Problem:
    """A set split nine to one, in scaled rows with the constant, and the best coefficients."""

    def __init__(self, data: labelled.DataSet, most_rows: int | None = None) -> None:
        order = np.random.default_rng(0).permutation(len(data.y))
        held_out, rows = np.split(order, [len(order) // 10])
        rows = rows[:most_rows]
        self.data = data
        self.X, self.y = np.ascontiguousarray(data.X[rows]), data.y[rows]
        self.X_test, self.y_test = data.X[held_out], data.y[held_out]
        self.A, self.A_test = self._scaled(self.X), self._scaled(self.X_test)
        plain = PrivateLogisticRegression(
            epsilon=np.inf, bounds_X=data.bounds, classes=[0.0, 1.0]
        ).fit(self.X, self.y)
        self.least = self._loss(plain.decision_function(self.X))

    def _scaled(self, X: Any) -> Any:
        made = public_scaling(
            X, X[:, 0], bounds_X=self.data.bounds, bounds_y=(0, 1), data_norm=None,
            fit_intercept=True,
        )  # fmt: skip
        return np.concatenate([A for A, _ in ArrayRows(X, made.row_map).blocks()])

    def _loss(self, scores: Any) -> float:
        return float(np.mean(np.logaddexp(0.0, -(2.0 * self.y - 1.0) * scores)))

    def row(
        self, method: str, epsilon: float, seed: int, setting: str, scores: Any, seconds: float
    ) -> Row:
        on_rows, on_test = scores
        return Row(
            self.data.name, method, epsilon, seed, setting,
            self._loss(on_rows) - self.least,
            float(np.mean((on_test > 0.0) == self.y_test)),
            float(roc_auc_score(self.y_test, on_test)),
            seconds, *self.A.shape,
        )  # fmt: skip

    def linear(self, theta: Any) -> tuple[Any, Any]:
        return self.A @ theta, self.A_test @ theta

    def own(self, epsilon: float, seed: int) -> Row:
        started = time.perf_counter()
        model = PrivateLogisticRegression(
            epsilon=epsilon, bounds_X=self.data.bounds, classes=[0.0, 1.0], random_state=seed
        ).fit(self.X, self.y)
        seconds = time.perf_counter() - started
        scores = model.decision_function(self.X), model.decision_function(self.X_test)
        return self.row("fastmix", epsilon, seed, "", scores, seconds)

    def scikit_learn(self) -> Row:
        """Not private: the default on standardised features, with hardly any ridge."""
        mean, std = self.X.mean(axis=0), np.maximum(self.X.std(axis=0), 1e-12)
        started = time.perf_counter()
        model = LogisticRegression(C=1e6, max_iter=1000).fit((self.X - mean) / std, self.y)
        seconds = time.perf_counter() - started
        scores = [model.decision_function((each - mean) / std) for each in (self.X, self.X_test)]
        return self.row("scikit-learn", np.inf, 0, "", scores, seconds)

    def newton_check(self) -> float:
        """Return the least log-loss by another solver, for comparison."""
        sign = 2.0 * self.y - 1.0

        def objective(theta: Any) -> tuple[float, Any]:
            margin = sign * (self.A @ theta)
            slope = self.A.T @ (-sign * expit(-margin))
            return float(np.logaddexp(0.0, -margin).mean()), slope / len(sign)

        start = np.zeros(self.A.shape[1])
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000})
        return float(found.fun)


def trials(problem: Problem, options: Any, done: set[tuple[str, str, float, int]]) -> Any:
    """Yield what is measured on a set and not done yet."""
    name, n = problem.data.name, len(problem.y)
    seeds = range(options.trials)
    if (name, "scikit-learn", np.inf, 0) not in done:
        yield problem.scikit_learn()
    for epsilon in EPSILONS:
        for seed in seeds:
            if (name, "fastmix", epsilon, seed) not in done:
                yield problem.own(epsilon, seed)
            for method, peer in PEERS.items():
                if (name, method, epsilon, seed) not in done:
                    started = time.perf_counter()
                    for setting, theta in peer(problem.A, problem.y, epsilon, 1.0 / n**2, seed):
                        seconds = time.perf_counter() - started
                        scores = problem.linear(theta)
                        yield problem.row(method, epsilon, seed, setting, scores, seconds)
    if options.diffprivlib and (name, "diffprivlib", EPSILONS[0], 0) not in done:
        found = diffprivlib(options.diffprivlib, problem.A, problem.y, EPSILONS, seeds)
        for (epsilon, seed), fits in found.items():
            for setting, theta in fits:
                scores = problem.linear(theta)
                yield problem.row("diffprivlib", epsilon, seed, setting, scores, np.nan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder with the data files")
    parser.add_argument("--diffprivlib", type=Path, help="Python that has diffprivlib 0.6.6")
    parser.add_argument("--out", type=Path, default=Path("classification.csv"))
    parser.add_argument("--sets", nargs="*", default=list(labelled.NAMES))
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--most-rows", type=int, help="use so many rows of a set at most")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done: set[tuple[str, str, float, int]] = set()
    fresh = not options.out.exists()
    if not fresh:
        with options.out.open(newline="") as file:
            done = {
                (row["data"], row["method"], float(row["epsilon"]), int(row["seed"]))
                for row in csv.DictReader(file)
            }
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(Row.__dataclass_fields__))
        if fresh:
            writer.writeheader()
        for data in labelled.load(options.sets, options.data_dir):
            problem = Problem(data, options.most_rows)
            for row in trials(problem, options, done):
                writer.writerow(asdict(row))
                file.flush()
            print(f"{data.name}: least log-loss {problem.least:.6f}", flush=True)


if __name__ == "__main__":
    main()
