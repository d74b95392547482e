"""Models that are saved and read again predict the same, and their certificates verify."""

from __future__ import annotations

import copy
import json

import numpy as np
import pandas as pd
import pytest

import fastmix
from fastmix import IHM, BudgetAccountant, PrivateLinearRegression, PrivateLogisticRegression
from fastmix.accounting import noted
from fastmix.certificate.documents import digest, read_document
from fastmix.certificate.verify import verify_certificate
from fastmix.errors import DataError
from fastmix.estimators.saving import OUTSIDE
from fastmix.files.loading import verify_pair

BOUNDS = {
    "target": {"y": (0, 10)},
    "features": {"a": (0, 1), "c": ["u", "v"], "a^2": True, "a*c": True},
}
pytestmark = pytest.mark.filterwarnings("ignore")


def table(n=500):
    rng = np.random.default_rng(0)
    made = {"a": rng.uniform(-1, 2, n), "c": rng.choice(list("uvw"), n), "y": rng.uniform(0, 9, n)}
    return pd.DataFrame(made)


def verified(folder):
    certificate = (folder / "certificate.json").read_text()
    model = (folder / "model.json").read_text()
    assert verify_certificate(certificate).complaints == ()
    assert verify_pair(read_document(certificate), model) == []


def test_a_fit_of_a_table(tmp_path):
    model = PrivateLinearRegression(delta=1e-6, bounds=BOUNDS, inference=True).fit(table())
    model.save(tmp_path / "deep" / "model")
    loaded = fastmix.load(tmp_path / "deep" / "model")
    np.testing.assert_array_equal(loaded.predict(table()), model.predict(table()))
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert loaded.intercept_ == model.intercept_
    assert loaded.schema_ == model.schema_
    assert list(loaded.feature_names_in_) == list(model.feature_names_in_)
    verified(tmp_path / "deep" / "model")


@pytest.mark.parametrize("names", [True, False])
def test_a_fit_of_an_array(tmp_path, names):
    X = np.random.default_rng(0).uniform(-1, 2, (500, 2))
    data = pd.DataFrame(X, columns=["y", "b"]) if names else X
    model = IHM(epsilon=3.0, delta=1e-6, bounds_X=(0, 1), bounds_y=(0, 1))
    model.fit(data, X[:, 0]).save(tmp_path / "m")
    loaded = fastmix.load(str(tmp_path / "m" / "model.json"))
    np.testing.assert_allclose(loaded.predict(data), model.predict(data), rtol=1e-13)
    assert hasattr(loaded, "feature_names_in_") == names
    assert not names or list(loaded.feature_names_in_) == ["y", "b"]
    assert not hasattr(loaded, "schema_")
    verified(tmp_path / "m")


def test_nothing_is_replaced_unless_asked(tmp_path):
    first = PrivateLinearRegression(delta=1e-6, bounds=BOUNDS).fit(table())
    second = PrivateLinearRegression(delta=1e-6, bounds=BOUNDS).fit(table())
    first.save(tmp_path / "m")
    (tmp_path / "m" / "report.html").write_text("of the first")
    with pytest.raises(ValueError, match="is not empty"):
        second.save(tmp_path / "m")
    assert fastmix.load(tmp_path / "m").intercept_ == first.intercept_
    second.save(tmp_path / "m", replace=True)
    assert fastmix.load(tmp_path / "m").intercept_ == second.intercept_
    assert not (tmp_path / "m" / "report.html").exists()
    verified(tmp_path / "m")
    with pytest.raises(ValueError, match="path must be a folder"):
        second.save(tmp_path / "m" / "model.json")


def test_a_model_without_bounds_of_features_is_not_saved(tmp_path):
    X = np.full((200, 2), 0.1)
    model = PrivateLinearRegression(delta=1e-6, data_norm=1.0, bounds_y=(0, 1)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="must have bounds of its features"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_the_ledger_keeps_notes(tmp_path):
    budget = BudgetAccountant(10.0, 1e-5, ledger=tmp_path / "b.jsonl")
    with budget, noted(label="first look", file="t.csv"):
        PrivateLinearRegression(delta=1e-6, bounds=BOUNDS).fit(table())
        with noted(model="out"):
            PrivateLinearRegression(delta=1e-6, bounds=BOUNDS).fit(table())
    with budget:
        PrivateLinearRegression(delta=1e-6, bounds=BOUNDS).fit(table())
    charges = BudgetAccountant.load(tmp_path / "b.jsonl").charges
    assert [c.label for c in charges] == ["first look", "first look", "PrivateLinearRegression"]
    assert dict(charges[0].notes) == {"file": "t.csv", "target": "y"}
    assert dict(charges[1].notes) == {"file": "t.csv", "target": "y", "model": "out"}
    assert dict(charges[2].notes) == {"target": "y"}
    with pytest.raises(TypeError, match="file must be a string"), noted(file=3):
        pass


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1], ["a", "b", "c"]])
def test_a_loaded_classifier_has_probabilities_as_before(tmp_path, labels):
    data = table().assign(y=np.random.default_rng(1).choice(labels, 500))
    bounds = {**BOUNDS, "target": {"y": labels}}
    model = PrivateLogisticRegression(delta=1e-6, bounds=bounds).fit(data)
    model.save(tmp_path / "m")
    loaded = fastmix.load(tmp_path / "m")
    likely = loaded.predict_proba(data)
    assert likely.shape == (500, len(labels))
    np.testing.assert_array_equal(likely, model.predict_proba(data))
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))


