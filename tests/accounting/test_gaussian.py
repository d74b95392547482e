"""The Gaussian mechanism against known answers, dp_accounting, 50 digits and integration."""

from __future__ import annotations

import math

import dp_accounting
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from fastmix.accounting import (
    GaussianEvent,
    RdpAccountant,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)

EPSILONS = st.floats(math.log(1e-3), math.log(50.0)).map(math.exp)
DELTAS = st.floats(math.log(1e-14), math.log(0.1)).map(math.exp)


def test_known_answers():
    assert gaussian_sigma(1.0, 1e-6) == pytest.approx(4.2246789, abs=5e-8)
    assert gaussian_sigma(10.0, 1e-6) == pytest.approx(0.5410868, abs=5e-8)
    assert gaussian_epsilon(5.0, 1e-6) == pytest.approx(0.834118, abs=5e-7)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-2])
def test_equals_dp_accounting(epsilon, delta):
    sigma = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert gaussian_sigma(epsilon, delta) == pytest.approx(sigma, rel=1e-8)
    assert gaussian_epsilon(sigma, delta) == pytest.approx(
        dp_accounting.get_epsilon_gaussian(sigma, delta), rel=1e-8
    )


@pytest.mark.parametrize("sigma", [0.2, 1.0, 7.0, 1e3])
@pytest.mark.parametrize("sensitivity", [0.5, 1.0, 3.0])
def test_delta_at_50_digits(oracle, sigma, sensitivity):
    for epsilon in (0.0, 1e-3, 0.5, 4.0, 20.0):
        wanted = float(oracle.gaussian_delta(sigma, epsilon, sensitivity))
        found = gaussian_delta(sigma, epsilon, sensitivity)
        assert found == pytest.approx(wanted, rel=1e-8, abs=1e-300), epsilon


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.7, 0.4), (1.0, 1.0), (3.0, 0.1)])
def test_delta_is_the_hockey_stick_integral(sigma, epsilon):
    def excess(x):
        return max(0.0, norm.pdf(x, 1.0, sigma) - math.exp(epsilon) * norm.pdf(x, 0.0, sigma))

    cut = epsilon * sigma**2 + 0.5
    value, _ = quad(excess, cut, cut + 40.0 * sigma, epsabs=1e-14, limit=200)
    assert gaussian_delta(sigma, epsilon) == pytest.approx(value, rel=1e-8)


@given(epsilon=EPSILONS, delta=DELTAS, sensitivity=st.floats(0.01, 100.0))
def test_sigma_is_least_and_private(oracle, epsilon, delta, sensitivity):
    sigma = gaussian_sigma(epsilon, delta, sensitivity)
    assert oracle.gaussian_delta(sigma, epsilon, sensitivity) <= delta * (1.0 + 1e-9)
    assert oracle.gaussian_delta(sigma * (1.0 - 1e-8), epsilon, sensitivity) > delta


@given(sigma=st.floats(math.log(0.05), math.log(1e4)).map(math.exp), delta=DELTAS)
def test_epsilon_is_least_and_private(oracle, sigma, delta):
    epsilon = gaussian_epsilon(sigma, delta)
    assert oracle.gaussian_delta(sigma, epsilon) <= delta * (1.0 + 1e-9)
    if epsilon > 1e-9:
        assert oracle.gaussian_delta(sigma, epsilon * (1.0 - 1e-7)) > delta


@given(epsilon=EPSILONS, delta=DELTAS)
def test_sigma_and_epsilon_are_inverse(epsilon, delta):
    assert gaussian_epsilon(gaussian_sigma(epsilon, delta), delta) == pytest.approx(
        epsilon, rel=1e-8
    )


@pytest.mark.parametrize(
    ("sigma", "delta"), [(1e8, 1e-10), (1e10, 1e-12), (1e13, 1e-14), (1e17, 1e-18)]
)
def test_epsilon_is_private_for_very_large_noise(oracle, sigma, delta):
    """Here delta is a difference of nearly equal numbers."""
    assert oracle.gaussian_delta(sigma, gaussian_epsilon(sigma, delta)) <= delta * (1.0 + 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-14), (1e-9, 1e-14), (1e-6, 1e-12)])
def test_sigma_is_private_for_very_small_epsilon(oracle, epsilon, delta):
    sigma = gaussian_sigma(epsilon, delta)
    assert oracle.gaussian_delta(sigma, epsilon) <= delta * (1.0 + 1e-6)


def test_only_the_ratio_matters():
    assert gaussian_delta(6.0, 0.7, 2.0) == gaussian_delta(3.0, 0.7)
    assert gaussian_epsilon(6.0, 1e-5, 2.0) == gaussian_epsilon(3.0, 1e-5)
    assert gaussian_sigma(0.7, 1e-5, 2.0) == pytest.approx(2.0 * gaussian_sigma(0.7, 1e-5))


def test_no_release_and_no_noise():
    assert gaussian_delta(1.0, 0.0, 0.0) == 0.0
    assert gaussian_delta(math.inf, 0.0) == 0.0
    assert gaussian_epsilon(1.0, 1e-9, 0.0) == 0.0
    assert gaussian_sigma(1.0, 1e-9, 0.0) == 0.0
    assert gaussian_delta(1e-4, 1.0) == 1.0


def test_epsilon_is_zero_only_where_total_variation_allows():
    sigma = 50.0
    variation = gaussian_delta(sigma, 0.0)
    assert variation == pytest.approx(2.0 * norm.cdf(0.5 / sigma) - 1.0, rel=1e-10)
    assert gaussian_epsilon(sigma, variation * 1.001) == 0.0
    assert gaussian_epsilon(sigma, variation * 0.999) > 0.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: gaussian_sigma(0.0, 1e-6),
            ValueError,
            "epsilon must be greater than 0; got epsilon=0.0.",
        ),
        (
            lambda: gaussian_sigma(1.0, 1.0),
            ValueError,
            "delta must lie strictly between 0 and 1; got delta=1.0.",
        ),
        (
            lambda: gaussian_epsilon(-1.0, 1e-6),
            ValueError,
            "sigma must be greater than 0; got sigma=-1.0.",
        ),
        (
            lambda: gaussian_delta(1.0, -0.1),
            ValueError,
            "epsilon must be at least 0; got epsilon=-0.1.",
        ),
        (
            lambda: gaussian_delta(1.0, math.nan),
            ValueError,
            "epsilon must be finite; got epsilon=nan.",
        ),
        (
            lambda: gaussian_delta(True, 1.0),
            TypeError,
            "sigma must be a real number; got sigma=True.",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


def test_next_to_no_noise_costs_an_infinite_epsilon_and_raises_nothing():
    event = GaussianEvent(1e-200)
    assert event.mu_squared == math.inf
    assert RdpAccountant([event]).get_epsilon(1e-6) == math.inf
