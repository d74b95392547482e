"""Iterative Hessian mixing with a noisy Gram matrix, or with dense Gaussian sketches of it."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from fastmix._types import FloatArray
from fastmix.accounting import Part, PrivacySpent, SketchEvent, calibrate, calibrate_gaussian
from fastmix.data import Rows
from fastmix.engine.plan import Draws, Forecast, Sizes, Solution, Target, joint
from fastmix.paper.averaging import (
    AveragedPlan,
    averaged_forecast,
    averaged_levels,
    averaged_solution,
)
from fastmix.paper.levels import Level, tuned_levels, with_steps
from fastmix.paper.newton import HessianMixing, MixingPlan, released_bounds
from fastmix.releases import GRADIENT, GRAM, spectral_events

#: Steps of the tuned variant.
_STEPS = 16
#: Share of rho for the private eigenvalue of the joint variant.
_SPECTRAL_SHARE = 0.02


#: Parameters of sketches, without effect in the tuned variant.
UNUSED = ("gaussian_size", "failure_probability", "shrinkage", "literal")


@dataclass(frozen=True, kw_only=True)
class IHMPlan(MixingPlan):
    """Rows and number of the sketches, noise of the eigenvalue, and the levels to choose from."""

    k: int


@dataclass(frozen=True, kw_only=True)
class IterativeHessianMixing(HessianMixing):
    """IHM: noisy gradients, preconditioned with a private Hessian."""

    variant: str = "tuned"
    n_steps: int | None = None
    gaussian_size: int | None = None
    failure_probability: float | None = None
    residual_clip: float | None = None
    shrinkage: bool = False
    literal: bool = False

    name: ClassVar[str] = "ihm"
    estimator: ClassVar[str] = "IHM"
    choices: ClassVar = {"variant": ("tuned", "joint", "paper")}

    def ignored(self) -> tuple[str, ...]:
        if self.variant == "tuned":
            return UNUSED
        sized = self.variant == "joint" and self.gaussian_size is not None
        return ("failure_probability",) if sized else ()

    def in_blocks(self) -> bool:
        return not self.literal  # a sketch that is formed as written is formed from the whole

    def plan(self, sizes: Sizes, target: Target) -> IHMPlan | AveragedPlan:
        if self.variant == "tuned":
            adaptive = self.residual_clip is None
            return averaged_plan(target, self.n_steps or _STEPS, sizes, adaptive=adaptive)
        steps, k, _ = self._sizes(sizes, target)
        if self.variant == "paper":
            return _paper(k, steps, target, self.varrho(target))
        # One sketch for all steps, under one joint account (docs/proofs/joint_account.md).
        tuned = tuned_levels(target, "gauss_mix", k, steps, bounds=1, bounds_share=_SPECTRAL_SHARE)
        return IHMPlan(
            spent=tuned.spent,
            steps=steps,
            k=k,
            sketches=1,
            levels=with_steps(tuned.levels, sizes.d, k),
            tau=tuned.tau,
            omega=tuned.omega,
        )

    def solve(
        self, rows: Rows, plan: IHMPlan | AveragedPlan, clip: float, draws: Draws
    ) -> Solution:
        if isinstance(plan, AveragedPlan):
            release = draws.noise.release(GRAM, rows, sigma=plan.gram_sigma)
            return averaged_solution(rows, release, plan, clip, draws)
        spectrum = released_bounds(rows, plan, draws, literal=self.literal)
        return self._mixed(rows, spectrum, plan, plan.k, clip, draws)

    def forecast(
        self, plan: Any, n: int, eigenvalues: FloatArray, theta_squared: FloatArray
    ) -> Forecast:
        if isinstance(plan, AveragedPlan):
            return averaged_forecast(plan, n, eigenvalues, theta_squared, plan.gram_sigma)
        return super().forecast(plan, n, eigenvalues, theta_squared)


@lru_cache(maxsize=64)
def averaged_plan(target: Target, steps: int, sizes: Sizes, *, adaptive: bool) -> AveragedPlan:
    """Plan a noisy Gram matrix and averaged steps: Gaussian releases under one exact account."""
    mu = 1.0 / calibrate_gaussian(target.epsilon, target.delta, 1, slack=1e-9)
    levels = averaged_levels(mu, steps, 0.0, sizes, adaptive=adaptive)
    events = [GRAM.event(levels.gram_sigma), *levels.events(steps)]
    return AveragedPlan(spent=joint(events, target.delta), steps=steps, **levels._asdict())


@lru_cache(maxsize=64)
def _paper(k: int, steps: int, target: Target, varrho: float) -> IHMPlan:
    """Plan a fresh sketch each step: half of epsilon for sketches, a quarter of delta per part.

    Paper: the baseline of Appendix H (Lev et al., 2026).
    Deviation: the eigenvalue is charged by the analytic Gaussian mechanism.
    """
    epsilon, delta = target.epsilon, target.delta
    # P(z > tau) <= exp(-tau^2/2)/2 <= delta/4.
    tau = math.sqrt(2.0 * math.log(2.0 / min(delta, varrho)))
    gamma = gauss_mix_gamma(epsilon / 2.0, delta / 4.0, k, steps)
    level = Level(gamma, (calibrate_gaussian(epsilon / 2.0, delta / 4.0, steps),) * steps)
    parts = gauss_mix_parts(gamma, delta / 4.0, tau, k, steps)
    gradients = Part("gradients", GRADIENT.events(level.sigmas), delta / 4.0)
    return IHMPlan(
        spent=PrivacySpent([*parts, gradients]),
        steps=steps,
        k=k,
        sketches=steps,
        levels=(level,),
        tau=tau,
        omega=gamma / math.sqrt(k),
    )


def gauss_mix_parts(gamma: float, delta: float, tau: float, k: int, count: int = 1) -> list[Part]:
    r"""Return the parts of Gaussian sketches; the eigenvalue has noise :math:`\gamma/\sqrt{k}`."""
    eigenvalue, tail = spectral_events("gaussian", tau=tau, omega=gamma / math.sqrt(k), count=1)
    rows = [SketchEvent("gauss_mix", gamma, k * count)]
    return [
        Part("smallest eigenvalue", [eigenvalue], delta),
        Part("smallest eigenvalue fails", [tail], delta),
        Part("sketch" if count == 1 else "sketches", rows, delta),
    ]


def gauss_mix_gamma(epsilon: float, delta: float, k: int, count: int = 1) -> float:
    """Return the least level at which the parts of Gaussian sketches cost epsilon."""

    def spent(budget: float) -> PrivacySpent:
        eigenvalue, _, sketches = gauss_mix_parts(1.0 + 1.0 / budget, delta, 0.0, k, count)
        return PrivacySpent([eigenvalue, sketches])

    return 1.0 + 1.0 / calibrate(spent, epsilon, delta, by="epsilon", start=math.exp(-5.0))
