"""Gaussian steps: the recursion, its noise, its shares and its intervals."""

import math

import numpy as np
import pytest

from fastmix.data import ArrayRows, RowMap
from fastmix.engine.clipping import Levels
from fastmix.engine.first_stage import Guess
from fastmix.engine.gaussian_finish import (
    BEFORE,
    gaussian_finish,
    gaussian_forecast,
    momentum_of,
    response,
    step_for,
    without_noise,
)
from fastmix.engine.gaussian_plan import STEPS, finish_noise, gaussian_plan
from fastmix.engine.plan import Draws, Sizes, Target
from fastmix.releases import SLOPES, make_noise


def problem(n=4000, d=3):
    """Rows with a second moment of about the identity over 16 d, and no residuals."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d)) / (2.0 * math.sqrt(d))
    theta = np.array([0.5, -0.4, 0.3])
    rows = ArrayRows(X, RowMap(1.0), X @ theta)
    root = np.linalg.cholesky(X.T @ X / n)
    guess = Guess(
        center=np.zeros(d),
        transform=np.linalg.inv(root).T,
        axes=root.T,
        seen=np.ones(d),
        baseline=np.zeros(d),
        spread=0.2,
    )
    return rows, theta, guess


def draws(seed):
    noise = make_noise(seed)
    return Draws(noise, np.random.default_rng(seed))


def test_it_releases_its_steps_and_nothing_else():
    rows, _, guess = problem()
    source = draws(0)
    gaussian_finish(rows, guess, Levels(2.0, 40.0, 10.0), 3.0, 5, source)
    assert source.noise.drawn == [SLOPES.event(3.0)] * 5


def test_without_noise_it_is_the_ridge_solution():
    """In coordinates where the curvature is n, the last Newton step is exact."""
    rows, theta, guess = problem()
    for steps in (1, 2, 32):
        levels = Levels(50.0, 0.05 * rows.n, 100.0)
        found = gaussian_finish(rows, guess, levels, 1e-6, steps, draws(1))
        np.testing.assert_allclose(found.theta, theta / 1.05, rtol=1e-4)


@pytest.mark.parametrize("steps", [1, 3, 8, 32])
def test_the_response_is_that_of_the_recursion(steps):
    """Against the recursion itself, one unit of noise at a time."""
    curvatures, pull, length = np.array([0.02, 0.3, 1.0, 1.6]), 0.03, 0.4

    def last(shocks, truth):
        phi, move, first = np.zeros(4), np.zeros(4), steps // BEFORE
        iterates, gradients = [], []
        for shock in shocks:
            gradient = curvatures * (truth - phi) - pull * phi + shock
            iterates.append(phi)
            gradients.append(gradient)
            move = momentum_of(steps) * move + length * gradient
            phi = phi + move
        mean = np.mean(iterates[first:], axis=0)
        return mean + np.mean(gradients[first:], axis=0) / (1.0 + pull)

    found = response(curvatures, pull, length, steps)
    gains = [last(row[:, None] * np.ones(4), 0.0) for row in np.eye(steps)]
    np.testing.assert_allclose(found.noise, np.square(gains).sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found.missed, 1.0 - last(np.zeros((steps, 4)), 1.0), atol=1e-12)


def test_many_steps_have_the_noise_of_one_objective():
    """The variance tends to that of a minimiser whose noise is that of the averaged gradient."""
    curvatures, pull, steps = np.array([0.3, 1.0, 2.0]), 0.05, 4000
    averaged = steps - steps // BEFORE
    limit = 1.0 / (averaged * (curvatures + pull) ** 2)
    found = response(curvatures, pull, 0.5, steps)
    np.testing.assert_allclose(found.noise, limit, rtol=0.02)
    np.testing.assert_allclose(found.missed, pull / (curvatures + pull), atol=1e-4)


def test_the_stated_noise_is_that_of_many_fits():
    """Standard deviations of 300 fits within a fifth of the stated ones."""
    rows, _, guess = problem()
    levels = Levels(2.0, 0.05 * rows.n, 10.0)
    found = [gaussian_finish(rows, guess, levels, 20.0, 16, draws(seed)) for seed in range(300)]
    stated = np.sqrt(np.diag(found[0].noise @ found[0].noise.T))
    spread = np.std([each.theta for each in found], axis=0)
    np.testing.assert_allclose(spread, stated, rtol=0.2)
    energy = [np.sum((guess.axes @ (each.theta - guess.baseline)) ** 2) for each in found]
    kept = [np.sum((guess.axes @ without_noise(each, guess)[0]) ** 2) for each in found]
    assert np.all(np.array(kept) <= energy)


def test_noise_and_ridge_shorten_steps():
    levels = Levels(2.0, 100.0, 10.0)
    pull, length = step_for(levels, 0.2, 1.0, 10_000, 3, 32)
    assert (pull, length) == (0.01, 0.5 / 1.01)
    assert step_for(levels, 0.2, 1e5, 10_000, 3, 32)[1] < 1e-2 * length
    # The longest curvature of the ridge alone is stable.
    pull, length = step_for(Levels(2.0, 1e7, 10.0), 0.2, 1.0, 10_000, 3, 32)
    assert length * (1.0 + pull) <= 0.5 * (1.0 + 1e-12)


@pytest.mark.parametrize("inferring", [False, True])
@pytest.mark.parametrize("from_mean", [False, True])
def test_the_shares_add_up(from_mean, inferring):
    sizes = Sizes(1000, 5, intercept=True)
    noise = finish_noise(sizes, 0.4, 7, 0.12, from_mean=from_mean, inferring=inferring)
    ratios = sum(event.mu_squared for event in noise.events(7))
    assert ratios == pytest.approx((1.0 - 0.12) * 0.4**2)
    assert (noise.mean_sigma is not None) == from_mean
    assert (noise.curvature_sigma is not None) == inferring


def test_few_rows_have_one_round_and_start_at_the_mean():
    target = Target(1.0, 1e-6)
    few, many = (gaussian_plan(Sizes(5000, 20, intercept=True), target, k) for k in (0, 3))
    assert (few.n_rounds, few.mean_sigma is None) == (1, False)
    assert many.n_rounds == 3
    assert many.mean_sigma is None
    assert many.steps == STEPS


def test_more_rows_have_less_error():
    spectrum = np.geomspace(1e-3, 1.0, 8)
    risks = []
    for n in (1000, 10_000, 1_000_000):
        plan = gaussian_plan(Sizes(n, 8, intercept=True), Target(1.0, 1e-8), 3)
        risks.append(gaussian_forecast(plan, n, n * spectrum, 0.01 / spectrum).excess_risk)
    assert risks[0] > risks[1] > risks[2] > 0.0
