"""The steps of the tuned variants of IHM and FastIHM: Newton steps on one noisy Gram matrix.

All noise is Gaussian, so that one ratio mu of sensitivity to noise is divided among the releases.
The first quarter of the steps finds where residuals lie; noisy counts of them give the clipping
level of the others, whose iterates are averaged.  What noise alone explains is then taken off.
With few rows, by public sizes, the mean of the targets is released by itself, for that case.
Everything but the releases is computed from released values (docs/proofs/symmetric_noise.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from fastmix._types import FloatArray
from fastmix.accounting import PrivacyEvent
from fastmix.data import Rows
from fastmix.engine.first_stage import spread_known
from fastmix.engine.inference import AveragedTrace
from fastmix.engine.last_stage import LEAST_KEPT
from fastmix.engine.plan import Draws, Forecast, Plan, Sizes, Solution
from fastmix.paper.adassp import noise_norm
from fastmix.releases import GRADIENT, RESIDUAL_COUNTS, TARGET_MEAN, GramRelease
from fastmix.releases.counts import RESIDUAL_EDGES

#: Shares of the budget (of mu^2) for the Gram matrix and for counts of residuals, and the share of
#: what is left that the first steps get.
GRAM_SHARE, COUNTS_SHARE, FIRST_SHARE = 0.2, 0.03, 0.1
#: The mean of the targets is released where there are fewer rows than so many times d^1.5 / mu,
#: with this error in units of half the width of their bounds, if a share between these allows it.
FEW, MEAN_ERROR, MEAN_SHARES = 2.5, 0.03, (0.02, 0.3)
#: Steps: one in so many finds where residuals lie, and of the others so many are averaged.
FIRST, AVERAGED = 4, 2.0 / 3.0
#: The least eigenvalue of the Hessian, in units of the norm of its noise; directions beyond
#: `EVIDENT` converge at once, and all but the first of their iterates are averaged.
FLOOR, EVIDENT = 0.7, 6.0
#: A step times the largest ratio of true to noisy curvature stays below this.
STABLE = 1.9
#: What the noise of a step may add to a mean squared prediction, in units of the squared clipping
#: level: beyond that residuals are clipped, and gradients no longer grow with the error.
LARGEST_MOVE = 0.1
#: Weight of noise against what clipping takes off, and of its mean square beside its square mean.
NOISE, SPREAD = 1.5, 0.05
#: Bins that noise may have filled are those above the last whose sum with all above it is so many
#: standard deviations.
SEEN = 4.0
#: Curvature of directions that noise hides, in units of the least eigenvalue.
HIDDEN = 0.1
#: Coefficients whose energy exceeds that of noise by less than so many of its standard deviations
#: are taken for noise, and so is a constant within so many of its own.
SIGNIFICANT, SIGNIFICANT_CONSTANT = 6.0, 3.0


@dataclass(frozen=True, kw_only=True)
class AveragedPlan(Plan):
    """Noise of the Gram matrix, the targets' mean, the first steps, counts and the other steps."""

    gram_sigma: float
    target_sigma: float | None
    first_steps: int
    first_sigma: float | None
    count_sigma: float | None
    sigma: float

    @property
    def last_steps(self) -> int:
        """The number of steps after the first ones."""
        return self.steps - self.first_steps


class Levels(NamedTuple):
    """The fields of an `AveragedPlan` beside its account and the number of its steps."""

    gram_sigma: float
    target_sigma: float | None
    first_steps: int
    first_sigma: float | None
    count_sigma: float | None
    sigma: float

    def events(self, steps: int) -> list[PrivacyEvent]:
        """Return the events of the mean, of all gradients and of the counts."""
        events: list[PrivacyEvent] = []
        if self.target_sigma is not None:
            events.append(TARGET_MEAN.event(self.target_sigma))
        if self.first_sigma is not None and self.count_sigma is not None:
            events += GRADIENT.events([self.first_sigma] * self.first_steps)
            events.append(RESIDUAL_COUNTS.event(self.count_sigma))
        return events + GRADIENT.events([self.sigma] * (steps - self.first_steps))


