"""The shared budget: arithmetic, refusals, copies, and many processes on one ledger."""

import contextvars
import copy
import gc
import json
import math
import os
import pickle
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from fastmix import LinearMixing
from fastmix._system import lineage
from fastmix.accounting import (
    BudgetAccountant,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    Part,
    PrivacyEvent,
    PrivacySpent,
    RdpAccountant,
    SketchEvent,
    TailEvent,
    _active,
    gaussian_epsilon,
    gaussian_sigma,
)
from fastmix.accounting.charge import merged
from fastmix.accounting.ledger import OpenLedger
from fastmix.errors import BudgetError

#: So small that Laplace charges add up exactly: converting their curves gains nothing.
TINY = 1e-300


def laplace(epsilon, delta=0.0):
    """Return a charge of (epsilon, delta)."""
    return PrivacySpent([Part("laplace", [LaplaceEvent(1.0, epsilon)], delta)])


def gaussian(sigma, delta=1e-6):
    return PrivacySpent([Part("gaussian", [GaussianEvent(sigma)], delta)])


def mixed():
    """Return a charge in two parts with every kind of event."""
    sketch = [LaplaceEvent(20.0, count=2), SketchEvent("fast_mix", 600.0, 500), TailEvent(1e-8)]
    return PrivacySpent(
        [Part("sketch", sketch, 2e-7), Part("gradient", [GaussianEvent(30.0)], 3e-7)]
    )


UNBOUNDED = PrivacySpent([Part("gaussian", [GaussianEvent(1.0)], 0.0)])


#: A charge of 1/64 in a fresh interpreter. Forks are made there: this process may have threads.
PRELUDE = """
import gc, os, random, signal, sys, time, warnings
warnings.simplefilter("ignore")
from fastmix.accounting import BudgetAccountant, LaplaceEvent, Part, PrivacySpent
from fastmix.errors import BudgetError
spent = PrivacySpent([Part("laplace", [LaplaceEvent(64.0)], 0.0)])
"""


