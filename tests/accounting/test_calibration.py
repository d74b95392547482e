"""Calibrate, then account with formulas written here: private side, and no noise to spare."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from fastmix.accounting import (
    calibrate_fast_ihm,
    calibrate_fast_mix,
    calibrate_gauss_mix,
    calibrate_ihm,
    fast_mix_epsilon,
)
from fastmix.errors import CalibrationError

EPSILONS = st.floats(math.log(1e-3), math.log(50.0)).map(math.exp)
DELTAS = st.floats(math.log(1e-14), math.log(0.1)).map(math.exp)
ROWS = st.integers(1, 2000)
STEPS = st.integers(1, 20)
CLIPS = st.floats(0.05, 20.0)

#: Relative slack in epsilon that a calibration may leave.
SLACK = 1e-6


def assert_tight(spent, target, spent_with_less_noise):
    """At most the target, and within SLACK of it or just past a jump to zero."""
    assert spent <= target
    assert spent >= target * (1.0 - SLACK) or (spent == 0 and spent_with_less_noise > target)


def assert_gradients_tight(oracle, sigma, epsilon, delta, steps, clip):
    """T clipped gradients are one Gaussian of sensitivity clip sqrt(T)."""
    sensitivity = clip * oracle.mp.sqrt(steps)
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
def test_fast_mix_epsilon(oracle, gamma, omega, k1, delta):
    numerical = fast_mix_epsilon(gamma, omega, k1, delta)
    expected = 2.0 / omega + oracle.sketch_epsilon(k1, gamma, delta / 3.0)
    assert numerical == pytest.approx(float(expected), rel=1e-9)
    closed = fast_mix_epsilon(gamma, omega, k1, delta, method="closed_form")
    if gamma > 25.0 / 8.0:
        printed = 2.0 / omega + oracle.theorem_1_sketch(gamma, k1, delta / 3.0)
        assert closed == pytest.approx(float(printed), rel=1e-9)
        assert numerical <= closed
    else:
        assert closed == math.inf


def test_fast_mix_epsilon_is_inf_below_the_range():
    assert fast_mix_epsilon(1.2, 1.0, 5, 1e-6) == math.inf
    assert fast_mix_epsilon(3.0, 1.0, 5, 1e-6, method="closed_form") == math.inf


# --- Gaussian sketch ----------------------------------------------------------------------------


@settings(max_examples=30)
@given(epsilon=EPSILONS, delta=DELTAS, k=ROWS)
def test_gauss_mix(oracle, epsilon, delta, k):
    got = calibrate_gauss_mix(epsilon, delta, k)
    assert_gauss_mix_tight(oracle, got.gamma, epsilon, delta / 3.0, k, k)
    assert got.lambda_sigma == pytest.approx(got.gamma / math.sqrt(k), rel=1e-15)
    assert norm.sf(got.tau) == pytest.approx(delta / 3.0, rel=1e-9)


# --- Algorithm 2 --------------------------------------------------------------------------------


@settings(max_examples=30)
@given(epsilon=EPSILONS, delta=DELTAS, k1=ROWS, steps=STEPS, clip=CLIPS)
def test_fast_ihm_numerical(oracle, epsilon, delta, k1, steps, clip):
    got = calibrate_fast_ihm(epsilon, delta, k1, steps, clip=clip)
    share, delta_share = epsilon / 3.0, delta / 3.0
    assert_tight(
        oracle.sketch_epsilon(k1 * steps, got.gamma, delta_share),
        share,
        oracle.sketch_epsilon(k1 * steps, got.gamma * (1.0 - SLACK), delta_share),
    )
    assert_gradients_tight(oracle, got.sigma, share, delta_share, steps, clip)
    assert_fast_ihm_laplace(got, epsilon, delta, steps, delta / 10.0)


@settings(max_examples=30)
@given(epsilon=EPSILONS, delta=DELTAS, k1=ROWS, steps=STEPS, clip=CLIPS)
def test_fast_ihm_closed_form(oracle, epsilon, delta, k1, steps, clip):
    got = calibrate_fast_ihm(epsilon, delta, k1, steps, "closed_form", clip=clip)
    share, delta_share = epsilon / 3.0, delta / 3.0
    spent = oracle.theorem_1_sketch(got.gamma, k1 * steps, delta_share)
    assert share * (1.0 - SLACK) <= spent <= share
    assert oracle.sketch_epsilon(k1 * steps, got.gamma, delta_share) <= share
    assert got.sigma == pytest.approx(
        float(oracle.printed_sigma(epsilon, delta, steps, clip)), rel=SLACK
    )
    assert oracle.gaussian_delta(got.sigma, share, clip * math.sqrt(steps)) <= delta_share
    assert_fast_ihm_laplace(got, epsilon, delta, steps, delta / 10.0)


def assert_fast_ihm_laplace(got, epsilon, delta, steps, varrho):
    """2T Laplace releases in epsilon/3, and 2T tails of exp(-tau)/2 in delta/3."""
    assert 2 * steps / got.omega == pytest.approx(epsilon / 3.0, rel=1e-14)
    assert steps * math.exp(-got.tau) <= delta / 3.0 * (1.0 + 1e-12)
    assert got.tau == pytest.approx(
        max(math.log(3.0 * steps / delta), math.log(16.0 * steps / varrho)), rel=1e-11
    )


def test_fast_ihm_varrho_only_raises_tau():
    plain = calibrate_fast_ihm(1.0, 1e-6, 60, 4)
    loose = calibrate_fast_ihm(1.0, 1e-6, 60, 4, varrho=0.5)
    strict = calibrate_fast_ihm(1.0, 1e-6, 60, 4, varrho=1e-12)
    assert loose.tau == pytest.approx(math.log(3.0 * 4 / 1e-6), rel=1e-11)
    assert 4 * math.exp(-loose.tau) <= 1e-6 / 3.0
    assert loose.tau < plain.tau < strict.tau
    for other in (loose, strict):
        assert (other.gamma, other.sigma, other.omega) == (plain.gamma, plain.sigma, plain.omega)


# --- iterative Hessian mixing -------------------------------------------------------------------


@settings(max_examples=30)
@given(epsilon=EPSILONS, delta=DELTAS, k=ROWS, steps=STEPS, clip=CLIPS)
def test_ihm(oracle, epsilon, delta, k, steps, clip):
    got = calibrate_ihm(epsilon, delta, k, steps, clip=clip)
    assert_gauss_mix_tight(oracle, got.gamma, epsilon / 2.0, delta / 4.0, k, k * steps)
    assert_gradients_tight(oracle, got.sigma, epsilon / 2.0, delta / 4.0, steps, clip)
    assert got.lambda_sigma == pytest.approx(got.gamma / math.sqrt(k), rel=1e-15)
    assert oracle.mp.ncdf(-got.tau) <= delta / 4.0
    assert got.tau == pytest.approx(math.sqrt(2.0 * math.log(20.0 / delta)), rel=1e-14)


@pytest.mark.parametrize("varrho", [0.9, 1e-3, 1e-9])
@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-8])
def test_ihm_tail_stays_in_its_share_for_any_varrho(oracle, delta, varrho):
    got = calibrate_ihm(1.0, delta, 20, 3, varrho=varrho)
    assert oracle.mp.ncdf(-got.tau) <= delta / 4.0


@pytest.mark.parametrize(("epsilon", "delta"), [(1e3, 0.1), (1e5, 1e-6), (1e7, 1e-6)])
def test_large_epsilon_is_calibrated_too(oracle, epsilon, delta):
    got = calibrate_fast_ihm(epsilon, delta, 1, 1)
    assert oracle.sketch_epsilon(1, got.gamma, delta / 3.0) <= epsilon / 3.0
    got = calibrate_fast_mix(epsilon, delta, 1)
    assert 2.0 / got.omega + oracle.sketch_epsilon(1, got.gamma, delta / 3.0) <= epsilon
    got = calibrate_gauss_mix(epsilon, delta, 1)
    sketch = oracle.sketch_epsilon(1, got.gamma, delta / 3.0, "gauss_mix")
    assert oracle.gaussian_delta(got.lambda_sigma, epsilon - sketch) <= delta / 3.0


# --- shape of the answers -----------------------------------------------------------------------


def test_less_budget_needs_more_noise():
    for calibrate in (
        lambda e, d: calibrate_fast_mix(e, d, 30).gamma,
        lambda e, d: calibrate_gauss_mix(e, d, 30).gamma,
        lambda e, d: calibrate_fast_ihm(e, d, 30, 4).gamma,
        lambda e, d: calibrate_fast_ihm(e, d, 30, 4).sigma,
        lambda e, d: calibrate_ihm(e, d, 30, 4).gamma,
    ):
        assert calibrate(0.5, 1e-6) > calibrate(1.0, 1e-6) > calibrate(1.0, 1e-5)


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
            lambda: calibrate_fast_ihm(1.0, 1e-6, 5, 0),
            ValueError,
            "n_steps must be at least 1; got n_steps=0.",
        ),
        (
            lambda: calibrate_fast_ihm(1.0, 1e-6, 5, 4, "best"),
            ValueError,
            "method must be one of 'numerical', 'closed_form'; got method='best'.",
        ),
        (
            lambda: calibrate_fast_ihm(1.0, 1e-6, 5, 4, varrho=0.0),
            ValueError,
            "varrho must lie strictly between 0 and 1; got varrho=0.0.",
        ),
        (
            lambda: calibrate_ihm(1.0, 1e-6, 5, 4, clip=-1.0),
            ValueError,
            "clip must be greater than 0; got clip=-1.0.",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
