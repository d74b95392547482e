"""Iterative Hessian mixing with the fast mixing mechanism."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import ndtri

from fastmix._types import FloatArray
from fastmix._validation import check_integer, value_error
from fastmix.accounting import (
    Part,
    PrivacyEvent,
    PrivacySpent,
    SketchEvent,
    calibrate,
    calibrate_gaussian,
)
from fastmix.data import Rows
from fastmix.engine.adaptive import useful_rounds
from fastmix.engine.first_stage import LEAST_VARIANCE, Guess, least_eigenvalue
from fastmix.engine.gaussian_finish import finished_solution, gaussian_solution
from fastmix.engine.gaussian_plan import (
    LOOK_SHARE,
    STEPS,
    GaussianPlan,
    finish_noise,
    gaussian_mu,
)
from fastmix.engine.plan import Draws, Sizes, Solution, Target, joint
from fastmix.kernels.measured import Spiked
from fastmix.paper.newton import PUBLISHED, HessianMixing, MixingPlan, released_bounds
from fastmix.releases import (
    GRADIENT,
    MEAN,
    SPARSE_GRAM,
    GramRelease,
    sketched_gram,
    sketched_gram_events,
    sparse_gram,
    spectral_events,
)
from fastmix.sketches import SRHT, KerdockSketch, Sketch, SparseSketch, SubsampledDCT

_FAMILIES: dict[str, type[Sketch]] = {
    "dct": SubsampledDCT,
    "kerdock": KerdockSketch,
    "sparse": SparseSketch,
    "srht": SRHT,
}

#: Share of delta for the rare event that a bound fails.
TAIL = 0.05
#: Shares of the budget (of mu^2) for the bound on the distortion and for the mean of the features.
_BOUND_SHARE, _CENTRE_SHARE = 0.05, 0.02
#: Time of a product in a Gram matrix over the time of an entry in one level of the Hadamard
#: transform.
_PRODUCT = 0.12
#: Rows of the data per row of a sparse sketch, and the fewest columns, and rows of the data per
#: column, for which there is one: with fewer, the Gram matrix takes less time than the steps.
_GROUP, _COLUMNS, _ROWS = 8, 200, 16
#: Number of steps after a sketch where noise hides most directions, by public sizes: passes over
#: the rows take most of the time there, and more of them gain little.
_STEPS = 12
#: Directions of the sketch that coordinates follow beside those that noise does not hide.
_SPIKES = 16
#: Spread of the target before its gradients are counted: no target is farther from its mean.
_SPREAD = 1.0


@dataclass(frozen=True, kw_only=True)
class FastIHMPlan(MixingPlan):
    """Sizes of both sketches beside their level and the noise of all releases.

    ``fast_sketches`` is the number of fast sketches; ``law`` is the noise of the spectral bounds.
    """

    k1: int
    k2: int = 0
    family: str = ""
    fast_sketches: int
    law: str


@dataclass(frozen=True, kw_only=True)
class SketchedPlan(GaussianPlan):
    """A tuned plan with the rows of its fast sketch; as many as the data mean none.

    With a sketch, ``n_rounds`` is 0 and ``moment_sigma`` is the noise of its Gram matrix. ``tau``
    and ``omega`` are shift and noise of the bound on its distortion, which a sparse sketch does not
    need, and ``centre_sigma`` is that of the features' mean.
    """

    k2: int
    family: str
    tau: float | None = None
    omega: float | None = None
    centre_sigma: float | None = None


@dataclass(frozen=True, kw_only=True)
class FastIterativeHessianMixing(HessianMixing):
    """FastIHM: noisy gradients, preconditioned with a FastMix sketch of the Hessian."""

    variant: str = "tuned"
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
        "variant": ("tuned", "paper"),
        "sketch": ("auto", *_FAMILIES),
    }

    def ignored(self) -> tuple[str, ...]:
        return PUBLISHED if self.variant == "tuned" else ()

    def in_blocks(self) -> bool:
        return not self.literal and self._family() in ("kerdock", "sparse")

    def plan(self, sizes: Sizes, target: Target) -> FastIHMPlan | GaussianPlan:
        if self.variant == "tuned":
            return self._tuned_plan(sizes, target, inferring=False)
        steps, k1, base = self._sizes(sizes, target)
        family, k2 = self._fast_sketch(sizes.n, 200.0 * base)
        plan = _thirds(k1, steps, target, self.varrho(target))
        return replace(plan, k2=k2, family=family)

    def _tuned_plan(self, sizes: Sizes, target: Target, *, inferring: bool) -> SketchedPlan:
        """Plan the Gram matrix of a fast sketch as first look where that is cheaper, and steps."""
        affordable = affordable_rows(sizes.n, sizes.d, self._family())
        family, k2 = self._fast_sketch(sizes.n, affordable)
        sparse, hidden = family == "sparse", not useful_rounds(sizes, gaussian_mu(target))
        steps = self.n_steps or (_STEPS if hidden else STEPS)
        if k2 >= sizes.n:
            plan = super()._tuned_plan(sizes, target, inferring=inferring)
            return SketchedPlan(**vars(plan), k2=k2, family=family)
        # A sparse sketch needs no bound on its distortion, which can fail.
        tail = 0.0 if sparse else TAIL * target.delta
        mu = gaussian_mu(target._replace(delta=target.delta - tail))
        look = LOOK_SHARE + (0.0 if sparse else _BOUND_SHARE)
        look += _CENTRE_SHARE if sizes.centred else 0.0
        noise = finish_noise(sizes, mu, steps, look, from_mean=True, inferring=inferring)
        sigma = 1.0 / (mu * math.sqrt(LOOK_SHARE))
        tau = omega = centre_sigma = None
        if sparse:
            events: list[PrivacyEvent] = [SPARSE_GRAM.event(sigma)]
        else:
            tau, omega = -float(ndtri(tail)), 1.0 / (mu * math.sqrt(_BOUND_SHARE))
            events = sketched_gram_events(sigma=sigma, tau=tau, omega=omega)
        events += noise.events(steps)
        if sizes.centred:
            centre_sigma = 1.0 / (mu * math.sqrt(_CENTRE_SHARE))
            events.append(MEAN.event(centre_sigma))
        return SketchedPlan(
            spent=joint(events, target.delta),
            steps=steps,
            n_rounds=0,
            moment_sigma=sigma,
            k2=k2,
            family=family,
            tau=tau,
            omega=omega,
            centre_sigma=centre_sigma,
            **noise._asdict(),
        )

    def _family(self) -> str:
        if self.sketch != "auto":
            return self.sketch
        return "sparse" if self.variant != "paper" else "srht"

    def _fast_sketch(self, n: int, size: float) -> tuple[str, int]:
        """Return the kind of fast sketch and its rows, about ``size`` unless they are given."""
        family, k2, bits = self._family(), self.sketch_size, (n - 1).bit_length()
        largest = n if family in ("dct", "sparse") else 1 << bits
        if k2 is None and family == "kerdock":
            exponent = math.floor if self.variant == "tuned" else round
            power = exponent(math.log2(max(size, 1.0)))
            k2 = max(1 << min(power, bits), KerdockSketch.least_size(n))
        elif k2 is None:
            k2 = min(largest, math.ceil(size))
            if family == "sparse" and self.variant == "paper":
                k2 = max(1, k2 // 4) * 4  # four entries per column
        check_integer("sketch_size", k2, at_most=largest)
        if family == "kerdock" and k2 & (k2 - 1):
            raise value_error("sketch_size", "be a power of two for the Kerdock sketch", k2)
        # What the sketch itself refuses is refused here, before anything is charged.
        self._sketch(family, k2, n)
        return family, k2

    def _sketch(self, family: str, k2: int, n: int) -> Sketch:
        """Return a fast sketch; with one entry per column, the Gram matrix of a sparse one is best.

        Shortened rows of s entries change by up to the root of s times as much (docs/sketches.md).
        """
        if family == "sparse" and self.variant == "tuned":
            return SparseSketch(k2, n, entries=1)
        return _FAMILIES[family](k2, n)

    def solve(
        self, rows: Rows, plan: FastIHMPlan | SketchedPlan, clip: float, draws: Draws
    ) -> Solution:
        sketch = self._sketch(plan.family, plan.k2, rows.n)
        if isinstance(plan, FastIHMPlan):
            spectrum = released_bounds(rows, plan, draws, sketch, literal=self.literal)
            return self._mixed(rows, spectrum, plan, plan.k1, clip, draws)
        if plan.n_rounds:
            return gaussian_solution(rows, plan, draws)
        mean, sketched = None, rows
        if plan.centre_sigma is not None:
            mean = draws.noise.release(MEAN, rows, sigma=plan.centre_sigma)
            sketched = rows.centred(mean)
        own: dict[str, Any] = {"noise": draws.noise, "public": draws.public}
        own["sigma"] = plan.moment_sigma
        if isinstance(sketch, SparseSketch):
            release = sparse_gram(sketched, sketch=sketch, **own)
        else:
            own |= {"tau": plan.tau, "omega": plan.omega}
            release = sketched_gram(sketched, sketch=sketch, **own)
        if mean is not None:
            release = bordered(release, mean, rows.n)
        return finished_solution(rows, plan, gram_guess(release, rows.n), draws)


def affordable_rows(n: int, d: int, family: str) -> float:
    """Return the rows of a fast sketch whose Gram matrix takes as long as the sketch of n rows.

    Return n if the Gram matrix of all rows takes no longer than a sketch and its Gram matrix.
    """
    if family == "sparse":
        return n / _GROUP if d >= _COLUMNS and n >= _ROWS * d else n
    n_pad = 1 << (n - 1).bit_length()
    rows = n_pad * math.log2(2 * n_pad) / (_PRODUCT * d)
    return rows if rows + 2.0 ** math.floor(math.log2(rows)) < n else n_pad


def bordered(release: GramRelease, mean: FloatArray, n: int) -> GramRelease:
    """Return the Gram matrix of n rows from the Gram matrix of centred features and the mean."""
    gram, size = n * np.outer(mean, mean), len(release.gram)
    gram[:size, :size] += release.gram
    return release._replace(gram=gram)


def gram_guess(release: GramRelease, n: int) -> Guess:
    r"""Return the coordinates in which the released Gram matrix of n rows is n times the identity.

    Eigenvalues are raised by what noise hides, as in the first stage of an adaptive fit. Those of
    the noise alone end at :math:`\sqrt{2d}` times its scale (Wigner); few of the others below count
    by themselves, the rest by their mean, so that rows are measured along few directions.
    """
    (values, vectors), d = np.linalg.eigh(release.gram), len(release.gram)
    spikes = _SPIKES + np.count_nonzero(values > math.sqrt(2.0 * d) * release.scale)
    rest = max(1, d - spikes)
    evident = np.maximum(values, 0.0) / n
    evident[:rest] = evident[:rest].mean()
    whole = evident + least_eigenvalue(release.scale, d) / n + LEAST_VARIANCE
    zero, axes = np.zeros(d), np.sqrt(whole)[:, None] * vectors.T
    shrunk = 1.0 - np.sqrt(whole[0] / whole[rest:])
    transform = Spiked(1.0 / math.sqrt(whole[0]), vectors[:, rest:].copy(), shrunk)
    seen = np.clip(evident / whole, 0.05, 1.0)
    return Guess(zero, cast(FloatArray, transform), axes, seen, zero, _SPREAD)


@lru_cache(maxsize=64)
def _thirds(k1: int, steps: int, target: Target, varrho: float) -> FastIHMPlan:
    """Plan a fresh Gaussian sketch each step, with thirds for bounds, sketches and gradients.

    Paper: Appendix E, eq. for (sigma, tau, omega, gamma), and Appendix H.
    Deviation: the least noise by numerical conversion, not by the closed forms.
    """
    epsilon, delta = target.epsilon / 3.0, target.delta / 3.0
    share = math.nextafter(delta, 0.0)
    tau = rounded_up(math.log(steps * max(1.0 / delta, 16.0 / varrho)))
    omega = 2.0 * steps / epsilon
    gamma = fast_mix_gamma(epsilon, delta, k1 * steps)
    sigma = calibrate_gaussian(epsilon, delta, steps)
    laplace, tail = spectral_events("laplace", tau=tau, omega=omega, count=2 * steps)
    parts = [
        Part("spectral bounds", [laplace], 0.0),
        Part("spectral bounds fail", [tail], share),
        Part("sketches", [SketchEvent("fast_mix", gamma, k1 * steps)], share),
        Part("gradients", [GRADIENT.event(sigma, steps)], share),
    ]
    return FastIHMPlan(
        spent=PrivacySpent(parts),
        steps=steps,
        k1=k1,
        fast_sketches=steps,
        law="laplace",
        gamma=gamma,
        tau=tau,
        omega=omega,
        sigma=sigma,
    )


def fast_mix_gamma(epsilon: float, delta: float, rows: int, before: tuple[Part, ...] = ()) -> float:
    """Return the least level above 5/4 at which rows of FastMix sketches cost epsilon."""

    def spent(budget: float) -> PrivacySpent:
        sketches = SketchEvent("fast_mix", 5.0 / 4.0 + 1.0 / budget, rows)
        return PrivacySpent([*before, Part("sketches", [sketches], delta)])

    return 5.0 / 4.0 + 1.0 / calibrate(spent, epsilon, delta, by="epsilon", start=math.exp(-5.0))


def rounded_up(tau: float) -> float:
    """Raise a shift slightly, so that rounding cannot lift its tail above its share of delta."""
    return tau * (1.0 + 1e-12)