def python(script, *arguments):
    """Run a script in a fresh interpreter and return what it printed."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Arithmetic


def test_empty_budget():
    budget = BudgetAccountant(1.0, 1e-6)
    assert (budget.epsilon, budget.delta, budget.rule) == (1.0, 1e-6, "renyi")
    assert budget.total() == (0.0, 1e-6)
    assert budget.total()._fields == ("epsilon", "delta")
    assert budget.remaining() == (1.0, 1e-6)
    assert budget.remaining()._fields == ("epsilon", "delta")
    assert budget.charges == ()
    assert len(budget) == 0
    assert bool(budget)


def test_charges_come_back_as_they_were():
    budget = BudgetAccountant(10.0, 1e-5)
    spent = [mixed(), gaussian(5.0), laplace(0.25)]
    for at, one in enumerate(spent):
        budget.spend(one, label=f"fit {at}")
    assert [charge[:2] for charge in budget.charges] == [
        (f"fit {at}", one) for at, one in enumerate(spent)
    ]
    assert all(charge.time.endswith("+00:00") and not charge.leaks for charge in budget.charges)
    assert len(budget) == 3


def test_ledger_lines(tmp_path):
    budget = BudgetAccountant(10.0, 1e-5, ledger=tmp_path / "ledger")
    budget.spend(mixed(), label="first")
    budget.spend(mixed())
    _, header, *lines = map(json.loads, Path(budget.ledger).read_text().splitlines())
    assert (header["epsilon"], header["delta"], header["rule"]["rule"]) == (10.0, 1e-5, "renyi")
    assert [line["label"] for line in lines] == ["first", ""]
    assert all(line["time"].endswith("+00:00") for line in lines)
    assert all(line["spent"] == mixed().to_dict() for line in lines)
    assert len({line["id"] for line in lines}) == 2


def test_one_charge_costs_no_more_than_it_certifies():
    budget = BudgetAccountant(10.0, 1e-6)
    budget.spend(mixed())
    assert 0.0 < budget.total().epsilon <= mixed().epsilon


def test_gaussian_charges_by_each_rule():
    totals = {}
    for rule in ("renyi", "gaussian", "basic"):
        budget = BudgetAccountant(10.0 if rule == "basic" else 1.0, 1e-6, rule=rule)
        for _ in range(16):
            budget.spend(gaussian(20.0, 1e-6 / 16.0))
        totals[rule] = budget.total().epsilon
        assert budget.total().delta == 1e-6
    exact = gaussian_epsilon(5.0, 1e-6)
    assert totals["gaussian"] == pytest.approx(exact, rel=1e-9)
    assert exact < totals["renyi"] < totals["basic"]
    assert totals["basic"] == pytest.approx(16.0 * gaussian_epsilon(20.0, 1e-6 / 16.0), rel=1e-9)


def test_what_the_filter_costs_on_a_declared_list():
    """The order is fixed for the budget: where it is full, the best order gains very little."""
    spent = PrivacySpent([Part("sketch", [SketchEvent("fast_mix", 2500.0, 5000)], 1e-8)])
    joint = RdpAccountant([*spent.events] * 12).get_epsilon(1e-6)
    budget = BudgetAccountant(1.03 * joint, 1e-6)
    for _ in range(12):
        budget.spend(spent)
    assert budget.total().epsilon <= 1.03 * joint


def test_pure_charges_add_up():
    budget = BudgetAccountant(1.0, 1e-6)
    budget.spend(laplace(0.375))
    budget.spend(laplace(0.125))
    assert budget.total() == (0.5, 1e-6)
    assert budget.remaining() == (0.5, 1e-6)


def test_basic_composition_needs_its_delta():
    budget = BudgetAccountant(2.0, 1e-6, rule="basic")
    for _ in range(3):
        budget.spend(laplace(0.5, 1e-6 / 3))
    assert budget.total().epsilon <= 1.5  # three thirds are the whole, whatever the rounding
    with pytest.raises(BudgetError, match="the deltas of all fits together"):
        budget.spend(laplace(0.5, 1e-9))


def test_tails_beyond_their_share_certify_nothing():
    budget = BudgetAccountant(100.0, 1e-6)
    spent = PrivacySpent([Part("tail", [GaussianEvent(5.0), TailEvent(4e-8)], 9e-7)])
    budget.spend(spent)
    budget.spend(spent)
    with pytest.raises(BudgetError, match="the deltas of all fits together"):
        budget.spend(spent)


def test_equal_events_are_merged_without_changing_the_account():
    events = [event for _ in range(7) for event in mixed().events]
    joined = list(merged(events))
    assert len(joined) == 3 + 7
    expected = RdpAccountant(events).get_epsilon(1e-5)
    assert RdpAccountant(joined).get_epsilon(1e-5) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bound", SketchEvent.BOUNDS)
def test_declared_sketches_cost_what_the_joint_account_says(bound):
    """Two fast sketches of the same data are not one sketch with more rows."""
    events = [SketchEvent(bound, 60.0, 40), GaussianEvent(20.0)]
    fit = PrivacySpent([Part("fit", events, 1e-6)])
    budget = BudgetAccountant(50.0, 1e-6)
    budget.declare([fit, fit])
    assert budget.total().epsilon == pytest.approx(
        RdpAccountant(events * 2).get_epsilon(1e-6), rel=1e-12
    )


def test_two_declared_fast_sketches_have_no_exact_account():
    fit = LinearMixing(
        epsilon=1.0, delta=1e-6, fast=True, bounds_X=(-1, 1), bounds_y=(-1, 1)
    ).account(10_000, 5)
    budget = BudgetAccountant(10.0, 1e-6)
    budget.declare([fit, fit])
    assert budget.total().epsilon == pytest.approx(1.50447893, rel=1e-6)  # 1.364 for one sketch


def test_numpy_scalars_in_a_charge():
    event = GaussianEvent(np.float64(5.0), count=np.int64(2))
    budget = BudgetAccountant(10.0, 1e-6)
    budget.spend(PrivacySpent([Part("gaussian", [event], np.float64(1e-6))]))
    assert budget.total().epsilon == pytest.approx(gaussian_epsilon(5.0, 1e-6, 2**0.5))


# Refusals


def test_exact_budget_fits_and_no_more():
    budget = BudgetAccountant(1.0, TINY)
    budget.spend(laplace(0.5))
    budget.spend(laplace(0.5))
    assert budget.remaining().epsilon < 1e-3
    with pytest.raises(BudgetError):
        budget.spend(laplace(1e-8))


@pytest.mark.parametrize(("excess", "fits"), [(0.5e-9, True), (2e-9, False), (-2e-9, True)])
def test_tolerance_is_one_billionth(excess, fits):
    budget = BudgetAccountant(4.0, TINY)
    spent = laplace(4.0 * (1.0 + excess))
    if fits:
        budget.check(spent)
        budget.spend(spent)
        assert budget.remaining().epsilon < 1e-3
    else:
        with pytest.raises(BudgetError):
            budget.check(spent)
        with pytest.raises(BudgetError):
            budget.spend(spent)


def test_tenths_fill_a_budget():
    budget = BudgetAccountant(1.0, TINY)
    for _ in range(10):
        budget.spend(laplace(0.1))
    assert len(budget) == 10


def test_refusal_says_all_and_writes_nothing(tmp_path):
    budget = BudgetAccountant(1.0, TINY, ledger=tmp_path / "ledger")
    budget.spend(laplace(0.75))
    before = (tmp_path / "ledger").read_bytes()
    for attempt in (budget.check, budget.spend):
        with pytest.raises(BudgetError) as caught:
            attempt(laplace(0.5))
        message = str(caught.value)
        assert "The budget (epsilon=1, delta=1e-300) does not cover" in message
        assert "this fit (epsilon=0.5, delta=0)" in message
        assert "total would be epsilon=1.25 at delta=1e-300" in message
        assert "no noise was drawn" in message
    assert (tmp_path / "ledger").read_bytes() == before


def test_check_writes_nothing_when_it_fits():
    budget = BudgetAccountant(1.0, 1e-6)
    budget.check(laplace(0.75))
    assert len(budget) == 0


def test_infinite_charge_needs_an_infinite_budget():
    budget = BudgetAccountant(1e9, 1e-6)
    assert UNBOUNDED.epsilon == math.inf
    assert UNBOUNDED.joint_epsilon(1e-6) < 1e9
    with pytest.raises(BudgetError, match=r"this fit \(epsilon=inf.*no finite epsilon"):
        budget.spend(UNBOUNDED)
    assert len(budget) == 0


def test_infinite_budget_only_records(tmp_path):
    budget = BudgetAccountant(math.inf, 1e-6, ledger=tmp_path / "ledger")
    for spent in (laplace(1e6), UNBOUNDED, laplace(2.0, 0.5)):
        budget.spend(spent)
    assert len(BudgetAccountant.load(tmp_path / "ledger")) == 3
    assert budget.remaining() == (math.inf, 1e-6)
    assert "remaining=inf" in repr(budget)


def test_release_without_noise():
    spent = PrivacySpent([Part("ols", [NonPrivateEvent()], 1e-7)])
    with pytest.raises(BudgetError, match=r"this fit \(epsilon=inf.*no finite epsilon"):
        BudgetAccountant(1e9, 1e-6).spend(spent)
    budget = BudgetAccountant(math.inf, 1e-6)
    for one in (spent, mixed(), spent):
        budget.spend(one)
    assert budget.charges[0].spent == spent
    assert budget.total() == (math.inf, 1e-6)
    assert budget.remaining() == (math.inf, 1e-6)


@pytest.mark.parametrize("reasons", [("the noise was seeded by the caller",), ("one", "two")])
def test_a_void_guarantee_is_refused_or_recorded_as_such(reasons):
    budget = BudgetAccountant(1e9, 1e-6)
    for attempt in (budget.check, budget.spend):
        with pytest.raises(BudgetError, match="guarantee is void: " + "; ".join(reasons)):
            attempt(laplace(0.1), leaks=reasons)
    assert len(budget) == 0
    record = BudgetAccountant(math.inf, 1e-6)
    record.spend(laplace(0.1))
    assert record.total().epsilon == pytest.approx(0.1)
    record.spend(laplace(0.1), leaks=reasons)
    assert record.charges[1].leaks == reasons
    assert record.total().epsilon == math.inf


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0.0, 1e-6), ValueError, "epsilon must be greater than 0; got epsilon=0.0"),
        ((math.nan, 1e-6), ValueError, "epsilon must not be NaN"),
        (("1", 1e-6), TypeError, "epsilon must be a real number"),
        ((1.0, 0.0), ValueError, "delta must lie strictly between 0 and 1"),
        ((1.0, 1.0), ValueError, "delta must lie strictly between 0 and 1"),
    ],
)
def test_bad_budgets(arguments, error, message):
    with pytest.raises(error, match=message):
        BudgetAccountant(*arguments)


def test_bad_arguments():
    budget = BudgetAccountant(1.0, 1e-6)
    for attempt in (budget.check, budget.spend):
        with pytest.raises(TypeError, match=r"spent must be a PrivacySpent; got spent=0\.5"):
            attempt(0.5)
    with pytest.raises(TypeError, match="label must be a string; got label=3"):
        budget.spend(laplace(0.1), label=3)
    with pytest.raises(TypeError, match="ledger must be a path or None; got ledger=3"):
        BudgetAccountant(1.0, 1e-6, ledger=3)
    with pytest.raises(ValueError, match="rule must be one of 'renyi', 'gaussian', 'basic'"):
        BudgetAccountant(1.0, 1e-6, rule="best")
    assert len(budget) == 0


def test_full_disk_refuses_the_charge(monkeypatch):
    budget = BudgetAccountant(1.0, 1e-6)
    budget.spend(laplace(0.25))

    def full(fd):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            budget.spend(laplace(0.25))
    assert len(budget) == 1
    budget.spend(laplace(0.75))


# Files


def test_path_is_created_and_continued(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    BudgetAccountant(1.0, 1e-6, ledger="ledger").spend(laplace(0.75), label="first")
    again = BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger")
    assert [charge.label for charge in again.charges] == ["first"]
    with pytest.raises(BudgetError):
        again.spend(laplace(0.5))


@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 1e-6), (1.0, 1e-5)])
def test_another_budget_cannot_continue_a_file(tmp_path, epsilon, delta):
    BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger")
    before = (tmp_path / "ledger").read_bytes()
    with pytest.raises(ValueError, match=r"it is for epsilon=1\.0, delta=1e-06, rule='renyi'"):
        BudgetAccountant(epsilon, delta, ledger=tmp_path / "ledger")
    with pytest.raises(ValueError, match=r"it is for .* rule='renyi'"):
        BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger", rule="basic")
    assert (tmp_path / "ledger").read_bytes() == before


def test_a_rule_is_kept(tmp_path):
    BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger", rule="gaussian")
    again = BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger")
    assert again.rule == BudgetAccountant.load(again.ledger).rule == "gaussian"
    assert pickle.loads(pickle.dumps(again)).rule == "gaussian"


def test_a_charge_that_is_not_whole_stops_every_use(tmp_path):
    budget = BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger")
    for _ in range(2):
        budget.spend(laplace(0.125))
    whole = (tmp_path / "ledger").read_bytes()
    (tmp_path / "ledger").write_bytes(whole.replace(b"laplace", b"Laplace"))
    uses = [budget.total, budget.remaining, lambda: budget.spend(laplace(0.1)), lambda: len(budget)]
    for use in uses:
        with pytest.raises(ValueError, match=r"ledger' with line 3 damaged"):
            use()
    assert "ledger cannot be read" in repr(budget)


@pytest.mark.parametrize("record", [{"label": "x"}, {"label": "x", "time": "", "spent": 3}])
def test_a_line_that_is_whole_and_no_charge(tmp_path, record):
    budget = BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger")
    with budget._open(write=True) as ledger:
        ledger.append(record)
    with pytest.raises(ValueError, match=r"ledger' with line 3 damaged"):
        budget.total()


# Declared lists


def test_a_declared_list_is_accounted_jointly():
    fits = [gaussian(3.0 * gaussian_sigma(1.0, 1e-6), 1e-7)] * 9
    budget = BudgetAccountant(1.0, 1e-6)
    paid = budget.declare(fits, label="nine fits")
    assert [charge.label for charge in budget.charges] == ["nine fits"]
    assert budget.total().epsilon == pytest.approx(1.0, rel=1e-9)
    for at in range(9):
        assert paid.remaining().epsilon > 0.0
        paid.spend(fits[at])
    assert paid.remaining().epsilon == 0.0
    with pytest.raises(BudgetError):
        paid.spend(fits[0])
    # Charged one by one, the filter takes fewer of them.
    budget = BudgetAccountant(1.0, 1e-6)
    for fit in fits[:7]:
        budget.spend(fit)
    with pytest.raises(BudgetError):
        budget.spend(fits[7])


def test_only_what_was_declared_is_paid():
    budget = BudgetAccountant(3.0, 1e-6)
    paid = budget.declare([laplace(0.5), gaussian(20.0), laplace(0.5)])
    with pytest.raises(BudgetError, match="not on the declared list"):
        paid.spend(laplace(0.01))
    other = pickle.loads(pickle.dumps(paid))
    other.spend(gaussian(20.0))
    with pytest.raises(BudgetError):
        paid.spend(gaussian(20.0))
    paid.spend(laplace(0.5))
    other.spend(laplace(0.5))
    assert len(budget) == 1


def test_a_list_that_does_not_fit_is_not_charged():
    budget = BudgetAccountant(1.0, 1e-6)
    with pytest.raises(BudgetError):
        budget.declare([laplace(0.75)] * 2)
    with pytest.raises(ValueError, match="declared must hold at least one account"):
        budget.declare([])
    with pytest.raises(TypeError, match="spent must be a PrivacySpent"):
        budget.declare([0.5])
    assert len(budget) == 0


# Temporary ledgers and copies


def test_temporary_file_is_private_and_goes_with_its_owner():
    budget = BudgetAccountant(1.0, 1e-6)
    path = Path(budget.ledger)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    copies = [pickle.loads(pickle.dumps(budget)) for _ in range(2)]
    copies.pop().spend(laplace(0.5))
    gc.collect()
    assert len(budget) == 1
    del budget
    gc.collect()
    assert not path.parent.exists()
    with pytest.raises(FileNotFoundError, match="ledger must exist; got ledger="):
        copies[0].spend(laplace(0.1))
    assert not path.parent.exists()


FORKS = (
    PRELUDE
    + """
