"""Where the fast solver does not arrive: the descent that does, whatever the data are."""

import math
from fractions import Fraction

import numpy as np
import pytest

from fastmix import (
    BudgetAccountant,
    ObjectivePerturbation,
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantileRegressor,
)
from fastmix.data import ArrayRows, TransformedRows
from fastmix.data.maps import RowMap, TargetMap
from fastmix.data.persons import Persons
from fastmix.kernels import mapped
from fastmix.kernels.losses import CalibratedHuber, LinearHuber
from fastmix.kernels.sigmoids import Logistic, SmoothedQuantile
from fastmix.releases import MINIMISER, descent, make_noise
from fastmix.releases import minimise as solver
from fastmix.releases.distance import Frame, Objective, least_tolerance
from fastmix.releases.minimise import minimise

LOSSES = {
    "squares": CalibratedHuber(2.0, 0.3, 3.0, 12.0 / 9.0),
    "a corner": CalibratedHuber(0.05, 0.02, 5_000.0, 3.0),
    "persons": LinearHuber(0.2, 3.0, 4.0),
    "logistic": Logistic(1.0, 0.05, 1.0),
    "quantile": SmoothedQuantile(0.8, 0.2, 2.0, 0.9, 0.01),
}


def tables(count=25):
    rng = np.random.default_rng(1)
    wide = rng.standard_normal((count, 2 * count)) / 9.0
    yield "more columns than rows", wide, rng.choice([-1.0, 1.0], count)
    yield "equal rows", np.full((count, 4), 0.5), np.ones(count)
    yield "opposite", np.full((count, 4), 0.5), np.where(np.arange(count) % 2, 1.0, -1.0)
    base = rng.uniform(-0.4, 0.4, (count, 1))
    yield "collinear", base + 1e-12 * rng.standard_normal((count, 6)), np.sign(base[:, 0])
    onehot = np.eye(8)[rng.integers(0, 8, 10 * count)]
    yield "separated", onehot, np.where(onehot[:, 0] > 0, 1.0, -1.0)
    scales = np.logspace(0, -9, 5)
    yield "scales apart", rng.uniform(-0.4, 0.4, (count, 5)) * scales, rng.uniform(-1, 1, count)
    yield "one row", np.full((1, 3), 0.4), np.array([1.0])


def problem(X, y, loss, kind, seed=0):
    """Return rows, the objective, and what an exact gradient needs."""
    rng, (n, d) = np.random.default_rng(seed), X.shape
    weights = rng.choice([0.0, 1e-9, 0.5, 1.0], n) if kind == "weights" else None
    persons = None if weights is None else Persons(n, weights, n, 1)
    rows = ArrayRows(X, RowMap(1.0), np.asarray(y, dtype=float), TargetMap(), persons=persons)
    b = loss.lipschitz * rng.standard_normal(d)
    if kind != "coordinates":
        return rows, Objective(loss, loss.ridge, np.zeros(d), b, None, weights is not None)
    T = np.linalg.qr(rng.standard_normal((d, d)))[0] * np.geomspace(0.1, 30.0, d)
    center = rng.standard_normal(d)
    norms = [float(np.linalg.norm(each)) for each in (T, np.linalg.inv(T), center)]
    seen = TransformedRows(rows, T, center, 0.7)
    return seen, Objective(loss, loss.ridge, np.zeros(d), b, Frame(*norms, 0.7))


def reaches(rows, goal, tolerance):
    """Check that a point is returned by the rule, from its own computation of the gradient."""
    found = minimise(rows, goal, tolerance=tolerance, sketch=False)
    point = descent._Descent(rows, goal, tolerance).at(np.stack([found, 0.0 * found]))
    # What the last part of the point adds is a part of its own rounding.
    gram = goal.loss.bend * float(np.linalg.norm(rows.moments()[0]))
    last = 2.0**-53 * float(np.linalg.norm(found)) * (gram / goal.ridge + 1.0)
    assert point.computed + point.rounding <= tolerance + last
    return found


