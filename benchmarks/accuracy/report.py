"""Turn the trials into the page docs/accuracy.md, its table and its plots.

python benchmarks/accuracy/report.py accuracy.csv --out docs
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

SHOWN = ("ObjectivePerturbation", "IHM", "IHM, paper", "FastIHM", "FastIHM, paper", "AdaSSP")
COLOURS = {
    "ObjectivePerturbation": "#1b7f3b",
    "IHM": "#0b5fa5",
    "IHM, paper": "#86b9e0",
    "FastIHM": "#b3450b",
    "FastIHM, paper": "#eaa778",
    "AdaSSP": "#5f6368",
}


def summary(trials: pd.DataFrame) -> pd.DataFrame:
    """Return means and 95% intervals (normal, of the mean) for each cell."""
    groups = trials.groupby(["data", "method", "epsilon"])
    parts = {}
    for value in ("excess_risk", "test_r2"):
        mean, error = groups[value].mean(), groups[value].sem()
        parts[value] = mean
        parts[f"{value}_low"], parts[f"{value}_high"] = mean - 1.96 * error, mean + 1.96 * error
    parts["trials"] = groups.size()
    return pd.DataFrame(parts).reset_index()


def with_known(cells: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Join cells by those of an earlier report that have not been measured again."""
    if not path.exists():
        return cells
    keys = ["data", "method", "epsilon"]
    both = pd.concat([pd.read_csv(path), cells]).drop_duplicates(keys, keep="last")
    return both.sort_values(keys).reset_index(drop=True)


def ratios(cells: pd.DataFrame, method: str, other: str) -> pd.Series:
    table = cells.pivot_table(index=["data", "epsilon"], columns="method", values="excess_risk")
    return (table[method] / table[other]).dropna()


def plot(cells: pd.DataFrame, value: str, label: str, log: bool, path: Path) -> None:
    names = list(dict.fromkeys(cells["data"]))
    columns = 4
    rows = -(-len(names) // columns)
    size = (12, 2.6 * rows + 0.4)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axis, name in zip(axes.flat, names, strict=False):
        for method in SHOWN:
            line = cells[(cells["data"] == name) & (cells["method"] == method)]
            axis.plot(line["epsilon"], line[value], color=COLOURS[method], marker="o", ms=3)
            axis.fill_between(
                line["epsilon"],
                line[f"{value}_low"].clip(lower=line[value] / 10 if log else None),
                line[f"{value}_high"],
                color=COLOURS[method],
                alpha=0.2,
                lw=0,
            )
        axis.set_xscale("log")
        axis.set_xticks([0.3, 1, 3, 10], ["0.3", "1", "3", "10"])
        axis.minorticks_off()
        if log:
            axis.set_yscale("log")
        else:
            top = cells.loc[cells["data"] == name, value].max()
            axis.set_ylim(min(0.0, top - 0.5), top + 0.05)
        axis.set_title(name, fontsize=10)
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    for axis in axes[-1]:
        axis.set_xlabel("epsilon")
    for axis in axes[:, 0]:
        axis.set_ylabel(label)
    handles = [plt.Line2D([], [], color=COLOURS[m], marker="o", ms=3, label=m) for m in SHOWN]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(SHOWN), frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def markdown(table: Any, form: str) -> list[str]:
    columns = list(table.columns)
    lines = [
        "| " + " | ".join([*map(str, table.index.names), *map(str, columns)]) + " |",
        "|" + "---|" * (len(columns) + len(table.index.names)),
    ]
    for index, row in table.iterrows():
        keys = index if isinstance(index, tuple) else (index,)
        cells = ["" if np.isnan(v) else format(v, form) for v in row]
        lines.append("| " + " | ".join([*(f"{key}" for key in keys), *cells]) + " |")
    return lines


def page(cells: pd.DataFrame) -> str:
    n_trials = int(cells["trials"].max())
    lines = [
        "# Accuracy",
        "",
        f"Made by `benchmarks/accuracy` from {n_trials} seeded trials per cell, delta = 1/n². "
        "Excess risk is the mean squared residual beyond that of least squares, with targets "
        "scaled to [-1, 1]; test R² is on a held-out tenth. **Bounds of the sets that come from "
        "files are the data's own ranges.** A real data holder must not use these, because they "
        "are not public; round public bounds are wider, and all private methods lose more with "
        "them. The flights have round public bounds. These sets have an intercept; the generated "
        "sets have rows of norm 1. "
        "The paper's FastIHM has its largest k2, 200 max(d, log(4T/varrho)).",
        "",
        '`PrivateLinearRegression(method="auto")` takes ObjectivePerturbation on all of these '
        "sets, and IHM if intervals are asked for. Constants of IHM and FastIHM were chosen on "
        "these sets. ObjectivePerturbation has two, both of its default ridge, and most of these "
        "sets were among those that they were chosen on.",
        "",
        "![Excess risk](accuracy_risk.png)",
        "",
        "![Test R squared](accuracy_r2.png)",
        "",
        "## Ratios of excess risk",
        "",
        "| ratio | geometric mean | worst cell |",
        "|---|---|---|",
    ]
    for method, other in (
        ("ObjectivePerturbation", "IHM"),
        ("ObjectivePerturbation", "AdaSSP"),
        ("IHM", "IHM, paper"),
        ("FastIHM", "FastIHM, paper"),
        ("IHM", "AdaSSP"),
    ):
        ratio = ratios(cells, method, other)
        worst = ratio.idxmax()
        lines.append(
            f"| {method} / {other} | {np.exp(np.log(ratio).mean()):.3f} "
            f"| {ratio.max():.2f} ({worst[0]}, epsilon {worst[1]:g}) |"
        )
    risk = cells.pivot_table(index=["data", "epsilon"], columns="method", values="excess_risk")
    r2 = cells[cells["epsilon"] == 1.0].pivot_table(
        index="data", columns="method", values="test_r2"
    )
    lines += ["", "## Excess risk", "", *markdown(risk[list(SHOWN)], ".2g")]
    lines += ["", "## Test R² at epsilon 1", "", *markdown(r2[list(SHOWN)], ".3f")]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trials", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    options = parser.parse_args()
    cells = with_known(summary(pd.read_csv(options.trials)), options.out / "accuracy.csv")
    cells.to_csv(options.out / "accuracy.csv", index=False, float_format="%.6g")
    plot(cells, "excess_risk", "excess risk", True, options.out / "accuracy_risk.png")
    plot(cells, "test_r2", "test R²", False, options.out / "accuracy_r2.png")
    (options.out / "accuracy.md").write_text(page(cells))


if __name__ == "__main__":
    main()
