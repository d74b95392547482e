r"""Objective perturbation with a length for every record: exact deltas of neighbouring data sets.

The claim (docs/proofs/objective.md, Theorem 4): in coordinates :math:`\theta = c + T\phi` a record
whose row :math:`T^\top x` has length at most :math:`\rho` has the calibrated Huber loss for
:math:`L/\rho` and :math:`\lambda/\rho^2`, and counts with less weight if it is longer than
``longest``; noise of :math:`L/\mu` then costs what it does for rows of length 1. Rows, lengths,
coordinates, centres and ridges are random and hostile. No exact delta may exceed the certified
one, the largest must come close, and every condition must be needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from fastmix.accounting import objective_delta, objective_mu, objective_split
from fastmix.kernels import reference
from fastmix.kernels.losses import CalibratedHuber, least_ridge
from fastmix.kernels.mapped import Mapped
from tests.accounting import objective_oracle as oracle
from tests.accounting.objective_oracle import Pair

#: Relative error of sums of intervals, which are lower bounds but for rounding, and of densities.
ROUNDING, QUADRATURE = 1e-9, 1e-5
#: Below this a delta is not compared.
LEAST = 1e-14


@dataclass(frozen=True)
class Lengths:
    """The package's loss for records of many lengths; targets are complex: ``y + 1j * rho``."""

    loss: CalibratedHuber
    lipschitz: float
    one_sided: bool = False

    def parts(self, t, y, shift=0.0):
        """Return the slope in the residual and the curvature, where x't is t + shift."""
        y = np.asarray(y)
        u = (y.real - shift) - t
        rho = np.broadcast_to(y.imag, u.shape)
        return self.loss.slope(u, rho), self.loss.curvature(u, rho)

    def edges(self, rho):
        """Return the residuals where the curvature of a record of this length is not smooth."""
        weight = min(1.0, self.loss.longest / rho)
        length = weight * rho
        zone = max(float(self.loss._zone(length)), 0.0) / weight
        step = self.loss.lipschitz / length / weight
        return (-zone - step, -zone, 0.0, zone, zone + step)

    def breaks(self, y, shift=0.0):
        """Return the values of t where the curvature is not smooth."""
        return [(y.real - shift) - edge for edge in self.edges(y.imag)]


def rounding(eps_c, ridge):
    """Return what rounding of the curvature of a calibrated loss can add to a delta."""
    return 2e-16 * math.exp(eps_c) * (1.0 + 1.0 / ridge)


def draw_transform(rng, dimension):
    """Return an invertible matrix: far from orthogonal, of any scale."""
    T = rng.normal(size=(dimension, dimension)) @ np.diag(10.0 ** rng.uniform(-1, 1, dimension))
    return T * 10.0 ** rng.uniform(-1.0, 1.0)


