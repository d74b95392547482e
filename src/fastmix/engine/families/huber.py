"""Huber regression: residuals are clipped at a scale, which bounds the slope of the loss."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fastmix._types import FloatArray
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.clipping import LEAST, LENGTHS, Levels
from fastmix.engine.families.bounded import LIMITED, TYPICAL, minimum, ridge_of
from fastmix.engine.family import Family
from fastmix.engine.first_stage import SPREAD, Guess
from fastmix.engine.forecast import adaptive_forecast
from fastmix.engine.last_stage import Decided, shrunk
from fastmix.engine.objective import least_ridge_for, squares
from fastmix.engine.plan import Forecast
from fastmix.kernels.losses import CalibratedHuber, Loss
from fastmix.releases import symmetric_solve

#: Default clipping level of residuals in units of their spread (Huber's constant), and the share of
#: normal residuals below it.
CLIP = 1.345
CURVED = math.erf(CLIP / math.sqrt(2.0))
#: Ridge without privacy, in units of the number of rows.
NO_RIDGE = 1e-7


@dataclass(frozen=True, kw_only=True)
class HuberObjective(Family):
    """Huber regression by objective perturbation (docs/proofs/objective.md)."""

    residual_clip: float | None = None

    name: ClassVar[str] = "huber"
    estimator: ClassVar[str] = "PrivateHuberRegressor"
    family: ClassVar[str] = "huber"
    counts: ClassVar[bool] = False

    def first_levels(self, plan: AdaptivePlan, guess: Guess, clip: float, n: int, d: int) -> Levels:
        """Clip residuals at the user's level, or at a multiple of their spread."""
        scale = CLIP * guess.spread if self.residual_clip is None else clip
        level = scale * math.sqrt(d)
        least = _least_ridge(plan)
        ridge = max(ridge_of(plan, level, guess.spread, 1.0, n, d), LENGTHS * least * d)
        longest = max(math.sqrt(ridge / least), math.sqrt(LENGTHS) * math.sqrt(d))
        return Levels(level, ridge, longest)

    def raised(
        self, plan: AdaptivePlan, guess: Guess, levels: Levels, level: float, n: int, d: int
    ) -> Levels:
        """Return the levels for the spread of residuals that counts suggest, in a table."""
        return self.first_levels(plan, guess, levels.clip / math.sqrt(d), n, d)

    def loss(self, plan: AdaptivePlan, levels: Levels) -> Loss:
        """Return the Huber loss whose curvature beyond the level is what privacy allows."""
        persons = plan.rows_per_person or 1
        given = levels.clip, levels.ridge, plan.eps_c, levels.longest
        return squares(*given, rows_per_person=persons)

    def curvature(self, guess: Guess) -> float:
        """Return the share of normal residuals that are not clipped."""
        return CURVED

    def finished(self, fit: Decided, theta: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Shrink the minimiser, as if no residual were clipped."""
        theta, kept = shrunk(theta, fit.guess, fit.noise, fit.levels.ridge, fit.rows.n)
        return theta, {"kept": kept}

    def chosen(self, guess: Guess, levels: Levels) -> dict[str, float]:
        """Return the settings that were chosen from released values, by name."""
        return {
            "residual_spread": guess.spread,
            "residual_clip": levels.clip / math.sqrt(len(guess.center)),
            "ridge": levels.ridge,
            "longest_row": levels.longest,
        }

    def exact(self, rows: Any, clip: float) -> FloatArray:
        """Return the coefficients without privacy; residuals are clipped as in the fit."""
        if self.residual_clip is None:
            theta = symmetric_solve(*rows.moments())
            squared = sum(float(np.sum((y - A @ theta) ** 2)) for A, y in rows.blocks())
            clip = CLIP * max(math.sqrt(squared / rows.n), 1e-6)
        return minimum(rows, CalibratedHuber(clip, NO_RIDGE * rows.n, 600.0))

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
        ridge = ridge_of(plan, level, spread, 1.0, n, d)
        return adaptive_forecast(
            plan,
            n,
            eigenvalues,
            theta_squared,
            level=level,
            ridge=max(ridge, LENGTHS * _least_ridge(plan) * d),
            curvature=CURVED,
            limited=LIMITED,
        )


def _least_ridge(plan: AdaptivePlan) -> float:
    """Return the ridge that the loss needs for rows of length 1, with room."""
    return LEAST * least_ridge_for(plan.eps_c, plan.rows_per_person or 1)
