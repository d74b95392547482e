"""The iteration that IHM, FastIHM and IHS share as published, and what is expected of it."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.engine.adaptive import useful_rounds
from fastmix.engine.gaussian_finish import (
    STEPS,
    GaussianPlan,
    gaussian_forecast,
    gaussian_mu,
    gaussian_plan,
)
from fastmix.engine.inference import NewtonTrace
from fastmix.engine.plan import Draws, Forecast, Method, Plan, Sizes, Solution, Target
from fastmix.releases import GRADIENT, PrivateGram, Spectrum, fast_bounds, gauss_bounds, mix
from fastmix.releases.bounds import needed_eigenvalue
from fastmix.sketches import Sketch

#: Parameters of the published methods, without effect in the tuned variants.
PUBLISHED = ("gaussian_size", "failure_probability", "residual_clip", "shrinkage", "literal")
#: How far below its limit the smallest singular value of a Gaussian sketch may lie, in units of
#: one over the root of its rows, before a fit warns.
_TAIL = 3.0


@dataclass(frozen=True, kw_only=True)
class MixingPlan(Plan):
    """A fresh sketch each step: its level, noise of the spectral bounds and of each gradient."""

    gamma: float
    tau: float
    omega: float
    sigma: float


class HessianMixing(Method):
    """Noisy gradients, preconditioned with a private Hessian: IHM and FastIHM.

    The variant "paper" draws sketches of the Hessian as published; the variant "tuned" takes the
    Gaussian steps of `fastmix.engine.gaussian_finish`.
    """

    variant: str
    n_steps: int | None
    gaussian_size: int | None
    shrinkage: bool

    infers: ClassVar[bool] = True

    @property
    def clips(self) -> bool:  # type: ignore[override]
        """Whether residuals are clipped at a public level; tuned variants choose their own."""
        return self.variant == "paper"

    @property
    def chooses(self) -> bool:  # type: ignore[override]
        """Whether clipping level and ridge are chosen from released values."""
        return self.variant == "tuned"

    def inferring_plan(self, sizes: Sizes, target: Target) -> GaussianPlan | None:
        """Plan a tuned fit with curvatures for its intervals."""
        return self._tuned_plan(sizes, target, inferring=True) if self.variant == "tuned" else None

    def _tuned_plan(self, sizes: Sizes, target: Target, *, inferring: bool) -> GaussianPlan:
        rounds = useful_rounds(sizes, gaussian_mu(target))
        steps = self.n_steps or STEPS
        return gaussian_plan(sizes, target, rounds, steps=steps, inferring=inferring)

    def cautions(self, plan: Any, d: int) -> list[str]:
        """Warn of sketches that are too small, which the paper's variant allows."""
        rows, least = getattr(plan, "k1", getattr(plan, "k", 0)), least_rows(d)
        if self.variant != "paper" or rows >= least:
            return []
        return [
            f"gaussian_size={rows} is below {least} for {d} columns (counting the "
            "intercept): the steps of variant='paper' may diverge."
        ]

    def _sizes(self, sizes: Sizes, target: Target) -> tuple[int, int, float]:
        """Return steps, rows of a Gaussian sketch, and the size that sketches are multiples of."""
        steps = self.n_steps or 4
        base = max(sizes.d, math.log(4.0 * steps / self.varrho(target)))
        return steps, self.gaussian_size or math.ceil(6.0 * base), base

    def _mixed(
        self, rows: Rows, spectrum: Spectrum, plan: MixingPlan, k: int, clip: float, draws: Draws
    ) -> Solution:
        """Release a sketch of k rows for every step, and run the steps on them.

        Paper: Algorithm 2, lines 3-8.
        """
        steps = plan.steps
        release = mix(spectrum, k=k, gamma=plan.gamma, count=steps, form="gram", rng=draws.noise)
        ridge = release.eta**2 if self.shrinkage else 0.0
        theta = newton_steps(
            release.sketches,
            lambda theta: draws.noise.release(
                GRADIENT, rows, theta=theta, clip=clip, sigma=plan.sigma
            ),
            scale=float(k),
            steps=steps,
            d=rows.d,
            ridge=ridge,
            progress=draws.progress,
        )
        noise = plan.sigma * clip
        trace = NewtonTrace(
            sketches=release.sketches,
            hessians=release.sketches,
            rows=k,
            eta=release.eta,
            scales=(float(k),) * steps,
            sigmas=(noise,) * steps,
            ridge=ridge,
            floor=min(release.lambda_tilde),
        )
        return Solution(theta, plan.gamma, release.eta, gradient_noise=noise, trace=trace)

    def forecast(
        self, plan: Any, n: int, eigenvalues: FloatArray, theta_squared: FloatArray
    ) -> Forecast:
        """Follow the steps in each eigenvector: contraction and noise of every step.

        The released Hessian is taken at its mean, and no residual is clipped. Of a fast sketch of
        k2 rows we expect the distortion sqrt(tr / k2) + sqrt(2 lambda_max log(n) / k2).
        """
        if isinstance(plan, GaussianPlan):
            return gaussian_forecast(plan, n, eigenvalues, theta_squared)
        m, values = 0.0, eigenvalues
        if k2 := getattr(plan, "k2", 0):
            m = math.sqrt(values.sum() / k2) + math.sqrt(2.0 * math.log(n) * values[-1] / k2)
        bound = max(0.0, float(values[0]) - plan.tau * plan.omega * (1.0 + 2.0 * m))
        eta_squared = max(0.0, needed_eigenvalue(plan.gamma, m, 1.0, "fast_mix_sharp") - bound)
        hessian = values + eta_squared
        contraction = 1.0 - values / hessian
        noise = np.zeros_like(values)
        for _ in range(plan.steps):
            noise = contraction**2 * noise + (plan.sigma / hessian) ** 2
        left = contraction**plan.steps
        return Forecast(
            eta=math.sqrt(eta_squared),
            gradient_noise=plan.sigma,
            noise_risk=float(values @ noise) / n,
            bias_risk=float(values @ (left**2 * theta_squared)) / n,
        )


