"""Adaptive objective perturbation for logistic regression, one class against the rest.

The first stage is that of `AdaptiveObjective`: second moments of features and label, released in
rounds.  They make the coordinates, and first coefficients by linear discriminant analysis; counts
of gradients give the clipping level.  Then the minimiser of the perturbed logistic loss is
released.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_integer, value_error
from fastmix.accounting import Part, PrivacySpent
from fastmix.data import Rows
from fastmix.engine import adaptive_inference as inference
from fastmix.engine.adaptive import AdaptiveObjective
from fastmix.engine.adaptive_noise import AdaptivePlan
from fastmix.engine.class_scores import ClassScores
from fastmix.engine.clipping import EDGES, SHORTEST, Levels, best_clip
from fastmix.engine.first_stage import Guess, first_stage
from fastmix.engine.forecast import adaptive_forecast
from fastmix.engine.inference import Intervals
from fastmix.engine.last_stage import shrunk
from fastmix.engine.plan import Draws, Forecast, Sizes, Solution, Target, joint
from fastmix.kernels.losses import Loss
from fastmix.kernels.sigmoids import Logistic
from fastmix.releases import GRADIENT_COUNTS
from fastmix.releases.minimise import Objective, minimise

#: Ridge: in units of noise times the spread of slopes; the variance of log-odds that is taken to be
#: left to explain, in units of one over the mean curvature; and in units of the eigenvalues.
RIDGE, LEFT, LEAST_RIDGE = 5.0, 0.2, 0.0005
#: First guess at the clipping level of a gradient in units of sqrt(d) slopes, and its least.
CLIP, LEAST_CLIP = 2.0, 0.5
#: Ridge of a fit with intervals: in units of the eigenvalues, and of what lets rows of length
#: sqrt(d) have the curvature of the logistic loss.
INFERRING, BENDS = 0.005, 3.0
#: The least clipping level of gradients for intervals, in units of sqrt(d): slopes are at most 1.
LONG = 1.2
#: How far a feature is taken to move log-odds where the data do not tell, across half its bounds.
FARTHEST = 10.0
#: Share of what is clipped that is taken to point the same way.
ALIGNED = 0.1
#: Log-odds of first coefficients: a probability is not taken to be nearer to 0 or 1 than this, and
#: the variance of a label around its prediction not to be smaller.
LEAST_PROBABILITY, LEAST_VARIANCE = 0.01, 0.05
#: Forecasts: the spread of slopes, the variance of log-odds in units of the signal of a `Case`, the
#: share of it that a discriminant misses, the power of the ratio of eigenvalues by which counts
#: raise the level, for rows that are long in the coordinates of the first stage, and the noise that
#: they raise it to at most.
SLOPES, LOG_ODDS, MISSED, RAISED, CHEAP = 0.4, 100.0, 0.05, 0.125, 0.003
#: Ridge without privacy, in units of the number of rows.
NO_RIDGE = 1e-9


@dataclass(frozen=True, kw_only=True)
class LogisticObjective(AdaptiveObjective):
    """Objective perturbation with the logistic loss (docs/proofs/objective.md, Section 8)."""

    n_classes: int = 2

    name: ClassVar[str] = "logistic"
    tables: ClassVar[bool] = False
    estimator: ClassVar[str] = "PrivateLogisticRegression"
    family: ClassVar[str] = "logistic"
    one_sided: ClassVar[bool] = True
    persons: ClassVar[bool] = True
    lines: ClassVar[bool] = False
    #: Less than for squares: rows far out have little curvature, and eigenvalues differ more.
    noisy: ClassVar[float] = 0.08

    def check(self) -> None:
        """Check the parameters."""
        check_integer("n_classes", self.n_classes, at_least=2, at_most=1000)
        super().check()

    def plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit: for more than two classes the releases of one, for each of them."""
        if self.n_classes == 2:
            return super().plan(sizes, target)
        if target.reserved:
            raise value_error("score_share", "be 0 for more than two classes", target.reserved)
        if sizes.weighted:
            raise ValueError("sample_weight must not be given with more than two classes.")
        if sizes.hidden:
            raise value_error("public_rows", "be True for more than two classes", False)
        epsilon, delta = target.epsilon, target.delta
        share = delta / self.n_classes * (1.0 - 1e-9)

        def planned(part: float) -> AdaptivePlan:
            one = super(LogisticObjective, self).plan(sizes, Target(part * epsilon, share))
            events = list(one.spent.events) * self.n_classes
            return replace(one, spent=joint(events, delta))

        low, high = (1.0 - 1e-9) / self.n_classes, 1.0
        one = super().plan(sizes, Target(low * epsilon, share))
        parts = [Part(f"class {k + 1}", one.spent.events, share) for k in range(self.n_classes)]
        best = replace(one, spent=PrivacySpent(parts))
        for _ in range(12):
            middle = math.sqrt(low * high)
            tried = planned(middle)
            if tried.spent.epsilon <= epsilon:
                low, best = middle, tried
            else:
                high = middle
        return best

    def inferring_plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit with what intervals need."""
        if self.n_classes > 2:
            raise value_error("inference", "be False for more than two classes", True)
        return super().inferring_plan(sizes, target)

    def coordinates(self, sizes: Sizes) -> int:
        """Return how many coordinates of noise a fit draws at most."""
        return self.n_classes * super().coordinates(sizes)

    def _solve(self, rows: Any, plan: AdaptivePlan, clip: float, draws: Draws) -> Solution:
        """Release the coefficients, for more than two classes those of each against the rest."""
        if self.n_classes == 2:
            theta, choice, intervals = self._one(rows, plan, draws)
            noise = choice["gradient_clip"] / plan.mu
            return Solution(theta, gradient_noise=noise, chosen=choice, intervals=intervals)
        found = [self._one(each, plan, draws) for each in rows.targets]
        chosen: dict[str, Any] = {name: [each[1][name] for each in found] for name in found[0][1]}
        return Solution(np.concatenate([each[0] for each in found]), chosen=chosen)

    def exact(self, rows: Any, clip: float) -> FloatArray:
        """Return the coefficients without privacy, with hardly any ridge."""
        if self.n_classes > 2:
            return np.concatenate([_not_private(each) for each in rows.targets])
        return _not_private(rows)

    def _one(
        self, rows: Rows, plan: AdaptivePlan, draws: Draws
    ) -> tuple[FloatArray, dict[str, float], Intervals | None]:
        """Release what the first stage needs, decide, and release the minimiser."""
        steps, root = plan.n_rounds + 2, math.sqrt(rows.d)
        guess = first_stage(rows, plan.n_rounds, plan.moment_sigma, plan.mean_sigma, draws)
        guess = log_odds(guess, rows, discriminant=plan.n_rounds > 0)
        level = CLIP * root * guess.spread
        if plan.count_sigma is not None:
            draws.progress(steps - 1, steps)
            edges = EDGES * (root * guess.spread)
            counts = draws.noise.release(
                GRADIENT_COUNTS,
                rows,
                theta=guess.center,
                transform=guess.transform,
                least=SHORTEST * root,
                longest=1e100,
                edges=edges,
                sigma=plan.count_sigma,
                loss=Logistic(1.0, 1.0, 1.0),
            )
            sizes = rows.n, rows.d, plan.mu
            best = best_clip(counts, edges[1:], plan.count_sigma, *sizes, ALIGNED)
            level = max(LEAST_CLIP * level, level if best is None else best)
        if plan.square_sigma is not None:
            given = guess.spread, plan.mu, plan.square_sigma, rows.n, rows.d
            level = max(level, inference.least_clip(*given), LONG * root)
        levels = Levels(level, _ridge(plan, level, guess.spread, rows.n, rows.d), math.inf)
        draws.progress(steps, steps)
        theta = self._minimiser(rows, plan, draws, guess, levels)
        noise, curvature, kept, intervals = level / plan.mu, guess.spread**2, 1.0, None
        if plan.curvature_sigma is not None:
            theta, intervals = self._inferred(rows, plan, draws, guess, theta, levels, curvature)
        elif plan.n_rounds:  # without rounds the ridge alone shrinks enough
            theta, kept = shrunk(theta, guess, noise, levels.ridge, rows.n, curvature)
        choice = {
            "rounds": plan.n_rounds,
            "slope_spread": guess.spread,
            "gradient_clip": level,
            "ridge": levels.ridge,
            "kept": kept,
        }
        return theta, choice, intervals

    def _loss(self, plan: AdaptivePlan, level: float, ridge: float, longest: float) -> Loss:
        return Logistic(level, ridge, plan.eps_c)

    def _size(self, d: int) -> float:
        return FARTHEST * math.sqrt(d)

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
            if plan.square_sigma is not None:
                known = inference.least_clip(SLOPES, plan.mu, plan.square_sigma, n, d)
                level = max(level, known, LONG * math.sqrt(d))
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
    if plan.curvature_sigma is not None:
        needed = max(INFERRING * n * spread**2, BENDS * 0.25 * d / plan.eps_c)
    return max(RIDGE * noise * spread, noise**2 * d / (n * LEFT), needed)


def _not_private(rows: Rows) -> FloatArray:
    """Return the minimiser of the logistic loss itself."""
    ridge = NO_RIDGE * rows.n
    loss = Logistic(1.0, ridge, 1e12 / ridge)
    objective = Objective(loss, ridge, np.zeros(rows.d), np.zeros(rows.d))
    return minimise(rows, objective, tolerance=1e-3, sketch=False)
