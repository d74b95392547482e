"""Noise on a grid: rounded continuous noise, exactly, and what releases make of it.

Noise is seeded; over seeds, the false-alarm rates of the statistical tests here are 1e-9 each.
"""

from __future__ import annotations

import copy
import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binomtest, kstest

from fastmix.data import ArrayRows, RowMap
from fastmix.random import secret_generator
from fastmix.releases import GRADIENT, MEAN, STATISTICS, Noise, gauss_mix, make_noise
from fastmix.releases import noise as noises
from fastmix.releases.noise import as_noise, grid_step
from tests.floats import FloatNoise

# --- scale and rounding -------------------------------------------------------------------------


@settings(max_examples=500, deadline=None)
@given(ratio=st.floats(1e-6, 1e6), sensitivity=st.floats(1e-100, 1e100))
def test_noise_over_sensitivity_is_at_least_what_the_event_says(ratio, sensitivity):
    """As rational numbers, for the exact product of the two."""
    step, scale = noises._level(sensitivity, ratio)
    assert math.frexp(step)[0] == 0.5
    paid = Fraction(step) * scale / (Fraction(ratio) * Fraction(sensitivity))
    assert 1 < paid < 1 + Fraction(1, 2**31)
    assert 2**32 <= scale <= 2**33 + 1


@settings(max_examples=500, deadline=None)
@given(
    value=st.one_of(st.floats(-1e6, 1e6), st.floats(-1e-200, 1e-200), st.integers(-50, 50)),
    draw=st.fractions(-100, 100),
    sigma=st.sampled_from([0.3, 1.0, 2.0**31, 2.0**33 - 1.0]),
)
def test_a_value_with_noise_is_rounded_down_exactly(value, draw, sigma):
    """The integer is floor(v / g + t z), for every z."""

    def drawn(law, scale, fractions, rng):
        (f,) = fractions
        return np.array([math.floor(Fraction(float(f)) + draw)])

    value, (step, _) = float(value), noises._level(1.0, sigma)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noises, "draw_rounded", drawn)
        noisy = float(make_noise(0, warn=False)._gaussian(np.array([value]), 1.0, sigma)[0])
    assert noisy == math.floor(Fraction(value) / Fraction(step) + draw) * step


def test_a_sensitivity_of_zero_is_refused():
    with pytest.raises(ValueError, match="sensitivity must be greater than 0"):
        noises._level(0.0, 1.0)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_bounds_fail_no_more_often_than_is_paid(law, monkeypatch):
    """A bound fails only where continuous noise exceeds its shift, whatever the value is."""
    rng, failed = np.random.default_rng(1), 0
    for _ in range(2000):
        value, z, tau = rng.uniform(0, 5), rng.normal(scale=2), rng.uniform(0, 3)

        def drawn(law, scale, fractions, rng, z=z):
            return np.array([math.floor(Fraction(fractions[0]) + scale * Fraction(z))])

        monkeypatch.setattr(noises, "draw_rounded", drawn)
        for above, own in ((True, -z), (False, z)):
            options = {"sensitivity": 1.0, "ratio": 0.5, "tau": tau, "law": law}
            bound = make_noise(0, warn=False)._bound(value, above=above, **options)
            if bound < value if above else bound > value:
                assert own > tau
                failed += 1
    assert failed > 100


# --- attacks on floating-point noise ------------------------------------------------------------

# A game: the truth is 0 or 1, with noise of scale 1000, which hides it but for 0.1%. The attacker
# sees the released doubles and asks which truth can have led to them, bit for bit.
SCALE, GAMES = 1000.0, 400


def near(u, width):
    """Return the uniform doubles next to u that a generator can make: multiples of 2^-53."""
    k = round(u * 2**53)
    return [at / 2**53 for at in range(max(k - width, 0), min(k + width, 2**53 - 1) + 1)]


