"""Results read back: typed rows, means and 95% intervals."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.experiments import load_config

__all__ = ["UNKNOWN", "Conclusion", "Curve", "Mean", "Summary", "read_summary", "write_means"]

#: The reason of a claim that does not hold, where we have none.
UNKNOWN = "we do not know."

#: Tables of results, each line with its run.
_TABLES = (
    *("figure1", "figure2", "speed", "airline", "datasets"),
    *("sketches", "hessians", "orders", "crossover"),
)

#: Those of processor time, which a busy machine lengthens.
_TIMED = ("speed", "orders", "crossover")


class Conclusion(NamedTuple):
    """One claim: where it belongs, what is claimed, whether results agree, and how we know.

    ``agrees`` is None for a comparison that the results do not allow; ``why`` is the reason of a
    claim that does not hold.
    """

    topic: str
    claim: str
    agrees: bool | None
    finding: str
    why: str = UNKNOWN

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.agrees is None:
            return "Alarm"
        return "Holds" if self.agrees else "Does not hold"

    @property
    def reason(self) -> str:
        """The reason, where there is something to give a reason for."""
        return f" Why: {self.why}" if self.agrees is False else ""


class Mean(NamedTuple):
    """A mean with the half-width of its 95% interval, 1.96 std / sqrt(trials).

    One trial has no interval: its half-width is infinite, so that nothing is concluded from it.
    """

    value: float
    half: float
    trials: int

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.value + self.half


#: Epsilon (None for a method that has none) to the mean excess risk.
Curve = dict[float | None, Mean]


@dataclass(frozen=True)
class Summary:
    """What a folder of results says.

    Attributes
    ----------
    figure1 : dict
        n to curve to epsilon to sigma.
    risk : dict
        Experiment to set to (method, ratio) to `Curve`.
    eta : dict
        Experiment to set to (method, ratio) to epsilon to the largest eta of all trials.
    seconds : dict
        Experiment to set to (method, ratio) to the median of timed fits.
    datasets : dict
        Set to its statistics.
    sizes : dict
        Experiment to set to (n, d).
    draws : dict
        Synthetic set to the least squares risk of each draw.
    sketches, orders, crossover : list of dict
        Rows of the experiments of these names, numbers as numbers.
    hessians : dict
        Set to (variant, ratio) to `Curve`.
    origins : dict
        Table and set to the commits and days of the runs behind it, in words; of times, also the
        load of the machine as they began, and how many fits were timed.
    runs : list of dict
        Runs with versions and machine.
    config : dict
        The configuration.
    """

    figure1: dict[int, dict[str, dict[float, float]]]
    risk: dict[str, dict[str, dict[tuple[str, int | None], Curve]]]
    eta: dict[str, dict[str, dict[tuple[str, int | None], dict[float, float]]]]
    seconds: dict[str, dict[str, dict[tuple[str, int | None], float]]]
    datasets: dict[str, dict[str, float]]
    sizes: dict[str, dict[str, tuple[int, int]]]
    draws: dict[str, list[float]]
    sketches: list[dict[str, Any]]
    orders: list[dict[str, Any]]
    crossover: list[dict[str, Any]]
    hessians: dict[str, dict[tuple[str, int | None], Curve]]
    origins: dict[tuple[str, str], str]
    runs: list[dict[str, str]]
    config: dict[str, Any]


def read_summary(folder: Path) -> Summary:
    """Read a folder of results.

    Parameters
    ----------
    folder : Path
        Folder that ``python -m reproduction`` wrote.

    Returns
    -------
    Summary
        Its contents; experiments that were not run are empty.
    """
    if not (folder / "runs.csv").exists():
        raise FileNotFoundError(f"{folder} holds no results; run python -m reproduction first.")
    figure1: dict[int, dict[str, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in _rows(folder, "figure1"):
        figure1[int(row["n"])][row["curve"]][float(row["epsilon"])] = float(row["sigma"])
    risk, eta, sizes, seconds = {}, {}, {}, {}
    timed = _rows(folder, "speed")
    for experiment in ("figure2", "airline"):
        rows = _rows(folder, experiment)
        risk[experiment], eta[experiment] = _risk(rows), _eta(rows)
        if not rows:  # the tables beside the page of the documentation have means only
            rows = [row for row in _rows(folder, "risk") if row["experiment"] == experiment]
            risk[experiment], eta[experiment] = _kept(rows), _eta(rows)
        sizes[experiment] = {row["set"]: (int(row["n"]), int(row["d"])) for row in rows}
        seconds[experiment] = _medians([row for row in timed if row["experiment"] == experiment])
    datasets = {
        row["set"]: {k: float(v) for k, v in row.items() if k not in ("set", "run", "seed")}
        for row in _rows(folder, "datasets")
    }
    draws: dict[str, list[float]] = {}
    for row in _rows(folder, "draws"):
        draws.setdefault(row["set"], []).append(float(row["ols_mse"]))
    runs, kept = _rows(folder, "runs"), folder / "config.json"
    return Summary(
        draws=draws,
        sketches=[_numbers(row) for row in _rows(folder, "sketches")],
        orders=[_numbers(row) for row in _rows(folder, "orders")],
        crossover=[_numbers(row) for row in _rows(folder, "crossover")],
        hessians=_risk([{**row, "method": row["variant"]} for row in _rows(folder, "hessians")]),
        origins=_origins(folder, runs),
        figure1=figure1,
        risk=risk,
        eta=eta,
        seconds=seconds,
        datasets=datasets,
        sizes=sizes,
        runs=runs,
        config=json.loads(kept.read_text()) if kept.exists() else load_config().identity(),
    )


def write_means(summary: Summary, path: Path) -> None:
    """Write the mean excess risks as a small CSV file.

    Parameters
    ----------
    summary : Summary
        Results.
    path : Path
        The file.
    """
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = ("experiment", "set", "n", "d", "method", "ratio", "epsilon")
        writer.writerow([*names, "excess_risk", "half_width_95", "eta", "trials", "origin"])
        for experiment, sets in summary.risk.items():
            for name, methods in sets.items():
                for (method, ratio), curve in methods.items():
                    eta = summary.eta[experiment].get(name, {}).get((method, ratio), {})
                    writer.writerows(
                        [experiment, name, *summary.sizes[experiment][name], method, ratio,
                         epsilon, f"{mean.value:.6g}", f"{mean.half:.3g}",
                         None if epsilon is None else eta.get(epsilon),
                         mean.trials, summary.origins.get((experiment, name), "")]
                        for epsilon, mean in curve.items()
                    )  # fmt: skip


def _rows(folder: Path, name: str) -> list[dict[str, str]]:
    path = folder / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _numbers(row: dict[str, str]) -> dict[str, Any]:
    """Return a row with its numbers as numbers."""
    found: dict[str, Any] = {}
    for name, text in row.items():
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = text
    return found


def _origins(folder: Path, runs: list[dict[str, str]]) -> dict[tuple[str, str], str]:
    """Return where each table and set comes from: commits and days, from the record of the runs."""
    by_name = {run["run"]: run for run in runs}
    found: dict[tuple[str, str], str] = {}
    for table in _TABLES:
        used: dict[str, dict[tuple[str, str, str], None]] = {}
        repeats: dict[str, set[str]] = defaultdict(set)
        for row in _rows(folder, table):
            run = by_name[row["run"]]
            one = run.get("commit", "unknown"), run["start"][:10], run.get("load", "not known")
            used.setdefault(row.get("set", ""), {})[one] = None
            repeats[row.get("set", "")].add(row.get("repeat", ""))
        for name, runs_used in used.items():
            parts = (", ".join(dict.fromkeys(part)) for part in zip(*runs_used, strict=True))
            commits, days, loads = parts
            busy = f"; load {loads}; {len(repeats[name])} fits each" if table in _TIMED else ""
            found[table, name] = f"commit {commits}; {days}{busy}"
    for row in _rows(folder, "risk"):
        found.setdefault((row["experiment"], row["set"]), row["origin"])
    return found


def _method(row: dict[str, str]) -> tuple[str, int | None]:
    return row["method"], int(row["ratio"]) if row["ratio"] else None


def _grouped(
    rows: list[dict[str, str]], column: str
) -> dict[str, dict[tuple[str, int | None], dict[float | None, list[float]]]]:
    found: dict[str, dict[tuple[str, int | None], dict[float | None, list[float]]]] = {}
    for row in rows:
        if row[column] == "":
            continue
        curve = found.setdefault(row["set"], {}).setdefault(_method(row), {})
        epsilon = float(row["epsilon"]) if row["epsilon"] else None
        curve.setdefault(epsilon, []).append(float(row[column]))
    return found


def _risk(rows: list[dict[str, str]]) -> dict[str, dict[tuple[str, int | None], Curve]]:
    return {
        name: {
            method: {
                epsilon: _mean(values)
                for epsilon, values in sorted(curve.items(), key=lambda item: item[0] or 0.0)
            }
            for method, curve in methods.items()
        }
        for name, methods in _grouped(rows, "excess_risk").items()
    }


def _kept(rows: list[dict[str, str]]) -> dict[str, dict[tuple[str, int | None], Curve]]:
    """Return what `write_means` wrote."""
    found: dict[str, dict[tuple[str, int | None], Curve]] = {}
    for row in rows:
        curve = found.setdefault(row["set"], {}).setdefault(_method(row), {})
        mean = Mean(float(row["excess_risk"]), float(row["half_width_95"]), int(row["trials"]))
        curve[float(row["epsilon"]) if row["epsilon"] else None] = mean
    return found


def _eta(
    rows: list[dict[str, str]],
) -> dict[str, dict[tuple[str, int | None], dict[float, float]]]:
    return {
        name: {
            method: {e: max(values) for e, values in curve.items() if e is not None}
            for method, curve in methods.items()
        }
        for name, methods in _grouped(rows, "eta").items()
    }


def _medians(rows: list[dict[str, str]]) -> dict[str, dict[tuple[str, int | None], float]]:
    times: dict[str, dict[tuple[str, int | None], list[float]]] = {}
    for row in rows:
        found = times.setdefault(row["set"], {}).setdefault(_method(row), [])
        found.append(float(row["seconds"]))
    return {
        name: {method: float(np.median(values)) for method, values in methods.items()}
        for name, methods in times.items()
    }


def _mean(values: list[float]) -> Mean:
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else math.inf
    return Mean(float(np.mean(values)), 1.96 * spread / math.sqrt(len(values)), len(values))
