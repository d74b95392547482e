"""The iteration that IHM, FastIHM and IHS share, and what is expected of it."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.data import Rows
from fastmix.engine.inference import NewtonTrace
from fastmix.engine.plan import Draws, Forecast, Method, Plan, Sizes, Solution, Target
from fastmix.paper.levels import Level, choose, least_rows, step_lengths
from fastmix.releases import GRADIENT, PrivateGram, Spectrum, fast_bounds, gauss_bounds, mix
from fastmix.releases.bounds import needed_eigenvalue
from fastmix.releases.counts import RESIDUAL_EDGES
from fastmix.sketches import Sketch


@dataclass(frozen=True, kw_only=True)
class MixingPlan(Plan):
    """Number of Gaussian sketches, noise of the spectral bounds, and levels to choose from."""

    sketches: int
    tau: float
    omega: float
    levels: tuple[Level, ...]


class HessianMixing(Method):
    """Noisy gradients, preconditioned with private sketches of the Hessian: IHM and FastIHM."""

    variant: str
    n_steps: int | None
    gaussian_size: int | None
    shrinkage: bool

    infers: ClassVar[bool] = True
    clips: ClassVar[bool] = True

    def coordinates(self, sizes: Sizes) -> int:
        """Return how many coordinates of noise a fit draws at most: counts beside the others.

        Residuals are counted for the clipping level, and once more for intervals.
        """
        return super().coordinates(sizes) + 2 * len(RESIDUAL_EDGES)

    def cautions(self, plan: Any, d: int) -> list[str]:
        """Warn of sketches that are too small, which the paper's variant allows."""
        rows, least = getattr(plan, "k1", getattr(plan, "k", 0)), least_rows(d, fresh=True)
        if self.variant != "paper" or rows >= least:
            return []
        return [
            f"gaussian_size={rows} is below {least} for {d} columns (counting the "
            "intercept): the steps of variant='paper' may diverge."
        ]

    def _sizes(self, sizes: Sizes, target: Target) -> tuple[int, int, float]:
        """Return steps, rows of a Gaussian sketch, and the size that sketches are multiples of."""
        tuned = self.variant == "joint"
        steps = self.n_steps or (16 if tuned else 4)
        base = max(sizes.d, math.log(4.0 * steps / self.varrho(target)))
        least = 1 if self.variant == "paper" else least_rows(sizes.d, fresh=not tuned)
        k = self.gaussian_size or max(math.ceil((24.0 if tuned else 6.0) * base), least)
        if k < least:
            condition = f"be at least {least} for {sizes.d} columns (counting the intercept)"
            raise value_error("gaussian_size", f"{condition}, or the steps may diverge", k)
        return steps, k, base

    def _mixed(
        self,
        rows: Rows,
        spectrum: Spectrum,
        plan: MixingPlan,
        k: int,
        clip: float,
        draws: Draws,
        mean: FloatArray | None = None,
    ) -> Solution:
        """Choose a level, release sketches of k rows at it, and run the steps on them.

        With a ``mean`` the sketches are of the centred features, and the Hessian gets the mean
        back.

        Paper: Algorithm 2, lines 3-8.
        Deviation: docs/proofs/joint_account.md for the tuned variants, and centring.md for the
        mean.
        """
        level = choose(plan.levels, spectrum.level, plan.tau * plan.omega)
        release = mix(
            spectrum, k=k, gamma=level.gamma, count=plan.sketches, form="gram", rng=draws.noise
        )
        eta, hessians = release.eta, release.sketches
        # With shrinkage the noise of the sketch is the ridge that the steps go to, and stays in.
        if level.correction and eta and not self.shrinkage:
            hessians = tuple(H.shifted(-level.correction * k * eta**2) for H in hessians)
        if mean is not None:
            hessians = tuple(H.bordered(mean, k * rows.n) for H in hessians)
        spread = k * max(map(_inverse_trace, hessians)) / rows.n if level.damped else 0.0
        scales = tuple(k * length for length in step_lengths(level, spread))
        ridge = eta**2 if self.shrinkage else 0.0
        theta = newton_steps(
            cycle(hessians),
            lambda t, theta: draws.noise.release(
                GRADIENT, rows, theta=theta, clip=clip, sigma=level.sigmas[t]
            ),
            scales=scales,
            d=rows.d,
            ridge=ridge,
            progress=draws.progress,
        )
        sigmas = tuple(sigma * clip for sigma in level.sigmas)
        trace = NewtonTrace(
            sketches=release.sketches,
            hessians=hessians,
            rows=k,
            eta=eta,
            scales=scales,
            sigmas=sigmas,
            ridge=ridge,
            floor=min(release.lambda_tilde),
            border=None if mean is None else math.sqrt(rows.n) * mean,
        )
        return Solution(theta, level.gamma, eta, gradient_noise=sigmas[-1], trace=trace)

    def forecast(
        self, plan: Any, n: int, eigenvalues: FloatArray, theta_squared: FloatArray
    ) -> Forecast:
        """Follow the steps in each eigenvector: contraction and noise of every step.

        The released Hessian is taken at its mean, and no residual is clipped. Of a fast sketch of
        k2 rows we expect the distortion sqrt(tr / k2) + sqrt(2 lambda_max log(n) / k2).
        """
        m, values = 0.0, eigenvalues
        if k2 := getattr(plan, "k2", 0):
            m = math.sqrt(values.sum() / k2) + math.sqrt(2.0 * math.log(n) * values[-1] / k2)
        shift = plan.tau * plan.omega
        row_bound = 1.0 + 2.0 * m
        bound = max(0.0, float(values[0]) - shift * row_bound)
        level = choose(plan.levels, bound / row_bound, shift)
        eta_squared = max(0.0, needed_eigenvalue(level.gamma, m, 1.0, "fast_mix_sharp") - bound)
        hessian = values + (1.0 - level.correction) * eta_squared
        noise, left = np.zeros_like(values), np.ones_like(values)
        lengths = step_lengths(level, float(np.sum(1.0 / hessian)) / n)
        for length, sigma in zip(lengths, level.sigmas, strict=True):
            contraction = 1.0 - length * values / hessian
            noise = contraction**2 * noise + (sigma * length / hessian) ** 2
            left *= contraction
        return Forecast(
            eta=math.sqrt(eta_squared),
            gradient_noise=level.sigmas[-1],
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


def _inverse_trace(hessian: PrivateGram) -> float:
    """Return the trace of the inverse; of the pseudoinverse if the matrix is singular."""
    matrix = hessian.matrix()
    try:
        root = np.linalg.cholesky(matrix)
        return float(np.sum(solve_triangular(root, np.eye(len(root)), lower=True) ** 2))
    except np.linalg.LinAlgError:
        return float(np.trace(np.linalg.pinv(matrix, hermitian=True)))


def newton_steps(
    hessians: Iterable[PrivateGram],
    gradient: Callable[[int, FloatArray], FloatArray],
    *,
    scales: Sequence[float],
    d: int,
    ridge: float = 0.0,
    progress: Callable[[int, int], None],
) -> FloatArray:
    r"""Run :math:`\theta \gets \theta + s_t H_t^{-1} (g(\theta) - \rho \theta)` from zero.

    Paper: Algorithm 2, lines 3-8; the ridge is eta squared there and 0 in the experiments.
    """
    theta = np.zeros(d)
    for t, (scale, hessian) in enumerate(zip(scales, hessians, strict=False)):
        progress(t + 1, len(scales))
        theta = theta + scale * hessian.solve(gradient(t, theta) - ridge * theta)
    return theta
