"""Intervals against the truth: coverage, width, and what is told from zero.

    python benchmarks/inference.py --fits 400 --data-dir DATA --out inference.csv

Rows are those of the accuracy benchmark, with one category of each column left out. Targets are
those of the least-squares fit with fresh errors, drawn from its residuals, and bounds that contain
them all; so the truth is known. A fit is the default one with ``inference=True``.

    python benchmarks/inference.py --family logistic --most-rows 40000 --data-dir DATA

is the same for logistic regression (and `--family huber` for robust regression, with errors of
either sign): rows of the classification benchmark without collinear columns,
and labels drawn anew from a logistic fit with hardly any ridge.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
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

NAMES = ("sphere", "correlated", "california", "bike", "diamonds", "nycflights13")
CLASSIFIED = ("uniform", "synthetic", "nycflights13", "beijing_air", "adult", "black_friday")
TARGETS = {"california": "median_house_value", "diamonds": "price"}


def load(name: str, folder: Path | None, most_rows: int) -> sets.DataSet:
    """Return a set with at most so many rows, without collinear columns of categories."""
    if name in ("sphere", "correlated"):
        return sets.generated(name, 1 << int(np.log2(most_rows)))
    if name in TARGETS:
        if folder is None:
            raise FileNotFoundError("no --data-dir")
        frame = pd.read_parquet(folder / f"{name}.parquet").dropna()
        y = frame.pop(TARGETS[name]).to_numpy(np.float64)
        X = pd.get_dummies(frame, dtype=np.float64, drop_first=True).to_numpy(np.float64)
        data = sets.DataSet(name, X, y, sets.round_bounds(X, y))
    else:
        (data,) = sets.load([name], folder, quick=False)
    chosen = np.random.default_rng(0).permutation(len(data.y))[:most_rows]
    return replace(data, X=np.asarray(data.X)[chosen], y=np.asarray(data.y)[chosen])


class Truth:
    """Coefficients, intercept last, and targets with fresh errors around them."""

    def __init__(self, data: sets.DataSet) -> None:
        X = np.column_stack([data.X, np.ones(len(data.y))]) if data.fit_intercept else data.X
        self.theta = np.linalg.lstsq(X, data.y, rcond=None)[0]
        self.fitted = X @ self.theta
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
        spread = np.linalg.pinv(X.T @ X) * self.errors.var()
        self.told = np.abs(self.theta) > 1.96 * np.sqrt(np.diag(spread))

    def draw(self, rng: np.random.Generator) -> Any:
        return self.fitted + rng.choice(self.errors, len(self.fitted))

    def model(self, **given: Any) -> Any:
        return fastmix.PrivateLinearRegression(**given)


def load_labelled(name: str, folder: Path | None, most_rows: int) -> sets.DataSet:
    """Return a set with labels and at most so many rows, without collinear columns."""
    if name == "uniform":
        X = np.random.default_rng(0).uniform(-1, 1, (min(most_rows, 20_000), 5))
        y = np.random.default_rng(1).logistic(size=len(X)) < X @ [2.0, -1.0, 0.5, 0.0, 0.0] - 0.5
        return sets.DataSet(name, X, y.astype(float), {"bounds_X": (-np.ones(5), np.ones(5))})
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
        self.likely = expit(D @ self.theta)
        self.bounds = data.bounds
        weights = self.likely * (1.0 - self.likely)
        unit = 1.0 / np.sqrt((D**2 * weights[:, None]).sum(axis=0))
        spread = np.linalg.inv(unit[:, None] * (D * weights[:, None]).T @ D * unit)
        self.told = np.abs(self.theta) > 1.96 * unit * np.sqrt(np.diag(spread))

    def draw(self, rng: np.random.Generator) -> Any:
        return (rng.random(len(self.likely)) < self.likely).astype(float)

    def model(self, **given: Any) -> Any:
        return fastmix.PrivateLogisticRegression(classes=[0, 1], **given)


def cell(
    data: sets.DataSet, truth: Truth | LabelTruth, epsilon: float, fits: int
) -> dict[str, Any]:
    """Fit again and again, and compare with the truth."""
    rng = np.random.default_rng(1)
    errors, stds = [], []
    started = time.perf_counter()
    for _ in range(fits):
        model = truth.model(
            epsilon=epsilon,
            inference=True,
            fit_intercept=data.fit_intercept,
            random_state=rng,
            **truth.bounds,
        ).fit(data.X, truth.draw(rng))
        error, std = np.ravel(model.coef_), np.ravel(model.coef_std_)
        if data.fit_intercept:
            error, std = np.append(error, model.intercept_), np.append(std, model.intercept_std_)
        errors.append(error - truth.theta)
        stds.append(std)
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
        "seconds": (time.perf_counter() - started) / fits,
    }


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    linear = asked.family != "logistic"
    kinds = {"linear": Truth, "huber": RobustTruth, "logistic": LabelTruth}
    names = asked.sets.split(",") if asked.sets else NAMES if linear else CLASSIFIED
    for name in names:
        try:
            make = load if linear else load_labelled
            data = make(name, asked.data_dir, asked.most_rows)
        except FileNotFoundError as error:
            print(f"{name}: skipped, {error}", file=sys.stderr)
            continue
        truth = kinds[asked.family](data)
        for epsilon in map(float, asked.epsilons.split(",")):
            yield cell(data, truth, epsilon, asked.fits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=400)
    parser.add_argument("--family", choices=("linear", "logistic", "huber"), default="linear")
    parser.add_argument("--sets", default="")
    parser.add_argument("--epsilons", default="0.3,1,3,10")
    parser.add_argument("--most-rows", type=int, default=1 << 17)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for row in cells(asked):
        rows.append(row)
        values = (f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values())
        print(" ".join(f"{k}={v}" for k, v in zip(row, values, strict=True)), flush=True)
    if asked.out is not None:
        pd.DataFrame(rows).to_csv(asked.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
