"""Histograms of the scores of an audit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def plot_histograms(results: Sequence[Any], path: str | Path) -> None:
    """Draw the scores with and without the record, one panel per audit."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "fastmix[plot]".') from None

    columns = min(3, len(results))
    rows = math.ceil(len(results) / columns)
    figure = Figure(figsize=(4.6 * columns, 3.1 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for axis, result in zip(axes, results, strict=False):
        with_, without, edges = result.histogram()
        for counts, label, colour in (
            (without, "record absent", "tab:blue"),
            (with_, "record present", "tab:orange"),
        ):
            axis.stairs(
                counts / len(result.present),
                edges,
                fill=True,
                alpha=0.45,
                color=colour,
                label=label,
            )
        axis.axvline(result.event.threshold, color="black", linewidth=1.0, linestyle="--")
        axis.set_yscale("log")
        axis.set_title(f"{result.name}\n{result.lower:.2f} of {result.epsilon:.2f}", fontsize=10)
        axis.tick_params(labelsize=8)
    for axis in axes[len(results) :]:
        axis.set_axis_off()
    axes[0].legend(fontsize=8, loc="lower center")
    figure.supxlabel("score of a release", fontsize=10)
    figure.supylabel("share of releases", fontsize=10)
    figure.savefig(path, dpi=80)
