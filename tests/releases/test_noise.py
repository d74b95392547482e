"""Discrete noise on a grid: the proof's inequalities, the sampler, and what fits make of it.

Noise is seeded; over seeds, the false-alarm rates of the statistical tests here are 1e-9 each.
"""

from __future__ import annotations

import copy
import math
import pickle

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binomtest, kstest

from fastmix.accounting import gaussian_delta, rdp_laplace
from fastmix.data import ArrayRows, RowMap
from fastmix.random import secret_generator
from fastmix.releases import GRADIENT, MEAN, STATISTICS, gauss_mix, make_noise
from fastmix.releases import noise as noises
from fastmix.releases.noise import (
    EXACT_BITS,
    EXCESS,
    SLACK,
    ExactNoise,
    FloatNoise,
    as_noise,
    enlarged_sensitivity,
    grid_step,
)

mp = mpmath.mp.clone()
mp.dps = 40

# --- rounding and sensitivity -------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
    moves=st.lists(st.floats(-1.0, 1.0), min_size=8, max_size=8),
    sigma=st.floats(1e-3, 1e6),
)
def test_rounding_moves_neighbours_by_no_more_than_is_paid(values, moves, sigma):
    first = np.array(values)
    second = first + np.array(moves[: len(values)])
    step = grid_step(sigma, EXACT_BITS)
    apart = float(np.linalg.norm(first - second))
    for rounding in (np.rint, np.floor, np.ceil):
        rounded = step * np.linalg.norm(rounding(first / step) - rounding(second / step))
        assert rounded <= enlarged_sensitivity(apart, step, len(values)) * (1 + 1e-12)


def test_the_enlargement_is_needed():
    """Two vectors a hair apart that rounding moves a whole step apart in each coordinate."""
    step, hair = 0.25, 1e-9
    first, second = np.full(9, 0.5 * step - hair), np.full(9, 0.5 * step + hair)
    rounded = step * np.linalg.norm(np.rint(first / step) - np.rint(second / step))
    assert rounded == pytest.approx(3 * step)
    assert rounded <= enlarged_sensitivity(2 * hair * 3, step, 9)


@pytest.mark.parametrize("sigma", [1e-6, 0.3, 1.0, 47.0, 300.0])
@pytest.mark.parametrize("sensitivity", [1e-4, 1.0, 2.0])
@pytest.mark.parametrize("size", [1, 40, 2000])
def test_noise_over_sensitivity_is_at_least_what_the_event_says(sigma, sensitivity, size):
    step, scale = noises._level(sensitivity, sigma / sensitivity, size)
    assert 2.0**32 * step <= sigma < 2.0**33 * step
    assert math.frexp(step)[0] == 0.5
    assert isinstance(scale, int)
    paid = scale * step / enlarged_sensitivity(sensitivity, step, size)
    assert 1.0 <= paid / (sigma / sensitivity * (1 + EXCESS)) < 1.0 + 2.0**-31


