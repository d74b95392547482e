r"""The logistic and the smoothed quantile loss: exact deltas of neighbouring data sets.

The claim (docs/proofs/objective.md, Section 8): in coordinates :math:`\theta = c + T\phi` a record
whose row :math:`T^\top x` has length at most :math:`\rho` has a loss whose slope is at most
:math:`L/\rho` and whose curvature is at most :math:`\lambda\epsilon_c/\rho^2 (1 - |f'|\rho/L)`;
noise of :math:`L/\mu` then costs what it does for rows of length 1, without the factor 2 for the
logistic loss. Rows, lengths, coordinates, centres, weights and ridges are random and hostile. No
exact delta may exceed the certified one, the largest must come close, and every condition must be
needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import expit

from fastmix.accounting import objective_delta, objective_mu, objective_split
from fastmix.kernels import reference
from fastmix.kernels.mapped import Mapped
from fastmix.kernels.sigmoids import Logistic, SmoothedQuantile
from tests.accounting.objective_oracle import Pair

#: Relative error of sums of intervals, which are lower bounds but for rounding, and of densities.
ROUNDING, QUADRATURE = 1e-9, 1e-5
#: Below this a delta is not compared.
LEAST = 1e-14
KINDS = ("logistic", "quantile")


@dataclass(frozen=True)
class Adapted:
    """A loss of the package for records of many lengths; targets are complex: ``y + 1j * rho``."""

    loss: object
    lipschitz: float

    @property
    def one_sided(self):
        return self.loss.one_sided

    def parts(self, t, y, shift=0.0):
        """Return the slope in the residual and the curvature, where x't is t + shift."""
        y = np.asarray(y)
        target = np.broadcast_to(y.real, np.shape(t + shift))
        rho = np.broadcast_to(y.imag, target.shape)
        u = target - shift - t
        return self.loss.slope(u, rho, target), self.loss.curvature(u, rho, target)

    def edges(self, y, rho):
        """Return residuals where the curvature is not smooth, and some where it bends."""
        loss = self.loss
        bound, room = loss.lipschitz / rho, loss.ridge * loss.eps_c / rho**2
        if isinstance(loss, Logistic):
            sides, width, weight, sign = [(0.0, 1.0)], 1.0, max(abs(y), 1e-12), math.copysign(1, y)
        else:
            level = 1.0 - loss.quantile
            sides, sign, y = [(level, 1.0), (1.0 - level, -1.0)], 1.0, 0.0
            weight = min(1.0, bound / max(level, 1.0 - level))
            width = max(loss.width, weight * level * (1.0 - level) / room)
        found, moved = [-3.0 * width, 0.0, 3.0 * width], 0.0
        for level, way in sides:
            c, top = width * room / bound, bound / weight + level
            roots = np.roots([1.0, -(1.0 + c), c * top])
            for s in roots[np.isreal(roots)].real:
                if 0.0 < s < 1.0:
                    found.append(way * width * math.log(s / (1.0 - s)))
            first = max(level, min((s.real for s in roots if np.isreal(s)), default=1.0))
            if isinstance(loss, SmoothedQuantile) and first < 1.0 and level < 0.5 * (1.0 + c):
                # An exponential in place of the tail of the sigmoid moves the mean of the law.
                left, most = weight * (1.0 - first), weight * (1.0 - level)
                moved += way * (left * most / (weight * room) + width * math.log(first))
        return sorted(y + sign * each - moved for each in found)

    def breaks(self, y, shift=0.0):
        """Return the values of t where the curvature is not smooth."""
        target = y.real
        return [(target - shift) - edge for edge in self.edges(target, y.imag)]


