"""Turn the trials into docs/accuracy.csv, the tables of docs/accuracy.md and its plots.

The step `accuracy` of `evidence` runs the benchmark and fills the page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from benchmarks.accuracy.sets import CHOSEN_ON, NAMES
from reproduction.style import COLOURS, label_lines

#: Methods in the plots of every set.
PLOTTED = ("default", "ObjectivePerturbation", "IHM", "AdaSSP", "boosted AdaSSP", "private mean")
#: Methods whose scores are drawn.
SCORED = ("default", "IHM", "AdaSSP")
#: The default must not lose against the best of these.
OTHERS = ("AdaSSP", "boosted AdaSSP", "IHM, paper", "private mean")
#: Risks below this share of the target's variance are taken to be equal.
FLOOR = 0.01
#: A cell where the default is worse than the mean by this share of the variance is listed.
WORSE_THAN_MEAN = 0.05
#: Methods that the top of the page names.
COMPARED = ("IHM", "ObjectivePerturbation")
KEYS = ["data", "method", "epsilon"]
ROWS_OF_CELLS = 12


def summary(path: Path) -> pd.DataFrame:
    """Return means and 95% intervals (normal, of the mean) of the trials of each cell."""
    groups = pd.read_csv(path).groupby(KEYS)
    parts = {}
    for value in ("excess_risk", "test_r2"):
        mean, error = groups[value].mean(), groups[value].sem()
        parts[value] = mean
        parts[f"{value}_low"], parts[f"{value}_high"] = mean - 1.96 * error, mean + 1.96 * error
    parts["seconds"] = groups["seconds"].median()
    for value in ("n", "d", "variance"):
        parts[value] = groups[value].first()
    parts["trials"] = groups.size()
    return pd.DataFrame(parts).reset_index()


class Cells:
    """Risks by set and epsilon, one column per method, and the variance of the target."""

    def __init__(self, cells: pd.DataFrame) -> None:
        self.all = cells
        private = cells[np.isfinite(cells["epsilon"])]
        self.risk = private.pivot_table(
            index=["data", "epsilon"], columns="method", values="excess_risk"
        )
        self.sets = cells.groupby("data")[["n", "d", "variance"]].first()
        names = self.risk.index.get_level_values("data")
        self.variance = pd.Series(self.sets["variance"].loc[names].to_numpy(), self.risk.index)
        self.chosen_on = pd.Series(names.isin(CHOSEN_ON), self.risk.index)

    def floored(self, method: str) -> pd.Series:
        return self.risk[method].clip(lower=FLOOR * self.variance)

    def ratios(self, method: str, other: str) -> pd.Series:
        return (self.risk[method] / self.risk[other]).dropna()

    def floored_ratios(self, method: str, other: str) -> pd.Series:
        return (self.floored(method) / self.floored(other)).dropna()

    def best_of(self, others: tuple[str, ...]) -> tuple[pd.Series, pd.Series]:
        """Return the least floored risk of some methods, and which one has it."""
        known = [method for method in others if method in self.risk]
        table = pd.DataFrame({method: self.floored(method) for method in known})
        table = table.dropna(how="all")
        return table.min(axis=1), table.idxmin(axis=1)


def mean_ratio(ratios: pd.Series) -> float:
    return float(np.exp(np.log(ratios).mean()))


def cell_name(index: Any) -> str:
    return f"{index[0]}, epsilon {index[1]:g}"


def grid(lines: list[list[str]], header: list[str]) -> str:
    """Return a table in Markdown."""
    rows = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join([*rows, *("| " + " | ".join(line) + " |" for line in lines)])


def by_method(table: pd.DataFrame, form: str) -> str:
    """Return a table in Markdown with one column per method; what was not measured is empty."""
    methods = [method for method in ("least squares", *COLOURS) if method in table]
    lines = []
    for index, row in table[methods].iterrows():
        keys = index if isinstance(index, tuple) else (index,)
        values = ["" if np.isnan(value) else format(value, form) for value in row]
        lines.append([*(f"{key:g}" if isinstance(key, float) else key for key in keys), *values])
    return grid(lines, [*table.index.names, *methods])


def ratio_table(cells: Cells) -> str:
    """Return geometric means of ratios, by where constants were chosen."""
    lines = []
    for other in ("IHM", "ObjectivePerturbation", "AdaSSP", "boosted AdaSSP", "IHM, paper"):
        if other not in cells.risk:
            continue
        raw, floored = cells.ratios("default", other), cells.floored_ratios("default", other)
        for chosen in (True, False):
            where = cells.chosen_on.loc[raw.index] == chosen
            if not where.any():
                continue
            lines.append(
                [
                    f"default / {other}",
                    "chosen on" if chosen else "**held out**",
                    str(int(where.sum())),
                    f"{mean_ratio(raw[where]):.2g}",
                    f"{mean_ratio(floored[where]):.2g}",
                    f"{raw[where].median():.2g}",
                    f"{int((raw[where] > 1.0).sum())}",
                    f"{raw[where].max():.2f} ({cell_name(raw[where].idxmax())})",
                    f"{floored[where].max():.2f} ({cell_name(floored[where].idxmax())})",
                ]
            )
    header = ["ratio", "sets", "cells", "geometric mean", "the same, floored", "median", "above 1"]
    return grid(lines, [*header, "worst cell", "worst cell, floored"])


def worst_cells(cells: Cells, other: str) -> str:
    """Return the cells with the largest ratios, raw and floored."""
    raw, floored = cells.ratios("default", other), cells.floored_ratios("default", other)
    order = raw[raw > 1.0].sort_values(ascending=False).index[:ROWS_OF_CELLS]
    more = floored[floored > 1.0].sort_values(ascending=False).index[:ROWS_OF_CELLS]
    lines = [
        [
            index[0],
            f"{index[1]:g}",
            "chosen on" if cells.chosen_on[index] else "held out",
            f"{raw[index]:.2f}",
            f"{floored[index]:.2f}",
            f"{100 * cells.risk['default'][index] / cells.variance[index]:.2g}%",
        ]
        for index in order.union(more, sort=False)
    ]
    header = ["set", "epsilon", "sets", "ratio", "floored", "default's risk / variance"]
    return grid(lines, header)


def against_others(cells: Cells) -> str:
    """Return how the default does against the best of other approaches, floored."""
    least, which = cells.best_of(OTHERS)
    ratio = (cells.floored("default") / least).dropna()
    above = ratio[ratio > 1.3].sort_values(ascending=False)
    worst = ratio.idxmax()
    words = (
        f"Cells with a ratio above 1.3: {len(above)} of {len(ratio)}. The worst is "
        f"{ratio.max():.2f} ({cell_name(worst)}, against {which[worst]}); the geometric mean is "
        f"{mean_ratio(ratio):.2f}."
    )
    rows = [
        [index[0], f"{index[1]:g}", which[index], f"{value:.2f}"] for index, value in above.items()
    ]
    header = ["set", "epsilon", "the best other", "ratio"]
    return f"{words}\n\n{grid(rows, header)}" if rows else words


def worse_than_mean(cells: Cells) -> str:
    """Return the cells where the default loses to the mean by more than a share of variance."""
    gap = ((cells.risk["default"] - cells.risk["private mean"]) / cells.variance).dropna()
    found = gap[gap > WORSE_THAN_MEAN].sort_values(ascending=False)
    share = f"{100 * WORSE_THAN_MEAN:g}% of the target's variance"
    if not len(found):
        worst = gap.idxmax()
        return (
            f"In no cell is the default worse than the private mean by more than {share}; the "
            f"largest difference is {100 * gap.max():.1f}% ({cell_name(worst)})."
        )
    rows = [[index[0], f"{index[1]:g}", f"{100 * value:.0f}%"] for index, value in found.items()]
    return (
        f"In {len(found)} of {len(gap)} cells the default is worse than the private mean by more "
        f"than {share}:\n\n{grid(rows, ['set', 'epsilon', 'worse by'])}"
    )


def ridge_table(cells: Cells) -> str:
    """Return the default's risk over that of the best fixed ridge, for wide sets."""
    ridges = [name for name in cells.risk if name.startswith("ridge ")]
    table = cells.risk[[*ridges, "default", "ObjectivePerturbation"]].dropna(subset=ridges)
    lines = []
    for index, row in table.iterrows():
        best = row[ridges].idxmin()
        lines.append(
            [
                index[0],
                str(cells.sets["d"][index[0]]),
                f"{index[1]:g}",
                best.removeprefix("ridge ") + " s",
                f"{row[best]:.2g}",
                f"{row['default'] / row[best]:.2f}",
                f"{row['ObjectivePerturbation'] / row[best]:.2f}",
            ]
        )
    header = ["set", "d", "epsilon", "best ridge", "its risk", "default", "ObjectivePerturbation"]
    return grid(lines, header)


