r"""The adaptive fit of a table with categories, from top to bottom.

Levels are counted once, numbers have second moments of their own, and both make coordinates in
which the blocks of columns are round (`geometry`). A few noisy gradient steps from the fit of the
numbers alone give a first fit; counts of gradients around it give the clipping level; the minimiser
of a perturbed objective is the fit. With intervals, its curvature is released last
(docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from fastmix._types import FloatArray
from fastmix.accounting import PrivacyEvent, objective_split
from fastmix.data import Rows
from fastmix.engine.adaptive_noise import AdaptivePlan
from fastmix.engine.clipping import (
    CLIP,
    EDGES,
    LEAST_CLIP,
    SHORTEST,
    best_clip,
    chosen_levels,
    ridge_for,
    typical_gradient,
)
from fastmix.engine.first_stage import FIRST, LEAST_VARIANCE, ROOM, least_eigenvalue, rounded
from fastmix.engine.geometry import Geometry, geometry
from fastmix.engine.objective import OUTPUT_SHARE, WEIGHT_SHARE, squares
from fastmix.engine.plan import Draws, Sizes, Solution, Target, joint
from fastmix.engine.table_inference import Released, inferred, pooled, seen_columns
from fastmix.releases import (
    CURVATURE,
    CURVATURES,
    GRADIENT_COUNTS,
    LEVEL_COUNTS,
    MINIMISER,
    NUMBER_MOMENTS,
    RESIDUAL_COUNTS,
    SLOPES,
    SQUARES,
    TOTAL_WEIGHT,
)
from fastmix.schema.categories import Categories

#: Shares of the budget (of mu^2): counts of levels, moments of numbers, steps, counts of gradients;
#: with intervals, curvature and squares of gradients. Chosen on Black Friday, King County and
#: Rossmann.
LEVELS_SHARE, NUMBERS_SHARE, STEPS_SHARE, COUNTS_SHARE = 0.03, 0.06, 0.10, 0.03
CURVATURE_SHARE, SQUARES_SHARE = 0.20, 0.03
#: Moments of the target alone, where there are no numbers.
TARGET_SHARE = 0.02
#: Rounds of moments of numbers, and steps of the first fit with their length and momentum.
ROUNDS, STEPS, STEP, MOMENTUM = 3, 3, 0.6, 0.3
#: The noise of a step in units of the target's spread, up to which steps pay.
MOST_NOISE = 1.1
#: Bins of gradients count up to the last whose count, or sum with all above it, is this many
#: standard deviations of noise.
EVIDENT = 2.5
#: Share of the residuals' variance that is left to explain after the first fit.
LEFT = 1.0
#: The least ridge in units of n.
FLOOR = 0.002
#: Squared lengths up to which curvatures count in full, in units of their mean.
SQUARE_LENGTHS = 1.5


def pays(sizes: Sizes, mu: float) -> bool:
    """Whether a table has categories and, by its public sizes, rows enough for steps."""
    if not sizes.categories or not sizes.intercept:
        return False
    noise = CLIP * sizes.d * math.sqrt(STEPS / STEPS_SHARE) / (mu * sizes.n)
    return STEP * noise <= MOST_NOISE


def table_plan(sizes: Sizes, target: Target, scoring: Any, *, inferring: bool) -> AdaptivePlan:
    """Plan the releases of `solve_table` from public sizes."""
    numbers = sizes.d - 1 - sum(sizes.categories)
    form: Any = {"one_sided": False, "rows_per_person": sizes.rows_per_person or 1}
    rounds = ROUNDS if numbers else 1
    shares = {
        "weight": WEIGHT_SHARE if sizes.weighted else 0.0,
        "level": LEVELS_SHARE,
        "moment": NUMBERS_SHARE if numbers else TARGET_SHARE,
        "step": STEPS_SHARE,
        "count": COUNTS_SHARE,
        "curvature": CURVATURE_SHARE if inferring else 0.0,
        "square": SQUARES_SHARE if inferring else 0.0,
        "score": target.reserved,
        "output": OUTPUT_SHARE,
    }
    mu, eps_c, mu_gaussian = objective_split(
        target.epsilon, target.delta, sum(shares.values()), **form
    )
    total = math.hypot(mu, mu_gaussian)
    repeats = {"moment": rounds, "step": STEPS}
    sigma = {
        name: math.sqrt(repeats.get(name, 1)) / (math.sqrt(share) * total) if share else None
        for name, share in shares.items()
    }
    mu_output = math.sqrt(OUTPUT_SHARE) * total
    releases = {
        "weight": TOTAL_WEIGHT,
        "level": LEVEL_COUNTS,
        "moment": NUMBER_MOMENTS,
        "step": SLOPES,
    }
    releases |= {"count": RESIDUAL_COUNTS, "curvature": CURVATURE, "square": SQUARES}
    events: list[PrivacyEvent] = [
        release.event(level, repeats.get(name, 1))
        for name, release in releases.items()
        if (level := sigma[name]) is not None
    ]
    events += MINIMISER.events(mu, eps_c, mu_output, **form)
    if (score := sigma["score"]) is not None:
        events += scoring.events(scoring.scored, score)
    return AdaptivePlan(
        spent=joint(events, target.delta),
        rows_per_person=sizes.rows_per_person,
        weight_sigma=sigma["weight"],
        mu=mu,
        eps_c=eps_c,
        mu_output=mu_output,
        n_rounds=rounds,
        level_sigma=sigma["level"],
        moment_sigma=sigma["moment"],
        step_sigma=sigma["step"],
        count_sigma=sigma["count"],
        mean_sigma=None,
        line_sigma=None,
        preconditioner="gram",
        score_sigma=score,
        curvature_sigma=sigma["curvature"],
        square_sigma=sigma["square"],
    )


def solve_table(rows: Rows, plan: AdaptivePlan, draws: Draws) -> Solution:
    """Look, decide, release the minimiser, and with intervals what they need."""
    assert rows.categories is not None
    n, d, persons = rows.n, rows.d, plan.rows_per_person or 1
    look = _look(rows, rows.categories, plan, draws)
    root = math.sqrt(d)
    least = SHORTEST * root
    levels = chosen_levels(
        plan, CLIP * root * look.spread, look.spread, n, d, left=LEFT, floor=FLOOR
    )
    longest = levels.longest
    first = _steps(rows, look, plan, draws, longest, least)
    clip, spread = _clip(rows, first, look, plan, draws, longest, least)
    clip = max(LEAST_CLIP * levels.clip, clip)
    ridge = max(levels.ridge, ridge_for(plan, clip, spread, n, d, LEFT, FLOOR))
    loss = squares(clip, ridge, plan.eps_c, longest, rows_per_person=persons)
    transform = look.coordinates.transform
    theta: FloatArray = draws.noise.release(
        MINIMISER,
        rows,
        loss=loss,
        ridge=ridge,
        mu=plan.mu,
        eps_c=plan.eps_c,
        mu_output=plan.mu_output,
        center=first,
        transform=transform,
        least=least,
        rows_per_person=persons,
    )
    chosen = {
        "rounds": plan.n_rounds,
        "residual_spread": spread,
        "gradient_clip": clip,
        "ridge": ridge,
        "longest_row": longest,
        "kept": 1.0,
    }
    noise = clip / plan.mu
    released = Released(first, theta, noise, ridge, n, look.count_noise)
    intervals = None
    if plan.curvature_sigma is not None and plan.square_sigma is not None:
        weights = look.coordinates.weights
        square = SQUARE_LENGTHS * float(np.sum(weights**2))
        curvature, gradients = draws.noise.release(
            CURVATURES,
            rows,
            theta=theta,
            loss=loss,
            transform=transform,
            least=least,
            square=square,
            weights=weights,
            sigma=(plan.curvature_sigma, plan.square_sigma),
        )
        scales = plan.curvature_sigma * square, plan.square_sigma * clip**2
        theta, intervals = inferred(released, look.coordinates, curvature, gradients, *scales)
        known = seen_columns(released, look.coordinates, rows.categories)
        intervals = intervals._replace(known=known)
    theta = pooled(theta, released, look.coordinates, rows.categories)
    counts = tuple(n * p for p in look.coordinates.shares)
    return Solution(
        theta,
        gradient_noise=noise,
        chosen=chosen,
        intervals=intervals,
        levels=counts,
        level_noise=look.count_noise,
    )


class Look(NamedTuple):
    """What is known before the first step.

    ``start`` are coefficients that use the numbers alone, ``spread`` is the standard deviation of
    their residuals, and ``count_noise`` that of the count of a level.
    """

    coordinates: Geometry
    start: FloatArray
    spread: float
    count_noise: float


def _look(rows: Rows, categories: Categories, plan: AdaptivePlan, draws: Draws) -> Look:
    """Release counts of levels and second moments of numbers and target, and read them."""
    assert plan.level_sigma is not None
    d = rows.d
    counts = draws.noise.release(LEVEL_COUNTS, rows, categories=categories, sigma=plan.level_sigma)
    ends = np.cumsum([1 + len(columns) for columns in categories.columns])[:-1]
    shares = tuple(level_shares(each) for each in np.split(counts, ends))
    columns = [*categories.numbers(d), d - 1]
    moments = _number_moments(rows, [*columns, d], categories.unit, plan, draws)
    coordinates = geometry(categories, shares, moments[:-1, :-1], rows.constant, d)
    start = np.zeros(d)
    start[columns] = np.linalg.solve(moments[:-1, :-1], moments[:-1, -1])
    variance = float(moments[-1, -1] - moments[-1, :-1] @ start[columns])
    spread = math.sqrt(min(max(variance, 1e-6), 1.0))
    noise = plan.level_sigma * math.sqrt(len(categories.columns))
    return Look(coordinates, start, spread, noise)


def level_shares(counts: FloatArray) -> FloatArray:
    """Return the shares of the levels of a category; equal ones where noise hides all counts."""
    known = np.maximum(counts, 0.0)
    return np.asarray(known / known.sum() if known.any() else np.full(len(known), 1.0 / len(known)))


def _number_moments(
    rows: Rows, columns: list[int], unit: float, plan: AdaptivePlan, draws: Draws
) -> FloatArray:
    """Release mean second moments of some columns and the target, in ever rounder coordinates."""
    assert plan.moment_sigma is not None
    size, n = len(columns), rows.n
    floor = least_eigenvalue(plan.moment_sigma, size)
    # No entry is larger than the unit, so that rows with their target are shorter than 1.
    units = np.full(size, FIRST / math.sqrt(2.0 * (size - 1)) / unit)
    units[-1] = FIRST / math.sqrt(2.0)
    inner = np.diag(units)
    for step in range(plan.n_rounds):
        draws.progress(step + 1, plan.n_rounds + 2)
        transform = np.zeros((rows.d + 1, rows.d + 1))
        transform[np.ix_(columns, columns)] = inner
        moments = draws.noise.release(
            NUMBER_MOMENTS, rows, transform=transform, columns=columns, sigma=plan.moment_sigma
        )
        values, vectors = np.linalg.eigh(moments)
        evident = np.maximum(values, 0.0)
        back = solve_triangular(inner, vectors, trans=1)
        whole = (back * (evident + floor)) @ back.T / n + LEAST_VARIANCE * np.eye(size)
        directions = max(1.0, float(np.sum(evident / (evident + floor))))
        inner = rounded(whole) / math.sqrt(ROOM * directions)
    return np.asarray(whole)


def _steps(
    rows: Rows, look: Look, plan: AdaptivePlan, draws: Draws, longest: float, least: float
) -> FloatArray:
    """Release a few gradients from the fit of the numbers on, and return a first fit."""
    assert plan.step_sigma is not None
    n, d, K = rows.n, rows.d, look.coordinates.transform
    clip = CLIP * math.sqrt(d) * look.spread
    # A squared loss with slopes that end at the clipping level, which needs no ridge.
    loss = squares(clip, 1e6 * longest**2, 1.0, longest)
    phi, move = np.zeros(d), np.zeros(d)
    for _ in range(STEPS):
        gradient = draws.noise.release(
            SLOPES,
            rows,
            theta=look.start + K @ phi,
            loss=loss,
            transform=K,
            least=least,
            sigma=plan.step_sigma,
        )
        move = MOMENTUM * move + STEP * gradient / n
        phi = phi + move
    # The positive part of James and Stein's estimator: noise of the steps is taken off.
    expected = d * (1.0 + MOMENTUM) * (STEP * plan.step_sigma * clip / n) ** 2
    kept = max(0.0, 1.0 - expected / max(float(phi @ phi), 1e-300))
    return np.asarray(look.start + kept * (K @ phi))


def _clip(
    rows: Rows,
    first: FloatArray,
    look: Look,
    plan: AdaptivePlan,
    draws: Draws,
    longest: float,
    least: float,
) -> tuple[float, float]:
    """Release counts of gradients, and return the clipping level and the spread of residuals."""
    assert plan.count_sigma is not None
    root = math.sqrt(rows.d)
    edges = EDGES * (root * look.spread)
    # Targets are in [-1, 1], so that hardly any gradient is longer: empty bins add noise only.
    edges = edges[: max(3, int(np.searchsorted(edges, 2.0 * longest)) + 1)]
    counts = draws.noise.release(
        GRADIENT_COUNTS,
        rows,
        theta=first,
        transform=look.coordinates.transform,
        least=least,
        longest=longest,
        edges=edges,
        loss=None,
        sigma=plan.count_sigma,
    )
    spread = min(typical_gradient(counts, edges, rows.n) / root, look.spread)
    given = plan.count_sigma, rows.n, rows.d, plan.mu
    best = best_clip(counts, edges[1:], *given, evident=EVIDENT, single=True)
    return CLIP * root * look.spread if best is None else best, spread
