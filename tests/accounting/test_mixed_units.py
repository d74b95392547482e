"""A ledger that charges rows and persons of one table says so."""

import warnings

import numpy as np
import pytest

from fastmix import BudgetAccountant, ObjectivePerturbation, PrivateBounds
from fastmix.accounting import noted, one_row_per_person
from fastmix.accounting.charge import mixed
from fastmix.errors import BudgetError, MixedUnitsWarning

KNOWN = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6}


def fit(budget, file=None, **given):
    X = np.linspace(-1, 1, 2000)[:, None]
    ids = {"groups": np.arange(2000) // 2, **given} if given else {}
    with noted(file=file, label="mine"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ObjectivePerturbation(accountant=budget, **KNOWN).fit(X, X[:, 0], **ids)
    return [each for each in caught if each.category is MixedUnitsWarning]


@pytest.mark.parametrize("persons_first", [True, False])
def test_mixed_charges_warn_once(persons_first):
    budget = BudgetAccountant(30.0, 1e-3)
    kinds = [{"max_rows_per_group": 2}, {}] if persons_first else [{}, {"max_rows_per_group": 2}]
    assert not fit(budget, **kinds[0])
    assert not mixed(budget.charges)
    (warning,) = fit(budget, **kinds[1])
    assert "protects single rows only" in str(warning.message)
    assert mixed(budget.charges)
    assert not fit(budget, **kinds[0])  # said before
    assert len(budget) == 3


def test_a_label_does_not_say_who_is_protected():
    """Free text cannot turn a charge for rows into one for persons."""
    X = np.linspace(-1, 1, 2000)[:, None]
    budget = BudgetAccountant(30.0, 1e-3)
    with noted(label="mine, per person of up to 3 rows"):
        ObjectivePerturbation(accountant=budget, **KNOWN).fit(X, X[:, 0])
    assert not budget.charges[0].persons
    assert fit(budget, max_rows_per_group=2)
    again = BudgetAccountant.load(budget.ledger).charges
    assert [charge.rows_per_person for charge in again] == [None, 2]
    assert all(charge.public_rows for charge in again)


def test_public_and_hidden_numbers_of_rows_warn_once():
    X = np.linspace(-1, 1, 2000)[:, None]
    budget = BudgetAccountant(30.0, 1e-3)
    assert not fit(budget)
    for said in (1, 0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ObjectivePerturbation(accountant=budget, public_rows=False, **KNOWN).fit(X, X[:, 0])
        mine = [each for each in caught if each.category is MixedUnitsWarning]
        assert len(mine) == said
        assert all("does not hide the number of rows" in str(each.message) for each in mine)
    assert [charge.public_rows for charge in budget.charges] == [True] + 4 * [False]


@pytest.mark.filterwarnings("error::fastmix.errors.MixedUnitsWarning")
@pytest.mark.parametrize("other", [{"max_rows_per_group": 2}, {"public_rows": False}])
def test_a_warning_that_is_an_error_charges_nothing(other):
    X = np.linspace(-1, 1, 2000)[:, None]
    ids = {}
    if "max_rows_per_group" in other:
        ids, other = {"groups": np.arange(2000) // 2, **other}, {}
    budget = BudgetAccountant(30.0, 1e-3)
    fit(budget)
    with pytest.raises(MixedUnitsWarning):
        ObjectivePerturbation(accountant=budget, **KNOWN, **other).fit(X, X[:, 0], **ids)
    assert len(budget) == 1


@pytest.mark.parametrize("units", [{"rows_per_person": 0}, {"public_rows": "no"}])
def test_units_are_checked(units):
    budget = BudgetAccountant(30.0, 1e-3)
    account = ObjectivePerturbation(**KNOWN).account(100, 1)
    with pytest.raises((TypeError, ValueError), match=next(iter(units))):
        budget.spend(account, **units)
    assert len(budget) == 0
    budget.declare([account], rows_per_person=4, public_rows=False)
    assert budget.charges[0][-2:] == (4, False)


def test_charges_for_different_files_are_not_mixed():
    budget = BudgetAccountant(30.0, 1e-3)
    assert not fit(budget, "a.csv")
    assert not fit(budget, "b.csv", max_rows_per_group=2)
    assert not mixed(budget.charges)
    assert fit(budget, "a.csv", max_rows_per_group=2)


def test_bounds_found_for_persons_say_so_beside_a_label():
    budget = BudgetAccountant(30.0, 1e-3)
    X = np.linspace(-1, 1, 3000)[:, None]
    with noted(label="mine"):
        PrivateBounds(epsilon=1.0, max_rows_per_group=3, accountant=budget).fit(
            X, groups=np.arange(3000) // 3
        )
    assert budget.charges[0].persons
    assert budget.charges[0].label.startswith("mine")


def test_a_budget_for_persons_refuses_rows(tmp_path):
    """Also by another process, a copy and a declared list; nothing is charged."""
    path = tmp_path / "persons.jsonl"
    budget = BudgetAccountant(30.0, 1e-3, ledger=path, unit="person")
    assert "unit='person'" in repr(budget)
    fit(budget, max_rows_per_group=2)
    budget.save(tmp_path / "copy.jsonl")
    account = ObjectivePerturbation(**KNOWN).account(2000, 1)
    declared = budget.declare([account], rows_per_person=1)
    again = BudgetAccountant(30.0, 1e-3, ledger=path)
    for each in (budget, again, BudgetAccountant.load(tmp_path / "copy.jsonl"), declared):
        assert each.unit == "person"
        before = len(each)
        with pytest.raises(BudgetError, match=r"protects persons.*one_row_per_person"):
            fit(each)
        with pytest.raises(BudgetError, match="Nothing was charged"):
            budget.declare([account])
        assert len(each) == before
    with pytest.raises(ValueError, match="unit must be 'person' or None"):
        BudgetAccountant(1.0, 1e-6, unit="row")
    plain = BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "rows.jsonl")
    with pytest.raises(ValueError, match=r"unit='person'; it is for .* unit=None"):
        BudgetAccountant(1.0, 1e-6, ledger=plain.ledger, unit="person")


def test_a_budget_for_persons_takes_tables_of_one_row_per_person():
    budget = BudgetAccountant(30.0, 1e-3, unit="person")
    X = np.linspace(-1, 1, 2000)[:, None]
    with one_row_per_person():
        assert not fit(budget)
        assert not fit(budget, max_rows_per_group=2)
    ObjectivePerturbation(accountant=budget, **KNOWN).fit(
        X, X[:, 0], groups=np.arange(2000), max_rows_per_group=1
    )
    assert [charge.rows_per_person for charge in budget.charges] == [1, 2, 1]
    assert dict(budget.charges[0].notes)["stated"] == "one row per person"
    with pytest.raises(BudgetError):
        fit(budget)  # the statement ends with its block


def test_a_budget_for_persons_refuses_a_hidden_number_before_it_is_released():
    budget = BudgetAccountant(30.0, 1e-3, unit="person")
    X = np.linspace(-1, 1, 2000)[:, None]
    with pytest.raises(BudgetError, match="protects persons"):
        ObjectivePerturbation(accountant=budget, public_rows=False, **KNOWN).fit(X, X[:, 0])
    assert len(budget) == 0