def draw_pair(rng, dimension, kind):
    """Return a pair with its mu, epsilon and eps_c; the ridge is small or large for its loss."""
    eps_c = 10.0 ** rng.uniform(math.log10(0.05), math.log10(5.0))
    epsilon = eps_c * float(rng.choice([1.0, 1.0, 1.0, rng.uniform(1.0, 2.0)]))
    one_sided = kind == "logistic"
    mu = objective_mu(epsilon, 10.0 ** rng.uniform(-10.0, -1.0), one_sided=one_sided)
    T = rng.normal(size=(dimension, dimension)) @ np.diag(10.0 ** rng.uniform(-1, 1, dimension))
    T *= 10.0 ** rng.uniform(-1.0, 1.0)
    n = int(rng.choice([0, 0, 1, 2, 3, 6]))
    X = rng.normal(size=(n + 1, dimension))
    X /= np.linalg.norm(X, axis=1)[:, None]
    X *= rng.choice([1.0, 1.0, rng.uniform(0.1, 1.0), 1e-2], (n + 1, 1))
    style = rng.choice(["random", "equal", "opposite"])
    if style == "equal":
        X[:] = X[0]
    elif style == "opposite":
        X[:] = X[0] * rng.choice([-1.0, 1.0], (n + 1, 1))
    rows = X @ T
    least = 10.0 ** rng.uniform(-3.0, 0.5) * np.linalg.norm(rows[0])
    rho = reference.row_lengths(Mapped(X), T, least)
    rho = rho * rng.choice([1.0, 1.0, 1.0, rng.uniform(1.0, 2.0)], n + 1)
    lipschitz = rho[0] * float(rng.choice([1.0, 0.5, 10.0 ** rng.uniform(-1.5, 1.0)]))
    unit = lipschitz**2 / eps_c  # from here the logistic loss is not limited
    ridge = unit * float(rng.choice([1.0, 1.0, 10.0 ** rng.uniform(-2.0, 2.0)]))
    loss = Logistic(lipschitz, ridge, eps_c)
    if kind == "quantile":
        width = 10.0 ** rng.uniform(-2.0, 1.0)
        ridge *= float(rng.choice([1.0, 1.0 / width]))
        level = float(rng.choice([0.5, rng.uniform(0.02, 0.98)]))
        if level == 0.5 and rng.random() < 0.5:  # as steep as is allowed, to both sides
            lipschitz, width = 0.5 * rho[0], 1e-6
            ridge = 800.0 * lipschitz**2 / eps_c
        loss = SmoothedQuantile(lipschitz, ridge, eps_c, level, width)
    adapted = Adapted(loss, lipschitz / rho.min())
    spread = lipschitz / (mu * ridge)
    center = rng.choice([0.0, 1.0, 30.0]) * rng.normal(size=dimension) * spread

    def target(row, length):
        if kind == "logistic":
            sign = float(rng.choice([-1.0, 1.0]))
            return sign * float(rng.choice([1.0, 1.0, rng.uniform(), 0.01]))
        move = spread * float(row @ rng.normal(size=dimension))
        huge = 1e4 * (spread * np.linalg.norm(row) + loss.width)
        near = [0.0, float(rng.choice(adapted.edges(0.0, length))), move, huge, -huge]
        return float(row @ center) + float(rng.choice(near))

    y = np.array([target(row, length) for row, length in zip(rows, rho, strict=True)])
    targets = y + 1j * rho
    weights = rng.choice([1.0, 1.0, 5.0, 30.0], n) if n <= 3 else np.ones(n)
    own = rows[:1], targets[:1]
    pair = Pair(adapted, lipschitz / mu, ridge, rows[1:], targets[1:], weights, *own, centre=center)
    return pair, mu, epsilon, eps_c


def attack(count, dimension, kind, seed):
    """Return the largest ratio of exact to certified delta."""
    rng = np.random.default_rng(seed)
    grid = {"cells": 24} if dimension == 1 else {"cells": 24, "across": 3}
    worst = 0.0
    for number in range(count):
        pair, mu, epsilon, eps_c = draw_pair(rng, dimension, kind)
        at = np.array([epsilon, float(rng.choice([0.97, 0.8, 0.5])) * eps_c])
        for first in (True, False):
            for e, exact in zip(at, pair.by_intervals(at, first, **grid), strict=True):
                certified = objective_delta(e, mu, eps_c, one_sided=pair.loss.one_sided)
                if certified >= LEAST:
                    context = seed, number, first, e, exact / certified
                    assert exact <= certified * (1.0 + ROUNDING) + 1e-15, context
                    worst = max(worst, exact / certified)
    return worst


