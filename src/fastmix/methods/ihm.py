"""Iterative Hessian mixing with a dense Gaussian sketch."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from scipy.special import ndtri

from fastmix._types import FloatArray
from fastmix.accounting import (
    Part,
    PrivacyEvent,
    PrivacySpent,
    SketchEvent,
    calibrate,
    calibrate_gaussian,
)
from fastmix.data import Rows
from fastmix.mechanisms import gauss_bounds, gradient_events, mix, spectral_events
from fastmix.methods.levels import TAIL, Level, check_sketch, choose, tuned_levels, with_steps
from fastmix.methods.newton import follow_steps, mixed_newton
from fastmix.methods.plan import Draws, Forecast, Method, Plan, Sizes, Solution, Target

#: Share of rho for the private eigenvalue of the tuned variant.
_SPECTRAL_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class IHMPlan(Plan):
    """Rows and number of the sketches, noise of the eigenvalue, and the levels to choose from."""

    k: int
    sketches: int
    levels: tuple[Level, ...]
    tau: float
    omega: float


@dataclass(frozen=True, kw_only=True)
class IterativeHessianMixing(Method):
    """IHM: noisy gradients, preconditioned with Gaussian sketches of the Hessian."""

    variant: str = "tuned"
    n_steps: int | None = None
    gaussian_size: int | None = None
    failure_probability: float | None = None
    residual_clip: float | None = None
    shrinkage: bool = False
    literal: bool = False

    name: ClassVar[str] = "ihm"
    estimator: ClassVar[str] = "IHM"
    infers: ClassVar[bool] = True
    clips: ClassVar[bool] = True
    choices: ClassVar = {"variant": ("tuned", "paper")}

    def ignored(self) -> tuple[str, ...]:
        sized = self.variant == "tuned" and self.gaussian_size is not None
        return ("failure_probability",) if sized else ()

    def in_blocks(self) -> bool:
        return not self.literal  # a sketch that is formed as written is formed from the whole

    def plan(self, sizes: Sizes, target: Target) -> IHMPlan:
        tuned = self.variant == "tuned"
        steps = self.n_steps or (16 if tuned else 4)
        base = max(sizes.d, math.log(4.0 * steps / self.varrho(target)))
        k = self.gaussian_size or math.ceil((24.0 if tuned else 6.0) * base)
        if not tuned:
            return _paper(k, steps, target, self.varrho(target))
        check_sketch("gaussian_size", k, sizes.d)
        return _tuned(k, steps, sizes.d, target)

    def solve(self, rows: Rows, plan: IHMPlan, clip: float, draws: Draws) -> Solution:
        noise = draws.noise
        spectrum = gauss_bounds(
            rows, tau=plan.tau, omega=plan.omega, literal=self.literal, rng=noise
        )
        level = choose(plan.levels, spectrum.level, plan.tau * plan.omega)
        release = mix(
            spectrum, k=plan.k, gamma=level.gamma, count=plan.sketches, form="gram", rng=noise
        )
        return mixed_newton(
            rows, release, level, k=plan.k, clip=clip, shrinkage=self.shrinkage, draws=draws
        )

    def forecast(
        self, plan: IHMPlan, n: int, eigenvalues: FloatArray, theta_squared: FloatArray
    ) -> Forecast:
        shift = plan.tau * plan.omega
        bound = max(0.0, float(eigenvalues[0]) - shift)
        level = choose(plan.levels, bound, shift)
        eta_squared = max(0.0, level.gamma - bound)
        return follow_steps(level, eta_squared, n, eigenvalues, theta_squared)


@lru_cache(maxsize=64)
def _tuned(k: int, steps: int, columns: int, target: Target) -> IHMPlan:
    """Plan one sketch for all steps, under one joint account (docs/proofs/joint_account.md)."""
    tau = -float(ndtri(TAIL * target.delta))

    def first(rho: float) -> list[PrivacyEvent]:
        omega = 1.0 / math.sqrt(2.0 * _SPECTRAL_SHARE * rho)
        return spectral_events("gaussian", tau=tau, omega=omega, count=1)

    tuned = tuned_levels(target, first, "gauss_mix", k, steps, _SPECTRAL_SHARE)
    return IHMPlan(
        spent=tuned.spent(target.delta),
        steps=steps,
        k=k,
        sketches=1,
        levels=with_steps(tuned.levels, columns, k),
        tau=tau,
        omega=1.0 / math.sqrt(2.0 * _SPECTRAL_SHARE * tuned.rho),
    )


@lru_cache(maxsize=64)
def _paper(k: int, steps: int, target: Target, varrho: float) -> IHMPlan:
    """Plan a fresh sketch each step: half of epsilon for sketches, a quarter of delta per part.

    Notes
    -----
    Paper: the baseline of Appendix H (Lev et al., 2026).
    Deviation: the eigenvalue is charged by the analytic Gaussian mechanism.
    """
    epsilon, delta, _ = target
    # P(z > tau) <= exp(-tau^2/2)/2 <= delta/4.
    tau = math.sqrt(2.0 * math.log(2.0 / min(delta, varrho)))
    gamma = gauss_mix_gamma(epsilon / 2.0, delta / 4.0, k, steps)
    level = Level(gamma, (calibrate_gaussian(epsilon / 2.0, delta / 4.0, steps),) * steps)
    parts = gauss_mix_parts(gamma, delta / 4.0, tau, k, steps)
    gradients = Part("gradients", gradient_events(level.sigmas), delta / 4.0)
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
