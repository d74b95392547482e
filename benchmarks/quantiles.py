"""Intervals of quantile regressions against the truth: coverage, and how well fits predict.

    python benchmarks/quantiles.py --sets kin40k,bike,elevators,cps1988 --uneven cps1988 \
        --fits 40 --data-dir DATA

Rows are those of the sets, without collinear columns. Targets are those of the least-squares fit
with fresh errors, drawn from its residuals; so the true quantiles are known. In sets named by
``--uneven`` the spread of the errors grows with the first column. Bounds are those of the rows and
of all targets that can be drawn. Constants were chosen on protein and california. Lines go to the
file of ``--out``, too; those that it has are skipped.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fastmix import PrivateQuantileRegressor

TARGETS = {"california": "median_house_value", "diamonds": "price", "cps1988": "wage"}
#: The least singular value of standardised columns, in units of the largest possible.
COLLINEAR = 0.05


def load(name: str, folder: Path, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features without collinear columns, and the target."""
    frame = pd.read_parquet(folder / f"{name}.parquet").dropna()
    frame = frame.sample(frac=1.0, random_state=0).iloc[:rows]
    y = frame.pop(TARGETS.get(name, frame.columns[-1])).to_numpy(float)
    X = pd.get_dummies(frame, dtype=float, drop_first=True).to_numpy(float)
    X = X[:, X.std(axis=0) > 0.0]
    Z, kept = (X - X.mean(axis=0)) / X.std(axis=0), []
    for j in range(X.shape[1]):
        if np.linalg.norm(Z[:, [*kept, j]], -2) > COLLINEAR * np.sqrt(len(X)):
            kept.append(j)
    return X[:, kept], y


class Truth:
    """Targets with fresh errors around a known line, whose spread may grow with a column."""

    def __init__(self, X: np.ndarray, y: np.ndarray, *, uneven: bool) -> None:
        self.A = np.column_stack([X, np.ones(len(y))])
        self.theta = np.linalg.lstsq(self.A, y, rcond=None)[0]
        self.fitted = self.A @ self.theta
        self.errors = y - self.fitted
        first = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
        growth = min(0.35, 0.75 / abs(first.min())) if uneven else 0.0
        self.scale = 1.0 + growth * first
        self.growing = np.linalg.lstsq(self.A, self.scale, rcond=None)[0]
        low, high = self.errors.min(), self.errors.max()
        ends = (self.fitted + self.scale * low).min(), (self.fitted + self.scale * high).max()
        self.bounds: dict[str, Any] = {"bounds_X": (X.min(axis=0), X.max(axis=0))}
        self.bounds["bounds_y"] = float(ends[0]), float(ends[1])

    def draw(self, seed: int) -> np.ndarray:
        """Return fresh targets."""
        errors = np.random.default_rng(seed).choice(self.errors, len(self.errors))
        return self.fitted + self.scale * errors

    def quantile(self, q: float) -> np.ndarray:
        """Return the true coefficients of a quantile, the intercept last."""
        return self.theta + np.quantile(self.errors, q) * self.growing


def pinball(residuals: np.ndarray, q: float) -> float:
    """Return the mean pinball loss."""
    return float(np.mean(np.maximum(q * residuals, (q - 1.0) * residuals)))


def cell(truth: Truth, q: float, epsilon: float, fits: int, *, inference: bool) -> dict[str, float]:
    """Return coverage, share identified, share below and excess loss on fresh targets."""
    X, hits, known, below, losses = truth.A[:, :-1], [], [], [], []
    for k in range(fits):
        given = {"quantile": q, "epsilon": epsilon, "inference": inference, "random_state": k}
        model = PrivateQuantileRegressor(**given, **truth.bounds).fit(X, truth.draw(k))
        fresh, at = truth.draw(10**6 + k), truth.quantile(q)
        residuals = fresh - model.predict(X)
        below.append(float(np.mean(residuals <= 0.0)))
        losses.append(pinball(residuals, q) / pinball(fresh - truth.A @ at, q) - 1.0)
        if inference:
            std = np.append(model.coef_std_, model.intercept_std_)
            finite = np.isfinite(std)
            wrong = np.append(model.coef_, model.intercept_) - at
            known.append(finite.mean())
            hits += [*(np.abs(wrong[finite]) < 1.96 * std[finite])]
    found = {"below": np.mean(below), "excess": np.mean(losses)}
    if inference:
        found |= {"identified": np.mean(known), "covered": np.mean(hits) if hits else np.nan}
    return {name: float(value) for name, value in found.items()}


def main() -> None:
    """Print and store one line per set, epsilon and quantile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="kin40k,bike,elevators,cps1988")
    parser.add_argument("--uneven", default="cps1988")
    parser.add_argument("--epsilons", default="1,3")
    parser.add_argument("--quantiles", default="0.1,0.5,0.9")
    parser.add_argument("--fits", type=int, default=40)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--no-intervals", action="store_true")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    done: set[Any] = set()
    if asked.out is not None and asked.out.exists():
        keys = pd.read_csv(asked.out)[["set", "epsilon", "quantile"]]
        done = set(keys.itertuples(index=False, name=None))
    for name in asked.sets.split(","):
        X, y = load(name, asked.data_dir, asked.rows)
        truth = Truth(X, y, uneven=name in asked.uneven.split(","))
        for epsilon in map(float, asked.epsilons.split(",")):
            for q in map(float, asked.quantiles.split(",")):
                if (name, epsilon, q) in done:
                    continue
                line = {"set": name, "rows": len(X), "columns": X.shape[1], "epsilon": epsilon}
                line |= {"quantile": q, "fits": asked.fits}
                line |= cell(truth, q, epsilon, asked.fits, inference=not asked.no_intervals)
                print(*(f"{key}={value}" for key, value in line.items()), flush=True)
                if asked.out is not None:
                    frame = pd.DataFrame([line])
                    frame.to_csv(asked.out, mode="a", header=not asked.out.exists(), index=False)


if __name__ == "__main__":
    main()
