"""A fit stopped at any step has been charged for whatever it drew, and leaves nothing half-done."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone

import fastmix
from fastmix import BudgetAccountant
from fastmix.accounting import ledger
from fastmix.estimators.models import fixing
from fastmix.paper import AdaptiveStatistics
from fastmix.random import secret_generator
from fastmix.releases import noise

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6}
MODELS = {
    "AdaSSP": fastmix.AdaSSP(),
    "DPGradientDescent": fastmix.DPGradientDescent(n_steps=3),
    "FastIHM": fastmix.FastIHM(n_steps=3),
    "FastIHM paper": fastmix.FastIHM(variant="paper", n_steps=2),
    "IHM": fastmix.IHM(n_steps=3),
    "IHM literal": fastmix.IHM(variant="paper", n_steps=2, literal=True),
    "LinearMixing": fastmix.LinearMixing(),
    "LinearMixing fast": fastmix.LinearMixing(fast=True),
    "ObjectivePerturbation": fastmix.ObjectivePerturbation(),
    "PrivateLinearRegression": fixing(fastmix.PrivateLinearRegression, rounds=2)(),
}

#: Where the order of a fit is decided; the thorough test stops everywhere.
WHERE = (
    "fastmix/releases",
    "fastmix/estimators",
    "fastmix/engine",
    "fastmix/paper",
    "fastmix/accounting/budget",
    "accounting/ledger",
)


class Interrupter:
    """Watch the calls of a fit, raise KeyboardInterrupt at one of them, and see what was drawn.

    Calls of Python functions and of built-in ones are watched alike, so that a stop falls between
    any two steps that can be told apart from Python. A stop is a place in the code and how often
    it was reached: how many calls a fit makes in all differs with what earlier fits have cached.
    """

    def __init__(self, stop=None, where=WHERE):
        self.stop, self.where = stop, where
        self.times, self.visited, self.sampled = Counter(), [], 0

    def __call__(self, frame, event, argument):
        # An interrupt of a generator that is being closed is lost, by Python itself.
        if event not in ("call", "c_call") or frame.f_code.co_flags & inspect.CO_GENERATOR:
            return
        name = frame.f_code.co_filename
        if event == "call" and "fastmix/releases/noise" in name:
            self.sampled += frame.f_code.co_name == "_floored"
        if any(part in name for part in self.where):
            caller = frame.f_back if event == "call" else frame
            called = argument.__name__ if event == "c_call" else frame.f_code.co_name
            place = (name, called, caller.f_code.co_filename, caller.f_lineno)
            self.times[place] += 1
            if (place, self.times[place]) == self.stop:
                raise KeyboardInterrupt
            self.visited.append((place, self.times[place]))

    def run(self, function, *arguments):
        sys.setprofile(self)
        try:
            function(*arguments)
        finally:
            sys.setprofile(None)
        return self


@pytest.fixture
def generators(monkeypatch):
    """Keep every secret generator that a fit makes, with the state that it began with."""
    kept = []

    def keep(*arguments, **options):
        generator = secret_generator(*arguments, **options)
        kept.append((generator, pickle.dumps(generator.bit_generator.state)))
        return generator

    monkeypatch.setattr(noise, "secret_generator", keep)
    return kept


def moved(generators):
    return any(pickle.dumps(g.bit_generator.state) != state for g, state in generators)


def problem():
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (40, 3)), rng.uniform(-1, 1, 40)


def evenly(watched, most=15):
    """Return ``most`` of the calls, evenly spread."""
    return watched.visited[:: max(1, len(watched.visited) // most)]


def every_place(watched):
    """Return every place that a fit reaches, at the first two times and at the last."""
    return [
        (place, time) for place, time in watched.visited if time in (1, 2, watched.times[place])
    ]


def stop_everywhere(model, generators, where, stops):
    """Stop where ``stops`` says; return how many stops were charged, and how many not."""
    X, y = problem()
    for _ in range(2):  # the first fit fills caches, of accounts too
        budget = BudgetAccountant(float("inf"), 1e-4)
        generators.clear()
        whole = Interrupter(where=where).run(
            clone(model).set_params(accountant=budget, **BOUNDS).fit, X, y
        )
    assert len(budget) == 1
    assert moved(generators) or whole.sampled
    charged = uncharged = missed = 0
    for stop in stops(whole):
        # Fresh, because checking a longer ledger takes more calls.
        budget = BudgetAccountant(float("inf"), 1e-4)
        estimator = clone(model).set_params(accountant=budget, **BOUNDS)
        generators.clear()
        interrupter = Interrupter(stop, where)
        try:
            interrupter.run(estimator.fit, X, y)
        except KeyboardInterrupt:
            pass
        else:
            place, time = stop
            assert interrupter.times[place] < time, f"the stop at {stop} was swallowed"
            missed += 1
            continue
        after = len(budget)  # which also shows that the lock was given back
        assert after in (0, 1)
        if interrupter.sampled or moved(generators):
            assert after == 1, f"drew at {stop} without a charge"
        charged += after
        uncharged += 1 - after
    assert missed <= 0.05 * (charged + uncharged)
    return charged, uncharged


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_fit_has_paid_for_what_it_drew(name, generators):
    charged, uncharged = stop_everywhere(MODELS[name], generators, WHERE, evenly)
    assert charged > 1
    assert uncharged > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_at_every_place(name, generators):
    charged, uncharged = stop_everywhere(
        MODELS[name], generators, ("fastmix/", "accounting/ledger"), every_place
    )
    assert charged > 20
    assert uncharged > 20


def test_the_watch_would_see_a_draw_without_a_charge(monkeypatch, generators):
    """The test can fail: an estimator that charges after it draws is caught."""
    solve, spend = AdaptiveStatistics.solve, BudgetAccountant.spend
    late = []
    monkeypatch.setattr(BudgetAccountant, "spend", lambda *arguments, **_: late.append(arguments))

    def solve_then_pay(*arguments):
        solution = solve(*arguments)
        spend(*late.pop()) if late else None
        return solution

    monkeypatch.setattr(AdaptiveStatistics, "solve", solve_then_pay)
    with pytest.raises(AssertionError, match="without a charge"):
        stop_everywhere(MODELS["AdaSSP"], generators, WHERE, evenly)


def test_a_stopped_fit_leaves_no_model_and_can_be_repeated():
    X, y = problem()
    budget = BudgetAccountant(float("inf"), 1e-4)
    model = fastmix.IHM(accountant=budget, **BOUNDS)
    fastmix.IHM(**BOUNDS).fit(X, y)  # its plan is cached now, for both fits below
    visited = Interrupter().run(fastmix.IHM(**BOUNDS).fit, X, y).visited
    with pytest.raises(KeyboardInterrupt):
        Interrupter(stop=visited[120]).run(model.fit, X, y)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "privacy_")
    first = len(budget)
    model.fit(X, y)
    assert len(budget) == first + 1


@pytest.mark.parametrize("call", ["fit", "len"])
def test_an_interrupt_while_the_lock_is_released_leaves_no_lock(call, monkeypatch):
    """Otherwise the process waits for itself, and every other process for it."""
    monkeypatch.setattr(ledger, "LOCK_TIMEOUT", 0.05)
    budget = BudgetAccountant(float("inf"), 1e-4)
    model = fastmix.AdaSSP(accountant=budget, **BOUNDS)
    step = (model.fit, *problem()) if call == "fit" else (len, budget)
    where = ("fastmix/_system",)
    visited = Interrupter(where=where).run(*step).visited
    stops = [stop for stop in visited if stop[0][1] in ("unlock", "flock")]
    assert len(stops) >= 3
    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            Interrupter(stop, where).run(*step)
        assert len(budget) >= 0
