"""Intervals against the truth: coverage, width, what is told from zero, and what they cost.

    python benchmarks/inference.py --fits 40 --rows 2000,20000 --data-dir DATA --out inference.csv

Rows are those of the accuracy benchmark, of columns of numbers. Targets are those of a
least-squares fit with fresh errors, drawn from its residuals, and bounds that contain them all; so
the truth is known. Directions with less than a thousandth of the largest singular value have no
coefficients. A fit is the default one, with intervals; its excess risk is compared with that of the
fit without intervals of the same data and seed. Cells that the file has are skipped, so a run can
be continued.

    python benchmarks/inference.py --family logistic --rows 40000 --data-dir DATA

is the same for logistic regression (and `--family huber` for robust regression, with errors of
either sign): rows of the classification benchmark without collinear columns,
and labels drawn anew from a logistic fit with hardly any ridge. Sets of numbers have the label
whether the target is above its median.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import fastmix

sys.path.insert(0, str(Path(__file__).parent / "accuracy"))
sys.path.append(str(Path(__file__).parent / "classification"))
import labelled
import sets

#: Constants were chosen on the first four sets; the others are held out.
CHOSEN_ON = ("california", "bike", "protein", "elevators")
NAMES = (*CHOSEN_ON, "kin40k", "pol", "skillcraft", "wine", "sgemm", "beijing_air")
CLASSIFIED = ("uniform", "synthetic", "nycflights13", "beijing_air", "adult", "black_friday")
TARGETS = {"california": "median_house_value", "beijing_air": "PM2.5"}


def load(name: str, folder: Path | None, most_rows: int) -> sets.DataSet:
    """Return a set with at most so many rows; of tables with categories the numbers only."""
    if name in ("sphere", "correlated"):
        return sets.generated(name, 1 << int(np.log2(most_rows)))
    if name in TARGETS:
        if folder is None:
            raise FileNotFoundError("no --data-dir")
        frame = pd.read_parquet(folder / f"{name}.parquet").dropna().select_dtypes("number")
        y = frame.pop(TARGETS[name]).to_numpy(np.float64)
        X = frame.drop(columns="No", errors="ignore").to_numpy(np.float64)
        data = sets.DataSet(name, X, y, sets.round_bounds(X, y))
    else:
        (data,) = sets.load([name], folder, quick=False)
    chosen = np.random.default_rng(0).permutation(len(data.y))[:most_rows]
    return replace(data, X=np.asarray(data.X)[chosen], y=np.asarray(data.y)[chosen])


class Truth:
    """Coefficients, intercept last, and targets with fresh errors around them."""

    def __init__(self, data: sets.DataSet) -> None:
        X = np.column_stack([data.X, np.ones(len(data.y))]) if data.fit_intercept else data.X
        unit = np.maximum(np.abs(X).max(axis=0), 1e-300)
        self.solve = np.linalg.pinv(X / unit, rcond=1e-3) / unit[:, None]
        self.theta = self.solve @ data.y
        self.fitted = X @ self.theta
        self.gram = X.T @ X / len(X)
        errors = data.y - self.fitted
        self.errors = errors - errors.mean()
        low, high = data.bounds["bounds_y"]
        low = min(low, self.fitted.min() + self.errors.min())
        high = max(high, self.fitted.max() + self.errors.max())
        if isinstance(self, RobustTruth):
            low = min(low, self.fitted.min() - self.errors.max())
            high = max(high, self.fitted.max() - self.errors.min())
        if not data.fit_intercept:
            low, high = -max(-low, high), max(-low, high)
        self.bounds = {**data.bounds, "bounds_y": (float(low), float(high))}
        spread = np.sum(self.solve**2, axis=1) * self.errors.var()
        self.told = np.abs(self.theta) > 1.96 * np.sqrt(spread)

    def draw(self, rng: np.random.Generator) -> Any:
        return self.fitted + rng.choice(self.errors, len(self.fitted))

    def excess(self, theta: Any, y: Any) -> float:
        """Return how far predictions are from those of least squares, in variances of errors."""
        off = theta - self.solve @ y
        return float(off @ self.gram @ off / self.errors.var())

    def model(self, **given: Any) -> Any:
        return fastmix.PrivateLinearRegression(**given)


def load_labelled(name: str, folder: Path | None, most_rows: int) -> sets.DataSet:
    """Return a set with labels and at most so many rows, without collinear columns."""
    if name == "uniform":
        X = np.random.default_rng(0).uniform(-1, 1, (min(most_rows, 20_000), 5))
        y = np.random.default_rng(1).logistic(size=len(X)) < X @ [2.0, -1.0, 0.5, 0.0, 0.0] - 0.5
        return sets.DataSet(name, X, y.astype(float), {"bounds_X": (-np.ones(5), np.ones(5))})
    if name in NAMES and name not in CLASSIFIED:
        numbers = load(name, folder, most_rows)
        y = (numbers.y > np.median(numbers.y)).astype(float)
        data: Any = replace(numbers, y=y, bounds=numbers.bounds["bounds_X"])
    else:
        found = list(labelled.load([name], folder))
        if not found:
            raise FileNotFoundError(name)
        (data,) = found
    triangle = np.linalg.qr(np.column_stack([np.ones(len(data.y)), data.X]), mode="r")
    sizes = np.abs(np.diag(triangle))
    kept = (sizes > 1e-6 * sizes.max())[1:]
    chosen = np.random.default_rng(0).permutation(len(data.y))[:most_rows]
    ends = tuple(np.broadcast_to(np.asarray(e, float), kept.shape)[kept] for e in data.bounds)
    return sets.DataSet(name, data.X[chosen][:, kept], data.y[chosen], {"bounds_X": ends})


class RobustTruth(Truth):
    """The same with errors of either sign, so that clipped residuals have their centre there."""

    def draw(self, rng: np.random.Generator) -> Any:
        errors = rng.choice(self.errors, len(self.fitted))
        return self.fitted + errors * rng.choice([-1.0, 1.0], len(errors))

    def model(self, **given: Any) -> Any:
        return fastmix.PrivateHuberRegressor(**given)


class LabelTruth:
    """Coefficients of log-odds, intercept last, and labels drawn from them."""

    def __init__(self, data: sets.DataSet) -> None:
        low, high = data.bounds["bounds_X"]
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        fit = LogisticRegression(C=100.0, max_iter=2000).fit((data.X - middle) / half, data.y)
        coef = fit.coef_[0] / half
        self.theta = np.append(coef, fit.intercept_[0] - coef @ middle)
        D = np.column_stack([data.X, np.ones(len(data.y))])
        self.rows, self.likely = D, expit(D @ self.theta)
        odds = D @ self.theta
        self.entropy = float(np.mean(np.logaddexp(0.0, odds) - self.likely * odds))
        self.bounds = data.bounds
        weights = self.likely * (1.0 - self.likely)
        unit = 1.0 / np.sqrt((D**2 * weights[:, None]).sum(axis=0))
        spread = np.linalg.inv(unit[:, None] * (D * weights[:, None]).T @ D * unit)
        self.told = np.abs(self.theta) > 1.96 * unit * np.sqrt(np.diag(spread))

    def draw(self, rng: np.random.Generator) -> Any:
        return (rng.random(len(self.likely)) < self.likely).astype(float)

    def model(self, **given: Any) -> Any:
        return fastmix.PrivateLogisticRegression(classes=[0, 1], **given)

    def excess(self, theta: Any, y: Any) -> float:
        """Return the mean Kullback-Leibler divergence of probabilities from the true ones."""
        odds, p = self.rows @ theta, self.likely
        return float(np.mean(np.logaddexp(0.0, odds) - p * odds)) - self.entropy


def cell(
    data: sets.DataSet, truth: Truth | LabelTruth, epsilon: float, fits: int
) -> dict[str, Any]:
    """Fit again and again, and compare with the truth."""
    rng = np.random.default_rng(1)
    errors, stds, spreads, prices = [], [], [], []
    started = time.perf_counter()
    for _ in range(fits):
        y, seed, found = truth.draw(rng), int(rng.integers(1 << 30)), {}
        for inference in (True, False):
            model = truth.model(
                epsilon=epsilon,
                inference=inference,
                fit_intercept=data.fit_intercept,
                random_state=seed,
                **truth.bounds,
            ).fit(data.X, y)
            theta = np.ravel(model.coef_)
            found[inference] = np.append(theta, model.intercept_) if data.fit_intercept else theta
            if inference:
                std = np.ravel(model.coef_std_)
                stds.append(np.append(std, model.intercept_std_) if data.fit_intercept else std)
                if getattr(model, "residual_std_identified_", False):
                    spreads.append(model.residual_std_ / truth.errors.std())
        errors.append(found[True] - truth.theta)
        prices.append(np.log(truth.excess(found[True], y) / truth.excess(found[False], y)))
    E, S = np.array(errors), np.array(stds)
    known = np.isfinite(S)
    usual = known.mean(axis=0) > 0.5
    ratios = np.abs(E[known]) / S[known]
    squares = np.where(known, E**2, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, S, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    width = (mean / np.sqrt(np.maximum(squares, 1e-300)))[usual]
    told = (np.abs(E + truth.theta) > 1.96 * S)[:, truth.told].sum(axis=1)
    nothing = not known.any()
    return {
        "set": data.name,
        "n": len(data.y),
        "columns": E.shape[1],
        "epsilon": epsilon,
        "fits": fits,
        "identified": known.sum(axis=1).mean(),
        "coverage": np.nan if nothing else float(np.mean(ratios <= 1.959964)),
        "median_error": np.nan if nothing else float(np.median(ratios)),
        "width_0.75_to_1.5": np.mean((width >= 0.75) & (width <= 1.5)) if len(width) else np.nan,
        "widest": width.max() if len(width) else np.nan,
        "narrowest": width.min() if len(width) else np.nan,
        "told": told.mean(),
        "told_by_least_squares": int(truth.told.sum()),
        "median_width": np.median(width) if len(width) else np.nan,
        "risk_with_over_without": float(np.exp(np.mean(prices))),
        "spread_known": len(spreads) / fits,
        "spread_least": min(spreads, default=np.nan),
        "spread_most": max(spreads, default=np.nan),
        "seconds": (time.perf_counter() - started) / fits,
    }


def cells(asked: argparse.Namespace, done: set[Any]) -> Iterator[dict[str, Any]]:
    """Yield the cells that are not done: one per set, number of rows and epsilon."""
    linear = asked.family != "logistic"
    kinds = {"linear": Truth, "huber": RobustTruth, "logistic": LabelTruth}
    names = asked.sets.split(",") if asked.sets else NAMES if linear else CLASSIFIED
    for name, rows in product(names, map(int, asked.rows.split(","))):
        try:
            make = load if linear else load_labelled
            data = make(name, asked.data_dir, rows)
        except FileNotFoundError as error:
            print(f"{name}: skipped, {error}", file=sys.stderr)
            continue
        epsilons = [float(each) for each in asked.epsilons.split(",")]
        left = [each for each in epsilons if (name, len(data.y), each) not in done]
        truth = kinds[asked.family](data) if left else None
        done |= {(name, len(data.y), each) for each in left}
        for epsilon in left:
            yield cell(data, truth, epsilon, asked.fits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=40)
    parser.add_argument("--family", choices=("linear", "logistic", "huber"), default="linear")
    parser.add_argument("--sets", default="")
    parser.add_argument("--epsilons", default="0.3,1,3")
    parser.add_argument("--rows", default="2000,20000", help="numbers of rows, at most")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    done: set[Any] = set()
    if asked.out is not None and asked.out.exists():
        keys = pd.read_csv(asked.out)[["set", "n", "epsilon"]]
        done = set(keys.itertuples(index=False, name=None))
    for row in cells(asked, done):
        values = (f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values())
        print(" ".join(f"{k}={v}" for k, v in zip(row, values, strict=True)), flush=True)
        if asked.out is not None:
            fresh, line = not asked.out.exists(), pd.DataFrame([row])
            line.to_csv(asked.out, mode="a", header=fresh, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
