"""Conversions of a guarantee, checked against group privacy step by step."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from fastmix import AdaSSP, BudgetAccountant, FastIHM, LinearMixing, PrivateLinearRegression
from fastmix.certificate.guarantee import together
from fastmix.certificate.verify import verify_certificate

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}


def fitted(groups=None, **parameters):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (200, 2)), rng.uniform(-1, 1, 200)
    model = PrivateLinearRegression(**{"epsilon": 1.0, "delta": 1e-6, **parameters}, **BOUNDS)
    if groups is None:
        return model.fit(X, y)
    return model.fit(X, y, groups=np.arange(200) // groups, max_rows_per_group=groups)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("count", [1, 2, 5, 10])
def test_a_chain_of_neighbours(epsilon, count):
    """P(M(D_k)) <= e^eps P(M(D_{k-1})) + delta, applied once per record."""
    factor, rest = 1.0, 0.0
    for _ in range(count):
        factor, rest = math.exp(epsilon) * factor, math.exp(epsilon) * rest + 1e-9
    found = together(epsilon, 1e-9, count)
    assert math.exp(found["epsilon"]) == pytest.approx(factor, rel=1e-12)
    assert found["delta"] == pytest.approx(min(1.0, rest), rel=1e-12)


def test_a_pair_that_attains_it():
    """Randomised response on two bits: the conversion to two records is attained at delta 0."""
    epsilon = 0.7
    p = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    ratio = (p * p) / ((1.0 - p) * (1.0 - p))
    assert together(epsilon, 0.0, 2) == {"epsilon": pytest.approx(math.log(ratio)), "delta": 0.0}


def test_extreme_guarantees_convert():
    assert together(math.inf, 1e-6, 2) == {"epsilon": math.inf, "delta": 1.0}
    assert together(1e6, 1e-6, 10)["delta"] == 1.0
    assert together(5.0, 1e-3, 10)["delta"] == 1.0


def test_words_follow_the_population():
    rows = fitted().privacy_.guarantee
    assert rows["unit"].startswith("one row")
    assert "zero-out" in rows["neighbours"]
    assert rows["not_protected"][0] == "the number of rows"
    persons = fitted(groups=4).privacy_.guarantee
    assert persons["unit"].startswith("one person")
    assert "at most 4 count" in persons["unit"]
    assert persons["not_protected"][0] == "the number of rows and of persons"
    hidden = fitted(public_rows=False).privacy_.guarantee
    assert "add or remove" in hidden["neighbours"]
    assert not any("number of rows" in each for each in hidden["not_protected"])


def test_only_sketches_leave_rounding_out():
    """The certificate says for which numbers the guarantee is, and what it leaves out."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (400, 2)), rng.uniform(-1, 1, 400)
    said = {}
    for name, model in {
        "default": PrivateLinearRegression(epsilon=1.0, delta=1e-6, **BOUNDS),
        "published statistics": AdaSSP(epsilon=1.0, delta=1e-6, variant="paper", **BOUNDS),
        "sketches": LinearMixing(epsilon=1.0, delta=1e-6, **BOUNDS),
        "published sketches": FastIHM(epsilon=1.0, delta=1e-6, variant="paper", **BOUNDS),
    }.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a weak guarantee, or too few rows
            said[name] = model.fit(X, y).privacy_.guarantee["floating_point"]
    assert all("the numbers that the computer released" in each for each in said.values())
    sketched = {name for name, each in said.items() if "random sketch" in each}
    assert sketched == {"sketches", "published sketches"}


def test_the_guarantee_is_verified():
    text = fitted().privacy_.to_json()
    assert verify_certificate(text).verified
    for old, new in (('"2": {', '"3": {'), ("central: whoever", "local: whoever")):
        assert old in text
        assert not verify_certificate(text.replace(old, new)).verified


def test_the_ledger_is_named_with_its_total(tmp_path):
    budget = BudgetAccountant(5.0, 1e-5, ledger=tmp_path / "b.jsonl")
    assert fitted().privacy_.ledger is None
    fitted(accountant=budget)
    certificate = fitted(accountant=budget).privacy_
    assert certificate.ledger == {
        "id": budget.identity,
        "rule": "renyi",
        "charges": 2,
        "spent": {"epsilon": budget.total().epsilon, "delta": 1e-5},
        "budget": {"epsilon": 5.0, "delta": 1e-5},
    }
    assert certificate.epsilon < certificate.ledger["spent"]["epsilon"] < 5.0
    assert verify_certificate(certificate.to_json()).verified


def test_what_is_left_says_for_which_fit():
    left = BudgetAccountant(1.0, 1e-6).remaining()
    assert left == (1.0, 1e-6)
    assert "AdaSSP" in repr(left)
    assert "default fit" in str(left)
