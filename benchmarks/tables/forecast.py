"""Compare rehearsals of tables with fits: their error, and how many effects have an interval.

    python benchmarks/tables/forecast.py --data-dir DATA --out docs/forecast_tables.csv

Errors are root mean squares by which predictions of test rows differ from those of least squares,
in units of half the width of the target's bounds; for logistic regressions they are excess
log-loss. Each cell has two fits; cells that the file has are skipped. A ``guess`` knows the
residuals' root mean square and R^2.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from reference import least_squares, maximum_likelihood
from sets import CHOSEN_ON, NAMES, Table, load
from sklearn.metrics import log_loss

import fastmix

ROWS, EPSILONS, FITS = (1_000, 5_000, 20_000, None), (0.3, 1.0, 3.0, 10.0), 2


def measured(train: Table, test: Table, plain: Any, model: Any) -> tuple[float, int | None]:
    """Return the error of fits, and how many effects have an interval."""
    frame, y, errors, known = test.frame.drop(columns=test.target), test.targets(), [], []
    for seed in range(FITS):
        model.set_params(random_state=seed).fit(train.frame)
        if hasattr(model, "classes_"):
            errors.append(log_loss(y, model.predict_proba(frame)[:, 1]) - log_loss(y, plain))
        else:
            errors.append(np.sqrt(np.mean((model.predict(frame) - plain) ** 2)))
        lines = [line for line in model.summary().lines if line.name != "intercept"]
        known.append(sum(line.identified for line in lines))
    return float(np.mean(errors)), float(np.mean(known)) if model.inference else None


def forecast(n: int, d: int, model: Any, half: float, **guess: float) -> Any:
    """Return the forecast of the same fit from public sizes."""
    labels = hasattr(model, "classes_")
    given = {"classes": (0, 1)} if labels else {"bounds_y": (-half, half)}
    sizes = [size + 1 for size in model.privacy_.data["categories"]]
    family, given["inference"] = "logistic" if labels else "linear", model.inference
    made = fastmix.plan(n, d, model.epsilon, family=family, categories=sizes, **guess, **given)
    return made.asked


#: Columns of the file, the first six of which name a cell.
COLUMNS = [
    *("family", "table", "chosen_on", "n", "epsilon", "intervals", "error", "forecast"),
    *("forecast_by_guess", "known", "known_forecast", "known_by_guess", "fits"),
]


def cells(name: str, table: Table, family: str, done: set[Any]) -> Any:
    """Yield one line per number of rows, epsilon, and with or without intervals."""
    named = family, name, int(name in CHOSEN_ON)
    seen = set()
    for rows in ROWS:
        parts = table.split(0, rows, 100_000)
        if parts is None or len(parts[0].frame) in seen:
            continue
        train, test = parts
        n, names = len(train.frame), train.columns()
        seen.add(n)
        X, y, linear = train.encoded(names), train.targets(), family == "linear"
        fit = least_squares(X, y, train.ends) if linear else maximum_likelihood(X, y)
        plain = fit.predict(test.encoded(names))
        half, guess = 1.0, {}
        if linear:
            half = (train.ends[1] - train.ends[0]) / 2.0
            rest, signal = np.mean((test.targets() - plain) ** 2), np.var(plain)
            guess = {"spread": float(np.sqrt(rest)), "r2": float(signal / (signal + rest))}
        for epsilon, inference in itertools.product(EPSILONS, (False, True)):
            key = *named, n, epsilon, int(inference)
            if key in done:
                continue
            kind = fastmix.PrivateLinearRegression if linear else fastmix.PrivateLogisticRegression
            model = kind(bounds=train.bounds, epsilon=epsilon, inference=inference)
            error, known = measured(train, test, plain, model)
            blind, told = (forecast(n, len(names), model, half, **g) for g in ({}, guess))
            numbers = error / half, blind.typical / half, told.typical / half
            counts = known, blind.known, told.known
            yield [*key, *(f"{each:.4g}" for each in numbers), *counts, FITS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(NAMES))
    parser.add_argument("--families", default="linear,logistic")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    done = set()
    if asked.out.exists():
        done = set(pd.read_csv(asked.out)[COLUMNS[:6]].itertuples(index=False, name=None))
    for family, name in itertools.product(asked.families.split(","), asked.tables.split(",")):
        for line in cells(name, load(name, asked.data_dir, family), family, done):
            frame, fresh = pd.DataFrame([line], columns=COLUMNS), not asked.out.exists()
            frame.to_csv(asked.out, mode="a", header=fresh, index=False)


if __name__ == "__main__":
    main()
