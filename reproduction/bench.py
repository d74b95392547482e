"""The benchmark: methods side by side in one process, as ratios."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.linear_model import LinearRegression

from fastmix import (
    IHM,
    IHS,
    AdaSSP,
    FastIHM,
    ObjectivePerturbation,
    PrivateLinearRegression,
)
from fastmix.datasets import make_sphere
from fastmix.errors import LowAccuracyWarning
from fastmix.planning import CostModel, Problem
from reproduction.cost import Measurement, crossover, fit_cost_model
from reproduction.machine import machine
from reproduction.style import COLOURS, label_lines

__all__ = ["Row", "plot_sweep", "run_bench", "write_csv", "write_page"]

BASELINE = "IHM, literal"

#: n, d, k2: the sizes of the paper's experiments with its largest k2, and two wide ones.
CASES = [
    (2**17, 90, 200 * 90),
    (2**19, 32, 800 * 32),
    (2**22, 4, 1200 * 36),
    (2**16, 1024, 8192),
    (2**17, 512, 8192),
]
QUICK_CASES = [(2**13, 32, 2**10), (2**12, 128, 2**11)]
SWEEP = [
    *((2**e, 8, 2**12) for e in range(16, 23)),
    *((2**e, 32, 2**12) for e in range(14, 20)),
    *((2**16, d, 2**13) for d in (16, 64, 128, 256, 512)),
    *((2**16, 128, 2**e) for e in range(10, 16)),
]
QUICK_SWEEP = [(2**e, 16, 2**8) for e in range(10, 15)]

#: Names of the cost model's methods.
MODELLED = {
    "AdaSSP": "adassp",
    "IHM, one Gram matrix": "ihm",
    "FastIHM, paper variant": "fast_ihm_paper",
    "FastIHM, tuned, k2 as above": "fast_ihm",
    "ObjectivePerturbation, Gram": "objective_gram",
    "ObjectivePerturbation, sketch": "objective_sketch",
}


@dataclass(frozen=True)
class Row:
    """Seconds of one method on one problem; ``kind`` tells the suite from the sweep."""

    kind: str
    n: int
    d: int
    k2: int
    method: str
    seconds: float


def _methods(n: int, d: int, k2: int) -> dict[str, Any]:
    """Return all methods in the paper's setting: rows and targets bounded by 1, T = 4."""
    common: dict[str, Any] = {
        "epsilon": 1.0,
        "data_norm": 1.0,
        "bounds_y": (-1.0, 1.0),
        "fit_intercept": False,
    }
    fast = {**common, "sketch_size": k2}
    methods: dict[str, Any] = {
        BASELINE: IHM(**common, variant="paper", literal=True),
        "PrivateLinearRegression (default)": PrivateLinearRegression(**common),
        "ObjectivePerturbation, Gram": ObjectivePerturbation(**common, solver="gram"),
        "ObjectivePerturbation, sketch": ObjectivePerturbation(**common, solver="sketch"),
        "FastIHM, literal": FastIHM(**fast, variant="paper", literal=True),
        "FastIHS (not private)": IHS(**common),
        "IHM, one Gram matrix": IHM(**common, variant="paper"),
        "FastIHM, paper variant": FastIHM(**fast, variant="paper"),
        "IHM, tuned": IHM(**common),
        "FastIHM, tuned, k2 as above": FastIHM(**fast),
        "FastIHM, tuned, default k2": FastIHM(**common),
        "AdaSSP": AdaSSP(**common),
        "scikit-learn (not private)": LinearRegression(fit_intercept=False),
    }
    try:
        from diffprivlib.models import LinearRegression as Diffprivlib
    except Exception:  # it does not import with current scikit-learn
        return methods
    bounds = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}
    methods["diffprivlib"] = Diffprivlib(epsilon=1.0, fit_intercept=False, **bounds)
    return methods


