"""Fits that protect persons: what they compute, what they say, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from fastmix import (
    IHM,
    AdaSSP,
    BudgetAccountant,
    ObjectivePerturbation,
    PrivateLinearRegression,
)
from fastmix.accounting import ObjectiveEvent
from fastmix.certificate import explain, headline, verify_certificate
from fastmix.data import ArrayChunk, ArrayRows, Chunks, RowMap
from fastmix.data.persons import Persons
from fastmix.kernels.losses import LinearHuber
from fastmix.releases import MINIMISER, make_noise

KNOWN = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 12, 2000)
    ids = rng.permutation(np.repeat(np.arange(2000), sizes))
    X = rng.uniform(-1, 1, (len(ids), 3))
    y = np.clip(X @ [0.4, -0.2, 0.1] + 0.1 * rng.normal(size=len(ids)), -1, 1)
    return X, y, ids


@pytest.mark.parametrize("kind", [PrivateLinearRegression, ObjectivePerturbation])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_a_fit_of_persons(kind, k, data):
    X, y, ids = data
    budget = BudgetAccountant(5.0, 1e-3)
    model = kind(epsilon=2.0, accountant=budget, **KNOWN)
    model.fit(X, y, groups=ids, max_rows_per_group=k)
    assert model.score(X, y) > 0.7
    certificate = model.privacy_
    assert certificate.private
    assert certificate.data["n_persons"] == 2000
    assert certificate.data["n_samples"] == len(ids)
    assert certificate.data["max_rows_per_person"] == k
    (event,) = [e for e in certificate.events if isinstance(e, ObjectiveEvent)]
    assert event.rows_per_person == k
    assert verify_certificate(certificate.to_json()).complaints == ()
    assert f"one person (of whom at most {k} rows count)" in headline(certificate)
    words = " ".join(explain(certificate))
    assert "what one person can change" in words
    assert "one record" not in words.replace("counts as one record", "")
    (charge,) = budget.charges
    assert charge.label.endswith(f"per person of up to {k} rows")
    assert charge.spent == model.account(2000, 3, max_rows_per_group=k)
    # The default delta is that of persons, not of rows.
    assert certificate.delta == 1.0 / 2000**2


def test_tampered_persons_are_found(data):
    X, y, ids = data
    model = PrivateLinearRegression(**KNOWN).fit(X, y, groups=ids, max_rows_per_group=3)
    text = model.privacy_.to_json()
    for old, new in [
        ('"n_persons": 2000', '"n_persons": 1999'),
        ('"max_rows_per_person": 3', '"max_rows_per_person": 4'),
        ('"max_rows_per_group": 3', '"max_rows_per_group": null'),
        ('"rows_per_person": 3', '"rows_per_person": 1'),
    ]:
        assert old in text
        assert len(verify_certificate(text.replace(old, new)).complaints) > 1


def test_rows_of_one_person_count_as_one_record(float_noise):
    """The weighted objective has the minimiser of the definition, found by other means."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 2)) / 3.0, rng.uniform(-1, 1, 40)
    weights = rng.dirichlet(np.ones(40)) * 8.0
    rows = ArrayRows(X, RowMap(1.0), y, persons=Persons(8, weights))
    loss = LinearHuber(0.5, 4.0, 1.0)
    noise = make_noise(3, warn=False)
    theta = noise.release(
        MINIMISER, rows, loss=loss, ridge=4.0, mu=50.0, eps_c=1.0, mu_output=5.0, rows_per_person=5
    )
    b = 0.5 / 50.0 * make_noise(3, warn=False).rng.standard_normal(2)
    A = np.array(RowMap(1.0)(X))

    def gradient(t):
        return -A.T @ (weights * loss.slope(y - A @ t)) + 4.0 * t + b

    def value(t):
        # The integral of the gradient from 0 to t.
        s, w = np.polynomial.legendre.leggauss(60)
        return sum(wi * gradient((si + 1) / 2 * t) @ t for si, wi in zip(s, w / 2, strict=True))

    best = minimize(value, np.zeros(2), jac=gradient, tol=1e-12).x
    np.testing.assert_allclose(theta, best, atol=2e-3)


@pytest.mark.parametrize("kind", [PrivateLinearRegression, ObjectivePerturbation])
def test_copies_of_rows_change_nothing(kind):
    """A person whose row is there five times counts like one whose row is there once."""
    rng = np.random.default_rng(7)
    X, y = rng.uniform(-1, 1, (500, 2)), rng.uniform(-1, 1, 500)
    once = kind(random_state=0, **KNOWN).fit(X, y, groups=np.arange(500), max_rows_per_group=5)
    five = kind(random_state=0, **KNOWN)
    ids = np.repeat(np.arange(500), 5)
    five.fit(np.repeat(X, 5, axis=0), np.repeat(y, 5), groups=ids, max_rows_per_group=5)
    np.testing.assert_allclose(once.coef_, five.coef_, atol=1e-4)


