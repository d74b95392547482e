"""Excess loss of private logistic, quantile and Huber fits, for the ranges of their forecasts.

    python benchmarks/losses.py --data-dir DATA --out docs/forecast_losses.csv

The excess is that of the training rows over the fit without privacy: log-loss, pinball loss of
targets scaled to [-1, 1], and for Huber fits the mean square by which scaled predictions move.
`share` is how far the share of rows below a quantile is from nominal. Nothing here is private but
the fits themselves. Cells that the file has are skipped.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from fastmix import PrivateHuberRegressor, PrivateLogisticRegression, PrivateQuantileRegressor

sys.path += [str(Path(__file__).resolve().parent / name) for name in ("accuracy", "classification")]

import labelled
import sets

FAMILIES = ("logistic", "huber", "quantile 0.5", "quantile 0.9")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
#: Sets that the constants of the forecasts were chosen on.
SETTING = {"logistic": ("adult", "black_friday"), "other": ("black_friday", "nycflights13")}
REGRESSION = ("black_friday", "nycflights13", "beijing_air", "california", "diamonds", "protein")


def best_quantile(X: Any, y: Any, q: float) -> Any:
    """Return the predictions of a quantile regression, by Newton's method on narrower smoothings.

    The loss is that of scikit-learn's ``QuantileRegressor`` to five digits, in a second.
    """
    spread = X.std(axis=0)
    A = np.column_stack(
        [(X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), np.ones(len(y))]
    )
    ridge = 1e-8 * len(y) * np.eye(A.shape[1])
    theta = np.linalg.solve(A.T @ A + ridge, A.T @ y)
    for width in np.std(y) * np.geomspace(0.3, 1e-3, 8):

        def loss(theta: Any, width: float = width) -> float:
            r = (y - A @ theta) / width
            smooth = q * r + np.logaddexp(0.0, -r)
            return width * float(smooth.sum()) + float(theta @ ridge @ theta) / 2.0

        for _ in range(15):
            p = expit(-(y - A @ theta) / width)
            slope = A.T @ (p - q) + ridge @ theta
            bend = (A.T * (p * (1.0 - p) / width)) @ A + ridge
            step = np.linalg.solve(
                bend + 1e-6 * np.trace(bend) / len(bend) * np.eye(len(bend)), slope
            )
            length = 1.0
            while length > 1e-6 and loss(theta - length * step) > loss(theta):
                length /= 2.0
            theta = theta - length * step
    return A @ theta


class Problem:
    """A family of models on a set, and its fit without privacy."""

    def __init__(self, family: str, data: Any) -> None:
        self.family, self.data = family, data
        self.q = float(family.split()[1]) if family.startswith("quantile") else 0.5
        self.best = self.predictions(np.inf, 0)

    def predictions(self, epsilon: float, seed: int) -> Any:
        """Return log-odds, or predictions in units of half the target's bounds."""
        given: dict[str, Any] = {"epsilon": epsilon, "random_state": seed}
        if self.family == "logistic":
            given |= {"bounds_X": self.data.bounds, "classes": [0.0, 1.0]}
            model = PrivateLogisticRegression(**given).fit(self.data.X, self.data.y)
            return model.decision_function(self.data.X)
        given |= self.data.bounds
        if self.family == "huber":
            regressor: Any = PrivateHuberRegressor(**given)
        elif np.isinf(epsilon):
            return best_quantile(self.data.X, self.data.y / self.half, self.q)
        else:
            regressor = PrivateQuantileRegressor(quantile=self.q, **given)
        return regressor.fit(self.data.X, self.data.y).predict(self.data.X) / self.half

    @property
    def half(self) -> float:
        low, high = self.data.bounds["bounds_y"]
        return float(high - low) / 2.0

    def loss(self, found: Any) -> float:
        if self.family == "logistic":
            return float(np.mean(np.logaddexp(0.0, -(2.0 * self.data.y - 1.0) * found)))
        if self.family == "huber":
            return float(np.mean((found - self.best) ** 2))
        r = self.data.y / self.half - found
        return float(np.mean(np.maximum(self.q * r, (self.q - 1.0) * r)))

    def measured(self, epsilon: float, seed: int) -> tuple[float, float]:
        """Return the excess loss, and how far the share of rows below is from nominal."""
        found = self.predictions(epsilon, seed)
        share = np.nan
        if self.family.startswith("quantile"):
            share = abs(float(np.mean(self.data.y / self.half <= found)) - self.q)
        return self.loss(found) - self.loss(self.best), share


def cut(data: Any, most: int) -> Any:
    """Return a set with so many of its rows at most."""
    order = np.random.default_rng(0).permutation(len(data.y))[:most]
    X, y = np.ascontiguousarray(data.X[order]), data.y[order]
    kind = type(data)
    return kind(data.name, X, y, data.bounds)


def finished(path: Path) -> set[tuple[str, str, float]]:
    """Return the cells that a file has."""
    if not path.exists():
        return set()
    return set(pd.read_csv(path)[["family", "data", "epsilon"]].itertuples(index=False, name=None))


def problems(options: Any) -> Iterator[Problem]:
    """Yield families with their sets."""
    if "logistic" in options.families:
        for data in labelled.load(list(labelled.NAMES), options.data_dir):
            yield Problem("logistic", cut(data, options.most_rows))
    others = [family for family in options.families if family != "logistic"]
    for data in sets.load(list(REGRESSION) if others else [], options.data_dir, quick=False):
        small = cut(data, options.most_rows)
        for family in others:
            yield Problem(family, small)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder with the data files")
    parser.add_argument("--out", type=Path, default=Path("forecast_losses.csv"))
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--most-rows", type=int, default=20_000, help="rows of a set at most")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done = finished(options.out)
    for problem in problems(options):
        family, data = problem.family, problem.data
        setting = SETTING.get(family, SETTING["other"])
        for epsilon in EPSILONS:
            if (family, data.name, epsilon) in done:
                continue
            found = [problem.measured(epsilon, seed) for seed in range(options.trials)]
            excess, share = np.mean(found, axis=0)
            line = {
                "family": family,
                "data": data.name,
                "used_for": "setting" if data.name in setting else "testing",
                "rows": data.X.shape[0],
                "features": data.X.shape[1],
                "epsilon": epsilon,
                "excess_risk": f"{excess:.3g}",
                "share": f"{share:.2g}",
                "trials": options.trials,
            }
            fresh = not options.out.exists()
            pd.DataFrame([line]).to_csv(options.out, mode="a", header=fresh, index=False)


if __name__ == "__main__":
    main()
