"""A family: a loss, and everything that the engine must know of it to fit it.

`engine.adaptive` reads from top to bottom what a fit does; what differs between losses is here, and
each family is one file in `engine.families`. `docs/extending.md` adds one.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fastmix._types import FloatArray
from fastmix._validation import check_integer
from fastmix.data import Rows
from fastmix.engine import adaptive
from fastmix.engine.adaptive_inference import CURVATURE_ROUNDS, NOISY, SIZE, hidden
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.clipping import (
    EDGES,
    FEW_EDGES,
    LEAST_CLIP,
    SHORTEST,
    Levels,
    best_clip,
    true_clip,
)
from fastmix.engine.first_stage import Guess
from fastmix.engine.geometry import Curvature, Geometry
from fastmix.engine.inference import Intervals
from fastmix.engine.last_stage import Decided, shrunk
from fastmix.engine.plan import Draws, Method, Sizes, Solution, Target
from fastmix.engine.table_inference import Released
from fastmix.engine.table_spread import Spread
from fastmix.kernels.losses import Loss
from fastmix.kernels.sigmoids import Logistic
from fastmix.releases import GRADIENT_COUNTS
from fastmix.schema.categories import Categories


@dataclass(frozen=True, kw_only=True)
class Family(Method):
    """A loss with its first guess, levels, last step and forecast: a value that the engine fits.

    ``rounds`` sets the number of rounds of second moments, None chooses it from public sizes;
    ``solver`` says what preconditions the search for the minimum.
    """

    rounds: int | None = None
    solver: str = "auto"

    chooses: ClassVar[bool] = True
    infers: ClassVar[bool] = True
    reserves: ClassVar[bool] = True
    tables: ClassVar[bool] = True
    persons: ClassVar[bool] = True
    weights: ClassVar[bool] = True
    last_step: ClassVar[float] = 4.0
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"solver": ("auto", "gram", "sketch")}
    #: Whether targets are labels of ±1.
    labels: ClassVar[bool] = False
    #: Whether the slope of the loss has one sign for each record, which privacy accounts use.
    one_sided: ClassVar[bool] = False
    #: Whether gradients are counted for the clipping level, and the share of what is clipped that
    #: is taken to point the same way.
    counts: ClassVar[bool] = True
    aligned: ClassVar[float] = 1.0
    #: Whether the loss is a squared one with clipped gradients. Tables of few rows are then fitted
    #: without steps, and coefficients are shrunk in blocks; both made logistic fits worse.
    squares: ClassVar[bool] = False
    #: In a table: the least mean square of a slope over its curvature.
    least_variance: ClassVar[float] = 0.0
    #: With intervals: releases of the curvature, and the least rounds of second moments, if any.
    curvature_rounds: ClassVar[int] = CURVATURE_ROUNDS
    least_rounds: ClassVar[int] = 0
    #: Counts of gradients and residuals that a table's fit with intervals releases.
    table_counts: ClassVar[int] = 3
    #: The share of curvatures that their noise may hide, where intervals are computed.
    noisy: ClassVar[float] = NOISY

    def check(self) -> None:
        """Check the parameters."""
        if self.rounds is not None:
            check_integer("rounds", self.rounds, at_least=0, at_most=20)
        super().check()

    def plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit: the shares of all releases from public sizes."""
        return adaptive.plan_adaptive(self, sizes, target, inferring=False)

    def inferring_plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit that also releases the curvatures that intervals need.

        Where noise would hide them, whatever the data are, the minimiser has their share.
        """
        plan = adaptive.plan_adaptive(self, sizes, target, inferring=True)
        sigma = plan.curvature_sigma
        if sigma is None or plan.level_sigma is not None or not hidden(sigma, sizes.n, sizes.d):
            return plan
        without = adaptive.plan_adaptive(self, sizes, target, inferring=False)
        return replace(without, intervals_hidden=True)

    def solve(self, rows: Any, plan: AdaptivePlan, clip: float, draws: Draws) -> Solution:
        """Draw the planned releases, and return the coefficients."""
        return adaptive.fit_adaptive(self, rows, plan, clip, draws)

    def shares(self, sizes: Sizes, mu: float, rounds: int, *, inferring: bool) -> dict[str, float]:
        """Return the shares of the budget of counts and lines, by name, from public sizes."""
        return {}

    def guess(self, guess: Guess, rows: Rows, rounds: int) -> Guess:
        """Return the first guess at the coefficients of this loss, from that of least squares."""
        return guess

    @abstractmethod
    def first_levels(self, plan: AdaptivePlan, guess: Guess, clip: float, n: int, d: int) -> Levels:
        """Choose clipping level, ridge and row length from the first guess.

        ``clip`` is the user's clipping level of residuals, in scaled units.
        """

    def raised(
        self, plan: AdaptivePlan, guess: Guess, levels: Levels, level: float, n: int, d: int
    ) -> Levels:
        """Return the levels for the clipping level that released counts of gradients suggest."""
        return levels

    @property
    def counted(self) -> Logistic | None:
        """The loss whose gradients are counted; None for residuals times row lengths."""
        return None

    def levels(
        self, rows: Rows, plan: AdaptivePlan, guess: Guess, clip: float, draws: Draws
    ) -> tuple[Guess, Levels]:
        """Choose the levels; if counts of gradients are planned, release them for that."""
        n, d, root = rows.n, rows.d, math.sqrt(rows.d)
        found = self.first_levels(plan, guess, clip, n, d)
        if not self.counts or plan.count_sigma is None:
            return guess, found
        edges = (FEW_EDGES if self.true_levels(plan) else EDGES) * (root * guess.spread)
        counts = draws.noise.release(
            GRADIENT_COUNTS,
            rows,
            theta=guess.center,
            transform=guess.transform,
            least=SHORTEST * root,
            longest=min(found.longest, 1e100),
            edges=edges,
            loss=self.counted,
            sigma=plan.count_sigma,
        )
        least = LEAST_CLIP * found.clip
        if self.true_levels(plan):
            level, clipped = true_clip(counts, edges, plan.count_sigma, n, plan.mu, guess.spread)
            found = self.raised(plan, guess, found, max(least, level), n, d)
            return guess, found._replace(clipped=clipped)
        best = best_clip(counts, edges[1:], plan.count_sigma, n, d, plan.mu, self.aligned)
        level = max(least, found.clip if best is None else best)
        return guess, self.raised(plan, guess, found, level, n, d)

    def true_levels(self, plan: AdaptivePlan) -> bool:
        """Whether clipping must move no coefficient by much: squares of persons, with intervals."""
        inferring = plan.curvature_sigma is not None
        return self.squares and inferring and plan.rows_per_person is not None

    @abstractmethod
    def loss(self, plan: AdaptivePlan, levels: Levels) -> Loss:
        """Return the loss for these levels, calibrated for the noise of the plan."""

    def curvature(self, guess: Guess) -> float:
        """Return the mean curvature of a row that the first guess leads to expect."""
        return guess.curvature

    @property
    def bend(self) -> float:
        """The largest curvature of a row."""
        return 1.0

    def curvature_loss(self, plan: AdaptivePlan, levels: Levels) -> Loss:
        """Return the loss whose curvature is released for intervals of a table."""
        return self.loss(plan, levels)

    def expected(
        self,
        guess: Guess,
        coordinates: Geometry,
        theta: FloatArray,
        loss: Loss,
        moments: FloatArray | None,
    ) -> FloatArray:
        """Return the mean curvature of a row of a table that coefficients lead to expect.

        ``moments`` are the mean second moments of rows, where they were released.
        """
        return self.curvature(guess) * coordinates.expected

    def refined(self, guess: Guess, coordinates: Geometry) -> Guess:
        """Return a guess whose spread follows from the first fit of a table."""
        return guess

    def table_curvature(
        self, moments: Curvature, flat: Geometry, expected: FloatArray, share: float
    ) -> Curvature:
        """Return the curvature of a table for its second moments in the coordinates ``flat``.

        ``expected`` is the mean curvature of a row if blocks are independent, and ``share`` is
        that of gradients that are not clipped.
        """
        return moments.times(share)

    def lowered(
        self,
        J: Curvature,
        moments: Curvature,
        coordinates: Geometry,
        released: Released,
        loss: Loss,
        spread: Spread,
    ) -> Curvature:
        """Return the curvature of a table, no larger than squares of gradients let it be."""
        return J

    def doubted(
        self,
        intervals: Intervals,
        released: Released,
        coordinates: Geometry,
        J: Curvature,
        categories: Categories,
    ) -> Intervals:
        """Return intervals of a table without those that the loss gives reason to doubt."""
        return intervals

    def size(self, d: int) -> float:
        """Return a length, in scaled units, that directions without information may have."""
        return SIZE

    def finished(self, fit: Decided, theta: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Shrink the minimiser by the share of its length that noise explains."""
        curvature, given = self.curvature(fit.guess), (fit.noise, fit.levels.ridge, fit.rows.n)
        theta, kept = shrunk(theta, fit.guess, *given, curvature)
        return theta, {"kept": kept}

    def inferred(
        self, fit: Decided, theta: FloatArray
    ) -> tuple[FloatArray, dict[str, float], Intervals]:
        """Release what intervals need, and return coefficients without the pull of the ridge."""
        return adaptive.inferred(self, fit, theta)

    def chosen(self, guess: Guess, levels: Levels) -> dict[str, float]:
        """Return the settings that were chosen from released values, by name."""
        return {
            "residual_spread": guess.spread,
            "gradient_clip": levels.clip,
            "ridge": levels.ridge,
            "longest_row": levels.longest,
        }
