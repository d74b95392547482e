"""The benchmark: methods side by side in one process, as ratios."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fastmix import (
    IHM,
    AdaSSP,
    FastIHM,
    ObjectivePerturbation,
    PrivateLinearRegression,
    PrivateLogisticRegression,
)
from fastmix.datasets import make_sphere
from fastmix.errors import LowAccuracyWarning

__all__ = ["Row", "run_bench", "write_csv"]

#: Fits by the name of their method.
Fits = Mapping[str, Callable[[], object]]

DEFAULT, BASELINE = "PrivateLinearRegression", "IHM, literal"
WITHOUT, UNPRIVATE = "the same without intervals", "scikit-learn (not private)"

#: n, d, k2: the sizes of the paper's experiments with its largest k2, and two wide ones.
CASES = [
    (2**17, 90, 200 * 90),
    (2**19, 32, 800 * 32),
    (2**22, 4, 1200 * 36),
    (2**17, 512, 8192),
    (2**16, 1024, 8192),
]
QUICK_CASES = [(2**13, 32, 2**10), (2**12, 128, 2**11)]
SWEEP = [
    *((2**e, 8, 2**12) for e in range(16, 24)),
    *((2**e, 32, 2**12) for e in range(14, 20)),
    *((2**16, d, 2**13) for d in (16, 64, 128, 256, 512)),
    *((2**16, 128, 2**e) for e in range(10, 16)),
]
QUICK_SWEEP = [(2**e, 16, 2**8) for e in range(10, 15)]

#: Names of the cost model's methods.
MODELLED = {
    "AdaSSP": "adassp",
    "IHM, paper variant": "ihm",
    "FastIHM, paper variant": "fast_ihm_paper",
    "FastIHM, Kerdock sketch": "fast_ihm",
    "ObjectivePerturbation, Gram": "objective_gram",
    "ObjectivePerturbation, sketch": "objective_sketch",
}
#: Kinds of rows that are not a table of what people fit.
KINDS = ("suite", "sweep")
_COMMON: dict[str, Any] = {
    "epsilon": 1.0,
    "data_norm": 1.0,
    "bounds_y": (-1.0, 1.0),
    "fit_intercept": False,
}


@dataclass(frozen=True)
class Row:
    """Seconds of one method on one problem; ``kind`` is that of the table it belongs to."""

    kind: str
    n: int
    d: int
    k2: int
    method: str
    seconds: float


def _shown(k2: int) -> dict[str, Any]:
    """Return the methods with default settings, and the paper's with T = 4."""
    return {
        DEFAULT: PrivateLinearRegression(**_COMMON),
        WITHOUT: PrivateLinearRegression(**_COMMON, inference=False),
        "ObjectivePerturbation": ObjectivePerturbation(**_COMMON),
        "IHM": IHM(**_COMMON),
        "FastIHM": FastIHM(**_COMMON),
        "AdaSSP": AdaSSP(**_COMMON),
        "IHM, paper variant": IHM(**_COMMON, variant="paper"),
        "FastIHM, paper variant": FastIHM(**_COMMON, sketch_size=k2, variant="paper"),
        BASELINE: IHM(**_COMMON, variant="paper", literal=True),
    }


def _modelled(k2: int) -> dict[str, Any]:
    """Return what the cost model knows, and the default."""
    fast = {**_COMMON, "sketch_size": k2}
    return {
        DEFAULT: PrivateLinearRegression(**_COMMON),
        "AdaSSP": AdaSSP(**_COMMON),
        "IHM, paper variant": IHM(**_COMMON, variant="paper"),
        "FastIHM, paper variant": FastIHM(**fast, variant="paper"),
        "FastIHM, Kerdock sketch": FastIHM(**fast, sketch="kerdock"),
        "ObjectivePerturbation, Gram": ObjectivePerturbation(**_COMMON, solver="gram"),
        "ObjectivePerturbation, sketch": ObjectivePerturbation(**_COMMON, solver="sketch"),
    }


def _fits(model: Any, fit: Callable[[Any], object], plain: Callable[[], object]) -> Fits:
    """Return a fit with intervals, one without, and one that is not private."""
    without = clone(model).set_params(inference=False)
    return {DEFAULT: partial(fit, model), WITHOUT: partial(fit, without), UNPRIVATE: plain}


