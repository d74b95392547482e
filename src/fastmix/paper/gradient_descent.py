"""Full-batch gradient descent with clipped residuals and Gaussian noise."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fastmix.accounting import Part, PrivacySpent, calibrate_gaussian
from fastmix.data import Rows
from fastmix.engine.plan import Draws, Method, Plan, Sizes, Solution, Target
from fastmix.releases import GRADIENT

#: Longest step that is stable whatever the data: rows have norm 1 at most.
LONGEST_STEP = 2.0


@dataclass(frozen=True, kw_only=True)
class GradientPlan(Plan):
    """Noise of each gradient, for residuals clipped at 1."""

    sigma: float


@dataclass(frozen=True, kw_only=True)
class GradientDescent(Method):
    """Private gradient descent on the squared loss, with the noise of the analytic mechanism."""

    learning_rate: float = 0.25
    n_steps: int | None = None
    residual_clip: float | None = None

    name: ClassVar[str] = "dp_gd"
    estimator: ClassVar[str] = "DPGradientDescent"
    clips: ClassVar[bool] = True

    def plan(self, sizes: Sizes, target: Target) -> GradientPlan:
        steps = self.n_steps or 100
        # A hair below the target, so that rounding in the account cannot exceed it.
        sigma = calibrate_gaussian(target.epsilon, target.delta, steps, slack=1e-9)
        part = Part("gradients", GRADIENT.events([sigma] * steps), target.delta)
        return GradientPlan(spent=PrivacySpent([part]), steps=steps, sigma=sigma)

    def solve(self, rows: Rows, plan: GradientPlan, clip: float, draws: Draws) -> Solution:
        theta = np.zeros(rows.d)
        for t in range(plan.steps):
            draws.progress(t + 1, plan.steps)
            g = draws.noise.release(GRADIENT, rows, theta=theta, clip=clip, sigma=plan.sigma)
            theta = theta + self.learning_rate / rows.n * g
        return Solution(theta, gradient_noise=plan.sigma * clip)

    def cautions(self, plan: GradientPlan, d: int) -> list[str]:
        """Warn of steps that may be too long."""
        rate = self.learning_rate
        if rate <= LONGEST_STEP:
            return []
        return [
            f"learning_rate={rate:g} is above {LONGEST_STEP:g}: steps may diverge, unless all "
            "eigenvalues of the mean Gram matrix of the scaled rows are below "
            f"{LONGEST_STEP / rate:.2g}."
        ]
