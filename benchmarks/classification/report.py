"""Tables of the benchmark of classification, in Markdown.

    python benchmarks/classification/report.py classification.csv docs/classification.md

Peers are shown at the best of their settings, chosen by the true excess log-loss.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

#: Excess log-loss below this counts as this: a ratio of two such numbers means nothing.
FLOOR = 1e-5
OWN, PLAIN = "fastmix", "scikit-learn"


def best(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over the trials, of each method at its best setting."""
    rows = rows.fillna({"setting": ""})
    cells = rows.groupby(["data", "method", "epsilon", "setting"], as_index=False)
    means = cells[["excess", "accuracy", "auc", "n", "d"]].mean()
    at = means.groupby(["data", "method", "epsilon"])["excess"].idxmin()
    return means.loc[at]


def ratios(means: pd.DataFrame) -> pd.DataFrame:
    """Return the excess log-loss over that of each peer, by set and epsilon."""
    table = means.pivot_table(index=["data", "epsilon"], columns="method", values="excess")
    table = table.drop(columns=PLAIN).dropna(how="all").clip(lower=FLOOR)
    return table.drop(columns=OWN).rdiv(table[OWN], axis=0)


def lines(rows: pd.DataFrame) -> list[str]:
    """Return the page."""
    means = best(rows)
    peers = [name for name in means["method"].unique() if name not in (OWN, PLAIN)]
    found = ratios(means)
    text = [
        "| peer | geometric mean of excess log-loss over the peer's | largest | cells above 1.05 |",
        "|---|---|---|---|",
    ]
    for peer in peers:
        each = found[peer].dropna()
        mean = np.exp(np.log(each).mean())
        text.append(
            f"| {peer} | {mean:.3f} | {each.max():.2f} | {(each > 1.05).sum()} of {len(each)} |"
        )
    header = " | ".join(["set", "rows", "columns", "epsilon", OWN, *peers])
    text += ["", "Excess log-loss / accuracy / AUC:", "", f"| {header} |"]
    text.append("|" + "---|" * (5 + len(peers)))
    for (data, epsilon), part in means[means["method"] != PLAIN].groupby(["data", "epsilon"]):
        part = part.set_index("method")
        cells = [
            f"{part.excess[m]:.5f} / {part.accuracy[m]:.4f} / {part.auc[m]:.4f}"
            if m in part.index
            else ""
            for m in (OWN, *peers)
        ]
        size = part.loc[OWN]
        text.append(
            f"| {data} | {size.n:,.0f} | {size.d:.0f} | {epsilon:g} | {' | '.join(cells)} |"
        )
    text += ["", "Not private (scikit-learn): accuracy / AUC:", "", "| set | accuracy | AUC |"]
    text.append("|---|---|---|")
    for _, row in means[means["method"] == PLAIN].iterrows():
        text.append(f"| {row['data']} | {row.accuracy:.4f} | {row.auc:.4f} |")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    options = parser.parse_args()
    page = "\n".join(lines(pd.read_csv(options.table))) + "\n"
    if options.out is None:
        print(page)
    else:
        options.out.write_text(page)


if __name__ == "__main__":
    main()