def _everyday(quick: bool) -> Iterator[tuple[str, Fits, int, int]]:
    """Yield what people fit: a name, fits by method, and the numbers of rows and columns."""
    rng = np.random.default_rng(0)
    n = 2_000 if quick else 200_000
    table = pd.DataFrame(rng.uniform(0.0, 1.0, (n, 5)), columns=list("abcde"))
    levels = {f"c{m}": [str(k) for k in range(m)] for m in (5, 12, 20, 26)}
    for name, known in levels.items():
        table[name] = rng.choice(known, n)
    table["y"] = table["a"] + 0.1 * table["c5"].astype(int) + rng.normal(0.0, 0.3, n)
    features = {**dict.fromkeys("abcde", (0, 1)), **levels}
    bounds = {"target": {"y": (-2, 4)}, "features": features}
    encoder = OneHotEncoder(categories=list(levels.values()), drop="first")
    encoded = ColumnTransformer([("levels", encoder, list(levels))], remainder="passthrough")
    plain = partial(
        make_pipeline(encoded, LinearRegression()).fit, table.drop(columns="y"), table["y"]
    )
    model: Any = PrivateLinearRegression(epsilon=1.0, bounds=bounds)
    fits = _fits(model, lambda own: own.fit(table), plain)
    yield "a table with 5 numbers and 4 categories of 63 levels", fits, n, 9

    X, y = make_sphere(n // 2, 20, random_state=0)
    whose: dict[str, Any] = {"groups": np.repeat(np.arange(n // 10), 5), "max_rows_per_group": 5}
    plain = partial(LinearRegression(fit_intercept=False).fit, X, y)
    model = PrivateLinearRegression(**_COMMON)
    fits = _fits(model, lambda own: own.fit(X, y, **whose), plain)
    yield "persons with 5 rows each", fits, n // 2, 20

    X, y = make_sphere(2**11 if quick else 2**17, 90, random_state=0)
    labels = (y > np.median(y)).astype(int)
    plain = partial(LogisticRegression(fit_intercept=False).fit, X, labels)
    model = PrivateLogisticRegression(
        epsilon=1.0, data_norm=1.0, fit_intercept=False, classes=[0, 1]
    )
    fits = _fits(model, lambda own: own.fit(X, labels), plain)
    yield "two classes (PrivateLogisticRegression)", fits, len(X), 90

    X, y = make_sphere(1000, 10, random_state=0)
    plain = partial(LinearRegression(fit_intercept=False).fit, X, y)
    fits = _fits(PrivateLinearRegression(**_COMMON), lambda own: own.fit(X, y), plain)
    yield "a small table", fits, 1000, 10


def _best(actions: Fits, seconds: float) -> dict[str, float]:
    """Time actions in turn, again and again, each for up to some seconds; the least time counts."""
    least = dict.fromkeys(actions, float("inf"))
    spent = dict.fromkeys(actions, 0.0)
    for turn in range(25):
        for name, action in actions.items():
            # Every method is warmed up once, unless one run is already too long.
            if spent[name] > seconds:
                continue
            start = time.perf_counter()
            with warnings.catch_warnings():  # this is about time, not about accuracy
                warnings.simplefilter("ignore", LowAccuracyWarning)
                action()
            took = time.perf_counter() - start
            spent[name] += took
            if turn > 0 or took > seconds:
                least[name] = min(least[name], took)
    return least


def run_bench(
    *, quick: bool = False, seconds: float = 1.5, say: Callable[[str], None] = print
) -> Iterator[Row]:
    """Measure the suite, what people fit, and the sweep.

    Parameters
    ----------
    quick : bool, default False
        Small sizes only, to see that it runs.
    seconds : float, default 1.5
        Time for each method on each problem; a slower method runs once.
    say : callable
        Where progress and ratios go.

    Yields
    ------
    Row
        One row per method and problem.
    """
    for n, d, k2 in QUICK_CASES if quick else CASES:
        X, y = make_sphere(n, d, random_state=0)
        plain: Fits = {UNPRIVATE: partial(LinearRegression(fit_intercept=False).fit, X, y)}
        fits = {k: partial(m.fit, X, y) for k, m in _shown(k2).items()}
        # Apart: threads of its linear algebra go on for a while, and disturb what comes next.
        times = {**_best(fits, seconds), **_best(plain, seconds)}
        say(f"\nn = {n}, d = {d}, k2 = {k2}")
        for name, took in times.items():
            ratio = times[BASELINE] / took
            say(f"  {name:<34} {took:>10.4f} s   {ratio:>8.1f} x literal IHM")
            yield Row("suite", n, d, k2, name, took)
    for name, actions, n, d in _everyday(quick):
        private = {k: fit for k, fit in actions.items() if k != UNPRIVATE}
        plain = {UNPRIVATE: actions[UNPRIVATE]}
        for method, took in {**_best(private, seconds), **_best(plain, seconds)}.items():
            say(f"{name}, {method}: {took:.4f} s")
            yield Row(name, n, d, 0, method, took)
    sweep = QUICK_SWEEP if quick else SWEEP
    for i, (n, d, k2) in enumerate(sweep, start=1):
        say(f"sweep {i} of {len(sweep)}: n = {n}, d = {d}, k2 = {k2}")
        X, y = make_sphere(n, d, random_state=0)
        times = _best({k: partial(m.fit, X, y) for k, m in _modelled(k2).items()}, seconds / 3.0)
        for name, took in times.items():
            yield Row("sweep", n, d, k2, name, took)


def write_csv(rows: list[Row], path: Path) -> None:
    """Write measurements to a file of comma-separated values."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["kind", "n", "d", "k2", "method", "seconds"])
        writer.writerows(
            [row.kind, row.n, row.d, row.k2, row.method, f"{row.seconds:.6g}"] for row in rows
        )
