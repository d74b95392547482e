"""Objective perturbation: one release, the minimiser of a perturbed objective."""

import math
from dataclasses import dataclass
from typing import ClassVar

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.data import Rows
from fastmix.engine.choice import chosen_split
from fastmix.engine.plan import Draws, Forecast, Method, Plan, Sizes, Solution, Target, joint
from fastmix.kernels.losses import (
    CalibratedHuber,
    LinearHuber,
    least_person_ridge,
    least_ridge,
)
from fastmix.releases import MINIMISER, TOTAL_WEIGHT

#: Share of the budget for the noise on the minimiser, which hides that it is inexact.
OUTPUT_SHARE = 0.0025
#: Share of the budget for the sum of sample weights, which takes the place of n.
WEIGHT_SHARE = 0.02
#: The ridge in units of the noise of the objective, and at least in units of the least allowed.
_RIDGE, _LEAST = 0.3, 1.05
#: The least ridge that methods choose, in units of what the loss needs and of the curvature of a
#: row.
_ROUNDED, _SHARPEST = 1.0 + 2.0**-30, 1e-3
#: The smallest ridge for which the solver surely arrives in reasonable time, and one beyond which
#: numbers could overflow.
_SMALLEST, _LARGEST = 1e-13, 1e100
#: What the features are taken to explain, as a share of the squared half width of the target's
#: bounds, where nothing is known: s^2 d / (n v) is then the best ridge for a flat spectrum.
_EXPLAINED = 0.1
#: Costs in units of that of a Gram matrix, n d^2 (`benchmarks/solver.py`): the other passes of a
#: solver with it, per n d; those of a solver with a sketch; and the sketch's Gram matrix, per d^3.
_GRAM_PASSES, _SKETCH_PASSES, _SKETCH = 300.0, 1100.0, 5.0


@dataclass(frozen=True, kw_only=True)
class ObjectivePlan(Plan):
    """Noise of the objective and of its minimiser, and what preconditions the solver."""

    mu: float
    eps_c: float
    mu_output: float
    preconditioner: str


