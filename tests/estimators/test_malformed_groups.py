"""Malformed columns of ids: refused before a charge and without a word about them, or right."""

import warnings
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from fastmix import BudgetAccountant, ObjectivePerturbation
from fastmix.data.persons import InvalidGroupError
from fastmix.engine.population import Population

SECRET = "Rumpelstilzchen"
GOOD = {
    "integers": [1, 2, -3, 0, 2**62, 7],
    "text": [SECRET, f"{SECRET} 2", "a", "ä", "1", "nan", "\ud800"],
}
BAD = [None, np.nan, "", "  ", 1.5, True, b"x", 2**70, np.inf, Decimal("NaN"), 1 + 2j, object(), ()]


def column(rng):
    """Return a column of ids, and the number of persons in it; None if it must be refused."""
    n = int(rng.integers(1, 13))
    kind = str(rng.choice(list(GOOD)))
    pool = GOOD[kind]
    style = rng.choice(["few", "one", "distinct", "bad", "mixed", "shape"], p=[0.3, *[0.14] * 5])
    if style == "one":
        ids = [pool[int(rng.integers(len(pool)))]] * n
    elif style == "distinct":
        ids = list(range(n)) if kind == "integers" else [f"{SECRET} {i}" for i in range(n)]
    else:
        ids = [pool[int(rng.integers(len(pool)))] for _ in range(n)]
    persons = len(set(ids))
    if style == "bad":
        ids[int(rng.integers(n))] = BAD[int(rng.integers(len(BAD)))]
        persons = None
    if style == "mixed" and n > 1:
        other = GOOD["text" if kind == "integers" else "integers"]
        ids[0], ids[1] = pool[0], other[int(rng.integers(len(other)))]
        persons = None
    if style == "shape":
        shapes = [ids * 2, ids[:-1], [[each] for each in ids], 5, "ids", {1: 2}]
        ids, persons = shapes[int(rng.integers(len(shapes)))], None
        return ids, persons, n
    return ids, persons, n


def dressed(ids, persons, rng):
    """Return the column as what users have: lists, arrays, pandas of several kinds."""
    if not isinstance(ids, list) or any(isinstance(each, (list, tuple)) for each in ids):
        return ids
    form = rng.choice(["list", "object", "series", "category", "nullable", "array"])
    if form == "object":
        made = np.empty(len(ids), dtype=object)
        made[:] = ids
        return made
    if form == "series":
        return pd.Series(ids, dtype=object)
    if persons is None or "\ud800" in ids:  # which Arrow cannot hold
        return ids
    if form == "category":
        return pd.Series(pd.Categorical(ids))
    if form == "nullable":
        return pd.Series(ids, dtype="Int64" if isinstance(ids[0], int) else "string")
    if form == "array" and isinstance(ids[0], int):
        return np.array(ids)
    return ids


class Counter(BudgetAccountant):
    """A budget that counts its charges, without a ledger on a disk."""

    charged = 0

    def check(self, spent, **given):
        pass

    def spend(self, spent, **given):
        assert SECRET not in repr((spent, given))
        self.charged += 1


def fitted(model, ids, X, y):
    """Return the number of persons in a fit, or the error that refused it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, y, groups=ids, max_rows_per_group=2).privacy_.data["n_persons"]
    except (ValueError, TypeError) as error:
        return error


def attack(count, seed):
    """Fit random columns of ids; return how many were fitted, and how many were refused."""
    rng = np.random.default_rng(seed)
    budget = Counter(1.0, 1e-3)
    model = ObjectivePerturbation(bounds_X=(-1, 1), bounds_y=(-1, 1), delta=1e-6, accountant=budget)
    model._population = Population(rows_per_person=2)
    model._planned = cache(model._planned)  # which does not depend on ids
    for done in range(count):
        ids, persons, n = column(rng)
        before = budget.charged
        X, y = rng.uniform(-1, 1, (n, 1)), rng.uniform(-1, 1, n)
        found = fitted(model, dressed(ids, persons, rng), X, y)
        if persons is None:
            assert isinstance(found, Exception), (done, ids)
            assert SECRET not in str(found)
        else:
            assert found == persons, (done, ids)
        assert budget.charged - before == (persons is not None)
    return budget.charged, count - budget.charged


def test_two_hundred_columns():
    assert min(attack(200, 0)) > 50


@pytest.mark.slow
def test_ten_thousand_columns():
    assert min(attack(10_000, 1)) > 3000


@pytest.mark.slow
@pytest.mark.parametrize("ids", [np.arange(10**6), np.zeros(10**6, dtype=int)], ids=["all", "one"])
def test_a_million_ids_are_fitted(ids):
    budget = BudgetAccountant(5.0, 1e-3)
    X = np.linspace(-1, 1, len(ids))[:, None]
    model = ObjectivePerturbation(bounds_X=(-1, 1), bounds_y=(-1, 1), delta=1e-6, accountant=budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, 0.5 * X[:, 0], groups=ids, max_rows_per_group=3)
    assert model.privacy_.data["n_persons"] == len(np.unique(ids))
    assert len(budget) == 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 2]),
        pa.array(["a", None, "b"]),
        pa.array(["a", "", SECRET]),
        pa.array([1.5, 2.0, 3.0]),
        pa.array([1.0, float("nan"), 3.0]),
        pa.array([True, False, True]),
        pa.array([Decimal(1), Decimal(2), Decimal(3)]),
        pa.array([[1], [2], [3]]),
        pa.array([b"a", b"b", b"c"]),
        pa.array([b"a", b"\xff", b"c"]).view(pa.string()),
        pa.array([1, 2, 2**24], pa.float32()),
        pa.array([0, 1, 2], pa.timestamp("s")),
    ],
    ids=lambda values: str(values.type),
)
def test_columns_of_files(values, tmp_path):
    table = pa.table({"x": [0.1, 0.2, 0.3], "y": [0.1, 0.2, 0.3], "who": values})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    budget = BudgetAccountant(5.0, 1e-3)
    model = ObjectivePerturbation(bounds_X=(-1, 1), bounds_y=(-1, 1), delta=1e-6, accountant=budget)
    with pytest.raises(InvalidGroupError) as caught:
        model.fit_parquet(tmp_path / "t.parquet", "y", ["x"], groups="who", max_rows_per_group=2)
    assert SECRET not in str(caught.value)
    assert len(budget) == 0


@pytest.mark.parametrize("value", [None, 0.2])
@pytest.mark.parametrize("ids", [["p", "q", "r"], [1, 2, 3]])
def test_a_record_that_is_dropped_decides_on_no_error(value, ids, tmp_path):
    """Nor does a block of it alone, which leaves no ids."""
    table = pa.table({"x": pa.array([0.1, value, 0.3]), "y": [0.1, 0.2, 0.3], "who": ids})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    bounds = {"target": {"y": [0, 1]}, "features": {"x": [0, 1]}, "missing": {"rule": "drop"}}
    model = ObjectivePerturbation(bounds=bounds, delta=1e-6)
    model.fit_parquet(tmp_path / "t.parquet", groups="who", max_rows_per_group=2)
    assert model.privacy_.data["n_persons"] == (2 if value is None else 3)
