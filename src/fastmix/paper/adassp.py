"""Adaptive sufficient statistics perturbation."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fastmix._types import FloatArray
from fastmix.accounting import Part, PrivacySpent, calibrate_gaussian
from fastmix.data import Rows
from fastmix.engine.inference import StatisticsTrace
from fastmix.engine.plan import Draws, Forecast, Method, Plan, Sizes, Solution, Target
from fastmix.releases import MOMENTS, STATISTICS, symmetric_solve

#: The least eigenvalue of the ridged matrix, in units of the norm of its noise.
_LEAST = 2.0


@dataclass(frozen=True, kw_only=True)
class AdaSSPPlan(Plan):
    """Noise of the statistics, how far the eigenvalue is shifted, and the ridge if it is 0."""

    sigma: float
    eigenvalue_shift: float | None = None  #: None where no eigenvalue is released.
    ridge_level: float


@dataclass(frozen=True, kw_only=True)
class AdaptiveStatistics(Method):
    """AdaSSP: noisy X'X and X'y with a private ridge (Wang, 2018)."""

    variant: str = "tuned"
    calibration: str = "joint"
    failure_probability: float | None = None

    name: ClassVar[str] = "adassp"
    estimator: ClassVar[str] = "AdaSSP"
    infers: ClassVar[bool] = True
    choices: ClassVar = {"variant": ("tuned", "paper"), "calibration": ("joint", "published")}

    def ignored(self) -> tuple[str, ...]:
        return ("calibration", "failure_probability") if self.variant == "tuned" else ()

    def plan(self, sizes: Sizes, target: Target) -> AdaSSPPlan:
        """Plan a fit: two Gaussian releases at once, or three as published."""
        epsilon, delta, d = target.epsilon, target.delta, sizes.d
        if self.variant == "tuned":
            sigma = calibrate_gaussian(epsilon, delta, 2, slack=1e-9)
            return AdaSSPPlan(
                spent=PrivacySpent([Part("statistics", [MOMENTS.event(sigma)], delta)]),
                sigma=sigma,
                # In units of the norm of symmetric noise in the limit of many columns.
                ridge_level=_LEAST * (sigma * math.sqrt(2.0 * d)),
            )
        if self.calibration == "joint":
            # A hair below the target, so that rounding in the account cannot exceed it.
            sigma = calibrate_gaussian(epsilon, delta, 3, slack=1e-9)
        else:
            sigma = math.sqrt(math.log(6.0 / delta)) / (epsilon / 3.0)
        varrho = self.varrho(target)
        return AdaSSPPlan(
            spent=PrivacySpent([Part("statistics", [STATISTICS.event(sigma)], delta)]),
            sigma=sigma,
            eigenvalue_shift=sigma * math.sqrt(math.log(6.0 / delta)),
            ridge_level=sigma * math.sqrt(d * math.log(2.0 * d**2 / varrho)),
        )

    def solve(self, rows: Rows, plan: AdaSSPPlan, clip: float, draws: Draws) -> Solution:
        draws.progress(1, 1)
        if plan.eigenvalue_shift is None:
            gram, moment = draws.noise.release(MOMENTS, rows, sigma=plan.sigma)
            least = float(np.linalg.eigvalsh(gram)[0])
        else:
            release = draws.noise.release(STATISTICS, rows, sigma=plan.sigma)
            gram, moment = release.gram, release.moment
            least = max(0.0, release.eigenvalue - plan.eigenvalue_shift)
        ridge = max(0.0, plan.ridge_level - least)
        theta = symmetric_solve(gram + ridge * np.eye(rows.d), moment)
        symmetric = plan.eigenvalue_shift is None
        return Solution(theta, trace=StatisticsTrace(gram, plan.sigma, ridge, symmetric))

    def forecast(
        self, plan: AdaSSPPlan, n: int, eigenvalues: FloatArray, theta_squared: FloatArray
    ) -> Forecast:
        if plan.eigenvalue_shift is None:
            # Noise lowers the smallest eigenvalue by its norm, but not below minus that.
            norm = plan.ridge_level / _LEAST
            bound, halved = max(-norm, float(eigenvalues[0]) - norm), 0.5
        else:
            bound, halved = max(0.0, float(eigenvalues[0]) - plan.eigenvalue_shift), 1.0
        ridge = max(0.0, plan.ridge_level - bound)
        spread = eigenvalues / (eigenvalues + ridge) ** 2
        # The noise of the Gram matrix meets the coefficients as the ridge has shrunk them.
        shrunk = float(np.sum(theta_squared * (eigenvalues / (eigenvalues + ridge)) ** 2))
        return Forecast(
            eta=math.sqrt(ridge),
            gradient_noise=plan.sigma,
            noise_risk=float(spread.sum()) * plan.sigma**2 * (1.0 + halved * shrunk) / n,
            bias_risk=float(spread @ theta_squared) * ridge**2 / n,
        )
