"""Where the noise of a fit comes from, and that it never comes twice."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone

import fastmix
from fastmix import BudgetAccountant, LowAccuracyWarning, ReproducibleNoiseWarning
from fastmix.releases.noise import Noise, grid_step

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6}
NOISY = {
    "AdaSSP": fastmix.AdaSSP(),
    "DPGradientDescent": fastmix.DPGradientDescent(n_steps=5),
    "FastIHM": fastmix.FastIHM(),
    "FastIHM paper": fastmix.FastIHM(variant="paper"),
    "IHM": fastmix.IHM(),
    "IHM paper": fastmix.IHM(variant="paper"),
    "LinearMixing": fastmix.LinearMixing(),
    "LinearMixing fast": fastmix.LinearMixing(fast=True),
    "PrivateLinearRegression": fastmix.PrivateLinearRegression(),
}
EACH = pytest.mark.parametrize("name", NOISY)


def problem(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


@pytest.fixture(autouse=True)
def nobody_was_told(monkeypatch):
    """The warning about seeds comes once a process; here, once a test."""
    monkeypatch.setattr("fastmix.random._told", False)


# --- seeds --------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("kind", [int, np.random.RandomState, np.random.default_rng])
def test_a_seeded_fit_warns_once_and_says_so_in_its_certificate(name, kind):
    X, y = problem()
    model = clone(NOISY[name]).set_params(random_state=kind(3), **BOUNDS)
    with pytest.warns(ReproducibleNoiseWarning, match="NOT private") as caught:
        model.fit(X, y)
    (seeded,) = (w for w in caught if w.category is ReproducibleNoiseWarning)
    assert seeded.filename == __file__
    assert not model.privacy_.private
    assert model.privacy_.noise == "seeded"
    assert "the noise was seeded by the caller" in model.privacy_.leaks


def test_fits_without_noise_or_without_a_seed_do_not_warn():
    X, y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LowAccuracyWarning)  # there are few rows
        fastmix.IHS(random_state=0, **BOUNDS).fit(X, y)
        fastmix.IHM(epsilon=float("inf"), random_state=0, **BOUNDS).fit(X, y)
        fastmix.IHM(**BOUNDS).fit(X, y)


def test_a_warning_turned_into_an_error_spends_nothing():
    X, y = problem()
    budget = BudgetAccountant(float("inf"), 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LowAccuracyWarning)  # there are few rows
        with pytest.raises(ReproducibleNoiseWarning):
            fastmix.IHM(random_state=0, accountant=budget, **BOUNDS).fit(X, y)
    assert len(budget) == 0


@EACH
def test_no_global_state_is_read_or_written(name):
    X, y = problem()
    fits = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        before = pickle.dumps((np.random.get_state(legacy=False), random.getstate()))  # noqa: NPY002
        fits.append(clone(NOISY[name]).set_params(**BOUNDS).fit(X, y).coef_)
        after = pickle.dumps((np.random.get_state(legacy=False), random.getstate()))  # noqa: NPY002
        assert before == after
    assert (fits[0] != fits[1]).all()


# --- never twice --------------------------------------------------------------------------------


def refit(model, X, y):
    return model.fit(X, y).coef_


def refit_all(arguments):
    return [refit(model, *arguments[1:]) for model in arguments[0]]


@pytest.mark.real_keys
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_forked_and_pickled_estimators_never_repeat_noise():
    """Every estimator, fitted before it is copied, in forks, in loky workers and in place."""
    X, y = problem()
    models = [clone(model).set_params(**BOUNDS).fit(X, y) for model in NOISY.values()]
    rounds = [[model.coef_ for model in models]]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        rounds += pool.map(refit_all, [(models, X, y)] * 3, chunksize=1)
    rounds += Parallel(n_jobs=2, backend="loky")(
        delayed(refit_all)((models, X, y)) for _ in range(3)
    )
    rounds += [refit_all((pickle.loads(pickle.dumps(models)), X, y))]
    for fits in zip(*rounds, strict=True):
        assert len({fit.tobytes() for fit in fits}) == len(rounds) == 8


# --- the grid ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [fastmix.IHM, fastmix.FastIHM, fastmix.DPGradientDescent])
def test_gradients_lie_on_the_grid(cls, monkeypatch):
    X, y = problem()
    drawn = []
    exact = Noise._gaussian

    def spy(self, values, sensitivity, ratio):
        noisy = exact(self, values, sensitivity=sensitivity, ratio=ratio)
        # With room for rounding; not the mean, whose bound is another.
        if 0.5 <= sensitivity <= 0.5 * (1.0 + 1e-9):
            drawn.append((noisy, ratio * sensitivity))
        return noisy

    monkeypatch.setattr(Noise, "_gaussian", spy)
    variant = {} if cls is fastmix.DPGradientDescent else {"variant": "paper"}
    model = cls(n_steps=3, residual_clip=0.5, **variant, **BOUNDS).fit(X, y)
    assert len(drawn) == 3
    for noisy, sigma in drawn:
        step = grid_step(sigma)
        np.testing.assert_array_equal(noisy, np.rint(noisy / step) * step)
    assert drawn[-1][1] == pytest.approx(model.gradient_noise_, rel=1e-9)


def test_statistics_are_drawn_with_their_sensitivities(monkeypatch):
    X, y = problem()
    sizes = []
    exact = Noise._gaussian

    def spy(self, values, sensitivity, ratio):
        assert 1.0 <= sensitivity <= 1.0 + 1e-9  # with room for rounding
        sizes.append((values.size, ratio))
        return exact(self, values, sensitivity=sensitivity, ratio=ratio)

    monkeypatch.setattr(Noise, "_gaussian", spy)
    model = fastmix.AdaSSP(**BOUNDS).fit(X, y)
    sigma = pytest.approx(model.privacy_.parameters["sigma"])
    assert sizes == [(10, sigma), (4, sigma)]


def test_a_seed_repeats_noise_and_voids_the_guarantee():
    X, y = problem()
    first, second = (fastmix.IHM(random_state=0, **BOUNDS).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert not first.privacy_.private
