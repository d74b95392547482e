"""The solver of perturbed objectives: it reaches its tolerance, whatever the data are."""

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from fastmix.data import ArrayRows, Measure, TransformedRows
from fastmix.data.maps import RowMap, TargetMap
from fastmix.errors import InvalidValueError
from fastmix.kernels.losses import CalibratedHuber
from fastmix.kernels.mapped import summation_error
from fastmix.kernels.sigmoids import Logistic, SmoothedQuantile
from fastmix.releases import descent
from fastmix.releases import minimise as solver
from fastmix.releases.distance import Objective, longest_minimiser, rounding_distance
from fastmix.releases.minimise import minimise, preconditioner


def rows_of(X, y):
    return ArrayRows(np.asarray(X, dtype=np.float64), RowMap(1.0), np.asarray(y), TargetMap())


def objective(d, loss, scale=3.0, seed=0, center=None):
    b = scale * np.random.default_rng(seed).standard_normal(d)
    return Objective(loss, loss.ridge, np.zeros(d) if center is None else center, b)


def exact_gradient(X, y, goal, theta):
    """The gradient at the mapped rows, by exact sums."""
    total, loss = [], goal.loss
    residuals = np.array([y[i] - math.fsum(X[i] * theta) for i in range(len(y))])
    slopes = loss.slope(residuals)
    for j in range(X.shape[1]):
        own = goal.ridge * (theta[j] - goal.center[j]) + goal.b[j]
        total.append(math.fsum([own, *(-slopes * X[:, j])]))
    return np.array(total)


def onehot(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, d))
    X[np.arange(n), np.minimum(rng.geometric(0.3, n) - 1, d - 1)] = 1.0
    return X


def data_sets():
    rng = np.random.default_rng(1)
    uniform = rng.uniform(-1, 1, (600, 7)) / math.sqrt(7)
    yield "uniform", uniform, rng.uniform(-1, 1, 600)
    yield "heavy tails", uniform, np.clip(uniform @ np.arange(7) + rng.standard_t(1, 600), -1, 1)
    yield "one row", uniform[:1], [1.0]
    yield "no signal, zero rows", np.zeros((50, 3)), np.ones(50)
    yield "constant", np.full((300, 4), 0.5), np.ones(300)
    yield "opposite targets", np.full((300, 4), 0.5), np.where(np.arange(300) % 2, 1.0, -1.0)
    base = rng.uniform(-0.2, 0.2, (500, 1))
    yield "collinear", base + 1e-10 * rng.standard_normal((500, 20)), 5.0 * base[:, 0]
    yield "as many columns as rows", rng.standard_normal((40, 40)) / 10, rng.uniform(-1, 1, 40)
    yield "one-hot", onehot(2000, 30), rng.choice([-1.0, 1.0], 2000)
    scales = np.logspace(0, -8, 6)
    yield "scales apart", rng.uniform(-0.4, 0.4, (800, 6)) * scales, rng.uniform(-1, 1, 800)
    yield "wide", rng.standard_normal((200, 150)) / 15, rng.uniform(-1, 1, 200)


LOSSES = [
    CalibratedHuber(1.0, 2.0, 1.0),
    CalibratedHuber(0.05, 0.7, 1.0),
    CalibratedHuber(1.0, 300.0, 0.01),
    CalibratedHuber(0.2, 0.01, 10.0),
]