@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("kind", ["plain", "weights", "coordinates"])
@pytest.mark.parametrize("name", LOSSES)
def test_reaches_the_least_tolerance(name, kind, steps, monkeypatch):
    """The least tolerance of public sizes, on hostile tables, without the fast solver."""
    loss = LOSSES[name]
    if kind != "coordinates" and getattr(loss, "longest", 1.0) > 1.0:
        loss = CalibratedHuber(loss.lipschitz, loss.ridge, loss.eps_c)
    usual = {}
    for case, X, y in tables():
        rows, goal = problem(X, y, loss, kind)
        tolerance = least_tolerance(goal, rows.most, 2.0 * float(np.linalg.norm(goal.b)))
        usual[case] = minimise(rows, goal, tolerance=1e-6 + tolerance, sketch=False)
    monkeypatch.setattr(solver, "_MOST_STEPS", steps)
    for case, X, y in tables():
        rows, goal = problem(X, y, loss, kind)
        tolerance = least_tolerance(goal, rows.most, 2.0 * float(np.linalg.norm(goal.b)))
        found = reaches(rows, goal, tolerance)
        assert np.linalg.norm(found - usual[case]) <= 1e-6 + 2.0 * tolerance, case


@pytest.mark.parametrize("name", LOSSES)
def test_both_kernels_arrive_at_the_same_point(name, monkeypatch):
    monkeypatch.setattr(solver, "_MOST_STEPS", 0)
    for _, X, y in tables():
        rows, goal = problem(X, y, LOSSES[name], "coordinates")
        first = minimise(rows, goal, tolerance=1e-7, sketch=False)
        with monkeypatch.context() as patch:
            patch.setattr(mapped, "kernel", lambda name: None)
            rows, goal = problem(X, y, LOSSES[name], "coordinates")
            other = minimise(rows, goal, tolerance=1e-7, sketch=False)
        assert np.linalg.norm(first - other) <= 2e-7


#: Of curvatures that are not far above the ridge, for which sure steps are not too many to take.
SHALLOW = {
    "squares": CalibratedHuber(2.0, 0.3, 3.0),
    "a corner": CalibratedHuber(0.05, 0.2, 500.0),
    "persons": LinearHuber(0.2, 3.0, 4.0),
    "logistic": Logistic(1.0, 0.05, 1.0),
    "quantile": SmoothedQuantile(0.8, 1.0, 2.0, 0.9, 0.1),
}


@pytest.mark.parametrize("name", SHALLOW)
def test_sure_steps_alone_arrive_within_their_bound(name, monkeypatch):
    """Steps against the gradient, as many as the proof says at most: no direction gains."""
    monkeypatch.setattr(solver, "_MOST_STEPS", 0)
    monkeypatch.setattr(descent._Descent, "_directions", lambda self, point: iter(()))
    loss = SHALLOW[name]
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (12, 3))
    rows, goal = problem(X, rng.choice([-1.0, 1.0], 12), loss, "weights")
    points = []
    real = descent._Descent.step

    def watched(self, point):
        points.append(point.computed)
        return real(self, point)

    monkeypatch.setattr(descent._Descent, "step", watched)
    tolerance = 1e-4
    reaches(rows, goal, tolerance)
    gram = loss.bend * float(np.linalg.norm(rows.moments()[0]))
    ratio = 1.01 * gram / loss.ridge + 1.0
    # The objective is at most (ridge/2) g^2 above its least value at a gradient of ridge g, and at
    # least g^2 ridge / (2 ratio); a step gains 0.075/4 g^2 ridge / ratio.
    bound = 90.0 * ratio * math.log(32.0 * ratio * (points[0] / tolerance) ** 2)
    assert 0 < len(points) <= bound


def test_a_point_that_sums_of_doubles_cannot_tell():
    """Residuals are differences of numbers 1e8 times as large: the descent still arrives."""
    rng = np.random.default_rng(3)
    X = np.outer(rng.uniform(0.5, 1.0, 200), [0.6, 0.8]) + 1e-9 * rng.standard_normal((200, 2))
    loss = CalibratedHuber(1.0, 1e-13, 40.0)
    goal = Objective(loss, loss.ridge, np.zeros(2), 1e-9 * rng.standard_normal(2))
    rows = ArrayRows(X, RowMap(1.0), rng.uniform(-1, 1, 200), TargetMap())
    noise = float(np.linalg.norm(goal.b))
    tolerance = least_tolerance(goal, 200, noise)
    found = reaches(rows, goal, tolerance)
    assert tolerance < 0.1 * np.linalg.norm(found)


