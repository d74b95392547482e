"""Plans of logistic, quantile and robust fits: forecasts against fits, and what they say."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import fastmix
from fastmix import (
    LowAccuracyWarning,
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
)
from fastmix.methods import Sizes, Target, plan_fit
from fastmix.planning import dry_run, outlook
from fastmix.planning.families import FAMILIES, Family

TABLE = Path(__file__).parents[2] / "docs" / "forecast_losses.csv"
OTHERS = FAMILIES[1:]


def inside(used_for, wanted=lambda row: True):
    """Tell which measured excess losses of docs/forecast_losses.csv lie inside their range."""
    found = []
    with TABLE.open(newline="") as file:
        for row in filter(wanted, csv.DictReader(file)):
            if row["used_for"] != used_for:
                continue
            n, columns = int(row["rows"]), int(row["features"]) + 1
            name, *quantile = row["family"].split()
            method = Family(name, quantile=float(*quantile or [0.5])).method(name)
            target = Target(float(row["epsilon"]), 1.0 / n**2)
            plan = plan_fit(method, Sizes(n, columns, True, True), target)
            expected = outlook(method, plan, n, columns)
            found.append(expected.low <= float(row["excess_risk"]) <= expected.high)
    return found


def test_ranges_hold_on_sets_that_did_not_set_them():
    found = inside("testing", lambda row: row["epsilon"] == "1.0")
    assert len(found) == 16
    assert np.mean(found) > 0.8


@pytest.mark.slow
def test_all_ranges_of_the_documentation():
    assert np.mean(inside("setting")) > 0.9
    assert np.mean(inside("testing")) > 0.8


@pytest.mark.parametrize("family", OTHERS)
def test_more_rows_and_more_budget_cost_less(family):
    sizes = ((1000, 0.3), (10_000, 0.3), (10_000, 3.0), (1_000_000, 3.0))
    found = [fastmix.plan(n, 10, epsilon, family=family).chosen.outlook for n, epsilon in sizes]
    typical = [each.typical for each in found]
    assert typical == sorted(typical, reverse=True)
    for each in found:
        assert 0.0 < each.low < each.typical < each.high


@pytest.mark.parametrize("family", OTHERS)
def test_a_plan_of_a_family_reads_well(family):
    planned = fastmix.plan(100_000, 20, family=family)
    assert (planned.method, planned.family, len(planned.methods)) == (family, family, 1)
    text = str(planned)
    assert planned._family.measure in text
    assert "least squares" not in text
    assert 0.0 < planned.chosen.seconds < 10.0
    assert planned._repr_html_().count("<tr>") == 2


def test_a_logistic_plan_counts_classes():
    two, many = (fastmix.plan(100_000, 20, family="logistic", n_classes=k) for k in (2, 5))
    assert many.chosen.outlook.typical > two.chosen.outlook.typical
    assert many.chosen.seconds == pytest.approx(5.0 * two.chosen.seconds)


def test_errors_of_a_dry_run():
    sizes = 20_000, 6
    losses = dry_run(*sizes, family="logistic", target="sick")
    expected = fastmix.plan(*sizes, family="logistic").chosen.outlook
    assert losses.asked.typical == expected.typical
    assert losses.useless == expected.nothing
    points = 100.0 * math.sqrt(expected.typical / 2.0)
    assert f"off by at most {points:.2g} percentage points" in losses.headline()
    assert [each.what for each in losses.others] == ["twice the rows", "3 of 6 columns"]
    ends = (0.0, 50.0)
    pinball = dry_run(*sizes, ends, family="quantile", quantile=0.9, unit="EUR")
    expected = fastmix.plan(*sizes, family="quantile", quantile=0.9).chosen.outlook
    assert pinball.asked.high == pytest.approx(25.0 * expected.high)
    assert "EUR to the mean pinball loss" in pinball.headline()
    robust = dry_run(*sizes, ends, family="huber")
    expected = fastmix.plan(*sizes, family="huber").chosen.outlook
    assert robust.asked.low == pytest.approx(25.0 * math.sqrt(expected.low))
    assert robust.useless == pytest.approx(robust.spread)
    for each in (losses, pinball, robust):
        assert each.title in each.page()
        assert "no use" in str(each)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "poisson"}, "family must be"),
        ({"family": "huber", "method": "ihm"}, "method must be 'auto'"),
        ({"family": "huber", "n_classes": 3}, "n_classes must be 2"),
        ({"family": "logistic", "n_classes": 1}, "n_classes must be"),
        ({"quantile": 0.9}, "quantile must be 0.5"),
        ({"family": "quantile", "quantile": 1.0}, "quantile must lie"),
    ],
)
def test_bad_arguments_are_named(options, message):
    for made in (fastmix.plan, lambda n, d, **given: dry_run(n, d, (0, 1), **given)):
        with pytest.raises(ValueError, match=message):
            made(1000, 3, **options)


def test_targets_of_other_families_need_bounds():
    with pytest.raises(ValueError, match="bounds_y must be given unless family is logistic"):
        dry_run(1000, 3, family="quantile")


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


@pytest.mark.parametrize("family", OTHERS)
def test_the_command(run, family, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(f"plan --rows 20000 --columns 4 --family {family}")
    assert (code, err) == (0, "")
    assert f"{family}: the method of this family" in out
    (tmp_path / "b.toml").write_text("[target]\ny = [0, 1]\n[features]\na = [0, 1]\n")
    line = f"plan --rows 20000 --bounds b.toml --family {family} --out plan.html"
    code, out, err = run(line)
    assert (code, err) == (0, "")
    assert "privacy is expected to add" in out
    assert "<svg" in (tmp_path / "plan.html").read_text()
