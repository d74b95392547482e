"""Sketch and solve: one private sketch of (X, y)."""

from __future__ import annotations

import math
from typing import Any

from fastmix._validation import check_choice, check_integer
from fastmix.accounting import (
    Part,
    PrivacySpent,
    SketchEvent,
    calibrate_fast_mix,
    calibrate_gauss_mix,
    calibrate_joint_mix,
)
from fastmix.estimators._base import PrivateRegressor, estimator
from fastmix.estimators._plan import Plan, Solution, Streams, Target
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
    calibration : {"joint", "published"}, default="joint"
        "joint" accounts for sketch and spectral bounds at once; "published" adds up parts at
        shares of delta, as Theorem 1 and Lev et al. (2025) do.

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Paper: the remark after Theorem 2; set up as in Lev et al. (2025).
    Deviation: "published" charges the eigenvalue by the analytic Gaussian mechanism; "joint" is
    beyond the paper (docs/proofs/joint_account.md).
    Sensitive inputs: the data given to `fit`.
    """

    fast: bool = False
    calibration: str = "joint"

    def _ignored(self, columns: int | None = None) -> tuple[str, ...]:
        unused = ["n_steps", "residual_clip", "shrinkage"]
        if not self.fast:
            unused.append("sketch_size")
        if self.gaussian_size is not None and (self.sketch_size is not None or not self.fast):
            unused.append("failure_probability")
        return tuple(unused)

    def _plan(self, n: int, d: int, target: Target) -> Plan:
        check_choice("calibration", self.calibration, ("joint", "published"))
        epsilon, delta, varrho = target
        base = max(d, math.log(2.0 / varrho))
        k = self.gaussian_size or math.ceil(2.5 * base)
        sizes = {"n_steps_": 1, "k": k}
        if self.fast:
            largest = 1 << (n - 1).bit_length()
            k2 = self.sketch_size or min(largest, math.ceil(200.0 * base))
            sizes["k2"] = check_integer("sketch_size", k2, at_most=largest)
        if self.calibration == "joint":
            spent, noise = self._plan_joint(epsilon, delta, k)
        elif self.fast:
            spent, noise = self._plan_fast_thirds(epsilon, delta, k)
        else:
            spent, noise = self._plan_thirds(epsilon, delta, k)
        return Plan(spent, {**sizes, **noise})

    def _plan_joint(
        self, epsilon: float, delta: float, k: int
    ) -> tuple[PrivacySpent, dict[str, Any]]:
        noise = calibrate_joint_mix(epsilon, delta, k, fast=bool(self.fast))
        count, curve = (2, "fast_mix_sharp") if self.fast else (1, "gauss_mix")
        bounds = spectral_events("gaussian", tau=noise.tau, omega=noise.spectral, count=count)
        part = Part("all releases", [*bounds, SketchEvent(curve, noise.gamma, k)], delta)
        return PrivacySpent([part]), {
            "gamma": noise.gamma,
            "tau": noise.tau,
            "omega": noise.spectral,
            "release": "gaussian",
            "curve": curve,
        }

    def _plan_fast_thirds(
        self, epsilon: float, delta: float, k: int
    ) -> tuple[PrivacySpent, dict[str, Any]]:
        share = math.nextafter(delta / 3.0, 0.0)
        noise = calibrate_fast_mix(epsilon, delta, k)
        laplace, tail = spectral_events("laplace", tau=noise.tau, omega=noise.omega, count=2)
        parts = [
            Part("spectral bounds", [laplace], 0.0),
            Part("spectral bounds fail", [tail], 2.0 * share),
            Part("sketch", [SketchEvent("fast_mix", noise.gamma, k)], share),
        ]
        return PrivacySpent(parts), {
            "gamma": noise.gamma,
            "tau": noise.tau,
            "omega": noise.omega,
            "release": "laplace",
            "curve": "fast_mix",
        }

    def _plan_thirds(
        self, epsilon: float, delta: float, k: int
    ) -> tuple[PrivacySpent, dict[str, Any]]:
        share = math.nextafter(delta / 3.0, 0.0)
        noise = calibrate_gauss_mix(epsilon, delta, k)
        eigenvalue, tail = spectral_events(
            "gaussian", tau=noise.tau, omega=noise.lambda_sigma, count=1
        )
        parts = [
            Part("smallest eigenvalue", [eigenvalue], share),
            Part("smallest eigenvalue fails", [tail], share),
            Part("sketch", [SketchEvent("gauss_mix", noise.gamma, k)], share),
        ]
        return PrivacySpent(parts), {
            "gamma": noise.gamma,
            "tau": noise.tau,
            "omega": noise.lambda_sigma,
        }

    def _works_in_blocks(self, columns: int) -> bool:
        return super()._works_in_blocks(columns) and not self.fast

    def _solve(self, rows: Rows, plan: Plan, clip: float, streams: Streams) -> Solution:
        self._progress(1, 1)
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
                release=plan["release"],
                curve=plan["curve"],
                form="gram",
                engine=self._engine(),
                noise=streams.noise,
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
                lambda_sigma=plan["omega"],
                form="gram",
                engine=self._engine(),
                noise=streams.noise,
                rng=streams.secret,
            )
            gram, eta, event = gauss.sketch, gauss.eta, gauss.event
        joint_gram = gram.matrix()
        theta = symmetric_solve(joint_gram[:-1, :-1], joint_gram[:-1, -1])
        return Solution(theta, event, gamma=plan["gamma"], eta=eta)