def _best(actions: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
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
    """Measure the suite and the sweep.

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
        methods = _methods(n, d, k2)
        times = _best({k: partial(m.fit, X, y) for k, m in methods.items()}, seconds)
        say(f"\nn = {n}, d = {d}, k2 = {k2}")
        for name, took in times.items():
            ratio = times[BASELINE] / took
            say(f"  {name:<34} {took:>10.4f} s   {ratio:>8.1f} x literal IHM")
            yield Row("suite", n, d, k2, name, took)
    sweep = QUICK_SWEEP if quick else SWEEP
    for i, (n, d, k2) in enumerate(sweep, start=1):
        say(f"sweep {i} of {len(sweep)}: n = {n}, d = {d}, k2 = {k2}")
        X, y = make_sphere(n, d, random_state=0)
        methods = {k: m for k, m in _methods(n, d, k2).items() if k in MODELLED}
        times = _best({k: partial(m.fit, X, y) for k, m in methods.items()}, seconds / 3.0)
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


def _measured_model(rows: list[Row]) -> CostModel:
    """Fit the cost model to the measured fits of modelled methods."""
    return fit_cost_model(
        Measurement(MODELLED[row.method], Problem(row.n, row.d, row.k2), row.seconds)
        for row in rows
        if row.method in MODELLED
    )


def write_page(rows: list[Row], path: Path) -> None:
    """Write the page on performance, in Markdown."""
    model = _measured_model(rows)
    facts = machine()
    lines = [
        "# Performance",
        "",
        "How long a fit takes, by method and size. `python -m reproduction bench` writes this "
        "page. It runs all methods in one process, in turn, and reports the best of several fits "
        "at epsilon = 1, with T = 4 steps (16 in the tuned variants); the heading of each table "
        "has the rows of the fast sketch (k2). Fits of one size share their noise levels: the "
        "first fit of a size takes a quarter of a second more. The default is "
        "PrivateLinearRegression, which reads the rows several times more often than "
        "ObjectivePerturbation.",
        "",
        f"Machine: {facts['processor']}, {facts['cores']} cores, {facts['kernels']} kernels, "
        f"Python {facts['python']}.",
    ]
    suite = [row for row in rows if row.kind == "suite"]
    for n, d, k2 in dict.fromkeys((row.n, row.d, row.k2) for row in suite):
        times = {r.method: r.seconds for r in suite if (r.n, r.d, r.k2) == (n, d, k2)}
        lines += [
            "",
            f"## n = {n:,}, d = {d}, k2 = {k2:,}",
            "",
            "| method | seconds | times faster than literal IHM | predicted seconds |",
            "|---|---:|---:|---:|",
        ]
        for name, took in times.items():
            guess = (
                f"{model.predict(MODELLED[name], Problem(n, d, k2)):.3g}"
                if name in MODELLED
                else ""
            )
            lines.append(f"| {name} | {took:.3g} | {times[BASELINE] / took:.1f} | {guess} |")
    ratios = np.array(
        [
            model.predict(MODELLED[r.method], Problem(r.n, r.d, r.k2)) / r.seconds
            for r in rows
            if r.method in MODELLED
        ]
    )
    least = crossover(model, 2**16, k2_per_column=8.0)
    lines += [
        "",
        "## How time grows",
        "",
        "![Seconds against rows, and against columns, one line per method](performance.png)",
        "",
        "We fitted a cost model with six coefficients to these times "
        f"(`fastmix.planning.CostModel`): {model}.",
        "",
        f"Predicted over measured seconds: median {np.median(ratios):.2f}, "
        f"from {ratios.min():.2f} to {ratios.max():.2f} over {len(ratios)} fits.",
        "",
        (
            f"By the model, on 65,536 rows and from d = {least} on, FastIHM with one sketch "
            "(k2 = 8 d) is faster than IHM with one Gram matrix."
            if least
            else "By the model, IHM with one Gram matrix is faster on 65,536 rows for every d."
        ),
        "",
    ]
    path.write_text("\n".join(lines))


#: Methods of the figure, as users call them, and their colours.
_DRAWN = {
    "AdaSSP": "AdaSSP",
    "IHM, one Gram matrix": "IHM",
    "FastIHM, tuned, k2 as above": "FastIHM",
    "ObjectivePerturbation, Gram": "ObjectivePerturbation",
}


def plot_sweep(rows: list[Row], path: Path) -> None:
    """Draw seconds against rows, and against columns, of the methods with their defaults."""
    sweep = [row for row in rows if row.kind == "sweep"]
    panels: list[tuple[str, str, str, Callable[[Row], bool]]] = [
        ("Time grows in proportion to the rows", "n", "rows (8 columns)", lambda r: r.d == 8),
        (
            "FastIHM gains on the others with the columns",
            "d",
            "columns (65,536 rows)",
            lambda r: r.n == 2**16 and r.k2 == 2**13,
        ),
    ]
    figure = Figure(figsize=(6.2, 7.4), layout="constrained")
    axes = figure.subplots(2, 1)
    for axis, (title, name, label, chosen) in zip(axes, panels, strict=True):
        for method, known in _DRAWN.items():
            points: dict[int, float] = {}
            for r in sorted(sweep, key=lambda r: (getattr(r, name), -r.seconds)):
                if r.method == method and chosen(r):
                    points[getattr(r, name)] = r.seconds
            if points:
                axis.plot(
                    list(points), list(points.values()), marker="o", ms=4,
                    label=known, color=COLOURS[known],
                )  # fmt: skip
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set(title=title, ylabel="seconds", xlabel=label)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.tick_params(axis="x", labelsize=8)
        axis.grid(alpha=0.3)
    for axis in axes:
        label_lines(axis)
    figure.savefig(path, dpi=120)
