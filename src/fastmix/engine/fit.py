"""One fit, from its plan to its solution: what all methods share.

A fit checks before it charges, and charges before it draws noise: plan from public quantities, ask
the budget, check and scale the data, charge the plan, draw the releases, and compare them with the
plan.
"""

import math
from bisect import bisect_right
from dataclasses import replace
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.accounting import (
    NonPrivateEvent,
    Part,
    PrivacySpent,
    gaussian_epsilon,
    gaussian_sigma,
)
from fastmix.data import ChunkRows, Rows
from fastmix.data.scaling import PublicScaling
from fastmix.engine.layers import Count
from fastmix.engine.plan import Draws, Method, Plan, Sizes, Solution, Target
from fastmix.errors import CalibrationError, DataError
from fastmix.releases import RESIDUAL_COUNTS, SIZE, TOTAL_WEIGHT, UNLISTED, symmetric_solve
from fastmix.releases.noise import Noise

#: What rounding may add to the epsilon of a plan.
_ROUNDING = 1e-9
#: The part of an account that is for the number of rows.
COUNTED = "number of rows"
#: The part of an account that is for the check of labels.
LISTED = "check of labels"
#: Scales of noise that bound the number of rows, for rounding.
_SAFE = 64.0
#: An unlisted level has rows of its own if its released count is this many standard deviations.
EVIDENT = 5.0
#: Share of epsilon that pays for the number of rows where it is not public.
SIZE_SHARE = 0.02
#: Share of epsilon that pays for the check of labels, and the scales of noise by which labels must
#: fall short: a table with enough of them is refused with probability e^-4 / 2, below 1%.
LABEL_SHARE, SHORT = 0.02, 4.0
#: Numbers of rows that fits are planned for where the number is not public: quarter octaves, so
#: that a budget can be checked for all of them before the number is released.
PLANNED_ROWS = tuple(sorted({round(2.0 ** (k / 4.0)) for k in range(137)}))
#: Share of the squared signal-to-noise ratio that pays for the counts of residuals.
_RESIDUAL_SHARE = 0.05


class LeastSquaresPlan(Plan):
    """No noise at all, for an infinite epsilon."""


def default_delta(delta: float | None, n: int) -> float:
    """Return delta, or 1/n^2 for None."""
    return 1.0 / max(n, 2) ** 2 if delta is None else float(delta)


def plan_fit(
    method: Method,
    sizes: Sizes,
    target: Target,
    *,
    inference: bool = False,
    score_share: float = 0.0,
    min_listed: float = 0.0,
) -> Plan:
    """Plan a fit: the method's own releases, and those that the population and the user ask for.

    The account of the plan is within the target; an infinite epsilon asks for least squares.
    ``inference`` adds counts of residuals, which intervals need, and ``score_share`` a score of the
    same rows, such as R^2. ``min_listed`` above 0 adds a check of labels before the fit.
    """
    asked: Any = {"inference": inference, "score_share": score_share}
    sizes.population.check(method, epsilon=target.epsilon, **asked)
    if math.isinf(target.epsilon):
        return LeastSquaresPlan(
            spent=PrivacySpent([Part("no privacy", [NonPrivateEvent()], 0.0)]), steps=0
        )
    size_scale, label_scale, first = None, None, []
    if sizes.hidden:
        size_scale = (1.0 + _ROUNDING) / (SIZE_SHARE * target.epsilon)
        sizes = sizes._replace(n=PLANNED_ROWS[bisect_right(PLANNED_ROWS, sizes.n) - 1])
        first.append(Part(COUNTED, (SIZE.event(size_scale),), 0.0))
    if min_listed:
        label_scale = (1.0 + _ROUNDING) / (LABEL_SHARE * target.epsilon)
        first.append(Part(LISTED, (UNLISTED.event(label_scale),), 0.0))
    within = Target(
        target.epsilon - math.fsum(event.pure_epsilon for part in first for event in part.events),
        target.delta,
        target.delta / 10.0,
        score_share,
        target.order,
    )
    plan = _inferring(method, sizes, within) if inference else method.plan(sizes, within)
    if first:
        spent = PrivacySpent((*first, *plan.spent.parts))
        plan = replace(plan, spent=spent, size_scale=size_scale, label_scale=label_scale)
    _check_met(method, plan, target)
    return plan


def _check_met(method: Method, plan: Plan, target: Target) -> None:
    """Reject a private plan that spends more than its target."""
    spent, most = plan.spent, 1.0 + _ROUNDING
    met = spent.epsilon <= target.epsilon * most and spent.delta <= target.delta * most
    if plan.is_private and not met:
        published = getattr(method, "calibration", None) == "published"
        raise CalibrationError(
            f"noise must meet epsilon={target.epsilon:g} at delta={target.delta:g}; that of "
            f"{method.name} spends {spent.epsilon:g} at delta={spent.delta:g}."
            + (" Use calibration='joint'." if published else "")
        )