def draw_pair(rng, dimension):
    """Return a pair with its mu, epsilon and eps_c.

    The lengths are those that the package measures, or longer; ``longest`` is below, at or above
    that of the record, and the ridge is often the least that is allowed.
    """
    eps_c = 10.0 ** rng.uniform(math.log10(0.05), math.log10(5.0))
    epsilon = eps_c * float(rng.choice([1.0, 1.0, 1.0, rng.uniform(1.0, 2.0)]))
    mu = objective_mu(epsilon, 10.0 ** rng.uniform(-10.0, -1.0))
    T = draw_transform(rng, dimension)
    n = int(rng.choice([0, 0, 1, 2, 3, 6]))
    X = rng.normal(size=(n + 1, dimension))
    X /= np.linalg.norm(X, axis=1)[:, None]
    X *= rng.choice([1.0, 1.0, rng.uniform(0.1, 1.0), 1e-2], (n + 1, 1))
    style = rng.choice(["random", "equal", "opposite", "orthogonal"])
    if style == "equal":
        X[:] = X[0]
    elif style == "opposite":
        X[:] = X[0] * rng.choice([-1.0, 1.0], (n + 1, 1))
    elif style == "orthogonal" and dimension == 2:  # in the other coordinates
        across = np.linalg.solve(T.T, np.array([[0.0, -1.0], [1.0, 0.0]]) @ (T.T @ X[0]))
        X[1:] = across / max(1.0, np.linalg.norm(across))
    rows = X @ T
    least = 10.0 ** rng.uniform(-3.0, 0.5) * np.linalg.norm(rows[0])
    rho = reference.row_lengths(Mapped(X), T, least)
    rho = rho * rng.choice([1.0, 1.0, 1.0, rng.uniform(1.0, 2.0)], n + 1)
    longest = rho[0] * float(rng.choice([1.0, 1.0, rng.uniform(0.2, 1.0), rng.uniform(1.0, 5.0)]))
    more = float(rng.choice([1.0, 1.0, 1.0 + 1e-9, 10.0 ** rng.uniform(0.0, 3.0)]))
    ridge = (1.0 + 1e-12) * more * least_ridge(eps_c) * max(1.0, longest) ** 2
    lipschitz = 10.0 ** rng.uniform(-1.5, 1.5)
    loss = Lengths(CalibratedHuber(lipschitz, ridge, eps_c, longest), lipschitz / rho.min())
    spread = lipschitz / (mu * ridge)
    center = rng.choice([0.0, 1.0, 1e3]) * rng.normal(size=dimension) * spread

    def residual(row, length):
        """Return a residual at the centre: none, on an edge, as noise makes it, or huge."""
        huge = 1e4 * (spread * np.linalg.norm(row) + lipschitz / length)
        move = spread * float(row @ rng.normal(size=dimension))
        near = [0.0, 0.0, float(rng.choice(loss.edges(length))), move, huge, -huge]
        return float(rng.choice(near))

    # With theta = c + T phi and the target y = x'c + r the residual at phi is r - (T'x)'phi.
    at_center = X @ center
    y = at_center + [residual(row, length) for row, length in zip(rows, rho, strict=True)]
    targets = (y - at_center) + 1j * rho
    weights = rng.choice([1.0, 1.0, 5.0, 30.0], n) if n <= 3 else np.ones(n)
    scale = lipschitz / mu
    pair = Pair(loss, scale, ridge, rows[1:], targets[1:], weights, rows[:1], targets[:1])
    return pair, mu, epsilon, eps_c


def lone(loss, scale, ridge, x, rho, target=0.0):
    """Return a pair of one row of length rho, by its own account, and no background."""
    empty = np.zeros((0, 1)), np.zeros(0), np.zeros(0)
    return Pair(loss, scale, ridge, *empty, np.array([[x]]), np.array([target + 1j * rho]))


def attack(count, dimension, seed):
    """Return the largest ratio of exact to certified delta, by direction."""
    rng = np.random.default_rng(seed)
    grid = {"cells": 24} if dimension == 1 else {"cells": 24, "across": 3}
    worst = {True: 0.0, False: 0.0}
    for number in range(count):
        pair, mu, epsilon, eps_c = draw_pair(rng, dimension)
        slack = rounding(eps_c, pair.ridge)
        at = np.array([epsilon, float(rng.choice([0.97, 0.8, 0.5])) * eps_c])
        for first in (True, False):
            for e, exact in zip(at, pair.by_intervals(at, first, **grid), strict=True):
                certified = objective_delta(e, mu, eps_c)
                if certified < LEAST:
                    continue
                context = seed, number, first, e, exact / certified
                assert exact <= certified * (1.0 + ROUNDING) + slack, context
                sharp = oracle.bound_second(e, mu)
                if first:
                    sharp = oracle.bound_first(e, mu, eps_c)
                assert exact <= sharp * (1.0 + ROUNDING) + slack, context
                worst[first] = max(worst[first], exact / certified)
    return worst


def attack_composed(count, seed):
    """Return the largest ratios with Gaussian releases beside the objective, by direction."""
    rng = np.random.default_rng(seed)
    worst = {True: 0.0, False: 0.0}
    for number in range(count):
        pair, mu, epsilon, eps_c = draw_pair(rng, 1)
        gaussian = mu * math.sqrt(rng.uniform(0.01, 0.5))
        for e in (epsilon, eps_c + gaussian * rng.uniform(0.0, 5.0), 0.8 * eps_c):
            certified = objective_delta(e, mu, eps_c, gaussian)
            if certified < LEAST:
                continue
            for first in (True, False):
                exact = pair.by_density(e, first, gaussian, panels=60)[0]
                assert exact <= certified * (1.0 + QUADRATURE), (seed, number, first, e)
                worst[first] = max(worst[first], exact / certified)
    return worst


