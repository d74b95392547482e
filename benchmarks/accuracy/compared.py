"""The methods that are compared, by name: every one is made with the same options.

Two are not part of the library: boosted AdaSSP, which is a method of our own as docs/extending.md
describes, and the mean of the target alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fastmix import (
    IHM,
    AdaSSP,
    DPGradientDescent,
    FastIHM,
    ObjectivePerturbation,
    PrivateLinearRegression,
)
from fastmix.accounting import Part, PrivacySpent, calibrate_gaussian, objective_split
from fastmix.engine import Method, Plan, Solution
from fastmix.engine.objective import OUTPUT_SHARE
from fastmix.estimators import PrivateRegressor, estimator
from fastmix.kernels.losses import least_ridge
from fastmix.releases import GRADIENT, STATISTICS, symmetric_solve

try:
    from diffprivlib.models import LinearRegression as Diffprivlib
except ImportError:
    Diffprivlib = None


@dataclass(frozen=True, kw_only=True)
class BoostedPlan(Plan):
    """Noise of the statistics and of every further round."""

    sigma: float
    round_sigma: float
    eigenvalue_shift: float
    ridge_level: float


@dataclass(frozen=True, kw_only=True)
class BoostedStatistics(Method):
    """Boosted AdaSSP (Tang et al., 2023): one noisy Gram matrix, residuals fitted in rounds.

    The first round is AdaSSP. Each further one fits the clipped residuals of the rounds before
    by the same Gram matrix and ridge. All releases are Gaussian and share one account: the Gram
    matrix, the eigenvalue and the first moments have a fifth of the budget each, further moments
    the rest.
    """

    n_rounds: int = 15

    name: ClassVar[str] = "boosted_adassp"
    estimator: ClassVar[str] = "BoostedAdaSSP"
    clips: ClassVar[bool] = True

    share: ClassVar[float] = 0.2

    def plan(self, sizes: Any, target: Any) -> BoostedPlan:
        further = self.n_rounds - 1
        total = calibrate_gaussian(target.epsilon, target.delta, 1)
        sigma = total / math.sqrt(self.share)
        round_sigma = total * math.sqrt(further / (1.0 - 3.0 * self.share))
        events = [STATISTICS.event(sigma), *GRADIENT.events([round_sigma] * further)]
        d, varrho = sizes.d, self.varrho(target)
        return BoostedPlan(
            spent=PrivacySpent([Part("statistics and rounds", events, target.delta)]),
            steps=self.n_rounds,
            sigma=sigma,
            round_sigma=round_sigma,
            eigenvalue_shift=sigma * math.sqrt(math.log(6.0 / target.delta)),
            ridge_level=sigma * math.sqrt(d * math.log(2.0 * d**2 / varrho)),
        )

    def solve(self, rows: Any, plan: BoostedPlan, clip: float, draws: Any) -> Solution:
        release = draws.noise.release(STATISTICS, rows, sigma=plan.sigma)
        least = max(0.0, release.eigenvalue - plan.eigenvalue_shift)
        gram = release.gram + max(0.0, plan.ridge_level - least) * np.eye(rows.d)
        theta = symmetric_solve(gram, release.moment)
        for _ in range(plan.steps - 1):
            g = draws.noise.release(GRADIENT, rows, theta=theta, clip=clip, sigma=plan.round_sigma)
            theta = theta + symmetric_solve(gram, g)
        return Solution(theta, gradient_noise=plan.round_sigma * clip)


@estimator
class BoostedAdaSSP(PrivateRegressor):
    """AdaSSP, boosted.

    Parameters
    ----------
    {parameters}
    n_rounds : int, default=15
        Rounds, the first one being AdaSSP.

    Attributes
    ----------
    {attributes}
    """

    n_rounds: int = 15

    _method: ClassVar[type[Method]] = BoostedStatistics


class PrivateMean:
    """Predicts the mean of the target, released once for the whole budget."""

    def __init__(self, *, epsilon: float, bounds_y: Any, random_state: int, **unused: Any) -> None:
        self.epsilon, self.bounds_y, self.seed = epsilon, bounds_y, random_state

    def fit(self, X: Any, y: Any) -> PrivateMean:
        n, (low, high) = len(y), self.bounds_y
        noise = np.random.default_rng(self.seed).standard_normal()
        noise *= calibrate_gaussian(self.epsilon, 1.0 / n**2, 1) * (high - low) / 2.0
        self.mean_ = float(np.clip(np.clip(y, low, high).mean() + noise / n, low, high))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


class FixedRidge:
    """ObjectivePerturbation with a ridge of so many noise scales, where privacy allows it."""

    def __init__(self, scales: float, **options: Any) -> None:
        self.scales, self.options = scales, options

    def fit(self, X: Any, y: Any) -> Any:
        mu, eps_c, _ = objective_split(self.options["epsilon"], 1.0 / len(y) ** 2, OUTPUT_SHARE)
        ridge = max(self.scales / mu, 1.05 * least_ridge(eps_c))
        return ObjectivePerturbation(ridge=ridge, **self.options).fit(X, y)


def diffprivlib(
    *, epsilon: float, random_state: int, fit_intercept: bool, bounds_y: Any, **bounds: Any
) -> Any:
    """Make diffprivlib's estimator, which knows no bound on the norm of rows."""
    if "bounds_X" not in bounds:
        raise NotImplementedError("diffprivlib needs bounds of the features")
    return Diffprivlib(
        epsilon=epsilon,
        random_state=random_state,
        fit_intercept=fit_intercept,
        bounds_y=bounds_y,
        bounds_X=bounds["bounds_X"],
    )


METHODS: dict[str, Callable[..., Any]] = {
    "default": PrivateLinearRegression,
    "IHM": IHM,
    "ObjectivePerturbation": ObjectivePerturbation,
    "AdaSSP": AdaSSP,
    "private mean": PrivateMean,
    "boosted AdaSSP": BoostedAdaSSP,
    "FastIHM": FastIHM,
    "IHM, paper": lambda **o: IHM(variant="paper", **o),
    "FastIHM, paper": lambda **o: FastIHM(variant="paper", **o),
    "DPGradientDescent": DPGradientDescent,
    "diffprivlib": diffprivlib,
}
#: Compared with its forecast only.
PUBLISHED = {"AdaSSP, paper": lambda **o: AdaSSP(variant="paper", **o)}
#: These take many passes or a large sketch: `run.py` leaves them out on the widest sets.
SLOW = ("IHM, paper", "FastIHM, paper", "DPGradientDescent", "diffprivlib")
#: Ridges in units of the noise scale, from which the report takes the best for the wide sets.
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
RIDGES: dict[str, Callable[..., Any]] = {
    f"ridge {scales:g}": lambda scales=scales, **o: FixedRidge(scales, **o) for scales in SCALES
}
