"""Rehearsals: plans of tables with categories beside fits of generated tables."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import fastmix
from fastmix import BudgetAccountant, PrivateLinearRegression
from fastmix.planning import FitPlan
from fastmix.planning.rehearsal import MOST_ROWS, rehearse

pytestmark = pytest.mark.filterwarnings("ignore")
BOUNDS = """
[target]
stay = { bounds = [0, 20], unit = "days" }
[features]
age = [0, 100]
ward = ["a", "b", "c", "d", "e", "f"]
sex = ["f", "m"]
"""


def table(n, seed=0):
    """Return a table that the rehearsal does not know: even levels, normal residuals."""
    rng = np.random.default_rng(seed)
    ward, sex = rng.choice(list("abcdef"), n), rng.choice(["f", "m"], n)
    age = rng.uniform(0.0, 100.0, n)
    stay = 6.0 + (ward == "b") - 2.0 * (ward == "e") + 0.06 * age + rng.normal(0.0, 2.0, n)
    return pd.DataFrame({"age": age, "ward": ward, "sex": sex, "stay": stay})


@pytest.mark.parametrize(("n", "epsilon"), [(2_000, 0.3), (2_000, 3.0), (20_000, 1.0)])
def test_a_plan_is_near_the_fit_of_another_table(n, epsilon, tmp_path):
    """Within a factor of 3 of the mean of six fits; the seeds are fixed."""
    file = tmp_path / "b.toml"
    file.write_text(BOUNDS)
    given = {"bounds": file, "epsilon": epsilon, "delta": 1e-8, "inference": True}
    squares, known = [], []
    for seed in range(6):
        frame = table(n, seed)
        exact = PrivateLinearRegression(**{**given, "epsilon": np.inf, "inference": False})
        model = PrivateLinearRegression(**given, random_state=seed).fit(frame)
        rest = model.predict(frame) - exact.fit(frame).predict(frame)
        squares.append(np.mean(rest**2))
        lines = [line for line in model.summary().lines if line.name != "intercept"]
        known.append(sum(line.identified for line in lines))
    sizes = {"categories": [7, 3], "bounds_y": (0, 20), "inference": True, "spread": 2.0}
    made = fastmix.plan(n, 9, epsilon, 1e-8, r2=0.5, **sizes)
    assert 1.0 / 3.0 < made.asked.typical / np.sqrt(np.mean(squares)) < 3.0
    assert abs(made.asked.known - np.mean(known)) <= 3.0
    assert made.asked.effects == 7


def test_a_rehearsal_charges_nothing_and_reads_nothing():
    model = PrivateLinearRegression(delta=1e-8, bounds_y=(-1, 1), inference=True)
    model._dummies = ((0, 1, 2),)
    with BudgetAccountant(1e-3, 1e-9) as budget:
        found = rehearse(model, 1_000, 4, spread=0.2, r2=0.5)
        assert len(budget) == 0
    assert found == rehearse(model, 1_000, 4, spread=0.2, r2=0.5)  # the same, always
    assert not hasattr(model, "coef_")
    assert model.random_state is None


def test_a_rehearsal_does_not_use_up_the_warning_of_seeded_noise(monkeypatch):
    monkeypatch.setattr("fastmix.random._told", False)
    fastmix.plan(1_000, 4, bounds_y=(-1, 1), categories=[4])
    assert not fastmix.random._told


def test_a_large_table_is_rehearsed_by_few_rows():
    """The noise beside the rows is that of the large table."""
    given = {"bounds_y": (-1, 1), "inference": False, "categories": [4]}
    few = fastmix.plan(MOST_ROWS, 5, 10.0, 1e-10, **given)
    many = fastmix.plan(10 * MOST_ROWS, 5, 0.9, 1e-10, **given)
    assert many.asked.typical == pytest.approx(few.asked.typical, rel=0.5)
    more = fastmix.plan(1_000 * MOST_ROWS, 5, 0.9, 1e-10, **given)
    assert more.asked.typical < 0.1 * many.asked.typical


@pytest.mark.parametrize("family", ["linear", "logistic", "quantile", "huber"])
def test_families_and_persons_have_rehearsals(family):
    given = {"classes": (0, 1)} if family == "logistic" else {"bounds_y": (0, 10)}
    given |= {"family": family, "persons": 2_000, "categories": [4]}
    made = fastmix.plan(4_000, 6, 3.0, **given)
    assert 0.0 < made.asked.low < made.asked.typical < made.asked.high
    if family == "quantile":  # it has intervals only when they are asked for
        assert made.asked.known is None
    else:
        assert 0 < made.asked.known <= made.asked.effects == 5
    assert len(made.methods) == 1
    assert fastmix.plan(4_000, 6, 3.0, inference=False, **given).asked.known is None


def test_a_dry_run_says_how_many_effects_have_an_interval(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.toml").write_text(BOUNDS)
    table(3_000).to_csv("t.csv", index=False)
    code, out, err = run("fit t.csv --target stay --bounds b.toml --epsilon 3 --dry-run")
    assert (code, err) == (0, "")
    assert "3,000 rows, 9 features (2 categories), epsilon 3" in out
    assert "effects are expected to have an interval." in out
    assert "without the category of 7 levels" in out
    told = json.loads(run("plan --rows 3000 --bounds b.toml --epsilon 3 --spread 2 --json")[1])
    assert (told["asked"]["effects"], told["unit"]) == (7, "days")
    code, _, err = run("plan --rows 10 --columns 3 --categories 2,x")
    assert (code, "numbers of levels" in err) == (2, True)
    code, _, err = run("plan --rows 10 --columns 3 --categories 9")
    assert (code, "at most 3 columns" in err) == (2, True)


def test_a_plan_of_a_fit_has_its_warnings_only():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = PrivateLinearRegression(delta=1e-8, bounds_y=(-1, 1), inference=True)
        model._dummies = ((0, 1, 2),)
        assert FitPlan(model, 50_000, 4).warnings == ()
    assert found == []