budget = BudgetAccountant(1.0, 1e-6)
for way in ("del", "exit"):
    child = os.fork()
    if child == 0:
        budget.spend(spent, label=way)
        if way == "del":
            del budget
            gc.collect()
            os._exit(0)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
budget.spend(spent, label="parent")
assert [charge.label for charge in budget.charges] == ["del", "exit", "parent"]
print(budget.ledger)
"""
)


def test_only_the_end_of_the_owner_removes_the_file():
    path = Path(python(FORKS))
    assert path.is_absolute()
    assert not path.parent.exists()


def test_save_and_load(tmp_path):
    budget = BudgetAccountant(1.0, TINY)
    budget.spend(laplace(0.25), label="first")
    budget.save(tmp_path / "copy")
    copy_ = BudgetAccountant.load(tmp_path / "copy")
    assert (copy_.epsilon, copy_.delta, copy_.charges) == (1.0, TINY, budget.charges)
    assert copy_ != budget
    copy_.spend(laplace(0.25))
    assert (len(copy_), len(BudgetAccountant.load(tmp_path / "copy")), len(budget)) == (2, 2, 1)
    with pytest.raises(ValueError, match="path must be new or hold an earlier copy"):
        budget.save(tmp_path / "copy")
    assert len(copy_) == 2


def test_failed_save_keeps_the_previous_copy(tmp_path, monkeypatch):
    budget = BudgetAccountant(1.0, 1e-6)
    budget.save(tmp_path / "copy")
    budget.spend(laplace(0.25))

    def fail(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="No space left"):
            budget.save(tmp_path / "copy")
    assert len(BudgetAccountant.load(tmp_path / "copy")) == 0
    budget.save(tmp_path / "copy")
    assert len(BudgetAccountant.load(tmp_path / "copy")) == 1


def test_load_of_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="ledger must exist"):
        BudgetAccountant.load(tmp_path / "absent")
    assert list(tmp_path.iterdir()) == []


# Copies


class Estimator(BaseEstimator):
    def __init__(self, accountant=None):
        self.accountant = accountant


def test_copies_are_the_same_budget():
    budget = BudgetAccountant(1.0, TINY)
    assert copy.copy(budget) is budget
    assert copy.deepcopy([budget])[0] is budget
    estimator = clone(clone(Estimator(budget)))
    assert estimator.accountant is budget
    estimator.accountant.spend(laplace(0.5))
    assert budget.total().epsilon == 0.5
    assert "charges=1" in repr(estimator)


def test_pickles_share_the_ledger():
    budget = BudgetAccountant(1.0, TINY)
    other = pickle.loads(pickle.dumps(budget))
    assert other == budget
    assert hash(other) == hash(budget)
    assert other != "budget"
    other.spend(laplace(0.75))
    with pytest.raises(BudgetError):
        budget.spend(laplace(0.5))


def test_a_pickle_can_be_read_without_its_file_and_not_used(tmp_path):
    data = pickle.dumps(BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger"))
    (tmp_path / "ledger").unlink()
    budget = pickle.loads(data)
    assert "ledger cannot be read" in repr(budget)
    for use in (budget.total, lambda: budget.spend(laplace(0.1))):
        with pytest.raises(FileNotFoundError, match=r"ledger must exist; got ledger=.*ledger=None"):
            use()
    assert not (tmp_path / "ledger").exists()


def test_pickle_of_a_file_that_was_exchanged(tmp_path):
    data = pickle.dumps(BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger"))
    (tmp_path / "ledger").unlink()
    BudgetAccountant(5.0, 1e-6, ledger=tmp_path / "ledger")
    with pytest.raises(ValueError, match="ledger must still be the one of this budget"):
        pickle.loads(data).total()


def test_a_new_ledger_of_the_same_budget_is_another_one(tmp_path):
    budget = BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger")
    data = pickle.dumps(budget)
    budget.spend(laplace(0.9))
    (tmp_path / "ledger").unlink()
    BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger")
    for other in (budget, pickle.loads(data)):
        with pytest.raises(ValueError, match="ledger must still be the one of this budget"):
            other.spend(laplace(0.9))


class OwnEvent(PrivacyEvent):
    """An event that no ledger can read back."""


class OwnGaussian(GaussianEvent):
    """An event that a ledger would read back as another."""


@pytest.mark.parametrize(
    "part",
    [
        Part("event", [OwnEvent()], 1e-7),
        Part("event", [OwnGaussian(100.0)], 1e-7),
        Part(("a", "b"), [LaplaceEvent(100.0)], 0.0),  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_what_a_ledger_cannot_keep_is_refused(part, epsilon):
    budget = BudgetAccountant(epsilon, 1e-6)
    with pytest.raises((TypeError, ValueError), match="must"):
        budget.spend(PrivacySpent([part]))
    assert budget.total().epsilon == len(budget) == 0


def test_leaks_that_can_be_read_once():
    budget = BudgetAccountant(math.inf, 1e-6)
    budget.spend(laplace(0.5), leaks=(reason for reason in ["seeded"]))
    assert budget.charges[0].leaks == ("seeded",)
    assert budget.total().epsilon == math.inf


def test_repr():
    budget = BudgetAccountant(1.0, TINY)
    budget.spend(laplace(0.25))
    expected = "epsilon=1.0, delta=1e-300, rule='renyi', charges=1, spent=0.25, remaining=0.75"
    assert repr(budget) == f"BudgetAccountant({expected})"


# The default of a context


def test_nested_blocks():
    outer, inner = BudgetAccountant(1.0, 1e-6), BudgetAccountant(2.0, 1e-6)
    assert BudgetAccountant.current() is None
    with outer as entered:
        assert entered is outer
        assert BudgetAccountant.current() is outer
        with inner:
            assert BudgetAccountant.current() is inner
            with suppress(RuntimeError), outer:
                assert BudgetAccountant.current() is outer
                raise RuntimeError
            assert BudgetAccountant.current() is inner
        assert BudgetAccountant.current() is outer
    assert BudgetAccountant.current() is None


def test_blocks_left_out_of_turn():
    first, second = BudgetAccountant(1.0, 1e-6), BudgetAccountant(2.0, 1e-6)

    def block():
        with first:
            yield

    suspended = block()
    next(suspended)
    with second:
        suspended.close()
        assert BudgetAccountant.current() is second
    assert BudgetAccountant.current() is None
    first.__exit__(None, None, None)
    assert BudgetAccountant.current() is None


def seen_in_a_thread():
    """Return what a thread of its own finds, or the error."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(BudgetAccountant.current)


