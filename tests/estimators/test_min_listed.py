"""A classifier stops where few labels are listed, by a released count alone."""

import json

import numpy as np
import pytest

import fastmix
from fastmix import BudgetAccountant, PrivateLogisticRegression, compare
from fastmix.accounting import LaplaceEvent
from fastmix.accounting.charge import NOTHING_CHARGED
from fastmix.certificate import explain, verify_certificate
from fastmix.errors import BudgetError, DataError
from fastmix.releases import UNLISTED
from tests.transcripts import names, recording, replaying

KNOWN = {"bounds_X": (-1.0, 1.0), "delta": 1e-6, "epsilon": 2.0, "min_listed": 0.5}


def problem(n=4000, unlisted=0.0, classes=("no", "yes")):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, 2))
    at = np.digitize(X @ [1.0, -0.5] + 0.5 * rng.normal(size=n), np.linspace(-1, 1, len(classes)))
    y = np.array(classes, dtype=object)[at.clip(0, len(classes) - 1)]
    y[: round(unlisted * n)] = "Yes"
    return X, y


def model(**given):
    return PrivateLogisticRegression(**{"classes": ["no", "yes"], **KNOWN, **given})


CASES = {
    "two": {},
    "three": {"classes": ["high", "no", "yes"]},
    "hidden": {"public_rows": False},
    "plain": {"inference": False},
    "scored": {"score_share": 0.1},
}


@pytest.mark.parametrize("case", CASES)
def test_a_table_with_listed_labels_is_fitted_within_the_account(case):
    X, y = problem(classes=CASES[case].get("classes", ("no", "yes")))
    budget = BudgetAccountant(10.0, 1e-4)
    fitted = model(accountant=budget, **CASES[case]).fit(X, y)
    certificate = fitted.privacy_
    assert certificate.private
    assert certificate.epsilon <= 2.0
    assert certificate.delta <= 1e-6
    assert verify_certificate(certificate.to_json()).complaints == ()
    assert certificate.parameters["min_listed"] == 0.5
    *first, last = budget.charges
    assert [each.label.split(", ")[-1] for each in first] == [
        *(["number of rows"] if case == "hidden" else []),
        "check of labels",
    ]
    assert first[-1].spent.epsilon == pytest.approx(0.04)
    assert sum(each.spent.epsilon for each in budget.charges) <= 2.0 + 1e-9
    found = [each for each in certificate.events if isinstance(each, LaplaceEvent)]
    pure = [each.pure_epsilon for each in found[: len(first)]]  # exact noise has one of its own
    assert pure == pytest.approx([0.04] * len(first))
    assert last.spent.parts[0].name not in ("number of rows", "check of labels")


@pytest.mark.parametrize("case", CASES)
def test_a_table_with_few_listed_labels_is_charged_for_the_count_only(case):
    X, y = problem(unlisted=0.8, classes=CASES[case].get("classes", ("no", "yes")))
    budget = BudgetAccountant(10.0, 1e-4)
    asked = model(accountant=budget, **CASES[case])
    with recording() as transcript, pytest.raises(DataError, match="2% of epsilon") as caught:
        asked.fit(X, y)
    counted = ["number of rows"] if case == "hidden" else []
    assert names(transcript) == [*counted, "unlisted labels"]
    assert [each.label.split(", ")[-1] for each in budget.charges] == [
        *counted,
        "check of labels",
    ]
    assert "'fastmix check'" in str(caught.value)
    assert not hasattr(asked, "coef_")
    # Without the check such a table is fitted, as it always was.
    asked.set_params(min_listed=0.0).fit(X, y)
    assert "min_listed" not in asked.privacy_.parameters


