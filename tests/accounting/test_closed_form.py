"""Closed forms against the displays, and against the optimised conversion they must exceed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastmix.accounting import rdp_fast_mix_unbounded, rdp_to_epsilon
from tests.accounting.paper import (
    closed_form_epsilon,
    closed_form_epsilon_unbounded,
    closed_form_gamma,
    closed_form_gradient_sigma,
)

EPSILONS = st.floats(math.log(1e-3), math.log(50.0)).map(math.exp)
DELTAS = st.floats(math.log(1e-14), math.log(0.1)).map(math.exp)
ROWS = st.integers(1, 20_000)


# --- epsilon ------------------------------------------------------------------------------------


@given(gamma=st.floats(3.126, 1e5), rows=ROWS, delta=DELTAS)
def test_epsilon_is_theorem_1(oracle, gamma, rows, delta):
    assert closed_form_epsilon(gamma, rows, delta) == pytest.approx(
        float(oracle.theorem_1_sketch(gamma, rows, delta)), rel=1e-9
    )


@given(gamma=st.floats(3.126, 1e4), rows=st.integers(1, 2000), delta=DELTAS)
def test_epsilon_is_never_below_the_optimised_bound(oracle, gamma, rows, delta):
    assert closed_form_epsilon(gamma, rows, delta) >= oracle.sketch_epsilon(rows, gamma, delta)


def test_both_cases_of_theorem_1_meet_at_their_border(oracle):
    """L = (8 gamma/25 - 1)^2 rate: the two cases agree, so a wrong constant in either shows."""
    gamma, rows = 40.0, 500
    rate = 25.0 * rows / (32.0 * gamma**2)
    delta = math.exp(-((8.0 * gamma / 25.0 - 1.0) ** 2) * rate)
    inside = closed_form_epsilon(gamma, rows, delta * (1.0 + 1e-9))
    outside = closed_form_epsilon(gamma, rows, delta * (1.0 - 1e-9))
    assert inside == pytest.approx(outside, rel=1e-8)


@pytest.mark.parametrize("gamma", [25.0 / 8.0, 3.0, 1.0, 0.0, -5.0])
def test_epsilon_is_inf_where_lemma_1_says_nothing(gamma):
    assert closed_form_epsilon(gamma, 10, 1e-6) == math.inf


@given(gamma=st.floats(25.1, 1e7), rows=st.integers(1, 2000), delta=DELTAS)
def test_unbounded_epsilon_is_appendix_d3(oracle, gamma, rows, delta):
    mp = oracle.mp
    level, log_term = mp.mpf(gamma), mp.log(1 / mp.mpf(delta))
    root = mp.sqrt(level)
    if log_term < (root / 5 - 1) ** 2 * 2 * rows / level:
        expected = 2 * rows / level + mp.sqrt(8 * rows * log_term / level)
    else:
        expected = 2 * rows / (5 * root) + 5 * log_term / (root - 5)
    got = closed_form_epsilon_unbounded(gamma, rows, delta)
    assert got == pytest.approx(float(expected), rel=1e-9)
    assert got >= rdp_to_epsilon(lambda a: rows * rdp_fast_mix_unbounded(a, gamma), delta)


@pytest.mark.parametrize("gamma", [25.0, 24.0, 1.0, -1.0])
def test_unbounded_epsilon_is_inf_up_to_25(gamma):
    assert closed_form_epsilon_unbounded(gamma, 10, 1e-6) == math.inf


# --- gamma --------------------------------------------------------------------------------------


@given(epsilon=EPSILONS, delta=DELTAS, rows=ROWS)
def test_gamma_is_the_least_that_meets_theorem_1(oracle, epsilon, delta, rows):
    gamma = closed_form_gamma(epsilon, delta, rows)
    assert gamma > 25.0 / 8.0
    assert oracle.theorem_1_sketch(gamma, rows, delta) == pytest.approx(epsilon, rel=1e-9)
    # Theorem 1's bound falls in gamma, so nothing smaller does.
    smaller = gamma - 1e-6 * (gamma - 25.0 / 8.0)
    assert oracle.theorem_1_sketch(smaller, rows, delta) > epsilon


@given(epsilon=EPSILONS, delta=DELTAS, rows=ROWS)
def test_gamma_is_gamma_1_of_appendix_e_where_that_applies(oracle, epsilon, delta, rows):
    gamma_1, _, first = oracle.printed_gamma(3.0 * epsilon, 3.0 * delta, rows)
    gamma = closed_form_gamma(epsilon, delta, rows)
    if first and gamma_1 > 3.126:
        assert gamma == pytest.approx(float(gamma_1), rel=1e-12)
    else:
        assert gamma > float(gamma_1) * (1.0 - 1e-12)


# --- sigma --------------------------------------------------------------------------------------


@given(epsilon=EPSILONS, delta=DELTAS, steps=st.integers(1, 100), clip=st.floats(0.01, 50.0))
def test_gradient_sigma_is_appendix_e(oracle, epsilon, delta, steps, clip):
    sigma = closed_form_gradient_sigma(epsilon, delta, steps, clip)
    assert sigma == pytest.approx(
        float(oracle.printed_sigma(3.0 * epsilon, 3.0 * delta, steps, clip)), rel=1e-12
    )
    spent = clip * math.sqrt(2.0 * steps * math.log(1.0 / delta)) / sigma
    spent += steps * clip**2 / (2.0 * sigma**2)
    assert spent == pytest.approx(epsilon, rel=1e-9)
    assert oracle.gaussian_delta(sigma, epsilon, clip * math.sqrt(steps)) < delta


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: closed_form_epsilon(10.0, 0, 1e-6),
            ValueError,
            "rows must be at least 1; got rows=0.",
        ),
        (
            lambda: closed_form_epsilon(10.0, 1.0, 1e-6),
            TypeError,
            "rows must be an integer; got rows=1.0.",
        ),
        (
            lambda: closed_form_epsilon(math.inf, 1, 1e-6),
            ValueError,
            "gamma must be finite; got gamma=inf.",
        ),
        (
            lambda: closed_form_gamma(1.0, 0.0, 1),
            ValueError,
            "delta must lie strictly between 0 and 1; got delta=0.0.",
        ),
        (
            lambda: closed_form_gradient_sigma(1.0, 1e-6, 4, 0.0),
            ValueError,
            "clip must be greater than 0; got clip=0.0.",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
