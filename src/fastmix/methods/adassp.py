"""Adaptive sufficient statistics perturbation."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fastmix._types import FloatArray
from fastmix.accounting import Part, PrivacySpent, calibrate_gaussian
from fastmix.data import Rows
from fastmix.mechanisms import noisy_statistics, statistics_event, symmetric_solve
from fastmix.methods.inference import StatisticsTrace
from fastmix.methods.plan import Draws, Forecast, Method, Plan, Sizes, Solution, Target


@dataclass(frozen=True, kw_only=True)
class AdaSSPPlan(Plan):
    """Noise of the statistics, how far the eigenvalue is shifted, and the ridge if it is 0."""

    sigma: float
    eigenvalue_shift: float
    ridge_level: float


@dataclass(frozen=True, kw_only=True)
class AdaptiveStatistics(Method):
    """AdaSSP: noisy X'X and X'y with a private ridge (Wang, 2018)."""

    calibration: str = "joint"
    failure_probability: float | None = None

    name: ClassVar[str] = "adassp"
    estimator: ClassVar[str] = "AdaSSP"
    infers: ClassVar[bool] = True
    choices: ClassVar = {"calibration": ("joint", "published")}

    def plan(self, sizes: Sizes, target: Target) -> AdaSSPPlan:
        """Plan a fit: three Gaussian releases at once, or a third of the budget each."""
        epsilon, delta = target.epsilon, target.delta
        if self.calibration == "joint":
            # A hair below the target, so that rounding in the account cannot exceed it.
            sigma = calibrate_gaussian(epsilon, delta, 3, slack=1e-9)
        else:
            sigma = math.sqrt(math.log(6.0 / delta)) / (epsilon / 3.0)
        d, varrho = sizes.d, self.varrho(target)
        return AdaSSPPlan(
            spent=PrivacySpent([Part("statistics", [statistics_event(sigma=sigma)], delta)]),
            sigma=sigma,
            eigenvalue_shift=sigma * math.sqrt(math.log(6.0 / delta)),
            ridge_level=sigma * math.sqrt(d * math.log(2.0 * d**2 / varrho)),
        )

    def solve(self, rows: Rows, plan: AdaSSPPlan, clip: float, draws: Draws) -> Solution:
        draws.progress(1, 1)
        release = noisy_statistics(rows, sigma=plan.sigma, noise=draws.noise)
        lambda_tilde = max(0.0, release.eigenvalue - plan.eigenvalue_shift)
        ridge = max(0.0, plan.ridge_level - lambda_tilde)
        theta = symmetric_solve(release.gram + ridge * np.eye(rows.d), release.moment)
        trace = StatisticsTrace(gram=release.gram, sigma=plan.sigma, ridge=ridge)
        return Solution(theta, trace=trace)

    def forecast(
        self, plan: AdaSSPPlan, n: int, eigenvalues: FloatArray, theta_squared: FloatArray
    ) -> Forecast:
        bound = max(0.0, float(eigenvalues[0]) - plan.eigenvalue_shift)
        ridge = max(0.0, plan.ridge_level - bound)
        spread = eigenvalues / (eigenvalues + ridge) ** 2
        # The noise of the Gram matrix meets the coefficients as the ridge has shrunk them.
        shrunk = float(np.sum(theta_squared * (eigenvalues / (eigenvalues + ridge)) ** 2))
        return Forecast(
            eta=math.sqrt(ridge),
            gradient_noise=plan.sigma,
            noise_risk=float(spread.sum()) * plan.sigma**2 * (1.0 + shrunk) / n,
            bias_risk=float(spread @ theta_squared) * ridge**2 / n,
        )