def released_bounds(
    rows: Rows, plan: Any, draws: Draws, sketch: Sketch | None = None, *, literal: bool
) -> Spectrum:
    """Release the planned bounds on the spectrum of rows, or of fast sketches of them."""
    noise: dict[str, Any] = {"tau": plan.tau, "omega": plan.omega, "rng": draws.noise}
    if sketch is None:
        return gauss_bounds(rows, **noise, literal=literal)
    return fast_bounds(
        rows,
        **noise,
        sketch=sketch,
        count=getattr(plan, "fast_sketches", 1),
        law=plan.law,
        sharp=plan.law == "gaussian",  # by the sharper curve
        literal=literal,
        sketch_rng=draws.public,
    )


def newton_steps(
    hessians: Iterable[PrivateGram],
    gradient: Callable[[FloatArray], FloatArray],
    *,
    scale: float,
    steps: int,
    d: int,
    ridge: float = 0.0,
    progress: Callable[[int, int], None],
) -> FloatArray:
    r"""Run :math:`\theta \gets \theta + s H_t^{-1} (g(\theta) - \rho \theta)` from zero.

    Paper: Algorithm 2, lines 3-8; the ridge is eta squared there and 0 in the experiments.
    """
    theta = np.zeros(d)
    for step, hessian in zip(range(steps), hessians, strict=True):
        progress(step + 1, steps)
        theta = theta + scale * hessian.solve(gradient(theta) - ridge * theta)
    return theta


def least_rows(columns: int) -> int:
    r"""Return the rows of a useful Hessian: the least k with :math:`1-(\sqrt d+3)/\sqrt k \ge 1/4`.

    The smallest singular value of a Gaussian sketch of the identity is below
    :math:`1 - (\sqrt d + t)/\sqrt k` with probability at most :math:`e^{-t^2/2}` (Davidson and
    Szarek), for t = 3 about 1 in 90. Steps with fresh sketches grow in mean square when
    :math:`(1 - d/k)^2 < 1/2`, so they need at least 4 rows per column.
    """
    return max(math.ceil(((math.sqrt(columns) + _TAIL) / 0.75) ** 2), 4 * columns)
