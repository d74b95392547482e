"""Logistic regression, of more than two classes by one class against the rest for each.

Linear discriminant analysis turns the first look at features and label into a first guess at the
log-odds; released counts of gradients give the clipping level.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_integer
from fastmix.data import Rows
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.class_scores import ClassScores
from fastmix.engine.classes import all_classes, plan_classes
from fastmix.engine.clipping import Levels
from fastmix.engine.expected_curvature import Squares, expected_logistic
from fastmix.engine.family import Family
from fastmix.engine.first_stage import Guess
from fastmix.engine.forecast import adaptive_forecast
from fastmix.engine.geometry import Curvature, Geometry
from fastmix.engine.inference import Intervals
from fastmix.engine.last_stage import Decided
from fastmix.engine.minimiser_inference import doubted, lowered
from fastmix.engine.plan import Draws, Forecast, Sizes, Solution, Target
from fastmix.engine.table_inference import Released
from fastmix.engine.table_spread import Spread
from fastmix.kernels.losses import Loss
from fastmix.kernels.sigmoids import Logistic, UpperLogistic
from fastmix.releases.distance import Objective
from fastmix.releases.minimise import minimise
from fastmix.schema.categories import Categories

#: Share of the budget (of mu^2) for counts of gradients.
COUNTS_SHARE = 0.03
#: Ridge: in units of noise times the spread of slopes; the variance of log-odds that is taken to be
#: left to explain, in units of one over the mean curvature; and in units of the eigenvalues.
RIDGE, LEFT, LEAST_RIDGE = 5.0, 0.2, 0.0005
#: First guess at the clipping level of a gradient in units of sqrt(d) slopes.
CLIP = 2.0
#: How far a feature is taken to move log-odds where the data do not tell, across half its bounds.
FARTHEST = 10.0
#: Log-odds of first coefficients: a probability is not taken to be nearer to 0 or 1 than this, and
#: the variance of a label around its prediction not to be smaller.
LEAST_PROBABILITY, LEAST_VARIANCE = 0.01, 0.05
#: The least mean curvature of a row that coefficients of a table lead to expect.
LEAST_BENT = 1e-9
#: Forecasts: the spread of slopes, the variance of log-odds in units of the signal of a `Case`, the
#: share of it that a discriminant misses, the power of the ratio of eigenvalues by which counts
#: raise the level, for rows that are long in the coordinates of the first stage, and the noise that
#: they raise it to at most.
SLOPES, LOG_ODDS, MISSED, RAISED, CHEAP = 0.4, 100.0, 0.05, 0.125, 0.003
#: Ridge without privacy, in units of the number of rows.
NO_RIDGE = 1e-9


@dataclass(frozen=True, kw_only=True)
class LogisticObjective(Family):
    """Objective perturbation with the logistic loss (docs/proofs/objective.md, Section 8)."""

    n_classes: int = 2

    name: ClassVar[str] = "logistic"
    estimator: ClassVar[str] = "PrivateLogisticRegression"
    family: ClassVar[str] = "logistic"
    labels: ClassVar[bool] = True
    one_sided: ClassVar[bool] = True
    aligned: ClassVar[float] = 0.1
    table_counts: ClassVar[int] = 2
    #: By the information equality, slopes of a true model have its curvature as variance.
    least_variance: ClassVar[float] = 1.0
    #: Less than for squares: rows far out have little curvature, and eigenvalues differ more.
    noisy: ClassVar[float] = 0.08

    def check(self) -> None:
        """Check the parameters."""
        check_integer("n_classes", self.n_classes, at_least=2, at_most=1000)
        super().check()

    def plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit: for more than two classes the releases of one, for each of them."""
        return plan_classes(super().plan, sizes, target, self.scoring())

    def inferring_plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit with what intervals need, for each class where there are more than two."""
        return plan_classes(super().inferring_plan, sizes, target, self.scoring())

    def solve(self, rows: Any, plan: AdaptivePlan, clip: float, draws: Draws) -> Solution:
        """Release the coefficients, for more than two classes those of each against the rest."""
        if self.n_classes == 2:
            return super().solve(rows, plan, clip, draws)
        found = [
            super(LogisticObjective, self).solve(each, plan, clip, draws) for each in rows.targets
        ]
        return all_classes(found)

    def exact(self, rows: Any, clip: float) -> FloatArray:
        """Return the coefficients without privacy, with hardly any ridge."""
        if self.n_classes > 2:
            return np.concatenate([_not_private(each) for each in rows.targets])
        return _not_private(rows)

    def shares(self, sizes: Sizes, mu: float, rounds: int, *, inferring: bool) -> dict[str, float]:
        """Return the share of counts of gradients, after rounds."""
        return {"count": COUNTS_SHARE} if rounds else {}

    def guess(self, guess: Guess, rows: Rows, rounds: int) -> Guess:
        """Return first log-odds, by discriminant analysis where features were looked at."""
        return log_odds(guess, rows, discriminant=rounds > 0)

    def first_levels(self, plan: AdaptivePlan, guess: Guess, clip: float, n: int, d: int) -> Levels:
        """Clip gradients at a multiple of the length that the spread of slopes suggests."""
        level = CLIP * math.sqrt(d) * guess.spread
        return self.raised(plan, guess, Levels(level, 0.0, math.inf), level, n, d)

    def raised(
        self, plan: AdaptivePlan, guess: Guess, levels: Levels, level: float, n: int, d: int
    ) -> Levels:
        """Return the levels for a clipping level."""
        ridge = _ridge(plan, level, guess.spread, n, d)
        return levels._replace(clip=level, ridge=ridge)

    @property
    def counted(self) -> Logistic:
        """The logistic loss without a limit."""
        return Logistic(1.0, 1.0, 1.0)

    def loss(self, plan: AdaptivePlan, levels: Levels) -> Loss:
        """Return the logistic loss whose gradients are limited at the level."""
        return Logistic(levels.clip, levels.ridge, plan.eps_c)

    def curvature(self, guess: Guess) -> float:
        """Return the mean square of the slopes, which is the mean curvature of a true model."""
        return guess.spread**2

    def refined(self, guess: Guess, coordinates: Geometry) -> Guess:
        """Return a guess with the mean curvature of the first fit of a table."""
        bent = float(expected_logistic(coordinates, guess.center)[-1, -1])
        return guess._replace(spread=math.sqrt(max(bent, LEAST_VARIANCE / 4.0)))

    @property
    def bend(self) -> float:
        """The largest curvature of a row."""
        return Logistic.bend

    def curvature_loss(self, plan: AdaptivePlan, levels: Levels) -> Loss:
        """Return the logistic loss with its largest curvature."""
        return UpperLogistic(levels.clip, levels.ridge, plan.eps_c)

    def expected(
        self,
        guess: Guess,
        coordinates: Geometry,
        theta: FloatArray,
        loss: Loss,
        moments: FloatArray | None,
    ) -> FloatArray:
        """Return the mean curvature of a row of a table that coefficients lead to expect."""
        assert isinstance(loss, Logistic)
        return _not_negative(expected_logistic(coordinates, theta, loss, moments), coordinates)

    def table_curvature(
        self, moments: Curvature, flat: Geometry, expected: FloatArray, share: float
    ) -> Curvature:
        r"""Return the curvature of a table for its second moments M, times a quarter.

        Coefficients and shares of levels tell the curvature J that independent blocks with the
        moments I would have. What is released tells how the blocks depend on each other, and
        :math:`J = T M T^\top` with the T that makes J of I.
        """
        T = _root(expected) @ _root(self.bend * flat.expected, inverse=True)
        values, vectors = np.linalg.eigh(T @ moments.of(moments.values) @ T.T)
        least = 1e-9 * float(np.sum(moments.values))
        # Entries of the same size as in M, because T is about diagonal.
        squares = np.outer(np.diag(T) ** 2, np.diag(T) ** 2)
        errors = moments.error * squares, moments.hidden * squares
        return Curvature(np.maximum(values, least), vectors, *errors)

    def lowered(
        self,
        J: Curvature,
        moments: Curvature,
        coordinates: Geometry,
        released: Released,
        loss: Loss,
        spread: Spread,
    ) -> Curvature:
        r"""Return the curvature of a table, no larger than squares of gradients let it be.

        Slopes of a true model have its curvature as variance, so squares that are smaller than the
        same coefficients, moments and limits lead to expect show that J is too large.
        """
        assert isinstance(loss, Logistic)
        mean, squares = (
            moments.of(moments.values) / (self.bend * released.n),
            Squares(loss.lipschitz),
        )
        expected = expected_logistic(coordinates, released.theta, squares, mean)
        expected = _not_negative(expected, coordinates)
        model = self.table_curvature(moments, coordinates, expected, 1.0)
        return lowered(J, model, spread.squares, spread.error, released.metric)

    def doubted(
        self,
        intervals: Intervals,
        released: Released,
        coordinates: Geometry,
        J: Curvature,
        categories: Categories,
    ) -> Intervals:
        """Return intervals without those of levels whose log-odds may be infinite."""
        return doubted(intervals, released, coordinates, J, categories)

    def size(self, d: int) -> float:
        """Return how long log-odds may be where the data do not tell."""
        return FARTHEST * math.sqrt(d)

    def finished(self, fit: Decided, theta: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Shrink the minimiser after rounds; without them the ridge alone shrinks enough."""
        if not fit.plan.n_rounds:
            return theta, {"kept": 1.0}
        return super().finished(fit, theta)

    def chosen(self, guess: Guess, levels: Levels) -> dict[str, float]:
        """Return the settings that were chosen from released values, by name."""
        return {
            "slope_spread": guess.spread,
            "gradient_clip": levels.clip,
            "ridge": levels.ridge,
        }

    def scoring(self) -> ClassScores:
        """Return which scores its models have, and how they are released."""
        return ClassScores(self.n_classes)

    def forecast(
        self,
        plan: AdaptivePlan,
        n: int,
        eigenvalues: FloatArray,
        theta_squared: FloatArray,
    ) -> Forecast:
        """Return the expected excess log-loss; of several classes half the sum over them."""
        d, most = len(eigenvalues), math.log(self.n_classes)

        def at(raised: float) -> Forecast:
            level = raised * CLIP * math.sqrt(d) * SLOPES
            return adaptive_forecast(
                plan,
                n,
                eigenvalues,
                LOG_ODDS * theta_squared,
                level=level,
                ridge=_ridge(plan, level, SLOPES, n, d),
                curvature=SLOPES**2,
                missed=MISSED,
                unit=SLOPES**2 / 2.0 * self.n_classes / 2.0,
            )

        found = at(1.0)
        if plan.count_sigma is not None:
            ratio = float(eigenvalues[-1] / max(eigenvalues[0], 1e-12 * n))
            cheap = math.sqrt(CHEAP / found.noise_risk)
            found = at(min(ratio**RAISED, max(1.0, cheap)))
        risks = min(found.noise_risk, most), min(found.bias_risk, most)
        return replace(found, noise_risk=risks[0], bias_risk=risks[1])

    @property
    def risk_of_nothing(self) -> float:
        """Excess log-loss without features, in units of the signal of a `Case`."""
        return LOG_ODDS * SLOPES**2 / 2.0 * self.n_classes / 2.0


