"""Iterative Hessian mixing with the fast mixing mechanism."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from fastmix._types import FloatArray
from fastmix._validation import check_integer, value_error
from fastmix.accounting import (
    Part,
    PrivacySpent,
    SketchEvent,
    calibrate,
    calibrate_gaussian,
    closed_form_gamma,
    closed_form_gradient_sigma,
)
from fastmix.data import Rows
from fastmix.engine.plan import Draws, Forecast, Sizes, Solution, Target, joint
from fastmix.paper.averaging import (
    AveragedPlan,
    averaged_forecast,
    averaged_levels,
    averaged_solution,
)
from fastmix.paper.ihm import UNUSED
from fastmix.paper.levels import TAIL, Level, tuned_levels, with_steps
from fastmix.paper.newton import HessianMixing, MixingPlan, released_bounds
from fastmix.releases import (
    GRADIENT,
    GRAM,
    MEAN,
    GramRelease,
    sketched_gram,
    sketched_gram_events,
    spectral_events,
)
from fastmix.sketches import SRHT, KerdockSketch, Sketch, SubsampledDCT

_FAMILIES: dict[str, type[Sketch]] = {"dct": SubsampledDCT, "kerdock": KerdockSketch, "srht": SRHT}

#: Steps of the tuned variant, and its shares of the budget (of mu^2) for the bound on the
#: distortion and for the mean.
_STEPS, _BOUND_SHARE, _CENTRE_SHARE = 16, 0.05, 0.02
#: Time of a product in a Gram matrix over that of an entry in a level of the Hadamard transform.
_PRODUCT = 0.12
#: Shares of rho for the two spectral releases and for the mean of the joint variant.
_SPECTRAL_SHARE, _MEAN_SHARE = 0.1, 0.02


@dataclass(frozen=True, kw_only=True)
class FastIHMPlan(MixingPlan):
    """Sizes of both sketches, noise of the first releases, and the levels to choose from.

    ``fast_sketches`` and ``sketches`` are the numbers of fast and of Gaussian sketches; ``law`` and
    ``omega`` are the noise of the spectral bounds; ``mean_sigma`` is that of the private mean.
    """

    k1: int
    k2: int = 0
    family: str = ""
    fast_sketches: int
    law: str
    mean_sigma: float | None = None


@dataclass(frozen=True, kw_only=True)
class FastAveragedPlan(AveragedPlan):
    """Noise of all releases, and the rows of the fast sketch; as many as the data mean none.

    ``tau`` and ``omega`` are shift and noise of the bound on the distortion.
    """

    k2: int
    family: str
    tau: float | None = None
    omega: float | None = None
    mean_sigma: float | None = None


@dataclass(frozen=True, kw_only=True)
class FastIterativeHessianMixing(HessianMixing):
    """FastIHM: noisy gradients, preconditioned with a FastMix sketch of the Hessian."""

    variant: str = "tuned"
    calibration: str = "numerical"
    sketch: str = "auto"
    n_steps: int | None = None
    gaussian_size: int | None = None
    sketch_size: int | None = None
    failure_probability: float | None = None
    residual_clip: float | None = None
    shrinkage: bool = False
    literal: bool = False

    name: ClassVar[str] = "fast_ihm"
    estimator: ClassVar[str] = "FastIHM"
    choices: ClassVar = {
        "variant": ("tuned", "joint", "shared", "paper"),
        "calibration": ("numerical", "closed_form"),
        "sketch": ("auto", *_FAMILIES),
    }

    def ignored(self) -> tuple[str, ...]:
        if self.variant == "tuned":
            return ("calibration", *UNUSED)
        if self.variant != "joint":
            return ()
        sized = self.gaussian_size is not None and self.sketch_size is not None
        return ("calibration", "failure_probability") if sized else ("calibration",)

    def in_blocks(self) -> bool:
        return not self.literal and self._family() == "kerdock"

    def plan(self, sizes: Sizes, target: Target) -> FastIHMPlan | FastAveragedPlan:
        if self.variant == "tuned":
            return self._averaged_plan(sizes, target)
        steps, k1, base = self._sizes(sizes, target)
        family, k2 = self._fast_sketch(sizes.n, 200.0 * base)
        if self.variant != "joint":
            pairs = 1 if self.variant == "shared" else steps
            plan = _thirds(k1, steps, pairs, target, self.varrho(target), self.calibration)
            return replace(plan, k2=k2, family=family)
        # One fast and one Gaussian sketch for all steps, under one joint account: Algorithm 1 with
        # Gaussian noise (remark after Theorem 1), docs/proofs/joint_account.md, sharp_lemma.md and,
        # for the mean, centring.md.
        tuned = tuned_levels(
            target,
            "fast_mix_sharp",
            k1,
            steps,
            bounds=2,
            bounds_share=_SPECTRAL_SHARE,
            mean_share=_MEAN_SHARE if sizes.centred else 0.0,
        )
        # A fast sketch with as many rows as the data keeps all lengths.
        sketched = (k1, k2) if k2 < sizes.n else (k1,)
        return FastIHMPlan(
            spent=tuned.spent,
            steps=steps,
            k1=k1,
            k2=k2,
            family=family,
            sketches=1,
            fast_sketches=1,
            levels=with_steps(tuned.levels, sizes.d, *sketched),
            law="gaussian",
            tau=tuned.tau,
            omega=tuned.omega,
            mean_sigma=tuned.mean_sigma,
        )

    def _averaged_plan(self, sizes: Sizes, target: Target) -> FastAveragedPlan:
        """Plan a noisy Gram matrix of a fast sketch, or of the rows, and averaged steps."""
        family, k2 = self._fast_sketch(sizes.n, affordable_rows(sizes.n, sizes.d))
        steps, sketched = self.n_steps or _STEPS, k2 < sizes.n
        centred = sketched and sizes.centred
        others = (_BOUND_SHARE if sketched else 0.0) + (_CENTRE_SHARE if centred else 0.0)
        tail = TAIL * target.delta if sketched else 0.0
        mu = 1.0 / calibrate_gaussian(target.epsilon, target.delta - tail, 1, slack=1e-9)
        levels = averaged_levels(mu, steps, others, sizes, adaptive=self.residual_clip is None)
        noise: dict[str, Any] = {}
        events = [GRAM.event(levels.gram_sigma), *levels.events(steps)]
        if sketched:
            noise = {"tau": -float(ndtri(tail)), "omega": 1.0 / (mu * math.sqrt(_BOUND_SHARE))}
            events[:1] = sketched_gram_events(sigma=levels.gram_sigma, **noise)
        if centred:
            noise["mean_sigma"] = 1.0 / (mu * math.sqrt(_CENTRE_SHARE))
            events.append(MEAN.event(noise["mean_sigma"]))
        return FastAveragedPlan(
            spent=joint(events, target.delta),
            steps=steps,
            k2=k2,
            family=family,
            **noise,
            **levels._asdict(),
        )

    def _family(self) -> str:
        if self.sketch != "auto":
            return self.sketch
        given = self.sketch_size
        usable = given is None or not given & (given - 1)
        return "kerdock" if usable and self.variant != "paper" else "srht"

    def _fast_sketch(self, n: int, size: float) -> tuple[str, int]:
        """Return the kind of fast sketch and its rows, about ``size`` unless they are given."""
        family, k2, bits = self._family(), self.sketch_size, (n - 1).bit_length()
        largest = n if family == "dct" else 1 << bits
        if k2 is None and family == "kerdock":
            exponent = math.floor if self.variant == "tuned" else round
            power = exponent(math.log2(max(size, 1.0)))
            k2 = max(1 << min(power, bits), KerdockSketch.least_size(n))
        elif k2 is None:
            k2 = min(largest, math.ceil(size))
        check_integer("sketch_size", k2, at_most=largest)
        if family == "kerdock" and k2 & (k2 - 1):
            raise value_error("sketch_size", "be a power of two for the Kerdock sketch", k2)
        # What the sketch itself refuses is refused here, before anything is charged.
        _FAMILIES[family](k2, n)
        return family, k2

    def solve(
        self, rows: Rows, plan: FastIHMPlan | FastAveragedPlan, clip: float, draws: Draws
    ) -> Solution:
        if isinstance(plan, FastAveragedPlan):
            return self._averaged(rows, plan, clip, draws)
        mean, sketched = None, rows
        if plan.mean_sigma is not None:
            mean = draws.noise.release(MEAN, rows, sigma=plan.mean_sigma)
            sketched = rows.centred(mean)
        sketch = _FAMILIES[plan.family](plan.k2, rows.n)
        spectrum = released_bounds(sketched, plan, draws, sketch, literal=self.literal)
        return self._mixed(rows, spectrum, plan, plan.k1, clip, draws, mean)

    def _averaged(self, rows: Rows, plan: FastAveragedPlan, clip: float, draws: Draws) -> Solution:
        """Release the Gram matrix of a sketch, where it is smaller than the data, and the steps."""
        if plan.tau is None or plan.omega is None:
            release = draws.noise.release(GRAM, rows, sigma=plan.gram_sigma)
            return averaged_solution(rows, release, plan, clip, draws)
        mean, sketched = None, rows
        if plan.mean_sigma is not None:
            mean = draws.noise.release(MEAN, rows, sigma=plan.mean_sigma)
            sketched = rows.centred(mean)
        release = sketched_gram(
            sketched,
            sketch=_FAMILIES[plan.family](plan.k2, rows.n),
            sigma=plan.gram_sigma,
            tau=plan.tau,
            omega=plan.omega,
            noise=draws.noise,
            public=draws.public,
        )
        if mean is not None:
            release = bordered(release, mean, rows.n)
        return averaged_solution(rows, release, plan, clip, draws)

    def forecast(
        self, plan: Any, n: int, eigenvalues: FloatArray, theta_squared: FloatArray
    ) -> Forecast:
        if not isinstance(plan, FastAveragedPlan):
            return super().forecast(plan, n, eigenvalues, theta_squared)
        scale = plan.gram_sigma
        if plan.tau is not None and plan.omega is not None:
            k2, total = plan.k2, float(eigenvalues.sum())
            m = math.sqrt(total / k2) + math.sqrt(2.0 * math.log(n) * eigenvalues[-1] / k2)
            scale *= 1.0 + 2.0 * (m + plan.tau * plan.omega / math.sqrt(k2))
        return averaged_forecast(plan, n, eigenvalues, theta_squared, scale)


def affordable_rows(n: int, d: int) -> float:
    """Return the rows of a fast sketch whose Gram matrix takes as long as the sketch of n rows.

    They are n if the Gram matrix of the rows takes no longer than that of a sketch and the sketch.
    """
    n_pad = 1 << (n - 1).bit_length()
    rows = n_pad * math.log2(2 * n_pad) / (_PRODUCT * d)
    return rows if rows + 2.0 ** math.floor(math.log2(rows)) < n else n_pad


def bordered(release: GramRelease, mean: FloatArray, n: int) -> GramRelease:
    """Return the Gram matrix of n rows from that of their centred features and their mean."""
    gram, size = n * np.outer(mean, mean), len(release.gram)
    gram[:size, :size] += release.gram
    return release._replace(gram=gram)


@lru_cache(maxsize=64)
def _thirds(
    k1: int, steps: int, pairs: int, target: Target, varrho: float, calibration: str
) -> FastIHMPlan:
    """Plan a fresh Gaussian sketch each step, with thirds for bounds, sketches and gradients.

    Paper: Appendix E, eq. for (sigma, tau, omega, gamma), and Appendix H.
    Deviation: gamma_2 as corrected (docs/corrections.md); fewer pairs of bounds than steps are
    beyond the paper (docs/proofs/shared_sketch.md).
    """
    epsilon, delta = target.epsilon / 3.0, target.delta / 3.0
    share = math.nextafter(delta, 0.0)
    tau = rounded_up(math.log(pairs * max(1.0 / delta, 16.0 / varrho)))
    omega = 2.0 * pairs / epsilon
    if calibration == "closed_form":
        # By a hair on the private side, as a search would end.
        gamma = closed_form_gamma(epsilon, delta, k1 * steps) * (1.0 + 1e-8)
        sigma = closed_form_gradient_sigma(epsilon, delta, steps, 1.0)
    else:
        gamma = fast_mix_gamma(epsilon, delta, k1 * steps)
        sigma = calibrate_gaussian(epsilon, delta, steps)
    level = Level(gamma, (sigma,) * steps)
    laplace, tail = spectral_events("laplace", tau=tau, omega=omega, count=2 * pairs)
    parts = [
        Part("spectral bounds", [laplace], 0.0),
        Part("spectral bounds fail", [tail], share),
        Part("sketches", [SketchEvent("fast_mix", gamma, k1 * steps)], share),
        Part("gradients", GRADIENT.events(level.sigmas), share),
    ]
    return FastIHMPlan(
        spent=PrivacySpent(parts),
        steps=steps,
        k1=k1,
        sketches=steps,
        fast_sketches=pairs,
        levels=(level,),
        law="laplace",
        tau=tau,
        omega=omega,
    )


def fast_mix_gamma(epsilon: float, delta: float, rows: int, before: tuple[Part, ...] = ()) -> float:
    """Return the least level above 5/4 at which rows of FastMix sketches cost epsilon."""

    def spent(budget: float) -> PrivacySpent:
        sketches = SketchEvent("fast_mix", 5.0 / 4.0 + 1.0 / budget, rows)
        return PrivacySpent([*before, Part("sketches", [sketches], delta)])

    return 5.0 / 4.0 + 1.0 / calibrate(spent, epsilon, delta, by="epsilon", start=math.exp(-5.0))


def rounded_up(tau: float) -> float:
    """Raise a shift by a hair, so that rounding cannot lift its tail above its share of delta."""
    return tau * (1.0 + 1e-12)