def test_where_rounding_is_all_the_centre_is_near_enough(monkeypatch):
    """A ridge that is absurd for its rows: the tolerance says so, from public sizes alone."""
    loss = CalibratedHuber(1.0, 1e-40, 400.0)
    X, y = np.full((50, 3), 0.5), np.ones(50)
    goal = Objective(loss, loss.ridge, np.zeros(3), np.zeros(3))
    rows = ArrayRows(X, RowMap(1.0), y, TargetMap())
    tolerance = least_tolerance(goal, 50, 0.0)
    monkeypatch.setattr(solver, "_MOST_STEPS", 0)
    steps = []
    monkeypatch.setattr(descent._Descent, "step", lambda self, point: steps.append(point))
    assert np.isfinite(minimise(rows, goal, tolerance=tolerance, sketch=False)).all()
    assert not steps


def test_products_and_sums_in_two_parts():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((50, 7)) * 10.0 ** rng.integers(-30, 30, (50, 7))
    b = rng.standard_normal((50, 7)) * 10.0 ** rng.integers(-30, 30, (50, 7))
    for x, y, high, low in zip(*(each.ravel() for each in (a, b, *descent.product(a, b))),
                               strict=True):  # fmt: skip
        assert Fraction(x) * Fraction(y) == Fraction(high) + Fraction(low)
    for n in (0, 1, 2, 3, 50):
        high, low = descent.total(a[:n])
        for j in range(7):
            exact = sum(map(Fraction, a[:n, j]), Fraction(0))
            size = sum(map(abs, map(Fraction, a[:n, j])), Fraction(0))
            assert abs(Fraction(high[j]) + Fraction(low[j]) - exact) <= size * Fraction(2) ** -96


@pytest.mark.parametrize("size", [1.0, 1e8])
def test_residuals_are_rounded_once(size):
    """Coefficients that cancel leave a residual of 1e-17 of their products."""
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (40, 6))
    A[:, 3:] = -A[:, :3]
    theta = np.stack([size * np.tile(rng.standard_normal(3), 2), 1e-17 * rng.standard_normal(6)])
    y = rng.uniform(-1, 1, 40) * 1e-9
    found = descent.times(A, -theta, y)[0]
    for row, target, residual in zip(A, y, found, strict=True):
        pairs = [Fraction(high) + Fraction(low) for high, low in theta.T]
        exact = Fraction(target) - sum(map(lambda a, t: Fraction(a) * t, row, pairs))
        error = abs(Fraction(residual) - exact)
        assert error <= 2.0**-52 * abs(exact) + size * Fraction(2) ** -98


