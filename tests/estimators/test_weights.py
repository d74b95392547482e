"""Sample weights: what fits compute with them, what they say, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from fastmix import (
    IHM,
    BudgetAccountant,
    ObjectivePerturbation,
    PrivateLinearRegression,
)
from fastmix.certificate import explain, verify_certificate
from fastmix.data.dask import Cluster
from fastmix.data.weights import InvalidWeightError
from fastmix.estimators.models import fixing

KNOWN = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    # Two populations with different slopes: weights decide which one the model describes.
    slope = np.where(X[:, 1] > 0, 0.8, 0.1)
    y = np.clip(slope * X[:, 0] + 0.05 * rng.normal(size=len(X)), -1, 1)
    return X, y, np.where(X[:, 1] > 0, 30.0, rng.uniform(0, 2, len(X)))


@pytest.mark.parametrize("kind", [PrivateLinearRegression, ObjectivePerturbation])
def test_a_weighted_fit(kind, data):
    X, y, w = data
    budget = BudgetAccountant(5.0, 1e-3)
    model = kind(epsilon=3.0, accountant=budget, **KNOWN)
    model.fit(X, y, sample_weight=w, max_weight=30)
    expected = LinearRegression().fit(X, y, w)
    plain = LinearRegression().fit(X, y)
    assert abs(expected.coef_[0] - plain.coef_[0]) > 0.2
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=0.05)
    certificate = model.privacy_
    assert certificate.private
    assert certificate.epsilon <= 3.0
    assert certificate.data["max_weight"] == 30
    mean = 30 * certificate.data["chosen"]["mean_weight"]
    assert mean == pytest.approx(w.mean(), rel=0.1)
    assert verify_certificate(certificate.to_json()).complaints == ()
    words = " ".join(explain(certificate))
    assert "survey weights; weights above 30, a public bound, count as 30" in words
    assert budget.charges[0].spent == model.account(len(y), 2, weighted=True)


def test_a_small_weighted_fit(data):
    """Without rounds of second moments the mean is that of the weighted targets."""
    X, y, _ = data
    X, y = X[:400], 0.5 * y[:400] + 0.4
    model = fixing(PrivateLinearRegression, rounds=0)(epsilon=1.0, **KNOWN)
    given = {"sample_weight": np.full(400, 50.0), "max_weight": 100.0}
    found = [model.fit(X, y, **given).intercept_ for _ in range(20)]
    assert np.mean(found) == pytest.approx(y.mean(), abs=0.1)


def test_tampered_weights_are_found(data):
    X, y, w = data
    model = PrivateLinearRegression(**KNOWN).fit(X, y, sample_weight=w, max_weight=5.0)
    text = model.privacy_.to_json()
    for old, new in [('"max_weight": 5.0', '"max_weight": 6.0'), ('"weight_sigma": ', '"w": ')]:
        assert old in text
        assert len(verify_certificate(text.replace(old, new, 1)).complaints) > 1


def test_equal_weights_are_no_weights(data):
    """All weights at the bound: the same fit but for what the sum of weights costs."""
    X, y, _ = data
    one = PrivateLinearRegression(epsilon=1.0, random_state=0, **KNOWN)
    two = PrivateLinearRegression(epsilon=1.0, random_state=0, **KNOWN)
    # Weights above the bound count as the bound.
    a = one.fit(X, y, sample_weight=np.full(len(y), 7.0), max_weight=7.0).coef_
    b = two.fit(X, y, sample_weight=np.full(len(y), 1e9), max_weight=7.0).coef_
    np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(a, LinearRegression().fit(X, y).coef_, atol=0.02)


def test_rows_of_weight_zero_do_not_count(data):
    X, y, _ = data
    weights = (X[:, 1] > 0).astype(float)
    lies = np.where(weights > 0, y, 1.0)
    model = PrivateLinearRegression(epsilon=1.0, random_state=0, **KNOWN)
    truth = model.fit(X, y, sample_weight=weights).coef_
    np.testing.assert_array_equal(model.fit(X, lies, sample_weight=weights).coef_, truth)
    # If no row counts at all the fit goes through: to refuse it would tell.
    model.fit(X, y, sample_weight=np.zeros(len(y)))


def test_chunks_and_frames_fit_what_memory_fits(data, tmp_path):
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    X, y, w = (each[:3000] for each in data)
    ids = np.arange(3000) // 2
    given, most = {"epsilon": 3.0, "random_state": 0}, {"max_weight": 30.0}
    model = PrivateLinearRegression(**given, **KNOWN)
    truth = model.fit(X, y, sample_weight=w, **most).coef_
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "w": w, "who": ids})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=700)
    blocks = da.from_array(X, chunks=(800, 2))
    table = dd.from_pandas(frame, npartitions=3)
    by_names = {"a": (-1, 1), "b": (-1, 1)}
    named = PrivateLinearRegression(**given, bounds=by_names, bounds_y=(-1, 1))
    path, far = tmp_path / "t.parquet", Cluster()
    fits = {
        "array": lambda: model.fit(blocks, y, sample_weight=w, **most),
        "frame": lambda: model.fit(table[["a", "b"]], table["y"], sample_weight=table["w"], **most),
        "file": lambda: model.fit_parquet(path, "y", ["a", "b"], sample_weight="w", **most),
        "named": lambda: named.fit(frame[["a", "b"]], frame["y"], sample_weight=frame["w"], **most),
    }
    for name, fit in fits.items():
        np.testing.assert_allclose(fit().coef_, truth, atol=1e-6, err_msg=name)
    assert far is not None
    both = PrivateLinearRegression(**given, **KNOWN)
    most["max_rows_per_group"] = 2
    truth = both.fit(X, y, groups=ids, sample_weight=w, **most).coef_
    fits = {
        "array": lambda: both.fit(blocks, y, groups=ids, sample_weight=w, **most),
        "frame": lambda: both.fit(table[["a", "b"]], table["y"], table["who"], table["w"], **most),
        "file": lambda: both.fit_parquet(
            path, "y", ["a", "b"], groups="who", sample_weight="w", **most
        ),
    }
    for name, fit in fits.items():
        np.testing.assert_allclose(fit().coef_, truth, atol=1e-6, err_msg=name)
    assert both.privacy_.data["n_persons"] == 1500


def test_refusals_charge_nothing(data):
    X, y, w = data
    budget = BudgetAccountant(100.0, 1e-3)
    with budget:
        for given, weights, most, message in [
            ({}, None, 30.0, "max_weight must be 1 without sample_weight"),
            ({}, w, 0.0, "max_weight must be at least"),
            ({}, w, np.nan, "max_weight must"),
            ({}, w, None, "max_weight must be a real number"),
            ({}, w[1:], 30.0, "sample_weight must have 20000 entries"),
            ({"epsilon": np.inf}, w, 30.0, "epsilon must be finite with sample_weight"),
        ]:
            model = PrivateLinearRegression(**given, **KNOWN)
            with pytest.raises((TypeError, ValueError), match=message):
                model.fit(X, y, sample_weight=weights, max_weight=most)
        with pytest.raises(ValueError, match="'auto' or 'gram'"):
            ObjectivePerturbation(solver="sketch", **KNOWN).fit(X, y, sample_weight=w)
        with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
            IHM(**KNOWN).fit(X, y, sample_weight=w)
        text = np.array(["Rumpelstilzchen"] * len(y))
        for bad in (-w, np.where(w > 5, np.nan, w), w * np.inf, text, w[:, None], [w]):
            with pytest.raises(ValueError, match="sample_weight") as error:
                PrivateLinearRegression(**KNOWN).fit(X, y, sample_weight=bad)
            assert "Rumpel" not in str(error.value)
    assert len(budget) == 0


def test_a_cluster_says_no_more_about_bad_weights(data):
    da = pytest.importorskip("dask.array")
    X, y, w = (each[:100] for each in data)
    model = PrivateLinearRegression(**KNOWN)
    with pytest.raises(InvalidWeightError):
        model.fit(da.from_array(X, chunks=(40, 2)), y, sample_weight=-w)


def test_metadata_routing(data):
    X, y, w = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = PrivateLinearRegression(**KNOWN)
        model.set_fit_request(sample_weight=True, max_weight=True)
        model.set_score_request(sample_weight=True)
        fitted = make_pipeline(model).fit(X, y, sample_weight=w, max_weight=30.0)
        assert fitted[-1].privacy_.data["max_weight"] == 30.0
        scores = cross_validate(model, X, y, params={"sample_weight": w, "max_weight": 30.0}, cv=3)
        assert (scores["test_score"] > 0.5).all()


def test_intervals_with_weights_cover_the_truth():
    covered, total = 0, 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, w = rng.uniform(-1.0, 1.0, (6_000, 3)), rng.uniform(0.1, 1.0, 6_000)
        y = X @ [0.4, -0.2, 0.1] + 0.2 * rng.normal(size=6_000) / np.sqrt(w)
        known = {"bounds_X": (-1, 1), "bounds_y": (-3, 3), "epsilon": 3.0}
        model = PrivateLinearRegression(inference=True, random_state=seed, **known)
        model.fit(X, y, sample_weight=w)
        assert np.isfinite(model.coef_std_).all()
        error = np.abs(model.coef_ - [0.4, -0.2, 0.1])
        covered += int((error < 1.96 * model.coef_std_).sum())
        total += 3
    assert covered / total > 0.85  # 0.95 is exact: fails by chance once in 500