def set_table(cells: Cells) -> str:
    """Return sizes of the sets, and what least squares reaches."""
    exact = cells.all[cells.all["method"] == "least squares"].set_index("data")["test_r2"]
    default = cells.all[(cells.all["method"] == "default") & (cells.all["epsilon"] == 1.0)]
    seconds = default.set_index("data")["seconds"]
    lines = [
        [
            name,
            "chosen on" if name in CHOSEN_ON else "held out",
            f"{cells.sets['n'][name]:,}",
            str(cells.sets["d"][name]),
            f"{cells.sets['variance'][name]:.2g}",
            f"{exact[name]:.3f}",
            f"{seconds[name]:.2g}" if name in seconds else "",
        ]
        for name in NAMES
        if name in cells.sets.index
    ]
    header = ["set", "constants", "n", "d", "variance", "test R² of least squares", "seconds"]
    return grid(lines, header)


def view(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the numbers and tables of the page."""
    cells = Cells(frame)
    fits = cells.all[np.isfinite(cells.all["epsilon"])]
    measured = fits[~fits["method"].str.startswith("ridge")]
    trials = int(measured["trials"].median())
    raw = {other: cells.ratios("default", other) for other in COMPARED}
    floored = {other: cells.floored_ratios("default", other) for other in COMPARED}

    def held_out(ratios: pd.Series) -> pd.Series:
        return ratios[~cells.chosen_on.loc[ratios.index]]

    r2 = fits.pivot_table(index=["data", "epsilon"], columns="method", values="test_r2")
    exact = cells.all[cells.all["method"] == "least squares"].set_index("data")["test_r2"]
    r2.insert(0, "least squares", exact.reindex(r2.index.get_level_values("data")).to_numpy())
    ihm = raw["IHM"]
    return {
        "sets": len(cells.sets),
        "means": {other: mean_ratio(held_out(raw[other])) for other in COMPARED},
        "medians": {other: held_out(raw[other]).median() for other in COMPARED},
        "floored": {other: mean_ratio(held_out(floored[other])) for other in COMPARED},
        "above": int((ihm > 1.0).sum()),
        "cells": len(ihm),
        "worst": f"{ihm.max():.0f}",
        "worst_cell": cell_name(ihm.idxmax()),
        "trials": trials,
        "fewer": int((measured["trials"] < trials).sum()),
        "absent": [method for method in COLOURS if method not in cells.risk],
        "set_table": set_table(cells),
        "ratio_table": ratio_table(cells),
        "worst_cells": {other: worst_cells(cells, other) for other in COMPARED},
        "others": [name for name in OTHERS if name in cells.risk],
        "against_others": against_others(cells),
        "worse_than_mean": worse_than_mean(cells),
        "ridge_table": ridge_table(cells),
        "r2": {each: by_method(r2.xs(each, level="epsilon"), ".3f") for each in (0.3, 1.0)},
        "risk_table": by_method(cells.risk, ".2g"),
    }


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Draw the plots of the page."""
    cells = Cells(frame)
    plot_scores(cells, folder / "accuracy_r2.png")
    plot_risk(cells, folder / "accuracy_risk.png")
    plot_ratios(cells, folder / "accuracy_ratios.png")


def plot_scores(cells: Cells, path: Path, epsilon: float = 1.0) -> None:
    """Draw test R² at one epsilon, one row per set, least squares as a bar."""
    r2 = cells.all.pivot_table(index=["data", "epsilon"], columns="method", values="test_r2")
    exact = r2.xs(np.inf, level="epsilon")["least squares"]
    found = r2.xs(epsilon, level="epsilon")[[*SCORED]]
    order = exact.loc[found.index].sort_values(ascending=False).index
    lost = (exact.loc[order] - found["default"].loc[order]).clip(lower=0.0)
    figure, axis = plt.subplots(figsize=(6.2, 0.34 * len(order) + 1.7), layout="constrained")
    places = range(len(order))
    axis.barh(places, exact.loc[order].clip(lower=0.0), color="#e3e6ea", height=0.75)
    for method in SCORED[::-1]:
        axis.scatter(
            found[method].loc[order].clip(lower=-0.05),
            places,
            color=COLOURS[method],
            s=60 if method == "default" else 30,
            zorder=3,
        )
    words = [("least squares", "#5f6368"), *((name, COLOURS[name]) for name in SCORED)]
    for number, (name, colour) in enumerate(words):
        mark = "■" if name == "least squares" else "●"
        at = (0.0 + 0.27 * number, 1.01)
        axis.annotate(f"{mark} {name}", at, xycoords="axes fraction", color=colour, fontsize=10)
    axis.set_yticks(places, order, fontsize=10)
    axis.invert_yaxis()
    axis.set_xlim(-0.06, 1.0)
    axis.set_xlabel(f"test R² at epsilon {epsilon:g} (dots at the left edge: 0 or less)")
    close = int((lost <= 0.01).sum())
    figure.suptitle(
        f"At epsilon {epsilon:g} the default loses at most 0.01 of R²\n"
        f"on {close} of {len(order)} sets",
        fontsize=12,
    )
    axis.grid(alpha=0.3, axis="x")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_risk(cells: Cells, path: Path) -> None:
    """Draw excess risk in percent of the variance against epsilon, as means over all sets."""
    known = cells.risk[[*PLOTTED]].dropna()
    share = 100.0 * known.div(cells.variance.loc[known.index], axis=0).clip(lower=1e-8)
    means = np.exp(np.log(share).groupby(level="epsilon").mean())
    figure, axis = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
    for method in PLOTTED:
        width = 2.6 if method == "default" else 1.6
        axis.plot(
            means.index, means[method], color=COLOURS[method], lw=width, marker="o", label=method
        )
    axis.set(xscale="log", yscale="log", xlabel="epsilon")
    axis.set_ylabel("excess risk, % of the variance")
    axis.set_xticks(means.index, [f"{epsilon:g}" for epsilon in means.index])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    other = means.drop(columns=["default", "private mean"]).loc[1.0].min()
    sets = known.index.get_level_values("data").unique()
    out = sum(name not in CHOSEN_ON for name in sets)
    axis.set_title(
        f"At epsilon 1 the default adds {means['default'][1.0] / other:.2f} times\n"
        f"the error of the next method\n(geometric means over {len(sets)} sets, {out} held out)",
        fontsize=12,
    )
    label_lines(axis)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_ratios(cells: Cells, path: Path) -> None:
    """Draw the ratio of the default to IHM, one row per set, one dot per epsilon."""
    ratios = cells.ratios("default", "IHM")
    names = [name for name in NAMES if name in ratios.index.get_level_values("data")]
    order = sorted(names, key=lambda name: (name in CHOSEN_ON, mean_ratio(ratios[name])))
    figure, axis = plt.subplots(figsize=(6.5, 0.34 * len(order) + 1.6), layout="constrained")
    sizes = {0.1: 14, 0.3: 28, 1.0: 45, 3.0: 66, 10.0: 90}
    for place, name in enumerate(order):
        found = ratios[name]
        axis.scatter(
            found.to_numpy(),
            [place] * len(found),
            s=[sizes[epsilon] for epsilon in found.index],
            color=COLOURS["default"],
            alpha=0.45,
            lw=0,
        )
        axis.plot(mean_ratio(found), place, marker="|", ms=15, mew=2.5, color="#111111")
    edge = sum(name not in CHOSEN_ON for name in order) - 0.5
    axis.axhline(edge, color="#5f6368", lw=0.8)
    axis.axvline(1.0, color=COLOURS["IHM"], lw=1.5)
    axis.set_xscale("log")
    axis.set_xticks(ticks := [10.0**power for power in range(-6, 4)], [f"{t:g}" for t in ticks])
    axis.set_xlim(min(0.02, 0.8 * ratios.min()), max(3.0, 1.25 * ratios.max()))
    axis.minorticks_off()
    axis.set_yticks(range(len(order)), order, fontsize=10)
    axis.invert_yaxis()
    for text, place, side in (("held out", -0.15, "bottom"), ("constants chosen on", 0.15, "top")):
        axis.text(
            0.01,
            edge + place,
            text,
            transform=axis.get_yaxis_transform(),
            ha="left",
            va=side,
            bbox={"color": "white", "pad": 1},
        )
    axis.set_xlabel("risk of the default / risk of IHM\n(larger dots: larger epsilon; bars: means)")
    held_out = ratios[~cells.chosen_on.loc[ratios.index]]
    axis.set_title(f"On held-out sets the default has {mean_ratio(held_out):.2f} times IHM's risk")
    axis.grid(alpha=0.3, axis="x")
    figure.savefig(path, dpi=120)
    plt.close(figure)
