"""Audits of the fit of a table with categories, and of releases that only it makes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fastmix import PrivateLinearRegression
from fastmix.audit import audit
from fastmix.audit.case import Case, Claim, Data, Pair
from fastmix.audit.fits import Fits
from fastmix.audit.releases import release_case
from fastmix.data import ArrayRows, RowMap
from fastmix.engine import table_fit
from fastmix.engine.objective import squares
from fastmix.releases import LEVEL_COUNTS, SLOPES, Noise
from fastmix.schema.categories import Categories

#: Four categories of two levels each, in the columns of their second levels.
CATEGORIES = Categories(((0,), (1,), (2,), (3,)), 1.0)


def rare_record(n, d=4):
    """Return n records, of which the first alone is in the second levels of all categories."""
    X, y = np.zeros((n, d)), np.full(n, -1.0)
    X[:, 0] = 1.0
    X[0], y[0] = 1.0, 1.0
    absent, none = X.copy(), y.copy()
    absent[0], none[0] = 0.0, 0.0
    return Pair("one record in all second levels", Data(X, y), Data(absent, none))


class Table(PrivateLinearRegression):
    """A fit of rows whose columns are levels."""

    _categories = CATEGORIES.columns


def table_case(kind=Noise):
    """Return the case of a table's fit, by the likelihood of its transcript."""
    pair = rare_record(24)
    ends = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "data_norm": math.sqrt(4.0)}
    model = Table(epsilon=3.0, delta=0.05, inference=False, **ends)
    fit = Fits(model, pair, kind)
    spent = fit.certificate(pair.present)
    return Case(
        name="table",
        claim=Claim(spent.epsilon, spent.delta),
        pair=pair,
        draw=fit.draw,
        score=lambda values: values[:, 0],
        trials=2_000,
        quick=400,
        sealed=fit.replay,
        account=spent.spent.joint_epsilon,
    )


def test_the_audit_of_a_table_shows_at_least_a_quarter_of_epsilon():
    """And the fit publishes nothing but functions of its releases."""
    found = audit(table_case(), trials=1_500, rng=11)
    assert found.sealed
    assert found.passed
    assert found.lower >= 0.25 * found.epsilon, (found.lower, found.epsilon)


def rows_of(data):
    """Return records as they are, levels in their columns and a constant, absent ones as zeros."""
    present = data.present[:, None]
    A = np.column_stack((data.X, np.ones(len(data.X)))) * present
    rows = ArrayRows(A, RowMap(math.sqrt(5.0) * (1.0 + 1e-9)), data.y)
    rows.constant = 1.0
    return rows


GIVEN = {
    LEVEL_COUNTS: {"categories": CATEGORIES},
    SLOPES: {
        "theta": np.zeros(5),
        "loss": squares(0.3, 1e8, 1.0, 10.0),
        "transform": np.eye(5),
        "least": 0.5,
    },
}


def case_of(release, drawn):
    """Return the case of one release, of which another one may be ``drawn`` in its place."""
    return release_case(
        lambda rows, noise: noise.release(drawn, rows, sigma=2.0, **GIVEN[release]),
        name=release.name,
        pair=rare_record(6),
        rows_of=rows_of,
        delta=1e-3,
    )


def without_root(public, categories):
    """Return the sensitivity of the counts of one category, for those of all."""
    return 1.0


def tenth(release):
    """Return a tenth of the sensitivity of a release."""
    return lambda public, **given: release.sensitivity(public, **given) / 10.0


def halved(public, **given):
    """Return half the sensitivity of slopes."""
    return SLOPES.sensitivity(public, **given) / 2.0


@pytest.mark.parametrize("release", [LEVEL_COUNTS, SLOPES], ids=lambda each: each.name)
def test_releases_pass_and_show_a_quarter_of_epsilon(release):
    found = audit(case_of(release, release), trials=4_000, rng=11)
    assert found.passed
    assert found.lower >= 0.25 * found.epsilon


@pytest.mark.parametrize(
    ("release", "wrong"),
    [(LEVEL_COUNTS, without_root), (SLOPES, halved)],
    ids=["counts without the root of the categories", "half the sensitivity of slopes"],
)
def test_a_wrong_sensitivity_is_caught(release, wrong):
    found = audit(case_of(release, replace(release, sensitivity=wrong)), trials=4_000, rng=11)
    assert not found.passed
    assert found.lower > 1.05 * found.epsilon


def test_a_wrong_sensitivity_is_caught_in_the_fit_itself(monkeypatch):
    """Slopes and counts with a tenth of their noise, by the transcript of the whole fit.

    The table is so small that the fit would take no steps.
    """
    monkeypatch.setattr(table_fit, "MOST_NOISE", 1e9)
    weaker = {each: replace(each, sensitivity=tenth(each)) for each in (LEVEL_COUNTS, SLOPES)}

    class Weaker(Noise):
        def release(self, release, rows, **given):
            return super().release(weaker.get(release, release), rows, **given)

    found = audit(table_case(Weaker), trials=800, rng=11)
    assert not found.passed