@pytest.mark.parametrize("ratio", [0.4, 1.0, 6.0, 300.0])
def test_opendp_confirms_the_cost(ratio):
    """That library's privacy map of the same noise, for the enlarged sensitivity in steps."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    step, scale = noises._level(2.0, ratio, 50)
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=float(scale))
    assert gaussian.map(enlarged_sensitivity(2.0, step, 50) / step) <= 0.5 / ratio**2
    step, scale = noises._level(2.0, ratio, 1)
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(scale))
    assert laplace.map(math.ceil(enlarged_sensitivity(2.0, step, 1) / step)) <= 1.0 / ratio


def test_a_sensitivity_of_zero_is_refused():
    with pytest.raises(ValueError, match="sensitivity must be greater than 0"):
        noises._level(0.0, 1.0, 1)


def test_the_event_is_a_pure_epsilon():
    (event,) = ExactNoise.cost(1000)
    assert event.pure_epsilon == 1000 * SLACK
    assert SLACK >= (1 / 8 + 40.0**2 / 24) / 2.0**64
    assert SLACK < 4e-18
    with pytest.raises(ValueError, match="size must be at least 1"):
        ExactNoise.cost(0)


# --- the inequalities of docs/proofs/exact_noise.md, away from the size where they are tiny -----


def discrete_gaussian(s, width=60):
    x = np.arange(-math.ceil(width * s), math.ceil(width * s) + 1)
    log = -(x.astype(float) ** 2) / (2 * s**2)
    return x, log - math.log(math.fsum(np.exp(log)))


@pytest.mark.parametrize("s", [2.0, 7.3, 64.0])
def test_discrete_and_rounded_gaussian_are_close_at_every_point(s):
    x, log_discrete = discrete_gaussian(s, width=12)
    for at, discrete in list(zip(x, log_discrete, strict=True))[:: max(1, len(x) // 60)]:
        low, high = (mp.ncdf(mp.mpf(float(at) + side) / s) for side in (-0.5, 0.5))
        if at > 0:
            low, high = (1 - mp.ncdf(-mp.mpf(float(at) + side) / s) for side in (-0.5, 0.5))
        ratio = float(mp.log(high - low)) - discrete
        assert -1 / (8 * s**2) - 1e-12 <= ratio <= float(at) ** 2 / (24 * s**4) + 1e-12


@pytest.mark.parametrize("s", [8.0, 50.0])
@pytest.mark.parametrize("mu", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 6.0])
def test_privacy_profile_of_the_discrete_gaussian(s, mu, epsilon):
    """One coordinate: the exact delta is at most that of the Gaussian, with the slack added."""
    slack = 1 / (8 * s**2) + 40.0**2 / (24 * s**2)
    shift = max(1, round(mu * s))  # in grid steps
    x, log_p = discrete_gaussian(s, width=45)
    log_q = log_p + shift * (2 * x - shift) / (2 * s**2)
    delta = math.fsum(np.maximum(0.0, np.exp(log_p) - np.exp(epsilon + slack + log_q)))
    claimed = gaussian_delta(s / shift, epsilon)
    assert delta <= claimed * math.exp(1 / (8 * s**2)) + 1e-14


@pytest.mark.parametrize("scale", [1.0, 3.0, 40.0])
@pytest.mark.parametrize("shift", [1, 2, 11])
def test_renyi_curve_of_the_discrete_laplace(scale, shift):
    """A hair above the continuous curve, and below it with the excess of the proof."""
    x = np.arange(-3000, 3001)

    def curve(alpha, t):
        r = math.exp(-1 / t)
        log_c = math.log1p(-r) - math.log1p(r)
        log_p, log_q = log_c - np.abs(x) / t, log_c - np.abs(x - shift) / t
        return math.log(math.fsum(np.exp(alpha * log_p + (1 - alpha) * log_q))) / (alpha - 1)

    excess = 1 / (3 * shift * scale)
    for alpha in (1.01, 1.5, 2.0, 8.0, 40.0):
        continuous = float(rdp_laplace(alpha, scale / shift))
        assert curve(alpha, scale * (1 + excess)) <= continuous * (1 + 1e-9)
        assert curve(alpha, scale) >= continuous * (1 - 1e-9)


@pytest.mark.parametrize("tau", [0.0, 0.7, 3.0, 14.0])
@pytest.mark.parametrize("t", [1.0, 5.5, 2.0**32])
def test_shifted_bounds_fail_no_more_often_than_is_paid(tau, t):
    shift = math.ceil(tau * t) + 1
    r = mp.exp(-1 / mp.mpf(t))
    assert r ** (shift + 1) / (1 + r) <= mp.exp(-tau) / 2
    if t < 100:
        x, log_p = discrete_gaussian(t)
        assert math.fsum(np.exp(log_p[x > shift])) <= ndtr(-tau)


# --- the sampler --------------------------------------------------------------------------------


def test_gaussian_noise_has_its_distribution():
    draws = make_noise("exact", 1)._gaussian(np.full(20_000, 3.0), sensitivity=1.0, ratio=2.0)
    step, scale = noises._level(1.0, 2.0, 20_000)
    assert kstest((draws - 3.0) / (scale * step), "norm").pvalue > 1e-9


@pytest.mark.parametrize(("law", "exact"), [("laplace", "laplace"), ("gaussian", "norm")])
def test_bounds_have_their_distribution(law, exact):
    noise = make_noise("exact", 2)
    options = {"sensitivity": 1.0, "ratio": 2.0, "tau": 50.0, "law": law}
    above = [noise._bound(7.0, above=True, **options) for _ in range(3000)]
    below = [noise._bound(300.0, above=False, **options) for _ in range(3000)]
    step, scale = noises._level(1.0, 2.0, 1)
    assert kstest((np.array(above) - 7.0) / (step * scale) - 50.0, exact).pvalue > 1e-9
    assert kstest((np.array(below) - 300.0) / (step * scale) + 50.0, exact).pvalue > 1e-9


@pytest.mark.parametrize(("law", "tail"), [("laplace", 0.5 / math.e), ("gaussian", ndtr(-1))])
def test_bounds_err_on_their_side(law, tail):
    noise = make_noise("exact", 3)
    options = {"sensitivity": 1.0, "ratio": 2.0, "tau": 1.0, "law": law}
    failures = sum(noise._bound(50.0, above=False, **options) > 50.0 for _ in range(3000))
    failures += sum(noise._bound(50.0, above=True, **options) < 50.0 for _ in range(3000))
    assert binomtest(failures, 6000, tail, alternative="greater").pvalue > 1e-9
    assert binomtest(failures, 6000, tail, alternative="less").pvalue > 1e-9


def test_values_lie_on_the_grid():
    noise = make_noise("exact", 4)
    values = np.random.default_rng(0).normal(size=(6, 7))
    step = grid_step(0.3, 32)
    noisy = noise._gaussian(values, sensitivity=1.0, ratio=0.3)
    assert noisy.shape == (6, 7)
    np.testing.assert_array_equal(noisy, np.rint(noisy / step) * step)
    bound = noise._bound(1.0, above=True, sensitivity=1.0, ratio=0.3, tau=1.0, law="laplace")
    assert bound == round(bound / step) * step


def test_huge_values_are_moved_to_the_end_of_the_grid():
    noise = make_noise("exact", 5)
    for value in (1e300, -1e300, 1e12):
        (noisy,) = noise._gaussian(np.array([value]), sensitivity=1.0, ratio=1.0)
        assert abs(noisy) <= 2.0**63 * grid_step(1.0, 32)
    assert (
        noise._bound(-1e300, above=False, sensitivity=1.0, ratio=1.0, tau=1.0, law="laplace") == 0.0
    )


# --- releases -----------------------------------------------------------------------------------


def small_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (50, 3))
    return ArrayRows(X, RowMap(1.0), rng.uniform(-1, 1, 50))


def test_releases_lie_on_the_grid():
    rows, noise = small_rows(), make_noise("exact", 4)
    gradient = noise.release(GRADIENT, rows, theta=np.zeros(3), clip=1.0, sigma=2.0)
    noise.release(MEAN, rows, sigma=2.0)
    release = noise.release(STATISTICS, rows, sigma=2.0)
    step = grid_step(2.0, 32)
    for values in (gradient, release.gram, release.moment, release.eigenvalue):
        np.testing.assert_array_equal(values, np.rint(np.asarray(values) / step) * step)
    np.testing.assert_array_equal(release.gram, release.gram.T)
    assert len(noise.drawn) == len(noise.transcript) + 2 == 5
    assert noise.coordinates == 3 + 3 + 6 + 3 + 1


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_a_seed_repeats_the_noise(kind):
    first, second = (make_noise(kind, 7)._gaussian(np.zeros(5), 1.0, 1.0) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert isinstance(as_noise(7), FloatNoise)


def test_the_kind_of_noise_is_checked():
    with pytest.raises(ValueError, match="noise must be one of 'float', 'exact'; got noise='fl'"):
        make_noise("fl")
    rng = secret_generator()
    noise = make_noise("exact", rng)
    assert isinstance(noise, ExactNoise)
    assert noise.rng is rng
    assert as_noise(noise) is noise
    assert isinstance(as_noise(None), FloatNoise)
    assert FloatNoise.cost(10) == ()


def test_exact_noise_goes_through_a_sketch():
    """The eigenvalue of a sketch lies on the fine grid, and costs what it costs with floats."""
    rows, noise = small_rows(), make_noise("exact", 6)
    level = {"k": 4, "gamma": 5.0, "tau": 1.0, "omega": 0.1}
    releases = [gauss_mix(rows, rng=noise, **level) for _ in range(20)]
    step = grid_step(0.1, EXACT_BITS)
    values = np.array([release.lambda_tilde[0] for release in releases])
    assert (values > 0.0).any()
    np.testing.assert_array_equal(values, np.rint(values / step) * step)
    assert not np.array_equal(values, np.rint(values / (2**12 * step)) * 2**12 * step)
    assert releases[0].event == gauss_mix(rows, rng=FloatNoise(noise.rng), **level).event


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_noise_is_never_copied(copied):
    with pytest.raises(TypeError, match="Noise must not be copied"):
        copied(make_noise("float"))
