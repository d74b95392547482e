"""The frame of every figure: logarithmic axes, a legend below, and where the numbers come from."""

from __future__ import annotations

import io
import math
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

__all__ = ["INK", "SETTINGS", "panel", "round_ticks", "run_ticks", "svg"]

#: Stands for the colour of the text, which the page chooses.
INK = "#010203"
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "axes.grid": True,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.fontsize": 9,
}


def panel(title: str, ylabel: str, xlabel: str = "ε", origin: str = "") -> tuple[Any, Any]:
    """Return a figure with logarithmic axes, and below its title where its numbers come from."""
    figure = Figure(figsize=(4.8, 4.9), layout="constrained")
    axis = figure.add_subplot()
    axis.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
    axis.set_title(origin, fontsize=7)
    figure.suptitle(title, fontsize=11)
    return figure, axis


def svg(figure: Any, name: str) -> str:
    """Return a figure with its legend below, as text."""
    axis = figure.axes[0]
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    out = io.StringIO()
    # A salt of its own keeps identifiers, and so the file, the same from run to run.
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return out.getvalue()


def run_ticks(axis: Any, values: list[float]) -> None:
    """Mark the values of epsilon, or other sizes, that were run, and no others."""
    axis.set_xticks(values, [f"{value:g}" for value in values])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.tick_params(axis="x", labelsize=8.5, labelrotation=45 if len(values) > 9 else 0)


def round_ticks(axis: Any, low: float, high: float) -> None:
    """Mark 1, 2 and 5 times powers of ten on both axes, which have the same unit."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [m * 10.0**power for power in powers for m in (1, 2, 5)]
    at = [value for value in values if low <= value <= high]
    run_ticks(axis, at)
    axis.set_yticks(at, [f"{value:g}" for value in at])
    axis.yaxis.set_minor_locator(NullLocator())
