"""Full-batch gradient descent with clipped residuals and Gaussian noise."""

from __future__ import annotations

import math

import numpy as np

from fastmix._validation import check_real
from fastmix.accounting import ComposedEvent, Part, PrivacySpent, gaussian_sigma
from fastmix.estimators._base import PrivateRegressor, estimator
from fastmix.estimators._plan import Plan, Solution, Streams, Target
from fastmix.mechanisms import gradient_events, noisy_gradient
from fastmix.rows import Rows

__all__ = ["DPGradientDescent"]


@estimator
class DPGradientDescent(PrivateRegressor):
    """Private gradient descent on the squared loss, full batch.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Parameters
    ----------
    {parameters}
    learning_rate : float, default=0.25
        Step size on the mean gradient.

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Paper: a method it compares with.
    Deviation: noise by the analytic Gaussian mechanism over all steps.
    Sensitive inputs: the data given to `fit`.
    """

    learning_rate: float = 0.25

    def _ignored(self, columns: int | None = None) -> tuple[str, ...]:
        return ("gaussian_size", "sketch_size", "failure_probability", "shrinkage", "engine")

    def _plan(self, n: int, d: int, target: Target) -> Plan:
        epsilon, delta, _ = target
        check_real("learning_rate", self.learning_rate, above=0.0)
        steps = self.n_steps or 100
        # A hair below the target, so that rounding in the account cannot exceed it.
        sigma = math.sqrt(steps) * gaussian_sigma(epsilon * (1.0 - 1e-9), delta)
        events = gradient_events([sigma] * steps)
        spent = PrivacySpent([Part("gradients", events, delta)])
        return Plan(spent, {"n_steps_": steps, "sigma": sigma})

    def _solve(self, rows: Rows, plan: Plan, clip: float, streams: Streams) -> Solution:
        sigma = plan["sigma"] * clip
        theta = np.zeros(rows.d)
        steps = plan["n_steps_"]
        for t in range(steps):
            self._progress(t + 1, steps)
            g = noisy_gradient(
                rows, theta, clip=clip, sigma=sigma, rng=streams.secret, noise=streams.noise
            )
            theta = theta + self.learning_rate / rows.n * g
        event = ComposedEvent(gradient_events([plan["sigma"]] * steps))
        return Solution(theta, event, gradient_noise=sigma)
