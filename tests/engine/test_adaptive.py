"""Adaptive objective perturbation: its plan, its account, and that releases are all it knows."""

from __future__ import annotations

import math
import warnings

import mpmath
import numpy as np
import pytest

import fastmix
from fastmix import PrivateLinearRegression
from fastmix.accounting import GaussianEvent, ObjectiveEvent
from fastmix.certificate import verify_certificate
from fastmix.data.chunks import ArrayChunk, Chunks
from fastmix.engine import AdaptiveObjective, Sizes, Target
from fastmix.engine.last_stage import MOST_KEPT
from fastmix.estimators.intervals import _STORED
from fastmix.estimators.models import fixing
from fastmix.releases import minimise
from fastmix.releases.noise import Noise
from tests.transcripts import names, recording, replaying

mp = mpmath.mp.clone()
mp.dps = 40

PUBLIC = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}


def problem(seed=0, n=2000, d=3, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * np.geomspace(1.0, 0.05, d)
    y = np.clip(0.3 + X @ rng.normal(size=d) / d + noise * rng.normal(size=n), -1, 1)
    return X, y


def made(**parameters):
    """Return an estimator, some of whose parameters are those of its method."""
    own = {name: parameters.pop(name) for name in ("rounds", "solver") if name in parameters}
    return fixing(PrivateLinearRegression, **own)(**parameters)


def fitted(X, y, seed=1, **parameters):
    """Fit with everything public, and no warning about a useless fit."""
    model = made(**{**PUBLIC, "random_state": seed, **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", "(invalid|divide by zero|overflow)", RuntimeWarning)
        return model.fit(X, y)


# --- the account ---------------------------------------------------------------------------------


def profile(mu, epsilon):
    """Return the profile of a Gaussian release at any real epsilon, in 40 digits."""
    mu, e = mp.mpf(mu), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


def recomputed(events, epsilon):
    """Return delta by Theorem 2, from the events alone."""
    (objective,) = (event for event in events if isinstance(event, ObjectiveEvent))
    gaussian = [event for event in events if isinstance(event, GaussianEvent)]
    assert len(events) == 1 + len(gaussian)
    squares = [
        event.count * (mp.mpf(event.sensitivity) / mp.mpf(event.sigma)) ** 2 for event in gaussian
    ]
    mu_g = mp.sqrt(mp.fsum(squares))
    total = profile(mp.sqrt(mp.mpf(objective.mu) ** 2 + mu_g**2), epsilon)
    return max(total + profile(mu_g, mp.mpf(epsilon) - mp.mpf(objective.eps_c)), 2 * total)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (50, 5), (2000, 3), (10**6, 10), (10**5, 300)])
def test_the_account_is_that_of_theorem_two(n, d, epsilon, delta):
    """Within the target, and nearly all of it."""
    for intercept in (True, False):
        model = PrivateLinearRegression(epsilon=epsilon, delta=delta, fit_intercept=intercept)
        spent = model.account(n, d)
        assert spent.epsilon <= epsilon * (1.0 + 1e-9)
        assert spent.delta == delta
        assert 0.97 * delta <= recomputed(spent.events, epsilon) <= delta


@pytest.mark.parametrize("inference", [True, False])
@pytest.mark.parametrize("rounds", [None, 0, 1, 2, 7, 20])
def test_every_number_of_rounds_is_accounted_for(rounds, inference):
    model = made(epsilon=1.0, delta=1e-6, rounds=rounds, inference=inference)
    events = model.account(5000, 4).events
    assert 0.97e-6 <= recomputed(events, 1.0) <= 1e-6
    several = [e.count for e in events if isinstance(e, GaussianEvent) and e.count > 1]
    if rounds in (2, 7, 20):
        assert several == [rounds, *[2] * inference]  # those of the curvature


def test_the_plan_is_a_function_of_public_sizes():
    """Other data of the same shape have the same plan, events and settings."""
    X, y = problem()
    models = [fitted(X, y), fitted(-(X[::-1] ** 3), np.ones_like(y)), fitted(0.0 * X, 0.0 * y)]
    assert len({repr(model.privacy_.events) for model in models}) == 1
    assert len({repr(model.privacy_.parameters) for model in models}) == 1
    sizes, target = Sizes(2000, 4, True, True), Target(1.0, 1.0 / 2000**2)
    for inference in (True, False):
        method = AdaptiveObjective()
        plan = (method.inferring_plan if inference else method.plan)(sizes, target)
        model = fitted(X, y, inference=inference)
        assert plan.spent.events == model.privacy_.events
        assert (model.privacy_.events == models[0].privacy_.events) == inference


@pytest.mark.parametrize("rounds", [None, 0, 1, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_certificate_is_verified(rounds, intercept):
    X, y = problem(n=600)
    model = fitted(X, y, rounds=rounds, fit_intercept=intercept)
    assert verify_certificate(model.privacy_.to_json()).verified
    assert model.chosen_["rounds"] == (rounds if rounds is not None else model.chosen_["rounds"])
    events = model.privacy_.events
    assert recomputed(events, 1.0) <= 1.0 / 600**2


@pytest.mark.parametrize("inference", [True, False])
def test_what_is_drawn_has_the_ratios_of_the_events(inference):
    X, y = problem()
    with recording() as transcript:
        model = fitted(X, y, rounds=3, inference=inference)
    drawn = [event for release in transcript for event in release.events]
    released = [*["second moments"] * 3, "gradient counts", "minimiser"]
    assert names(transcript) == released + ["curvature", "curvatures"] * inference
    (objective,) = (event for event in drawn if isinstance(event, ObjectiveEvent))
    (planned,) = (e for e in model.privacy_.events if isinstance(e, ObjectiveEvent))
    assert objective == planned
    total = math.fsum(1.0 / e.sigma**2 for e in drawn if isinstance(e, GaussianEvent))
    charged = math.fsum(e.mu**2 for e in model.privacy_.events if isinstance(e, GaussianEvent))
    assert total == pytest.approx(charged, rel=1e-12)


@pytest.mark.parametrize("inference", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_without_rounds_public_sizes_tell_what_is_released(intercept, inference):
    """Few rows: the mean alone; more: counts of targets; many: a line after the minimiser.

    Of 50 rows noise would hide the curvature, so that none is released.
    """
    released = []
    for n in (50, 2000, 20_000):
        X, y = problem(n=n)
        with recording() as transcript:
            model = fitted(X, y, rounds=0, fit_intercept=intercept, inference=inference)
        released.append(names(transcript))
        assert recomputed(model.privacy_.events, 1.0) <= 1.0 / n**2
    mean = ["target mean"] * intercept
    minimiser = ["minimiser", *["curvature", "curvatures"] * inference]
    assert released == [
        [*mean, "minimiser"],
        [*mean, "gradient counts", *minimiser],
        [*mean, "gradient counts", *minimiser, "line"],
    ]


def test_counts_of_targets_tell_their_spread():
    """From spreads of 0.02 to 0.7: found within a half."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (20_000, 2))
    for spread in (0.02, 0.1, 0.3, 0.7):
        y = 0.2 + spread * rng.choice([-1.0, 1.0], len(X))
        found = fitted(X, y, rounds=0, bounds_y=(-2, 2)).chosen_["residual_spread"]
        assert 0.6 <= 2.0 * found / spread <= 1.5


def test_a_line_makes_up_for_clipping_and_skew():
    """A skewed target: clipped low, a fit without the line is far from its mean."""
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, (50_000, 3))
    y = 0.1 * rng.exponential(size=len(X)) * (2.0 + X @ [1.0, -0.5, 0.2])
    model = fitted(X, y, rounds=0)
    best = np.linalg.lstsq(np.column_stack((X, np.ones(len(X)))), y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, best[:3], atol=0.02)
    assert model.intercept_ == pytest.approx(best[3], abs=0.01)
    assert model.chosen_["kept"] > 1.0


# --- everything after the releases is a function of them -----------------------------------------


def other_data(n, d):
    rng = np.random.default_rng(77)
    yield np.zeros((n, d)), np.zeros(n)
    yield rng.choice([-1.0, 1.0], (n, d)), np.ones(n)
    yield 1e-9 * rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)


@pytest.mark.parametrize("solver", ["gram", "sketch"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_model_is_a_function_of_its_releases(rounds, intercept, solver):
    """Replayed on other data, with other seeds: the same coefficients, choices and certificate."""
    X, y = problem(n=500)
    settings = {"rounds": rounds, "fit_intercept": intercept, "solver": solver}
    with recording() as transcript:
        first = fitted(X, y, **settings)
    for seed, (A, b) in enumerate(other_data(*X.shape)):
        with replaying(transcript):
            second = fitted(A, b, seed=100 + seed, **settings)
        np.testing.assert_array_equal(first.coef_, second.coef_)
        assert first.intercept_ == second.intercept_
        assert first.chosen_ == second.chosen_
        assert first.gradient_noise_ == second.gradient_noise_
        assert first.privacy_.data == second.privacy_.data
        assert first.privacy_.parameters == second.privacy_.parameters
        assert set(vars(first)) == set(vars(second))
        for name in _STORED:  # intervals too, and what they say is identified
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name), name)


@pytest.mark.parametrize("rounds", [0, 2])
def test_what_is_printed_is_the_same_for_all_data(rounds, capsys):
    X, y = problem(n=300)
    printed = []
    for A, b in ((X, y), *other_data(*X.shape)):
        fitted(A, b, rounds=rounds)
        printed.append(capsys.readouterr())
    assert len(set(printed)) == 1


# --- hostile data and parameters -----------------------------------------------------------------


def hostile(name, n, d):
    rng = np.random.default_rng(5)
    X, y = problem(3, n, d)
    if name == "constant columns":
        X[:, 0], X[:, -1] = 1.0, 0.25
    elif name == "collinear":
        X[:] = X[:, :1]
    elif name == "nearly collinear":
        X[:] = X[:, :1] + 1e-9 * rng.normal(size=X.shape)
    elif name == "zero":
        X[:], y[:] = 0.0, 0.0
    elif name == "targets at a bound":
        y[:] = 1.0
    elif name == "one row that counts":
        X[1:], y[1:] = 0.0, 0.0
        X[0], y[0] = 1.0, -1.0
    elif name == "outliers":
        X *= 1e-6
        X[0], y[0] = -1.0, 1.0
        X[1 % n], y[1 % n] = 1.0, 1.0
    elif name == "beyond the bounds":
        X, y = 1e200 * X, 1e200 * y
    return X, y


NAMES = [
    "constant columns",
    "collinear",
    "nearly collinear",
    "zero",
    "targets at a bound",
    "one row that counts",
    "outliers",
    "beyond the bounds",
]


def is_sane(model):
    assert np.isfinite(model.coef_).all()
    assert math.isfinite(model.intercept_)
    assert all(math.isfinite(value) for value in model.chosen_.values())
    assert 0.0 <= model.chosen_["kept"] <= MOST_KEPT


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 8), (40, 3), (3000, 4)])
def test_hostile_data(name, n, d):
    for seed in range(3):
        for rounds in (None, 0, 5):
            for intercept in (True, False):
                X, y = hostile(name, n, d)
                is_sane(fitted(X, y, seed, rounds=rounds, fit_intercept=intercept, delta=1e-6))


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-6, 0.1, 0.4])
def test_extreme_parameters(epsilon, delta):
    """A fit that can be planned can be made."""
    for n in (1, 2, 7, 50):
        X, y = problem(n, n, 2)
        for rounds in (None, 2):
            for solver in ("gram", "sketch"):
                settings = {"epsilon": epsilon, "delta": delta, "rounds": rounds}
                is_sane(fitted(X, y, solver=solver, **settings))


@pytest.mark.parametrize("rounds", [None, 2, 5])
@pytest.mark.parametrize("epsilon", [1.0, 100.0])
def test_a_column_that_its_bounds_make_constant(epsilon, rounds):
    X, y = problem(n=20_000)
    bounds = ([-1.0, 0.5, -1.0], [1.0, 0.5, 1.0])
    is_sane(fitted(X, y, epsilon=epsilon, rounds=rounds, bounds_X=bounds))


def none_fails(X, y, count=12, **parameters):
    for seed in range(count):
        model = made(**{**PUBLIC, "random_state": seed, **parameters})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            is_sane(model.fit(X, y))


@pytest.mark.parametrize(("n", "epsilon", "rounds"), [(2000, 1.0, 20), (50_000, 10.0, 5)])
def test_no_failure_of_the_solver_tells_of_a_record(n, epsilon, rounds):
    """One record among rows of zeros: 9 of 10 fits failed with it, and none without it."""
    settings = {"epsilon": epsilon, "delta": 1e-7, "rounds": rounds, "fit_intercept": False}
    X, y = np.zeros((n, 3)), np.zeros(n)
    none_fails(X, y, **settings)
    X[0], y[0] = (1.0, -0.5, 0.3), 1.0
    none_fails(X, y, **settings)


@pytest.mark.parametrize(("n", "epsilon", "rounds"), [(2000, 1.0, 20), (50_000, 10.0, 5)])
def test_constant_features_and_many_rounds(n, epsilon, rounds):
    """LinAlgError leaves the fit after the charge: every row is the same, rank 1."""
    X, y = np.tile([0.3, 0.7, -0.2], (n, 1)), np.full(n, 0.5)
    none_fails(X, y, 4, epsilon=epsilon, delta=1e-7, rounds=rounds)


def test_wrong_parameters_are_refused_before_a_charge():
    X, y = problem(n=100)
    budget = fastmix.BudgetAccountant(10.0, 1e-3)
    for wrong in ({"rounds": 21}, {"rounds": -1}, {"solver": "magic"}):
        with pytest.raises(ValueError, match="must be"):
            fitted(X, y, accountant=budget, **wrong)
    with pytest.raises(TypeError):
        PrivateLinearRegression(residual_clip=1.0)
    assert len(budget) == 0


# --- where the data lie --------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [0, 3])
def test_chunks_and_arrays_agree(rounds):
    X, y = problem(n=1500)
    first = fitted(X, y, rounds=rounds)
    for size in (1, 400, 1500):
        parts = [
            ArrayChunk(str(i), X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)
        ]
        if size == 1:
            parts = [*parts[:60], ArrayChunk("rest", X[60:], y[60:])]
        model = made(**PUBLIC, random_state=1, rounds=rounds)
        second = model.fit_chunks(Chunks(parts, X.shape[1]))
        np.testing.assert_allclose(second.coef_, first.coef_, rtol=1e-8, atol=1e-8)
        assert second.intercept_ == pytest.approx(first.intercept_, rel=1e-8, abs=1e-8)
        assert second.chosen_ == pytest.approx(first.chosen_, rel=1e-8)


def test_parquet_and_arrays_agree(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = problem(n=1500)
    table = pa.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "y": y})
    parquet.write_table(table, tmp_path / "data.parquet", row_group_size=200)
    model = PrivateLinearRegression(**PUBLIC, random_state=1).fit_parquet(tmp_path / "data.parquet")
    first = fitted(X, y)
    np.testing.assert_allclose(model.coef_, first.coef_, rtol=1e-8, atol=1e-8)


# --- the order of a fit --------------------------------------------------------------------------


def test_the_charge_comes_before_any_noise(monkeypatch):
    X, y = problem(n=200)
    budget = fastmix.BudgetAccountant(10.0, 1e-3)
    charged = []
    real = Noise.release

    def watched(self, *args, **kwargs):
        charged.append(len(budget))
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Noise, "release", watched)
    fitted(X, y, None, rounds=2, accountant=budget)
    assert charged == [1] * 6  # two rounds, the counts, the minimiser and two of its curvature
    with pytest.raises(fastmix.BudgetError):
        fitted(X, y, None, rounds=2, accountant=fastmix.BudgetAccountant(0.5, 1e-3))
    assert charged == [1] * 6


def test_a_solver_that_does_not_arrive_is_not_seen(monkeypatch):
    """Neither in what is released nor in the coefficients, beyond the noise on the minimiser."""
    X, y = problem(n=400)
    with recording() as expected:
        usual = fitted(X, y, 0, rounds=2)
    monkeypatch.setattr(minimise, "_MOST_STEPS", 0)
    with recording() as transcript:
        other = fitted(X, y, 0, rounds=2)
    assert len(transcript) == len(expected) == 6
    np.testing.assert_allclose(other.coef_, usual.coef_, rtol=1e-4, atol=1e-5)
