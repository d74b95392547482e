"""What an adaptive fit will release, and with how much noise, from public sizes."""

import math
from abc import abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

from fastmix._validation import check_integer
from fastmix.accounting import PrivacyEvent, objective_mu, objective_split
from fastmix.engine import adaptive_inference as inference
from fastmix.engine import table_fit
from fastmix.engine.adaptive_noise import AdaptivePlan
from fastmix.engine.first_stage import OCTAVES, ROOM, least_eigenvalue, spread_known
from fastmix.engine.last_stage import LINE_ERROR, LINE_SHARE
from fastmix.engine.objective import OUTPUT_SHARE, WEIGHT_SHARE, chosen_solver
from fastmix.engine.plan import Draws, Method, Sizes, Solution, Target, joint
from fastmix.kernels import NATIVE, one_blas_thread
from fastmix.kernels.mapped import FEW_COLUMNS
from fastmix.releases import (
    CURVATURE,
    LINE,
    MINIMISER,
    RESIDUAL_COUNTS,
    SECOND_MOMENTS,
    SQUARES,
    TARGET_MEAN,
    TOTAL_WEIGHT,
)

#: Shares of the budget (of mu^2) for all rounds of second moments and for counts of gradients.
MOMENTS_SHARE, COUNTS_SHARE = 0.12, 0.03
#: The mean of the target, where there are no rounds, has this standard deviation, for a share
#: between these two.
MEAN_ERROR, MEAN_SHARES = 1.0 / 26.0, (0.02, 0.3)
#: Rounds: at most so many, with a reach of so much; none if a round gains less than 1.
MOST_ROUNDS, REACH = 5, 100.0


