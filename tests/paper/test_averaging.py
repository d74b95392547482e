"""Averaged steps on a noisy Gram matrix: account, lengths of steps, averages, clipping level."""

import math

import numpy as np
import pytest

from fastmix import IHM, FastIHM
from fastmix.accounting.gaussian import gaussian_delta
from fastmix.datasets import make_sphere
from fastmix.engine.plan import Sizes
from fastmix.paper import fast_ihm
from fastmix.paper.averaging import (
    Average,
    Curvature,
    best_clip,
    noise_in_average,
    shrunk,
    without_noise,
)
from fastmix.planning.cost import CostModel
from fastmix.releases import GramRelease
from fastmix.releases.counts import RESIDUAL_EDGES
from fastmix.releases.noise import FloatNoise

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("options", [{}, {"n_steps": 1}, {"n_steps": 3}, {"residual_clip": 0.5}])
@pytest.mark.parametrize("cls", [IHM, FastIHM])
def test_the_account_is_one_gaussian_release_with_its_tail(cls, options, epsilon):
    """Recomputed from the squared ratios of the plan; the whole of delta is used."""
    more = {"sketch_size": 256} if cls is FastIHM else {}
    spent = cls(epsilon=epsilon, delta=1e-6, **options, **more, **PAPER).account(1000, 3)
    gaussian = [event for event in spent.events if hasattr(event, "sigma")]
    mu = math.sqrt(sum(e.count * (e.sensitivity / e.sigma) ** 2 for e in gaussian))
    delta = gaussian_delta(1.0 / mu, epsilon) + spent.tail
    assert delta <= 1e-6
    assert delta == pytest.approx(1e-6, rel=1e-5)
    assert (spent.tail > 0.0) == (cls is FastIHM)
    steps = options.get("n_steps", 16) + (not options)  # the counts are charged like a step
    assert sum(event.count for event in gaussian) == 1 + steps + (cls is FastIHM)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 1.7, 2.0, 5.0])
def test_no_direction_grows_whatever_the_noise_hides(ratio):
    """Noise of a norm up to the expected one, against a flat spectrum, its worst case."""
    rng = np.random.default_rng(0)
    for d in (2, 10, 40):
        norm = math.sqrt(2.0 * d)
        half = rng.standard_normal((d, d))
        noise = (half + half.T) / 2.0
        noise *= norm / np.linalg.norm(noise, 2)
        G = ratio * norm * np.eye(d)
        curvature = Curvature.of(GramRelease(G + noise, 1.0))
        lengths = curvature.lengths(1e-3, 10**6)
        step = (curvature.vectors * lengths) @ curvature.vectors.T @ G
        assert np.abs(1.0 - np.linalg.eigvals(step)).max() < 1.0


def test_noise_shortens_steps():
    curvature = Curvature.of(GramRelease(np.diag([100.0, 200.0, 400.0]), 1.0))
    for sigma in (1.0, 100.0, 1e6):
        lengths = curvature.lengths(sigma, 1000)
        moved = sigma**2 * np.sum(curvature.raised * lengths**2) / 1000
        assert moved <= 0.1 * (1.0 + 1e-9)


def test_the_noise_of_an_average_is_that_of_its_iterates():
    """Against a simulation of one direction: 20,000 runs, 6 standard errors."""
    rng = np.random.default_rng(1)
    values, lengths = np.array([0.3]), np.array([0.8])
    weights = Curvature.of(GramRelease(np.eye(1), 1.0)).windows(9)
    assert weights.sum() == pytest.approx(1.0)
    theta, total = np.zeros(20_000), np.zeros(20_000)
    for weight in weights[:, 0]:
        theta = theta + lengths[0] * (rng.standard_normal(20_000) - values[0] * theta)
        total += weight * theta
    expected = noise_in_average(values, lengths, weights)[0]
    assert total.var() == pytest.approx(expected, rel=6.0 * math.sqrt(2.0 / 20_000))


@pytest.mark.parametrize("spectrum", [np.ones(40), np.geomspace(20.0, 1e-5, 40)])
def test_noise_is_taken_off_the_curvature(spectrum):
    """Against the true curvature along noisy eigenvectors, a quarter of the error is left."""
    rng, scale, d = np.random.default_rng(2), 0.3, len(spectrum)
    before, after = 0.0, 0.0
    for _ in range(10):
        half = rng.standard_normal((d, d))
        values, vectors = np.linalg.eigh(np.diag(spectrum) + scale * (half + half.T) / 2.0)
        true = spectrum @ vectors**2
        before += np.sum((np.maximum(values, 0.0) - true) ** 2)
        after += np.sum((without_noise(values, scale) - true) ** 2)
    assert after < before / 4.0
    assert np.array_equal(without_noise(np.full(3, 2.0), 1.0), np.full(3, 2.0))