@dataclass(frozen=True, kw_only=True)
class PerturbedObjective(Method):
    """Objective perturbation with the calibrated Huber loss (docs/proofs/objective.md)."""

    ridge: float | None = None
    solver: str = "auto"
    residual_clip: float | None = None

    name: ClassVar[str] = "objective"
    estimator: ClassVar[str] = "ObjectivePerturbation"
    clips: ClassVar[bool] = True
    last_step: ClassVar[float] = 4.0
    persons: ClassVar[bool] = True
    weights: ClassVar[bool] = True
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"solver": ("auto", "gram", "sketch")}

    def check(self) -> None:
        """Check the parameters."""
        if self.ridge is not None:
            check_real("ridge", self.ridge, at_least=_SMALLEST, at_most=_LARGEST)
        super().check()

    def plan(self, sizes: Sizes, target: Target) -> ObjectivePlan:
        """Plan a fit: one objective release, and noise on its minimiser."""
        rows = sizes.rows_per_person or 1
        share = OUTPUT_SHARE + (WEIGHT_SHARE if sizes.weighted else 0.0)
        if self.ridge is not None:
            # It was chosen for the fit alone, and may be too small for a budget's calibration.
            target = target._replace(order=None)
        mu, eps_c, mu_gaussian, order = chosen_split(target, share, rows_per_person=rows)
        mu_output = mu_gaussian * math.sqrt(OUTPUT_SHARE / share)
        sigma = 1.0 / (mu_gaussian * math.sqrt(WEIGHT_SHARE / share)) if sizes.weighted else None
        if self.ridge is not None:
            # Made here as in the fit: a ridge that is too small is refused before a charge.
            squares(1.0, float(self.ridge), eps_c, rows_per_person=rows)
        solver = chosen_solver(self.solver, sizes)
        events = MINIMISER.events(mu, eps_c, mu_output, rows_per_person=rows)
        if sigma is not None:
            events = [TOTAL_WEIGHT.event(sigma), *events]
        return ObjectivePlan(
            spent=joint(events, target.delta),
            rows_per_person=sizes.rows_per_person,
            weight_sigma=sigma,
            budget_order=order,
            mu=mu,
            eps_c=eps_c,
            mu_output=mu_output,
            preconditioner=solver,
        )

    def solve(self, rows: Rows, plan: ObjectivePlan, clip: float, draws: Draws) -> Solution:
        """Release the minimiser."""
        draws.progress(1, 1)
        ridge = self._ridge(plan, clip, rows.n, rows.d)
        theta = draws.noise.release(
            MINIMISER,
            rows,
            loss=squares(clip, ridge, plan.eps_c, rows_per_person=plan.rows_per_person or 1),
            ridge=ridge,
            mu=plan.mu,
            eps_c=plan.eps_c,
            mu_output=plan.mu_output,
            sketch_rng=draws.public if plan.preconditioner == "sketch" else None,
            rows_per_person=plan.rows_per_person or 1,
        )
        return Solution(theta, gradient_noise=clip / plan.mu)

    def forecast(
        self,
        plan: ObjectivePlan,
        n: int,
        eigenvalues: FloatArray,
        theta_squared: FloatArray,
    ) -> Forecast:
        """Return what a planned fit is expected to give: noise, and the bias of the ridge."""
        ridge, noise = self._ridge(plan, 1.0, n, len(eigenvalues)), 1.0 / plan.mu
        spread = eigenvalues / (eigenvalues + ridge) ** 2
        return Forecast(
            eta=math.sqrt(ridge),
            gradient_noise=noise,
            noise_risk=noise**2 * float(spread.sum()) / n,
            bias_risk=ridge**2 * float(spread @ theta_squared) / n,
        )

    def _ridge(self, plan: ObjectivePlan, clip: float, n: int, d: int) -> float:
        """Return the ridge: by the noise, by what can be learned, and by what the loss needs."""
        if self.ridge is not None:
            return float(self.ridge)
        noise = clip / plan.mu
        useful = noise**2 * d / (n * _EXPLAINED)
        least = least_ridge_for(plan.eps_c, plan.rows_per_person or 1)
        return max(_RIDGE * noise, useful, _LEAST * least)


def squares(
    level: float, ridge: float, eps_c: float, longest: float = 1.0, *, rows_per_person: int = 1
) -> CalibratedHuber | LinearHuber:
    """Return the squared loss with the tails that privacy asks for, for records or persons."""
    kind = CalibratedHuber if rows_per_person == 1 else LinearHuber
    return kind(level, ridge, eps_c, longest)


def least_ridge_for(eps_c: float, rows_per_person: int) -> float:
    """Return the least ridge of `squares` for rows of length 1 that methods choose.

    It leaves room for later roundings: a ridge that is this many times a squared length stays above
    the condition of the loss when it is divided by the square of the unit of the coordinates. And
    with large budgets, which allow smaller ones, it keeps the minimum from being too sharp to find.
    """
    least = least_ridge(eps_c) if rows_per_person == 1 else least_person_ridge(eps_c)
    return max(_ROUNDED * least, _SHARPEST)


def chosen_solver(asked: str, sizes: Sizes) -> str:
    """Return the solver: the one that is asked for, or the faster one; sketches have no weights."""
    if sizes.rows_per_person is not None or sizes.weighted or sizes.hidden:
        if asked == "sketch":
            condition = "be 'auto' or 'gram' for persons, weights and public_rows=False"
            raise value_error("solver", condition, asked)
        return "gram"
    return faster_solver(sizes.n, sizes.d) if asked == "auto" else asked


def faster_solver(n: int, d: int) -> str:
    """Return which solver a cost model says is faster, "gram" or "sketch"."""
    gram = n * d**2 + _GRAM_PASSES * n * d
    sketch = _SKETCH_PASSES * n * d + _SKETCH * d**3
    return "sketch" if sketch < gram else "gram"