def test_a_block_is_seen_in_every_context_and_thread():
    with BudgetAccountant(1.0, 1e-6) as budget:
        for context in (contextvars.Context(), contextvars.copy_context()):
            assert context.run(BudgetAccountant.current) is budget
        assert seen_in_a_thread().result() is budget
        with BudgetAccountant(2.0, 1e-6) as inner:
            assert seen_in_a_thread().result() is inner
        assert seen_in_a_thread().result() is budget
    assert seen_in_a_thread().result() is None


def test_a_thread_that_could_mean_either_budget_is_refused():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with BudgetAccountant(2.0, 1e-6):
            entered.set()
            leave.wait(30)

    with ThreadPoolExecutor(1) as pool, BudgetAccountant(1.0, 1e-6) as budget:
        running = pool.submit(other)
        entered.wait(30)
        try:
            assert BudgetAccountant.current() is budget
            with pytest.raises(BudgetError, match="accountant must be given to a fit"):
                seen_in_a_thread().result()
        finally:
            leave.set()
        running.result()
        assert seen_in_a_thread().result() is budget


def ledger_seen():
    found = BudgetAccountant.current()
    return None if found is None else found.ledger


def test_processes_that_were_started_before_or_inside_a_block_see_it():
    with get_context("spawn").Pool(1) as before, get_context("forkserver").Pool(1) as server:
        assert before.apply(ledger_seen) is server.apply(ledger_seen) is None
        with BudgetAccountant(1.0, 1e-6) as budget:
            assert before.apply(ledger_seen) == server.apply(ledger_seen) == budget.ledger
            with BudgetAccountant(2.0, 1e-6) as inner:
                assert before.apply(ledger_seen) == inner.ledger
            with get_context("spawn").Pool(1) as inside:
                assert inside.apply(ledger_seen) == budget.ledger
        assert before.apply(ledger_seen) is None