def log_odds(guess: Guess, rows: Rows, *, discriminant: bool) -> Guess:
    r"""Turn a first stage about a label into one about its log-odds.

    With the least-squares coefficients c of labels +-1 and the variance v of their residuals,
    linear discriminant analysis has the coefficients :math:`2c/v`; its intercept follows from the
    mean of the labels. ``spread`` becomes that of the slopes, :math:`\sqrt v/2`.
    """
    mean = float(np.clip(guess.baseline[-1] * rows.constant, -1.0, 1.0))
    limit = 1.0 - 2.0 * LEAST_PROBABILITY
    mean = min(max(mean, -limit), limit)
    baseline, center = np.zeros(rows.d), np.zeros(rows.d)
    if rows.constant:
        baseline[-1] = 2.0 * math.atanh(mean) / rows.constant
    if not discriminant:
        spread = math.sqrt(1.0 - mean**2) / 2.0 if rows.constant else 0.5
        return guess._replace(center=baseline, baseline=baseline, spread=spread)
    whole = 1.0 - mean**2
    left = min(max(guess.spread**2, LEAST_VARIANCE * whole), whole)
    center = 2.0 / left * guess.center
    if rows.constant:
        distance = 4.0 * (1.0 / left - 1.0 / whole)  # squared, between the classes
        moved = 2.0 / left * (mean - rows.constant * guess.center[-1])
        center[-1] = (2.0 * math.atanh(mean) - moved + 0.5 * mean * distance) / rows.constant
    return guess._replace(center=center, baseline=baseline, spread=math.sqrt(left) / 2.0)


