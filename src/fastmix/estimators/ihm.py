"""Iterative Hessian mixing with a dense Gaussian sketch."""

from __future__ import annotations

import math

from fastmix._validation import check_choice
from fastmix.accounting import Part, PrivacySpent, SketchEvent, calibrate_ihm
from fastmix.estimators._base import Plan, PrivateRegressor, Solution, Streams, Target, estimator
from fastmix.estimators._newton import newton_steps
from fastmix.mechanisms import gauss_mix, gradient_event, noisy_gradient
from fastmix.mechanisms.spectral_bounds import spectral_events
from fastmix.rows import Rows

__all__ = ["IHM"]


@estimator
class IHM(PrivateRegressor):
    """Iterative Hessian mixing: private least squares by Gaussian sketches of the Hessian.

    Each step preconditions a noisy gradient with the Gram matrix of a Gaussian sketch. One
    private smallest eigenvalue sets the noise of all sketches.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Parameters
    ----------
    {parameters}
    variant : {"paper"}, default="paper"
        "paper" is the method the paper compares with: a fresh sketch each step, half of the
        budget for sketches and eigenvalue, half for gradients.

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Paper: the baseline of Appendix H (Lev et al., 2026).
    Deviation: the eigenvalue is charged by the analytic Gaussian mechanism.
    Sensitive inputs: the data given to `fit`.

    Examples
    --------
    >>> from fastmix import IHM
    >>> from fastmix.datasets import make_sphere
    >>> X, y = make_sphere(n=4096, d=4, random_state=0)
    >>> model = IHM(epsilon=3.0, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False)
    >>> model.fit(X, y).coef_.shape
    (4,)
    """

    variant: str = "paper"

    def _plan(self, n: int, d: int, target: Target) -> Plan:
        epsilon, delta, varrho = target
        check_choice("variant", self.variant, ("paper",))
        steps = self.n_steps
        k = self.gaussian_size or math.ceil(6.0 * max(d, math.log(4.0 * steps / varrho)))
        noise = calibrate_ihm(epsilon, delta, k, steps, varrho=varrho)
        eigenvalue, tail = spectral_events(
            "gaussian", tau=noise.tau, omega=noise.lambda_sigma, count=1
        )
        spent = PrivacySpent(
            [
                Part("smallest eigenvalue", [eigenvalue], delta / 4.0),
                Part("smallest eigenvalue fails", [tail], delta / 4.0),
                Part("sketches", [SketchEvent("gauss_mix", noise.gamma, k * steps)], delta / 4.0),
                Part(
                    "gradients",
                    [gradient_event(sigma=noise.sigma, clip=1.0, n_steps=steps)],
                    delta / 4.0,
                ),
            ]
        )
        parameters = {
            "k": k,
            "gamma": noise.gamma,
            "sigma": noise.sigma,
            "tau": noise.tau,
            "lambda_sigma": noise.lambda_sigma,
        }
        return Plan(spent, parameters)

    def _solve(self, rows: Rows, plan: Plan, clip: float, streams: Streams) -> Solution:
        k, gamma, sigma = plan["k"], plan["gamma"], plan["sigma"] * clip
        mix = gauss_mix(
            rows,
            k=k,
            gamma=gamma,
            tau=plan["tau"],
            lambda_sigma=plan["lambda_sigma"],
            n_steps=self.n_steps,
            form="gram",
            engine=self._engine(),
            rng=streams.secret,
        )
        theta = newton_steps(
            mix.sketches,
            lambda theta: noisy_gradient(rows, theta, clip=clip, sigma=sigma, rng=streams.secret),
            n_steps=self.n_steps,
            d=rows.d,
            scale=k,
            ridge=mix.eta**2 if self.shrinkage else 0.0,
            progress=self._progress,
        )
        event = mix.event + gradient_event(sigma=plan["sigma"], clip=1.0, n_steps=self.n_steps)
        return Solution(theta, event, gamma=gamma, eta=mix.eta, gradient_noise=sigma)