# --- the theorem ---------------------------------------------------------------------------------


def test_the_oracle_agrees_with_itself():
    """Densities integrate to 1, and intervals and densities give the same divergence."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        pair, _, epsilon, _ = draw_pair(rng, 1)
        for first in (True, False):
            exact, *masses = pair.by_density(epsilon, first)
            assert masses == pytest.approx([1.0, 1.0], abs=1e-9)
            assert pair.by_intervals(epsilon, first)[0] == pytest.approx(exact, rel=1e-6, abs=1e-15)


def test_pairs_on_a_line():
    """Catches any constant that is too small: the certificate is reached."""
    worst = attack(200, 1, seed=1)
    assert worst[False] > 0.99
    assert worst[True] > 0.49


def test_pairs_in_the_plane():
    assert max(attack(10, 2, seed=2).values()) > 0.9


def test_gaussian_releases_beside_it():
    assert min(attack_composed(8, seed=7).values()) > 0.49


@pytest.mark.slow
def test_thousands_of_pairs():
    """2,500 pairs on a line and 400 with Gaussian releases."""
    assert attack(2_500, 1, seed=4)[False] > 0.999
    assert attack_composed(400, seed=6)[False] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_thousands_of_pairs_in_the_plane(part):
    """2,000 pairs in the plane, a hundred in each part."""
    assert max(attack(100, 2, seed=100 + part).values()) > 0.9


@pytest.mark.parametrize("length", [1.0, 2.5, 7.0])
@pytest.mark.parametrize("beyond", [1.0, 3.0])
def test_the_certificate_is_reached_at_every_length(length, beyond):
    """One row of any length, with full weight or with less, at the least ridge."""
    epsilon, delta = 1.0, 1e-6
    mu = objective_mu(epsilon, delta)
    longest = length / beyond
    ridge = (1.0 + 1e-9) * least_ridge(epsilon) * max(1.0, longest) ** 2
    loss = Lengths(CalibratedHuber(2.0, ridge, epsilon, longest), 2.0 / length)
    pair = lone(loss, 2.0 / mu, ridge, length, length)
    exact = max(pair.by_intervals(epsilon, first)[0] for first in (True, False))
    assert 0.99 * delta < exact <= delta * (1.0 + ROUNDING)


@pytest.mark.parametrize("length", [0.05, 0.5, 7.0])
def test_a_slope_that_is_at_its_bound_is_a_gaussian_release(length):
    """A record far away has the gradient L whatever its length: half of the certificate."""
    mu = objective_mu(1.0, 1e-6)
    ridge = 2.0 * least_ridge(1.0) * max(1.0, length) ** 2
    loss = Lengths(CalibratedHuber(2.0, ridge, 1.0, max(1.0, length)), 2.0 / length)
    pair = lone(loss, 2.0 / mu, ridge, length, length, 1e6)
    assert pair.by_intervals(1.0, True)[0] == pytest.approx(0.5e-6, rel=1e-6)


# --- mutants -------------------------------------------------------------------------------------

EPSILON, DELTA, LONGEST = 1.0, 1e-6, 3.0
MU = objective_mu(EPSILON, DELTA)
RIDGE = (1.0 + 1e-9) * least_ridge(EPSILON) * LONGEST**2
HUBER = CalibratedHuber(1.0, RIDGE, EPSILON, LONGEST)


def excess(slope, curvature, x, target=0.0, edges=(), ridge=RIDGE):
    """Return the larger of the two exact deltas of a lone row over the certified one."""
    edges = sorted({0.0, *edges, *(-edge for edge in edges)})
    loss = oracle.Residual(slope, curvature, 1.0, tuple(edges))
    empty = np.zeros((0, 1)), np.zeros(0), np.zeros(0)
    pair = Pair(loss, 1.0 / MU, ridge, *empty, np.array([[x]]), np.array([target]))
    return max(pair.by_intervals(EPSILON, first)[0] for first in (True, False)) / DELTA


def of_length(loss, rho):
    """Return slope and curvature of the loss for a length, and the end of its zone."""

    def slope(u):
        return loss.slope(u, np.full_like(u, rho))

    def curvature(u):
        return loss.curvature(u, np.full_like(u, rho))

    weight = min(1.0, loss.longest / rho)
    return slope, curvature, max(float(loss._zone(weight * rho)), 0.0) / weight


@pytest.mark.parametrize("x", [0.5, 3.0, 10.0])
def test_the_honest_loss_is_within_the_certificate(x):
    slope, curvature, zone = of_length(HUBER, x)
    for target in (0.0, zone, -zone, 1.0 / x, 1e3):
        assert excess(slope, curvature, x, target, (zone, zone + 1.0 / x)) <= 1.0 + ROUNDING


@pytest.mark.parametrize(
    ("short", "least"), [(0.95, 2.5), (0.9, 6.0), (0.8, 30.0)], ids=["5%", "10%", "20%"]
)
@pytest.mark.parametrize("x", [1.0, 3.0, 10.0])
def test_lengths_that_are_too_short_are_caught(short, least, x):
    slope, curvature, zone = of_length(HUBER, short * x)
    assert excess(slope, curvature, x, 0.0, (zone,)) > least


def test_a_ridge_that_is_not_divided_by_the_squared_length_is_caught():
    """The loss for L/rho and the whole ridge: its curvature lasts too long."""
    ridge = least_ridge(EPSILON) * 1.5
    wrong = CalibratedHuber(1.0 / LONGEST, ridge, EPSILON)
    assert excess(wrong.slope, wrong.curvature, LONGEST, 0.0, (wrong.zone,), ridge) > 1e4


def test_a_long_row_with_its_full_weight_is_caught():
    """Twice the longest row: as if it were the longest, or with its own slope but no weight."""
    slope, curvature, zone = of_length(HUBER, LONGEST)
    assert excess(slope, curvature, 2.0 * LONGEST, 0.0, (zone,)) > 1e4

    def half(u):
        return slope(2.0 * u) / 2.0

    def straight(u):
        return curvature(2.0 * u)

    # Slopes of L/rho, and curvature 1 around 0: more than the ridge allows for this length.
    assert excess(half, straight, 2.0 * LONGEST, 0.0, (zone / 2.0,)) > 1e4


def test_a_loss_that_is_calibrated_for_one_side_only_is_caught():
    """Plain Huber for residuals below 0."""
    loss = CalibratedHuber(1.0, 2.0 * RIDGE, EPSILON, LONGEST)
    slope, curvature, zone = of_length(loss, LONGEST)
    edge = 1.0 / LONGEST
    wrong = excess(
        lambda u: np.where(u < 0.0, np.maximum(u, -edge), slope(u)),
        lambda u: np.where(u < 0.0, np.where(u > -edge, 1.0, 0.0), curvature(u)),
        LONGEST,
        -3.0 * LONGEST / (MU * 2.0 * RIDGE),
        (zone, edge),
        2.0 * RIDGE,
    )
    assert wrong > 1e2


def test_a_slope_bound_without_the_length_is_caught():
    """L instead of L/rho: the gradient is rho times too long."""
    assert excess(HUBER.slope, HUBER.curvature, 2.0, 0.0, (HUBER.zone,)) > 5e3


def test_a_target_need_not_be_shortened_with_its_row():
    """It may be any function of the record: the row decides. Not a violation."""
    rho = 2.0 * LONGEST
    slope, curvature, zone = of_length(HUBER, LONGEST)
    # Row w x and target y, loss of the longest length; the same row has less than full weight.
    for target in (0.0, zone, 0.1, -0.1, 1.0, 1e3):
        assert excess(slope, curvature, rho / 2.0, target, (zone,)) <= 1.0 + ROUNDING


def test_the_floor_is_needed_beside_gaussian_releases():
    """eps_c must be lower beside other releases, for rows of any length."""
    mu, eps_c, gaussian = objective_split(EPSILON, DELTA, 0.15)

    def exact(calibration):
        ridge = (1.0 + 1e-9) * least_ridge(calibration) * LONGEST**2
        loss = Lengths(CalibratedHuber(1.0, ridge, calibration, LONGEST), 1.0 / LONGEST)
        pair = lone(loss, 1.0 / mu, ridge, LONGEST, LONGEST)
        return max(pair.by_density(EPSILON, first, gaussian)[0] for first in (True, False))

    assert exact(EPSILON) > 500.0 * DELTA
    assert exact(eps_c) <= DELTA
