"""Models as plain scikit-learn estimators, and summaries with broom's names."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import fastmix

BOUNDS = {"bounds_X": (-1, 1), "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    return X, X @ [0.5, -0.2, 0.1] + 0.8 + rng.normal(0, 0.1, 3000)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_regression_predicts_the_same_without_clipping(data, intercept):
    X, y = data
    model = fastmix.PrivateLinearRegression(bounds_y=(0, 1), fit_intercept=intercept, **BOUNDS)
    model.fit(X, y)
    plain = model.to_sklearn()
    assert type(plain) is LinearRegression
    np.testing.assert_allclose(plain.predict(X), model.predict(X, clip=False), rtol=1e-12)
    if intercept:
        assert plain.predict(X).max() > model.predict(X).max()  # which is clipped


def test_a_frame_keeps_its_names(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    plain = fastmix.PrivateLinearRegression(bounds_y=(0, 2), **BOUNDS).fit(frame, y).to_sklearn()
    assert plain.feature_names_in_.tolist() == ["a", "b", "c"]
    assert plain.predict(frame).shape == (3000,)


@pytest.mark.parametrize("labels", [["no", "yes"], ["a", "b", "c"]])
def test_classes_and_probabilities_are_the_same(data, labels):
    X, y = data
    cuts = np.quantile(y, np.linspace(0, 1, len(labels) + 1)[1:-1])
    model = fastmix.PrivateLogisticRegression(classes=labels, epsilon=5.0, **BOUNDS)
    model.fit(X, np.array(labels)[np.searchsorted(cuts, y)])
    plain = model.to_sklearn()
    assert plain.classes_.tolist() == labels
    assert (plain.predict(X) == model.predict(X)).all()
    np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-12)
    assert isinstance(plain, LogisticRegression) == (len(labels) == 2)


def test_several_quantiles_are_several_outputs(data):
    X, y = data
    model = fastmix.PrivateQuantileRegressor(quantile=[0.1, 0.9], bounds_y=(0, 2), **BOUNDS)
    model.fit(X, y)
    found = np.sort(model.to_sklearn().predict(X), axis=1)
    np.testing.assert_allclose(found, model.predict(X, clip=False), rtol=1e-12)


def test_tidy_and_glance(data, monkeypatch):
    X, y = data
    model = fastmix.PrivateLinearRegression(bounds_y=(0, 2), **BOUNDS).fit(X, y)
    summary = model.summary(0.9)
    tidy, glance = summary.tidy(), summary.glance()
    names = "term estimate std.error statistic p.value conf.low conf.high"
    assert [*tidy.columns] == names.split()
    np.testing.assert_array_equal(tidy["estimate"][:3], model.coef_)
    np.testing.assert_array_equal(tidy[["conf.low", "conf.high"]][:3], model.conf_int(0.9))
    assert len(glance) == 1
    assert glance["coefficients"][0] == glance["identified"][0] == 3
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert summary.tidy()[0]["term"] == "x0"
    assert summary.glance()[0]["conf.level"] == 0.9
