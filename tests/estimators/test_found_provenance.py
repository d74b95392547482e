"""Bounds that were found privately keep what they cost, wherever they are passed on."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import fastmix
from fastmix import (
    BudgetAccountant,
    BudgetError,
    ObjectivePerturbation,
    PrivateBounds,
    PrivateLinearRegression,
    PublicEncoder,
    compare,
)
from fastmix.certificate import explain, verify_certificate

COST = {"epsilon": 0.1, "delta": 1e-9}
BOUNDS = f"""
[target]
y = [-1, 1]
[features]
a = [-1, 1]
b = [-1, 1]
[found]
epsilon = 0.1
delta = 1e-9
coverage = 0.999
certificate = "sha256:{"0" * 64}"
"""


def problem(n=4000):
    X = np.random.default_rng(0).uniform(-1, 1, (n, 2))
    return X, np.clip(X[:, 0] / 2, -1, 1)


def test_a_comparison_states_what_its_bounds_cost():
    X, y = problem()
    found = PrivateBounds(epsilon=0.5, delta=1e-7).fit(X, y)
    model = PrivateLinearRegression(epsilon=4.0, bounds_X=found.bounds_X_, bounds_y=found.bounds_y_)
    best = compare([[0], [0, 1]], X, y, model=model).model
    stated = best.privacy_.data["bounds_found"]
    assert stated["epsilon"] == pytest.approx(found.privacy_.epsilon)
    assert stated["delta"] == pytest.approx(found.privacy_.delta)
    # Those of the best set are refused for persons, as all of them are.
    persons = ObjectivePerturbation(bounds_X=best.bounds_X, bounds_y=best.bounds_y)
    ids = np.arange(len(y)) // 2
    with pytest.raises(ValueError, match="must protect persons if the fit does"):
        persons.fit(X[:, [0]], y, groups=ids, max_rows_per_group=2)


def test_an_encoder_passes_on_what_its_bounds_cost(tmp_path):
    path = tmp_path / "found.toml"
    path.write_text(BOUNDS)
    X, y = problem()
    table = pd.DataFrame(X, columns=["a", "b"])
    encoder = PublicEncoder(bounds=path).fit(table)
    model = ObjectivePerturbation(bounds_X=encoder.bounds_X_, bounds_y=(-1, 1), delta=1e-6)
    fitted = clone(model).fit(encoder.transform(table), y)
    assert fitted.privacy_.data["bounds_found"] == COST
    by_norm = clone(model).set_params(bounds_X=None, data_norm=encoder.data_norm_)
    by_norm = clone(by_norm).fit(encoder.transform(table), y)
    assert by_norm.privacy_.data["bounds_found"] == COST
    assert "epsilon 0.1" in " ".join(explain(fitted.privacy_))
    ids = np.arange(len(y)) // 2
    with pytest.raises(ValueError, match="must protect persons if the fit does"):
        model.fit(encoder.transform(table), y, groups=ids, max_rows_per_group=2)


def test_bounds_of_two_releases_are_both_checked_and_stated():
    X, y = problem()
    ids = np.arange(len(y)) // 2
    features = PrivateBounds(epsilon=0.5, delta=1e-7, max_rows_per_group=2).fit(X, groups=ids)
    target = PrivateBounds(epsilon=0.3, delta=1e-8).fit(y[:, None], y)
    given = {"bounds_X": features.bounds_X_, "bounds_y": target.bounds_y_, "delta": 1e-6}
    stated = ObjectivePerturbation(**given).fit(X, y).privacy_.data["bounds_found"]
    assert stated["epsilon"] == pytest.approx(features.privacy_.epsilon + target.privacy_.epsilon)
    with pytest.raises(ValueError, match="must protect persons if the fit does"):
        ObjectivePerturbation(**given).fit(X, y, groups=ids, max_rows_per_group=2)


def test_releases_of_the_same_cost_are_both_stated():
    X, y = problem()
    features, target = (PrivateBounds(epsilon=0.5, delta=1e-7) for _ in range(2))
    features, target = features.fit(X), target.fit(y[:, None], y)
    given = {"bounds_X": features.bounds_X_, "bounds_y": target.bounds_y_, "delta": 1e-6}
    stated = clone(ObjectivePerturbation(**given)).fit(X, y).privacy_.data["bounds_found"]
    assert stated["epsilon"] == pytest.approx(features.privacy_.epsilon + target.privacy_.epsilon)
    # Bounds of one release are stated once, also where a clone has copied them.
    both = PrivateBounds(epsilon=0.5, delta=1e-7).fit(X, y)
    given |= {"bounds_X": both.bounds_X_, "bounds_y": both.bounds_y_}
    stated = clone(ObjectivePerturbation(**given)).fit(X, y).privacy_.data["bounds_found"]
    assert stated["epsilon"] == pytest.approx(both.privacy_.epsilon)


def test_bounds_that_were_found_with_seeded_noise_make_no_private_fit(tmp_path):
    """Whoever knows the seed can take the noise off the bounds, whatever the fit adds."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    found = PrivateBounds(epsilon=1.0, delta=1e-6, random_state=0).fit(X, X[:, 0])
    model = PrivateLinearRegression(bounds_X=found.bounds_X_, bounds_y=found.bounds_y_)
    budget = BudgetAccountant(9.0, 1e-3)
    with pytest.raises(BudgetError, match="found from the data without privacy"):
        clone(model).set_params(accountant=budget).fit(X, X[:, 0])
    assert not len(budget)
    model.fit(X, X[:, 0]).save(tmp_path / "m")
    for each in (model, fastmix.load(tmp_path / "m")):
        assert each.privacy_.leaks == ("the bounds were found from the data without privacy",)
        assert not each.privacy_.private
        assert each.privacy_.guarantee["total"]["epsilon"] == math.inf
    assert verify_certificate((tmp_path / "m" / "certificate.json").read_text()).verified
