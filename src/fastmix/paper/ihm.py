"""Iterative Hessian mixing: with a fresh Gaussian sketch each step, or with Gaussian releases."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from fastmix.accounting import Part, PrivacySpent, SketchEvent, calibrate, calibrate_gaussian
from fastmix.data import Rows
from fastmix.engine.gaussian_finish import gaussian_solution
from fastmix.engine.gaussian_plan import GaussianPlan
from fastmix.engine.plan import Draws, Sizes, Solution, Target
from fastmix.paper.newton import PUBLISHED, HessianMixing, MixingPlan, released_bounds
from fastmix.releases import GRADIENT, spectral_events


@dataclass(frozen=True, kw_only=True)
class IHMPlan(MixingPlan):
    """Rows of the sketches beside their level and the noise of all releases."""

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
    choices: ClassVar = {"variant": ("tuned", "paper")}

    def ignored(self) -> tuple[str, ...]:
        return PUBLISHED if self.variant == "tuned" else ()

    def in_blocks(self) -> bool:
        return not self.literal  # a sketch that is formed as written is formed from the whole

    def plan(self, sizes: Sizes, target: Target) -> IHMPlan | GaussianPlan:
        if self.variant == "tuned":
            return self._tuned_plan(sizes, target, inferring=False)
        steps, k, _ = self._sizes(sizes, target)
        return _paper(k, steps, target, self.varrho(target))

    def solve(
        self, rows: Rows, plan: IHMPlan | GaussianPlan, clip: float, draws: Draws
    ) -> Solution:
        if isinstance(plan, GaussianPlan):
            return gaussian_solution(rows, plan, draws)
        spectrum = released_bounds(rows, plan, draws, literal=self.literal)
        return self._mixed(rows, spectrum, plan, plan.k, clip, draws)


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
    sigma = calibrate_gaussian(epsilon / 2.0, delta / 4.0, steps)
    parts = gauss_mix_parts(gamma, delta / 4.0, tau, k, steps)
    gradients = Part("gradients", [GRADIENT.event(sigma, steps)], delta / 4.0)
    return IHMPlan(
        spent=PrivacySpent([*parts, gradients]),
        steps=steps,
        k=k,
        gamma=gamma,
        tau=tau,
        omega=gamma / math.sqrt(k),
        sigma=sigma,
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
