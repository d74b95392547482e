"""Quantile regression: the quantile loss, smoothed, and an intercept that released counts move."""

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from fastmix._types import FloatArray
from fastmix._validation import check_probability, check_real, value_error
from fastmix.data import Rows
from fastmix.engine import adaptive
from fastmix.engine import quantile_inference as inference
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.clipping import SHORTEST, Levels
from fastmix.engine.families.bounded import LIMITED, TYPICAL, minimum, ridge_of
from fastmix.engine.family import Family
from fastmix.engine.first_stage import SPREAD, Guess
from fastmix.engine.forecast import adaptive_forecast
from fastmix.engine.inference import Intervals
from fastmix.engine.last_stage import SHIFT_SHARE, SIZES, Decided, at_quantile, shift_pays
from fastmix.engine.plan import Draws, Forecast, Sizes, Solution, Target
from fastmix.engine.scores import QuantileScores
from fastmix.engine.several import several_plan
from fastmix.kernels.losses import Loss
from fastmix.kernels.sigmoids import SmoothedQuantile
from fastmix.releases import CURVATURES, SIGNED_COUNTS

#: Lengths of rows up to which the loss is not limited, in units of sqrt(d).
REACH = 1.5
#: Width of the smoothing in units of the residuals' spread, and the density of residuals at the
#: quantile in units of one over it.
WIDTH, DENSITY = 0.03, 0.35
#: With intervals: the ridge that makes the tails of the smoothing this long for rows of length
#: sqrt(d), in units of the spread, but at most this share of the eigenvalues; the share of the
#: budget (of mu^2) for the curvature; and the largest curvature of a row in units of one over the
#: width, so that rows up to REACH sqrt(d) have all of theirs. Chosen on protein and California.
SHARP, INFERRING, CURVATURE_SHARE, STEEPEST = 0.05, 0.1, 0.17, 0.25
#: Without privacy: the ridge in units of the number of rows, and the smoothing.
NO_RIDGE, NO_WIDTH = 1e-5, 3e-3

#: The largest number of quantiles in one fit.
MOST_QUANTILES = 20


