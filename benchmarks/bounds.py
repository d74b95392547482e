"""Test R^2 of fits with bounds found privately beside fits with the true ranges.

The budget is that of a fit: 0.1 of epsilon 1 for the bounds, 0.9 for the fit; delta is shared
alike.  The fit with true ranges has the whole budget and bounds from the data, which no private fit
may have.  Run ``python -m benchmarks.bounds DATA_DIR [chosen-on | held-out]``.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import r2_score

from benchmarks.accuracy.sets import FILES, table
from fastmix import PrivateBounds, PrivateLinearRegression


def adult(folder: Path):
    import pandas as pd

    frame = pd.read_parquet(folder / "adult.parquet").dropna()
    target = frame.columns[-1]
    if not pd.api.types.is_numeric_dtype(frame[target]):
        frame = frame.assign(**{target: (frame[target] == frame[target].max()).astype(float)})
    return table("adult", frame, target)


#: Sets that the rules of `PrivateBounds` were chosen on, and all others but the widest and largest.
CHOSEN_ON = ("california", "bike", "beijing_air", "adult")
HELD_OUT = (
    *("wine", "skillcraft", "pumadyn32nm", "pol", "elevators", "kin40k", "diamonds", "protein"),
    *("black_friday", "sgemm", "rossmann"),
)
PARTS = {"chosen-on": CHOSEN_ON, "held-out": HELD_OUT}


def main(folder: Path, part: str, seeds: int = 5, epsilon: float = 1.0) -> None:
    print(f"{part} sets, epsilon {epsilon:g}, mean of {seeds} splits")
    print(f"{'set':12} {'rows':>7} {'d':>3} {'true ranges':>12} {'found':>12} {'difference':>10}")
    for name in PARTS[part]:
        data = {**FILES, "adult": adult}[name](folder)
        scores = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(data.y))
            test, train = np.split(order, [len(order) // 10])
            X, y, delta = data.X[train], data.y[train], 1.0 / len(train) ** 2
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ranges = (X.min(axis=0), X.max(axis=0))
                exact = PrivateLinearRegression(
                    epsilon=epsilon,
                    delta=delta,
                    bounds_X=ranges,
                    bounds_y=(y.min(), y.max()),
                    random_state=seed,
                ).fit(X, y)
                found = PrivateBounds(
                    epsilon=0.1 * epsilon, delta=0.1 * delta, random_state=seed
                ).fit(X, y)
                private = PrivateLinearRegression(
                    epsilon=0.9 * epsilon,
                    delta=0.9 * delta,
                    bounds_X=found.bounds_X_,
                    bounds_y=found.bounds_y_,
                    random_state=seed,
                ).fit(X, y)
            # A model clips its records as the fit did.
            seen = [np.clip(data.X[test], *model.bounds_X_) for model in (exact, private)]
            scores.append(
                [
                    r2_score(data.y[test], model.predict(features))
                    for model, features in zip((exact, private), seen, strict=True)
                ]
            )
        true, own = np.mean(scores, axis=0)
        n, d = data.X.shape
        print(f"{name:12} {n:7,} {d:3} {true:12.4f} {own:12.4f} {own - true:+10.4f}", flush=True)


if __name__ == "__main__":
    for each in sys.argv[2:] or PARTS:
        main(Path(sys.argv[1]), each)
