"""Calibrate, then account with formulas written here: private side, and no noise to spare."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from fastmix.accounting import (
    GaussianEvent,
    LaplaceEvent,
    Part,
    PrivacySpent,
    SketchEvent,
    TailEvent,
    calibrate,
    calibrate_gaussian,
    calibration,
)
from fastmix.engine import Target
from fastmix.errors import CalibrationError
from fastmix.paper import (
    FastIterativeHessianMixing,
    IterativeHessianMixing,
    calibrate_fast_mix,
    calibrate_gauss_mix,
)
from fastmix.paper.fast_ihm import _thirds
from fastmix.paper.ihm import _paper
from tests.accounting.paper import closed_form_epsilon

EPSILONS = st.floats(math.log(1e-3), math.log(50.0)).map(math.exp)
DELTAS = st.floats(math.log(1e-14), math.log(0.1)).map(math.exp)
ROWS = st.integers(1, 2000)
STEPS = st.integers(1, 20)

#: Relative slack in epsilon that a calibration may leave.
SLACK = 1e-6


def assert_tight(spent, target, spent_with_less_noise):
    """At most the target, and within SLACK of it or just past a jump to zero."""
    assert spent <= target
    assert spent >= target * (1.0 - SLACK) or (spent == 0 and spent_with_less_noise > target)


def assert_gradients_tight(oracle, sigma, epsilon, delta, steps):
    """T gradients, in units of the clipping level, are one Gaussian of sensitivity sqrt(T)."""
    sensitivity = oracle.mp.sqrt(steps)
    assert oracle.gaussian_delta(sigma, epsilon, sensitivity) <= delta
    assert oracle.gaussian_delta(sigma, epsilon * (1.0 - SLACK), sensitivity) > delta


def assert_gauss_mix_tight(oracle, gamma, epsilon, delta, k, rows):
    """A sketch of ``rows`` rows and one eigenvalue with noise gamma / sqrt(k), delta each."""
    sketch = oracle.sketch_epsilon(rows, gamma, delta, "gauss_mix")
    noise = gamma / oracle.mp.sqrt(k)
    assert sketch <= epsilon
    assert oracle.gaussian_delta(noise, epsilon - sketch) <= delta
    less = gamma * (1.0 - SLACK)
    sketch = oracle.sketch_epsilon(rows, less, delta, "gauss_mix")
    tighter = epsilon * (1.0 - SLACK) - sketch
    assert tighter < 0 or oracle.gaussian_delta(less / oracle.mp.sqrt(k), tighter) > delta


def fast_ihm(epsilon, delta, k1, steps, *, varrho=None):
    """Return the plan of Algorithm 2, its gamma and its sigma, which is that of every step."""
    varrho = delta / 10.0 if varrho is None else varrho
    plan = _thirds(k1, steps, Target(epsilon, delta), varrho)
    return plan, plan.gamma, plan.sigma


def ihm(epsilon, delta, k, steps, *, varrho=None):
    """Return the plan of iterative Hessian mixing, its gamma and its sigma."""
    plan = _paper(k, steps, Target(epsilon, delta), delta / 10.0 if varrho is None else varrho)
    return plan, plan.gamma, plan.sigma


# --- the search ---------------------------------------------------------------------------------

#: Relative distance to the target at which the search aims at most; twice that with its precision.
AIM = 1e-8


def one_gaussian(budget, delta):
    return PrivacySpent([Part("all", [GaussianEvent(1.0 / math.sqrt(2.0 * budget))], delta)])


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("by", ["delta", "epsilon"])
@pytest.mark.parametrize("start", [None, 1e-9, 1e6])
def test_search_ends_on_the_private_side(oracle, by, epsilon, delta, start):
    """Gaussian noise, whose delta is known to 50 digits: at most the target, wherever it starts."""
    budget = calibrate(
        lambda budget: one_gaussian(budget, delta), epsilon, delta, by=by, start=start
    )

    def spent(budget, epsilon):
        return oracle.gaussian_delta(1.0 / math.sqrt(2.0 * budget), epsilon)

    assert spent(budget, epsilon) <= delta
    # No more is left than the search may leave.
    if by == "epsilon":
        assert spent(budget, epsilon * (1.0 - AIM)) > delta
    else:
        assert spent(budget, epsilon) > delta * (1.0 - 2.0 * AIM)
    assert spent(budget * (1.0 + 3.0 * AIM), epsilon) > delta


@pytest.mark.parametrize("by", ["delta", "epsilon"])
@pytest.mark.parametrize(
    "account",
    [
        lambda budget: None,
        lambda budget: PrivacySpent([Part("a", [LaplaceEvent(0.9), GaussianEvent(9.0)], 1e-6)]),
        lambda budget: PrivacySpent([Part("a", [TailEvent(2e-6), GaussianEvent(9.0)], 1e-6)]),
        lambda budget: PrivacySpent([Part("a", [GaussianEvent(1.0)], 1e-6)]),
    ],
    ids=["no account", "pure epsilon", "tail", "fixed noise"],
)
def test_search_fails_where_nothing_meets_the_target(by, account):
    with pytest.raises(
        CalibrationError, match=r"^No noise level was found for epsilon=1 and delta=1e-06"
    ):
        calibrate(account, 1.0, 1e-6, by=by)


@pytest.mark.parametrize("by", ["delta", "epsilon"])
@pytest.mark.parametrize("end", [1e-4, 0.5, 30.0])
def test_search_stays_below_the_budget_from_which_there_is_no_account(by, end):
    """A jump, as at the level where a sketch has no curve any more."""

    def account(budget):
        return None if budget >= end else one_gaussian(1e-9 * budget, 1e-6)

    budget = calibrate(account, 1.0, 1e-6, by=by)
    assert end * (1.0 - AIM) <= budget < end


@pytest.mark.parametrize("by", ["delta", "epsilon"])
def test_search_puts_its_answer_back(by, monkeypatch):
    """A root beyond the target, by however little more than it can step back, is not returned."""
    found = calibration.brentq

    def calibrated(off):
        monkeypatch.setattr(calibration, "brentq", lambda *args, **kw: found(*args, **kw) + off)
        return calibrate(lambda budget: one_gaussian(budget, 1e-6), 1.0, 1e-6, by=by)

    honest = calibrated(0.0)
    assert calibrated(2e-9) == pytest.approx(honest, rel=3e-9)
    said = r"^No noise level was found that spends at most epsilon=1"
    with pytest.raises(CalibrationError, match=said):
        calibrated(1e-7)


def test_search_ends_where_any_budget_will_do():
    free = PrivacySpent([Part("a", [LaplaceEvent(100.0)], 1e-6)])
    for by in ("delta", "epsilon"):
        assert 1e12 < calibrate(lambda budget: free, 1.0, 1e-6, by=by) < math.inf


def test_search_by_something_else_is_refused():
    with pytest.raises(ValueError, match=r"^by must be one of 'delta', 'epsilon'; got by='rho'\.$"):
        calibrate(lambda budget: None, 1.0, 1e-6, by="rho")


@settings(max_examples=60)
@given(epsilon=EPSILONS, delta=DELTAS, count=STEPS)
def test_gaussian(oracle, epsilon, delta, count):
    sigma = calibrate_gaussian(epsilon, delta, count)
    sensitivity = oracle.mp.sqrt(count)
    assert oracle.gaussian_delta(sigma, epsilon, sensitivity) <= delta
    assert oracle.gaussian_delta(sigma, epsilon * (1.0 - 2.0 * AIM), sensitivity) > delta


# --- Algorithm 1 --------------------------------------------------------------------------------


@settings(max_examples=30)
@given(epsilon=EPSILONS, delta=DELTAS, k1=ROWS)
def test_fast_mix(oracle, epsilon, delta, k1):
    got = calibrate_fast_mix(epsilon, delta, k1)
    assert got.omega == 3.0 / epsilon

    def spent(gamma):
        return 2 / oracle.mp.mpf(got.omega) + oracle.sketch_epsilon(k1, gamma, delta / 3.0)

    target = epsilon
    assert spent(got.gamma) <= target
    if oracle.sketch_epsilon(k1, got.gamma, delta / 3.0) > 0:
        assert spent(got.gamma) >= target * (1.0 - SLACK)
    else:
        assert spent(got.gamma * (1.0 - SLACK)) > target
    # Two one-sided Laplace tails of exp(-tau)/2 are two thirds of delta.
    assert math.exp(-got.tau) == pytest.approx(2.0 * delta / 3.0, rel=1e-12)


@pytest.mark.parametrize("omega", [2.5, 4.0, 100.0])
def test_fast_mix_with_another_split(oracle, omega):
    got = calibrate_fast_mix(1.0, 1e-6, 50, omega=omega)
    assert got.omega == omega
    spent = 2.0 / omega + oracle.sketch_epsilon(50, got.gamma, 1e-6 / 3.0)
    assert 1.0 - SLACK <= spent <= 1.0


@pytest.mark.parametrize("omega", [2.0, 1.0])
def test_fast_mix_refuses_a_split_that_leaves_nothing(omega):
    with pytest.raises(CalibrationError, match=r"^omega must exceed 2 / epsilon = 2; got omega="):
        calibrate_fast_mix(1.0, 1e-6, 50, omega=omega)


@settings(max_examples=30)
@given(gamma=st.floats(1.3, 1e4), omega=st.floats(0.1, 100.0), k1=ROWS, delta=DELTAS)
def test_account_of_fast_mix(oracle, gamma, omega, k1, delta):
    numerical = fast_mix_account(gamma, omega, k1, delta).epsilon
    expected = 2.0 / omega + oracle.sketch_epsilon(k1, gamma, delta / 3.0)
    assert numerical == pytest.approx(float(expected), rel=1e-9)
    closed = 2.0 / omega + closed_form_epsilon(gamma, k1, delta / 3.0)
    if gamma > 25.0 / 8.0:
        printed = 2.0 / omega + oracle.theorem_1_sketch(gamma, k1, delta / 3.0)
        assert closed == pytest.approx(float(printed), rel=1e-9)
        assert numerical <= closed
    else:
        assert closed == math.inf


def test_account_of_fast_mix_is_inf_below_the_range():
    assert fast_mix_account(1.2, 1.0, 5, 1e-6).epsilon == math.inf
    assert closed_form_epsilon(3.0, 5, 1e-6 / 3.0) == math.inf


def fast_mix_account(gamma, omega, k1, delta):
    bounds = Part("bounds", [LaplaceEvent(omega, 1.0, 2)], 0.0)
    return PrivacySpent([bounds, Part("sketch", [SketchEvent("fast_mix", gamma, k1)], delta / 3.0)])


# --- Gaussian sketch ----------------------------------------------------------------------------


@settings(max_examples=30)
@given(epsilon=EPSILONS, delta=DELTAS, k=ROWS)
def test_gauss_mix(oracle, epsilon, delta, k):
    got = calibrate_gauss_mix(epsilon, delta, k)
    assert_gauss_mix_tight(oracle, got.gamma, epsilon, delta / 3.0, k, k)
    assert got.omega == pytest.approx(got.gamma / math.sqrt(k), rel=1e-15)
    assert norm.sf(got.tau) == pytest.approx(delta / 3.0, rel=1e-9)


# --- Algorithm 2 --------------------------------------------------------------------------------


@settings(max_examples=30)
@given(epsilon=EPSILONS, delta=DELTAS, k1=ROWS, steps=STEPS)
def test_fast_ihm_numerical(oracle, epsilon, delta, k1, steps):
    got, gamma, sigma = fast_ihm(epsilon, delta, k1, steps)
    share, delta_share = epsilon / 3.0, delta / 3.0
    assert_tight(
        oracle.sketch_epsilon(k1 * steps, gamma, delta_share),
        share,
        oracle.sketch_epsilon(k1 * steps, gamma * (1.0 - SLACK), delta_share),
    )
    assert_gradients_tight(oracle, sigma, share, delta_share, steps)
    assert_fast_ihm_laplace(got, epsilon, delta, steps, delta / 10.0)


def assert_fast_ihm_laplace(got, epsilon, delta, steps, varrho):
    """2T Laplace releases in epsilon/3, and 2T tails of exp(-tau)/2 in delta/3."""
    assert 2 * steps / got.omega == pytest.approx(epsilon / 3.0, rel=1e-14)
    assert steps * math.exp(-got.tau) <= delta / 3.0 * (1.0 + 1e-12)
    assert got.tau == pytest.approx(
        max(math.log(3.0 * steps / delta), math.log(16.0 * steps / varrho)), rel=1e-11
    )


def test_fast_ihm_varrho_only_raises_tau():
    plain, loose, strict = (
        fast_ihm(1.0, 1e-6, 60, 4, varrho=varrho)[0] for varrho in (None, 0.5, 1e-12)
    )
    assert loose.tau == pytest.approx(math.log(3.0 * 4 / 1e-6), rel=1e-11)
    assert 4 * math.exp(-loose.tau) <= 1e-6 / 3.0
    assert loose.tau < plain.tau < strict.tau
    for other in (loose, strict):
        assert (other.gamma, other.sigma, other.omega) == (plain.gamma, plain.sigma, plain.omega)


# --- iterative Hessian mixing -------------------------------------------------------------------


@settings(max_examples=30)
@given(epsilon=EPSILONS, delta=DELTAS, k=ROWS, steps=STEPS)
def test_ihm(oracle, epsilon, delta, k, steps):
    got, gamma, sigma = ihm(epsilon, delta, k, steps)
    assert_gauss_mix_tight(oracle, gamma, epsilon / 2.0, delta / 4.0, k, k * steps)
    assert_gradients_tight(oracle, sigma, epsilon / 2.0, delta / 4.0, steps)
    assert got.omega == pytest.approx(gamma / math.sqrt(k), rel=1e-15)
    assert oracle.mp.ncdf(-got.tau) <= delta / 4.0
    assert got.tau == pytest.approx(math.sqrt(2.0 * math.log(20.0 / delta)), rel=1e-14)


@pytest.mark.parametrize("varrho", [0.9, 1e-3, 1e-9])
@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-8])
def test_ihm_tail_stays_in_its_share_for_any_varrho(oracle, delta, varrho):
    got, _, _ = ihm(1.0, delta, 20, 3, varrho=varrho)
    assert oracle.mp.ncdf(-got.tau) <= delta / 4.0


@pytest.mark.parametrize(("epsilon", "delta"), [(1e3, 0.1), (1e5, 1e-6), (1e7, 1e-6)])
def test_large_epsilon_is_calibrated_too(oracle, epsilon, delta):
    _, gamma, _ = fast_ihm(epsilon, delta, 1, 1)
    assert oracle.sketch_epsilon(1, gamma, delta / 3.0) <= epsilon / 3.0
    got = calibrate_fast_mix(epsilon, delta, 1)
    assert 2.0 / got.omega + oracle.sketch_epsilon(1, got.gamma, delta / 3.0) <= epsilon
    got = calibrate_gauss_mix(epsilon, delta, 1)
    sketch = oracle.sketch_epsilon(1, got.gamma, delta / 3.0, "gauss_mix")
    assert oracle.gaussian_delta(got.omega, epsilon - sketch) <= delta / 3.0


# --- shape of the answers -----------------------------------------------------------------------


def test_less_budget_needs_more_noise():
    for noise in (
        lambda e, d: calibrate_fast_mix(e, d, 30).gamma,
        lambda e, d: calibrate_gauss_mix(e, d, 30).gamma,
        lambda e, d: fast_ihm(e, d, 30, 4)[1],
        lambda e, d: fast_ihm(e, d, 30, 4)[2],
        lambda e, d: ihm(e, d, 30, 4)[1],
        lambda e, d: ihm(e, d, 30, 4)[2],
    ):
        assert noise(0.5, 1e-6) > noise(1.0, 1e-6) > noise(1.0, 1e-5)


def test_answers_are_frozen():
    got = calibrate_fast_mix(1.0, 1e-6, 10)
    with pytest.raises(AttributeError):
        got.gamma = 0.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: calibrate_fast_mix(0.0, 1e-6, 5),
            ValueError,
            "epsilon must be greater than 0; got epsilon=0.0.",
        ),
        (
            lambda: calibrate_fast_mix(1.0, 1e-6, 0),
            ValueError,
            "k1 must be at least 1; got k1=0.",
        ),
        (
            lambda: calibrate_gauss_mix(1.0, 0.0, 5),
            ValueError,
            "delta must lie strictly between 0 and 1; got delta=0.0.",
        ),
        (
            lambda: calibrate_gauss_mix(1.0, 1e-6, 2.0),
            TypeError,
            "k must be an integer; got k=2.0.",
        ),
        (
            FastIterativeHessianMixing(n_steps=0).check,
            ValueError,
            "n_steps must be at least 1; got n_steps=0.",
        ),
        (
            FastIterativeHessianMixing(failure_probability=0.0).check,
            ValueError,
            "failure_probability must lie strictly between 0 and 1; got failure_probability=0.0.",
        ),
        (
            IterativeHessianMixing(residual_clip=-1.0).check,
            ValueError,
            "residual_clip must be greater than 0; got residual_clip=-1.0.",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
