"""The logistic and the smoothed quantile loss: slope, curvature and the condition of privacy."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from fastmix.kernels import mapped, reference
from fastmix.kernels.mapped import Mapped, Targets
from fastmix.kernels.sigmoids import Logistic, SmoothedQuantile

mp = mpmath.mp.clone()
mp.dps = 40

#: L, ridge, eps_c.
SIZES = [
    (1.0, 1.0, 1.0),
    (1.0, 0.3, 1.0),
    (4.0, 50.0, 0.4),
    (0.2, 1e-3, 3.0),
    (1.0, 1e4, 0.05),
    (30.0, 1e-6, 10.0),
]
LENGTHS = [1e-3, 0.2, 1.0, 2.5, 40.0]
LOSSES = [
    *(Logistic(*size) for size in SIZES),
    *(SmoothedQuantile(*size, q, h) for size in SIZES for q, h in [(0.5, 0.1), (0.05, 3.0)]),
    *(SmoothedQuantile(*size, 0.9, 1e-3) for size in SIZES),
]
NAMES = [str(loss) for loss in LOSSES]
QUANTILES = [loss for loss in LOSSES if isinstance(loss, SmoothedQuantile)]


def targets_of(loss):
    """Labels with weights, or any target."""
    return (1.0, -1.0, 0.3, -1e-3, 0.0) if isinstance(loss, Logistic) else (0.0,)


def grid(loss, rho):
    """Return residuals on every scale that a slope can have."""
    bound, room = loss.lipschitz / rho, loss.ridge * loss.eps_c / rho**2
    scales = [1.0, bound / room, getattr(loss, "width", 1.0)]
    steps = np.concatenate([np.geomspace(1e-6, 40.0, 150), [200.0]])
    right = np.unique(np.concatenate([steps * scale for scale in scales]))
    return np.concatenate([-right[::-1], [0.0], right])


@pytest.mark.parametrize("rho", LENGTHS)
@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_the_condition_of_theorem_four(loss, rho):
    """(C'), even without the exponential: f'' <= ridge eps_c / rho^2 (1 - |f'| rho / L)."""
    u = grid(loss, rho)
    at = np.full_like(u, rho)
    for y in targets_of(loss):
        own = np.full_like(u, y)
        slope, curvature = loss.slope(u + y, at, own), loss.curvature(u + y, at, own)
        room = loss.ridge * loss.eps_c / rho**2
        bound = loss.lipschitz / rho
        assert (np.abs(slope) <= bound * (1.0 + 4e-16)).all()
        assert (curvature >= 0.0).all()
        # Slopes are differences of numbers up to 1.
        allowed = room * (1.0 - np.abs(slope) / bound) + room / bound * 4e-16
        assert (curvature <= allowed * (1.0 + 1e-9) + 1e-12 * room).all()
        assert (curvature <= loss.bend * (1.0 + 1e-12)).all()
        if isinstance(loss, Logistic):
            assert (slope * y >= 0.0).all()


@pytest.mark.parametrize("rho", LENGTHS)
@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_slope_is_the_integral_of_the_curvature(loss, rho):
    """Convex and without jumps."""
    u = grid(loss, rho)
    for y in targets_of(loss):
        own, at = np.full_like(u, y), np.full_like(u, rho)
        slope = loss.slope(u + y, at, own)
        assert (np.diff(slope) >= -1e-15).all()
        x, w = np.polynomial.legendre.leggauss(16)
        middle, half = (u[1:] + u[:-1]) / 2.0, np.diff(u) / 2.0
        nodes = (middle[:, None] + half[:, None] * x).ravel()
        curvature = loss.curvature(
            nodes + y, np.full_like(nodes, rho), np.full_like(nodes, y)
        ).reshape(-1, 16)
        # The curvature has two kinks at most: cells are not smooth there.
        areas = (curvature @ w) * half
        off = np.abs(np.diff(slope) - areas)
        assert np.sort(off)[:-4].max() <= 1e-7 * np.abs(slope).max() + 1e-15
        assert off.max() <= 0.02 * np.abs(slope).max() + 1e-15


@pytest.mark.parametrize("size", SIZES)
def test_logistic_where_nothing_limits_it(size):
    """Rows up to L with a ridge of L^2/eps_c: the logistic loss, whatever the label's weight."""
    lipschitz, _, eps_c = size
    loss = Logistic(lipschitz, lipschitz**2 / eps_c, eps_c)
    t = np.linspace(-30.0, 30.0, 301)
    for share in (1e-3, 0.5, 1.0):
        at = np.full_like(t, share * lipschitz)
        for y in (1.0, -1.0, 0.25):
            own = np.full_like(t, y)
            slope = loss.slope(y - t, at, own)
            np.testing.assert_allclose(slope, loss.free(y - t, own), rtol=1e-12)
            exact = [float(y / (1 + mp.exp(math.copysign(1.0, y) * mp.mpf(v)))) for v in t]
            np.testing.assert_allclose(slope, exact, rtol=1e-13)


