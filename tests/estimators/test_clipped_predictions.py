"""Predictions stay inside the public bounds of the target, unless the caller extrapolates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fastmix
from fastmix.cli import main

KINDS = [
    fastmix.PrivateLinearRegression,
    fastmix.PrivateHuberRegressor,
    fastmix.PrivateQuantileRegressor,
]
FAR = np.array([[-50.0], [0.5], [50.0]])


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).uniform(0, 1, (5000, 1))
    return X, 2.0 + 6.0 * X[:, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_of_arrays_and_saved_models(kind, rows, tmp_path):
    model = kind(bounds_X=(0, 1), bounds_y=(0, 10), delta=1e-6).fit(*rows)
    low, middle, high = model.predict(FAR)
    assert (low, high) == (0.0, 10.0)
    assert 0.0 < middle < 10.0
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(fastmix.load(tmp_path / "m").predict(FAR), [low, middle, high])
    line = FAR[:, 0] * model.coef_[0] + model.intercept_
    assert line[0] < 0.0
    assert line[2] > 10.0
    np.testing.assert_allclose(model.predict(FAR, clip=False), line)


def test_predictions_of_tables(rows):
    frame = pd.DataFrame({"x": rows[0][:, 0], "y": rows[1]})
    bounds = {"target": {"y": [3, 7]}, "features": {"x": [0, 1]}}
    model = fastmix.PrivateLinearRegression(bounds=bounds, epsilon=5.0, delta=1e-6).fit(frame)
    model.intercept_ += 3.0
    assert model.predict(frame).max() == 7.0
    assert model.predict(frame).min() >= 3.0


def test_dask_predictions(rows):
    array = pytest.importorskip("dask.array")
    model = fastmix.PrivateLinearRegression(bounds_X=(0, 1), bounds_y=(0, 10), delta=1e-6)
    found = model.fit(*rows).predict(array.from_array(FAR, chunks=2))
    np.testing.assert_array_equal(found.compute(), model.predict(FAR))


def test_the_command_line(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = fastmix.PrivateLinearRegression(bounds_X=(0, 1), bounds_y=(3, 7), delta=1e-6)
    model.fit(*rows)
    model.intercept_ += 5.0
    model.save("m")
    pd.DataFrame({"x0": [0.0, 0.5, 1.0]}).to_csv("t.csv", index=False)
    assert main(["predict", "m", "t.csv"]) == 0
    assert pd.read_csv("predictions.csv")["predicted_y"].max() == 7.0
    assert main(["predict", "m", "t.csv", "--extrapolate", "--force"]) == 0
    assert pd.read_csv("predictions.csv")["predicted_y"].max() > 7.0


def test_the_parameter_is_checked():
    model = fastmix.PrivateLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)).fit([[0.0]], [0.0])
    with pytest.raises(TypeError, match="clip must be a bool"):
        model.predict([[0.0]], clip="no")
