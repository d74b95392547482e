"""Iterative Hessian mixing with the fast mixing mechanism."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from fastmix._validation import check_choice, check_integer, value_error
from fastmix.accounting import (
    ComposedEvent,
    Part,
    PrivacySpent,
    SketchEvent,
    calibrate_fast_ihm,
    calibrate_tuned_fast_ihm,
)
from fastmix.estimators._base import PrivateRegressor, estimator
from fastmix.estimators._newton import (
    Level,
    check_sketch,
    choice_event,
    choose,
    least_rows,
    mixed_newton,
    tuned_levels,
)
from fastmix.estimators._plan import Plan, Solution, Streams, Target
from fastmix.mechanisms import gradient_events, mean_event, multiple_fast_mix, noisy_mean
from fastmix.mechanisms.spectral_bounds import spectral_events
from fastmix.rows import Rows
from fastmix.sketches import SRHT, KerdockSketch, Sketch, SubsampledDCT

__all__ = ["FastIHM"]


_FAMILIES: dict[str, type[Sketch]] = {
    "dct": SubsampledDCT,
    "kerdock": KerdockSketch,
    "srht": SRHT,
}


@estimator
class FastIHM(PrivateRegressor):
    """Fast iterative Hessian mixing: private least squares by a fast sketch.

    Each step preconditions a noisy gradient with the Gram matrix of a FastMix sketch.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Parameters
    ----------
    {parameters}
    variant : {"tuned", "shared", "paper"}, default="tuned"
        "paper" is Algorithm 2 to the letter: a fresh fast sketch each step, and thirds of the
        budget for spectral bounds, sketches and gradients. "shared" uses one fast sketch, with
        one pair of spectral bounds, for all steps. "tuned" also draws only one Gaussian sketch,
        takes a step of the right length, spends most of the gradient budget on the last steps,
        and accounts for everything at once.
    calibration : {"numerical", "closed_form"}, default="numerical"
        Noise levels by optimised conversion, or by the formulas of Appendix E; the tuned variant
        takes only the first.
    sketch : {"auto", "kerdock", "srht", "dct"}, default="auto"
        The fast sketch. "auto" is the Kerdock sketch, which has the least coherence and needs no
        padding, except in the paper's variant or when ``sketch_size`` is no power of two: then it
        is the subsampled Hadamard transform.

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Paper: Algorithms 2 and 3, Appendix E, set up as in Appendix H.
    Deviation: in "paper" gamma_2 is as corrected (docs/corrections.md); "shared" and "tuned" are
    beyond the paper (docs/proofs).
    Sensitive inputs: the data given to `fit`.

    Examples
    --------
    >>> from fastmix import FastIHM
    >>> from fastmix.datasets import make_sphere
    >>> X, y = make_sphere(n=4096, d=4, random_state=0)
    >>> model = FastIHM(epsilon=3.0, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False)
    >>> model.fit(X, y).coef_.shape
    (4,)
    """

    variant: str = "tuned"

    _infers: ClassVar[bool] = True
    calibration: str = "numerical"
    sketch: str = "auto"

    def _centred(self) -> bool:
        """Whether the mean is taken off first: tuned, with an intercept and bounded features."""
        unbounded = self.bounds_X is None and self.data_norm is not None
        return self.variant == "tuned" and bool(self.fit_intercept) and not unbounded

    def _ignored(self, columns: int | None = None) -> tuple[str, ...]:
        if self.variant != "tuned":
            return ()
        sized = self.gaussian_size is not None and self.sketch_size is not None
        return ("calibration", "failure_probability") if sized else ("calibration",)

    def _plan(self, n: int, d: int, target: Target) -> Plan:
        check_choice("variant", self.variant, ("tuned", "shared", "paper"))
        check_choice("calibration", self.calibration, ("numerical", "closed_form"))
        check_choice("sketch", self.sketch, ("auto", "kerdock", "srht", "dct"))
        tuned = self.variant == "tuned"
        steps = self.n_steps or (16 if tuned else 4)
        base = max(d, math.log(4.0 * steps / target.varrho))
        least = 1 if self.variant == "paper" else least_rows(d, fresh=not tuned)
        k1 = self.gaussian_size or max(math.ceil((24.0 if tuned else 6.0) * base), least)
        family, k2 = self._fast_sketch(n, 200.0 * base)
        if self.variant != "paper":
            check_sketch("gaussian_size", k1, d, fresh=not tuned)
        if tuned:
            # A fast sketch with as many rows as the data keeps all lengths.
            sketched = (k1, k2) if k2 < n else (k1,)
            spent, noise = self._plan_tuned(d, sketched, steps, target)
        else:
            spent, noise = self._plan_thirds(k1, steps, target)
        sizes = {"n_steps_": steps, "k1": k1, "k2": k2, "sketch_family": family}
        return Plan(spent, {**sizes, **noise})

    def _works_in_blocks(self, columns: int) -> bool:
        return super()._works_in_blocks(columns) and self._family() == "kerdock"

    def _family(self) -> str:
        """Return the kind of fast sketch."""
        if self.sketch != "auto":
            return self.sketch
        given = self.sketch_size
        usable = given is None or not given & (given - 1)
        return "kerdock" if usable and self.variant != "paper" else "srht"

    def _fast_sketch(self, n: int, size: float) -> tuple[str, int]:
        """Return the kind of fast sketch and its rows, about ``size`` unless they are given."""
        given, family = self.sketch_size, self._family()
        largest = n if family == "dct" else 1 << (n - 1).bit_length()
        k2 = given
        if k2 is None and family == "kerdock":
            k2 = 1 << min(round(math.log2(size)), (n - 1).bit_length())
            k2 = max(k2, KerdockSketch.least_size(n))
        elif k2 is None:
            k2 = min(largest, math.ceil(size))
        check_integer("sketch_size", k2, at_most=largest)
        if family == "kerdock" and k2 & (k2 - 1):
            raise value_error("sketch_size", "be a power of two for the Kerdock sketch", k2)
        # What the sketch itself refuses is refused here, before anything is charged.
        _FAMILIES[family](k2, n)
        return family, k2

    def _plan_tuned(
        self, d: int, rows: tuple[int, ...], steps: int, target: Target
    ) -> tuple[PrivacySpent, dict[str, Any]]:
        centred, k1 = self._centred(), rows[0]
        noise = calibrate_tuned_fast_ihm(target.epsilon, target.delta, k1, steps, centred=centred)
        levels = tuned_levels(noise, d, *rows)
        bounds = spectral_events("gaussian", tau=noise.tau, omega=noise.spectral, count=2)
        means = [] if noise.mean is None else [mean_event(sigma=noise.mean)]
        events = [*means, *bounds, choice_event(levels, "fast_mix_sharp", k1)]
        return PrivacySpent([Part("all releases", events, target.delta)]), {
            "n_sketches": 1,
            "curve": "fast_mix_sharp",
            "release": "gaussian",
            "mean_sigma": noise.mean,
            "levels": levels,
            "tau": noise.tau,
            "omega": noise.spectral,
        }

    def _plan_thirds(
        self, k1: int, steps: int, target: Target
    ) -> tuple[PrivacySpent, dict[str, Any]]:
        epsilon, delta, varrho = target
        share = math.nextafter(delta / 3.0, 0.0)
        pairs = 1 if self.variant == "shared" else steps
        noise = calibrate_fast_ihm(
            epsilon, delta, k1, steps, self.calibration, varrho=varrho, n_sketches=pairs
        )
        level = Level(noise.gamma, (noise.sigma,) * steps)
        laplace, tail = spectral_events(
            "laplace", tau=noise.tau, omega=noise.omega, count=2 * pairs
        )
        spent = PrivacySpent(
            [
                Part("spectral bounds", [laplace], 0.0),
                Part("spectral bounds fail", [tail], share),
                Part("sketches", [SketchEvent("fast_mix", noise.gamma, k1 * steps)], share),
                Part("gradients", gradient_events(level.sigmas), share),
            ]
        )
        return spent, {
            "n_sketches": steps,
            "curve": "fast_mix",
            "release": "laplace",
            "mean_sigma": None,
            "levels": (level,),
            "tau": noise.tau,
            "omega": noise.omega,
        }

    def _solve(self, rows: Rows, plan: Plan, clip: float, streams: Streams) -> Solution:
        k1, levels = plan["k1"], plan["levels"]
        shift = plan["tau"] * plan["omega"]
        mean, sketched = None, rows
        if plan["mean_sigma"] is not None:
            mean = noisy_mean(
                rows, sigma=plan["mean_sigma"], rng=streams.secret, noise=streams.noise
            )
            sketched = rows.centred(mean)
        mix = multiple_fast_mix(
            sketched,
            k1=k1,
            gamma=lambda reached: choose(levels, reached, shift).gamma,
            tau=plan["tau"],
            omega=plan["omega"],
            sketch=_FAMILIES[plan["sketch_family"]](plan["k2"], rows.n),
            n_steps=plan["n_sketches"],
            shared=self.variant == "shared",
            release=plan["release"],
            form="gram",
            engine=self._engine(),
            curve=plan["curve"],
            noise=streams.noise,
            rng=streams.secret,
            sketch_rng=streams.public,
        )
        level = choose(levels, mix.level, shift)
        theta, event, trace = mixed_newton(
            rows,
            mix,
            level,
            k=k1,
            clip=clip,
            shrinkage=self.shrinkage,
            noise=streams.noise,
            rng=streams.secret,
            progress=self._progress,
            mean=mean,
        )
        means = [] if mean is None else [mean_event(sigma=plan["mean_sigma"])]
        event = ComposedEvent([*means, event])
        noise = level.sigmas[-1] * clip
        return Solution(
            theta, event, gamma=level.gamma, eta=mix.eta, gradient_noise=noise, trace=trace
        )
