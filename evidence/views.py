"""From the files of benchmarks to tables, and from tables to what templates show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import sets as table_sets

#: Names of sets as pages write them.
TITLES = {
    "black_friday": "Black Friday",
    "beijing_air": "Beijing air",
    "california": "California",
    "king_county": "King County",
    "rossmann": "Rossmann",
}
#: Sets whose constants were chosen on them, of benchmarks/inference.py.
INFERENCE_CHOSEN_ON = ("california", "bike", "protein", "elevators")


def geometric(values: Any) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.log(values).mean()))


def lines(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the lines of a table as dictionaries; None stands for what was not measured."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [dict(row) for row in plain.to_dict("records")]


def readme(frame: pd.DataFrame) -> dict[str, Any]:
    """Return test R² of three methods by set, in the order of the README."""
    scores = frame.pivot_table(index="data", columns="method", values="test_r2")
    rows = frame.groupby("data")["n"].first()
    order = ["rossmann", "california", "beijing_air", "diamonds", "skillcraft"]
    return {
        "trials": int(frame.loc[frame["method"] == "default", "trials"].min()),
        "sets": [
            {"title": TITLES.get(name, name), "rows": rows[name], **scores.loc[name]}
            for name in order
            if name in scores.index
        ],
    }


def inference(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the cells with intervals, and what they show together."""
    frame = frame.assign(chosen=frame["set"].isin(INFERENCE_CHOSEN_ON))
    shown = frame[frame["identified"] >= 0.5]
    many = shown[~shown["chosen"] & (shown["identified"] >= 3)]
    few = frame[frame["identified"].between(0.05, 3)].nsmallest(1, "coverage")
    spreads = frame[frame["spread_known"] > 0]
    off = np.maximum(spreads["spread_most"] - 1.0, 1.0 - spreads["spread_least"])
    risk = frame["risk_with_over_without"]
    return {
        "cells": lines(shown),
        "left_out": len(frame) - len(shown),
        "all": len(frame),
        "fits": int(frame["fits"].median()),
        "many": len(many),
        "least": many["coverage"].min(),
        "most": many["coverage"].max(),
        "mean": np.average(many["coverage"], weights=many["identified"]),
        "width": many["median_width"].median(),
        "few": lines(few)[0] if len(few) else None,
        "spread_off": int((off > 0.1).sum()),
        "spread_cells": len(off),
        "spread_worst": off.max(),
        "risk_chosen": geometric(risk[frame["chosen"]]),
        "risk_held_out": geometric(risk[~frame["chosen"]]),
        "risk_least": risk.min(),
        "risk_most": risk.max(),
    }