def sized(rows: Any, plan: Plan, noise: Noise) -> Any:
    r"""Release the number of records, and return the rows with the released number as theirs.

    Rounding errors are bounded for the released number plus 64 scales of noise; the true number
    exceeds that with probability :math:`e^{-64}/2`.
    """
    return with_size(rows, plan.size_scale or math.nan, noise)


def with_size(rows: Any, scale: float, noise: Noise) -> Any:
    """Release the number of records with noise of this scale; several classes have the same."""
    n = noise.release(SIZE, one_view(rows), sigma=scale)
    return rows.counted(n, n + math.ceil(_SAFE * scale))


def with_weight(rows: Any, sigma: float, noise: Noise) -> tuple[Any, float]:
    """Release the sum of the weights, and return the rows with it as their number."""
    total = noise.release(TOTAL_WEIGHT, one_view(rows), sigma=sigma)
    return rows.counted(round(total)), total


def check_labels(rows: Any, plan: Plan, share: float, noise: Noise, *, whole: bool) -> None:
    """Release how many listed labels a share of the records lacks, and stop if that is evident.

    ``whole`` says that the whole fit was charged before, not only this release.
    """
    scale = plan.label_scale or math.nan
    if noise.release(UNLISTED, one_view(rows), share=share, sigma=scale) > SHORT * scale:
        cost = "the whole fit" if whole else f"{LABEL_SHARE:.0%} of epsilon"
        raise DataError(
            f"fewer than {share:.0%} of the records have a label of the public list, by a noisy "
            f"count. The fit stopped after this count and released nothing else; the charge is for "
            f"{cost}. Compare the list with the spelling of the labels in the table: 'fastmix "
            "check' does, for your eyes only. To fit nevertheless, set min_listed (--min-listed) "
            "to 0."
        )


def one_view(rows: Any) -> Rows:
    """Return the rows with their first target, where they have one for each class."""
    first: Rows = getattr(rows, "targets", (rows,))[0]
    return first


def count_of(rows: Any, size_scale: float | None, weight_sigma: float | None) -> Count | None:
    """Return the released number of records with its noise; None where the number is public."""
    if size_scale is None and weight_sigma is None:
        return None
    return Count(float(rows.n), size_scale or 0.0, weight_sigma or 0.0)


def _inferring(method: Method, sizes: Sizes, target: Target) -> Plan:
    """Plan what intervals need: by the method itself, or counts of residuals beside it."""
    plan: Plan | None = method.inferring_plan(sizes, target)
    return _with_residuals(method, sizes, target) if plan is None else plan


def _with_residuals(method: Method, sizes: Sizes, target: Target) -> Plan:
    """Plan counts of residuals too, from which standard errors take the spread of the errors.

    A method with a joint account takes their event into it; one with several parts gets one part
    more, of a tenth of the budget.
    """
    epsilon, delta = target.epsilon, target.delta
    # The Gaussian release that would spend the same stands for the method when shares are set.
    ratio = 1.0 / gaussian_sigma(epsilon, delta)
    sigma = 1.0 / (math.sqrt(_RESIDUAL_SHARE) * ratio)
    level = gaussian_epsilon(1.0, delta, math.sqrt(1.0 - _RESIDUAL_SHARE) * ratio) * (1.0 - 1e-3)
    least = 1e-3 * epsilon  # below it delta alone allows nearly all of the noise
    for attempt in range(30):
        plan: Plan = method.plan(sizes, target._replace(epsilon=max(level, least)))
        if len(plan.spent.parts) > 1:
            share = math.nextafter(delta / 10.0, 0.0)
            sigma = gaussian_sigma(epsilon / 10.0 * (1.0 - 1e-9), share)
            plan = method.plan(sizes, target._replace(epsilon=epsilon * 0.9, delta=delta * 0.9))
            parts = [*plan.spent.parts, Part("residuals", [RESIDUAL_COUNTS.event(sigma)], share)]
            return replace(plan, spent=PrivacySpent(parts), residual_sigma=sigma)
        (part,) = plan.spent.parts
        spent = PrivacySpent([Part(part.name, [*part.events, RESIDUAL_COUNTS.event(sigma)], delta)])
        if spent.epsilon <= epsilon and (spent.epsilon >= 0.99 * epsilon or attempt > 5):
            return replace(plan, spent=spent, residual_sigma=sigma)
        if level < least:
            break
        level *= epsilon / spent.epsilon * (1.0 - 1e-3)
    raise CalibrationError(
        f"inference must leave a budget for the method; none was found at epsilon={epsilon:g}."
    )


