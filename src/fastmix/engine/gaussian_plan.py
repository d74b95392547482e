"""The plan of a fit whose releases are all Gaussian: a first look, counts, and gradient steps."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastmix.accounting import PrivacyEvent, calibrate_gaussian
from fastmix.engine import adaptive_inference as inference
from fastmix.engine.plan import Plan, Sizes, Target, joint
from fastmix.releases import (
    CURVATURE,
    GRADIENT_COUNTS,
    SECOND_MOMENTS,
    SLOPES,
    SQUARES,
    TARGET_MEAN,
)

# The constants were chosen on California, bike, protein, elevators, wine, pumadyn32nm and 1,000
# rows of diamonds, at epsilon 0.3, 1 and 3.
#: Shares of the budget (of mu^2) for the second moments of the first look, and for the counts.
LOOK_SHARE, COUNTS_SHARE = 0.12, 0.03
#: Error of the released mean of the target in units of half the width of its bounds, for a share
#: between these two.
MEAN_ERROR, MEAN_SHARES = 0.03, (0.02, 0.3)
#: Number of steps.
STEPS = 32


@dataclass(frozen=True, kw_only=True)
class GaussianPlan(Plan):
    """Noise of all releases of a fit; ``sigma`` is that of each of the ``steps`` gradients.

    With fewer than two rounds of second moments the steps start at the mean of the target, not at
    the coefficients of the first look.
    """

    n_rounds: int
    moment_sigma: float
    mean_sigma: float | None
    count_sigma: float
    sigma: float
    curvature_sigma: float | None = None
    square_sigma: float | None = None

    @property
    def mu(self) -> float:
        """The ratio of sensitivity to noise of all steps together."""
        return math.sqrt(self.steps) / self.sigma

    @property
    def settings(self) -> dict[str, Any]:
        """Sizes and noise levels by name; those of intervals if there are any."""
        settings = super().settings
        if self.curvature_sigma is None:
            del settings["curvature_sigma"], settings["square_sigma"]
        return settings


class FinishNoise(NamedTuple):
    """Noise of everything but the first look; the names are those of `GaussianPlan`."""

    mean_sigma: float | None
    count_sigma: float
    sigma: float
    curvature_sigma: float | None
    square_sigma: float | None

    def events(self, steps: int) -> list[PrivacyEvent]:
        """Return the events of so many steps, and of the other releases."""
        events: list[PrivacyEvent] = []
        if self.mean_sigma is not None:
            events.append(TARGET_MEAN.event(self.mean_sigma))
        events += [GRADIENT_COUNTS.event(self.count_sigma), SLOPES.event(self.sigma, steps)]
        if self.curvature_sigma is not None and self.square_sigma is not None:
            events.append(CURVATURE.event(self.curvature_sigma, inference.CURVATURE_ROUNDS))
            events.append(SQUARES.event(self.square_sigma))
        return events


def finish_noise(
    sizes: Sizes, mu: float, steps: int, look: float, *, from_mean: bool, inferring: bool
) -> FinishNoise:
    """Divide the ratio mu of a budget, of which the first ``look`` has a share.

    ``from_mean`` says that the steps start at the mean of the target, and ``inferring`` that
    intervals need curvatures.
    """
    mean = 0.0
    if from_mean and sizes.intercept:
        mean = min(max((MEAN_ERROR * sizes.n * mu) ** -2, MEAN_SHARES[0]), MEAN_SHARES[1])
    curvature, square = inference.CURVATURE_SHARE, inference.SQUARES_SHARE
    others = look + mean + COUNTS_SHARE + (curvature + square if inferring else 0.0)

    def noise(share: float) -> float:
        return 1.0 / (math.sqrt(share) * mu)

    return FinishNoise(
        mean_sigma=noise(mean) if mean else None,
        count_sigma=noise(COUNTS_SHARE),
        sigma=math.sqrt(steps) * noise(1.0 - others),
        curvature_sigma=noise(curvature / inference.CURVATURE_ROUNDS) if inferring else None,
        square_sigma=noise(square) if inferring else None,
    )


def gaussian_mu(target: Target) -> float:
    """Return the ratio of sensitivity to noise of one Gaussian release that meets a target."""
    return 1.0 / calibrate_gaussian(target.epsilon, target.delta, 1, slack=1e-9)


def gaussian_plan(
    sizes: Sizes, target: Target, rounds: int, *, steps: int = STEPS, inferring: bool = False
) -> GaussianPlan:
    """Plan second moments in rounds, counts and steps, under one exact account.

    ``rounds`` are those that pay by public sizes (`adaptive.useful_rounds`). With 0 there are too
    few rows for them: then one round tells the directions of the rows.
    """
    mu = gaussian_mu(target)
    noise = finish_noise(sizes, mu, steps, LOOK_SHARE, from_mean=not rounds, inferring=inferring)
    rounds = max(rounds, 1)
    moment_sigma = math.sqrt(rounds / LOOK_SHARE) / mu
    events = [SECOND_MOMENTS.event(moment_sigma, rounds), *noise.events(steps)]
    return GaussianPlan(
        spent=joint(events, target.delta),
        steps=steps,
        n_rounds=rounds,
        moment_sigma=moment_sigma,
        **noise._asdict(),
    )
