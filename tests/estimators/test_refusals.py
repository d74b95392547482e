"""What a refused fit leaves behind, and what its error carries."""

from __future__ import annotations

import pickle
import sys

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import fastmix
from fastmix import BudgetAccountant
from fastmix.data.read import inferred_numbers, read_columns
from fastmix.data.scaling import PublicScaling
from fastmix.errors import DataError, InvalidValueError

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6}
MODELS = [
    fastmix.AdaSSP(),
    fastmix.IHM(n_steps=2),
    fastmix.ObjectivePerturbation(),
    fastmix.PrivateLinearRegression(),
]


def problem(d=3):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (40, d)), rng.uniform(-1, 1, 40)


def state(model):
    return {k: pickle.dumps(v) for k, v in vars(model).items() if k != "accountant"}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_refused_fit_leaves_the_model_as_it_was(model, tmp_path):
    X, y = problem()
    model = clone(model).set_params(**BOUNDS)
    model.fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    before, parameters = state(model), set(model.get_params())
    wide, _ = problem(5)
    bad = wide.copy()
    bad[7, 2] = np.nan
    pq.write_table(pa.table({"p": bad[:, 2], "q": X[:, 0], "y": y}), tmp_path / "t.parquet")
    refused = [
        lambda: model.fit(bad, y),
        lambda: model.fit(pd.DataFrame(bad, columns=list("vwxyz")), y),
        lambda: model.fit(wide, [None, *y[1:]]),
        lambda: model.fit(wide, y[1:]),
        lambda: model.fit(da.from_array(bad, chunks=(10, 5)), y),
        lambda: model.fit_parquet(tmp_path / "t.parquet"),
    ]
    for fit in refused:
        with pytest.raises(ValueError, match=r"."):
            fit()
        assert state(model) == before
    model.set_params(accountant=BudgetAccountant(1e-9, 1e-9))
    with pytest.raises(fastmix.BudgetError):
        model.fit(wide, y)
    model.set_params(accountant=None)
    assert state(model) == before
    assert model.fit(wide, y).n_features_in_ == 5
    assert not hasattr(model, "feature_names_in_")
    assert set(vars(model)) - parameters == set(before) - parameters - {"feature_names_in_"}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_an_interrupted_fit_leaves_the_old_model_or_the_new_one(model):
    """Stopped at calls of Python functions, from where results are stored."""
    X, y = problem()
    wide, _ = problem(5)
    model = clone(model).set_params(**BOUNDS)
    clone(model).fit(wide, y)  # calibrations are remembered from here on
    for stop in range(0, 60, 3):
        model.fit(X, y)
        before, calls = state(model), 0
        storing = False

        def watch(frame, event, argument, stop=stop):
            nonlocal calls, storing
            storing |= frame.f_code.co_name == "describe_to"
            calls += storing and event == "call"
            if storing and calls > stop:
                sys.setprofile(None)
                raise KeyboardInterrupt

        sys.setprofile(watch)
        try:
            model.fit(wide, y)
        except KeyboardInterrupt:
            assert state(model) == before or model.n_features_in_ == 5
        finally:
            sys.setprofile(None)
        assert len(model.coef_) == model.n_features_in_ == model.privacy_.data["n_features"]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_error_of_a_dask_fit_names_no_block(bad):
    """Blocks are single records here."""
    X, y = problem()
    messages = set()
    with dask.config.set(scheduler="synchronous"):
        for array, at in ((X, (0, 0)), (X, (39, 2)), (y, (0,)), (y, (39,))):
            kept = array[at]
            array[at] = bad
            budget = BudgetAccountant(10.0, 1e-3)
            with pytest.raises(InvalidValueError) as caught:
                fastmix.AdaSSP(**BOUNDS, accountant=budget).fit(da.from_array(X, chunks=1), y)
            messages.add(str(caught.value))
            assert len(budget.charges) == 0
            array[at] = kept
    assert messages == {InvalidValueError.MESSAGE}


def test_a_masked_block_is_refused():
    X, y = problem()
    masked = da.ma.masked_where(da.from_array(X, chunks=10) > 0.9, da.from_array(X, chunks=10))
    with dask.config.set(scheduler="synchronous"), pytest.raises(InvalidValueError):
        fastmix.AdaSSP(**BOUNDS).fit(masked, y)


