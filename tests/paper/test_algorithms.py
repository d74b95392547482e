"""Algorithms 1 to 3 as printed: their lines, their account, and the estimators beside them.

Statistical comparisons are seeded and reject at 6 standard errors: false alarms below 1e-7.
"""

import itertools
import math

import numpy as np
import pytest

from fastmix import FastIHM
from fastmix.accounting import RdpAccountant
from fastmix.datasets import make_sphere
from fastmix.errors import InvalidValueError, WeakPrivacyWarning
from fastmix.paper import (
    algorithm_1,
    algorithm_2,
    calibrate_fast_ihm,
    calibrate_fast_mix,
    debiased_step,
    theorem_1,
)
from fastmix.releases import make_noise
from fastmix.sketches import SRHT, KerdockSketch, SubsampledDCT

N, D = 512, 3
NOISE = calibrate_fast_mix(2.0, 1e-4, 40)
LEVELS = {"gamma": NOISE.gamma, "tau": NOISE.tau, "omega": NOISE.omega}


@pytest.fixture(scope="module")
def problem():
    return make_sphere(N, D, random_state=0)


def regressed(X, y, plan, **options):
    levels = {name: getattr(plan, name) for name in ("gamma", "tau", "sigma", "omega", "k1")}
    return algorithm_2(X, y, **levels, **{"k2": plan.k2, "steps": plan.steps, **options})


@pytest.mark.parametrize("sketch", [SRHT, SubsampledDCT, KerdockSketch], ids=lambda s: s.__name__)
def test_lines_of_algorithm_1(problem, sketch):
    """The noise level follows from the released bounds, and the bounds from what is printed."""
    X, draw, noise = problem[0], sketch(64, N).sample(1), make_noise(3)
    found = algorithm_1(X, k1=40, sketch=draw, rng=noise, **LEVELS)
    m, lam, sketches = (entry.value for entry in noise.transcript)
    longest = draw.largest_norm  # above 1 for the DCT alone
    squared = NOISE.gamma * longest * (longest + 2.0 * m) - lam
    assert found.eta == pytest.approx(math.sqrt(max(0.0, squared)))
    assert np.array_equal(found.sketch, sketches[0])
    assert found.sketch.shape == (40, D)
    assert m >= draw.sketch_and_distortion(X)[1]  # tau is 9.6: fails once in 30,000 seeds
    assert found.epsilon(1e-4) <= 2.0
    assert found.epsilon(1e-4) == RdpAccountant(noise.drawn).get_epsilon(1e-4)


@pytest.mark.parametrize("gamma", [4.0, 20.0, 150.0, 4000.0])
@pytest.mark.parametrize("k1", [1, 60, 3000])
def test_theorem_1_is_the_least_over_orders(gamma, k1):
    """Both cases of the printed bound are its minimum over the orders that Lemma 1 allows."""
    delta, omega = 1e-6, 3.0
    orders = 1.0 + np.geomspace(1e-6, 8.0 * gamma / 25.0 - 1.0, 400_000)
    bounds = 25.0 * orders * k1 / (32.0 * gamma**2) + math.log(3.0 / delta) / (orders - 1.0)
    assert theorem_1(omega, gamma, k1, delta) == pytest.approx(2.0 / omega + bounds.min(), rel=1e-8)


def test_theorem_1_covers_the_account_of_a_run(problem):
    """The account composes the same releases, so it is never above the theorem's epsilon."""
    for gamma, omega, delta in itertools.product((4.0, 30.0, 400.0), (0.5, 3.0), (1e-3, 1e-8)):
        tau = math.log(3.0 / (2.0 * delta))
        found = algorithm_1(
            problem[0], k1=40, gamma=gamma, tau=tau, omega=omega, sketch=SRHT(64, N), rng=1
        )
        assert found.epsilon(delta) <= theorem_1(omega, gamma, 40, delta)
    assert theorem_1(3.0, 25.0 / 8.0, 40, 1e-6) == math.inf
    # Calibration solves the exact characterisation, so it needs less noise than the closed form.
    assert theorem_1(NOISE.omega, NOISE.gamma, 40, 1e-4) > NOISE.spent.epsilon


