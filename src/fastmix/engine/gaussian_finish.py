r"""Noisy gradient steps in whitened coordinates: a fit whose releases are all Gaussian.

A first look gives coordinates :math:`\theta = c + T\phi` in which every curvature is about n, and
counts of gradients give the clipping level C. The steps minimise the squared loss with slopes that
end at C, plus the ridge :math:`\lambda|\phi|^2/2`. With :math:`\phi_0 = v_0 = 0` and
:math:`\tilde g_t = \sum_i f'_i(\phi_t) z_i + \sigma C \zeta_t`, where :math:`z_i = T^\top x_i` and
:math:`\zeta_t` is standard normal,

.. math::

    v_{t+1} = \beta v_t + \frac{s}{n} (\tilde g_t - \lambda\phi_t), \qquad
    \phi_{t+1} = \phi_t + v_{t+1}, \qquad
    \hat\phi = \bar\phi + \frac{\bar g - \lambda\bar\phi}{n + \lambda},

with means :math:`\bar\phi` and :math:`\bar g` of iterates and gradients over the last three
quarters of the steps. The last term is a Newton step for the curvature n. With many steps the
noise of :math:`\hat\phi` tends to that of the minimiser of a perturbed objective with noise
:math:`\sigma C/\sqrt{k}`, k being the number of averaged steps, whatever the true curvature is.

Beside an objective perturbation with the same budget this needs more passes over the rows, and it
composes with other Gaussian releases at no loss, so that more fits share one budget.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.engine import adaptive_inference as inference
from fastmix.engine.clipping import (
    CLIP,
    EDGES,
    LEAST_CLIP,
    LEFT,
    SHORTEST,
    Levels,
    best_clip,
    typical_gradient,
)
from fastmix.engine.first_stage import ROOM, SPREAD, Guess, first_stage, least_eigenvalue
from fastmix.engine.gaussian_plan import GaussianPlan
from fastmix.engine.inference import Intervals
from fastmix.engine.last_stage import LEAST_KEPT
from fastmix.engine.objective import squares
from fastmix.engine.plan import Draws, Forecast, Solution
from fastmix.kernels.losses import Loss
from fastmix.releases import (
    GRADIENT_COUNTS,
    SLOPES,
    TARGET_MEAN,
)

# The constants were chosen on California, bike, protein, elevators, wine, pumadyn32nm and 1,000
# rows of diamonds, at epsilon 0.3, 1 and 3.
#: Length and momentum of the steps. They are stable for curvatures up to 7 n, and 32 of them reach
#: directions with curvatures down to n/50.
STEP, MOMENTUM = 0.5, 0.8
#: With fewer steps momentum dies out in as large a share of them, and steps are at most that long.
FADES, LONGEST_STEP = 6.4, 1.0
#: One step in so many comes before the averages.
BEFORE = 4
#: Noise may move the predictions of an iterate by so many spreads of the residuals, squared; with
#: more noise steps are shorter.
MOVE = 1.0
#: Ridge in units of noise over the spread of residuals, and at least in units of n.
RIDGE, LEAST_RIDGE = 2.0, 0.01
#: Spread of residuals that a forecast expects after a first look.
TYPICAL = 0.17
#: Rows have full weight up to this length in units of the root of the seen directions.
LONGEST = 8.0


def gaussian_solution(rows: Rows, plan: GaussianPlan, draws: Draws) -> Solution:
    """Release the first look of a plan, then what follows it."""
    steps = plan.n_rounds + plan.steps
    look = replace(draws, progress=lambda step, _: draws.progress(step, steps))
    return finished_solution(
        rows, plan, first_stage(rows, plan.n_rounds, plan.moment_sigma, None, look), draws
    )


def finished_solution(rows: Rows, plan: GaussianPlan, guess: Guess, draws: Draws) -> Solution:
    """Release mean, counts and steps after a first look, and shrink by what noise explains.

    With intervals nothing is shrunk: they are for coefficients that are not biased on purpose.
    """
    if plan.n_rounds < 2:
        mean = np.zeros(rows.d)
        if plan.mean_sigma is not None:
            target = draws.noise.release(TARGET_MEAN, rows, sigma=plan.mean_sigma)
            mean[-1] = target / rows.constant
        guess = guess._replace(center=mean, baseline=mean)
    guess, levels = chosen_levels(rows, plan, guess, draws)
    found = gaussian_finish(
        rows, guess, levels, plan.sigma, plan.steps, draws, before=plan.n_rounds
    )
    (theta, kept), intervals = without_noise(found, guess), None
    if plan.curvature_sigma is not None:
        theta, intervals = _inferred(rows, plan, guess, levels, found, draws)
        kept = 1.0
    chosen = {
        "rounds": plan.n_rounds,
        "residual_spread": guess.spread,
        "gradient_clip": levels.clip,
        "ridge": levels.ridge,
        "longest_row": levels.longest,
        "kept": kept,
    }
    noise = found.gradient_noise
    return Solution(theta, gradient_noise=noise, chosen=chosen, intervals=intervals)


def seen_directions(seen: FloatArray) -> int:
    """Return how many directions the rows fill: the mean squared length of rows in coordinates.

    Where noise hides most of them, rows are shorter than sqrt(d), and so are gradients.
    """
    return max(1, round(float(np.sum(seen))))


def chosen_levels(
    rows: Rows, plan: GaussianPlan, guess: Guess, draws: Draws
) -> tuple[Guess, Levels]:
    """Release counts of gradients, and choose clipping level and ridge from them.

    A guess that starts at the mean of the target knows no residuals: there the counts also tell
    their spread.
    """
    n, d = rows.n, seen_directions(guess.seen)
    root = math.sqrt(d)
    longest, edges = LONGEST * root, EDGES * (root * guess.spread)
    counts = draws.noise.release(
        GRADIENT_COUNTS,
        rows,
        theta=guess.center,
        transform=guess.transform,
        least=SHORTEST * root,
        longest=longest,
        edges=edges,
        loss=None,
        sigma=plan.count_sigma,
    )
    if plan.n_rounds < 2:
        typical = typical_gradient(counts, edges, n) / root
        guess = guess._replace(spread=min(guess.spread, typical))
    level = CLIP * root * guess.spread
    best = best_clip(counts, edges[1:], plan.count_sigma, n, d, plan.mu)
    clip = max(LEAST_CLIP * level, level if best is None else best)
    return guess, Levels(clip, ridge_for(plan, clip, guess.spread, n, d), longest)


def ridge_for(plan: GaussianPlan, clip: float, spread: float, n: int, d: int) -> float:
    """Return the ridge for a clipping level and the spread of residuals (`clipping.ridge_for`).

    A Gaussian release needs no ridge for its privacy. The least ridge keeps directions that noise
    hides near the coefficients of the first look; it would bias steps that start at the mean.
    """
    ratio = clip / (plan.mu * spread)
    least = LEAST_RIDGE * n if plan.n_rounds > 1 else 0.0
    return max(RIDGE * ratio, ratio**2 * d / (n * LEFT), least)


class Finished(NamedTuple):
    """Coefficients after the steps, and what they came about by.

    ``theta`` is :math:`c + T\\hat\\phi`, with noise of covariance ``noise @ noise.T`` if the first
    look is right; ``mean`` is :math:`c + T\\bar\\phi`, and ``gradient`` is :math:`\\bar g`, whose
    noise has the standard deviation ``gradient_noise``.
    """

    theta: FloatArray
    noise: FloatArray
    mean: FloatArray
    gradient: FloatArray
    gradient_noise: float


def gaussian_finish(
    rows: Rows,
    guess: Guess,
    levels: Levels,
    sigma: float,
    steps: int,
    draws: Draws,
    *,
    before: int = 0,
) -> Finished:
    """Release the gradients of so many steps from the centre of a guess on.

    ``guess`` and ``levels`` are public or released; ``sigma`` is the noise of each gradient in
    units of the clipping level, so that the event is ``SLOPES.event(sigma, steps)``. ``before``
    counts the passes that came before, for the progress.
    """
    n, d, transform = rows.n, seen_directions(guess.seen), guess.transform
    pull, length = step_for(levels, guess.spread, sigma, n, d, steps)
    loss, first, momentum = _loss(levels), steps // BEFORE, momentum_of(steps)
    phi, move, mean, gradient = np.zeros((4, rows.d))
    for step in range(steps):
        draws.progress(before + step + 1, before + steps)
        released = draws.noise.release(
            SLOPES,
            rows,
            theta=guess.center + transform @ phi,
            loss=loss,
            transform=transform,
            least=SHORTEST * math.sqrt(d),
            sigma=sigma,
        )
        if step >= first:
            mean += phi / (steps - first)
            gradient += released / (steps - first)
        move = momentum * move + length * (released / n - pull * phi)
        phi = phi + move
    last = mean + (gradient / n - pull * mean) / (1.0 + pull)
    noise = sigma * levels.clip / n * np.sqrt(response(guess.seen, pull, length, steps).noise)
    return Finished(
        theta=guess.center + transform @ last,
        noise=guess.axes.T * (noise / np.sum(guess.axes**2, axis=1)),  # axes are orthogonal
        mean=guess.center + transform @ mean,
        gradient=gradient,
        gradient_noise=sigma * levels.clip / math.sqrt(steps - first),
    )


def momentum_of(steps: int) -> float:
    """Return the momentum b of so many steps; what it carries fades as the root of b each step."""
    return min(MOMENTUM, max(0.0, 1.0 - FADES / steps))


def step_for(
    levels: Levels, spread: float, sigma: float, n: int, d: int, steps: int
) -> tuple[float, float]:
    r"""Return the ridge in units of n, and the length of a step.

    The noise of an iterate has about the variance :math:`s/(2(1-\beta))` times that of a gradient
    in every direction; steps are shorter where that would move the residuals.
    """
    pull, rest = levels.ridge / n, 1.0 - momentum_of(steps)
    step = min(STEP * rest / (1.0 - MOMENTUM), LONGEST_STEP)
    moved = d * (sigma * levels.clip / n) ** 2 / (2.0 * rest)
    return pull, min(step, MOVE * spread**2 / moved) / (1.0 + pull)


class Response(NamedTuple):
    """What steps make of noise of variance 1 in gradients over n, and of the distance to go."""

    noise: FloatArray  #: Variance, for each curvature.
    missed: FloatArray  #: Share of the distance from the start to the truth that is left.


def response(curvatures: FloatArray, pull: float, length: float, steps: int) -> Response:
    """Follow the recursion of the steps backwards, along directions with curvatures in units of n.

    A gradient acts on its own term of the average and, through the next iterate and the next
    momentum, on all later ones.
    """
    first, whole, momentum = steps // BEFORE, curvatures + pull, momentum_of(steps)
    noise, reached, place, speed = np.zeros((4, len(curvatures)))
    for step in reversed(range(steps)):
        weight = 1.0 / (steps - first) if step >= first else 0.0
        correction = weight / (1.0 + pull)
        influence = correction + length * (place + speed)
        noise += influence**2
        reached += influence
        speed = momentum * (place + speed)
        # The correction takes the ridge off the mean of the iterates as a part of the curvature.
        place = place + weight - whole * influence
    return Response(noise, 1.0 - curvatures * reached)


def without_noise(found: Finished, guess: Guess) -> tuple[FloatArray, float]:
    """Shrink coefficients to the baseline by the share of their energy that noise explains.

    This is the positive part of James and Stein's estimator; the second number is the share kept.
    """
    moved = guess.axes @ (found.theta - guess.baseline)
    variances = np.einsum("ij,ji->i", guess.axes, found.noise) ** 2  # independent along the axes
    energy = max(float(guess.seen @ moved**2), 1e-300)
    kept = max(LEAST_KEPT, 1.0 - float(guess.seen @ variances) / energy)
    return np.asarray(guess.baseline + kept * (found.theta - guess.baseline)), kept


def _loss(levels: Levels) -> Loss:
    """Return the squared loss with slopes that end at the clipping level, which needs no ridge."""
    return squares(levels.clip, 1e6 * levels.longest**2, 1.0, levels.longest)


def _inferred(
    rows: Rows, plan: GaussianPlan, guess: Guess, levels: Levels, found: Finished, draws: Draws
) -> tuple[FloatArray, Intervals]:
    r"""Release the curvature, and return coefficients with intervals.

    To first order :math:`\bar\phi + V(\bar g - \lambda\bar\phi) = V(J\phi^* + e + \bar b)` for the
    noise :math:`\bar b` of the averaged gradient, whether or not the steps have converged. This is
    the equation of a minimiser (`adaptive_inference`).
    """
    assert plan.curvature_sigma is not None
    assert plan.square_sigma is not None
    most = inference.most_square(plan.curvature_sigma, rows.n, rows.d)
    known = inference.Known(found.gradient_noise, levels.ridge, whole=rows.n)
    look = inference.looked(
        rows,
        draws,
        sigma=(plan.curvature_sigma, plan.square_sigma),
        square=min(levels.longest**2, most),
        lipschitz=levels.clip,
        whole=rows.n,
        transform=guess.transform,
        theta=found.theta,
        loss=_loss(levels),
        least=SHORTEST * math.sqrt(seen_directions(guess.seen)),
    )
    moved = inference.corrected(found.mean, guess, look, known, found.gradient)
    theta = guess.center + guess.transform @ (look.vectors @ moved.along)
    return theta, inference.intervals_of(theta, guess, moved, look, known, 1.0)


def gaussian_forecast(
    plan: GaussianPlan, n: int, eigenvalues: FloatArray, theta_squared: FloatArray
) -> Forecast:
    """Follow the steps along every eigenvector, for typical residuals and a first look at its mean.

    ``eigenvalues`` and ``theta_squared`` are those of `Method.forecast`.
    """
    columns = len(eigenvalues)
    floor = least_eigenvalue(plan.moment_sigma, columns + 1)
    hidden = floor * min(1.0, ROOM * (columns + 1) * floor / n) ** max(plan.n_rounds - 1, 0)
    seen = eigenvalues / (eigenvalues + hidden)
    spread, d = TYPICAL if plan.n_rounds > 1 else SPREAD, seen_directions(seen)
    clip = CLIP * math.sqrt(d) * spread
    levels = Levels(clip, ridge_for(plan, clip, spread, n, d), LONGEST * math.sqrt(d))
    pull, length = step_for(levels, spread, plan.sigma, n, d, plan.steps)
    noise, missed = response(seen, pull, length, plan.steps)
    if plan.n_rounds > 1:
        missed = missed * (1.0 - seen)
    return Forecast(
        eta=0.0,
        gradient_noise=plan.sigma * clip / math.sqrt(plan.steps - plan.steps // BEFORE),
        noise_risk=(plan.sigma * clip / n) ** 2 * float(seen @ noise),
        bias_risk=float(eigenvalues @ (missed**2 * theta_squared)) / n,
    )
