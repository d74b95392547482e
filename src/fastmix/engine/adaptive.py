"""Adaptive objective perturbation: coordinates, clipping, ridge and centre from released values.

A first stage spends a small share of the budget on noisy second moments of features and target,
again and again in coordinates that the round before has made rounder, and on counts of gradients.
Everything about the main release, the minimiser of a perturbed objective, is chosen from them.
Where there are too few rows for that, by public sizes, it spends on mean and spread of the target,
and, after the minimiser, on a line that relates its predictions to the targets.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.engine import adaptive_inference as inference
from fastmix.engine.adaptive_noise import AdaptivePlan
from fastmix.engine.adaptive_plan import AdaptiveMethod
from fastmix.engine.clipping import (
    CLIP,
    EDGES,
    LEAST_CLIP,
    SHORTEST,
    Levels,
    best_clip,
    chosen_levels,
    ridge_for,
)
from fastmix.engine.first_stage import OCTAVES, SPREAD, Guess, first_stage, typical_size
from fastmix.engine.forecast import adaptive_forecast
from fastmix.engine.inference import Intervals
from fastmix.engine.last_stage import on_a_line, shrunk
from fastmix.engine.objective import squares
from fastmix.engine.plan import Draws, Forecast, Sizes, Solution, Target
from fastmix.engine.table_fit import solve_table
from fastmix.kernels.losses import Loss
from fastmix.releases import CURVATURES, GRADIENT_COUNTS, MINIMISER

#: The level without rounds, in units of sqrt(d) times the target's spread: noise is what hurts
#: there. A line through the predictions makes up for what the lower level does to them.
FEW_CLIP, LINE_CLIP = 1.0, 0.5


@dataclass(frozen=True, kw_only=True)
class AdaptiveObjective(AdaptiveMethod):
    """Objective perturbation in coordinates from released values (docs/proofs/adaptive.md)."""

    name: ClassVar[str] = "adaptive"
    estimator: ClassVar[str] = "AdaptiveRegression"
    counts: ClassVar[bool] = True
    lines: ClassVar[bool] = True
    persons: ClassVar[bool] = True
    weights: ClassVar[bool] = True
    infers: ClassVar[bool] = True
    tables: ClassVar[bool] = True
    reserves: ClassVar[bool] = True
    #: The share of curvatures that their noise may hide.
    noisy: ClassVar[float] = inference.NOISY

    def inferring_plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit with what intervals need: more rounds, and curvatures at the minimiser."""
        return self._planned(sizes, target, inferring=True)

    def _solve(self, rows: Rows, plan: AdaptivePlan, clip: float, draws: Draws) -> Solution:
        """Release what the first stage needs, decide, and release the minimiser."""
        if plan.level_sigma is not None:
            return solve_table(rows, plan, draws)
        steps = plan.n_rounds + 2
        guess = first_stage(rows, plan.n_rounds, plan.moment_sigma, plan.mean_sigma, draws)
        draws.progress(steps - 1, steps)
        decide = self._levels if plan.n_rounds else self._levels_without_rounds
        guess, levels = decide(rows, plan, guess, draws)
        draws.progress(steps, steps)
        theta = self._minimiser(rows, plan, draws, guess, levels)
        noise, kept, intervals, on_line = levels.clip / plan.mu, 1.0, None, None
        if plan.line_sigma is not None:
            on_line = on_a_line(rows, theta, guess, plan.line_sigma, draws.noise)
        if plan.curvature_sigma is not None:
            theta, intervals = self._inferred(rows, plan, draws, guess, theta, levels)
        else:
            theta, kept = on_line or shrunk(theta, guess, noise, levels.ridge, rows.n)
        chosen = {
            "rounds": plan.n_rounds,
            "residual_spread": guess.spread,
            "gradient_clip": levels.clip,
            "ridge": levels.ridge,
            "longest_row": levels.longest,
            "kept": kept,
        }
        return Solution(theta, gradient_noise=noise, chosen=chosen, intervals=intervals)

    def _levels(
        self, rows: Rows, plan: AdaptivePlan, guess: Guess, draws: Draws
    ) -> tuple[Guess, Levels]:
        """Release counts of gradients, and choose the levels from them."""
        root, least = math.sqrt(rows.d), _least_ridge(plan, rows.n)
        clip, ridge, longest = chosen_levels(
            plan, CLIP * root * guess.spread, guess.spread, rows.n, rows.d, least
        )
        sigma = plan.count_sigma or math.nan
        edges = EDGES * (root * guess.spread)
        counts = draws.noise.release(
            GRADIENT_COUNTS,
            rows,
            theta=guess.center,
            transform=guess.transform,
            least=SHORTEST * root,
            longest=longest,
            edges=edges,
            loss=None,
            sigma=sigma,
        )
        best = best_clip(counts, edges[1:], sigma, rows.n, rows.d, plan.mu)
        clip = max(LEAST_CLIP * clip, clip if best is None else best)
        if plan.square_sigma is not None:
            given = guess.spread, plan.mu, plan.square_sigma, rows.n, rows.d
            clip = max(clip, inference.least_clip(*given))
        ridge = max(ridge, ridge_for(plan, clip, guess.spread, rows.n, rows.d))
        return guess, Levels(clip, ridge, longest)

    def _levels_without_rounds(
        self, rows: Rows, plan: AdaptivePlan, guess: Guess, draws: Draws
    ) -> tuple[Guess, Levels]:
        """Release counts of targets if they say enough, and choose spread and levels from them."""
        root, least = math.sqrt(rows.d), _least_ridge(plan, rows.n)
        if plan.count_sigma is not None:
            unit = float(guess.transform[0, 0]) * (1.0 + 1e-12)  # that all rows count with
            counts = draws.noise.release(
                GRADIENT_COUNTS,
                rows,
                theta=guess.center,
                transform=guess.transform,
                least=unit,
                longest=unit,
                edges=OCTAVES * unit,
                loss=None,
                sigma=plan.count_sigma,
            )
            guess = guess._replace(spread=typical_size(counts, OCTAVES, rows.n))
        return guess, chosen_levels(
            plan, _clip(plan) * root * guess.spread, guess.spread, rows.n, rows.d, least
        )

    def _minimiser(
        self, rows: Rows, plan: AdaptivePlan, draws: Draws, guess: Guess, levels: Levels
    ) -> FloatArray:
        """Release the minimiser in the coordinates of a guess."""
        transform: FloatArray | None = guess.transform
        clip, ridge, longest = levels
        if not plan.n_rounds and plan.curvature_sigma is None:
            # All directions alike: the same objective for rows as they are, of length 1 at most.
            unit, transform = float(guess.transform[0, 0]), None
            clip, ridge, longest = clip / unit, ridge / unit**2, 1.0
        theta: FloatArray = draws.noise.release(
            MINIMISER,
            rows,
            loss=self._loss(plan, clip, ridge, longest),
            ridge=ridge,
            mu=plan.mu,
            eps_c=plan.eps_c,
            mu_output=plan.mu_output,
            center=guess.center,
            transform=transform,
            least=SHORTEST * math.sqrt(rows.d),
            sketch_rng=draws.public if plan.preconditioner == "sketch" else None,
            rows_per_person=plan.rows_per_person or 1,
        )
        return theta

    def _loss(self, plan: AdaptivePlan, level: float, ridge: float, longest: float) -> Loss:
        """Return the loss for a clipping level of gradients."""
        persons = plan.rows_per_person or 1
        return squares(level, ridge, plan.eps_c, longest, rows_per_person=persons)

    def _size(self, d: int) -> float:
        """Return the length, in scaled units, that what is not identified may have."""
        return inference.SIZE

    def _inferred(
        self,
        rows: Rows,
        plan: AdaptivePlan,
        draws: Draws,
        guess: Guess,
        theta: FloatArray,
        levels: Levels,
        curvature: float = 1.0,
    ) -> tuple[FloatArray, Intervals]:
        """Release what intervals need, and take the pull of the ridge off.

        ``curvature`` is that of a row, on average, by what is known of the loss.
        """
        clip, ridge, longest = levels
        curvature_sigma, square_sigma = plan.curvature_sigma, plan.square_sigma
        assert curvature_sigma is not None
        assert square_sigma is not None
        most = curvature * inference.most_square(curvature_sigma, rows.n, rows.d, self.noisy)
        square = min(longest**2, most)
        released = draws.noise.release(
            CURVATURES,
            rows,
            theta=theta,
            loss=self._loss(plan, clip, ridge, longest),
            transform=guess.transform,
            least=SHORTEST * math.sqrt(rows.d),
            square=square,
            weights=None,
            sigma=(curvature_sigma, square_sigma),
        )
        known = inference.Levels(
            noise=clip / plan.mu,
            ridge=ridge,
            lipschitz=clip,
            square=square,
            curvature_sigma=curvature_sigma,
            square_sigma=square_sigma,
            whole=rows.n * curvature,
            size=self._size(rows.d),
        )
        return inference.inferred(theta, guess, released, known)

    def forecast(
        self,
        plan: AdaptivePlan,
        n: int,
        eigenvalues: FloatArray,
        theta_squared: FloatArray,
    ) -> Forecast:
        """Return what a planned fit is expected to give: noise, and the bias of the ridge."""
        d = len(eigenvalues)
        typical = 0.76 * SPREAD if plan.n_rounds else SPREAD
        clip = CLIP if plan.n_rounds else _clip(plan)
        level = clip * math.sqrt(d) * typical
        if plan.n_rounds and plan.square_sigma is not None:
            level = max(level, inference.least_clip(typical, plan.mu, plan.square_sigma, n, d))
        ridge = ridge_for(plan, level, typical, n, d)
        # Without rounds, only residuals that are not clipped have curvature.
        reached = 1.0 if plan.n_rounds else math.erf(clip / math.sqrt(2.0))
        problem = plan, n, eigenvalues, theta_squared
        return adaptive_forecast(*problem, level=level, ridge=ridge, reached=reached)


def _clip(plan: AdaptivePlan) -> float:
    """Return the clipping level without rounds, in units of sqrt(d) times the target's spread."""
    if plan.curvature_sigma is not None:
        return CLIP
    return FEW_CLIP if plan.line_sigma is None else LINE_CLIP


def _least_ridge(plan: AdaptivePlan, n: int) -> float:
    """Return the ridge that intervals ask for: its pull is taken off, and rows may be longer."""
    return 0.0 if plan.curvature_sigma is None else inference.RIDGE * n