def averaged_levels(
    mu: float, steps: int, others: float, sizes: Sizes, *, adaptive: bool
) -> Levels:
    """Divide a ratio mu, of which ``others`` have a share, for steps that choose their clipping.

    Fewer steps than four, and those with a given clipping level, choose none.
    """
    first = steps // FIRST if adaptive else 0
    few = sizes.n * mu < FEW * sizes.d**1.5 and sizes.intercept and not sizes.weighted
    mean = float(np.clip((MEAN_ERROR * sizes.n * mu) ** -2, *MEAN_SHARES)) if few else 0.0
    left = 1.0 - GRAM_SHARE - others - mean - (COUNTS_SHARE if first else 0.0)
    last = (1.0 - FIRST_SHARE) * left if first else left

    def noise(share: float, count: int = 1) -> float:
        return math.sqrt(count / share) / mu

    return Levels(
        gram_sigma=noise(GRAM_SHARE),
        target_sigma=noise(mean) if few else None,
        first_steps=first,
        first_sigma=noise(FIRST_SHARE * left, first) if first else None,
        count_sigma=noise(COUNTS_SHARE) if first else None,
        sigma=noise(last, steps - first),
    )


class Curvature(NamedTuple):
    """A noisy Gram matrix in its eigenvectors, with eigenvalues raised to a floor."""

    vectors: FloatArray
    seen: FloatArray  #: What curvature the rows have along them, as far as the noise lets know.
    raised: FloatArray  #: Eigenvalues, at least the floor.
    norm: float  #: That of the noise.

    @classmethod
    def of(cls, release: GramRelease) -> "Curvature":
        """Return the curvature of a released matrix."""
        values, vectors = np.linalg.eigh(release.gram)
        norm = noise_norm(release.scale, len(values))
        seen = without_noise(values, release.scale)
        return cls(vectors, seen, np.maximum(values, FLOOR * norm), norm)

    def lengths(self, sigma: float, n: int) -> FloatArray:
        """Return the length of a step along each eigenvector, for noise sigma of a gradient.

        The curvature is raised until noise cannot have residuals clipped, and steps are shortened
        until no direction can grow, whatever the noise of the matrix hides.
        """
        raised = self.raised + damping(self.raised, sigma, n)
        return min(1.0, STABLE / (1.0 + self.norm / float(raised.min()))) / raised

    def windows(self, steps: int) -> FloatArray:
        """Return the weight of each iterate in the average, by steps and eigenvectors."""
        few, many = max(1, round(AVERAGED * steps)), max(1, steps - 1)
        sizes = np.where(self.raised > EVIDENT * self.norm, many, few)
        return (np.arange(steps)[:, None] >= steps - sizes) / sizes


def without_noise(values: FloatArray, scale: float) -> FloatArray:
    r"""Return the expected curvature along eigenvectors of a noisy matrix, from its eigenvalues.

    Noise pushes eigenvalues apart, and turns eigenvectors to where it adds to them: that is
    :math:`\sigma^2\sum_{j\ne i} 1/(w_i - w_j)` of :math:`w_i` to first order, made increasing.
    """
    gaps = values[:, None] - values
    pushed = np.divide(1.0, gaps, out=np.zeros_like(gaps), where=gaps != 0.0).sum(axis=1)
    found = isotonic_regression(values - scale**2 * pushed).x
    return np.maximum(np.asarray(found, dtype=np.float64), 0.0)


class Average(NamedTuple):
    """An average of iterates, with what it came about by."""

    theta: FloatArray
    variance: FloatArray  #: Of the noise in it, along the eigenvectors.
    lengths: FloatArray
    weights: FloatArray