def _ridge(plan: AdaptivePlan, level: float, spread: float, n: int, d: int) -> float:
    r"""Return the ridge for coordinates in which every eigenvalue is about :math:`n s_0^2`.

    :math:`s_0` is the spread of slopes, whose square is about the mean curvature.
    """
    noise = level / plan.mu
    needed = LEAST_RIDGE * n * spread**2 if plan.n_rounds else 0.0
    return max(RIDGE * noise * spread, noise**2 * d / (n * LEFT), needed)


def _not_private(rows: Rows) -> FloatArray:
    """Return the minimiser of the logistic loss itself."""
    ridge = NO_RIDGE * rows.n
    loss = Logistic(1.0, ridge, 1e12 / ridge)
    objective = Objective(loss, ridge, np.zeros(rows.d), np.zeros(rows.d))
    return minimise(rows, objective, tolerance=1e-3, sketch=False)


def _not_negative(bent: FloatArray, coordinates: Geometry) -> FloatArray:
    """Return a mean curvature of a row without negative eigenvalues.

    No curvature is negative, but parts of it that are estimated one by one may add up to it.
    """
    values, vectors = np.linalg.eigh(bent)
    bent = (vectors * np.maximum(values, 0.0)) @ vectors.T
    least = LEAST_BENT * coordinates.expected
    # Log-odds far out leave no curvature at all, which nothing can be divided by.
    return bent if np.trace(bent) > np.trace(least) else least


def _root(matrix: FloatArray, *, inverse: bool = False) -> FloatArray:
    """Return the symmetric root of a matrix, or its inverse; eigenvalues are made positive."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 1e-6 * values[-1])
    return np.asarray((vectors * values ** (-0.5 if inverse else 0.5)) @ vectors.T)
