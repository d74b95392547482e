"""Least squares: gradients are clipped at a level that released counts of them suggest."""

import math
from dataclasses import dataclass
from typing import ClassVar

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.clipping import CLIP, Levels, chosen_levels, ridge_for
from fastmix.engine.family import Family
from fastmix.engine.first_stage import OCTAVES, SPREAD, Guess, spread_known, typical_size
from fastmix.engine.forecast import adaptive_forecast
from fastmix.engine.last_stage import LINE_ERROR, LINE_SHARE, Decided, on_a_line
from fastmix.engine.objective import squares
from fastmix.engine.plan import Draws, Forecast, Sizes
from fastmix.kernels.losses import Loss
from fastmix.releases import GRADIENT_COUNTS

#: Share of the budget (of mu^2) for counts of gradients, or of targets where there are no rounds.
COUNTS_SHARE = 0.03
#: With intervals of persons, the standard deviation of a count that is wanted, as a share of all
#: persons, and the most that it may take of the budget: rare gradients decide the level.
COUNT_ERROR, MOST_COUNTS = 0.002, 0.10
#: The clipping level without rounds, in units of sqrt(d) times the target's spread, alone and with
#: a line: noise hurts most there, and the line makes up for predictions that are too small.
FEW_CLIP, LINE_CLIP = 1.0, 0.5


@dataclass(frozen=True, kw_only=True)
class AdaptiveObjective(Family):
    """Least squares by objective perturbation in adapted coordinates (docs/proofs/adaptive.md)."""

    name: ClassVar[str] = "adaptive"
    estimator: ClassVar[str] = "PrivateLinearRegression"
    squares: ClassVar[bool] = True

    def shares(self, sizes: Sizes, mu: float, rounds: int, *, inferring: bool) -> dict[str, float]:
        """Return the shares of counts and, without rounds, of a line."""
        if rounds and inferring and sizes.rows_per_person is not None:
            wanted = (1.0 / (COUNT_ERROR * sizes.n * mu)) ** 2
            return {"count": min(max(wanted, COUNTS_SHARE), MOST_COUNTS)}
        if rounds:
            return {"count": COUNTS_SHARE}
        sigma, error = (1.0 / (math.sqrt(share) * mu) for share in (COUNTS_SHARE, LINE_SHARE))
        counts = spread_known(sizes.n, len(OCTAVES) - 1, sigma)
        line = error <= LINE_ERROR * sizes.n
        return {"count": COUNTS_SHARE * counts, "line": LINE_SHARE * line}

    def first_levels(self, plan: AdaptivePlan, guess: Guess, clip: float, n: int, d: int) -> Levels:
        """Clip gradients at a multiple of the length that the residuals' spread suggests."""
        level = _clip(plan) * math.sqrt(d) * guess.spread
        return chosen_levels(plan, level, guess.spread, n, d)

    def raised(
        self, plan: AdaptivePlan, guess: Guess, levels: Levels, level: float, n: int, d: int
    ) -> Levels:
        """Return the levels for a clipping level."""
        ridge = max(levels.ridge, ridge_for(plan, level, guess.spread, n, d))
        return levels._replace(clip=level, ridge=ridge)

    def levels(
        self, rows: Rows, plan: AdaptivePlan, guess: Guess, clip: float, draws: Draws
    ) -> tuple[Guess, Levels]:
        """Release counts of gradients, or of targets without rounds, and choose the levels."""
        if plan.n_rounds:
            return super().levels(rows, plan, guess, clip, draws)
        if plan.count_sigma is not None:
            unit = float(guess.transform[0, 0]) * (1.0 + 1e-12)  # all rows count with this length
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
        return guess, self.first_levels(plan, guess, clip, rows.n, rows.d)

    def loss(self, plan: AdaptivePlan, levels: Levels) -> Loss:
        """Return the squared loss whose gradients are clipped at the level."""
        persons = plan.rows_per_person or 1
        given = levels.clip, levels.ridge, plan.eps_c, levels.longest
        return squares(*given, rows_per_person=persons)

    def finished(self, fit: Decided, theta: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Put predictions on a released line if one is planned and seen; otherwise shrink them."""
        sigma = fit.plan.line_sigma
        if sigma is not None:
            found = on_a_line(fit.rows, theta, fit.guess, sigma, fit.draws.noise)
            if found is not None:
                return found[0], {"kept": found[1]}
        return super().finished(fit, theta)

    def forecast(
        self,
        plan: AdaptivePlan,
        n: int,
        eigenvalues: FloatArray,
        theta_squared: FloatArray,
    ) -> Forecast:
        """Return the expected excess of the mean squared error: noise, and the ridge's bias."""
        d = len(eigenvalues)
        typical = 0.76 * SPREAD if plan.n_rounds else SPREAD
        clip = _clip(plan)
        level = clip * math.sqrt(d) * typical
        ridge = ridge_for(plan, level, typical, n, d)
        # Without rounds, only residuals that are not clipped have curvature.
        reached = 1.0 if plan.n_rounds else math.erf(clip / math.sqrt(2.0))
        problem = plan, n, eigenvalues, theta_squared
        return adaptive_forecast(*problem, level=level, ridge=ridge, reached=reached)


def _clip(plan: AdaptivePlan) -> float:
    """Return the first clipping level, in units of sqrt(d) times the spread of residuals."""
    if plan.n_rounds:
        return CLIP
    return FEW_CLIP if plan.line_sigma is None else LINE_CLIP