def test_a_loaded_regression_has_no_probabilities(tmp_path):
    PrivateLinearRegression(delta=1e-6, bounds=BOUNDS).fit(table()).save(tmp_path / "m")
    loaded = fastmix.load(tmp_path / "m")
    assert not hasattr(loaded, "predict_proba")
    assert not hasattr(loaded, "classes_")


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """A model's file with standard errors and scores, as a fit writes it."""
    model = PrivateLinearRegression(delta=1e-6, bounds=BOUNDS, inference=True, score_share=0.1)
    folder = tmp_path_factory.mktemp("saved") / "m"
    model.fit(table()).save(folder)
    return json.loads((folder / "model.json").read_text())


def places(node, path=()):
    """Yield the paths of all entries of a document, groups of entries too."""
    if path:
        yield path
    if isinstance(node, (dict, list)):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(value, (*path, key))


def without(data, path):
    data = copy.deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    return data


def replaced(data, path, value):
    data = copy.deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return data


def sealed(data):
    """Return a model with digests that fit, as whoever forges it would."""
    data = copy.deepcopy(data)
    data["digest"] = digest(data, without=OUTSIDE)
    if isinstance(data.get("certificate"), dict):
        certificate = data["certificate"] | {"model": data["digest"]}
        certificate["digest"] = digest(certificate, without=("digest",))
        data["certificate"] = certificate
    return data


STRANGE = [None, True, 3, -1, 1e308, "inf", "x", "", [], [[]], {}, {"a": 1}, [None], [[1, 2]]]


@pytest.mark.parametrize("forged", [False, True])
def test_a_damaged_model_is_one_kind_of_error(tmp_path, document, forged):
    """Entries that are gone, or of another kind; also with a digest that fits."""
    rng = np.random.default_rng(0)
    damaged = [without(document, path) for path in places(document)]
    for path in places(document):
        damaged.append(replaced(document, path, STRANGE[rng.integers(len(STRANGE))]))
    read = 0
    for data in damaged:
        if json.dumps(data) == json.dumps(document):
            continue
        data = sealed(data) if forged else data
        (tmp_path / "model.json").write_text(json.dumps(data))
        try:
            loaded = fastmix.load(tmp_path)
        except DataError:
            continue
        read += 1
        loaded.predict(table())
        assert str(loaded.summary())
    assert (read > 10) if forged else read == 0


@pytest.mark.parametrize("kind", ["cut", "junk", "folder", "nothing", "other", "deep", "list"])
def test_a_file_that_is_not_a_model_is_the_same_error(tmp_path, document, kind):
    text = json.dumps(document).encode()
    rng = np.random.default_rng(1)
    contents = {
        "cut": [text[:k] for k in rng.integers(len(text), size=50)],
        "junk": [rng.bytes(k) for k in range(50)],
        "other": [
            b"{}",
            b"",
            b"null",
            b"[]",
            b'{"format": "fastmix-model-7"}',
            b"\xff\xfe",
            b"NaN",
        ],
        "deep": [b"[" * 100_000, b'{"a":' * 100_000],
        "list": [json.dumps([document]).encode()],
    }
    if kind == "folder":
        (tmp_path / "model.json").mkdir()
    for content in contents.get(kind, [None]):
        if content is not None:
            (tmp_path / "model.json").write_bytes(content)
        with pytest.raises(DataError):
            fastmix.load(tmp_path if kind != "nothing" else tmp_path / "not there")


def test_a_changed_model_is_not_used(tmp_path):
    """By itself, by the digest in it; beside its certificate, also with a digest that fits."""
    model = PrivateLinearRegression(delta=1e-6, bounds=BOUNDS).fit(table())
    model.save(tmp_path / "m")
    file = tmp_path / "m" / "model.json"
    data = json.loads(file.read_text())
    data["fitted"]["coef_"][0] += 1.0
    file.write_text(json.dumps(data))
    with pytest.raises(DataError, match="was changed after it was written"):
        fastmix.load(tmp_path / "m")
    file.write_text(json.dumps(sealed(data)))
    with pytest.raises(DataError, match=r"does not match certificate\.json in the same folder"):
        fastmix.load(tmp_path / "m")
    with pytest.raises(DataError, match=r"does not match certificate\.json in the same folder"):
        fastmix.load(file)
    # No secret is in a digest: where nothing else knows the model, a forger is believed.
    (tmp_path / "m" / "certificate.json").unlink()
    assert fastmix.load(tmp_path / "m").coef_[0] == model.coef_[0] + 1.0
    (tmp_path / "m" / "certificate.json").write_text("{}")
    with pytest.raises(DataError, match="does not match"):
        fastmix.load(tmp_path / "m")