@pytest.mark.parametrize("environment", [{}, {"TMPDIR": "/var/tmp"}])
def test_processes_with_another_environment_see_a_block(monkeypatch, tmp_path, environment):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "from fastmix import BudgetAccountant; print(BudgetAccountant.current().ledger)"
    with BudgetAccountant(1.0, 1e-6) as budget:
        command = [sys.executable, "-c", code]
        found = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
        )
    assert found.stdout.strip() == budget.ledger


def test_a_program_that_takes_the_place_of_the_process_sees_its_block(tmp_path):
    code = """
import os, sys
from fastmix import BudgetAccountant
show = "from fastmix import BudgetAccountant; print(BudgetAccountant.current().ledger)"
with BudgetAccountant(1.0, 1e-6, ledger=sys.argv[1]):
    os.execv(sys.executable, [sys.executable, "-c", show])
"""
    command = [sys.executable, "-c", code, str(tmp_path / "ledger")]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str((tmp_path / "ledger").resolve())


@pytest.fixture
def places(monkeypatch, tmp_path):
    """Give two empty places for the folders in which open blocks are written down."""
    found = [tmp_path / "first", tmp_path / "second"]
    for place in found:
        place.mkdir()
    monkeypatch.setattr(_active, "_PLACES", tuple(map(str, found)))
    monkeypatch.setattr(tempfile, "tempdir", str(found[1]))
    return found