@pytest.mark.parametrize("given", [{"groups": True}, {"sample_weight": True}])
def test_persons_and_weights(given):
    for share, stops in ((0.8, True), (0.2, False)):
        X, y = problem(unlisted=share)
        fit = {"groups": np.arange(len(y)) // 2, "max_rows_per_group": 3}
        if "sample_weight" in given:
            fit = {"sample_weight": np.full(len(y), 0.5), "max_weight": 1.0}
        if stops:
            with pytest.raises(DataError, match="fewer than 50%"):
                model().fit(X, y, **fit)
        else:
            certificate = model().fit(X, y, **fit).privacy_
            assert verify_certificate(certificate.to_json()).complaints == ()


@pytest.mark.parametrize(("released", "stops"), [(100.1, True), (99.9, False), (0.0, False)])
def test_only_the_released_count_decides(released, stops, monkeypatch):
    """At epsilon 2 the scale is 25, and more than four of it stop a fit, whatever the labels."""
    real = UNLISTED.draw

    def drawn(self, noise, rows, public, given):
        return real(noise, rows, public, given) * 0.0 + released

    monkeypatch.setattr(type(UNLISTED), "draw", drawn)
    for unlisted in (0.0, 1.0):
        X, y = problem(1000, unlisted)
        if stops:
            with pytest.raises(DataError, match="fewer than 50%") as caught:
                model().fit(X, y)
            assert "1,000" not in str(caught.value)
            assert "1000" not in str(caught.value)
        else:
            assert np.isfinite(model().fit(X, y).coef_).all()


def test_the_error_is_the_same_for_all_tables():
    said = set()
    for n, unlisted in ((3000, 0.9), (5000, 1.0), (4001, 0.7)):
        with pytest.raises(DataError) as caught:
            model().fit(*problem(n, unlisted))
        said.add(str(caught.value))
        assert caught.value.__context__ is None
    assert len(said) == 1


def test_everything_is_a_function_of_releases():
    X, y = problem(1000)
    with recording() as transcript:
        first = model(random_state=0).fit(X, y)
    with replaying(transcript):
        second = model(random_state=1).fit(0.0 * X, np.full(len(y), "Yes", dtype=object))
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_a_table_with_enough_labels_is_seldom_refused():
    """Exactly half of the labels are listed: a fit is refused with probability below 1%."""
    X, y = problem(400, 0.5)
    refused = 0
    for seed in range(60):
        try:
            model(random_state=seed, inference=False).fit(X, y)
        except DataError:
            refused += 1
    assert refused <= 5  # fewer than 1 expected; 6 or more have probability below 1e-5


def test_a_budget_that_covers_one_charge_only_is_charged_for_the_whole_fit():
    X, y = problem()
    budget = BudgetAccountant(2.0, 1e-6)
    fitted = model(accountant=budget).fit(X, y)
    assert [each.spent for each in budget.charges] == [fitted.privacy_.spent]
    budget = BudgetAccountant(2.0, 1e-6)
    with pytest.raises(DataError, match="the charge is for the whole fit"):
        model(accountant=budget).fit(*problem(unlisted=0.9))
    assert [each.spent for each in budget.charges] == [fitted.privacy_.spent]
    budget = BudgetAccountant(1.9, 1e-6)
    with pytest.raises(BudgetError, match=NOTHING_CHARGED):
        model(accountant=budget).fit(X, y)
    assert len(budget) == 0


def test_a_declared_fit_is_taken_as_a_whole():
    X, y = problem()
    whole = BudgetAccountant(10.0, 1e-4)
    declared = whole.declare([model().account(len(y), 2)])
    fitted = model(accountant=declared).fit(X, y)
    assert [each.spent for each in declared.charges] == [fitted.privacy_.spent]


@pytest.mark.parametrize("hidden", [False, True])
def test_a_refusal_after_the_check_says_what_was_charged(hidden, monkeypatch):
    """Another process can use the budget up between two charges."""
    budget, spend = BudgetAccountant(9.0, 1e-4), BudgetAccountant.spend

    def full(self, spent, **given):
        if len(self) == 1 + hidden:
            raise BudgetError(f"It is full. {NOTHING_CHARGED}")
        spend(self, spent, **given)

    monkeypatch.setattr(BudgetAccountant, "spend", full)
    said = "The check of labels was"
    if hidden:
        said = "The number of rows and the check of labels were"
    with pytest.raises(BudgetError, match=f"full. {said} charged and released before; the fit"):
        model(accountant=budget, public_rows=not hidden).fit(*problem())
    assert len(budget) == 1 + hidden


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5, float("nan"), "half", None])
def test_shares_that_are_refused_charge_nothing(share):
    budget = BudgetAccountant(9.0, 1e-4)
    with pytest.raises((TypeError, ValueError), match="min_listed must"):
        model(min_listed=share, accountant=budget).fit(*problem(100))
    assert len(budget) == 0