def test_half_the_ridge_limits_the_slope():
    """A ridge below 1/eps_c is not enough for the logistic loss: it is another loss then."""
    u = np.linspace(0.1, 10.0, 101) + 1.0
    ones = np.ones_like(u)
    limited = Logistic(1.0, 0.5, 1.0)
    assert (limited.slope(u, None, ones) < Logistic.free(u, ones)).all()
    assert not Logistic(1.0, 1.0, 1.0).is_calibrated(0.5, 1.0)
    assert not Logistic(1.0, 1.0, 1.0).is_calibrated(1.0, 0.5)
    assert limited.is_calibrated(0.5, 1.0)


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.9])
def test_quantile_where_nothing_limits_it(quantile):
    loss = SmoothedQuantile(1.0, 1e3, 1.0, quantile, 0.1)
    u = np.linspace(-2.0, 2.0, 101)
    np.testing.assert_allclose(loss.slope(u), loss.free(u, u), atol=1e-15)
    assert loss.slope(np.array([50.0]))[0] == pytest.approx(quantile)
    assert loss.slope(np.array([-50.0]))[0] == pytest.approx(quantile - 1.0)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["lipschitz", "ridge", "eps_c", "width"])
def test_parameters_are_checked(name, wrong):
    right = {"lipschitz": 1.0, "ridge": 2.0, "eps_c": 1.0}
    if name != "width":
        with pytest.raises(ValueError, match=name):
            Logistic(**{**right, name: wrong})
    with pytest.raises(ValueError, match=name):
        SmoothedQuantile(**{**right, name: wrong})


# --- passes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("shape", [(300, 4), (700, 150)])
@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_compiled_passes_are_those_of_the_reference(loss, shape, lengths):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    X /= np.linalg.norm(X, axis=1).max()
    A, y = Mapped(X), rng.uniform(-1, 1, shape[0])
    theta, v = 5.0 * rng.normal(size=(2, shape[1]))
    rho = np.exp(rng.normal(size=shape[0])) if lengths else None
    slope, bent = loss.slope(y - X @ theta, rho, y), loss.curvature(y - X @ theta, rho, y)
    want = reference.slopes(A, Targets(y), theta, loss, True, rho)
    got = mapped.slopes(A, Targets(y), theta, loss, excess=True, lengths=rho)
    for total, square, outside in (want, got):
        np.testing.assert_allclose(total.sum(axis=0), X.T @ slope, atol=1e-12)
        less = (loss.bend - bent)[:, None] * X
        np.testing.assert_allclose(square, X.T @ less, atol=1e-9 * loss.bend)
        assert outside == shape[0]
    for secant in (False, True):
        weights = loss.secant(y - X @ theta, rho, y) if secant else bent
        want = X.T @ (weights * (X @ v))
        for got in (
            reference.curved(A, Targets(y), theta, loss, v, secant, rho),
            mapped.curved(A, Targets(y), theta, loss, v, secant=secant, lengths=rho),
        ):
            np.testing.assert_allclose(got, want, atol=1e-9 * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("ridge", [20.0, 700.0])
@pytest.mark.parametrize("length", [1.0, 4.0, 20.0])
def test_the_law_that_smooths_a_quantile_has_mean_zero(quantile, ridge, length):
    """Whatever limits the slopes: both keep their ratio, and the law its mean."""
    loss = SmoothedQuantile(3.0, ridge, 0.6, quantile, 0.03)
    u = np.linspace(-60.0, 60.0, 120_001)
    lengths = np.full_like(u, length)
    slopes, mass = loss.slope(u, lengths), loss.curvature(u, lengths)
    assert -slopes[0] / slopes[-1] == pytest.approx((1.0 - quantile) / quantile, rel=1e-3)
    assert np.abs(slopes).max() <= 3.0 / length * (1.0 + 1e-12)
    whole = np.trapezoid(mass, u)
    assert whole == pytest.approx(slopes[-1] - slopes[0], rel=1e-3)
    assert np.trapezoid(mass * u, u) / whole == pytest.approx(0.0, abs=2e-3)


@pytest.mark.parametrize("rho", LENGTHS)
@pytest.mark.parametrize("loss", QUANTILES, ids=str)
def test_rounding_of_the_move_is_one_unit_of_a_slope(loss, rho):
    """A relative change of the moved residual v changes the slope by at most |v| f'' <= w."""
    u = np.concatenate([s * np.geomspace(1e-9, 1e9, 4_001) for s in (-1.0, 1.0)])
    length = np.full(len(u), rho)
    moved = u - _moved(loss, rho)  # so that u is the residual after the move
    weight = min(1.0, loss.lipschitz / rho / max(loss.quantile, 1.0 - loss.quantile))
    assert np.max(np.abs(u) * loss.curvature(moved, length)) <= 0.6 * weight


def _moved(loss, rho):
    """Return by how much the loss moves residuals: the slope is 0 there, after the move at h t."""
    low, high = -1e12, 1e12
    for _ in range(200):
        middle = 0.5 * (low + high)
        below = loss.slope(np.array([middle]), np.array([rho]))[0] < 0.0
        low, high = (middle, high) if below else (low, middle)
    bound, room = loss.lipschitz / rho, loss.ridge * loss.eps_c / rho**2
    level = 1.0 - loss.quantile
    width = max(loss.width, loss._shape(bound, room)[1])
    return width * math.log(level / (1.0 - level)) - low
