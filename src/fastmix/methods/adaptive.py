"""Adaptive objective perturbation: coordinates, clipping, ridge and centre from released values.

A first stage spends a small share of the budget on noisy second moments of features and target,
again and again in coordinates that the round before has made rounder, and on counts of gradients.
Everything about the main release, the minimiser of a perturbed objective, is chosen from them.
Where there are too few rows for that, by public sizes, it spends on the mean of the target alone.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_integer
from fastmix.accounting import PrivacyEvent, objective_mu, objective_split
from fastmix.data import Rows
from fastmix.kernels.losses import CalibratedHuber, Loss, least_ridge
from fastmix.mechanisms import (
    noisy_gradient_counts,
    noisy_minimiser,
    objective_events,
    residual_event,
    second_moment_event,
    target_mean_event,
)
from fastmix.methods.first_stage import (
    ROOM,
    SPREAD,
    SQUARES,
    Guess,
    first_stage,
    least_eigenvalue,
)
from fastmix.methods.objective import OUTPUT_SHARE, faster_solver
from fastmix.methods.plan import Draws, Forecast, Method, Plan, Sizes, Solution, Target, joint

#: Shares of the budget (of mu^2) for all rounds of second moments and for counts of gradients.
MOMENTS_SHARE, COUNTS_SHARE = 0.12, 0.03
#: The mean of the target, where it is all that the first stage releases, has this standard
#: deviation, for a share between these two.
MEAN_ERROR, MEAN_SHARES = 1.0 / 26.0, (0.02, 0.3)
#: Rounds: at most so many, with a reach of so much; none if a round gains less than 1.
MOST_ROUNDS, REACH = 5, 100.0
#: Ridge: in units of noise over the residuals' spread; the share of the residuals' variance that
#: is taken to be left to explain; and in units of the eigenvalues.
RIDGE, LEFT, LEAST_RIDGE = 4.0, 0.3, 0.01
#: A ridge in units of the least that the loss needs, and squared lengths that it is needed for.
LEAST, LENGTHS = 1.5, 2.0
#: The noise in the prediction of the longest row is at most so many residuals.
PREDICTED = 8.0
#: First guess at the clipping level of a gradient in units of sqrt(d) residuals, and its least.
CLIP, LEAST_CLIP = 2.0, 0.5
#: Share of the coefficients that is always kept: a model of zeros would look like an error.
LEAST_KEPT = 1e-3
#: Bins of gradients in units of sqrt(d) residuals: half octaves; those that noise may have filled
#: are those above the last whose sum with all above it is so many standard deviations.
EDGES: FloatArray = 2.0 ** (np.arange(-10, 15) / 2.0)
EVIDENT = 3.0
#: Rows that are shorter than this, in units of sqrt(d), count as if they were not.
SHORTEST = 0.5


@dataclass(frozen=True, kw_only=True)
class AdaptivePlan(Plan):
    """Noise levels of all releases, and how many rounds of second moments there are."""

    mu: float
    eps_c: float
    mu_output: float
    n_rounds: int
    moment_sigma: float | None
    count_sigma: float | None
    mean_sigma: float | None
    preconditioner: str


@dataclass(frozen=True, kw_only=True)
class AdaptiveObjective(Method):
    """Objective perturbation in coordinates from released values (docs/proofs/adaptive.md)."""

    rounds: int | None = None
    solver: str = "auto"

    name: ClassVar[str] = "adaptive"
    estimator: ClassVar[str] = "AdaptiveRegression"
    chooses: ClassVar[bool] = True
    #: Whether the slope of the loss has one sign for each record, and gradients are counted.
    one_sided: ClassVar[bool] = False
    counts: ClassVar[bool] = True
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"solver": ("auto", "gram", "sketch")}

    def check(self) -> None:
        """Check the parameters."""
        if self.rounds is not None:
            check_integer("rounds", self.rounds, at_least=0, at_most=20)
        super().check()

    def plan(self, sizes: Sizes, target: Target) -> AdaptivePlan:
        """Plan a fit: the shares of all releases from public sizes."""
        one_sided = self.one_sided
        mu = objective_mu(target.epsilon, target.delta, one_sided=one_sided)
        rounds = useful_rounds(sizes, mu) if self.rounds is None else int(self.rounds)
        moment_share = count_share = mean_share = 0.0
        if rounds:
            moment_share = MOMENTS_SHARE / rounds
            count_share = COUNTS_SHARE if self.counts else 0.0
        elif sizes.intercept:
            wanted = (1.0 / (MEAN_ERROR * sizes.n * mu)) ** 2
            mean_share = min(max(wanted, MEAN_SHARES[0]), MEAN_SHARES[1])
        first = rounds * moment_share + count_share + mean_share
        mu, eps_c, mu_gaussian = objective_split(
            target.epsilon, target.delta, first + OUTPUT_SHARE, one_sided=one_sided
        )
        total = math.hypot(mu, mu_gaussian)
        moment, count, mean = (
            1.0 / (math.sqrt(share) * total) if share else None
            for share in (moment_share, count_share, mean_share)
        )
        mu_output = math.sqrt(OUTPUT_SHARE) * total
        events: list[PrivacyEvent] = []
        if mean is not None:
            events.append(target_mean_event(sigma=mean))
        if moment is not None:
            events.append(second_moment_event(sigma=moment, count=rounds))
        if count is not None:
            events.append(residual_event(count))
        events += objective_events(mu, eps_c, mu_output, one_sided=one_sided)
        solver = faster_solver(sizes.n, sizes.d) if self.solver == "auto" else self.solver
        return AdaptivePlan(
            spent=joint(events, target.delta),
            mu=mu,
            eps_c=eps_c,
            mu_output=mu_output,
            n_rounds=rounds,
            moment_sigma=moment,
            count_sigma=count,
            mean_sigma=mean,
            preconditioner=solver,
        )

    def coordinates(self, sizes: Sizes) -> int:
        """Return how many coordinates of noise a fit draws at most: second moments, and more."""
        rounds = MOST_ROUNDS if self.rounds is None else int(self.rounds)
        return super().coordinates(sizes) + rounds * (sizes.d + 2) ** 2

    def solve(self, rows: Rows, plan: AdaptivePlan, clip: float, draws: Draws) -> Solution:
        """Release what the first stage needs, decide, and release the minimiser."""
        steps = plan.n_rounds + 2
        guess = first_stage(rows, plan.n_rounds, plan.moment_sigma, plan.mean_sigma, draws)
        root = math.sqrt(rows.d)
        level = CLIP * root * guess.spread
        ridge = _ridge(plan, level, guess.spread, rows.n, rows.d)
        least = LEAST * least_ridge(plan.eps_c)
        longest = math.sqrt(ridge / least)
        longest = min(longest, PREDICTED * ridge * plan.mu * guess.spread / level)
        longest = max(longest, math.sqrt(LENGTHS) * root)
        if plan.count_sigma is not None:
            draws.progress(steps - 1, steps)
            edges = EDGES * (root * guess.spread)
            counts = noisy_gradient_counts(
                rows,
                guess.center,
                transform=guess.transform,
                least=SHORTEST * root,
                longest=longest,
                edges=edges,
                sigma=plan.count_sigma,
                noise=draws.noise,
            )
            best = best_clip(counts, edges[1:], plan.count_sigma, rows.n, rows.d, plan.mu)
            level = max(LEAST_CLIP * level, level if best is None else best)
            ridge = max(ridge, _ridge(plan, level, guess.spread, rows.n, rows.d))
        draws.progress(steps, steps)
        theta = self._minimiser(rows, plan, draws, guess, level, ridge, longest)
        noise = level / plan.mu
        theta, kept = shrunk(theta, guess, noise, ridge, rows.n)
        chosen = {
            "rounds": plan.n_rounds,
            "residual_spread": guess.spread,
            "gradient_clip": level,
            "ridge": ridge,
            "longest_row": longest,
            "kept": kept,
        }
        return Solution(theta, gradient_noise=noise, chosen=chosen)

    def _minimiser(
        self,
        rows: Rows,
        plan: AdaptivePlan,
        draws: Draws,
        guess: Guess,
        level: float,
        ridge: float,
        longest: float,
    ) -> FloatArray:
        """Release the minimiser in the coordinates of a guess."""
        transform: FloatArray | None = guess.transform
        if not plan.n_rounds:
            # All directions alike: the same objective for rows as they are, of length 1 at most.
            unit, transform = float(guess.transform[0, 0]), None
            level, ridge, longest = level / unit, ridge / unit**2, 1.0
        return noisy_minimiser(
            rows,
            loss=self._loss(plan, level, ridge, longest),
            ridge=ridge,
            mu=plan.mu,
            eps_c=plan.eps_c,
            mu_output=plan.mu_output,
            noise=draws.noise,
            center=guess.center,
            transform=transform,
            least=SHORTEST * math.sqrt(rows.d),
            sketch=plan.preconditioner == "sketch",
            public=draws.public,
        )

    def _loss(self, plan: AdaptivePlan, level: float, ridge: float, longest: float) -> Loss:
        """Return the loss for a clipping level of gradients."""
        return CalibratedHuber(level, ridge, plan.eps_c, longest)

    def forecast(
        self,
        plan: AdaptivePlan,
        n: int,
        eigenvalues: FloatArray,
        theta_squared: FloatArray,
    ) -> Forecast:
        """Return what a planned fit is expected to give: noise, and the bias of the ridge."""
        d = len(eigenvalues)
        typical = 0.8 * SPREAD if plan.n_rounds else SPREAD
        level = CLIP * math.sqrt(d) * typical
        ridge = _ridge(plan, level, typical, n, d)
        hidden = SQUARES * n / d
        if plan.moment_sigma is not None:
            floor = least_eigenvalue(plan.moment_sigma, d + 1)
            hidden = floor * min(1.0, ROOM * (d + 1) * floor / n) ** (plan.n_rounds - 1)
        seen = n * eigenvalues / (eigenvalues + hidden)
        noise = level / plan.mu
        spread = seen / (seen + ridge) ** 2
        left = ridge / (seen + ridge)
        if plan.n_rounds:
            left = left * hidden / (eigenvalues + hidden)
        return Forecast(
            eta=math.sqrt(ridge),
            gradient_noise=noise,
            noise_risk=noise**2 * float(spread.sum()) / n,
            bias_risk=float(eigenvalues @ (left**2 * theta_squared)) / n,
        )


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


def best_clip(
    counts: FloatArray,
    sizes: FloatArray,
    sigma: float,
    n: int,
    d: int,
    mu: float,
    aligned: float = 1.0,
) -> float | None:
    r"""Return the level that balances noise against clipping; None if noise hides all counts.

    Noise of a level L adds :math:`(L/\mu)^2 d/n^2` to the risk, and clipping at most the square of
    the mean of :math:`(g - L)_+` over the gradients g: a share ``aligned`` of that mean, if what is
    clipped does not all point the same way.
    """
    tails = np.cumsum(counts[::-1])[::-1]
    evident = np.flatnonzero(tails > EVIDENT * sigma * np.sqrt(np.arange(len(counts), 0, -1)))
    if not len(evident):
        return None
    known = np.maximum(counts, 0.0)
    known[evident[-1] + 1 :] = 0.0
    clipped = np.maximum(sizes[None, :] - sizes[:, None], 0.0) @ known / n
    risks = (sizes / mu) ** 2 * d / n**2 + (aligned * clipped) ** 2
    return float(sizes[np.argmin(risks)])


def shrunk(
    theta: FloatArray, guess: Guess, noise: float, ridge: float, n: int, curvature: float = 1.0
) -> tuple[FloatArray, float]:
    """Shrink coefficients to the baseline by the share of their energy that noise explains.

    This is the positive part of James and Stein's estimator; the second number is the share kept.
    ``curvature`` is the mean one of the loss.
    """
    eigenvalues = n * curvature * guess.seen
    moved = np.linalg.solve(guess.transform, theta - guess.baseline)
    expected = noise**2 * float(np.sum(eigenvalues / (eigenvalues + ridge) ** 2))
    energy = float(eigenvalues @ moved**2)
    kept = max(LEAST_KEPT, 1.0 - expected / max(energy, 1e-300))
    return guess.baseline + kept * (theta - guess.baseline), kept


def _ridge(plan: AdaptivePlan, level: float, spread: float, n: int, d: int) -> float:
    r"""Return the ridge for coordinates in which every eigenvalue is about n.

    In a direction with the coefficient :math:`\phi` the best ridge is :math:`s/|\phi|` if its
    eigenvalue is small, and :math:`s^2 d/(n v)` if all directions together explain v.
    """
    ratio = level / (plan.mu * spread)
    least = LEAST * least_ridge(plan.eps_c) * d
    needed = max(LENGTHS * least, LEAST_RIDGE * n) if plan.n_rounds else least / SQUARES
    return max(RIDGE * ratio, ratio**2 * d / (n * LEFT), needed)