def test_open_blocks_are_written_down_for_this_user_only(places):
    with BudgetAccountant(1.0, 1e-6):
        (folder,) = places[0].glob("fastmix-budgets-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert len(list(folder.iterdir())) == 1
    assert list(folder.iterdir()) == []
    folder.chmod(0o777)
    with BudgetAccountant(1.0, 1e-6):  # in the next place
        (other,) = places[1].glob("fastmix-budgets-*")
        assert len(list(other.iterdir())) == 1
    other.chmod(0o777)
    budget = BudgetAccountant(1.0, 1e-6)
    with pytest.raises(PermissionError, match="must be private to this user"), budget:
        pass
    assert BudgetAccountant.current() is None


@pytest.mark.parametrize("link", [False, True])
def test_what_others_can_have_written_down_is_not_read(places, tmp_path, link):
    mine = lineage()[1]
    (folder,) = (folder for folder in _active._folders() if folder.parent == places[0])
    real = tmp_path / "real" if link else folder
    real.mkdir(mode=0o700)
    if link:
        folder.symlink_to(real)
    else:
        real.chmod(0o777)
    budget = BudgetAccountant(1.0, 1e-6)
    (real / mine).write_text(json.dumps([budget.ledger]))
    assert BudgetAccountant.current() is None
    if not link:
        real.chmod(0o700)
        assert BudgetAccountant.current() == budget


# Many at once


def spend_until_refused(budget, times):
    made = 0
    for _ in range(times):
        try:
            budget.spend(laplace(1 / 64))
        except BudgetError:
            continue
        made += 1
    return made


def test_threads_share_a_budget(monkeypatch):
    append = OpenLedger.append

    def slow(self, charge):  # gives a missing lock every chance to show
        time.sleep(0.002)
        append(self, charge)

    monkeypatch.setattr(OpenLedger, "append", slow)
    budget = BudgetAccountant(1.0, TINY)
    other = pickle.loads(pickle.dumps(budget))
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(spend_until_refused, [budget, other] * 4, [10] * 8))
    assert sum(made) == 64 == len(budget)
    assert budget.total().epsilon == 1.0


