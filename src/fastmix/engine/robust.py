"""Adaptive objective perturbation for losses that bound the slope of a residual.

The first stage is that of `AdaptiveObjective`, without counts of gradients: how large a slope may
be is part of the loss. Counts of residuals around a quantile fit follow it, for the intercept.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from fastmix._types import FloatArray
from fastmix._validation import check_probability, check_real
from fastmix.data import Rows
from fastmix.engine import adaptive_inference as inference
from fastmix.engine.adaptive import AdaptiveObjective
from fastmix.engine.adaptive_noise import AdaptivePlan
from fastmix.engine.clipping import LEAST, LEAST_RIDGE, LEFT, LENGTHS, RIDGE, Levels
from fastmix.engine.first_stage import SPREAD, first_stage
from fastmix.engine.forecast import adaptive_forecast
from fastmix.engine.last_stage import SHIFT_SHARE, at_quantile, shift_pays, shrunk
from fastmix.engine.objective import least_ridge_for
from fastmix.engine.plan import Draws, Forecast, Sizes, Solution
from fastmix.engine.scores import QuantileScores
from fastmix.errors import SolverError
from fastmix.kernels.losses import CalibratedHuber, Loss
from fastmix.kernels.sigmoids import SmoothedQuantile
from fastmix.releases import symmetric_solve
from fastmix.releases.minimise import Objective, minimise

#: Where residuals are clipped by default, in units of their spread (Huber's constant), and the
#: share of normal ones that are not.
CLIP = 1.345
CURVED = math.erf(CLIP / math.sqrt(2.0))
#: Lengths of rows up to which a quantile loss is not limited, in units of sqrt(d).
REACH = 1.5
#: Width of the smoothing in units of the residuals' spread, and the density of residuals at the
#: quantile in units of one over it.
WIDTH, DENSITY = 0.03, 0.35
#: Forecasts: the residuals' spread where a first stage explains a part of the target, and the
#: share of the signal that is lost because gradients of long rows are limited.
TYPICAL, LIMITED = 0.76 * SPREAD, 3e-4
#: Ridge without privacy, in units of the number of rows; those of quantiles, smallest first, and
#: the width of the smoothing there.
NO_RIDGE, NO_RIDGES, NO_WIDTH = 1e-7, (1e-5, 1e-4, 1e-3), 3e-3


@dataclass(frozen=True, kw_only=True)
class HuberObjective(AdaptiveObjective):
    """Objective perturbation with residuals clipped at a scale (docs/proofs/objective.md)."""

    residual_clip: float | None = None

    name: ClassVar[str] = "huber"
    tables: ClassVar[bool] = False
    estimator: ClassVar[str] = "PrivateHuberRegressor"
    family: ClassVar[str] = "huber"
    counts: ClassVar[bool] = False
    lines: ClassVar[bool] = False
    persons: ClassVar[bool] = True

    def _solve(self, rows: Rows, plan: AdaptivePlan, clip: float, draws: Draws) -> Solution:
        """Release what the first stage needs, then the minimiser."""
        guess = first_stage(rows, plan.n_rounds, plan.moment_sigma, plan.mean_sigma, draws)
        scale = CLIP * guess.spread if self.residual_clip is None else clip
        level, root = scale * math.sqrt(rows.d), math.sqrt(rows.d)
        ridge = _ridge(plan, level / plan.mu, guess.spread, 1.0, rows.n, rows.d)
        least = LEAST * least_ridge_for(plan.eps_c, plan.rows_per_person or 1)
        ridge = max(ridge, LENGTHS * least * rows.d)
        if plan.curvature_sigma is not None:
            ridge = max(ridge, inference.RIDGE * rows.n)
        longest = max(math.sqrt(ridge / least), math.sqrt(LENGTHS) * root)
        draws.progress(plan.n_rounds + 2, plan.n_rounds + 2)
        levels = Levels(level, ridge, longest)
        theta = self._minimiser(rows, plan, draws, guess, levels)
        noise, kept, intervals = level / plan.mu, 1.0, None
        if plan.curvature_sigma is not None:
            theta, intervals = self._inferred(rows, plan, draws, guess, theta, levels, CURVED)
        else:
            theta, kept = shrunk(theta, guess, noise, ridge, rows.n)
        chosen = {
            "rounds": plan.n_rounds,
            "residual_spread": guess.spread,
            "residual_clip": scale,
            "ridge": ridge,
            "longest_row": longest,
            "kept": kept,
        }
        return Solution(theta, gradient_noise=noise, chosen=chosen, intervals=intervals)

    def exact(self, rows: Any, clip: float) -> FloatArray:
        """Return the coefficients without privacy; residuals are clipped as in the fit."""
        if self.residual_clip is None:
            gram, moment = rows.moments()
            theta = symmetric_solve(gram, moment)
            squares = sum(float(np.sum((y - A @ theta) ** 2)) for A, y in rows.blocks())
            clip = CLIP * max(math.sqrt(squares / rows.n), 1e-6)
        return _minimum(rows, CalibratedHuber(clip, NO_RIDGE * rows.n, 600.0))

    def forecast(
        self,
        plan: AdaptivePlan,
        n: int,
        eigenvalues: FloatArray,
        theta_squared: FloatArray,
    ) -> Forecast:
        """Return the expected mean square by which predictions move."""
        d = len(eigenvalues)
        spread = TYPICAL if plan.n_rounds else SPREAD
        level = CLIP * spread * math.sqrt(d)
        ridge = _ridge(plan, level / plan.mu, spread, 1.0, n, d)
        least = LEAST * least_ridge_for(plan.eps_c, plan.rows_per_person or 1)
        return adaptive_forecast(
            plan,
            n,
            eigenvalues,
            theta_squared,
            level=level,
            ridge=max(ridge, LENGTHS * least * d),
            curvature=CURVED,
            limited=LIMITED,
        )


@dataclass(frozen=True, kw_only=True)
class QuantileObjective(AdaptiveObjective):
    """Objective perturbation with a smoothed quantile loss (docs/proofs/objective.md, Section 8).

    ``smoothing`` is the width of the smoothing in the units of the target.
    """

    quantile: float = 0.5
    smoothing: float | None = None

    name: ClassVar[str] = "quantile"
    tables: ClassVar[bool] = False
    estimator: ClassVar[str] = "PrivateQuantileRegressor"
    family: ClassVar[str] = "quantile"
    counts: ClassVar[bool] = False
    lines: ClassVar[bool] = False
    persons: ClassVar[bool] = True
    infers: ClassVar[bool] = False

    @property
    def residual_clip(self) -> float | None:
        """The smoothing: what is scaled as residuals are."""
        return self.smoothing

    def check(self) -> None:
        """Check the parameters."""
        check_probability("quantile", self.quantile)
        if self.smoothing is not None:
            check_real("smoothing", self.smoothing, above=0.0)
        super().check()

    def _shares(
        self, sizes: Sizes, mu: float, rounds: int, *, inferring: bool
    ) -> tuple[float, float, float, float]:
        """Return the shares; counts are those of residuals, for the intercept."""
        moment, _, mean, line = super()._shares(sizes, mu, rounds, inferring=inferring)
        pays = sizes.intercept and shift_pays(sizes.n, 1.0 / (math.sqrt(SHIFT_SHARE) * mu))
        return moment, SHIFT_SHARE if pays else 0.0, mean, line

    def _solve(self, rows: Rows, plan: AdaptivePlan, clip: float, draws: Draws) -> Solution:
        """Release what the first stage needs, the minimiser, and counts of residuals."""
        guess = first_stage(rows, plan.n_rounds, plan.moment_sigma, plan.mean_sigma, draws)
        spread, q = guess.spread, float(self.quantile)
        if rows.constant:  # from the mean to the quantile of a normal law
            moved = np.zeros(rows.d)
            moved[-1] = spread * float(ndtri(q)) / rows.constant
            guess = guess._replace(center=guess.center + moved, baseline=guess.baseline + moved)
        level = REACH * math.sqrt(rows.d) * max(q, 1.0 - q)
        curvature = DENSITY / spread
        ridge = _ridge(plan, level / plan.mu, spread, curvature, rows.n, rows.d)
        needed = q * (1.0 - q) * REACH**2 * rows.d / (ridge * plan.eps_c)
        width = max(WIDTH * spread if self.smoothing is None else clip, needed)
        made = replace(self, smoothing=width)
        theta = made._minimiser(rows, plan, draws, guess, Levels(level, ridge, math.inf))
        noise = level / plan.mu
        theta, kept = shrunk(theta, guess, noise, ridge, rows.n, curvature)
        shift = 0.0
        if plan.count_sigma is not None:
            sigma = plan.count_sigma
            theta, shift = at_quantile(rows, theta, q, spread, sigma, draws.noise)
        chosen = {
            "rounds": plan.n_rounds,
            "residual_spread": spread,
            "shift": shift,
            "smoothing": width,
            "gradient_clip": level,
            "ridge": ridge,
            "kept": kept,
        }
        return Solution(theta, gradient_noise=noise, chosen=chosen)

    def exact(self, rows: Any, clip: float) -> FloatArray:
        """Return the coefficients without privacy, with little smoothing."""
        width = NO_WIDTH if self.smoothing is None else clip
        for ridge in (share * rows.n for share in NO_RIDGES):
            # Where residuals are tied and columns collinear, only a ridge makes a minimum sharp.
            with suppress(SolverError):
                loss = SmoothedQuantile(1.0, ridge, 1e12 / ridge, self.quantile, width)
                return _minimum(rows, loss)
        raise SolverError("the quantile fit without privacy was not found; use more smoothing.")

    def scoring(self) -> QuantileScores:
        """Return which scores its models have, and how they are released."""
        return QuantileScores(float(self.quantile))

    def forecast(
        self,
        plan: AdaptivePlan,
        n: int,
        eigenvalues: FloatArray,
        theta_squared: FloatArray,
    ) -> Forecast:
        """Return the expected excess pinball loss, of targets in [-1, 1]."""
        d, q = len(eigenvalues), float(self.quantile)
        spread = TYPICAL if plan.n_rounds else SPREAD
        level = REACH * math.sqrt(d) * max(q, 1.0 - q)
        curvature = DENSITY / spread
        return adaptive_forecast(
            plan,
            n,
            eigenvalues,
            theta_squared,
            level=level,
            ridge=_ridge(plan, level / plan.mu, spread, curvature, n, d),
            curvature=curvature,
            limited=LIMITED,
            unit=curvature / 2.0,
        )

    @property
    def risk_of_nothing(self) -> float:
        """Excess pinball loss without features, in units of the signal of a `Case`."""
        return DENSITY / TYPICAL / 2.0

    def _loss(self, plan: AdaptivePlan, level: float, ridge: float, longest: float) -> Loss:
        width = 1.0 if self.smoothing is None else self.smoothing
        return SmoothedQuantile(level, ridge, plan.eps_c, float(self.quantile), width)


def _ridge(
    plan: AdaptivePlan, noise: float, spread: float, curvature: float, n: int, d: int
) -> float:
    """Return the ridge for coordinates in which every eigenvalue is about n times the curvature."""
    explained = LEFT * spread**2
    needed = LEAST_RIDGE * n * curvature if plan.n_rounds else 0.0
    return max(RIDGE * noise / spread, noise**2 * d / (n * curvature * explained), needed)


def _minimum(rows: Rows, loss: CalibratedHuber | SmoothedQuantile) -> FloatArray:
    """Return the minimiser of a loss, without privacy."""
    objective = Objective(loss, loss.ridge, np.zeros(rows.d), np.zeros(rows.d))
    return minimise(rows, objective, tolerance=1e-3, sketch=False)