def laplace_possible(noisy, truth):
    """Mironov (2012), for NumPy's Laplace sampler: whether a uniform double leads here."""
    z = (noisy[0] - truth) / SCALE
    u = 0.5 * math.exp(z) if z < 0 else 1.0 - 0.5 * math.exp(-z)
    for U in near(u, 16):
        if U >= 0.5:
            made = truth - SCALE * math.log(2.0 - U - U)
        else:
            made = truth + SCALE * math.log(U + U) if U > 0.0 else math.nan
        if made == noisy[0]:
            return True
    return False


def gaussian_possible(noisy, truth):
    """Holohan and Braghin (2021), for Python's Gaussian sampler: whether two doubles do.

    Its draws come in pairs, by Box and Muller's formula.
    """
    first, second = ((each - truth) / SCALE for each in noisy)
    angle = math.atan2(second, first) / math.tau % 1.0
    for u in near(-math.expm1(-(first**2 + second**2) / 2), 8):
        length = math.sqrt(-2.0 * math.log(1.0 - u))
        for v in near(angle, 8):
            pair = math.cos(v * math.tau) * length, math.sin(v * math.tau) * length
            if (truth + pair[0] * SCALE, truth + pair[1] * SCALE) == tuple(noisy):
                return True
    return False


ATTACKS = {"laplace": laplace_possible, "gaussian": gaussian_possible}


def naive(law, truth, seed):
    if law == "laplace":
        return [np.random.default_rng(seed).laplace(truth, SCALE)]
    draws = random.Random(seed)
    return [draws.gauss(truth, SCALE) for _ in range(2)]


def ours(law, truth, seed):
    step, scale = noises._level(1.0, SCALE)
    noise = make_noise(seed, warn=False)
    whole, drawn = noise._floored(law, np.full(2, float(truth)), step, scale)
    return ((whole + drawn) * step).tolist()


def played(law, victim):
    """Return how often the attacker was sure of the truth, and how often rightly so."""
    sure = right = 0
    for game in range(GAMES):
        truth = game % 2
        noisy = victim(law, truth, game)
        possible = [ATTACKS[law](noisy, each) for each in (0, 1)]
        if possible[0] != possible[1]:
            sure += 1
            right += possible[truth]
    return sure, right


@pytest.mark.parametrize("law", ATTACKS)
def test_attacks_that_read_last_bits_see_through_naive_noise_and_not_this(law):
    sure, right = played(law, naive)
    assert sure > GAMES / 4
    assert right == sure  # the truth always can have led to what is seen
    sure, right = played(law, ours)
    # A guess by a coin, which the noise allows to be 0.05% better.
    assert sure == 0 or binomtest(right, sure, 0.5).pvalue > 1e-4


# --- the sampler --------------------------------------------------------------------------------


def test_gaussian_noise_has_its_distribution():
    draws = make_noise(1)._gaussian(np.full(20_000, 3.0), sensitivity=1.0, ratio=2.0)
    step, scale = noises._level(1.0, 2.0)
    assert kstest((draws - 3.0) / (scale * step), "norm").pvalue > 1e-9


@pytest.mark.parametrize(("law", "exact"), [("laplace", "laplace"), ("gaussian", "norm")])
def test_bounds_have_their_distribution(law, exact):
    noise = make_noise(2)
    options = {"sensitivity": 1.0, "ratio": 2.0, "tau": 50.0, "law": law}
    above = [noise._bound(7.0, above=True, **options) for _ in range(3000)]
    below = [noise._bound(300.0, above=False, **options) for _ in range(3000)]
    step, scale = noises._level(1.0, 2.0)
    assert kstest((np.array(above) - 7.0) / (step * scale) - 50.0, exact).pvalue > 1e-9
    assert kstest((np.array(below) - 300.0) / (step * scale) + 50.0, exact).pvalue > 1e-9