SPENDERS = (
    PRELUDE
    + """
from fastmix.accounting.ledger import OpenLedger
append = OpenLedger.append
def slow(self, charge):  # gives a missing lock every chance to show
    time.sleep(0.005)
    append(self, charge)
OpenLedger.append = slow
results, write = os.pipe()
for worker in range(4):
    if os.fork() == 0:
        budget = BudgetAccountant(1.0, 1e-300, ledger=sys.argv[1])
        for at in range(25):
            try:
                budget.spend(spent, label=f"{worker}/{at}")
                os.write(write, b"1")
            except BudgetError:
                os.write(write, b"0")
        os._exit(0)
assert all(os.wait()[1] == 0 for worker in range(4))
print(os.read(results, 1000).decode())
"""
)


def test_processes_lose_no_charge_and_never_overspend(tmp_path):
    results = python(SPENDERS, tmp_path / "ledger")
    assert (results.count("1"), results.count("0")) == (64, 36)
    budget = BudgetAccountant.load(tmp_path / "ledger")
    assert len({charge.label for charge in budget.charges}) == len(budget) == 64
    assert budget.total().epsilon == 1.0


def test_spawned_and_loky_workers():
    budget = BudgetAccountant(1.0, TINY)
    with get_context("spawn").Pool(1) as pool:
        pool.apply(BudgetAccountant.spend, (budget, laplace(0.25), "spawn"))
        with pytest.raises(BudgetError, match="no noise was drawn"):
            pool.apply(BudgetAccountant.spend, (budget, laplace(0.8)))
    spend = joblib.delayed(BudgetAccountant.spend)
    joblib.Parallel(2)(spend(budget, laplace(0.125), "loky") for _ in range(4))
    assert [charge.label for charge in budget.charges] == ["spawn"] + 4 * ["loky"]
    assert budget.total().epsilon == pytest.approx(0.75)
    assert Path(budget.ledger).exists()


