"""One fit, from its plan to its solution: what all methods share.

A fit has a fixed order, so that nothing is spent in vain and nothing is released unpaid: the plan
is made from public quantities, the budget is asked, the data are checked and scaled, the plan is
charged, the releases are drawn, and they must be exactly those of the plan.
"""

import math
from dataclasses import dataclass, replace

from fastmix._validation import value_error
from fastmix.accounting import NonPrivateEvent, Part, PrivacySpent
from fastmix.data import Rows
from fastmix.data.scaling import PublicScaling
from fastmix.errors import CalibrationError
from fastmix.mechanisms import noisy_residual_counts
from fastmix.mechanisms.noise import ExactNoise, FloatNoise, Noise
from fastmix.methods.least_squares import least_squares
from fastmix.methods.plan import Draws, Method, Plan, Sizes, Solution, Target
from fastmix.methods.residuals import plan_residuals

#: What rounding may add to the epsilon of a plan.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class LeastSquaresPlan(Plan):
    """No noise at all, for an infinite epsilon."""


def default_delta(delta: float | None, n: int) -> float:
    """Return delta, or 1/n^2 for None."""
    return 1.0 / max(n, 2) ** 2 if delta is None else float(delta)


def plan_fit(
    method: Method, sizes: Sizes, target: Target, *, inference: bool = False, noise: str = "float"
) -> Plan:
    """Plan a fit with everything that is released beside the method's own releases.

    The account of the plan is within the target; an infinite epsilon asks for least squares. For
    ``inference`` counts of residuals are released, which intervals need.
    """
    if inference and not method.infers:
        raise value_error("inference", f"be False for method {method.name!r}", inference)
    if math.isinf(target.epsilon):
        return LeastSquaresPlan(
            spent=PrivacySpent([Part("no privacy", [NonPrivateEvent()], 0.0)]), steps=0
        )
    kind: type[Noise] = ExactNoise if noise == "exact" else FloatNoise
    extra = kind.cost(method.coordinates(sizes))
    within = Target(
        target.epsilon - math.fsum(event.pure_epsilon for event in extra),
        target.delta,
        target.delta / 10.0,
    )
    if inference:
        plan = plan_residuals(lambda less: method.plan(sizes, less), within)
    else:
        plan = method.plan(sizes, within)
    if extra and not plan.is_private:
        raise value_error("noise", f"be 'float' for method {method.name!r}", noise)
    if extra:
        parts = [*plan.spent.parts, Part("discrete noise", extra, 0.0)]
        plan = replace(plan, spent=PrivacySpent(parts), extra=extra)
    spent, most = plan.spent, 1.0 + _ROUNDING
    met = spent.epsilon <= target.epsilon * most and spent.delta <= target.delta * most
    if plan.is_private and not met:
        published = getattr(method, "calibration", None) == "published"
        raise CalibrationError(
            f"noise must meet epsilon={target.epsilon:g} at delta={target.delta:g}; that of "
            f"{method.name} spends {spent.epsilon:g} at delta={spent.delta:g}."
            + (" Use calibration='joint'." if published else "")
        )
    return plan


def solve_fit(
    method: Method, rows: Rows, plan: Plan, scaling: PublicScaling, clip: float, draws: Draws
) -> Solution:
    """Draw the planned releases; refuse a result if anything else was drawn, or anything less."""
    if isinstance(plan, LeastSquaresPlan):
        solution = Solution(least_squares(rows, scaling))
    else:
        solution = method.solve(rows, plan, clip, draws)
    if (sigma := plan.residual_sigma) is not None:
        counts = noisy_residual_counts(
            rows, solution.theta, clip=clip, sigma=sigma, noise=draws.noise
        )
        solution = replace(solution, residuals=counts)
    if plan.is_private and not plan.matches(draws.noise.drawn):
        raise RuntimeError(
            f"the releases of {method.name} differ from the plan that was charged: it drew "
            f"{draws.noise.drawn} where {list(plan.spent.events)} were planned. Nothing is "
            "returned, and the charge stands. A method draws all that it planned, by draws.noise."
        )
    if solution.theta.shape != (rows.d,):
        raise RuntimeError(f"theta must have shape {(rows.d,)}; got shape {solution.theta.shape}.")
    return solution