def test_covariance_of_algorithm_1(problem):
    X, k1 = problem[0], 20_000
    draw = SRHT(64, N).sample(1)
    found = algorithm_1(X, k1=k1, sketch=draw, rng=5, **LEVELS)
    Z = draw.to_dense() @ X
    sigma = Z.T @ Z + found.eta**2 * np.eye(D)
    error = np.sqrt((np.outer(np.diag(sigma), np.diag(sigma)) + sigma**2) / k1)
    assert (np.abs(found.sketch.T @ found.sketch / k1 - sigma) <= 6.0 * error).all()


@pytest.mark.filterwarnings("ignore::fastmix.errors.ReproducibleNoiseWarning")
@pytest.mark.filterwarnings("ignore::fastmix.errors.LowAccuracyWarning")
@pytest.mark.parametrize("shrinkage", [False, True])
def test_one_step_is_the_estimator_s(problem, shrinkage):
    """With one step nothing is drawn in another order: the same seed gives the same numbers."""
    X, y = problem
    plan = calibrate_fast_ihm(3.0, 1e-4, n=N, d=D, steps=1, k1=40, k2=64)
    model = FastIHM(
        epsilon=3.0,
        delta=1e-4,
        variant="paper",
        sketch="srht",
        n_steps=1,
        gaussian_size=40,
        sketch_size=64,
        data_norm=1.0,
        bounds_y=(-1.0, 1.0),
        fit_intercept=False,
        literal=True,
        shrinkage=shrinkage,
        random_state=7,
    ).fit(X, y)
    same = []
    for seed in (7, 8):
        found = regressed(X, y, plan, shrinkage=shrinkage, rng=seed)
        same.append(np.allclose(found.theta, model.coef_, rtol=1e-9))
        assert found.etas[0] > 0.0
    assert same == [True, False]


def test_account_of_algorithm_2(problem):
    """Every event is in the plan, whatever the options; the joint account spends no more."""
    plan = calibrate_fast_ihm(2.0, 1e-5, n=N, d=D, steps=3, k1=40, k2=64)
    spent = set()
    for options in ({}, {"eta_per_step": True}, {"step_length": debiased_step(40, D)}):
        found = regressed(*problem, plan, **options)
        assert len(found.etas) == 3
        spent.add(found.epsilon(1e-5))
    assert len(spent) == 1
    assert 0.5 < spent.pop() <= plan.spent.epsilon <= 2.0


def test_the_largest_level_or_each_its_own(problem):
    plan = calibrate_fast_ihm(2.0, 1e-5, n=N, d=D, steps=4, k1=40, k2=64)
    own = regressed(*problem, plan, eta_per_step=True, rng=1).etas
    assert len(set(own)) == 4
    assert regressed(*problem, plan, rng=1).etas == (max(own),) * 4


def test_steps_reach_least_squares_without_noise(problem):
    X, y = problem
    plan = calibrate_fast_ihm(1e5, 0.1, n=N, d=D, steps=8, k1=200, k2=256)
    theta = regressed(X, y, plan, shrinkage=False).theta
    assert np.allclose(theta, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-2)


def test_debiased_step_is_the_best_factor():
    """Against the mean square of I - s W^-1 over 4000 seeded Wishart matrices."""
    k, d, rng = 24, 4, np.random.default_rng(0)
    inverses = [np.linalg.inv(G.T @ G / k) for G in rng.standard_normal((4000, k, d))]
    errors = {
        s: np.mean([np.sum((np.eye(d) - s * W) ** 2) for W in inverses])
        for s in (1.0, (k - d - 1) / k, debiased_step(k, d), 0.8 * debiased_step(k, d))
    }
    assert min(errors, key=errors.get) == debiased_step(k, d)
    assert debiased_step(k, d) == pytest.approx(20 * 17 / (24 * 23))
    with pytest.raises(ValueError, match="k must be at least 8"):
        debiased_step(7, 4)