def test_refusals_charge_nothing(data):
    X, y, ids = data
    budget = BudgetAccountant(100.0, 1e-3)
    with budget:
        for given, groups, most, message in [
            ({}, ids, None, "max_rows_per_group must be given with groups"),
            ({}, None, 3, "max_rows_per_group must be None without groups"),
            ({}, ids, 0, "max_rows_per_group must be at least 1"),
            ({}, ids, 2.5, "max_rows_per_group must be an integer"),
            ({}, ids[1:], 3, "groups must have"),
            ({"epsilon": float("inf")}, ids, 3, "epsilon must be finite with groups"),
        ]:
            model = PrivateLinearRegression(**given, **KNOWN)
            with pytest.raises((TypeError, ValueError), match=message):
                model.fit(X, y, groups=groups, max_rows_per_group=most)
        with pytest.raises(ValueError, match="solver must be 'auto' or 'gram'"):
            ObjectivePerturbation(solver="sketch", **KNOWN).fit(
                X, y, groups=ids, max_rows_per_group=3
            )
        for kind in (IHM, AdaSSP):
            with pytest.raises(TypeError, match="unexpected keyword argument 'groups'"):
                kind(**KNOWN).fit(X, y, groups=ids)
            table = Chunks([ArrayChunk("X", X, y)], 3, grouped=True)
            with pytest.raises(ValueError, match="which protects single rows only"):
                kind(**KNOWN).fit_chunks(table, max_rows_per_group=3)
        for bad in (np.full(len(y), np.nan), [None] * len(y), np.where(ids > 5, "a", "")):
            with pytest.raises(ValueError, match="groups must hold an id"):
                PrivateLinearRegression(**KNOWN).fit(X, y, groups=bad, max_rows_per_group=3)
    assert len(budget) == 0


def test_metadata_routing(data):
    X, y, ids = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = PrivateLinearRegression(**KNOWN)
        model.set_fit_request(groups=True, max_rows_per_group=True)
        counting = {"groups": ids, "max_rows_per_group": 3}
        fitted = make_pipeline(model).fit(X, y, **counting)
        assert fitted[-1].privacy_.data["n_persons"] == 2000
        scores = cross_validate(model, X, y, params=counting, cv=3)
        assert (scores["test_score"] > 0.5).all()


def test_a_loss_for_single_rows_is_refused_for_persons():
    from fastmix.kernels.losses import CalibratedHuber

    rows = ArrayRows(np.eye(2), RowMap(1.0), np.zeros(2), persons=Persons(1, np.full(2, 0.5)))
    arguments = {"ridge": 4.0, "mu": 1.0, "eps_c": 1.0, "mu_output": 1.0, "rows_per_person": 2}
    noise = make_noise(0, warn=False)
    with pytest.raises(ValueError, match="loss must obey"):
        noise.release(MINIMISER, rows, loss=CalibratedHuber(1.0, 4.0, 1.0), **arguments)
    bare = ArrayRows(np.eye(2), RowMap(1.0), np.zeros(2))
    with pytest.raises(ValueError, match="rows must have weights"):
        noise.release(MINIMISER, bare, loss=LinearHuber(1.0, 4.0, 1.0), **arguments)
    assert noise.drawn == []


def test_ids_appear_in_nothing(data):
    X, y, ids = data
    names = np.array([f"Rumpelstilzchen-{i}" for i in ids])
    model = PrivateLinearRegression(**KNOWN).fit(X, y, groups=names, max_rows_per_group=3)
    assert "Rumpel" not in model.privacy_.to_json() + repr(vars(model))


def test_scores_of_a_model_for_persons_are_refused(data):
    """They would protect single rows, beside a model that protects persons."""
    X, y, ids = data
    budget = BudgetAccountant(100.0, 1e-3)
    model = PrivateLinearRegression(**KNOWN).fit(X, y, groups=ids, max_rows_per_group=3)
    with pytest.raises(ValueError, match="protects persons"):
        model.evaluate(X, y, epsilon=1.0, accountant=budget)
    assert len(budget) == 0


@pytest.mark.parametrize("table", [True, False], ids=["table", "array"])
def test_intervals_of_persons_cover_the_truth(table):
    """Errors of rows of a person are alike: intervals that take rows for persons are too short."""
    covered, naive, total = 0, 0, 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 6, 4_000)
        ids = np.repeat(np.arange(4_000), sizes)
        level = rng.choice(3, 4_000, p=[0.5, 0.3, 0.2])[ids]
        age, own = rng.uniform(0.0, 1.0, 4_000)[ids], rng.normal(size=4_000)[ids]
        pay = 2.0 + age + np.array([0.0, 0.4, -0.4])[level] + 0.7 * own
        pay = pay + 0.4 * rng.normal(size=len(ids))
        truth = np.array([1.0, 0.4, -0.4])
        known = {"epsilon": 3.0, "inference": True, "random_state": seed}
        if table:
            frame = pd.DataFrame({"age": age, "ward": np.array(list("abc"))[level], "pay": pay})
            features = {"age": (0.0, 1.0), "ward": ["a", "b", "c"]}
            known |= {"bounds": {"target": {"pay": (-2.0, 7.0)}, "features": features}}
            given = (frame,)
        else:
            X = np.column_stack([age, level == 1, level == 2]).astype(float)
            known |= {"bounds_X": (0.0, 1.0), "bounds_y": (-2.0, 7.0)}
            given = (X, pay)
        model = PrivateLinearRegression(**known)
        model.fit(*given, groups=ids, max_rows_per_group=5)
        rows = PrivateLinearRegression(**known).fit(*given)
        std = model.coef_std_[:3]
        assert np.isfinite(std).all()
        covered += int((np.abs(model.coef_[:3] - truth) < 1.96 * std).sum())
        naive += int((np.abs(rows.coef_[:3] - truth) < 1.96 * rows.coef_std_[:3]).sum())
        total += 3
    assert covered / total > 0.85  # 0.95 is exact: fails by chance once in 500
    assert naive / total < covered / total
