"""Plans: those of the fit that will run, in the units of the target."""

import itertools
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from sklearn.base import clone

import fastmix
from fastmix import (
    IHM,
    LowAccuracyWarning,
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
)
from fastmix.engine import Sizes, Target, plan_fit
from fastmix.engine.forecast import outlook
from fastmix.engine.population import Population
from fastmix.estimators import FAMILIES
from fastmix.paper import METHODS
from fastmix.planning import FitPlan

OTHERS = ("logistic", "quantile", "huber")
LOSSES = {"logistic": "log-loss", "quantile": "pinball loss", "huber": "error"}


@pytest.fixture(scope="module")
def made():
    given = {"bounds_y": (0, 200), "target": "<income>", "unit": "EUR"}
    return fastmix.plan(5_000, 4, 0.7, 1e-6, **given)


def test_errors_are_the_forecast_in_the_units_of_the_target(made):
    method = METHODS[made.method]()
    sizes = Sizes(5_000, 5, True, True)
    planned = plan_fit(method, sizes, Target(0.7, 1e-6), inference=True)
    expected = outlook(method, planned, 5_000, 5)
    for side in ("low", "typical", "high"):
        risk = getattr(expected, side)
        assert getattr(made.asked, side) == pytest.approx(100.0 * math.sqrt(risk))
    assert made.useless == pytest.approx(100.0 * math.sqrt(expected.nothing))


def test_what_other_choices_give(made):
    assert [e.epsilon for e in made.by_epsilon] == [0.1, 0.3, 0.7, 1.0, 3.0, 10.0]
    typical = [e.typical for e in made.by_epsilon]
    assert typical == sorted(typical, reverse=True)
    assert typical[2] == made.asked.typical
    rows, bounds, columns, alone = made.others
    assert alone.what == "without intervals"
    assert alone.typical < made.asked.typical
    assert rows.typical < made.asked.typical
    assert bounds.typical == pytest.approx(made.asked.typical / 2)
    assert bounds.what == "<income> within bounds half as wide"
    assert columns.what == "2 of 4 columns"
    assert made.to_dict()["by_epsilon"][2]["typical"] == made.asked.typical


def test_the_page_stands_alone_and_its_picture_is_whole(made):
    page = made.page()
    assert "<income>" not in page
    assert "&lt;income&gt;" in page
    assert "http" not in page
    chart = page[page.index("<svg") : page.index("</figure>")]
    labels = list(ET.fromstring(f"<div>{chart.rpartition('</svg>')[0]}</svg></div>").iter("text"))
    assert len(labels) > 8
    for text in labels:  # places are percentages
        assert 0 <= float(text.get("x").rstrip("%")) <= 100, text.text
        assert 0 <= float(text.get("y").rstrip("%")) <= 100, text.text
    assert "EUR" in str(made)
    assert made._repr_html_().count("<tr>") == 2 + 6 + 4 + 5


MODELS = [
    PrivateLinearRegression(),
    PrivateLinearRegression(inference=True),
    IHM(inference=True),
    PrivateLinearRegression(score_share=0.1),
    PrivateLinearRegression(public_rows=False, delta=1e-8),
    IHM(variant="paper"),
    PrivateLogisticRegression(classes=[0.0, 1.0], inference=True),
    PrivateLogisticRegression(classes=[0, 1, 2]),
    PrivateQuantileRegressor(quantile=0.9),
    PrivateHuberRegressor(inference=True),
]


COUNTED = [
    (model, population)
    for model in (PrivateLinearRegression(), PrivateQuantileRegressor(quantile=0.9))
    for population in (Population(max_weight=2.0), Population(rows_per_person=7))
]


@pytest.mark.parametrize(
    ("model", "population"), [*((model, Population()) for model in MODELS), *COUNTED], ids=repr
)
def test_the_plan_is_that_of_the_fit_that_runs(model, population):
    model = clone(model)
    model._population = population
    n, d, persons = 20_000, 4, 5_000 if population.persons else None
    made = FitPlan(model, n, d, persons)
    method, planned = model._planned(persons or n, d)
    assert made._planned[1].spent.epsilon == planned.spent.epsilon
    assert made.outlook == outlook(method, planned, persons or n, d + 1)
    assert made.method == method.name
    assert "Warning" not in str(made)


def test_what_is_released_beside_the_coefficients_costs_accuracy():
    alone = fastmix.plan(20_000, 4, inference=False)
    for beside in (
        {"score_share": 0.3},
        {"max_weight": 1.0},
        {"public_rows": False, "delta": alone.delta},
    ):
        made = fastmix.plan(20_000, 4, inference=False, **beside)
        assert made.asked.low > alone.asked.low, beside
    made = fastmix.plan(20_000, 4)
    assert made.asked.low > alone.asked.low
    assert "with intervals" in str(made)
    assert made.others[-1] == alone.error("without intervals")
    others = {"ihm", "fast_ihm", "adassp", "objective"}
    assert {each.method for each in made.methods} == {"adaptive", *others}


def test_the_choice_is_that_of_auto():
    rng = np.random.default_rng(0)
    for d in (3, 499):
        X, y = rng.uniform(-1, 1, (600, d)), rng.uniform(-1, 1, 600)
        model = PrivateLinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=0)
        assert fastmix.plan(600, d).method == model.fit(X, y).method_
        assert model.method_ == "adaptive"
    assert fastmix.plan(1000, 3, method="adassp").method == "adassp"