def damping(values: FloatArray, sigma: float, n: int) -> float:
    r"""Return the least l with :math:`\sigma^2 \sum_j v_j/(v_j + l)^2 \le n/10`."""
    low, high = 0.0, 1.0

    def moves(level: float) -> bool:
        spread = float(np.sum(values / (values + level) ** 2))
        return sigma**2 * spread > LARGEST_MOVE * n

    if not moves(low):
        return 0.0
    while moves(high):
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if moves(middle) else (low, middle)
    return high


def averaged_solution(
    rows: Rows, release: GramRelease, plan: AveragedPlan, clip: float, draws: Draws
) -> Solution:
    """Run the steps on a released Gram matrix, and shrink the average by what noise explains.

    With intervals nothing is shrunk: they are for coefficients that are not biased on purpose.
    """
    curvature, start, constant = Curvature.of(release), np.zeros(rows.d), None
    if (mean_sigma := plan.target_sigma) is not None:
        mean = draws.noise.release(TARGET_MEAN, rows, sigma=mean_sigma)
        constant = evident(mean, mean_sigma / rows.n) / rows.constant
    if plan.first_sigma is not None:
        first = _average(rows, curvature, plan, clip, draws, start, first=True)
        start = shrunk(first, curvature, rows, constant)
        sigma = plan.count_sigma or math.nan
        counts = draws.noise.release(RESIDUAL_COUNTS, rows, theta=start, clip=clip, sigma=sigma)
        noise = plan.sigma / math.sqrt(plan.last_steps)
        clip *= best_clip(counts / rows.n, sigma / rows.n, noise, curvature, rows.n)
    last = _average(rows, curvature, plan, clip, draws, start)
    inferred = plan.residual_sigma is not None
    theta = last.theta if inferred else shrunk(last, curvature, rows, constant)
    trace = AveragedTrace(
        gram=release.gram,
        scale=release.scale,
        vectors=curvature.vectors,
        lengths=last.lengths,
        weights=last.weights,
        sigma=plan.sigma * clip,
        start=start,
    )
    return Solution(theta, gradient_noise=plan.sigma * clip, trace=trace)


def _average(
    rows: Rows,
    curvature: Curvature,
    plan: AveragedPlan,
    clip: float,
    draws: Draws,
    theta: FloatArray,
    *,
    first: bool = False,
) -> Average:
    """Run the first steps or the others, and average their iterates."""
    steps, before = (plan.first_steps, 0) if first else (plan.last_steps, plan.first_steps)
    sigma = plan.first_sigma if first and plan.first_sigma is not None else plan.sigma
    lengths, weights = curvature.lengths(sigma, rows.n), curvature.windows(steps)
    basis, total = curvature.vectors, np.zeros(rows.d)
    for t in range(steps):
        draws.progress(before + t + 1, plan.steps)
        g = draws.noise.release(GRADIENT, rows, theta=theta, clip=clip, sigma=sigma)
        theta = theta + basis @ (lengths * (basis.T @ g))
        total += weights[t] * (basis.T @ theta)
    variance = (sigma * clip) ** 2 * noise_in_average(curvature.seen, lengths, weights)
    return Average(basis @ total, variance, lengths, weights)


