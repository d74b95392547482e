"""Iterative Hessian mixing with the fast mixing mechanism."""

from __future__ import annotations

import math

from fastmix._validation import check_choice, check_integer
from fastmix.accounting import Part, PrivacySpent, SketchEvent, calibrate_fast_ihm
from fastmix.estimators._base import Plan, PrivateRegressor, Solution, Streams, Target, estimator
from fastmix.estimators._newton import newton_steps
from fastmix.mechanisms import gradient_event, multiple_fast_mix, noisy_gradient
from fastmix.mechanisms.spectral_bounds import spectral_events
from fastmix.rows import Rows
from fastmix.sketches import SRHT, Sketch, SubsampledDCT

__all__ = ["FastIHM"]


@estimator
class FastIHM(PrivateRegressor):
    """Fast iterative Hessian mixing: private least squares by a fast sketch.

    Each step preconditions a noisy gradient with the Gram matrix of a FastMix sketch.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Parameters
    ----------
    {parameters}
    variant : {"shared", "paper"}, default="shared"
        "paper" is Algorithm 2 to the letter: a fresh fast sketch each step, and thirds of the
        budget for spectral bounds, sketches and gradients. "shared" uses one fast sketch, with
        one pair of spectral bounds, for all steps.
    calibration : {"numerical", "closed_form"}, default="numerical"
        Noise levels by optimised conversion, or by the formulas of Appendix E.
    sketch : {"srht", "dct"}, default="srht"
        The fast sketch.

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Paper: Algorithms 2 and 3, Appendix E, set up as in Appendix H.
    Deviation: gamma_2 as corrected (docs/corrections.md).
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

    variant: str = "shared"
    calibration: str = "numerical"
    sketch: str = "srht"

    def _plan(self, n: int, d: int, target: Target) -> Plan:
        epsilon, delta, varrho = target
        check_choice("variant", self.variant, ("shared", "paper"))
        check_choice("sketch", self.sketch, ("srht", "dct"))
        steps = self.n_steps
        base = max(d, math.log(4.0 * steps / varrho))
        k1 = self.gaussian_size or math.ceil(6.0 * base)
        largest = 1 << (n - 1).bit_length() if self.sketch == "srht" else n
        k2 = self.sketch_size or min(largest, math.ceil(200.0 * base))
        check_integer("sketch_size", k2, at_most=largest)
        share = math.nextafter(delta / 3.0, 0.0)
        pairs = 1 if self.variant == "shared" else steps
        noise = calibrate_fast_ihm(
            epsilon, delta, k1, steps, self.calibration, varrho=varrho, n_sketches=pairs
        )
        laplace, tail = spectral_events(
            "laplace", tau=noise.tau, omega=noise.omega, count=2 * pairs
        )
        spent = PrivacySpent(
            [
                Part("spectral bounds", [laplace], 0.0),
                Part("spectral bounds fail", [tail], share),
                Part("sketches", [SketchEvent("fast_mix", noise.gamma, k1 * steps)], share),
                Part(
                    "gradients",
                    [gradient_event(sigma=noise.sigma, clip=1.0, n_steps=steps)],
                    share,
                ),
            ]
        )
        parameters = {
            "k1": k1,
            "k2": k2,
            "gamma": noise.gamma,
            "sigma": noise.sigma,
            "tau": noise.tau,
            "omega": noise.omega,
        }
        return Plan(spent, parameters)

    def _solve(self, rows: Rows, plan: Plan, clip: float, streams: Streams) -> Solution:
        family: type[Sketch] = SRHT if self.sketch == "srht" else SubsampledDCT
        k1, gamma, sigma = plan["k1"], plan["gamma"], plan["sigma"] * clip
        mix = multiple_fast_mix(
            rows,
            k1=k1,
            gamma=gamma,
            tau=plan["tau"],
            omega=plan["omega"],
            sketch=family(plan["k2"], rows.n),
            n_steps=self.n_steps,
            shared=self.variant == "shared",
            form="gram",
            engine=self._engine(),
            rng=streams.secret,
            sketch_rng=streams.public,
        )
        theta = newton_steps(
            mix.sketches,
            lambda theta: noisy_gradient(rows, theta, clip=clip, sigma=sigma, rng=streams.secret),
            n_steps=self.n_steps,
            d=rows.d,
            scale=k1,
            ridge=mix.eta**2 if self.shrinkage else 0.0,
            progress=self._progress,
        )
        event = mix.event + gradient_event(sigma=plan["sigma"], clip=1.0, n_steps=self.n_steps)
        return Solution(theta, event, gamma=gamma, eta=mix.eta, gradient_noise=sigma)
