"""The page on performance, from the measurements of `reproduction.bench`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fastmix.kernels import kernels_used
from fastmix.planning import CostModel, Problem
from reproduction.bench import BASELINE, DEFAULT, KINDS, MODELLED, UNPRIVATE, WITHOUT, Row
from reproduction.cost import Measurement, fit_cost_model
from reproduction.machine import machine
from reproduction.style import COLOURS, label_lines

__all__ = ["plot_sweep", "write_page"]


def _measured_model(rows: list[Row]) -> CostModel:
    """Fit the cost model to the measured fits of modelled methods."""
    return fit_cost_model(
        Measurement(MODELLED[row.method], Problem(row.n, row.d, row.k2), row.seconds)
        for row in rows
        if row.method in MODELLED
    )


def write_page(rows: list[Row], path: Path) -> None:
    """Write the page on performance, in Markdown."""
    suite = [row for row in rows if row.kind == "suite"]
    sizes = list(dict.fromkeys((row.n, row.d, row.k2) for row in suite))
    times = {(row.n, row.d, row.k2, row.method): row.seconds for row in suite}
    lines = ["# Performance", "", _claim(sizes, times), "", _setting(), ""]
    lines += [
        "## By size",
        "",
        "Seconds of a fit. T = 4 steps for the paper's methods, whose fast sketch has k2 rows.",
        "",
        "| method | " + " | ".join(f"{n:,} x {d}" for n, d, _ in sizes) + " |",
        "|---|" + "---:|" * len(sizes),
        "| k2 | " + " | ".join(f"{k2:,}" for _, _, k2 in sizes) + " |",
    ]
    for method in dict.fromkeys(row.method for row in suite):
        cells = [f"{times[(*size, method)]:.3g}" for size in sizes]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    lines += ["", *_everyday_lines(rows), "", *_growth(rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _claim(sizes: list[tuple[int, int, int]], times: dict[Any, float]) -> str:
    """Return the sentence at the top of the page."""

    def over(method: str, other: str) -> str:
        found = [times[(*size, method)] / times[(*size, other)] for size in sizes]
        ends = min(found), max(found)
        return " to ".join(f"{x:.0f}" if x >= 10.0 else f"{x:.1f}" for x in ends)

    return (
        f"**The default fit, with intervals, takes {over(DEFAULT, UNPRIVATE)} times as long as "
        f"least squares by scikit-learn, and {over(DEFAULT, WITHOUT)} times as long as without "
        f"intervals. The paper's IHM as written takes {over(BASELINE, DEFAULT)} times as long.** "
        "With IHM drawn from [one Gram matrix](proofs/exact_sampling.md), which has the same "
        "distribution, the paper's FastIHM is the slower one below some hundred columns: it takes "
        f"{over('FastIHM, paper variant', 'IHM, paper variant')} times as long at the sizes below. "
        "[From where on sketches win](sketches.md)."
    )


def _setting() -> str:
    """Return where and how the times were measured."""
    facts, used = machine(), kernels_used()
    built = f"{used['instruction_set']} kernels by {used['compiler']}" if used["compiled"] else ""
    return (
        "`python -m reproduction bench` writes this page: default settings, epsilon 1, rows on the "
        "sphere, the best of several fits in turn in one process, scikit-learn apart from them. "
        "The first fit of a process takes about a second more. "
        f"Measured at {facts['commit']} on {date.today().isoformat()}: {facts['processor']}, "
        f"{facts['cores']} cores, {built or 'NumPy kernels'}, Python {facts['python']}."
    )


def _everyday_lines(rows: list[Row]) -> list[str]:
    """Return the table of what people fit."""
    kinds = [kind for kind in dict.fromkeys(row.kind for row in rows) if kind not in KINDS]
    lines = [
        "## What people fit",
        "",
        "| fit | rows x columns | with intervals | without | scikit-learn |",
        "|---|---|---:|---:|---:|",
    ]
    for kind in kinds:
        own = {row.method: row for row in rows if row.kind == kind}
        cells = [f"{own[method].seconds:.3g}" for method in (DEFAULT, WITHOUT, UNPRIVATE)]
        size = f"{own[DEFAULT].n:,} x {own[DEFAULT].d}"
        lines.append(f"| {kind} | {size} | " + " | ".join(cells) + " |")
    return lines


def _growth(rows: list[Row]) -> list[str]:
    """Return how time grows with rows and columns, and the cost model."""
    model = _measured_model(rows)
    ratios = np.array(
        [
            model.predict(MODELLED[r.method], Problem(r.n, r.d, r.k2)) / r.seconds
            for r in rows
            if r.method in MODELLED
        ]
    )
    return [
        "## How time grows",
        "",
        "![Seconds against rows, and against columns, one line per method](performance.png)",
        "",
        "A cost model with six coefficients (`fastmix.planning.CostModel`) fits these times: "
        f"predicted over measured seconds have the median {np.median(ratios):.2f}, "
        f"from {ratios.min():.2f} to {ratios.max():.2f} over {len(ratios)} fits.",
    ]


#: Methods of the figure, as users call them, and their colours.
_DRAWN = {
    DEFAULT: "default",
    "AdaSSP": "AdaSSP",
    "IHM, paper variant": "IHM, paper",
    "FastIHM, paper variant": "FastIHM, paper",
    "ObjectivePerturbation, Gram": "ObjectivePerturbation",
}


def plot_sweep(rows: list[Row], path: Path) -> None:
    """Draw seconds against rows, and against columns, of the methods with their defaults."""
    sweep = [row for row in rows if row.kind == "sweep"]
    panels: list[tuple[str, str, str, Callable[[Row], bool]]] = [
        ("Time grows in proportion to the rows", "n", "rows (8 columns)", lambda r: r.d == 8),
        (
            "With many columns the default takes the longest",
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
        axis.xaxis.set_major_formatter(lambda value, _: _short(value))
        axis.tick_params(axis="x", labelsize=8)
        axis.grid(alpha=0.3)
    for axis in axes:
        label_lines(axis)
    figure.savefig(path, dpi=120)


def _short(value: float) -> str:
    """Return a number of rows or columns in few digits."""
    if value >= 1e6:
        return f"{value / 1e6:.1f}M"
    return f"{value / 1e3:.0f}k" if value >= 1e4 else f"{value:.0f}"