@pytest.mark.parametrize("sketch", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize(("X", "y"), [(X, y) for _, X, y in data_sets()],
                         ids=[name for name, _, _ in data_sets()])  # fmt: skip
def test_reaches_the_minimum(X, y, loss, sketch):
    """The exact gradient at what is returned, over the ridge, is within the tolerance."""
    X, y = np.asarray(X), np.asarray(y, dtype=np.float64)
    rows = rows_of(X, y)
    ((mapped, seen),) = rows.blocks()
    for scale in (0.1, 30.0):
        goal = objective(rows.d, loss, scale * loss.lipschitz)
        # Sums are less exact without compiled kernels.
        granted = (summation_error(loss) - 2.0**-52) * rows.n * loss.lipschitz / loss.ridge
        tolerance = 1e-9 * max(1.0, scale) + 2.0 * granted
        theta = minimise(rows, goal, tolerance=tolerance, sketch=sketch,
                         public=np.random.default_rng(0))  # fmt: skip
        gradient = exact_gradient(np.asarray(mapped), seen, goal, theta)
        assert np.linalg.norm(gradient) / goal.ridge <= tolerance


@pytest.mark.parametrize("ridge", [1.0, 0.01])
def test_rows_that_a_sketch_in_single_precision_cannot_tell_apart(ridge):
    """Columns that are equal up to 1e-9: rounding decides on the sign of small eigenvalues."""
    rng = np.random.default_rng(2)
    X = rng.uniform(0.05, 0.15, (10_000, 1)) + 1e-9 * rng.standard_normal((10_000, 40))
    y = 6.0 * X[:, 0] - 0.6
    loss = CalibratedHuber(1.0, ridge, 6.0)
    goal, rows = objective(40, loss), rows_of(X, y)
    tolerance = 1e-8 + 2.0 * rounding_distance(goal, rows.n, 100.0 / ridge)
    theta = minimise(rows, goal, tolerance=tolerance, sketch=True, public=np.random.default_rng(0))
    mapped = np.concatenate([A for A, _ in rows.blocks()])
    assert np.linalg.norm(exact_gradient(mapped, y, goal, theta)) / ridge <= tolerance


def test_a_sketch_is_as_precise_as_the_ridge_asks_for():
    """The triangle is positive definite with the ridge, whichever precision it is made in."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((5_000, 1)) / 10 + 1e-9 * rng.standard_normal((5_000, 60))
    exact = np.triu(Z.T @ Z)
    error = solver._SINGLE * np.trace(exact)
    for ridge, dtype, off in ((1.0, np.float32, error), (1e-6, np.float64, 1e-12)):
        triangle = solver._triangle(np.asfortranarray(Z), 5_000, ridge)
        assert triangle.dtype == dtype
        np.testing.assert_allclose(np.triu(triangle), exact, atol=2.0 * off, rtol=1e-12)
        np.linalg.cholesky(triangle + np.triu(triangle, 1).T + ridge * np.eye(60))


@pytest.mark.parametrize("sketch", [False, True])
@pytest.mark.parametrize("clip", [1.0, 0.1])
def test_targets_far_from_the_centre(clip, sketch):
    """All residuals of a column start where the loss is nearly straight: no step may go astray."""
    rng, n = np.random.default_rng(0), 3_000
    X = np.zeros((n, 60))
    X[np.arange(n), np.minimum(rng.geometric(0.03, n) - 1, 59)] = 1.0
    y = np.clip(X @ (3.0 * rng.standard_normal(60)) + 0.3 * rng.standard_t(2, n), -1, 1)
    loss = CalibratedHuber(clip, 0.07, 28.0)
    goal = objective(60, loss, 0.2)
    theta = minimise(rows_of(X, y), goal, tolerance=1e-6, sketch=sketch,
                     public=np.random.default_rng(0))  # fmt: skip
    assert np.linalg.norm(exact_gradient(X, y, goal, theta)) / goal.ridge <= 1e-6


def test_agrees_with_another_optimiser():
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-0.5, 0.5, (400, 3)), rng.uniform(-1, 1, 400)
    loss = CalibratedHuber(0.4, 2.0, 1.0)
    center = np.array([1.0, -2.0, 0.5])
    goal = objective(3, loss, 5.0, center=center)
    found = minimise(rows_of(X, y), goal, tolerance=1e-10, sketch=False)

    def gradient(theta):
        own = goal.ridge * (theta - center) + goal.b
        return own - X.T @ loss.slope(y - X @ theta)

    # The value is the integral of the gradient from zero; Gauss-Legendre is good enough to compare.
    nodes, weights = np.polynomial.legendre.leggauss(60)

    def value(theta):
        return sum(w / 2 * theta @ gradient((t + 1) / 2 * theta)
                   for t, w in zip(nodes, weights, strict=True))  # fmt: skip

    other = minimize(value, np.zeros(3), jac=gradient, method="BFGS", options={"gtol": 1e-8}).x
    assert found == pytest.approx(other, abs=1e-6)


def test_rounding_distance_covers_fifty_digits():
    """The distance that is granted to rounding is above the true error of a converged solution."""
    rng = np.random.default_rng(5)
    X, y = rng.uniform(-0.57, 0.57, (200, 3)), rng.uniform(-1, 1, 200)
    loss = CalibratedHuber(0.5, 2.0, 1.0)
    goal = objective(3, loss, 2.0)
    rows = rows_of(X, y)
    theta = minimise(rows, goal, tolerance=1e-9, sketch=False)
    ((mapped, seen),) = rows.blocks()
    with mpmath.workdps(50):
        exact = mpmath.matrix([mpmath.mpf(t) for t in theta])
        L, ridge, eps_c = map(mpmath.mpf, (loss.lipschitz, loss.ridge, loss.eps_c))
        zone = L * (1 - mpmath.log(1 + 1 / ridge) / eps_c)
        for _ in range(3):  # Newton's method from the solution
            gradient = [ridge * exact[j] + mpmath.mpf(goal.b[j]) for j in range(3)]
            hessian = ridge * mpmath.eye(3)
            for x, target in zip(mapped, seen, strict=True):
                x = [mpmath.mpf(v) for v in x]
                u = mpmath.mpf(target) - sum(a * t for a, t in zip(x, exact, strict=True))
                e = mpmath.exp(-eps_c * ridge * (abs(u) - zone) / L) / (1 + ridge)
                inside = abs(u) <= zone
                slope = u if inside else mpmath.sign(u) * L * (1 + mpmath.log(1 - e) / eps_c)
                curvature = 1 if inside else ridge * e / (1 - e)
                for j in range(3):
                    gradient[j] -= slope * x[j]
                    for k in range(3):
                        hessian[j, k] += curvature * x[j] * x[k]
            exact -= mpmath.lu_solve(hessian, mpmath.matrix(gradient))
        error = float(mpmath.norm(exact - mpmath.matrix([mpmath.mpf(t) for t in theta])))
    granted = rounding_distance(goal, 200, float(np.linalg.norm(theta)))
    assert error <= granted
    assert granted < 1e-11


@pytest.mark.parametrize("offset", [0.0, 3.0])
@pytest.mark.parametrize(
    "loss",
    [*LOSSES, Logistic(0.4, 0.5, 1.0), Logistic(2.0, 30.0, 1.0), SmoothedQuantile(0.5, 3.0, 1.0)],
    ids=str,
)
def test_no_minimiser_is_longer_than_its_bound(loss, offset):
    """Small rows in one direction make the longest; half the bound is attained by squares."""
    n, most = 400, 0.0
    rng = np.random.default_rng(0)
    for size in (1e-4, 0.3, 1.0, 3.0, 100.0):
        for noise in (0.0, 5.0):
            x = min(0.9, size * math.sqrt(loss.ridge / n)) * np.array([0.6, -0.8])
            X = np.tile(x, (n, 1)) * rng.uniform(0.99, 1.0, (n, 1))
            center = offset * np.array([-0.6, 0.8])
            goal = objective(2, loss, noise * loss.lipschitz, center=center)
            theta = minimise(rows_of(X, np.ones(n)), goal, tolerance=1e-6, sketch=False)
            limit = longest_minimiser(goal, n, float(np.linalg.norm(goal.b)))
            assert np.linalg.norm(theta) <= limit
            most = max(most, float(np.linalg.norm(theta - center)) / (limit - offset))
    assert most > (0.3 if loss.squares and not offset else 0.01)


@pytest.mark.parametrize("sketch", [False, True])
def test_a_failing_factorisation_is_not_seen(sketch, monkeypatch):
    """LAPACK stops at a column that depends on the data; the fit goes on without it."""

    def stops(*args, **kwargs):
        raise np.linalg.LinAlgError("17-th leading minor of the array is not positive definite")

    monkeypatch.setattr(solver, "cho_factor", stops)
    monkeypatch.setattr(descent, "cho_factor", stops)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (300, 3)), rng.uniform(-1, 1, 300)
    goal = objective(3, LOSSES[0])
    theta = minimise(rows_of(X, y), goal, tolerance=1e-9, sketch=sketch)
    assert np.linalg.norm(exact_gradient(X, y, goal, theta)) / goal.ridge <= 1e-9


def test_data_that_change_to_nan_stop_the_solver_at_once():
    passes = []
    X, y = np.full((50, 2), 0.5), np.ones(50)
    rows = rows_of(X, y)
    changing = rows.run

    def run(task):
        passes.append(1)
        total, *rest = changing(task)
        return total * np.nan, *rest

    rows.moments()
    rows.run = run
    with pytest.raises(InvalidValueError):
        minimise(rows, objective(2, LOSSES[0]), tolerance=1e-9, sketch=False)
    assert len(passes) <= 4


def test_few_passes():
    """Squares: Gram matrix and one or two checks. With outliers: a few passes more."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.4, 0.4, (5_000, 6))
    y = np.clip(X @ rng.standard_normal(6) + 0.1 * rng.standard_t(3, 5_000), -1, 1)
    passes = []

    class Counted(ArrayRows):
        def run(self, task):
            passes.append(task.name)
            return super().run(task)

    def count(loss, tolerance):
        passes.clear()
        rows = Counted(X, RowMap(1.0), y, TargetMap())
        minimise(rows, objective(6, loss), tolerance=tolerance, sketch=False)
        return len(passes)

    assert count(CalibratedHuber(2.0, 30.0, 1.0), 1e-9) <= 3
    assert count(CalibratedHuber(0.2, 1.0, 1.0), 1e-9) <= 8


SIGMOIDS = [Logistic(2.0, 3.0, 0.5), Logistic(0.1, 0.01, 0.1), SmoothedQuantile(1.5, 2.0, 1.0)]


@pytest.mark.parametrize("loss", SIGMOIDS, ids=str)
@pytest.mark.parametrize(("X", "y"), [(X, y) for _, X, y in data_sets()],
                         ids=[name for name, _, _ in data_sets()])  # fmt: skip
def test_sigmoids_reach_the_minimum(X, y, loss, monkeypatch):
    """From the curvature at the point, too, of all rows and of a sample of them."""
    y = np.sign(y)
    rows = rows_of(X, y)
    goal = objective(rows.d, loss)
    A = np.concatenate([each for each, _ in rows.blocks()])
    for sample in (200, 1):
        monkeypatch.setattr(solver, "_SAMPLE", sample)
        found = minimise(rows, goal, tolerance=1e-7, sketch=False)
        residuals = y - A @ found
        gradient = goal.ridge * found + goal.b - A.T @ loss.slope(residuals, None, y)
        assert np.linalg.norm(gradient) / goal.ridge <= 1.1e-7


@pytest.mark.parametrize("every", [1, 3])
def test_sampled_curvature_is_that_of_the_rows_it_takes(every):
    rng = np.random.default_rng(0)
    X, y, theta = rng.uniform(-0.4, 0.4, (500, 4)), rng.choice([-1.0, 1.0], 500), rng.normal(size=4)
    loss, T, center = Logistic(2.0, 3.0, 0.5), rng.normal(size=(4, 4)), rng.normal(size=4)
    rows = rows_of(X, y)
    lengths = np.maximum(np.linalg.norm(X @ T, axis=1), 0.3)
    seen = TransformedRows(rows, T, center, 0.3)
    cases = [
        (rows, X, X @ theta, None),
        (rows.measured(Measure(T, 0.3)), X, X @ theta, lengths),
        (seen, X @ T, X @ (center + T @ theta), lengths),
    ]
    for of, Z, fitted, own in cases:
        curvature = loss.curvature(y - fitted, own, y)
        exact = every * (Z * curvature[:, None])[::every].T @ Z[::every]
        np.testing.assert_allclose(of.sampled_curvature(theta, loss, every), exact, rtol=1e-9)


def test_a_sigmoid_takes_few_passes():
    """With labels that are easy to tell most rows have little curvature at the minimum: 18 before
    the curvature at the point was taken.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.2, 0.2, (20_000, 20))
    y = np.where(X @ rng.standard_normal(20) * 20 + rng.logistic(size=20_000) > 0, 1.0, -1.0)
    passes = []

    class Counted(ArrayRows):
        def run(self, task):
            passes.append(task.name)
            return super().run(task)

    rows = Counted(X, RowMap(1.0), y, TargetMap())
    minimise(rows, objective(20, Logistic(2.0, 3.0, 4.0 / 3.0)), tolerance=1e-6, sketch=False)
    assert len(passes) <= 16


@pytest.mark.parametrize("n", [1, 2, 3, 100, 5_000, 10**7])
@pytest.mark.parametrize("d", [1, 10, 2_000])
def test_sketch_has_a_size_that_exists(n, d):
    sketch = preconditioner(n, d)
    assert sketch.k2 < n + 4
    assert sketch.n == n
    assert sketch.k2 >= min(8 * d, n)


@pytest.mark.parametrize("count", [1, 60])
def test_rows_that_carry_a_direction_each_do_not_slow_the_solver(count):
    """Columns of the sketch have norm 1: it sees a direction that one row alone has in full.

    Conjugate gradients would need one product more for each direction that is missed.
    """
    rng, (n, d) = np.random.default_rng(5), (8_000, 120)
    X = np.zeros((n, d))
    X[:, count:] = rng.standard_normal((n, d - count)) / (40.0 * math.sqrt(d))
    X[rng.choice(n, count, replace=False)] = np.eye(d)[:count]
    y, passes = np.clip(X @ rng.standard_normal(d), -1.0, 1.0), []

    class Counted(ArrayRows):
        def run(self, task):
            passes.append(task.name)
            return super().run(task)

    goal = Objective(CalibratedHuber(2.0, 0.01, 6.0), 0.01, np.zeros(d), np.zeros(d))
    rows = Counted(X, RowMap(1.0), y, TargetMap())
    public = np.random.default_rng(0)
    theta = minimise(rows, goal, tolerance=1e-5, sketch=True, public=public)
    assert np.linalg.norm(exact_gradient(X, y, goal, theta)) / goal.ridge <= 1e-5
    assert len(passes) <= 30
