"""Measure fits of tables with categories; append to a CSV file, one line per quantity.

    python benchmarks/tables/run.py --data-dir DATA --out tables.csv --fits 3
    python benchmarks/tables/run.py --data-dir DATA --out tables.csv --measures coverage --fits 20

``--estimator not_private`` checks the measures: its coverage is 95%, its ratios are about 1.
Cells that the file has are skipped, so a run can be continued. Results are those of the fastmix
that this Python imports; `report.py` compares two files.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measures
import numpy as np
import pandas as pd
from sets import NAMES, load

KEYS = ("measure", "estimator", "family", "table", "n", "epsilon", "intervals", "fit")
MEASURES = ("prediction", "coverage", "scores", "levels")


def known(out: Path) -> set[tuple[str, ...]]:
    """Return the cells that the file has."""
    if not out.exists():
        return set()
    found = pd.read_csv(out, usecols=list(KEYS), dtype=str)
    return set(found[list(KEYS)].drop_duplicates().itertuples(index=False, name=None))


def cells(asked: argparse.Namespace, table: str) -> Iterator[tuple[str, ...]]:
    """Yield the keys of the cells of a table; coverage is one cell for all fits."""
    rows, epsilons = asked.rows.split(","), asked.epsilons.split(",")
    for measure in asked.measures.split(","):
        both = [each for each in asked.intervals.split(",") if measure != "coverage" or each == "1"]
        fits = ["all"] if measure == "coverage" else [str(fit) for fit in range(asked.fits)]
        for fit, n, epsilon, intervals in itertools.product(fits, rows, epsilons, both):
            yield measure, asked.estimator, asked.family, table, n, epsilon, intervals, fit


def measured(key: tuple[str, ...], table: Any, asked: argparse.Namespace) -> dict[str, float]:
    measure, estimator, family, _, n, epsilon, intervals, fit = key
    rows, known = None if n == "full" else int(n), (intervals == "1", family)
    cell = measures.Cell(table, rows, float(epsilon), *known, asked.most_rows, estimator)
    number = asked.fits if fit == "all" else int(fit)
    return {name: float(v) for name, v in getattr(measures, measure)(cell, number).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(NAMES))
    parser.add_argument("--rows", default="1000,5000,20000,full")
    parser.add_argument("--most-rows", type=int, default=100_000, help="most rows of full")
    parser.add_argument("--epsilons", default="0.3,1,3,10")
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--family", choices=("linear", "logistic"), default="linear")
    parser.add_argument("--estimator", default="default", help="IHM, ..., or not_private")
    parser.add_argument("--measures", default="prediction", help=f"some of {','.join(MEASURES)}")
    parser.add_argument("--intervals", default="0,1", help="without (0) and with intervals (1)")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    done = known(asked.out)
    for name in asked.tables.split(","):
        missing = [key for key in cells(asked, name) if key not in done]
        if not missing:
            continue
        table = load(name, asked.data_dir, asked.family)
        for key in missing:
            started = time.perf_counter()
            try:
                found = measured(key, table, asked)
            except measures.TooFewRowsError as error:
                print(f"skipped: {error}", flush=True)
                continue
            except Exception as error:  # a failed fit is not the end of the others
                print(*key, f"FAILED: {type(error).__name__}: {str(error)[:200]}", flush=True)
                continue
            append(asked.out, key, found)
            main_ones = " ".join(f"{k}={v:.3g}" for k, v in found.items() if np.isfinite(v))
            print(*key, f"({time.perf_counter() - started:.1f} s)", main_ones[:300], flush=True)


def append(out: Path, key: tuple[str, ...], found: dict[str, float]) -> None:
    """Write the quantities of a cell at once."""
    new = not out.exists()
    with out.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow([*KEYS, "quantity", "value"])
        writer.writerows([[*key, name, f"{value:.6g}"] for name, value in found.items()])


if __name__ == "__main__":
    main()
