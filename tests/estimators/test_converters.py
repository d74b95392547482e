"""Released models leave as ONNX and PMML, and predict the same there; `make test-converters`."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

import fastmix

BOUNDS = {"bounds_X": (-1, 1), "random_state": 0}
TARGET = {"bounds_y": (0, 2), **BOUNDS}
NAMES = ["age", "hours", "wage"]

MODELS = {
    "linear": fastmix.PrivateLinearRegression(**TARGET),
    "robust": fastmix.PrivateHuberRegressor(**TARGET),
    "quantiles": fastmix.PrivateQuantileRegressor(quantile=[0.1, 0.9], **TARGET),
    "two classes": fastmix.PrivateLogisticRegression(classes=["no", "yes"], **BOUNDS),
    "three classes": fastmix.PrivateLogisticRegression(classes=["a", "b", "c"], **BOUNDS),
}


@pytest.fixture(scope="module")
def fitted():
    """Return models by name and the records that they are asked about."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    y = X @ [0.5, -0.2, 0.1] + 0.8 + rng.normal(0, 0.1, 3000)
    labels = {
        "two classes": np.array(["no", "yes"])[(y > 0.8).astype(int)],
        "three classes": np.array(["a", "b", "c"])[np.digitize(y, [0.6, 1.0])],
    }
    return {name: model.fit(X, labels.get(name, y)) for name, model in MODELS.items()}, X


@pytest.mark.parametrize("name", MODELS)
def test_onnx(fitted, name):
    skl2onnx, runtime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    models, X = fitted
    model, plain = models[name], models[name].to_sklearn()
    classes = hasattr(plain, "classes_")
    options = {id(plain): {"zipmap": False}} if classes else None
    text = skl2onnx.to_onnx(plain, X[:1], options=options).SerializeToString()
    session = runtime.InferenceSession(text, providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: X})
    if classes:
        assert (found[0] == model.predict(X)).all()
        np.testing.assert_allclose(found[1], model.predict_proba(X), atol=1e-12)
    else:
        expected = model.predict(X, clip=False).reshape(found[0].shape)
        np.testing.assert_allclose(np.sort(found[0], axis=1), expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # Nyoka leaves its file open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["linear", "robust", "two classes"])
def test_pmml_by_nyoka(fitted, name, tmp_path):
    """Nyoka knows neither several outputs nor one class against the rest."""
    nyoka = pytest.importorskip("nyoka")
    linear_model = pytest.importorskip("sklearn_pmml_model.linear_model")
    models, X = fitted
    model, path = models[name], str(tmp_path / "model.pmml")
    nyoka.skl_to_pmml(Pipeline([("model", model.to_sklearn())]), NAMES, "y", path)
    if name == "two classes":
        read = linear_model.PMMLLogisticRegression(pmml=path)
        assert (read.predict(X) == model.predict(X)).all()
        np.testing.assert_allclose(read.predict_proba(X), model.predict_proba(X), atol=1e-9)
    else:
        read = linear_model.PMMLLinearRegression(pmml=path)
        np.testing.assert_allclose(read.predict(X), model.predict(X, clip=False), atol=1e-9)


@pytest.mark.skipif(shutil.which("java") is None, reason="sklearn2pmml runs Java")
@pytest.mark.parametrize("name", MODELS)
def test_pmml_by_java(fitted, name, tmp_path, capfd):
    sklearn2pmml = pytest.importorskip("sklearn2pmml")
    models, _ = fitted
    path = tmp_path / "model.pmml"
    pipeline = sklearn2pmml.PMMLPipeline([("model", models[name].to_sklearn())])
    try:
        sklearn2pmml.sklearn2pmml(pipeline, str(path))
    except RuntimeError:
        said = "".join(capfd.readouterr())
        if "is not supported" in said and "Scikit-Learn version" in said:
            pytest.skip("this sklearn2pmml does not know this version of scikit-learn")
        raise
    text = path.read_text()
    for number in np.ravel(models[name].coef_):
        assert repr(float(number)) in text