def test_a_changed_certificate_is_found():
    document = json.loads(model().fit(*problem()).privacy_.to_json())
    document["parameters"]["min_listed"] = 0.0
    assert not verify_certificate(json.dumps(document)).verified
    del document["parameters"]["min_listed"]
    assert not verify_certificate(json.dumps(document)).verified


def test_the_certificate_says_it_in_words():
    words = " ".join(explain(model().fit(*problem()).privacy_))
    assert "A noisy count did not show that fewer than 50% of the records have" in words
    assert "noisy count" not in " ".join(explain(model(min_listed=0.0).fit(*problem()).privacy_))


def test_plans_take_the_check_into_account():
    known = {"family": "logistic", "epsilon": 1.0, "classes": ["no", "yes"]}
    with_check = fastmix.plan(20_000, 3, min_listed=0.5, **known).asked.typical
    assert with_check > fastmix.plan(20_000, 3, **known).asked.typical


SETS = {"right": [0, 1], "one": [0], "wrong": [2, 3]}


@pytest.mark.parametrize("case", ["two", "three", "hidden", "plain"])
@pytest.mark.parametrize("min_listed", [0.0, 0.5])
def test_labels_are_compared_under_one_account(case, min_listed):
    X, y = problem(6000, classes=CASES[case].get("classes", ("no", "yes")))
    X = np.hstack((X, np.random.default_rng(0).uniform(-1, 1, X.shape)))
    budget = BudgetAccountant(10.0, 1e-4)
    asked = model(min_listed=min_listed, accountant=budget, **CASES[case])
    found = compare(SETS, X, y, model=asked)
    assert found.best == "right"
    assert list(found.excess) == ["right", "one", "wrong"]
    certificate = found.model.privacy_
    assert certificate.epsilon <= 2.0
    assert verify_certificate(certificate.to_json()).complaints == ()
    assert len(budget) == 1 + (case == "hidden") + (min_listed > 0.0)
    assert (found.predict(X) == y).mean() > 0.5
    np.testing.assert_array_equal(found.predict(X), found.model.predict(X[:, [0, 1]]))
    if min_listed:
        with pytest.raises(DataError, match="fewer than 50%"):
            compare(SETS, X, np.full(len(y), "Yes", dtype=object), model=asked)


def test_errors_of_labels_are_those_of_shares():
    """A label counts as 1 or 0: the excess is that of least squares on the same columns."""
    X, y = problem(20_000)
    found = compare({"both": [0, 1], "one": [0]}, X, y, model=model(epsilon=5.0, random_state=0))
    target, errors = (y == "yes").astype(float), {}
    for name, columns in (("both", [0, 1]), ("one", [0])):
        A = np.column_stack((X[:, columns], np.ones(len(y))))
        errors[name] = np.mean((target - A @ np.linalg.lstsq(A, target, rcond=None)[0]) ** 2)
    excess = errors["one"] - errors["both"]
    assert found.excess["one"] == pytest.approx(excess, abs=5 * found.std)
    assert found.std < excess / 4


def test_everything_of_a_comparison_is_a_function_of_releases():
    X, y = problem(1000, classes=["high", "no", "yes"])
    asked = {"classes": ["high", "no", "yes"]}
    sets = {"both": [0, 1], "one": [0]}
    with recording() as transcript:
        first = compare(sets, X, y, model=model(random_state=0, **asked))
    assert names(transcript).count("contrasts") == 3
    with replaying(transcript):
        other = model(random_state=5, **asked)
        second = compare(sets, 0.0 * X, np.full(len(y), "no", dtype=object), model=other)
    assert first.excess == second.excess
    np.testing.assert_array_equal(first.model.coef_, second.model.coef_)


def test_comparisons_of_labels_need_a_public_list():
    X, y = problem(100)
    with pytest.raises(ValueError, match="classes must be given"):
        compare({"a": [0], "b": [1]}, X, y, model=model(classes=None))