def attack_composed(count, kind, seed):
    """Return the largest ratio with Gaussian releases beside the objective."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for number in range(count):
        pair, mu, epsilon, eps_c = draw_pair(rng, 1, kind)
        gaussian = mu * math.sqrt(rng.uniform(0.01, 0.5))
        for e in (epsilon, eps_c + gaussian * rng.uniform(0.0, 5.0), 0.8 * eps_c):
            certified = objective_delta(e, mu, eps_c, gaussian, one_sided=pair.loss.one_sided)
            if certified < LEAST:
                continue
            for first in (True, False):
                exact = pair.by_density(e, first, gaussian, panels=60)[0]
                assert exact <= certified * (1.0 + QUADRATURE), (seed, number, first, e)
                worst = max(worst, exact / certified)
    return worst


@pytest.mark.parametrize("kind", KINDS)
def test_the_oracle_agrees_with_itself(kind):
    """Densities integrate to 1, and intervals and densities give the same divergence."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        pair, _, epsilon, _ = draw_pair(rng, 1, kind)
        for first in (True, False):
            exact, *masses = pair.by_density(epsilon, first)
            assert masses == pytest.approx([1.0, 1.0], abs=1e-7)
            assert pair.by_intervals(epsilon, first)[0] == pytest.approx(exact, rel=1e-5, abs=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_on_a_line(kind):
    """Catches any constant that is too small: the certificate is reached."""
    assert attack(120, 1, kind, seed=1) > 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_in_the_plane(kind):
    assert attack(8, 2, kind, seed=3) > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_gaussian_releases_beside_it(kind):
    assert attack_composed(8, kind, seed=11) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_pairs(kind):
    """2,000 pairs on a line and 300 with Gaussian releases, for each loss."""
    assert attack(2_000, 1, kind, seed=4) > 0.9
    assert attack_composed(300, kind, seed=6) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_pairs_in_the_plane(kind, part):
    """2,000 pairs in the plane for each loss, a hundred in each part."""
    assert attack(100, 2, kind, seed=100 + part) > 0.9


# --- mutants -------------------------------------------------------------------------------------

EPSILON, DELTA = 1.0, 1e-6
MU = objective_mu(EPSILON, DELTA, one_sided=True)
HONEST = Logistic(1.0, 1.0, EPSILON)


@dataclass(frozen=True)
class Plain:
    """The logistic loss as it is, times a number."""

    lipschitz: float = 1.0
    one_sided: bool = True

    def parts(self, t, y, shift=0.0):
        sign = np.copysign(1.0, np.asarray(y).real)
        v = -sign * (t + shift)
        return self.lipschitz * sign * expit(v), self.lipschitz * expit(v) * expit(-v)

    def breaks(self, y, shift=0.0):
        return [-3.0 - shift, -shift, 3.0 - shift]


def lone(loss, *, mu=MU, ridge=1.0, x=1.0, rho=None, center=0.0):
    """Return a pair of one row of label 1 and no background."""
    empty = np.zeros((0, 1)), np.zeros(0), np.zeros(0)
    own = np.array([[x]]), np.array([1.0 + 1j * (abs(x) if rho is None else rho)])
    return Pair(loss, 1.0 / mu, ridge, *empty, *own, centre=center)


def excess(pair, centers=(0.0,)):
    """Return the largest exact delta over the certified one."""
    return max(
        replace(pair, centre=center).by_intervals(EPSILON, first)[0] / DELTA
        for first in (True, False)
        for center in centers
    )


CENTERS = (-40.0, -10.0, -3.0, 0.0, 3.0, 10.0, 40.0)


def test_the_honest_loss_is_within_the_certificate_and_reaches_it():
    found = excess(lone(Adapted(HONEST, 1.0)), CENTERS)
    assert 0.99 < found <= 1.0 + ROUNDING
    for x in (0.3, 4.0):
        for ridge in (0.1, 1.0, 30.0):
            loss = Adapted(Logistic(1.0, ridge, EPSILON), 1.0 / x)
            assert excess(lone(loss, ridge=ridge, x=x), CENTERS) <= 1.0 + ROUNDING


def test_a_loss_without_the_condition_is_caught():
    """The logistic loss with a tenth of the ridge that it needs."""
    assert excess(lone(Plain(), ridge=0.1), CENTERS) > 1e3
    assert excess(lone(Plain(), ridge=1.0), CENTERS) <= 1.0 + ROUNDING


def test_a_ridge_that_the_loss_was_not_made_for_is_caught():
    assert excess(lone(Adapted(HONEST, 1.0), ridge=0.1), CENTERS) > 1e3


def test_a_slope_bound_that_is_off_is_caught():
    assert excess(lone(Plain(1.05), ridge=2.0), CENTERS) > 1.3


def test_half_the_noise_is_caught():
    assert excess(lone(Adapted(HONEST, 1.0), mu=2.0 * MU), CENTERS) > 1e3


def test_a_row_that_is_longer_than_it_says_is_caught():
    assert excess(lone(Adapted(HONEST, 1.0), x=1.5, rho=1.0), CENTERS) > 10.0
    long = Adapted(Logistic(1.0, 1.0, EPSILON), 0.25)
    assert excess(lone(long, x=4.0, rho=3.8), CENTERS) > 1.3


def test_a_two_sided_loss_needs_the_factor_2():
    """The smoothed median with the noise of a one-sided loss."""
    loss = SmoothedQuantile(0.5, 200.0, EPSILON, 0.5, 1e-6)  # as steep as is allowed
    pair = lone(Adapted(loss, 0.5), ridge=200.0)
    pair = replace(pair, scale=0.5 / MU, own_targets=np.array([1j]))
    assert excess(pair) > 1.9
    right = replace(pair, scale=0.5 / objective_mu(EPSILON, DELTA))
    assert excess(right) <= 1.0 + ROUNDING


def test_the_split_of_a_one_sided_release():
    """A tenth of delta for what lies beyond eps_c: within the target, and more than two-sided."""
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-6), (10.0, 1e-10)):
        mu, eps_c, gaussian = objective_split(epsilon, delta, 0.15, one_sided=True)
        spent = objective_delta(epsilon, mu, eps_c, gaussian, one_sided=True)
        assert 0.999 * delta < spent <= delta
        assert mu > objective_split(epsilon, delta, 0.15)[0]
        assert 0.0 < eps_c < epsilon
        loss = Adapted(Logistic(1.0, 1.0 / eps_c, eps_c), 1.0)
        pair = lone(loss, mu=mu, ridge=1.0 / eps_c)
        for center in (-10.0, 0.0, 10.0):
            for first in (True, False):
                moved = replace(pair, centre=center)
                exact = moved.by_density(epsilon, first, gaussian, panels=120)[0]
                assert exact <= delta * (1.0 + QUADRATURE)
