"""Persons with several rows in classification, quantile and robust regression."""

import math
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastmix
from fastmix.certificate import verify_certificate
from fastmix.kernels.sigmoids import Logistic, SmoothedQuantile

P, K = 6_000, 3
COMMON = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "bounds_X": (-1, 1),
    "random_state": 0,
}
MODELS = {
    "logistic": (fastmix.PrivateLogisticRegression, {"classes": [0, 1]}),
    "quantile": (fastmix.PrivateQuantileRegressor, {"bounds_y": (-6, 6), "quantile": 0.7}),
    "huber": (fastmix.PrivateHuberRegressor, {"bounds_y": (-6, 6)}),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(P), K))
    X = rng.uniform(-1, 1, (len(ids), 2))
    line = X @ [2.0, -1.0]
    labels = (rng.random(len(ids)) < 1 / (1 + np.exp(-2 * line))).astype(float)
    return X, {"logistic": labels}, line + 0.5 * rng.standard_normal(len(ids)), ids


def fitted(name, X, y, ids, **changes):
    kind, own = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(**{**COMMON, **own, **changes}).fit(X, y, groups=ids, max_rows_per_group=K)


@pytest.mark.parametrize("name", MODELS)
def test_persons_are_protected_and_the_fit_is_good(data, name):
    X, labels, target, ids = data
    model = fitted(name, X, labels.get(name, target), ids)
    found = np.ravel(model.coef_)
    assert found[0] / found[1] == pytest.approx(-2.0, abs=0.3)
    assert model.privacy_.data["n_persons"] == P
    assert model.privacy_.data["max_rows_per_person"] == K
    assert verify_certificate(model.privacy_.to_json()).complaints == ()
    assert "person" in str(fastmix.certificate.explain(model.privacy_))


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_one_person_in_several_files(data, name, tmp_path):
    X, labels, target, ids = data
    y = labels.get(name, target)
    for part in range(3):
        own = slice(part, None, 3)
        columns = {"a": X[own, 0], "b": X[own, 1], "y": y[own], "id": ids[own]}
        pq.write_table(pa.table(columns), tmp_path / f"{part}.parquet")
    kind, own = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(**{**COMMON, **own})
        model.fit_parquet(tmp_path, target="y", groups="id", max_rows_per_group=K)
    assert model.privacy_.data["n_persons"] == P
    whole = fitted(name, X, y, ids)
    assert np.ravel(model.coef_) == pytest.approx(np.ravel(whole.coef_), rel=0.1)


def test_more_classes(data):
    X, labels, _, ids = data
    budget = fastmix.BudgetAccountant(math.inf, 1e-5)
    model = fitted("logistic", X, labels["logistic"], ids, classes=[0, 1, 2], accountant=budget)
    assert model.coef_.shape == (3, 2)
    assert [each.rows_per_person for each in budget.charges] == [K]


@pytest.mark.parametrize("quantile", [None, 0.1, 0.5, 0.9])
def test_the_losses_obey_the_linear_bound(quantile):
    """Condition (L) of docs/proofs/people.md, for rows of all lengths."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        level, ridge, eps_c = 10.0 ** rng.uniform(-1, 1, 3)
        if quantile is None:
            loss, y = Logistic(level, ridge, eps_c), rng.choice([-1.0, 1.0, 0.3], 400)
        else:
            width = 10.0 ** rng.uniform(-2, 1)
            loss, y = SmoothedQuantile(level, ridge, eps_c, quantile, width), np.zeros(400)
        lengths = 10.0 ** rng.uniform(-1, 1, 400)
        u = 10.0 ** rng.uniform(-3, 3, 400) * rng.choice([-1.0, 1.0], 400)
        slopes, curvatures = loss.slope(u, lengths, y), loss.curvature(u, lengths, y)
        allowed = ridge * eps_c / lengths**2 * (1.0 - np.abs(slopes) * lengths / level)
        assert np.all(np.abs(slopes) * lengths <= level * (1 + 1e-12))
        assert np.all(curvatures <= allowed * (1 + 1e-9) + 1e-12 * ridge * eps_c / lengths**2)