def labels(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the cells of logistic fits with two or more identified coefficients."""
    frame = frame.assign(chosen=frame["set"].isin(INFERENCE_CHOSEN_ON))
    risk = frame["risk_with_over_without"]
    many = frame[~frame["chosen"] & (frame["identified"] >= 3)]
    return {
        "seen": len(many),
        "least": many["coverage"].min(),
        "most": many["coverage"].max(),
        "mean": np.average(many["coverage"], weights=many["identified"]),
        "width": many["median_width"].median(),
        "cells": lines(frame[frame["identified"] >= 2]),
        "all": len(frame),
        "fits": int(frame["fits"].median()),
        "risk_chosen": geometric(risk[frame["chosen"]]),
        "risk_others": geometric(risk[~frame["chosen"]]),
    }


#: Columns of the table of tables with categories, and the quantities of the benchmark.
QUANTITIES = {
    "rows": "rows",
    "fits": "fits",
    "identified": "contrast_identified_share",
    "covered": "contrast_coverage",
    "ratio_05": "contrast_std_over_error_05",
    "ratio_50": "contrast_std_over_error_50",
    "ratio_95": "contrast_std_over_error_95",
    "over_plain": "contrast_std_over_not_private",
    "over_limit": "contrast_std_over_limit",
    "real": "real_contrast_coverage",
    "rare_identified": "contrast_rare_identified_share",
    "rare_covered": "contrast_rare_coverage",
}


#: Tables with categories that no constant was chosen on.
HELD_OUT = (*table_sets.HELD_OUT, *table_sets.HELD_OUT_LABELS)
REGRESSIONS = ",".join(table_sets.HELD_OUT)


def table_cells(path: Path) -> pd.DataFrame:
    """Return one line per table and epsilon, with the risk over that without intervals."""
    found = pd.read_csv(path, dtype={"n": str, "fit": str})
    keys = ["table", "epsilon", "measure", "intervals", "fit"]
    wide = found.pivot_table(index=keys, columns="quantity", values="value", aggfunc="last")
    cells = wide.xs("coverage", level="measure").droplevel(["intervals", "fit"])
    cells = cells.reindex(columns=list(QUANTITIES.values()))
    cells.columns = list(QUANTITIES)
    if "prediction" in wide.index.get_level_values("measure"):
        risks = wide.xs("prediction", level="measure")["distance"]
        groups = risks.groupby(["table", "epsilon", "intervals"])
        means, sizes = groups.mean().unstack(), groups.size().unstack()
        cells["risk"], cells["risk_fits"] = means[1] / means[0], sizes.sum(axis=1)
    made = cells.reset_index()
    order = pd.Categorical(made["table"], (*table_sets.NAMES, *HELD_OUT), ordered=True)
    return made.assign(order=order).sort_values(["order", "epsilon"]).drop(columns="order")


def tables(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the cells of both lists of tables, and their risks."""
    held_out = frame["table"].isin(HELD_OUT)
    chosen = frame["table"].isin(table_sets.CHOSEN_ON)
    frame = frame.assign(title=frame["table"].map(TITLES).fillna(frame["table"]))
    parts = {"chosen": chosen, "others": ~chosen & ~held_out, "held_out": held_out}
    by_table = frame[held_out].groupby("table", sort=False)
    missed = frame[held_out & (frame["real"] < 0.91)]
    seen = frame[held_out & frame["covered"].notna()]
    rare = frame[(frame["epsilon"] == 3.0) & (frame["rare_identified"] >= 0.5)]["rare_covered"]
    return {
        "known": lines(frame[~held_out]),
        "held_out": lines(frame[held_out]),
        "fits": int(frame["fits"].median()),
        "risk": {name: geometric(frame.loc[part, "risk"]) for name, part in parts.items()}
        if "risk" in frame
        else {},
        "risk_fits": int(frame["risk_fits"].median() / 2) if "risk_fits" in frame else 0,
        "low": lines(frame[held_out & (frame["covered"] < 0.93)]),
        "wide": [name for name, own in by_table if own["ratio_50"].mean() > 1.25],
        "missed": list(dict.fromkeys(missed["table"])),
        "missed_least": missed["real"].min(),
        "missed_most": missed["real"].max(),
        "seen": len(seen),
        "least": seen["covered"].min(),
        "most": seen["covered"].max(),
        "mean": seen["covered"].mean(),
        "width": seen["ratio_50"].median(),
        "rare_cells": int(rare.count()),
        "rare_least": rare.min(),
        "rare_most": rare.max(),
    }


def score_cells(path: Path) -> pd.DataFrame:
    """Return how often intervals of R² cover, and how wide they are, by table, rows, epsilon."""
    found = pd.read_csv(path, dtype={"n": str, "fit": str})
    keys = ["table", "n", "epsilon"]
    wide = found.pivot_table(index=[*keys, "fit"], columns="quantity", values="value")
    groups = wide.groupby(keys)
    parts = {
        "rows": groups["rows"].max(),
        "fits": groups.size(),
        "covered": groups["r2_covered"].mean(),
        "true": groups["r2_true"].mean(),
        "width": groups["r2_width"].median(),
    }
    return pd.DataFrame(parts).reset_index()


def scores(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a line per table, and the share of all intervals that cover."""
    width = frame.pivot_table(index="table", columns=["n", "epsilon"], values="width")
    made = []
    for name, own in frame.groupby("table"):
        made.append(
            {
                "title": TITLES.get(name, name),
                "true": own["true"].mean(),
                "fits": own["fits"].sum(),
                "covered": np.average(own["covered"], weights=own["fits"]),
                "widths": [
                    width.loc[name, each] for each in (("full", 1.0), ("full", 3.0), ("5000", 3.0))
                ],
            }
        )
    few = width[("5000", 1.0)]
    return {
        "tables": sorted(made, key=lambda line: line["widths"][0]),
        "fits": frame["fits"].sum(),
        "covered": np.average(frame["covered"], weights=frame["fits"]),
        "few_least": few.min(),
        "few_most": few.max(),
    }


#: Persons of the real tables.
PERSONS = {"rossmann": "Rossmann, {:,} stores", "nycflights13": "nycflights13, {:,} aircraft"}


def people(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the coverage for persons, on panels and on real tables."""
    spread = np.sqrt(0.05 * 0.95 / (frame["fits"] * frame["identified"].clip(lower=1.0)))
    frame = frame.assign(error=spread)
    panels, real = frame[frame["set"] == "panel"], frame[frame["set"] != "panel"]
    titles = [PERSONS[c["set"]].format(c["persons"]) for c in lines(real)]
    real = real.assign(title=titles)
    return {
        "panels": lines(panels),
        "sizes": lines(panels.groupby("persons", as_index=False).first()),
        "real": lines(real),
        "low": [
            f"{c['title']} at epsilon {c['epsilon']:g}" for c in lines(real[real["covered"] < 0.93])
        ],
        "real_fits": int(real["fits"].median()),
        "real_least": real["error"].min(),
        "real_most": real["error"].max(),
    }


def people_scores(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the coverage of scores by model, with one column per way to count persons."""
    made = [
        {"model": model, "metric": metric, "covered": list(own["covered"])}
        for (model, metric), own in frame.groupby(["model", "metric"], sort=False)
    ]
    return {"lines": made, "units": list(frame["unit"].unique()), "fits": frame["fits"].min()}


def quantiles(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a line per set and epsilon, with the cells of all quantiles."""
    made = []
    for (name, epsilon), own in frame.groupby(["set", "epsilon"], sort=False):
        made.append({**lines(own)[0], "set": name, "epsilon": epsilon, "cells": lines(own)})
    return {"lines": made, "fits": int(frame["fits"].median())}