def test_with_few_rows_the_mean_is_released_by_itself():
    """By public sizes: fewer than 2.5 d^1.5 / mu rows, an intercept and no weights."""
    made = IHM(epsilon=1.0, delta=1e-6, bounds_X=(0, 1), bounds_y=(0, 1))
    few, many = (made._planned(n, 20)[1] for n in (500, 50_000))
    assert few.target_sigma is not None
    assert many.target_sigma is None
    assert sum(event.count for event in few.spent.events) == 19
    plain = IHM(epsilon=1.0, delta=1e-6, **PAPER)._planned(500, 20)[1]
    assert plain.target_sigma is None


@pytest.mark.filterwarnings("ignore")
def test_where_nothing_is_evident_the_model_is_next_to_nothing():
    """Few rows without a signal, whose mean is that of the bounds, or is far from it."""
    X = np.random.default_rng(3).uniform(0, 1, (2000, 20))
    for level, error in ((0.5, 1e-3), (0.9, 0.1)):
        options = {"epsilon": 0.3, "bounds_X": (0, 1), "bounds_y": (0, 1)}
        model = IHM(random_state=0, **options).fit(X, np.full(2000, level))
        assert model.predict(X).std() < 0.01
        assert model.predict(X).mean() == pytest.approx(level, abs=error)


def test_a_constant_that_noise_explains_is_not_kept():
    class Constant:
        n, d, constant = 100, 3, 0.5

    curvature = Curvature.of(GramRelease(np.diag([4e4, 3e4, 2e4]), 1.0))
    for size, kept in ((2.9, 2e-3), (3.1, 1.0)):
        average = Average(np.array([0.0, 0.0, size]), np.ones(3), np.ones(3), np.ones((1, 3)))
        assert shrunk(average, curvature, Constant())[-1] == pytest.approx(kept * size, rel=0.01)


def test_the_clipping_level_follows_residuals_and_noise():
    curvature = Curvature.of(GramRelease(1e4 * np.eye(4), 1.0))
    shares = np.zeros(len(RESIDUAL_EDGES) - 1)
    shares[np.searchsorted(RESIDUAL_EDGES, 0.1) - 1] = 1.0
    assert 0.08 < best_clip(shares, 1e-6, 1.0, curvature, 10**5) < 0.13
    assert best_clip(shares, 1e-6, 1e6, curvature, 10**5) < 0.05  # noise outweighs all
    assert best_clip(0.0 * shares, 1e-6, 1.0, curvature, 10**5) == 1.0  # nothing is seen


def test_the_fast_sketch_costs_what_its_gram_matrix_does():
    """The constant is that of the fitted cost model, and sizes are powers of two below it."""
    cost = CostModel()
    assert pytest.approx(cost.product / cost.butterfly, rel=0.05) == fast_ihm._PRODUCT
    for n, d, k2 in (
        (2**16, 1024, 2**13),
        (2**17, 512, 2**15),
        (2**17, 256, 2**17),
        (2**17, 90, 2**17),
        (1000, 3, 1024),
    ):
        spent = FastIHM(**PAPER)._planned(n, d)[1]
        assert spent.k2 == k2
        assert (spent.tau is None) == (k2 >= n)


def test_without_a_sketch_it_is_ihm():
    X, y = make_sphere(500, 3, random_state=0)
    fits = [cls(random_state=0, **PAPER).fit(X, y) for cls in (IHM, FastIHM)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("steps", [1, 4, 5, 16])
@pytest.mark.parametrize("cls", [IHM, FastIHM])
@pytest.mark.filterwarnings("ignore")
def test_exact_noise_is_charged_for_all_coordinates(cls, steps, inference, monkeypatch):
    """The counts of residuals have more coordinates than a few gradients of one column."""
    drawn = []

    def counted(self, values, sensitivity, ratio):
        drawn.append(values.size)
        return values

    monkeypatch.setattr(FloatNoise, "_gaussian", counted)
    x = np.linspace(-1, 1, 500)
    model = cls(n_steps=steps, delta=1e-6, inference=inference, **PAPER).fit(x[:, None], x / 2)
    assert sum(drawn) <= model._resolve().coordinates(Sizes(500, 1))
