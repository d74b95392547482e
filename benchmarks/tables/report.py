"""Turn results of `run.py` into tables in Markdown and one figure; compare two files.

    python benchmarks/files/report.py tables.csv --out report
    python benchmarks/files/report.py new.csv --against old.csv --out report

Ratios are geometric means of the new excess risk over the old one, where a share of the variance
below `--floor` counts as that share. Constants were chosen on one half of the tables.
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
from sets import CHOSEN_ON, NAMES

CELL = ["family", "table", "n", "epsilon"]
SIZES = ["1000", "5000", "20000", "full"]
COVERAGE = (
    "coefficients", "identified_share", "coverage", "real_coverage", "std_over_error_05",
    "std_over_error_50", "std_over_error_95", "within_0.7_to_1.5", "std_over_not_private", "told",
    "told_not_private", "rare_identified_share", "rare_coverage", "aliased", "aliased_identified",
    "empty", "empty_identified",
    "contrast_identified_share", "contrast_coverage",
)  # fmt: skip
WORST = 12


def read(path: Path) -> pd.DataFrame:
    """Return one line per measured fit, quantities as columns."""
    found = pd.read_csv(path, dtype={"n": str, "fit": str})
    keys = ["measure", "estimator", *CELL, "intervals", "fit"]
    wide = found.pivot_table(index=keys, columns="quantity", values="value", aggfunc="last")
    wide = wide.reset_index()
    wide["n"] = pd.Categorical(wide["n"], SIZES, ordered=True)
    wide["table"] = pd.Categorical(wide["table"], NAMES, ordered=True)
    if "r2_inside_bounds" in wide:  # as if predictions were clipped to the bounds of the target
        wide["excess_inside_bounds"] = wide["r2_not_private"] - wide["r2_inside_bounds"]
    return wide


def of(trials: pd.DataFrame, measure: str, estimator: str = "default") -> pd.DataFrame:
    chosen = (trials["measure"] == measure) & (trials["estimator"] == estimator)
    return trials[chosen].dropna(axis=1, how="all")


def markdown(table: pd.DataFrame, digits: str = ".3g") -> str:
    """Return a table in Markdown; what was not measured is empty."""

    def cell(value: Any) -> str:
        number = isinstance(value, (float, np.floating))
        return ("" if np.isnan(value) else format(value, digits)) if number else str(value)

    flat = table.reset_index()
    names = [n if isinstance(n, str) else " ".join(map(str, n)).strip() for n in flat.columns]
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in flat.itertuples(index=False)]
    return "\n".join(lines)


def mean(values: Any) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else float("nan")


def predictions(trials: pd.DataFrame) -> str:
    """Return scores out of sample, beside those without privacy."""
    found = of(trials, "prediction")
    parts = []
    for family, own in found.groupby("family", observed=True):
        score = "r2" if family == "linear" else "auc"
        table = own.pivot_table(
            index=CELL[1:], columns="intervals", values=[score, "excess"], observed=True
        )
        table.columns = [f"{name} {kind}" for name, kind in table.columns]
        plain = own.groupby(CELL[1:], observed=True)[f"{score}_not_private"].mean()
        table = table.assign(**{"not private": plain})
        parts.append(markdown(table))
    return "\n\n".join(["Intervals: 0 without, 1 with.", *parts])


def risks(trials: pd.DataFrame, floor: float, over: str = "excess") -> pd.Series:
    """Return the mean excess risk of every cell, at least the floor."""
    found = of(trials, "prediction")
    return found.groupby([*CELL, "intervals"], observed=True)[over].mean().clip(lower=floor)


def compared(new: pd.DataFrame, old: pd.DataFrame, floor: float, over: str) -> str:
    """Return ratios of excess risks: with intervals and without, against each old fit."""
    a, b = risks(new, floor, over), risks(old, floor, over)
    parts = []
    for own, other in ((0, 0), (1, 1), (1, 0)):
        both = pd.concat(
            [a.xs(own, level="intervals"), b.xs(other, level="intervals")],
            axis=1, keys=["new", "old"], join="inner",
        )  # fmt: skip
        ratio = (both["new"] / both["old"]).rename("ratio").reset_index()
        half = np.where(ratio["table"].isin(CHOSEN_ON), "chosen on", "reported on")
        kinds = ["with" if each else "without" for each in (own, other)]
        title = "New {} intervals, old {}".format(*kinds)
        words = [f"all {mean(ratio['ratio']):.2f}"]
        for by in ([half], ["table"], ["n"], ["epsilon"]):
            groups = ratio.groupby(by, observed=True)["ratio"].apply(mean)
            words += [f"{name} {value:.2f}" for name, value in groups.items()]
        worst = both.assign(ratio=both["new"] / both["old"]).nlargest(WORST, "ratio")
        above = int((ratio["ratio"] > 1.5).sum())
        lines = [f"### {title}", ", ".join(words) + f"; {above} of {len(ratio)} cells above 1.5"]
        parts.append("\n\n".join([*lines, markdown(worst)]))
    return "\n\n".join(parts)


def coverages(trials: pd.DataFrame) -> str:
    found = of(trials, "coverage").sort_values(CELL)
    return markdown(found.set_index(CELL)[[name for name in COVERAGE if name in found]])


def scores(trials: pd.DataFrame) -> str:
    """Return how often intervals of scores cover, and how wide they are."""
    found = of(trials, "scores")
    names = [n.removesuffix("_covered") for n in found if str(n).endswith("_covered")]
    parts = []
    for name in names:
        own = found.dropna(subset=[f"{name}_covered"])
        groups = own.groupby([*CELL[:2], "intervals"], observed=True)
        table = pd.DataFrame(
            {
                "fits": groups.size(),
                "covered": groups[f"{name}_covered"].mean(),
                "median width": groups[f"{name}_width"].median(),
            }
        )
        share, width = own[f"{name}_covered"].mean(), own[f"{name}_width"].median()
        said = f"{name}: {share:.3f} of {len(own)} fits covered, median width {width:.3g}"
        parts += [said, markdown(table)]
    return "\n\n".join(parts)


def levels(trials: pd.DataFrame) -> str:
    found = of(trials, "levels")
    names = [n for n in found if str(n).endswith(("_inside", "_furthest"))]
    groups = found.groupby([*CELL[:2], "intervals"], observed=True)[names]
    rules = {name: "max" if name.endswith("_furthest") else "mean" for name in names}
    return markdown(groups.agg(rules))


def figure(trials: pd.DataFrame, old: pd.DataFrame | None, path: Path) -> None:
    """Draw the excess risk of fits with intervals by epsilon, one panel per table."""
    family = of(trials, "prediction")["family"].iloc[0]
    files = [("-", trials), *([] if old is None else [(":", old)])]
    tables = [name for name in NAMES if name in set(trials["table"])]
    size = 5.6, 0.8 + 1.8 * (len(tables) + 1) // 2
    fig, axes = plt.subplots(
        -(-len(tables) // 2), 2, figsize=size, sharex=True, sharey=True, squeeze=False
    )
    for axis in axes.flat[len(tables) :]:
        axis.set_axis_off()
    for axis, name in zip(axes.flat, tables, strict=False):
        for style, file in files:
            own = of(file, "prediction")
            own = own[(own["table"] == name) & (own["family"] == family) & (own["intervals"] == 1)]
            lines = own.groupby(["n", "epsilon"], observed=True)["excess"].mean().clip(lower=1e-5)
            for n in lines.index.get_level_values("n").unique():
                axis.loglog(lines[n].index, lines[n], style, color=f"C{SIZES.index(n)}")
        axis.set_title(name + (" *" if name in CHOSEN_ON else ""), fontsize=9)
    handles = [plt.Line2D([], [], color=f"C{i}") for i in range(len(SIZES))]
    words = ["all rows" if n == "full" else f"{int(n):,} rows" for n in SIZES]
    fig.legend(handles, words, loc="lower right", fontsize=8)
    fig.supxlabel("epsilon", fontsize=9)
    fig.supylabel("excess risk, share of the variance", fontsize=9)
    dotted = "" if old is None else "; dotted: before"
    fig.suptitle(f"Fits with intervals (* constants chosen on it{dotted})", fontsize=10)
    fig.tight_layout()
    fig.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--against", type=Path, help="results of another version")
    parser.add_argument("--floor", type=float, default=0.001)
    parser.add_argument("--out", type=Path, required=True, help="folder")
    asked = parser.parse_args()
    trials = read(asked.results)
    old = None if asked.against is None else read(asked.against)
    asked.out.mkdir(parents=True, exist_ok=True)
    parts, there = [], set(trials["measure"])
    if "prediction" in there:
        if old is not None:
            kinds = ("excess", "excess_over_all_rows", "excess_inside_bounds")
            for over in [kind for kind in kinds if kind in trials]:
                title = f"## New over old: {over.replace('_', ' ')}"
                parts.append(f"{title}\n\n{compared(trials, old, asked.floor, over)}")
        parts.append("## Prediction\n\n" + predictions(trials))
        figure(trials, old, asked.out / "tables.svg")
    for name, made in (("coverage", coverages), ("scores", scores), ("levels", levels)):
        if name in there:
            parts.append(f"## {name.capitalize()}\n\n{made(trials)}")
    (asked.out / "tables.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
