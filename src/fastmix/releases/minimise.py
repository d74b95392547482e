"""Minimise a perturbed objective: Newton steps, with the data or a fast sketch as preconditioner.

Nothing here is private or has to be: only the minimiser leaves the mechanism that asked for it,
with noise that covers how far it is from the exact one.  So passes, steps and preconditioners may
depend on the data as they like.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk, ssyrk

from fastmix._types import FloatArray
from fastmix.data import Rows, TransformedRows
from fastmix.kernels.mapped import FEW_COLUMNS
from fastmix.releases.descent import descend
from fastmix.releases.distance import Objective, rounding_distance
from fastmix.sketches import SparseSketch

#: Steps after which a solver gives up; a dozen are many.
_MOST_STEPS, _MOST_PRODUCTS = 200, 300
#: Reduction of the residual by the conjugate gradients of the first Newton step, and the power of
#: what a step gained that the next one aims at.
_FORCING, _POWER = 1e-2, 2
#: A Newton step counts if it leaves this much of the gradient at most.
_GAIN = 0.5
#: Steps of a quasi-Newton method without much gain, after which Newton steps take over, and the
#: share of the gradient that is much.
_PATIENCE, _MUCH = 8, 0.5
#: Steps of a quasi-Newton method after which it starts again from the curvature of a sigmoid if
#: they left more than this share of the gradient. It is that of a sample: so many rows per column,
#: or more where it costs no more than a pass, which takes the time of so many columns of it.
_EVERY, _FAST, _SAMPLE, _COLUMNS = 4, 1e-4, 200, 16
#: Shares of a Newton step that are tried one after the other.
_SHARES = tuple(2.0**-k for k in range(1, 12))
#: Share of residuals outside the zone up to which steps ignore that their curvature is less.
_FEW_OUTSIDE = 0.01
#: The distance that conjugate gradients aim at, in units of the one that must be reached.
_GOAL = 0.3
#: Error of a Gram matrix in single precision, relative to its trace, with room to spare.
_SINGLE = 2.0**-20
#: Rows that are rounded to single precision at a time.
_STEP = 2048


@dataclass(frozen=True)
class _Point:
    """Coefficients with the gradient there, and how far they are from the minimiser at most.

    That is the sum of what the computed gradient says and of what rounding can add.
    """

    theta: FloatArray
    gradient: FloatArray
    computed: float
    rounding: float
    excess: FloatArray
    outside: int


def preconditioner(n: int, d: int) -> SparseSketch:
    """Return the sketch for a preconditioner: four entries per column, and 8 d rows or more.

    With 16 d the solver needs a fifth less passes, which pays where there are many rows. Columns
    have norm 1, so that a direction which only one row has is seen in full (docs/sketches.md).
    """
    enough = min(max(8 * d, min(16 * d, n // 8)), n)
    return SparseSketch(max(4 * -(-enough // 4), SparseSketch.least_size(n, 4)), n, entries=4)


def minimise(
    rows: Rows | TransformedRows,
    objective: Objective,
    *,
    tolerance: float,
    sketch: bool,
    public: np.random.Generator | None = None,
) -> FloatArray:
    r"""Return coefficients within ``tolerance`` of the minimiser, rounding included.

    The coefficients are not private. Their distance to the minimiser is at most
    :math:`\|\nabla F\| / \lambda`, and what rounding adds. With ``sketch``, the preconditioner
    comes from a fast sketch, which ``public`` draws, otherwise from the Gram matrix itself. If the
    steps do not arrive, or a factorisation fails, `descend` goes on from the best point.
    """
    best = objective.center
    try:
        solver = _Newton(rows, objective, sketch, public, _GOAL * tolerance)
        point = solver.start(tolerance)
        least = math.inf
        for _ in range(_MOST_STEPS):
            if point.computed + point.rounding <= tolerance:
                return point.theta
            if not math.isfinite(point.computed):
                break
            if point.computed < least:
                best, least = point.theta, point.computed
            point = solver.step(point)
    except (np.linalg.LinAlgError, ZeroDivisionError):
        pass
    return descend(rows, objective, tolerance, best)


def _triangle(Z: FloatArray, n: int, ridge: float) -> FloatArray:
    """Return the upper triangle of Z'Z for a sketch Z of n rows, in single precision if that does.

    It does if its error is below the ridge; the error is added to the diagonal, so that the matrix
    stays positive.
    """
    if _SINGLE * n > ridge:
        return np.asarray(dsyrk(1.0, Z, trans=1))
    total = np.zeros((Z.shape[1], Z.shape[1]), dtype=np.float32, order="F")
    for start in range(0, len(Z), _STEP):
        block = np.asarray(Z[start : start + _STEP], dtype=np.float32, order="F")
        total = ssyrk(1.0, block, beta=1.0, c=total, trans=1, overwrite_c=1)
    total[np.diag_indices_from(total)] += _SINGLE * np.trace(total)
    return np.asarray(total)


class _Newton:
    """Newton's method with a preconditioner; every evaluation is one pass over the rows."""

    def __init__(
        self,
        rows: Rows | TransformedRows,
        objective: Objective,
        sketch: bool,
        public: np.random.Generator | None,
        goal: float,
    ) -> None:
        self._rows, self._objective = rows, objective
        self._enough, self._forcing = goal * objective.ridge, _FORCING
        self._failures, self._careful = 0, 0  # of Newton steps; steps to go before the next one
        self._gram: FloatArray | None = None
        if sketch:
            draw = preconditioner(rows.n, rows.d).sample(public)
            triangle = _triangle(rows.apply(draw), rows.n, objective.ridge)
            self._factor = self._factored(objective.loss.bend * triangle)
            self._first = objective.center
        else:
            gram, moment = rows.moments()
            self._gram = objective.loss.bend * gram
            self._factor = self._factored(self._gram)
            self._first = objective.center
            if objective.loss.squares:
                known = moment + objective.ridge * objective.center - objective.b
                self._first = np.asarray(cho_solve(self._factor, known))
        # A sigmoid bends everywhere, so that all rows would enter the matrix of each step.
        self._excess = not sketch and rows.d <= FEW_COLUMNS and objective.loss.squares

    def start(self, tolerance: float) -> _Point:
        """Return the minimiser of squares if there are any and a Gram matrix, else the centre.

        With many columns, or a sigmoid, quasi-Newton steps follow, as long as they gain.
        """
        point = self._at(self._first)
        return point if self._excess else self._quasi_newton(point, tolerance)

    def _quasi_newton(self, point: _Point, tolerance: float) -> _Point:
        """Return the best point of BFGS steps from the preconditioner; one pass per step.

        All pairs of steps and changes of the gradient are kept. They are those of a strongly convex
        function, so every direction leads down, but a step may be too long. A sigmoid bends less
        than its preconditioner away from 0; its curvature at the point makes a better one.
        """
        best, pairs, waited = point, list[tuple[FloatArray, FloatArray, float]](), 0
        objective, usual, before = self._objective, self._factor, 0.0
        bends = self._gram is not None and not objective.loss.squares
        every = max(1, min(self._rows.n // (_SAMPLE * self._rows.d), self._rows.d // _COLUMNS))
        for step in range(_MOST_STEPS):
            if waited == _PATIENCE or best.computed + best.rounding <= tolerance:
                break
            if bends and step % _EVERY == 0 and best.computed > _FAST * before:
                point, pairs, before = best, [], best.computed
                curvature = self._rows.sampled_curvature(point.theta, objective.loss, every)
                self._factor = self._factored(curvature)
            direction, shares = -point.gradient, []
            for s, y, product in reversed(pairs):
                shares.append(float(s @ direction) / product)
                direction = direction - shares[-1] * y
            direction = np.asarray(cho_solve(self._factor, direction))
            for s, y, product in pairs:
                direction = direction + (shares.pop() - float(y @ direction) / product) * s
            after = self._at(point.theta + direction)
            if not pairs and after.computed > before > 0.0:  # far from where the curvature helps
                self._factor, bends, before = usual, False, 0.0
                continue
            change = after.gradient - point.gradient
            product = float(direction @ change)
            if not product > 0.0:
                break
            pairs.append((direction, change, product))
            point, waited = after, waited + 1
            if point.computed <= _MUCH * best.computed:
                waited = 0
            best = min(best, point, key=lambda each: each.computed)
        self._factor = usual
        return best

    def step(self, point: _Point) -> _Point:
        """Return the next point: after a Newton step, or one to the minimum of a parabola.

        Far out the loss has hardly any curvature, and a Newton step is much too long in some
        directions. If it does not gain enough, parabolas replace the losses. They touch the losses
        and are nowhere below them, so no step to their minimum, or towards it, leads up. Such
        steps come near the minimum from anywhere, and Newton steps then end quickly.
        """
        if not self._careful:
            direction = self._direction(point)
            trial = self._at(point.theta + direction)
            gained = trial.computed / point.computed
            if gained <= _GAIN:
                # A step that gained much was nearly exact, and the next is worth more products.
                self._forcing = min(_FORCING, gained**_POWER)
                return trial
            if not self._objective.loss.squares:
                # A sigmoid has curvature everywhere: a shorter step gains for certain.
                for share in _SHARES:
                    trial = self._at(point.theta + share * direction)
                    if trial.computed <= (1.0 - share / 4.0) * point.computed:
                        return trial
            self._failures += 1
            self._careful, self._forcing = 2**self._failures, _FORCING
        self._careful -= 1
        return self._at(point.theta + self._conjugate_gradients(point, secant=True))

    def _at(self, theta: FloatArray) -> _Point:
        objective = self._objective
        total, excess, outside = self._rows.slopes(theta, objective.loss, excess=self._excess)
        own = objective.ridge * (theta - objective.center) + objective.b
        gradient = (own - total[0]) - total[1]
        computed = float(np.linalg.norm(gradient)) / objective.ridge
        length = float(np.linalg.norm(theta))
        rounding = rounding_distance(objective, self._rows.most, length)
        return _Point(theta, gradient, computed, rounding, excess, outside)

    def _direction(self, point: _Point) -> FloatArray:
        """Return the Newton direction, exact or by conjugate gradients."""
        if self._gram is not None:
            if point.outside and self._excess:
                factor = self._factored(self._gram - point.excess)
                return np.asarray(cho_solve(factor, -point.gradient))
            # The Gram matrix of all rows is nearly the Hessian if few residuals are outside.
            if point.outside <= _FEW_OUTSIDE * self._rows.n and not self._failures:
                return np.asarray(cho_solve(self._factor, -point.gradient))
        return self._conjugate_gradients(point, secant=False)

    def _factored(self, gram: FloatArray) -> tuple[FloatArray, bool]:
        matrix = np.array(gram, dtype=np.float64, order="F")
        matrix[np.diag_indices_from(matrix)] += self._objective.ridge
        factor: tuple[FloatArray, bool] = cho_factor(matrix, overwrite_a=True, check_finite=False)
        return factor

    def _conjugate_gradients(self, point: _Point, *, secant: bool) -> FloatArray:
        """Solve for the step, preconditioned, one pass per iteration."""
        objective = self._objective
        curved = partial(self._rows.curved, point.theta, objective.loss, secant=secant)
        x, r = np.zeros_like(point.gradient), -point.gradient
        z = np.asarray(cho_solve(self._factor, r))
        p, left = z, float(r @ z)
        enough = self._forcing**2 * left
        for _ in range(_MOST_PRODUCTS):
            product = curved(p) + objective.ridge * p
            step = left / float(p @ product)
            x, r = x + step * p, r - step * product
            z = np.asarray(cho_solve(self._factor, r))
            before, left = left, float(r @ z)
            if left <= enough or float(np.linalg.norm(r)) <= self._enough:
                break
            p = z + (left / before) * p
        return x
