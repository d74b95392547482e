"""Sample weights, and a number of rows that is not public, for classes, quantiles and Huber's."""

import numpy as np
import pandas as pd
import pytest

import fastmix
from fastmix import BudgetAccountant
from fastmix.accounting import LaplaceEvent
from fastmix.certificate import explain, verify_certificate
from fastmix.kernels.sigmoids import Logistic, SmoothedQuantile

KINDS = {
    "logistic": (fastmix.PrivateLogisticRegression, {"classes": [0, 1]}),
    "quantile": (fastmix.PrivateQuantileRegressor, {"bounds_y": (-4, 4), "quantile": 0.5}),
    "huber": (fastmix.PrivateHuberRegressor, {"bounds_y": (-4, 4)}),
}
KNOWN = {"epsilon": 3.0, "delta": 1e-8, "bounds_X": (-1.0, 1.0)}


def problem(kind, n=8_000):
    """Two populations with opposite slopes: weights decide which one the model describes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    first = rng.random(n) < 0.5
    line = np.where(first, 2.0, -2.0) * X[:, 0]
    y = line + 0.3 * rng.normal(size=n)
    if kind == "logistic":
        y = (line + rng.logistic(size=n) > 0.0).astype(float)
    return X, y, np.where(first, 9.0, 0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_weighted_fit(kind, tmp_path):
    X, y, w = problem(kind)
    estimator, given = KINDS[kind]
    budget = BudgetAccountant(float("inf"), 0.9)
    model = estimator(random_state=0, **KNOWN, **given)
    model.set_params(accountant=budget).fit(X, y, sample_weight=w, max_weight=5)
    slope = np.ravel(model.coef_)[0]
    assert slope == pytest.approx(2.0, abs=0.4)
    plain = estimator(random_state=0, **KNOWN, **given).fit(X, y)
    assert abs(np.ravel(plain.coef_)[0]) < 0.5
    certificate = model.privacy_
    assert certificate.data["max_weight"] == 5
    assert certificate.epsilon <= 3.0
    assert verify_certificate(certificate.to_json()).complaints == ()
    assert "survey weights; weights above 5" in " ".join(explain(certificate))
    assert budget.charges[0].spent == model.account(len(y), 2, weighted=True)
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y, w=w).to_parquet(tmp_path / "t.parquet")
    file = estimator(random_state=0, **KNOWN, **given).fit_parquet(
        tmp_path / "t.parquet", features=["a", "b"], sample_weight="w", max_weight=5
    )
    np.testing.assert_allclose(file.coef_, model.coef_, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_rows_that_is_not_public(kind):
    X, y, _ = problem(kind)
    estimator, given = KINDS[kind]
    budget = BudgetAccountant(5.0, 1e-3)
    model = estimator(public_rows=False, accountant=budget, **KNOWN, **given)
    certificate = model.fit(X, y).privacy_
    assert len(budget) == 2
    assert any(isinstance(event, LaplaceEvent) for event in certificate.spent.events)
    assert abs(certificate.data["n_samples"] - len(y)) < 1000
    assert verify_certificate(certificate.to_json()).complaints == ()
    scored = estimator(public_rows=False, score_share=0.1, **KNOWN, **given).fit(X, y)
    assert scored.scores_.scores


@pytest.mark.parametrize("hidden", [False, True])
def test_weights_and_hidden_numbers_of_several_classes(hidden):
    X, y, w = problem("logistic")
    y = np.where(X[:, 1] > 0.5, 2, y)
    budget = BudgetAccountant(5.0, 1e-3)
    three = {"classes": [0, 1, 2], "inference": True, "score_share": 0.05}
    model = fastmix.PrivateLogisticRegression(
        public_rows=not hidden, accountant=budget, **three, **KNOWN
    ).fit(X, y, sample_weight=w, max_weight=5)
    certificate = model.privacy_
    assert certificate.epsilon <= 3.0
    assert verify_certificate(certificate.to_json()).complaints == ()
    assert len(budget) == 1 + hidden
    assert model.coef_std_.shape == (3, 2)
    low, high = model.scores_.interval("accuracy", 1.0 - 1e-6)
    assert low <= np.average(model.predict(X) == y, weights=np.minimum(w, 5)) <= high


@pytest.mark.parametrize("weight", [1.0, 0.99, 0.5, 0.1, 1e-3])
def test_weights_keep_the_condition(weight):
    """A loss times a weight up to 1 obeys the condition of docs/proofs/objective.md."""
    rng = np.random.default_rng(1)
    for ridge, eps_c, level in ((1.0, 1.0, 1.0), (30.0, 0.2, 2.0), (0.05, 4.0, 0.7)):
        for loss in (
            Logistic(level, ridge, eps_c),
            SmoothedQuantile(level, ridge, eps_c, 0.3, 0.01),
        ):
            r, rho = rng.normal(size=4000) * 5.0, 10.0 ** rng.uniform(-1, 1, 4000)
            y = rng.choice([-1.0, 1.0, 0.3], 4000)
            slope = weight * np.abs(loss.slope(r, rho, y))
            bend = weight * loss.curvature(r, rho, y)
            room = ridge / rho**2 * np.expm1(eps_c * (1.0 - slope * rho / level))
            assert (slope <= level / rho * (1.0 + 1e-12)).all()
            assert (bend <= room * (1.0 + 1e-9) + 1e-12).all()