@pytest.mark.parametrize(("law", "tail"), [("laplace", 0.5 / math.e), ("gaussian", ndtr(-1))])
def test_bounds_err_on_their_side(law, tail):
    noise = make_noise(3)
    options = {"sensitivity": 1.0, "ratio": 2.0, "tau": 1.0, "law": law}
    failures = sum(noise._bound(50.0, above=False, **options) > 50.0 for _ in range(3000))
    failures += sum(noise._bound(50.0, above=True, **options) < 50.0 for _ in range(3000))
    assert binomtest(failures, 6000, tail, alternative="greater").pvalue > 1e-9
    assert binomtest(failures, 6000, tail, alternative="less").pvalue > 1e-9


def test_values_lie_on_the_grid():
    noise = make_noise(4)
    values = np.random.default_rng(0).normal(size=(6, 7))
    step = grid_step(0.3)
    noisy = noise._gaussian(values, sensitivity=1.0, ratio=0.3)
    assert noisy.shape == (6, 7)
    np.testing.assert_array_equal(noisy, np.rint(noisy / step) * step)
    bound = noise._bound(1.0, above=True, sensitivity=1.0, ratio=0.3, tau=1.0, law="laplace")
    assert bound == round(bound / step) * step


def test_huge_values_are_moved_to_the_end_of_the_grid():
    noise = make_noise(5)
    for value in (1e300, -1e300, 1e12):
        (noisy,) = noise._gaussian(np.array([value]), sensitivity=1.0, ratio=1.0)
        assert abs(noisy) <= 2.0**101 * grid_step(1.0)
    assert noisy == pytest.approx(1e12, abs=40.0)
    assert (
        noise._bound(-1e300, above=False, sensitivity=1.0, ratio=1.0, tau=1.0, law="laplace") == 0.0
    )


# --- releases -----------------------------------------------------------------------------------


def small_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (50, 3))
    return ArrayRows(X, RowMap(1.0), rng.uniform(-1, 1, 50))


def test_releases_lie_on_the_grid():
    rows, noise = small_rows(), make_noise(4)
    gradient = noise.release(GRADIENT, rows, theta=np.zeros(3), clip=1.0, sigma=2.0)
    noise.release(MEAN, rows, sigma=2.0)
    release = noise.release(STATISTICS, rows, sigma=2.0)
    step = grid_step(2.0)
    for values in (gradient, release.gram, release.moment, release.eigenvalue):
        np.testing.assert_array_equal(values, np.rint(np.asarray(values) / step) * step)
    np.testing.assert_array_equal(release.gram, release.gram.T)
    assert len(noise.drawn) == len(noise.transcript) + 2 == 5


def test_a_seed_repeats_the_noise():
    first, second = (make_noise(7)._gaussian(np.zeros(5), 1.0, 1.0) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_noise_is_made_from_a_generator():
    rng = secret_generator()
    noise = make_noise(rng)
    assert noise.rng is rng
    assert as_noise(noise) is noise
    assert isinstance(as_noise(None), Noise)


def test_floats_have_the_same_grid_and_scale():
    """The noise of tests that draw once more with NumPy."""
    noise, rng = FloatNoise(np.random.default_rng(0)), np.random.default_rng(0)
    noisy = noise._gaussian(np.ones(5), 1.0, 0.3)
    step, scale = noises._level(1.0, 0.3)
    np.testing.assert_allclose(noisy, 1.0 + scale * step * rng.standard_normal(5), atol=2 * step)
    np.testing.assert_array_equal(noisy, np.rint(noisy / step) * step)


def test_noise_goes_through_a_sketch():
    """The eigenvalue of a sketch lies on the fine grid."""
    rows, noise = small_rows(), make_noise(6)
    level = {"k": 4, "gamma": 5.0, "tau": 1.0, "omega": 0.1}
    releases = [gauss_mix(rows, rng=noise, **level) for _ in range(20)]
    step = grid_step(0.1)
    values = np.array([release.lambda_tilde[0] for release in releases])
    assert (values > 0.0).any()
    np.testing.assert_array_equal(values, np.rint(values / step) * step)
    assert not np.array_equal(values, np.rint(values / (2**12 * step)) * 2**12 * step)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_noise_is_never_copied(copied):
    with pytest.raises(TypeError, match="Noise must not be copied"):
        copied(make_noise())
