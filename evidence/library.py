"""Steps on the library as a whole: its size and speed, audits, budgets, forecasts and peers."""

from __future__ import annotations

import tomllib
from typing import Any

from benchmarks.classification import report as classification
from benchmarks.peers import draw as draw_peers
from evidence import library_views as views
from evidence.behaviour import ROOT
from evidence.growth import counted
from evidence.step import Step
from reproduction import performance

GROWTH = "python -m evidence.growth --out {out}"
BENCH = "python -m reproduction bench --force --out {work}/bench"
CLASSIFICATION = "python benchmarks/classification/run.py --data-dir {data} --out {out} --sets "
AUDITS = "python benchmarks/audits.py --workers 2 --out {out}"
BUDGETS = "python benchmarks/budgets.py --out {out}"
PEERS = "python benchmarks/peers.py fastmix {out}"
HUBER = "python benchmarks/inference.py --family huber --data-dir {data} --out {out}"
LOSSES = "python benchmarks/losses.py --data-dir {data} --out {out}"
#: Sets of the accuracy page that the ranges were set and tested on.
FORECAST = "python benchmarks/accuracy/run.py --data-dir {data} --out {out}"
FORECAST += " --methods 'AdaSSP, paper'"
FORECAST_SETS = " --sets sphere correlated nycflights13 black_friday california protein beijing_air"
FORECAST_SETS += " blog_feedback elevators kin40k pol rossmann bike diamonds pumadyn32nm sgemm"
FORECAST_SETS += " skillcraft wine"
FORECAST_TABLES = "python benchmarks/tables/forecast.py --data-dir {data} --out {out}"
SKETCHES = "python benchmarks/sketches.py --out {out}"
REPRODUCTION = "python -m reproduction {what} --data-dir {{data}} --out {{work}}/results"
REPORT = "python -m reproduction report {work}/results --docs {docs} --force"
#: The sources that times depend on.
CODE = ("src", "native")


def other_versions(frame: Any) -> Any:
    """Return the lines of former versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return frame[frame["version"] != project["version"]]


LIBRARY = (
    Step(
        "performance",
        "seconds of fits of all methods, by size",
        whole=(BENCH, "cp {work}/bench/performance.csv {out}"),
        quick=(BENCH + " --quick", "cp {work}/bench/performance.csv {out}"),
        sources=(*CODE, "reproduction/bench.py"),
        view=performance.view,
        figures=performance.figures,
    ),
    Step(
        "sketches",
        "seconds of sketches, and of fits with and without them",
        whole=(SKETCHES + " --rounds 3",),
        quick=(SKETCHES + " --rounds 1 --shapes 16384x128 16384x256",),
        sources=(*CODE, "benchmarks/sketches.py"),
        view=views.sketches,
        count=lambda frame: frame[frame["part"] != "sketches"]["rounds"].sum(),
    ),
    Step(
        "classification",
        "excess log-loss of logistic fits and of peers",
        whole=(
            CLASSIFICATION + "adult nycflights13 synthetic synthetic_small --trials 3",
            CLASSIFICATION + "black_friday beijing_air --trials 2 --most-rows 40000",
        ),
        quick=(CLASSIFICATION + "synthetic_small --trials 1",),
        fits=("labels",),
        kept=lambda frame: frame[frame["method"] != classification.OWN],
        view=classification.view,
        count=lambda frame: (frame["method"] == classification.OWN).sum(),
    ),
    Step(
        "audit",
        "lower bounds on epsilon by experiment",
        # `fastmix audit --all` has 4,000 to 40,000 fits on each data set.
        whole=(AUDITS + " --most-trials 2000",),
        quick=(AUDITS + " --most-trials 640 --cases AdaSSP IHM",),
        fits=(
            *("numbers", "labels", "quantile", "huber", "AdaSSP", "DPGradientDescent"),
            *("ObjectivePerturbation", "IHM", "IHM, paper", "FastIHM", "FastIHM, paper"),
        ),
        view=views.audit,
        count=lambda frame: 2 * frame["trials"].sum(),
    ),
    Step(
        "budgets",
        "how many fits a budget takes",
        whole=(BUDGETS,),
        quick=(BUDGETS,),
        fits=("budget", "labels", "persons", "quantile", "huber", "IHM", "AdaSSP"),
        view=views.budgets,
        count=lambda frame: 0,
    ),
    Step(
        "budget_risks",
        "risk of fits that are calibrated for a budget",
        whole=(BUDGETS + " --data-dir {data} --trials 10",),
        quick=(BUDGETS + " --data-dir {data} --trials 1 --sets wine,insurance",),
        fits=("budget", "numbers", "table"),
        view=views.budget_risks,
        count=lambda frame: 2 * frame["trials"].sum(),
    ),
    Step(
        "peers",
        "error that fits of flights add, beside diffprivlib",
        whole=(PEERS,),
        quick=(PEERS + " --repetitions 1 --epsilons 1",),
        fits=("numbers", "IHM", "FastIHM", "AdaSSP"),
        kept=lambda frame: frame[~frame["method"].str.startswith("fastmix")],
        view=views.peers,
        figures=draw_peers,
        count=lambda frame: frame["method"].str.startswith("fastmix").sum(),
    ),
    Step(
        "huber",
        "intervals of Huber fits against the truth",
        whole=(HUBER + " --fits 12 --sets california,bike,protein,elevators",),
        quick=(HUBER + " --fits 2 --rows 20000 --sets california",),
        fits=("huber",),
        view=views.huber,
        count=lambda frame: 2 * frame["fits"].sum(),
    ),
    Step(
        "forecast",
        "excess risk of the published AdaSSP against its forecast",
        whole=(FORECAST + FORECAST_SETS + " --trials 8",),
        quick=(FORECAST + " --trials 1 --sets california wine",),
        fits=("AdaSSP, paper",),
        summary=views.forecast_cells,
        view=views.forecast,
        count=lambda frame: frame["trials"].sum(),
    ),
    Step(
        "forecast_losses",
        "excess loss of logistic, quantile and Huber fits against its forecast",
        whole=(LOSSES + " --trials 2",),
        quick=(LOSSES + " --trials 1 --most-rows 1000 --families huber",),
        fits=("labels", "quantile", "huber"),
        view=views.forecast_losses,
        count=lambda frame: frame["trials"].sum(),
    ),
    Step(
        "forecast_tables",
        "error and intervals of tables with categories against their rehearsal",
        whole=(FORECAST_TABLES,),
        quick=(FORECAST_TABLES + " --tables insurance --families linear",),
        fits=("table", "table, no intervals", "labels of a table"),
        view=views.forecast_tables,
        count=lambda frame: frame["fits"].sum(),
    ),
    Step(
        "reproduction",
        "the paper's experiments",
        whole=(REPRODUCTION.format(what="all"), REPORT),
        quick=(REPRODUCTION.format(what="all --quick"), REPORT),
        fits=("IHM", "IHM, paper", "FastIHM", "FastIHM, paper", "AdaSSP", "numbers"),
        view=lambda frame: {},
        own=("reproduction/runs.csv", "reproduction.md"),
        count=lambda frame: 0,
        separate=True,
    ),
    # The last one, because steps before it may be mended while they run.
    Step(
        "growth",
        "lines, modules, time to import and wheel of the library",
        whole=(GROWTH,),
        quick=(GROWTH + " --times 1 --no-wheel",),
        sources=CODE,
        exact=counted,
        kept=other_versions,
        view=views.growth,
        count=lambda frame: 0,
    ),
)