def hostile(kind, rng):
    """Return a model and arguments of its fit."""

    def one(*options):
        return options[rng.integers(len(options))]

    n, d = int(one(1, 2, 3, 10, 25, 60)), int(one(1, 2, 5, 30))
    X = {
        "random": rng.uniform(-1, 1, (n, d)),
        "equal": np.full((n, d), 0.7),
        "collinear": rng.uniform(-1, 1, (n, 1)) + 1e-9 * rng.standard_normal((n, d)),
        "far": 1e6 * rng.standard_normal((n, d)),
        "zeros": np.zeros((n, d)),
    }[one("random", "equal", "collinear", "far", "zeros")]
    y = one(np.sign(X[:, 0]), rng.uniform(-1, 1, n), np.ones(n), rng.choice([-1.0, 1.0], n))
    given = {
        "epsilon": float(10.0 ** rng.uniform(-3, 6)),
        "delta": one(1e-3, 1e-6, 1e-12),
        "bounds_X": (-1.0, 1.0),
    }
    if kind is PrivateLogisticRegression:
        given["classes"], y = (0, 1), np.where(y > 0, 1, 0)
    else:
        given["bounds_y"] = one((-1.0, 1.0), (-1.0, 1e6))
    if "residual_clip" in kind().get_params():
        given["residual_clip"] = one(None, None, 1e-6, 1e3)
    fit = {}
    if one(True, False):
        weights = np.linspace(0, 3, n), np.zeros(n), np.full(n, 1e-300), np.full(n, 1e300)
        fit |= {"max_weight": 2.0, "sample_weight": one(*weights)}
    if one(True, False, False):
        fit |= {"max_rows_per_group": 3, "groups": one(np.arange(n) // 2, np.zeros(n, dtype=int))}
    return kind(**given), (X, y), fit


KINDS = (
    *(ObjectivePerturbation, PrivateLinearRegression, PrivateHuberRegressor),
    *(PrivateLogisticRegression, PrivateQuantileRegressor),
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [0, 200], ids=["descent alone", "as it is"])
@pytest.mark.parametrize(
    "fits", [15, pytest.param(300, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_no_fit_fails_after_its_charge(kind, steps, fits, monkeypatch):
    """Without the fast solver, too; what is refused is not charged."""
    monkeypatch.setattr(solver, "_MOST_STEPS", steps)
    rng, fitted = np.random.default_rng(fits), 0
    for _ in range(fits):
        model, data, given = hostile(kind, rng)
        budget = BudgetAccountant(math.inf, 0.9)
        try:
            model.set_params(accountant=budget).fit(*data, **given)
        except ValueError:
            assert not len(budget)
            continue
        assert np.isfinite(model.coef_).all()
        fitted += 1
    assert fitted > fits // 2


def hostile_release(name, rng):
    """Return rows and what the release of a minimiser is given: all public numbers extreme."""

    def one(*options):
        return options[rng.integers(len(options))]

    n, d = int(one(1, 2, 5, 25, 100)), int(one(1, 2, 5, 24))
    X = rng.standard_normal((n, d)) * np.logspace(0, -float(one(0, 3, 9)), d)
    X = one(X, np.tile(X[:1], (n, 1)), X[:, :1] + 1e-13 * X, np.eye(d)[rng.integers(0, d, n)])
    y = one(np.sign(X @ rng.standard_normal(d)), rng.uniform(-1, 1, n), np.ones(n), np.zeros(n))
    eps_c, mu = float(10.0 ** rng.uniform(-3, 6)), float(10.0 ** rng.uniform(-4, 3))
    lipschitz, longest = float(10.0 ** rng.uniform(-9, 3)), 1.0
    weights = one(None, None, np.zeros(n), np.full(n, 1e-300), rng.uniform(0, 1, n), np.ones(n))
    persons = None if weights is None else Persons(n, weights, n, 1)
    given = {"mu": mu, "eps_c": eps_c, "mu_output": float(10.0 ** rng.uniform(-5, 0))}
    if one(True, False):
        T = np.linalg.qr(rng.standard_normal((d, d)))[0] * np.geomspace(1.0, 10.0 ** one(0, 4), d)
        given |= {"transform": T, "center": one(0.0, 1.0, 1e4) * rng.standard_normal(d)}
        given["least"], longest = 0.5 * math.sqrt(d), one(1.0, math.sqrt(d))
    ridge = one(0.3 * lipschitz / mu, 1e-3 * n, 1.0, 1e-9)
    if name == "quantile":
        loss = SmoothedQuantile(lipschitz, ridge, eps_c, one(0.01, 0.5), one(1e-6, 0.1))
    elif name == "logistic":
        loss = Logistic(lipschitz, ridge, eps_c)
    else:
        kind, least = (LinearHuber, 1.0 / eps_c) if name == "persons" else (CalibratedHuber, 0.0)
        ridge = max(ridge, 1.001 * longest**2 * (least or 1.0 / math.expm1(min(eps_c, 700.0))))
        loss = kind(lipschitz, ridge, eps_c, longest)
    rows = ArrayRows(X, RowMap(1.0), y, TargetMap(), persons=persons)
    return rows, {"loss": loss, "ridge": ridge, **given}


@pytest.mark.parametrize("name", ["squares", "persons", "logistic", "quantile"])
@pytest.mark.parametrize("steps", [0, 200], ids=["descent alone", "as it is"])
@pytest.mark.parametrize(
    "draws", [60, pytest.param(1_000, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_no_release_fails(name, steps, draws, monkeypatch):
    """Each is drawn from a point that meets the tolerance, not from one that rounding left."""
    monkeypatch.setattr(solver, "_MOST_STEPS", steps)
    real = descent._Descent.ends
    missed = []

    def watched(self, point):
        ended = real(self, point)
        if ended and not point.computed + point.rounding <= self._tolerance:
            missed.append(point)
        return ended

    monkeypatch.setattr(descent._Descent, "ends", watched)
    rng = np.random.default_rng(draws)
    for draw in range(draws):
        rows, given = hostile_release(name, rng)
        noise = make_noise(draw, warn=False)
        assert np.isfinite(noise.release(MINIMISER, rows, **given)).all()
    assert not missed