@pytest.mark.parametrize("family", FAMILIES)
def test_more_rows_and_more_budget_cost_less(family):
    sizes = ((1000, 0.3), (10_000, 0.3), (10_000, 3.0), (1_000_000, 3.0))
    errors = [fastmix.plan(n, 10, epsilon, family=family).asked for n, epsilon in sizes]
    for few, many in itertools.pairwise(errors):
        assert many.low < few.low
        assert many.typical < few.typical
        assert many.high <= few.high
    for each in errors:
        assert 0.0 < each.low < each.typical < each.high


def test_a_plan_reads_well():
    made = fastmix.plan(2**17, 90, epsilon=1.0)
    text = str(made)
    assert "131,072 rows, 90 features, epsilon 1" in text
    assert "1,000 rows, 1 feature, epsilon 1" in str(fastmix.plan(1000, 1))
    assert made.reason in text
    assert made.delta == 2.0**-34
    for row in made.table():
        assert row["seconds"] > 0.0
        assert row["memory_mib"] > 0.0
        assert 0.0 < row["error_low"] < row["error"] < row["error_high"]
    assert f"about {made.outlook.lost:.2g} of what a model could explain" in text
    assert "bounds [-1, 1]" in text


@pytest.mark.parametrize("family", OTHERS)
def test_a_plan_of_a_family_reads_well(family):
    made = fastmix.plan(100_000, 20, family=family)
    assert (made.method, made.family, len(made.methods)) == (family, family, 1)
    text = str(made)
    assert LOSSES[family] in text
    assert "least squares" not in text
    assert "no use" in text
    assert 0.0 < made.seconds < 10.0
    assert "<svg" in made.page()


def test_a_logistic_plan_counts_classes():
    two, many = (fastmix.plan(100_000, 20, family="logistic", classes=range(k)) for k in (2, 5))
    assert many.asked.typical > two.asked.typical
    assert many.seconds == pytest.approx(5.0 * two.seconds)


def test_units_of_other_losses():
    sizes, ends = (20_000, 6), (0.0, 50.0)
    losses = fastmix.plan(*sizes, family="logistic", target="sick")
    assert losses.asked.typical == losses.outlook.typical
    assert losses.useless == losses.outlook.nothing
    points = 100.0 * math.sqrt(losses.outlook.typical / 2.0)
    assert f"off by at most {points:.2g} percentage points" in str(losses)
    assert [each.what for each in losses.others] == [
        "twice the rows",
        "3 of 6 columns",
        "without intervals",
    ]
    given = {"quantile": 0.9, "bounds_y": ends, "unit": "EUR"}
    pinball = fastmix.plan(*sizes, family="quantile", **given)
    assert pinball.asked.high == pytest.approx(25.0 * pinball.outlook.high)
    assert "EUR to the mean pinball loss" in str(pinball)
    robust = fastmix.plan(*sizes, family="huber", bounds_y=ends)
    assert robust.asked.low == pytest.approx(25.0 * math.sqrt(robust.outlook.low))


def test_the_warning_and_the_plan_say_the_same_share():
    """Plans used to compare errors with the spread of the target, warnings with the signal."""
    for n in (300, 1000, 3000, 10_000):
        made = fastmix.plan(n, 10, 0.3)
        assert bool(made.warnings) == (made.outlook.lost >= 0.5)
        assert (made.asked.typical >= made.useless) == (made.outlook.lost == 1.0)


def test_a_fit_of_persons_warns_of_too_few_persons():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (600, 5)), rng.uniform(-1, 1, 600)
    model = PrivateLinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1))
    with pytest.warns(LowAccuracyWarning) as found:
        model.fit(X, y, groups=np.arange(600) % 20, max_rows_per_group=30)
    (planned,) = FitPlan(model, 600, 5, 20).warnings
    assert [str(w.message) for w in found] == [planned]
    assert planned.startswith("n=20 persons are too few")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be"),
        ({"d": 0}, "d must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": np.inf}, "epsilon must be finite"),
        ({"method": "magic"}, "method must be"),
        ({"method": "dp_gd"}, "method must have a forecast"),
        ({"bounds_y": (1, 0)}, "width of bounds_y must"),
        ({"eigenvalues": [1.0, 2.0]}, "eigenvalues must be 4"),
        ({"eigenvalues": [1.0, 1.0, 1.0, -2.0]}, "eigenvalues must be 4"),
        ({"family": "poisson"}, "family must be"),
        ({"family": "huber", "method": "ihm"}, "method must be left out"),
        ({"family": "huber", "classes": [0, 1]}, "classes must be left out"),
        ({"quantile": 0.9}, "quantile must be left out"),
        ({"family": "quantile", "quantile": 1.0}, "quantile must lie"),
        ({"max_rows_per_group": 3}, "max_rows_per_group must be None without groups"),
        ({"public_rows": False}, "delta must be given"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        fastmix.plan(**{"n": 1000, "d": 3, **options})


@pytest.mark.parametrize(
    "model",
    [
        PrivateLogisticRegression(classes=[-1.0, 1.0]),
        PrivateQuantileRegressor(bounds_y=(-1, 1)),
        PrivateHuberRegressor(bounds_y=(-1, 1)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_fits_of_too_few_rows_are_warned_of(model, recwarn):
    rng = np.random.default_rng(0)
    model.set_params(bounds_X=(-1, 1), epsilon=0.5)
    for n, warned in ((300, True), (30_000, False)):
        recwarn.clear()
        X, y = rng.uniform(-1, 1, (n, 5)), np.sign(rng.uniform(-1, 1, n))
        model.fit(X, y)
        found = [w for w in recwarn if w.category is LowAccuracyWarning]
        assert bool(found) == warned
        assert all(str(w.message).startswith("n=300 rows are too few") for w in found)
