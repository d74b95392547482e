"""Tables with categories as categories, by the public bounds in `bounds/`, and their encoding.

The encoding follows the names of a model's columns, so least squares and maximum likelihood see
the same bounded rows as the private fit, whichever level of a category has no column.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

#: Constants of the method were chosen on these tables; results are reported on the others.
CHOSEN_ON = ("black_friday", "king_county", "rossmann")
REPORTED_ON = ("diamonds", "insurance", "cps1988", "adult")
NAMES = (*CHOSEN_ON, *REPORTED_ON)
#: Tables of `held_out.py`, which no constant was chosen on: numbers, and labels.
HELD_OUT = ("food", "hi", "gss_wages", "yrbss", "rodents", "hotel", "chem")
HELD_OUT_LABELS = ("churn", "crash", "hi_insured", "fertility")
#: Logistic regressions predict whether the target is above a public round number.
THRESHOLDS = {
    "black_friday": 10_000,
    "king_county": 500_000,
    "rossmann": 6_000,
    "diamonds": 5_000,
    "insurance": 10_000,
    "cps1988": 600,
}
#: Linear regressions of adult predict the hours, and the income is a feature.
HOURS = {"target": "hours_per_week", "feature": "income"}
FILES = {"black_friday": "black_friday_complete_166821"}
TEST_SHARE, MOST_TEST_ROWS = 0.2, 50_000


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a table with the public bounds of its columns."""

    name: str
    frame: pd.DataFrame
    bounds: dict[str, Any]

    @property
    def target(self) -> str:
        return next(iter(self.bounds["target"]))

    @property
    def ends(self) -> Any:
        """Bounds of a target of numbers, or its two labels."""
        return self.bounds["target"][self.target]

    @property
    def categories(self) -> dict[str, list[Any]]:
        """Known levels by category."""
        entries = self.bounds["features"].items()
        lists = {name: e["categories"] if isinstance(e, dict) else e for name, e in entries}
        return {
            name: levels
            for name, levels in lists.items()
            if isinstance(self.bounds["features"][name], dict)
            or (isinstance(levels, list) and isinstance(levels[0], str))
        }

    def columns(self) -> list[str]:
        """Return names of columns, the first level of each category left out."""
        made = []
        for name in self.bounds["features"]:
            levels = self.categories.get(name)
            made += [name] if levels is None else [f"{name}={v}" for v in (*levels[1:], "other")]
        return made

    def targets(self) -> Any:
        """Return bounded targets, or 0 and 1 for the labels."""
        values = self.frame[self.target]
        if isinstance(self.ends[0], str):
            return (values == self.ends[1]).to_numpy(np.float64)
        return values.to_numpy(np.float64).clip(*self.ends)

    def encoded(self, names: Iterable[str]) -> Any:
        """Return the bounded rows as a matrix with these columns."""
        levels = {name: self._levels(name) for name in self.categories}
        parts = []
        for name in names:
            column, _, level = name.partition("=")
            parts.append(levels[column] == level if level else self._number(name))
        return np.column_stack(parts).astype(np.float64)

    def _levels(self, name: str) -> Any:
        """Return levels as text; everything that the public list does not name is other."""
        known = [str(level) for level in self.categories[name]]
        values = self.frame[name].astype("string").fillna("other")
        return values.where(values.isin(known), "other").to_numpy(object)

    def _number(self, name: str) -> Any:
        """Return a bounded number, the middle of its bounds for a missing one, or a term."""
        made = np.ones(len(self.frame))
        for factor in name.split("*"):
            column, power = re.fullmatch(r"(.*?)(?:\^(\d+))?", factor).groups()
            low, high = self.bounds["features"][column]
            values = self.frame[column].astype("Float64").to_numpy(np.float64, na_value=np.nan)
            values = np.nan_to_num(values.clip(low, high), nan=(low + high) / 2.0)
            made *= values ** int(power or 1)
        return made

    def rows(self, chosen: Any) -> Table:
        return replace(self, frame=self.frame.iloc[chosen].reset_index(drop=True))

    def with_targets(self, values: Any, ends: Any = None) -> Table:
        """Return the same rows with other targets, and wider bounds of them if given."""
        bounds = {**self.bounds, "target": {self.target: list(ends or self.ends)}}
        return replace(self, frame=self.frame.assign(**{self.target: values}), bounds=bounds)

    def split(self, seed: int, n: int | None, most: int) -> tuple[Table, Table] | None:
        """Return n training rows (None means all, but at most so many) and test rows.

        Return None if the table has fewer rows.
        """
        order = np.random.default_rng(seed).permutation(len(self.frame))
        test = min(int(TEST_SHARE * len(order)), MOST_TEST_ROWS)
        left = len(order) - test
        if n is not None and n > left:
            return None
        return self.rows(order[test : test + min(n or most, left)]), self.rows(order[:test])


def read(name: str, folder: Path) -> pd.DataFrame:
    """Return the rows of a table."""
    if name == "rossmann":
        days = pd.read_parquet(folder / "rossmann_train.parquet")
        days = days[(days["Open"] == 1) & (days["Sales"] > 0)]
        frame = days.merge(pd.read_parquet(folder / "rossmann_store.parquet"), on="Store")
        return frame.assign(Month=pd.to_datetime(frame["Date"]).dt.month)
    return pd.read_parquet(folder / f"{FILES.get(name, name)}.parquet")


def load(name: str, folder: Path, family: str) -> Table:
    """Return a table with bounds for a family of regressions."""
    file = Path(__file__).parent / "bounds" / f"{name}.toml"
    bounds: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    frame = read(name, folder)
    if name == "adult" and family == "linear":
        features = dict(bounds["features"])
        hours = features.pop(HOURS["target"])
        features[HOURS["feature"]] = bounds["target"][HOURS["feature"]]
        bounds = {"target": {HOURS["target"]: hours}, "features": features}
    elif family == "logistic" and name in THRESHOLDS:
        (target,) = bounds["target"]
        above = np.where(frame[target] > THRESHOLDS[name], "yes", "no")
        frame = frame.drop(columns=target).assign(above=above)
        bounds = {"target": {"above": ["no", "yes"]}, "features": bounds["features"]}
    used = [*bounds["target"], *(n for n, e in bounds["features"].items() if e is not True)]
    table = Table(name, frame[used], bounds)
    kinds = {
        column: "Int64" if isinstance(levels[0], int) else "string"
        for column, levels in table.categories.items()
    }
    return replace(table, frame=table.frame.astype(kinds))