def test_an_infinite_account_warns(problem):
    with pytest.warns(WeakPrivacyWarning, match="epsilon is infinite at every smaller delta"):
        found = algorithm_1(problem[0], k1=40, gamma=3.0, tau=0.1, omega=3.0, sketch=SRHT(64, N))
    assert found.epsilon(1e-6) == math.inf
    with pytest.warns(WeakPrivacyWarning, match=r"tau=2 is .* Appendix E needs tau >= log\(3 T"):
        algorithm_2(*problem, gamma=3.0, tau=2.0, sigma=1.0, omega=3.0, k1=40, k2=64)
    with pytest.warns(WeakPrivacyWarning, match="up to 1, so epsilon is infinite at every delta"):
        none = algorithm_2(*problem, gamma=3.0, tau=0.1, sigma=1.0, omega=3.0, k1=40, k2=64)
    assert none.epsilon(0.5) == math.inf


def test_bad_arguments(problem):
    X, y = problem
    plan = calibrate_fast_ihm(2.0, 1e-5, n=N, d=D, k1=40, k2=64)
    holes = np.where(np.arange(N) == 3, np.nan, y)
    for wrong in ((X, holes), (np.where(np.arange(N)[:, None] == 3, np.inf, X), y)):
        noise = make_noise()
        with pytest.raises(InvalidValueError):
            regressed(*wrong, plan, rng=noise)
        assert noise.drawn == []
    with pytest.raises(ValueError, match="y must have shape"):
        regressed(X, y[1:], plan)
    with pytest.raises(ValueError, match=r"gamma must be greater than 1\.25"):
        algorithm_1(X, k1=40, gamma=1.25, tau=20.0, omega=3.0, sketch=SRHT(64, N))
    with pytest.raises(ValueError, match="tau must be at least 0"):
        algorithm_1(X, k1=40, gamma=3.0, tau=-1.0, omega=3.0, sketch=SRHT(64, N))


@pytest.mark.parametrize("sketch", [SRHT, "srht", np.eye(N)], ids=["class", "name", "matrix"])
def test_a_sketch_is_asked_for(problem, sketch):
    plan = calibrate_fast_ihm(2.0, 1e-5, n=N, d=D, k1=40, k2=64)
    noise = make_noise()
    with pytest.raises(TypeError, match=r"sketch must be a sketch such as SRHT\(k2, n\)"):
        algorithm_1(problem[0], k1=40, sketch=sketch, rng=noise, **LEVELS)
    with pytest.raises(TypeError, match=r"sketch must be a sketch such as SRHT\(k2, n\)"):
        regressed(*problem, plan, sketch=sketch, rng=noise)
    assert noise.drawn == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step_length": math.nan}, "step_length must be finite"),
        ({"clip": 0.0}, "clip must be greater than 0"),
        ({"k1": D - 1}, f"k1 must be at least {D}"),
        ({"k2": 0}, "k2 must be at least 1"),
        ({"steps": 0}, "steps must be at least 1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_nothing_is_drawn_for_bad_options(problem, options, message):
    plan = calibrate_fast_ihm(2.0, 1e-5, n=N, d=D, k1=40, k2=64)
    levels = {name: getattr(plan, name) for name in ("gamma", "tau", "sigma", "omega", "k1", "k2")}
    noise = make_noise()
    with pytest.raises(ValueError, match=message):
        algorithm_2(*problem, **{**levels, **options}, rng=noise)
    assert noise.drawn == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", -1.0),
        ("delta", 1.0),
        ("d", 0),
        ("steps", 0),
        ("k1", 0),
        ("k2", N + 1),
        ("varrho", 2.0),
    ],
)
def test_a_plan_without_meaning_is_refused(name, value):
    target = {"epsilon": 2.0, "delta": 1e-5, "n": N, "d": D}
    with pytest.raises(ValueError, match=f"{name} must"):
        calibrate_fast_ihm(**{**target, name: value})
