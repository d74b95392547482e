"""The calibrated Huber loss: slope, curvature and the condition that privacy needs."""

import math

import mpmath
import numpy as np
import pytest

from fastmix.kernels.losses import CalibratedHuber

CASES = [
    (1.0, 0.7, 1.0),
    (2.0, 12.0, 0.95),
    (0.03, 1.0, 3.0),
    (1.0, 200.0, 0.01),
    (5.0, 0.2, 10.0),
    (1.0, 3e-9, 20.0),
]


@pytest.mark.parametrize("case", CASES)
def test_condition_holds_with_equality_outside(case):
    """f'' = min(1, ridge (exp(eps_c (1 - |f'|/L)) - 1)), and never more."""
    lipschitz, ridge, eps_c = case
    loss = CalibratedHuber(*case)
    u = np.linspace(-4.0 * lipschitz, 4.0 * lipschitz, 20_001)
    slope, curvature = loss.slope(u), loss.curvature(u)
    allowed = ridge * np.expm1(eps_c * (1.0 - np.abs(slope) / lipschitz))
    assert (curvature <= allowed * (1.0 + 1e-9) + 1e-12).all()
    outside = np.abs(u) > loss.zone
    np.testing.assert_allclose(curvature[outside], allowed[outside], rtol=1e-6, atol=1e-12)
    assert (curvature[~outside] == 1.0).all()
    assert (slope[~outside] == u[~outside]).all()


@pytest.mark.parametrize("case", CASES)
def test_slope_is_bounded_odd_and_grows(case):
    loss = CalibratedHuber(*case)
    u = np.concatenate([np.linspace(0.0, 3.0, 5_001) * case[0], [1e3, 1e100, np.inf]])
    slope = loss.slope(u)
    assert (np.diff(slope) >= 0.0).all()
    assert (slope <= case[0]).all()
    assert slope[-1] == case[0]
    assert (loss.slope(-u) == -slope).all()
    assert np.isnan(loss.slope(np.array([np.nan]))[0])


@pytest.mark.parametrize("case", CASES)
def test_against_the_formula_in_fifty_digits(case):
    """The slope by the closed form, and the curvature as its derivative."""
    with mpmath.workdps(50):
        L, ridge, eps_c = map(mpmath.mpf, case)
        zone = L * (1 - mpmath.log(1 + 1 / ridge) / eps_c)

        def slope(u):
            if u <= zone:
                return u
            return L * (
                1
                + mpmath.log(1 - mpmath.exp(-eps_c * ridge * (u - zone) / L) / (1 + ridge)) / eps_c
            )

        loss = CalibratedHuber(*case)
        assert loss.zone == pytest.approx(float(zone), rel=1e-14, abs=1e-15)
        for u in np.linspace(0.01, 3.0, 25) * case[0]:
            at = mpmath.mpf(float(u))
            assert float(loss.slope(np.array([u]))[0]) == pytest.approx(float(slope(at)), rel=1e-13)
            curvature = float(loss.curvature(np.array([u]))[0])
            assert curvature == pytest.approx(float(mpmath.diff(slope, at)), rel=1e-9, abs=1e-14)


def test_least_ridge():
    least = 1.0 / math.expm1(1.0)
    assert CalibratedHuber(1.0, least * 1.0001, 1.0).zone == pytest.approx(0.0, abs=1e-3)
    with pytest.raises(ValueError, match="ridge must be at least"):
        CalibratedHuber(1.0, 0.999 * least, 1.0)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["lipschitz", "ridge", "eps_c"])
def test_parameters_are_checked(name, wrong):
    with pytest.raises(ValueError, match=name):
        CalibratedHuber(**{"lipschitz": 1.0, "ridge": 2.0, "eps_c": 1.0, name: wrong})


def test_calibration_is_for_no_smaller_ridge_or_epsilon():
    loss = CalibratedHuber(1.0, 2.0, 1.0)
    assert loss.is_calibrated(2.0, 1.0)
    assert loss.is_calibrated(3.0, 1.5)
    assert not loss.is_calibrated(1.99, 1.0)
    assert not loss.is_calibrated(2.0, 0.99)
