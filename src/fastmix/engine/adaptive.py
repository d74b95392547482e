"""The engine: an adaptive private fit, from its plan to its solution.

A first look spends a small share of the budget on noisy second moments of features and target,
again and again in coordinates that the round before has made rounder, and on counts of gradients.
Everything about the main release, the minimiser of a perturbed objective, is chosen from them.
Where there are too few rows for that, by public sizes, the look is at mean and spread of the
target. Tables with categories have a look of their own (`table_fit`). What differs between losses
is asked of the `Family` (docs/proofs/adaptive.md).
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING

from fastmix._types import FloatArray
from fastmix.accounting import objective_mu
from fastmix.data import Rows
from fastmix.engine import adaptive_inference as inference
from fastmix.engine import table_fit
from fastmix.engine.adaptive_plan import AdaptivePlan, divided
from fastmix.engine.clipping import SHORTEST
from fastmix.engine.first_stage import ROOM, Guess, first_stage, least_eigenvalue
from fastmix.engine.inference import Intervals
from fastmix.engine.last_stage import Decided
from fastmix.engine.objective import chosen_solver
from fastmix.engine.plan import Draws, Sizes, Solution, Target
from fastmix.kernels import NATIVE, one_blas_thread
from fastmix.kernels.mapped import FEW_COLUMNS
from fastmix.releases import MINIMISER

if TYPE_CHECKING:
    from fastmix.engine.family import Family

#: Share of the budget (of mu^2) for all rounds of second moments.
MOMENTS_SHARE = 0.12
#: Without rounds, the standard deviation of the released mean of the target, and the smallest and
#: largest share of the budget that it takes.
MEAN_ERROR, MEAN_SHARES = 1.0 / 26.0, (0.02, 0.3)
#: The largest number of rounds, and the ratio of eigenvalues that they must tell apart.
MOST_ROUNDS, REACH = 5, 100.0


def plan_adaptive(family: Family, sizes: Sizes, target: Target, *, inferring: bool) -> AdaptivePlan:
    """Plan the releases of `fit_adaptive` from public sizes."""
    persons = sizes.rows_per_person or 1
    mu = objective_mu(
        target.epsilon, target.delta, one_sided=family.one_sided, rows_per_person=persons
    )
    table = family.tables and family.rounds is None
    if table and table_fit.pays(sizes, mu, squares=family.squares):
        return table_fit.table_plan(family, sizes, target, inferring=inferring)
    rounds = useful_rounds(sizes, mu) if family.rounds is None else int(family.rounds)
    if inferring and rounds and family.rounds is None:
        rounds = max(rounds, family.least_rounds)
    shares = family.shares(sizes, mu, rounds, inferring=inferring)
    if rounds:
        shares["moment"] = MOMENTS_SHARE
    elif sizes.intercept:
        wanted = (1.0 / (MEAN_ERROR * sizes.n * mu)) ** 2
        shares["mean"] = min(max(wanted, MEAN_SHARES[0]), MEAN_SHARES[1])
    if inferring:
        shares.setdefault("curvature", inference.CURVATURE_SHARE)
        shares.setdefault("square", inference.SQUARES_SHARE)
    solver = chosen_solver(family.solver, sizes)
    if family.solver == "auto" and rounds:
        solver = "gram"  # which is known before the solver starts
    return divided(
        sizes,
        target,
        shares,
        repeats={"moment": rounds, "curvature": family.curvature_rounds},
        scoring=family.scoring(),
        one_sided=family.one_sided,
        rounds=rounds,
        preconditioner=solver,
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


def fit_adaptive(
    family: Family, rows: Rows, plan: AdaptivePlan, clip: float, draws: Draws
) -> Solution:
    """Look, decide, release the minimiser, and finish: with intervals, or by shrinkage."""
    # BLAS gets only moments of few columns, which one of its threads handles fastest.
    with one_blas_thread() if NATIVE and rows.d < FEW_COLUMNS else nullcontext():
        if plan.level_sigma is not None:
            return table_fit.solve_table(family, rows, plan, clip, draws)
        return after_look(
            family, rows, plan, clip, draws, look(rows, plan, draws, labels=family.labels)
        )


def look(rows: Rows, plan: AdaptivePlan, draws: Draws, *, labels: bool = False) -> Guess:
    """Release the first look, which depends only on whether targets are ``labels``."""
    sigmas = plan.moment_sigma, plan.mean_sigma
    return first_stage(rows, plan.n_rounds, *sigmas, draws, labels=labels)


def after_look(
    family: Family, rows: Rows, plan: AdaptivePlan, clip: float, draws: Draws, guess: Guess
) -> Solution:
    """Decide, release the minimiser, and finish."""
    steps = plan.n_rounds + 2
    guess = family.guess(guess, rows, plan.n_rounds)
    draws.progress(steps - 1, steps)
    guess, levels = family.levels(rows, plan, guess, clip, draws)
    draws.progress(steps, steps)
    fit = Decided(rows, plan, guess, levels, draws)
    theta, intervals = _minimiser(family, fit), None
    if plan.curvature_sigma is None:
        theta, last = family.finished(fit, theta)
        if plan.intervals_hidden:
            intervals = inference.unknown(guess, family.size(rows.d))
    else:
        theta, last, intervals = family.inferred(fit, theta)
    chosen = {"rounds": plan.n_rounds, **family.chosen(guess, levels), **last}
    return Solution(theta, gradient_noise=fit.noise, chosen=chosen, intervals=intervals)


def _minimiser(family: Family, fit: Decided) -> FloatArray:
    """Release the minimiser of the perturbed objective in the coordinates of the guess."""
    rows, plan, guess, levels, draws = fit
    transform: FloatArray | None = guess.transform
    if not plan.n_rounds:
        # All directions alike: the same objective for rows as they are, of length 1 at most.
        unit, transform = float(guess.transform[0, 0]), None
        levels = levels._replace(clip=levels.clip / unit, ridge=levels.ridge / unit**2, longest=1.0)
    theta: FloatArray = draws.noise.release(
        MINIMISER,
        rows,
        loss=family.loss(plan, levels),
        ridge=levels.ridge,
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


def inferred(
    family: Family, fit: Decided, theta: FloatArray
) -> tuple[FloatArray, dict[str, float], Intervals]:
    """Release the curvature, take the pull of the ridge off, and finish as without intervals."""
    rows, plan, guess, levels, draws = fit
    assert plan.curvature_sigma is not None
    assert plan.square_sigma is not None
    n, d, curvature = rows.n, rows.d, family.curvature(guess)
    most = curvature * inference.most_square(plan.curvature_sigma, n, d, family.noisy)
    known = inference.Known(
        fit.noise, levels.ridge, n * curvature, size=family.size(d), clipped=levels.clipped
    )
    look = inference.looked(
        rows,
        draws,
        sigma=(plan.curvature_sigma, plan.square_sigma),
        square=min(levels.longest**2, most),
        lipschitz=levels.clip,
        whole=known.whole,
        transform=guess.transform,
        theta=theta,
        loss=family.loss(plan, levels),
        least=SHORTEST * math.sqrt(d),
    )
    found = inference.corrected(theta, guess, look, known)
    theta = guess.center + guess.transform @ (look.vectors @ found.along)
    theta, last = family.finished(fit, theta)
    intervals = inference.intervals_of(theta, guess, found, look, known, last["kept"])
    if rows.persons is not None:  # squares of sums of residuals tell no variance of one
        intervals = intervals._replace(sure=False)
    return theta, last, intervals