def noise_in_average(values: FloatArray, lengths: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the variance of an average of iterates, for noise of size 1 in every gradient."""
    left, influence, total = 1.0 - lengths * values, np.zeros_like(values), np.zeros_like(values)
    for weight in weights[::-1]:
        influence = weight + left * influence
        total += (influence * lengths) ** 2
    return total


def evident(value: float, error: float) -> float:
    """Return a number, or next to nothing of it where its standard error explains it."""
    return value if abs(value) > SIGNIFICANT_CONSTANT * error else LEAST_KEPT * value


def shrunk(
    average: Average, curvature: Curvature, rows: Rows, constant: float | None = None
) -> FloatArray:
    r"""Shrink coefficients towards a constant prediction by the ridge of least estimated risk.

    Along an eigenvector with curvature w the average is the truth with noise of a known variance
    v, so that a ridge that keeps a share k of it has the risk
    :math:`\sum w ((1-k)^2 x^2 + 2 k v)` up to a constant, whatever the truth is (Stein). If the
    energy of all coefficients is that of noise, next to nothing is kept, beside the ``constant``
    if that is known better than by the prediction at the mean of the rows.
    """
    basis, d = curvature.vectors, rows.d
    values = np.maximum(curvature.seen, HIDDEN * FLOOR * curvature.norm)
    centre = np.zeros(d)
    if rows.constant:
        row = basis[-1] * values  # of the matrix times the last unit vector, in its eigenvectors
        row /= float(row @ basis[-1])
        error = math.sqrt(float(row**2 @ average.variance))
        centre[-1] = evident(float(row @ (basis.T @ average.theta)), error)
    moved, variance = basis.T @ (average.theta - centre), average.variance
    if np.sum(moved**2 / variance) < d + SIGNIFICANT * math.sqrt(2.0 * d):
        centre[-1] = centre[-1] if constant is None else constant
        return centre + LEAST_KEPT * (average.theta - centre)
    ridges = np.append(0.0, np.geomspace(1e-4, 1e4, 60) * rows.n / d)
    kept = values / (values + ridges[:, None])
    risks = (1.0 - kept) ** 2 @ (values * moved**2) + 2.0 * kept @ (values * variance)
    return np.asarray(centre + basis @ (kept[np.argmin(risks)] * moved))


def best_clip(
    shares: FloatArray, sigma: float, noise: float, curvature: Curvature, n: int
) -> float:
    r"""Return the share of a clipping level that balances noise against clipping, at most 1.

    ``shares`` are noisy shares of n records in the bins of residuals, with noise sigma.

    Noise of a level L adds :math:`(L s)^2 \mathrm{tr}(H^{-1})/n` to the risk, for noise s in the
    averaged gradient, and clipping at most the mean of :math:`(|r| - L)_+^2`; if what is clipped
    does not go with the features, only the square of its mean.
    """
    sizes = RESIDUAL_EDGES[1:]
    tails = np.cumsum(shares[::-1])[::-1]
    filled = np.flatnonzero(tails > SEEN * sigma * np.sqrt(np.arange(len(shares), 0, -1)))
    if not len(filled):
        return 1.0
    known = np.maximum(shares, 0.0)
    known[filled[-1] + 1 :] = 0.0
    beyond = np.maximum(sizes[None, :] - sizes[:, None], 0.0)
    clipped = (beyond @ known) ** 2 + SPREAD * (beyond**2 @ known)
    added = (sizes * noise) ** 2 * float(np.sum(1.0 / curvature.raised)) / n
    return float(sizes[np.argmin(NOISE * added + clipped)])


def averaged_forecast(
    plan: AveragedPlan,
    n: int,
    eigenvalues: FloatArray,
    theta_squared: FloatArray,
    scale: float,
) -> Forecast:
    """Follow the steps in each eigenvector, for a noisy Gram matrix at its mean."""
    d = len(eigenvalues)
    norm = noise_norm(scale, d)
    curvature = Curvature(np.eye(d), eigenvalues, np.maximum(eigenvalues, FLOOR * norm), norm)
    sigma = plan.count_sigma  # of counts that tell the clipping level, or hide it
    chosen = sigma is not None and spread_known(n, len(RESIDUAL_EDGES) - 1, sigma)
    clip = 0.5 if chosen else 1.0
    lengths, weights = curvature.lengths(plan.sigma, n), curvature.windows(plan.last_steps)
    noise = (plan.sigma * clip) ** 2 * noise_in_average(eigenvalues, lengths, weights)
    left = 1.0 - lengths * eigenvalues
    powers: Sequence[int] = range(plan.first_steps + 1, plan.steps + 1)
    rest = np.sum([w * left**power for w, power in zip(weights, powers, strict=True)], axis=0)
    return Forecast(
        eta=0.0,
        gradient_noise=plan.sigma * clip,
        noise_risk=float(eigenvalues @ noise) / n,
        bias_risk=float(eigenvalues @ (rest**2 * theta_squared)) / n,
    )
