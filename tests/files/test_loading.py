"""A loaded model is the estimator that was saved, with everything it had."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import fastmix
from fastmix.certificate.documents import digest, write_document
from fastmix.errors import DataError, PrivacyLeakWarning, ReproducibleNoiseWarning
from fastmix.estimators.saving import OUTSIDE, model_document
from fastmix.files.loading import verify_pair

pytestmark = pytest.mark.filterwarnings("ignore")

BOUNDS = {"target": {"y": (0, 10)}, "features": {"a": (0, 1), "c": ["u", "v"], "a*c": True}}
LABELS = {**BOUNDS, "target": {"y": ["no", "yes"]}}
THREE = {**BOUNDS, "target": {"y": ["few", "many", "none"]}}
ARRAY = {"bounds_X": (0, 1), "bounds_y": (0, 1), "epsilon": 3.0, "delta": 1e-6}
CLASSES = {"bounds_X": (0, 1), "epsilon": 3.0, "delta": 1e-6}

TABLES = {
    "linear": fastmix.PrivateLinearRegression(bounds=BOUNDS, inference=True, score_share=0.1),
    "ihm": fastmix.IHM(bounds=BOUNDS, n_steps=4),
    "adassp": fastmix.AdaSSP(bounds=BOUNDS, inference=True),
    "no intercept": fastmix.PrivateLinearRegression(bounds=BOUNDS, fit_intercept=False),
    "huber": fastmix.PrivateHuberRegressor(bounds=BOUNDS, inference=True),
    "quantile": fastmix.PrivateQuantileRegressor(bounds=BOUNDS, quantile=0.9, score_share=0.1),
    "logistic": fastmix.PrivateLogisticRegression(
        bounds=LABELS, inference=True, score_share=0.1, class_weight={"yes": 2.0}
    ),
    "several": fastmix.PrivateLogisticRegression(bounds=THREE),
    "hidden rows": fastmix.PrivateLinearRegression(bounds=BOUNDS, public_rows=False),
    "least squares": fastmix.PrivateLinearRegression(bounds=BOUNDS, epsilon=np.inf),
}
ARRAYS = {
    "AdaSSP": fastmix.AdaSSP(**ARRAY),
    "FastIHM": fastmix.FastIHM(**ARRAY),
    "IHM": fastmix.IHM(n_steps=8, **ARRAY),
    "IHS": fastmix.IHS(**ARRAY),
    "LinearMixing": fastmix.LinearMixing(**ARRAY),
    "DPGradientDescent": fastmix.DPGradientDescent(n_steps=4, **ARRAY),
    "ObjectivePerturbation": fastmix.ObjectivePerturbation(data_norm=1.2, **ARRAY),
    "PrivateLinearRegression": fastmix.PrivateLinearRegression(inference=True, **ARRAY),
    "signs": fastmix.PrivateLogisticRegression(classes=[False, True], **CLASSES),
}


def table(n=2000):
    rng = np.random.default_rng(0)
    a, c = rng.uniform(-1, 2, n), rng.choice(list("uvw"), n)
    y = np.clip(4 * a + (c == "v") + rng.normal(1, 1, n), 0, 9)
    return pd.DataFrame({"a": a, "c": c, "y": y})


def labelled(model, data):
    """Return a table whose target has the labels of the model's bounds."""
    labels = model.bounds["target"]["y"]
    if not isinstance(labels[0], str):
        return data
    places = np.minimum((data["y"] // 2).astype(int), len(labels) - 1)
    return data.assign(y=np.array(labels)[places])


def array(model):
    X = np.random.default_rng(1).uniform(-0.5, 1.5, (2000, 3))
    y = X @ [0.5, 0.3, -0.2]
    return X, (y > 0.2 if hasattr(model, "classes") else y)


def assert_same(one, other):
    """Compare attributes of any kind, exactly."""
    if isinstance(other, np.ndarray):
        assert one.shape == other.shape
        assert one.dtype.kind == other.dtype.kind
        np.testing.assert_array_equal(one, other)
    elif isinstance(other, (tuple, list)):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    elif isinstance(other, fastmix.PrivacyCertificate):
        assert (one.spent, one.parameters) == (
            other.spent,
            json.loads(other.to_json())["parameters"],
        )
        assert (one.leaks, one.noise, one.versions) == (other.leaks, other.noise, other.versions)
    else:
        assert one == other


def check(model, loaded):
    """Compare everything that a fit stored, and the parameters that are no bounds."""
    assert type(loaded) is type(model)
    stored = {name for name in vars(model) if name.endswith("_") or name.startswith("_")}
    assert stored == {name for name in vars(loaded) if name.endswith("_") or name.startswith("_")}
    for name in stored:
        assert_same(getattr(loaded, name), getattr(model, name))
    elsewhere = {"bounds", "bounds_X", "bounds_y", "classes", "class_weight"}
    given, asked = loaded.get_params(deep=False), model.get_params(deep=False)
    for name in asked.keys() - elsewhere:
        assert given[name] == asked[name], name
    assert loaded.method_ == model.method_
    assert loaded._as_fitted()._resolve() == model._as_fitted()._resolve()
    assert str(loaded.summary()) == str(model.summary())
    assert repr(loaded.privacy_) == repr(model.privacy_)
    assert loaded._repr_html_inner().count("<td") == model._repr_html_inner().count("<td")


@pytest.mark.parametrize("kind", TABLES)
def test_a_model_of_a_table_comes_back(tmp_path, kind):
    model = clone(TABLES[kind]).set_params(delta=1e-6)
    if model.epsilon == 1.0:
        model.set_params(epsilon=3.0)
    data = labelled(model, table())
    model.fit(data).save(tmp_path / "m")
    loaded = fastmix.load(tmp_path / "m")
    check(model, loaded)
    for name in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(loaded, name)(data), getattr(model, name)(data))
    encoder = fastmix.PublicEncoder(bounds=model.schema_, drop_first=model.fit_intercept)
    encoded = encoder.fit_transform(data.drop(columns="y"))
    np.testing.assert_array_equal(loaded.predict(encoded), model.predict(data))
    if np.isinf(model.epsilon):
        for each in (model, loaded):
            with pytest.raises(ValueError, match="a fit without noise has no intervals"):
                each.conf_int()
    elif model.inference:
        np.testing.assert_array_equal(
            loaded.conf_int(0.9, intercept=True), model.conf_int(0.9, intercept=True)
        )
    written = (tmp_path / "m" / "model.json").read_text()
    assert write_document(model_document(loaded)[0]) + "\n" == written
    again = clone(loaded).fit(data)  # the bounds are there
    assert again.privacy_.leaks == model.privacy_.leaks
    assert again.privacy_.parameters == model.privacy_.parameters
    if not model.public_rows or np.isinf(model.epsilon):
        return
    scores = [each.evaluate(data, epsilon=1e4, delta=1e-6) for each in (model, loaded)]
    for name in scores[0].scores:
        assert scores[0][name] == pytest.approx(scores[1][name], abs=0.01)


@pytest.mark.parametrize("kind", ARRAYS)
def test_a_model_of_an_array_comes_back(tmp_path, kind):
    model = clone(ARRAYS[kind])
    X, y = array(model)
    model.fit(X, y).save(tmp_path / "m")
    loaded = fastmix.load(tmp_path / "m")
    check(model, loaded)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    found = clone(loaded).fit(X, y).privacy_
    assert found.spent == model.privacy_.spent
    assert found.leaks == model.privacy_.leaks
    score = loaded.evaluate(X, y, epsilon=1e4, delta=1e-6)
    assert score.n == 2000


def test_weights_and_persons_come_back(tmp_path):
    X, y = array(None)
    model = fastmix.PrivateLinearRegression(inference=True, score_share=0.1, **ARRAY)
    given = {"groups": np.arange(2000) // 2, "sample_weight": np.ones(2000)}
    model.fit(X, y, **given, max_rows_per_group=2, max_weight=3.0).save(tmp_path / "m")
    loaded = fastmix.load(tmp_path / "m")
    check(model, loaded)
    with pytest.raises(ValueError, match="protects persons"):
        loaded.evaluate(X, y, epsilon=1.0)


def test_a_seed_stays_out_of_the_file_and_the_warning_comes_back(tmp_path):
    X, y = array(None)
    model = fastmix.PrivateLinearRegression(random_state=987_654_321, **ARRAY).fit(X, y)
    model.save(tmp_path / "m")
    assert "987654321" not in (tmp_path / "m" / "model.json").read_text()
    for _ in range(2):
        with pytest.warns(ReproducibleNoiseWarning, match="this model was seeded"):
            loaded = fastmix.load(tmp_path / "m")
    assert loaded.privacy_.leaks == ("the noise was seeded by the caller",)
    assert loaded.random_state is None
    assert loaded.fit(X, y).privacy_.private  # with fresh noise


def test_bounds_from_the_data_are_no_parameters(tmp_path):
    X, y = array(None)
    model = fastmix.PrivateLinearRegression(delta=1e-6, bounds_X=(0, 1)).fit(X, y)
    model.save(tmp_path / "m")
    loaded = fastmix.load(tmp_path / "m")
    assert loaded.bounds_y is None
    assert loaded.bounds_y_ == model.bounds_y_
    with pytest.warns(PrivacyLeakWarning, match="bounds_y not given"):
        assert not loaded.fit(X, y).privacy_.private
    labels = fastmix.PrivateLogisticRegression(delta=1e-6, bounds_X=(0, 1)).fit(X, y > 0.2)
    labels.save(tmp_path / "labels")
    assert fastmix.load(tmp_path / "labels").classes is None


def test_bounds_that_were_found_privately_remember_it(tmp_path):
    X, y = array(None)
    finder = fastmix.PrivateBounds(epsilon=1.0, delta=1e-6).fit(X, y)
    given = {"bounds_X": finder.bounds_X_, "bounds_y": finder.bounds_y_}
    model = fastmix.PrivateLinearRegression(delta=1e-6, **given).fit(X, y)
    model.save(tmp_path / "m")
    loaded = fastmix.load(tmp_path / "m")
    found = model.privacy_.data["bounds_found"]
    assert clone(loaded).fit(X, y).privacy_.data["bounds_found"] == found
    groups = np.arange(2000) // 2
    with pytest.raises(ValueError, match="must protect persons"):
        loaded.fit(X, y, groups=groups, max_rows_per_group=2)


def test_no_private_value_and_no_path_is_in_the_file(tmp_path):
    """Values of the table outside of public bounds and the path of the ledger stay out."""
    secret = 0.123456789
    data = table().assign(a=secret)
    budget = fastmix.BudgetAccountant(10.0, 1e-5, ledger=tmp_path / "ledger.jsonl")
    model = fastmix.PrivateLinearRegression(bounds=BOUNDS, delta=1e-6, accountant=budget)
    model.fit(data).save(tmp_path / "m")
    text = (tmp_path / "m" / "model.json").read_text()
    assert str(secret) not in text
    assert "ledger.jsonl" not in text
    assert str(tmp_path) not in text
    assert fastmix.load(tmp_path / "m").accountant is None


def test_another_format_says_to_fit_again(tmp_path):
    (tmp_path / "model.json").write_text(json.dumps({"format": "fastmix-model-5", "coef": [1.0]}))
    with pytest.raises(DataError, match=r"another version of fastmix\. Fit the model again"):
        fastmix.load(tmp_path)


class Custom(fastmix.AdaSSP):
    """An estimator that another module defines."""


def test_a_class_that_is_not_known_is_refused(tmp_path):
    X, y = array(None)
    fastmix.AdaSSP(**ARRAY).fit(X, y).save(tmp_path / "m")
    text = (tmp_path / "m" / "model.json").read_text()
    for name in ("Strange", "PrivateModel", "builtins.eval"):
        forged = text.replace('"estimator": "AdaSSP"', f'"estimator": "{name}"')
        forged = forged.replace('"mechanism": "AdaSSP"', f'"mechanism": "{name}"')
        (tmp_path / "m" / "model.json").write_text(forged)
        with pytest.raises(DataError, match="import the module that defines it"):
            fastmix.load(tmp_path / "m")
    Custom(**ARRAY).fit(X, y).save(tmp_path / "custom")
    assert type(fastmix.load(tmp_path / "custom")) is Custom


def test_a_certificate_beside_must_be_the_same(tmp_path):
    X, y = array(None)
    fastmix.AdaSSP(**ARRAY).fit(X, y).save(tmp_path / "m")
    path = tmp_path / "m" / "certificate.json"
    data = json.loads(path.read_text())
    data["versions"]["numpy"] = "9.9"
    path.write_text(json.dumps(data))
    with pytest.raises(DataError, match="does not match"):
        fastmix.load(tmp_path / "m")
    said = verify_pair(data, (tmp_path / "m" / "model.json").read_text())
    assert said == ["the certificate in model.json differs in versions"]


def test_loading_warns_of_nothing_else(tmp_path):
    X, y = array(None)
    fastmix.AdaSSP(**ARRAY).fit(X, y).save(tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fastmix.load(tmp_path / "m").predict(X)


@pytest.mark.parametrize("name", ["random_state", "accountant", "epsilon", "bounds_X"])
def test_a_file_cannot_set_other_parameters(tmp_path, name):
    """A forged seed, with digests that fit, would make the noise of the next fit public."""
    X, y = array(None)
    fastmix.AdaSSP(**ARRAY).fit(X, y).save(tmp_path / "m")
    data = json.loads((tmp_path / "m" / "model.json").read_text())
    data["parameters"][name] = 5
    data["digest"] = digest(data, without=OUTSIDE)
    certificate = {**data["certificate"], "model": data["digest"]}
    certificate["digest"] = digest(certificate, without=("digest",))
    (tmp_path / "model.json").write_text(json.dumps({**data, "certificate": certificate}))
    with pytest.raises(DataError, match="JSON document of format"):
        fastmix.load(tmp_path)