def solve_fit(
    method: Method, rows: Rows, plan: Plan, scaling: PublicScaling, clip: float, draws: Draws
) -> Solution:
    """Draw the planned releases; refuse a result if anything else was drawn, or anything less."""
    counted = rows
    if isinstance(plan, LeastSquaresPlan):
        solution = Solution(_not_private(method, rows, scaling, clip))
    else:
        released = {}
        if (sigma := plan.weight_sigma) is not None:
            counted, total = with_weight(rows, sigma, draws.noise)
            released = {"mean_weight": total / rows.n}
        solution = _listed(method.solve(counted, plan, clip, draws), rows)
        if released:
            solution = replace(solution, chosen={**(solution.chosen or {}), **released})
    if (sigma := plan.residual_sigma) is not None:
        theta, noise = solution.theta, draws.noise
        counts = noise.release(RESIDUAL_COUNTS, rows, theta=theta, clip=clip, sigma=sigma)
        solution = replace(solution, residuals=counts)
    if (sigma := plan.score_sigma) is not None:
        scoring = method.scoring()
        given = solution.theta, scoring.scored, sigma, draws.noise
        known = count_of(counted, plan.size_scale, plan.weight_sigma)
        scores = scoring.counted(scoring.release(counted, *given), known)
        solution = replace(solution, scores=scores)
    if plan.is_private and not plan.matches(draws.noise):
        names = [entry.release.name for entry in draws.noise.transcript if entry.release]
        raise RuntimeError(
            f"the releases of {method.name} differ from the plan that was charged: it released "
            f"{', '.join(names)}, and drew {draws.noise.drawn} where {list(plan.spent.events)} "
            "were planned. Nothing is returned, and the charge stands. A method draws all that it "
            "planned, by draws.noise."
        )
    if solution.theta.shape != (shape := (method.outputs * rows.d,)):
        raise RuntimeError(f"theta must have shape {shape}; got shape {solution.theta.shape}.")
    return solution


def _listed(solution: Solution, rows: Rows) -> Solution:
    """Move effects of unlisted levels into the range of their category's listed levels.

    A level that evidently has rows keeps its effect. With terms, an unlisted level becomes a mean
    of the listed ones, so that predictions are in the range whatever the numbers are.
    """
    known = rows.categories
    if known is None or not any(known.unlisted):
        return solution
    theta = solution.theta.reshape(-1, rows.d // len(getattr(rows, "targets", "1"))).copy()
    for number, blocks in enumerate(known.unlisted):
        counts, evident = None, False
        if solution.levels is not None and solution.level_errors is not None:
            counts = solution.levels[number]
            evident = counts[-1] >= EVIDENT * solution.level_errors[number][-1]
        if not blocks or evident:
            continue
        weights = np.ones(len(blocks[0])) if counts is None else counts[:-1] + 1.0
        for own in theta:
            effects = np.append(0.0, own[list(blocks[0][:-1])])
            own[blocks[0][-1]] = np.clip(own[blocks[0][-1]], effects.min(), effects.max())
            for columns in blocks if len(blocks) > 1 else ():
                own[columns[-1]] = weights[1:] @ own[list(columns[:-1])] / weights.sum()
    return replace(solution, theta=theta.ravel())


def _not_private(method: Method, rows: Rows, scaling: PublicScaling, clip: float) -> FloatArray:
    """Return the coefficients without privacy: by the method's own family, or least squares."""
    theta = method.exact(rows, clip)
    return _least_squares(rows, scaling) if theta is None else theta


def _least_squares(rows: Rows, scaling: PublicScaling) -> FloatArray:
    """Solve the clipped problem without privacy and return scaled coefficients."""
    from sklearn.linear_model import LinearRegression  # half a second, for this function only

    if isinstance(rows, ChunkRows):
        return symmetric_solve(*rows.moments())
    A, y = (np.concatenate(parts) for parts in zip(*rows.blocks(), strict=True))
    public = scaling.row_map
    intercept = public.constant > 0.0
    d = rows.d - intercept
    # Back in the user's units, so that a rank-deficient problem has scikit-learn's solution.
    unit = public.divisor * np.ones(d)
    if public.scale is not None:
        unit *= np.where(np.isfinite(public.scale), public.scale, 0.0)
    model = LinearRegression(fit_intercept=intercept).fit(A[:, :d] * unit, y)
    theta: FloatArray = model.coef_ * unit
    if intercept:
        theta = np.append(theta, model.intercept_ * public.divisor / public.constant)
    return theta