KILLER = (
    PRELUDE
    + """
budget = BudgetAccountant(float("inf"), 1e-6, ledger=sys.argv[1])
draw = random.Random(7)
known = 0
for kill in range(10):
    acknowledged, write = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            budget.spend(spent)
            os.write(write, b"1")
    os.close(write)
    known += len(os.read(acknowledged, 1))
    time.sleep(draw.uniform(0.0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(acknowledged, 65536):
        known += len(more)
    os.close(acknowledged)
    count = len(BudgetAccountant.load(sys.argv[1]))
    assert known <= count <= known + 1, (known, count)
    known = count
print(known)
"""
)


def test_kill_at_any_moment_leaves_a_readable_ledger(tmp_path):
    count = int(python(KILLER, tmp_path / "ledger"))
    assert count >= 10
    budget = BudgetAccountant.load(tmp_path / "ledger")
    budget.spend(laplace(0.5))
    assert len(budget) == count + 1


DYING = (
    PRELUDE
    + """
budget = BudgetAccountant(1.0, 1e-6, ledger=sys.argv[1])
budget.spend(spent, label="acknowledged")
write = os.pwrite
for share, expected in ((0.0, 1), (0.5, 1), (0.99, 1), (1.0, 2), (0.5, 2)):
    if os.fork() == 0:
        def dying(fd, data, at):
            done = write(fd, data[: int(share * len(data))] if len(data) > 99 else data, at)
            if len(data) > 99:
                os.kill(os.getpid(), signal.SIGKILL)
            return done
        os.pwrite = dying
        budget.spend(spent, label="in flight")
    assert os.wait()[1] == signal.SIGKILL
    assert len(budget) == expected, share
budget.spend(spent, label="after")
print(*[charge.label for charge in budget.charges], sep=", ")
"""
)


def test_kill_in_the_middle_of_a_write(tmp_path):
    assert python(DYING, tmp_path / "ledger") == "acknowledged, in flight, after"
