"""Tables with public bounds in Python: one object in many forms, and the same fit for each."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from fastmix import (
    IHM,
    BudgetAccountant,
    BudgetError,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PublicEncoder,
)
from fastmix.data.encode import encode, needed
from fastmix.data.read import read_columns
from fastmix.errors import DataError
from fastmix.schema import Category, Number, PublicBounds

N = 3000
PUBLIC = PublicBounds(
    Number("income", 0, 100), (Number("age", 0, 120, 40), Category("city", ("Ulm", "Bonn")))
)
TOML = """
[target]
income = [0, 100]
[features]
age = [0, 120]
city = ["Ulm", "Bonn"]
[missing]
values = { age = 40 }
"""
WHOLE = {
    "target": {"income": (0, 100)},
    "features": {"age": {"bounds": (0, 120), "missing": 40}, "city": ["Ulm", "Bonn"]},
}
FLAT = {"city": ["Ulm", "Bonn"], "age": {"bounds": [0, 120], "missing": 40}}


def frame(n=N):
    rng = np.random.default_rng(0)
    age = rng.uniform(-10, 140, n)
    age[::7] = np.nan
    city = pd.Series(rng.choice(["Ulm", "Bonn", "Rom"], n)).astype("category")
    city[::11] = None
    income = 0.5 * np.nan_to_num(age, nan=40.0) + rng.normal(0, 3, n)
    return pd.DataFrame({"unused": "x", "city": city, "income": income, "age": age})


def model(**parameters):
    return PrivateLinearRegression(epsilon=2.0, delta=1e-6, random_state=0, **parameters)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = tmp_path_factory.mktemp("frames") / "t.parquet"
    frame().to_parquet(path)
    X, y = encode(read_columns(path, *needed(PUBLIC)), PUBLIC)
    given = {"bounds_X": PUBLIC.feature_bounds(), "data_norm": PUBLIC.data_norm}
    array = model(bounds_y=(0, 100), **given)
    array._categories = PUBLIC.categories()
    return array.fit(X, y)


def same(found, expected):
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.intercept_ == expected.intercept_
    assert found.privacy_.spent == expected.privacy_.spent
    assert list(found.feature_names_in_) == ["age", "city=Bonn", "city=other"]


@pytest.mark.filterwarnings("ignore")
def test_every_form_of_the_bounds_gives_the_same_fit(tmp_path, expected):
    path = tmp_path / "people.toml"
    path.write_text(TOML)
    table = frame()
    rows = pd.DataFrame(
        {
            "lower": [0, 0, None],
            "upper": [100, 120, None],
            "missing": [None, 40, None],
            "categories": [None, None, ["Ulm", "Bonn"]],
            "role": ["target", None, None],
        },
        index=["income", "age", "city"],
    )
    named = rows.rename_axis("name").reset_index()
    forms = [path, str(path), WHOLE, PUBLIC, rows, pl.from_pandas(named)]
    for bounds in forms:
        found = model(bounds=bounds).fit(table)
        same(found, expected)
        assert found.schema_ == PUBLIC
        assert found.bounds is bounds
        assert found.bounds_X is None
        assert found.privacy_.private is expected.privacy_.private
        assert found.privacy_.data["encoding"] == PUBLIC.to_dict()
    with_y = {**FLAT, "income": (0, 100)}
    reordered = model(bounds=with_y).fit(table.drop(columns="income"), table["income"])
    assert list(reordered.feature_names_in_) == ["city=Bonn", "city=other", "age"]


@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_table_gives_the_same_fit(expected, tmp_path):
    table = frame()
    y = table["income"].to_numpy()
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    dictionary = {name: table[name] for name in table}
    for data in (table, pl.from_pandas(table), arrow, dictionary):
        found = model(bounds=WHOLE).fit(data)
        same(found, expected)
        same(model(bounds=WHOLE).fit(data, y), expected)
        np.testing.assert_array_equal(found.predict(data), found.predict(table))
    table.to_parquet(tmp_path / "t.parquet")
    chunked = model(bounds=WHOLE).fit_parquet(tmp_path / "t.parquet")
    np.testing.assert_allclose(chunked.predict(table), found.predict(table), rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_predictions_go_by_name_and_need_no_target():
    table = frame()
    found = model(bounds=WHOLE).fit(table)
    shuffled = table[["age", "city"]]
    np.testing.assert_array_equal(found.predict(shuffled), found.predict(table))
    beyond = pd.DataFrame({"age": [1e9, 120.0], "city": ["Kiel", None]})
    first, second = found.predict(beyond)
    assert first == second
    with pytest.raises(DataError, match="X has no column 'city'"):
        found.predict(table[["age"]])


@pytest.mark.filterwarnings("ignore")
def test_other_estimators_and_clones_take_bounds():
    table = frame()
    found = IHM(epsilon=5.0, delta=1e-6, bounds=WHOLE, random_state=0).fit(table)
    assert found.coef_.shape == (3,)
    assert clone(found).bounds == WHOLE
    plain = found.set_params(bounds=None, bounds_X=(0, 120), bounds_y=(0, 100))
    plain.fit(np.full((500, 2), 3.0), np.full(500, 4.0))
    assert not hasattr(plain, "schema_")


def test_the_budget_is_asked_before_a_value_is_read():
    class Unreadable(dict):
        def __getitem__(self, name):
            raise AssertionError("read")

    table = Unreadable(dict(frame().items()))
    with BudgetAccountant(0.1, 1e-6), pytest.raises(BudgetError):
        PrivateLinearRegression(bounds=WHOLE, delta=1e-7).fit(table)


@pytest.mark.parametrize(
    ("parameters", "table", "complaint"),
    [
        ({"bounds": FLAT}, None, "bounds must name the target"),
        ({"bounds": WHOLE, "bounds_y": (0, 1)}, None, "bounds_y must be None"),
        ({"bounds": WHOLE, "data_norm": 1.0}, None, "data_norm must be None"),
        ({"bounds": WHOLE}, np.zeros((5, 2)), "X must be a pandas, Polars or Arrow table"),
        ({"bounds": 3}, None, "bounds must be a file, a dict or a data frame"),
        ({"bounds": WHOLE}, {"age": [1.0], "city": ["a"]}, "X has no column 'income'"),
        (
            {"bounds": WHOLE},
            {"age": np.array(["Rumpelstilzchen"]), "city": ["a"], "income": [1.0]},
            "column 'age' must hold numbers",
        ),
        (
            {"bounds": WHOLE},
            {"age": np.ones(2) * 1j, "city": ["a", "a"], "income": [1.0, 1.0]},
            "X has a column of a type that fastmix cannot read",
        ),
        (
            {"bounds": WHOLE},
            {"age": [1.0, 2.0], "city": ["a"], "income": [1.0]},
            "X must have columns of the same length",
        ),
    ],
)
def test_what_is_refused(parameters, table, complaint):
    table = frame() if table is None else table
    with pytest.raises((ValueError, TypeError, OSError)) as raised:
        PrivateLinearRegression(**parameters).fit(table)
    assert complaint in str(raised.value)
    assert "Rumpel" not in str(raised.value)


@pytest.mark.filterwarnings("ignore")
def test_the_encoder_learns_no_value_and_works_in_a_pipeline():
    table = frame()
    encoder = PublicEncoder(bounds=WHOLE["features"]).fit(table)
    other = PublicEncoder(bounds=WHOLE).fit(table.iloc[:1])
    assert encoder.schema_.features == other.schema_.features == PUBLIC.features
    regressor = model(bounds_X=encoder.bounds_X_, bounds_y=(0, 100), data_norm=encoder.data_norm_)
    pipeline = make_pipeline(encoder, regressor).fit(table, table["income"])
    array = clone(regressor)
    array.fit(encoder.transform(table), table["income"], categories=[[1, 2]])
    np.testing.assert_array_equal(pipeline[-1].coef_, array.coef_)
    assert encoder.get_feature_names_out().tolist() == ["age", "city=Bonn", "city=other"]
    made = encoder.set_output(transform="pandas").transform(table)
    assert list(made.columns) == ["age", "city=Bonn", "city=other"]
    assert clone(encoder).bounds == WHOLE["features"]
    assert PublicEncoder(WHOLE, drop_first=False).fit_transform(table).shape == (N, 4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_labels_that_a_declared_type_cannot_hold_are_refused(form):
    """Before any charge; the type of a list or of objects is in its values, and decides nothing."""
    flag, a = np.arange(60) % 3 == 0, np.linspace(0, 1, 60)
    accountant = BudgetAccountant(epsilon=9.0, delta=0.1)
    public = {"target": {"flag": ["no", "yes"]}, "features": {"a": [0, 1]}}
    given = {"epsilon": 1.0, "delta": 1e-3, "accountant": accountant}
    classifier = PrivateLogisticRegression(bounds=public, **given)
    with pytest.raises(DataError, match=r"labels = \[false, true\]"):
        classifier.fit(form({"flag": flag, "a": a}))
    with pytest.raises(DataError, match=r"labels = \[0, 1\]"):
        classifier.fit(form({"a": a}), flag.astype(int))
    assert not accountant.charges
    classifier.fit(form({"a": a}), flag.astype(object))


def test_text_instead_of_dates_is_refused_with_what_to_do():
    table = pd.DataFrame({"income": [1.0, 2.0], "Aufnahmedatum": ["01.02.2020", "03.02.2020"]})
    days = [datetime.date(2020, 1, 1), datetime.date(2020, 12, 31)]
    public = {"target": {"income": (0, 100)}, "features": {"Aufnahmedatum": days}}
    with pytest.raises(DataError) as raised:
        model(bounds=public).fit(table)
    assert str(raised.value) == (
        "X: column 'Aufnahmedatum' must hold dates, as its bounds say. "
        "pd.to_datetime(X['Aufnahmedatum'], format='%d.%m.%Y') makes dates of text that is "
        "written so."
    )