@dataclass(frozen=True, kw_only=True)
class AdaptiveMethod(Method):
    """A method with a first stage, one objective release, and what may follow it."""

    rounds: int | None = None
    solver: str = "auto"

    chooses: ClassVar[bool] = True
    last_step: ClassVar[float] = 4.0
    #: Whether the slope of the loss has one sign for each record.
    one_sided: ClassVar[bool] = False
    #: Whether gradients are counted after rounds, and targets, with a line, without rounds.
    counts: ClassVar[bool] = False
    lines: ClassVar[bool] = False
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"solver": ("auto", "gram", "sketch")}

    def check(self) -> None:
        """Check the parameters."""
        if self.rounds is not None:
            check_integer("rounds", self.rounds, at_least=0, at_most=20)
        super().check()

    def plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit: the shares of all releases from public sizes."""
        return self._planned(sizes, target, inferring=False)

    def _planned(self, sizes: Sizes, target: Target, *, inferring: bool) -> AdaptivePlan:
        form: dict[str, Any] = {
            "one_sided": self.one_sided,
            "rows_per_person": sizes.rows_per_person or 1,
        }
        mu = objective_mu(target.epsilon, target.delta, **form)
        if self.tables and self.rounds is None and table_fit.pays(sizes, mu):
            return table_fit.table_plan(sizes, target, self.scoring(), inferring=inferring)
        rounds = useful_rounds(sizes, mu) if self.rounds is None else int(self.rounds)
        if inferring and rounds and self.rounds is None:
            rounds = max(rounds, inference.LEAST_ROUNDS)
        first = self._shares(sizes, mu, rounds, inferring=inferring)
        last = (target.reserved, 0.0, 0.0)
        if inferring:
            last = (target.reserved, inference.CURVATURE_SHARE, inference.SQUARES_SHARE)
        counted = WEIGHT_SHARE if sizes.weighted else 0.0
        share = rounds * first[0] + sum(first[1:]) + sum(last) + counted + OUTPUT_SHARE
        mu, eps_c, mu_gaussian = objective_split(target.epsilon, target.delta, share, **form)
        total = math.hypot(mu, mu_gaussian)
        moment, count, mean, line, score, curvature, square, weight = (
            1.0 / (math.sqrt(each) * total) if each else None for each in (*first, *last, counted)
        )
        mu_output = math.sqrt(OUTPUT_SHARE) * total
        events: list[PrivacyEvent] = []
        if weight is not None:
            events.append(TOTAL_WEIGHT.event(weight))
        if mean is not None:
            events.append(TARGET_MEAN.event(mean))
        if moment is not None:
            events.append(SECOND_MOMENTS.event(moment, count=rounds))
        if count is not None:
            events.append(RESIDUAL_COUNTS.event(count))
        events += MINIMISER.events(mu, eps_c, mu_output, **form)
        if line is not None:
            events.append(LINE.event(line))
        if curvature is not None and square is not None:
            events += [CURVATURE.event(curvature), SQUARES.event(square)]
        if score is not None:
            scoring = self.scoring()
            events += scoring.events(scoring.scored, score)
        solver = chosen_solver(self.solver, sizes)
        if self.solver == "auto" and rounds:
            solver = "gram"  # which is known before the solver starts
        return AdaptivePlan(
            spent=joint(events, target.delta),
            rows_per_person=sizes.rows_per_person,
            weight_sigma=weight,
            mu=mu,
            eps_c=eps_c,
            mu_output=mu_output,
            n_rounds=rounds,
            moment_sigma=moment,
            count_sigma=count,
            mean_sigma=mean,
            line_sigma=line,
            preconditioner=solver,
            score_sigma=score,
            curvature_sigma=curvature,
            square_sigma=square,
        )

    def _shares(
        self, sizes: Sizes, mu: float, rounds: int, *, inferring: bool
    ) -> tuple[float, float, float, float]:
        """Return the shares of a round, of counts, mean and line, from public sizes."""
        if rounds:
            return MOMENTS_SHARE / rounds, COUNTS_SHARE if self.counts else 0.0, 0.0, 0.0
        mean = counts = line = 0.0
        if sizes.intercept:
            wanted = (1.0 / (MEAN_ERROR * sizes.n * mu)) ** 2
            mean = min(max(wanted, MEAN_SHARES[0]), MEAN_SHARES[1])
        if self.lines:
            sigma, error = (1.0 / (math.sqrt(share) * mu) for share in (COUNTS_SHARE, LINE_SHARE))
            counts = COUNTS_SHARE if spread_known(sizes.n, len(OCTAVES) - 1, sigma) else 0.0
            line = LINE_SHARE if error <= LINE_ERROR * sizes.n and not inferring else 0.0
        return 0.0, counts, mean, line

    def solve(self, rows: Any, plan: AdaptivePlan, clip: float, draws: Draws) -> Solution:
        """Fit; if BLAS gets no rows, only their moments, on one thread of it."""
        small = NATIVE and rows.d < FEW_COLUMNS
        with one_blas_thread() if small else nullcontext():
            return self._solve(rows, plan, clip, draws)

    @abstractmethod
    def _solve(self, rows: Any, plan: AdaptivePlan, clip: float, draws: Draws) -> Solution:
        """Release what the first stage needs, decide, and release the minimiser."""

    def coordinates(self, sizes: Sizes) -> int:
        """Return how many coordinates of noise a fit draws at most: second moments, and more."""
        rounds = MOST_ROUNDS if self.rounds is None else int(self.rounds)
        return super().coordinates(sizes) + rounds * (sizes.d + 2) ** 2


def useful_rounds(sizes: Sizes, mu: float) -> int:
    """Return how many rounds of second moments pay, from public sizes.

    A round tells directions apart whose eigenvalues differ by its gain: that of a direction among
    d + 1 equal ones over the least that noise lets through.
    """

    def gain(rounds: int) -> float:
        sigma = 1.0 / (math.sqrt(MOMENTS_SHARE / rounds) * mu)
        return sizes.n / (ROOM * (sizes.d + 1) * least_eigenvalue(sigma, sizes.d + 1))

    if gain(4) <= 1.0:
        return 0
    enough = (k for k in range(2, MOST_ROUNDS) if gain(k) > 1.0 and gain(k) ** k >= REACH)
    return next(enough, MOST_ROUNDS)
