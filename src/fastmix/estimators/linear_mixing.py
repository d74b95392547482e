"""Sketch and solve: one private sketch of (X, y)."""

from __future__ import annotations

import math

from fastmix._validation import check_integer
from fastmix.accounting import (
    Part,
    PrivacySpent,
    SketchEvent,
    calibrate_fast_mix,
    calibrate_gauss_mix,
)
from fastmix.estimators._base import Plan, PrivateRegressor, Solution, Streams, Target, estimator
from fastmix.mechanisms import gauss_mix, multiple_fast_mix, symmetric_solve
from fastmix.mechanisms.spectral_bounds import spectral_events
from fastmix.rows import AugmentedRows, Rows
from fastmix.sketches import SRHT

__all__ = ["LinearMixing"]


@estimator
class LinearMixing(PrivateRegressor):
    """Linear mixing: least squares on one private sketch of features and target together.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Parameters
    ----------
    {parameters}
    fast : bool, default=False
        Put a fast sketch in front of the Gaussian one (FastMix instead of GaussMix). Here
        ``gaussian_size`` defaults to ``2.5 max(d, log(2 / varrho))``.

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Paper: the remark after Theorem 2; set up as in Lev et al. (2025).
    Deviation: the eigenvalue is charged by the analytic Gaussian mechanism.
    Sensitive inputs: the data given to `fit`.
    """

    fast: bool = False

    def _plan(self, n: int, d: int, target: Target) -> Plan:
        epsilon, delta, varrho = target
        k = self.gaussian_size or math.ceil(2.5 * max(d, math.log(2.0 / varrho)))
        share = math.nextafter(delta / 3.0, 0.0)
        if self.fast:
            fast = calibrate_fast_mix(epsilon, delta, k)
            largest = 1 << (n - 1).bit_length()
            k2 = self.sketch_size or min(largest, math.ceil(200.0 * max(d, math.log(2.0 / varrho))))
            check_integer("sketch_size", k2, at_most=largest)
            laplace, tail = spectral_events("laplace", tau=fast.tau, omega=fast.omega, count=2)
            parts = [
                Part("spectral bounds", [laplace], 0.0),
                Part("spectral bounds fail", [tail], 2.0 * share),
                Part("sketch", [SketchEvent("fast_mix", fast.gamma, k)], share),
            ]
            noise = {"k2": k2, "gamma": fast.gamma, "tau": fast.tau, "omega": fast.omega}
        else:
            gauss = calibrate_gauss_mix(epsilon, delta, k)
            eigenvalue, tail = spectral_events(
                "gaussian", tau=gauss.tau, omega=gauss.lambda_sigma, count=1
            )
            parts = [
                Part("smallest eigenvalue", [eigenvalue], share),
                Part("smallest eigenvalue fails", [tail], share),
                Part("sketch", [SketchEvent("gauss_mix", gauss.gamma, k)], share),
            ]
            noise = {"gamma": gauss.gamma, "tau": gauss.tau, "lambda_sigma": gauss.lambda_sigma}
        return Plan(PrivacySpent(parts), {"n_steps_": 1, "k": k, **noise})

    def _solve(self, rows: Rows, plan: Plan, clip: float, streams: Streams) -> Solution:
        joint = AugmentedRows(rows)
        if self.fast:
            fast = multiple_fast_mix(
                joint,
                k1=plan["k"],
                gamma=plan["gamma"],
                tau=plan["tau"],
                omega=plan["omega"],
                sketch=SRHT(plan["k2"], rows.n),
                n_steps=1,
                form="gram",
                engine=self._engine(),
                rng=streams.secret,
                sketch_rng=streams.public,
            )
            gram, eta, event = fast.sketches[0], fast.eta, fast.event
        else:
            gauss = gauss_mix(
                joint,
                k=plan["k"],
                gamma=plan["gamma"],
                tau=plan["tau"],
                lambda_sigma=plan["lambda_sigma"],
                form="gram",
                engine=self._engine(),
                rng=streams.secret,
            )
            gram, eta, event = gauss.sketch, gauss.eta, gauss.event
        joint_gram = gram.matrix()
        theta = symmetric_solve(joint_gram[:-1, :-1], joint_gram[:-1, -1])
        return Solution(theta, event, gamma=plan["gamma"], eta=eta)
