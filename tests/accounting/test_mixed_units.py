"""A ledger that charges rows and persons of one table says so."""

import warnings

import numpy as np
import pytest

from fastmix import BudgetAccountant, ObjectivePerturbation, PrivateBounds
from fastmix.accounting import noted
from fastmix.accounting.charge import mixed
from fastmix.errors import MixedUnitsWarning

KNOWN = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6}


def fit(budget, file=None, **given):
    X = np.linspace(-1, 1, 2000)[:, None]
    ids = {"groups": np.arange(2000) // 2} if given else {}
    with noted(file=file, label="mine"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ObjectivePerturbation(accountant=budget, **KNOWN, **given).fit(X, X[:, 0], **ids)
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