def test_columns_of_dask_frames_are_named_by_their_type():
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"a": [1.0, 2.0], "when": pd.Timestamp("2020"), "city": "sEcret"})
    table = dd.from_pandas(frame, npartitions=1)
    with pytest.raises(ValueError, match=r"'when' \(datetime64\[.*'city' \(str") as caught:
        fastmix.AdaSSP(**BOUNDS).fit(table, table["a"])
    assert "sEcret" not in str(caught.value)


def test_an_error_about_a_csv_file_carries_no_value(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,y\n1,2\nsEcret,3\n")
    with pytest.raises(DataError, match="column 'age' has an entry") as caught:
        read_columns(path, ["age", "y"], {})
    assert caught.value.__context__ is None
    path.write_text("age,y\n1,2\nsEcret,3,4\n")
    with pytest.raises(DataError, match="as many fields") as caught:
        inferred_numbers(path)
    assert caught.value.__context__ is None


def test_columns_of_objects_are_named_whatever_is_in_them():
    X, y = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).astype({"b": object})
    messages = set()
    for column, value in (("a", np.nan), ("b", None), ("b", "0.5"), ("b", 1j)):
        bad = frame.copy()
        bad.loc[3, column] = value
        with pytest.raises(InvalidValueError) as caught:
            fastmix.AdaSSP(**BOUNDS).fit(bad, y)
        messages.add(str(caught.value))
    assert messages == {f"{InvalidValueError.MESSAGE} Columns of type object: 'b'."}


@pytest.mark.parametrize("bad", [None, "0.5", np.nan, np.inf, np.timedelta64(1, "s"), 10**400])
def test_predictions_refuse_the_same_values(bad):
    X, y = problem()
    model = fastmix.AdaSSP(**BOUNDS).fit(X, y)
    rows = X.tolist()
    rows[3][1] = bad
    with pytest.raises(InvalidValueError) as caught:
        model.predict(rows)
    assert str(caught.value) == InvalidValueError.MESSAGE
    with pytest.raises(ValueError, match="that holds dates"):
        model.predict(np.zeros((4, 3), "M8[s]"))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_coefficients_that_overflow_are_not_stored(model, value, monkeypatch):
    X, y = problem()
    model = clone(model).set_params(**{**BOUNDS, "bounds_y": (-1e99, 1e99)}).fit(X, y)
    before = state(model)
    plain = PublicScaling.coefficients
    monkeypatch.setattr(
        PublicScaling, "coefficients", lambda self, theta, d: plain(self, theta + value, d)
    )
    budget = BudgetAccountant(10.0, 1e-3)
    model.set_params(accountant=budget)
    with pytest.raises(OverflowError, match="the coefficients overflow"):
        model.fit(X, y)
    assert len(budget.charges) == 1  # noise was drawn
    model.set_params(accountant=None)
    assert state(model) == before


IN_BLOCKS = [
    fastmix.AdaSSP(),
    fastmix.DPGradientDescent(n_steps=2),
    fastmix.FastIHM(n_steps=2),
    fastmix.IHM(n_steps=2),
    fastmix.LinearMixing(),
]


@pytest.mark.parametrize("model", IN_BLOCKS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("bad", [None, np.nan, -np.inf])
def test_files_with_a_bad_value_are_refused_before_a_charge(model, bad, tmp_path):
    X, y = problem()
    for column, at in (("a", 0), ("c", 39), ("y", 0), ("y", 39)):
        table = {name: list(X[:, j]) for j, name in enumerate("abc")} | {"y": list(y)}
        table[column][at] = bad
        # A file of its own: the one before may still be mapped by the thread that reads ahead.
        path = tmp_path / f"{column}{at}.parquet"
        pq.write_table(pa.table(table), path, row_group_size=1)
        budget = BudgetAccountant(10.0, 1e-3)
        fitted = clone(model).set_params(**BOUNDS, accountant=budget)
        with pytest.raises(InvalidValueError) as caught:
            fitted.fit_parquet(path)
        assert str(caught.value) == InvalidValueError.MESSAGE
        assert caught.value.__context__ is None
        assert len(budget.charges) == 0
        assert not hasattr(fitted, "n_features_in_")