@dataclass(frozen=True, kw_only=True)
class QuantileObjective(Family):
    """Quantile regression by objective perturbation (docs/proofs/objective.md, Section 8).

    ``smoothing`` is the width of the smoothing in the units of the target. Several quantiles are
    fitted one by one, after one first look.
    """

    quantile: float | tuple[float, ...] = 0.5
    smoothing: float | None = None

    name: ClassVar[str] = "quantile"
    estimator: ClassVar[str] = "PrivateQuantileRegressor"
    family: ClassVar[str] = "quantile"
    counts: ClassVar[bool] = False
    tables: ClassVar[bool] = False
    curvature_rounds: ClassVar[int] = 1
    least_rounds: ClassVar[int] = 4

    @property
    def residual_clip(self) -> float | None:
        """The smoothing, which is in the units of residuals."""
        return self.smoothing

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.quantile, list | tuple | np.ndarray):
            object.__setattr__(self, "quantile", tuple(np.asarray(self.quantile).tolist()))

    def check(self) -> None:
        """Check the parameters."""
        for each in self.quantiles:
            check_probability("quantile", each)
        if isinstance(self.quantile, tuple):
            rising = all(low < high for low, high in pairwise(self.quantile))
            if not (rising and 2 <= len(self.quantile) <= MOST_QUANTILES):
                condition = f"be a number, or a list of 2 to {MOST_QUANTILES} rising numbers"
                raise value_error("quantile", condition, list(self.quantile))
        if self.smoothing is not None:
            check_real("smoothing", self.smoothing, above=0.0)
        super().check()

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles, one or several."""
        return self.quantile if isinstance(self.quantile, tuple) else (self.quantile,)

    @property
    def outputs(self) -> int:
        """How many quantiles there are."""
        return len(self.quantiles)

    @property
    def singles(self) -> tuple["QuantileObjective", ...]:
        """The families of each quantile alone."""
        return tuple(replace(self, quantile=each) for each in self.quantiles)

    def plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit; several quantiles share the first look and one account."""
        return self._planned(sizes, target, inferring=False)

    def inferring_plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit that also releases what intervals need."""
        return self._planned(sizes, target, inferring=True)

    def _planned(self, sizes: Sizes, target: Target, *, inferring: bool) -> AdaptivePlan:
        planned = partial(adaptive.plan_adaptive, self.singles[0], sizes, inferring=inferring)
        if self.outputs == 1:
            return planned(target)
        if target.reserved:
            raise value_error("score_share", "be 0 for several quantiles", target.reserved)
        return several_plan(planned, self.outputs, target)

    def solve(self, rows: Any, plan: AdaptivePlan, clip: float, draws: Draws) -> Solution:
        """Draw the planned releases, and return the coefficients, quantile after quantile."""
        if self.outputs == 1:
            return super().solve(rows, plan, clip, draws)
        guess = adaptive.look(rows, plan, draws)
        parts = tuple(
            adaptive.after_look(each, rows, plan, clip, draws, guess) for each in self.singles
        )
        settings = [each.chosen or {} for each in parts]
        chosen: dict[str, Any] = {name: [each[name] for each in settings] for name in settings[0]}
        theta, noise = np.concatenate([each.theta for each in parts]), parts[0].gradient_noise
        return Solution(theta, gradient_noise=noise, chosen=chosen, parts=parts)

    def shares(self, sizes: Sizes, mu: float, rounds: int, *, inferring: bool) -> dict[str, float]:
        """Return the share of counts of residuals, which move the intercept."""
        if inferring:
            return {"count": SHIFT_SHARE, "curvature": CURVATURE_SHARE}
        pays = sizes.intercept and shift_pays(sizes.n, 1.0 / (math.sqrt(SHIFT_SHARE) * mu))
        return {"count": SHIFT_SHARE if pays else 0.0}

    def guess(self, guess: Guess, rows: Rows, rounds: int) -> Guess:
        """Move the intercept from the mean to the quantile of a normal law."""
        if not rows.constant:
            return guess
        moved = np.zeros(rows.d)
        moved[-1] = guess.spread * float(ndtri(self.quantiles[0])) / rows.constant
        return guess._replace(center=guess.center + moved, baseline=guess.baseline + moved)

    def first_levels(self, plan: AdaptivePlan, guess: Guess, clip: float, n: int, d: int) -> Levels:
        """Take the slope of the loss as clipping level, and choose ridge and smoothing."""
        q = self.quantiles[0]
        level = REACH * math.sqrt(d) * max(q, 1.0 - q)
        ridge = ridge_of(plan, level, guess.spread, self.curvature(guess), n, d)
        room = q * (1.0 - q) * REACH**2 * d / plan.eps_c
        width = WIDTH * guess.spread if self.smoothing is None else clip
        if plan.curvature_sigma is not None:
            sharp = max(q, 1.0 - q) * REACH * d / (SHARP * guess.spread * plan.eps_c)
            ridge = max(ridge, min(sharp, INFERRING * n * self.curvature(guess)))
        return Levels(level, ridge, math.inf, max(width, room / ridge))

    def loss(self, plan: AdaptivePlan, levels: Levels) -> Loss:
        """Return the smoothed quantile loss."""
        given = levels.clip, levels.ridge, plan.eps_c, self.quantiles[0], levels.width
        return SmoothedQuantile(*given)

    def curvature(self, guess: Guess) -> float:
        """Return the density of normal residuals at the quantile, about."""
        return DENSITY / guess.spread

    def finished(self, fit: Decided, theta: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Shrink the minimiser, and move its intercept to the quantile of counted residuals."""
        theta, last = super().finished(fit, theta)
        shift = 0.0
        sigma = fit.plan.count_sigma
        if sigma is not None:
            given = self.quantiles[0], fit.guess.spread, sigma, fit.draws.noise
            theta, shift = at_quantile(fit.rows, theta, *given)
        return theta, {"shift": shift, **last}

    def inferred(
        self, fit: Decided, theta: FloatArray
    ) -> tuple[FloatArray, dict[str, float], Intervals]:
        """Release signed counts, curvature and squares of gradients, and read intervals off them.

        The kernel of the curvature is wider than the smoothing, because noise hides a narrow one.
        """
        rows, plan, guess, levels, draws = fit
        assert plan.curvature_sigma is not None
        assert plan.square_sigma is not None
        assert plan.count_sigma is not None
        edges, q = SIZES * guess.spread, self.quantiles[0]
        below, above = draws.noise.release(
            SIGNED_COUNTS, rows, theta=theta, edges=edges, sigma=plan.count_sigma
        )
        steepest = STEEPEST * (levels.clip / max(q, 1.0 - q)) ** 2
        kernel = inference.kernel_width(
            below + above, edges, plan.curvature_sigma * steepest, guess.spread
        )
        width = max(kernel, levels.width)
        square = steepest / width
        # A ridge that allows the curvature of every row, which noise of its own hides.
        loss = SmoothedQuantile(levels.clip, 1e3 * square, 1e3, q, width)
        released = draws.noise.release(
            CURVATURES,
            rows,
            theta=theta,
            loss=loss,
            transform=guess.transform,
            least=SHORTEST * math.sqrt(rows.d),
            square=square,
            weights=None,
            sigma=(plan.curvature_sigma, plan.square_sigma),
        )
        known = inference.Known(
            noise=fit.noise,
            ridge=levels.ridge,
            curvature_noise=plan.curvature_sigma * square,
            square_noise=plan.square_sigma * levels.clip**2,
            width=levels.width,
            kernel=width,
            constant=rows.constant,
        )
        found = inference.counted(below, above, edges, plan.count_sigma, known)
        theta, intervals = inference.inferred(theta, guess, released, found, known)
        return theta, {"kept": 1.0}, intervals

    def chosen(self, guess: Guess, levels: Levels) -> dict[str, float]:
        """Return the settings that were chosen from released values, by name."""
        return {
            "residual_spread": guess.spread,
            "smoothing": levels.width,
            "gradient_clip": levels.clip,
            "ridge": levels.ridge,
        }

    def exact(self, rows: Any, clip: float) -> FloatArray:
        """Return the coefficients without privacy, with little smoothing."""
        if self.outputs > 1:
            return np.concatenate([each.exact(rows, clip) for each in self.singles])
        width = NO_WIDTH if self.smoothing is None else clip
        ridge = NO_RIDGE * rows.n
        return minimum(rows, SmoothedQuantile(1.0, ridge, 1e12 / ridge, self.quantiles[0], width))

    def scoring(self) -> QuantileScores:
        """Return which scores its models have, and how they are released."""
        if self.outputs > 1:
            raise ValueError(
                "evaluate() supports one quantile: scores of several would share their budget. Fit "
                "the quantile that you want to evaluate alone."
            )
        return QuantileScores(self.quantiles[0])

    def forecast(
        self,
        plan: AdaptivePlan,
        n: int,
        eigenvalues: FloatArray,
        theta_squared: FloatArray,
    ) -> Forecast:
        """Return the expected excess pinball loss, of targets in [-1, 1]; the mean of several."""
        if self.outputs > 1:
            found = [each.forecast(plan, n, eigenvalues, theta_squared) for each in self.singles]
            risks = np.mean([(each.noise_risk, each.bias_risk) for each in found], axis=0)
            return replace(found[0], noise_risk=float(risks[0]), bias_risk=float(risks[1]))
        d, q = len(eigenvalues), self.quantiles[0]
        spread = TYPICAL if plan.n_rounds else SPREAD
        level = REACH * math.sqrt(d) * max(q, 1.0 - q)
        curvature = DENSITY / spread
        return adaptive_forecast(
            plan,
            n,
            eigenvalues,
            theta_squared,
            level=level,
            ridge=ridge_of(plan, level, spread, curvature, n, d),
            curvature=curvature,
            limited=LIMITED,
            unit=curvature / 2.0,
        )

    @property
    def risk_of_nothing(self) -> float:
        """Excess pinball loss without features, in units of the signal of a `Case`."""
        return DENSITY / TYPICAL / 2.0
