"""Conversion of Rényi curves against dp_accounting, at 50 digits, and against exact deltas."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from fastmix.accounting import (
    gaussian_delta,
    gaussian_epsilon,
    rdp_fast_mix,
    rdp_gauss_mix,
    rdp_gaussian,
    rdp_laplace,
    rdp_to_delta,
    rdp_to_epsilon,
)
from fastmix.accounting.account import ORDERS

CURVES = {
    "gaussian": lambda a: rdp_gaussian(a, 3.0),
    "weak gaussian": lambda a: rdp_gaussian(a, 1e4),
    "laplace": lambda a: 7.0 * rdp_laplace(a, 5.0),
    "gauss_mix": lambda a: 200.0 * rdp_gauss_mix(a, 80.0),
    "fast_mix": lambda a: 600.0 * rdp_fast_mix(a, 33.0),
    "short range": lambda a: 3.0 * rdp_fast_mix(a, 2.0),
    "none": lambda a: np.full_like(a, np.inf),
}
DELTAS = [1e-14, 1e-6, 1e-3, 0.1, 0.9]


# --- known answers ------------------------------------------------------------------------------


def test_known_constant_curve():
    orders = range(2, 33)
    assert rdp_to_epsilon([1.1] * 31, 1e-5, orders=orders) == pytest.approx(
        1.32783806176, abs=1e-11
    )
    at_last = rdp_to_epsilon([1.1], 1e-5, orders=[32])
    assert at_last == rdp_to_epsilon([1.1] * 31, 1e-5, orders=orders)


def test_known_gaussian_by_rdp():
    assert rdp_to_epsilon(lambda a: rdp_gaussian(a, 5.0), 1e-6) == pytest.approx(0.899935, abs=5e-7)


def test_known_sigma_through_rdp():
    sigma = brentq(
        lambda s: rdp_to_epsilon(lambda a: rdp_gaussian(a, s), 1e-6) - 1.0, 1.0, 10.0, xtol=1e-12
    )
    assert sigma == pytest.approx(4.530877117, abs=1e-8)


# --- dp_accounting ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_equals_dp_accounting_on_its_orders(name, delta):
    orders = [order for order in ORDERS if order > 1.01]
    curve = CURVES[name](np.array(orders))
    expected, _ = dp_accounting.rdp.compute_epsilon(orders, curve.tolist(), delta)
    assert rdp_to_epsilon(curve, delta, orders=orders) == pytest.approx(expected, rel=1e-9)
    assert rdp_to_epsilon(CURVES[name], delta, orders=orders) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in CURVES if name != "none"])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.5, 3.0, 40.0])
def test_delta_equals_dp_accounting_on_its_orders(name, epsilon):
    orders = [order for order in ORDERS if order > 1.01]
    curve = CURVES[name](np.array(orders))
    finite = np.isfinite(curve)
    expected, _ = compute_delta(np.array(orders)[finite].tolist(), curve[finite].tolist(), epsilon)
    assert rdp_to_delta(curve, epsilon, orders=orders) == pytest.approx(expected, rel=1e-9)


# --- optimisation over all orders ---------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in CURVES if name != "none"])
@pytest.mark.parametrize("delta", DELTAS)
def test_continuous_orders_are_no_worse_than_any_grid(name, delta):
    orders = 1.0 + np.logspace(-3.0, 6.0, 5001)
    on_grid = rdp_to_epsilon(CURVES[name], delta, orders=orders)
    everywhere = rdp_to_epsilon(CURVES[name], delta)
    assert everywhere <= on_grid * (1.0 + 1e-12)
    assert everywhere >= on_grid * (1.0 - 1e-3)


@pytest.mark.parametrize("gamma", [1.3, 2.0, 6.5, 30.0, 130.0, 700.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 6e-3])
def test_optimum_is_found(oracle, gamma, delta):
    for rows in (1, 3, 7, 11, 20, 55, 150, 400):
        got = rdp_to_epsilon(lambda a, rows=rows: rows * rdp_fast_mix(a, gamma), delta)
        wanted = float(oracle.sketch_epsilon(rows, gamma, delta))
        assert got == pytest.approx(wanted, rel=1e-8), rows


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize(("rows", "gamma"), [(1, 1.5), (10, 3.0), (600, 33.0), (4000, 1e4)])
def test_epsilon_at_50_digits(oracle, delta, rows, gamma):
    for kind, curve in (("fast_mix", rdp_fast_mix), ("gauss_mix", rdp_gauss_mix)):
        got = rdp_to_epsilon(lambda a, curve=curve: rows * curve(a, gamma), delta)
        assert got == pytest.approx(
            float(oracle.sketch_epsilon(rows, gamma, delta, kind)), rel=1e-9
        )


@given(log_mu=st.floats(-4.0, 1.0), log_delta=st.floats(math.log(1e-14), math.log(0.5)))
def test_never_below_the_exact_gaussian(log_mu, log_delta):
    """The exact epsilon of a Gaussian release is a floor for what RDP may claim."""
    sigma, delta = 10.0**-log_mu, math.exp(log_delta)
    claimed = rdp_to_epsilon(lambda a: rdp_gaussian(a, sigma), delta)
    assert gaussian_delta(sigma, claimed) <= delta * (1.0 + 1e-9)
    assert claimed >= gaussian_epsilon(sigma, delta) * (1.0 - 1e-9)


@given(log_t=st.floats(-4.0, 1.5), log_delta=st.floats(math.log(1e-12), math.log(0.5)))
def test_never_below_the_exact_laplace(log_t, log_delta):
    """delta(epsilon) of one Laplace release is 1 - exp((epsilon - t)/2) up to epsilon = t."""
    t, delta = 10.0**log_t, math.exp(log_delta)
    exact = max(0.0, t + 2.0 * math.log1p(-delta))
    claimed = rdp_to_epsilon(lambda a: rdp_laplace(a, 1.0, t), delta)
    assert claimed >= exact * (1.0 - 1e-9)


@pytest.mark.parametrize("rows", [1, 4, 50])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_never_below_the_exact_delta_of_a_gaussian_sketch(rows, epsilon):
    """``rows`` draws of N(0, 1) against N(0, 1 - 1/gamma), exactly, through chi-square tails."""
    from scipy.stats import chi2

    gamma = 9.0
    ratio = 1.0 - 1.0 / gamma
    # log p/q = rows/2 log(ratio) + t/2 (1/ratio - 1) for the sum of squares t under N(0, 1).
    cut = 2.0 * (epsilon - 0.5 * rows * math.log(ratio)) / (1.0 / ratio - 1.0)
    exact = chi2.sf(cut, rows) - math.exp(epsilon) * chi2.sf(cut / ratio, rows)
    claimed = rdp_to_delta(lambda a: rows * rdp_gauss_mix(a, gamma), epsilon)
    assert 0.0 < exact <= claimed
    assert rdp_to_epsilon(lambda a: rows * rdp_gauss_mix(a, gamma), exact) >= epsilon


@pytest.mark.parametrize("name", [name for name in CURVES if name != "none"])
@pytest.mark.parametrize("delta", [1e-14, 1e-6, 1e-3])
def test_epsilon_and_delta_are_inverse(name, delta):
    epsilon = rdp_to_epsilon(CURVES[name], delta)
    if epsilon > 0.0:
        assert rdp_to_delta(CURVES[name], epsilon) == pytest.approx(delta, rel=1e-6)
    else:
        assert rdp_to_delta(CURVES[name], 0.0) <= delta


@pytest.mark.parametrize("shift", [2.0**-52, 1e-14, 1e-12, 1e-9])
def test_orders_next_to_one_promise_nothing_more(shift):
    """No order, however chosen, may give less than the optimum over all of them."""
    best = rdp_to_epsilon(lambda a: 100.0 * rdp_fast_mix(a, 10.0), 1e-6)
    got = rdp_to_epsilon(lambda a: 100.0 * rdp_fast_mix(a, 10.0), 1e-6, orders=[1.0 + shift])
    assert got >= best


# --- edges --------------------------------------------------------------------------------------


def test_curve_that_is_infinite_everywhere():
    assert rdp_to_epsilon(CURVES["none"], 1e-6) == math.inf
    assert rdp_to_delta(CURVES["none"], 3.0) == 1.0


def test_unusable_entries_are_skipped_and_never_help():
    orders = [0.5, 1.0, 2.0, math.nan, math.inf, 4.0, 5.0]
    curve = [0.0, 0.0, 1.0, 0.0, 0.0, math.nan, -3.0]
    assert rdp_to_epsilon(curve, 1e-5, orders=orders) == rdp_to_epsilon([1.0], 1e-5, orders=[2.0])
    assert rdp_to_delta(curve, 1.0, orders=orders) == rdp_to_delta([1.0], 1.0, orders=[2.0])
    assert rdp_to_epsilon([], 1e-5, orders=[]) == math.inf


def test_no_loss_is_no_epsilon():
    assert rdp_to_epsilon(np.zeros_like, 1e-9) == 0.0
    assert rdp_to_delta(np.zeros_like, 0.0) == 0.0


def test_total_variation_is_used_only_where_it_holds():
    """Epsilon may be 0 only if delta reaches the exact total variation."""
    sigma = 100.0
    exact = gaussian_delta(sigma, 0.0)
    just_enough = math.sqrt(-math.expm1(-rdp_gaussian(1.0001, sigma)))
    assert just_enough >= exact
    assert rdp_to_epsilon(lambda a: rdp_gaussian(a, sigma), just_enough * 1.001) == 0.0
    assert rdp_to_epsilon(lambda a: rdp_gaussian(a, sigma), exact) > 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0])
def test_delta_outside_the_unit_interval(delta):
    with pytest.raises(ValueError, match=r"^delta must lie strictly between 0 and 1; got delta="):
        rdp_to_epsilon(np.zeros_like, delta)


def test_errors():
    with pytest.raises(ValueError, match=r"^orders must have one entry for each value of rdp; got"):
        rdp_to_epsilon([1.0, 2.0], 1e-5, orders=[2.0])
    with pytest.raises(
        TypeError, match=r"^rdp must be callable when no orders are given; got rdp="
    ):
        rdp_to_epsilon([1.0, 2.0], 1e-5)
    with pytest.raises(ValueError, match=r"^epsilon must be at least 0; got epsilon=-1.0\.$"):
        rdp_to_delta(np.zeros_like, -1.0)
    with pytest.raises(TypeError, match=r"^delta must be a real number; got delta='x'\.$"):
        rdp_to_epsilon(np.zeros_like, "x")
