"""What the page on performance shows, from the measurements of `reproduction.bench`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fastmix.planning import CostModel, Problem
from reproduction.bench import BASELINE, DEFAULT, KINDS, MODELLED, UNPRIVATE, WITHOUT, Row
from reproduction.cost import Measurement, fit_cost_model
from reproduction.style import COLOURS, label_lines

__all__ = ["figures", "plot_sweep", "view"]


def _measured_model(rows: list[Row]) -> CostModel:
    """Fit the cost model to the measured fits of modelled methods."""
    return fit_cost_model(
        Measurement(MODELLED[row.method], Problem(row.n, row.d, row.k2), row.seconds)
        for row in rows
        if row.method in MODELLED
    )


def view(frame: Any) -> dict[str, Any]:
    """Return the claim, the tables and the cost model of the page on performance."""
    rows = [Row(**line) for line in frame.to_dict("records")]
    suite = [row for row in rows if row.kind == "suite"]
    sizes = list(dict.fromkeys((row.n, row.d, row.k2) for row in suite))
    times = {(row.n, row.d, row.k2, row.method): row.seconds for row in suite}

    def over(method: str, other: str) -> str:
        found = [times[(*size, method)] / times[(*size, other)] for size in sizes]
        ends = min(found), max(found)
        return " to ".join(f"{x:.0f}" if x >= 10.0 else f"{x:.1f}" for x in ends)

    return {
        "over_plain": over(DEFAULT, UNPRIVATE),
        "over_without": over(DEFAULT, WITHOUT),
        "literal_over": over(BASELINE, DEFAULT),
        "fast_over": over("FastIHM, paper variant", "IHM, paper variant"),
        "sizes": [{"n": n, "d": d, "k2": k2} for n, d, k2 in sizes],
        "methods": {
            method: [times[(*size, method)] for size in sizes]
            for method in dict.fromkeys(row.method for row in suite)
        },
        "everyday": _everyday(rows),
        "model": _ratios(rows),
    }


def _everyday(rows: list[Row]) -> list[dict[str, Any]]:
    """Return the lines of what people fit."""
    made = []
    for kind in dict.fromkeys(row.kind for row in rows if row.kind not in KINDS):
        own = {row.method: row for row in rows if row.kind == kind}
        seconds = [own[method].seconds for method in (DEFAULT, WITHOUT, UNPRIVATE)]
        made.append({"fit": kind, "n": own[DEFAULT].n, "d": own[DEFAULT].d, "seconds": seconds})
    return made


def _ratios(rows: list[Row]) -> Any:
    """Return the seconds that the cost model predicts over the measured ones."""
    model = _measured_model(rows)
    return np.array(
        [
            model.predict(MODELLED[r.method], Problem(r.n, r.d, r.k2)) / r.seconds
            for r in rows
            if r.method in MODELLED
        ]
    )


def figures(frame: Any, folder: Path) -> None:
    """Draw the figure of the page."""
    plot_sweep([Row(**line) for line in frame.to_dict("records")], folder / "performance.png")


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
