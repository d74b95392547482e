"""Bounds with labels are those of the columns with these names."""

from __future__ import annotations

import decimal

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import fastmix
from fastmix import AdaSSP, BudgetAccountant
from fastmix.data.scaling import check_target_bounds, feature_bounds

NAMES = ["age", "income", "rooms"]
LOWER, UPPER = [0.0, -1e5, 1.0], [120.0, 1e5, 9.0]
ORDER = [2, 0, 1]


def shuffled(values):
    return pd.Series({NAMES[j]: values[j] for j in ORDER})


LABELLED = {
    "Series": (shuffled(LOWER), shuffled(UPPER)),
    "dicts": (dict(shuffled(LOWER)), dict(shuffled(UPPER))),
    "one dict": {NAMES[j]: (LOWER[j], UPPER[j]) for j in ORDER},
    "mixed": (shuffled(LOWER), UPPER),
    "Series in order": (pd.Series(LOWER, NAMES), pd.Series(UPPER, NAMES)),
    "Series without labels": (pd.Series(LOWER), pd.Series(UPPER)),
}


@pytest.mark.parametrize("kind", LABELLED)
def test_labels_are_aligned(kind):
    lower, upper = feature_bounds(LABELLED[kind], 3, NAMES)
    np.testing.assert_array_equal(lower, LOWER)
    np.testing.assert_array_equal(upper, UPPER)


@pytest.mark.parametrize("kind", ["pandas", "Polars", "Arrow", "Parquet", "Dask"])
def test_in_every_table_with_names(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(LOWER, UPPER, (40, 3))
    y = rng.uniform(-1, 1, 40)
    frame = pd.DataFrame(X, columns=NAMES)
    model = AdaSSP(bounds_X=LABELLED["Series"], bounds_y=(-1, 1))
    if kind == "Parquet":
        pq.write_table(pa.Table.from_pandas(frame.assign(y=y)), tmp_path / "t.parquet")
        model.fit_parquet(tmp_path / "t.parquet")
    elif kind == "Dask":
        model.fit(dd.from_pandas(frame, npartitions=2), dd.from_pandas(pd.Series(y), npartitions=2))
    else:
        table = {"pandas": frame, "Polars": pl.DataFrame(X, schema=NAMES), "Arrow": pa.table(frame)}
        model.fit(table[kind], y)
    np.testing.assert_array_equal(model.bounds_X_, (LOWER, UPPER))
    assert model.privacy_.data["bounds_X"] == [LOWER, UPPER]


def test_columns_that_are_numbered():
    columns = [7, 3, 5]
    bounds = pd.Series({3: -3.0, 5: -5.0, 7: -7.0}), pd.Series({5: 5.0, 7: 7.0, 3: 3.0})
    lower, upper = feature_bounds(bounds, 3, columns)
    np.testing.assert_array_equal(lower, [-7, -3, -5])
    np.testing.assert_array_equal(upper, [7, 3, 5])
    # Zero to two, but the columns are labelled otherwise: by position would be a guess.
    with pytest.raises(ValueError, match=r"columns without bounds: \[7, 3, 5\]"):
        feature_bounds((pd.Series(LOWER), pd.Series(UPPER)), 3, columns)
    permuted = feature_bounds((pd.Series(LOWER), pd.Series(UPPER)), 3, ORDER)
    np.testing.assert_array_equal(permuted[0], [LOWER[j] for j in ORDER])


REFUSED = [
    ((shuffled(LOWER), shuffled(UPPER)), None, "have no labels, because the columns"),
    ({"age": (0, 1), "income": (0, 1)}, NAMES, r"bounds: \['rooms'\]; .* not columns: \[\]"),
    ((0.0, {**dict(shuffled(UPPER)), "tax": 1.0}), NAMES, r"bounds: \[\]; .* columns: \['tax'\]"),
    ((shuffled(LOWER).rename({"age": "Age"}), 1.0), NAMES, r"\['age'\]; .*columns: \['Age'\]"),
    ((pd.Series([0.0] * 3, ["age", "age", "rooms"]), 1.0), NAMES, "have each label once"),
    ((shuffled(LOWER), shuffled(UPPER)), ["age", "age", "income"], "have each name once"),
    ((pd.Series(LOWER)[ORDER], 1e6), None, "have no labels"),
]


@pytest.mark.parametrize(("bounds", "labels", "message"), REFUSED)
def test_labels_that_do_not_fit(bounds, labels, message):
    with pytest.raises(ValueError, match=message):
        feature_bounds(bounds, 3, labels)


def test_a_refusal_spends_nothing_and_names_the_columns():
    frame = pd.DataFrame(np.ones((20, 3)), columns=NAMES)
    budget = BudgetAccountant(10.0, 1e-2)
    for cls in (fastmix.IHM, AdaSSP, fastmix.PrivateLinearRegression):
        model = cls(bounds_X={"age": (0, 120)}, bounds_y=(0, 1), accountant=budget)
        with pytest.raises(ValueError, match=r"without bounds: \['income', 'rooms'\]"):
            clone(model).fit(frame, np.zeros(20))
    assert len(budget.charges) == 0


#: Pairs that are no pairs: without an order, or of labels, or of no numbers.
NO_PAIRS = [
    {-1.0, 1.0}, {0: -1.0, 1: 1.0}, "01", b"01", pd.DataFrame({"lower": [0.0], "upper": [1.0]}),
    ("0", "1"), (["0"], ["1"]), (b"0", 1), (np.datetime64(0, "s"), 1.0),
    (np.timedelta64(1, "s"), 2), (None, 1.0), (1j, 2.0), (np.ma.masked, 1.0), 3.0,
]  # fmt: skip


@pytest.mark.parametrize("bounds", NO_PAIRS, ids=repr)
def test_what_is_no_pair_of_numbers(bounds):
    with pytest.raises((TypeError, ValueError), match=r"^bounds_X must"):
        feature_bounds(bounds, 3)
    with pytest.raises((TypeError, ValueError), match=r"^bounds_y must"):
        check_target_bounds(bounds)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e101, 10**400, decimal.Decimal("NaN")])
def test_what_is_not_finite(bad):
    for pair in ((0.0, bad), (bad, 0.0), ([0.0, 0.0, bad], 1.0)):
        with pytest.raises((TypeError, ValueError), match=r"^bounds_X must"):
            feature_bounds(pair, 3)
    with pytest.raises((TypeError, ValueError), match=r"^bounds_y must"):
        check_target_bounds((0.0, bad))
