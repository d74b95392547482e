"""Plans: the choice of auto, and forecasts against fits."""

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest

import fastmix
from fastmix import (
    IHM,
    AdaptiveRegression,
    AdaSSP,
    FastIHM,
    ObjectivePerturbation,
    PrivateLinearRegression,
)
from fastmix.datasets import make_correlated, make_sphere
from fastmix.planning import outlook

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}
DOCS = Path(__file__).parents[2] / "docs"
ESTIMATORS = {
    "adaptive": AdaptiveRegression,
    "objective": ObjectivePerturbation,
    "ihm": IHM,
    "fast_ihm": FastIHM,
    "adassp": AdaSSP,
}


def test_the_choice_is_that_of_auto():
    rng = np.random.default_rng(0)
    for d in (3, 499):
        X, y = rng.uniform(-1, 1, (600, d)), rng.uniform(-1, 1, 600)
        model = PrivateLinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=0)
        assert fastmix.plan(600, d).method == model.fit(X, y).method_
        assert model.method_ == "adaptive"
    for d in (3, 499):
        model.set_params(inference=True)
        assert model._planned(10_000, d)[0].name == "adaptive"
    assert fastmix.plan(1000, 3, method="adassp").chosen.method == "adassp"


@pytest.mark.parametrize("make", [make_sphere, make_correlated])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_forecasts_are_of_the_right_size(make, epsilon):
    """Within a factor 3 of the mean of 4 fits, on flat and on steep spectra."""
    n, d = 2**15, 8
    X, y = make(n, d, random_state=0)
    gram = X.T @ X
    best = np.linalg.solve(gram, X.T @ y)
    planned = fastmix.plan(
        n,
        d,
        epsilon,
        fit_intercept=False,
        eigenvalues=np.linalg.eigvalsh(gram),
        theta_norm=float(np.linalg.norm(best)),
    )
    for each in planned.methods:
        risks = []
        for seed in range(4):
            model = ESTIMATORS[each.method](epsilon=epsilon, random_state=seed, **PAPER).fit(X, y)
            gap = model.coef_ - best
            risks.append(gap @ gram @ gap / n)
        assert each.outlook.low < np.mean(risks) < each.outlook.high, each.method
        assert each.outlook.high == pytest.approx(9.0 * each.outlook.low)


def inside(used_for, wanted=lambda row: True):
    """Tell which measured excess risks of docs/forecast.csv lie inside their range."""
    found = []
    with (DOCS / "forecast.csv").open(newline="") as file:
        for row in filter(wanted, csv.DictReader(file)):
            if row["used_for"] != used_for:
                continue
            n, d, intercept = int(row["rows"]), int(row["features"]), row["intercept"] == "1"
            model = ESTIMATORS[row["method"]](epsilon=float(row["epsilon"]))
            planned = model.set_params(fit_intercept=intercept)._planned(n, d)
            expected = outlook(*planned, n, d + intercept)
            found.append(expected.low <= float(row["excess_risk"]) <= expected.high)
    return found


def test_ranges_hold_on_sets_that_did_not_set_them():
    found = inside("testing", lambda row: row["method"] == "adassp" and row["epsilon"] == "1")
    assert len(found) == 12
    assert np.mean(found) > 0.9


@pytest.mark.slow
def test_all_ranges_of_the_documentation():
    assert all(inside("setting"))
    found = inside("testing")
    assert len(found) == 180
    assert np.mean(found) > 0.9


def test_more_rows_and_more_budget_cost_less():
    risks = [fastmix.plan(n, 10, epsilon).chosen.outlook for n, epsilon in (
        (1000, 0.3), (10_000, 0.3), (10_000, 3.0), (1_000_000, 3.0)
    )]  # fmt: skip
    for few, many in itertools.pairwise(risks):
        assert many.low < few.low
        assert many.typical < few.typical
        assert many.high < few.high


def test_a_plan_reads_well():
    planned = fastmix.plan(2**17, 90, epsilon=1.0)
    text = str(planned)
    assert "131,072 rows, 90 features, epsilon 1" in text
    assert planned.reason in text
    assert text.splitlines()[4].startswith("adaptive")
    assert planned._repr_html_().count("<tr>") == 6
    assert planned.delta == 2.0**-34
    for row in planned.table():
        assert row["seconds"] > 0.0
        assert row["memory_mib"] > 0.0
        assert 0.0 < row["excess_risk_low"] < row["excess_risk"] < row["excess_risk_high"]
    assert "loses about" in planned.meaning()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0, "d": 2}, "n must be"),
        ({"n": 10, "d": 2, "epsilon": 0.0}, "epsilon must be"),
        ({"n": 10, "d": 2, "epsilon": np.inf}, "epsilon must be finite"),
        ({"n": 10, "d": 2, "method": "magic"}, "method must be"),
        ({"n": 10, "d": 2, "eigenvalues": [1.0, 2.0]}, "eigenvalues must be 3"),
        ({"n": 10, "d": 1, "eigenvalues": [1.0, -2.0]}, "eigenvalues must be 2"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        fastmix.plan(**options)
