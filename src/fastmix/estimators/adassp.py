"""Adaptive sufficient statistics perturbation."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from fastmix._validation import check_choice
from fastmix.accounting import Part, PrivacySpent, gaussian_sigma
from fastmix.errors import CalibrationError
from fastmix.estimators._base import PrivateRegressor, estimator
from fastmix.estimators._plan import Plan, Solution, Streams, Target
from fastmix.estimators.inference import StatisticsTrace
from fastmix.mechanisms import noisy_statistics, statistics_event, symmetric_solve
from fastmix.rows import Rows

__all__ = ["AdaSSP"]


@estimator
class AdaSSP(PrivateRegressor):
    """Adaptive sufficient statistics perturbation: noisy X'X and X'y with a private ridge.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Parameters
    ----------
    {parameters}
    calibration : {"joint", "published"}, default="joint"
        "joint" calibrates the three Gaussian releases once, as one release of sensitivity
        sqrt(3); "published" uses the noise levels of Wang (2018), a third of the budget each.

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Paper: a method it compares with (Wang, 2018).
    Deviation: the published noise levels are refused where their exact account exceeds the
    target, as it does for large epsilon.
    Sensitive inputs: the data given to `fit`.
    """

    calibration: str = "joint"

    _infers: ClassVar[bool] = True

    def _ignored(self, columns: int | None = None) -> tuple[str, ...]:
        unused = ("n_steps", "gaussian_size", "sketch_size", "shrinkage", "engine")
        # Residuals are clipped where they are counted, and nowhere else.
        return unused if self.inference else (*unused, "residual_clip")

    def _plan(self, n: int, d: int, target: Target) -> Plan:
        epsilon, delta, varrho = target
        check_choice("calibration", self.calibration, ("joint", "published"))
        if self.calibration == "joint":
            # A hair below the target, so that rounding in the account cannot exceed it.
            sigma = gaussian_sigma(epsilon * (1.0 - 1e-9), delta, math.sqrt(3.0))
        else:
            sigma = math.sqrt(math.log(6.0 / delta)) / (epsilon / 3.0)
        spent = PrivacySpent([Part("statistics", [statistics_event(sigma=sigma)], delta)])
        if spent.epsilon > epsilon:
            raise CalibrationError(
                f"calibration must meet epsilon={epsilon:g}; the published noise levels "
                f"spend {spent.epsilon:g} at delta={delta:g}. Use calibration='joint'."
            )
        parameters = {
            "n_steps_": 1,
            "sigma": sigma,
            "eigenvalue_shift": sigma * math.sqrt(math.log(6.0 / delta)),
            "ridge_level": sigma * math.sqrt(d * math.log(2.0 * d**2 / varrho)),
        }
        return Plan(spent, parameters)

    def _solve(self, rows: Rows, plan: Plan, clip: float, streams: Streams) -> Solution:
        self._progress(1, 1)
        release = noisy_statistics(
            rows, sigma=plan["sigma"], rng=streams.secret, noise=streams.noise
        )
        lambda_tilde = max(0.0, release.eigenvalue - plan["eigenvalue_shift"])
        ridge = max(0.0, plan["ridge_level"] - lambda_tilde)
        theta = symmetric_solve(release.gram + ridge * np.eye(rows.d), release.moment)
        trace = StatisticsTrace(gram=release.gram, sigma=plan["sigma"], ridge=ridge)
        return Solution(theta, release.event, trace=trace)
