"""The sampler of rounded noise: its exact law, two versions that draw the same, hostile fractions.

Statistical tests are seeded, and would fail for one seed in 10,000 at most.
"""

import math
from collections import defaultdict
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fastmix.kernels.rounded import LARGEST_SCALE, Sampler, draw_rounded
from fastmix.random import secret_generator

LAWS = {"gaussian": stats.norm, "laplace": stats.laplace}
mp = mpmath.mp.clone()
mp.dps = 40


def cdf(law, z):
    """Return the distribution function in 40 digits."""
    if law == "gaussian":
        return mp.ncdf(z)
    return mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2


def law_of(law, t, f, x):
    """Return the probability of floor(f + t z) = x, by its definition."""
    return float(cdf(law, (x + 1 - mp.mpf(f)) / t) - cdf(law, (x - mp.mpf(f)) / t))


class ForkError(Exception):
    """A sampler has come to a choice that its script does not have."""


class Scripted(Sampler):
    """The sampler with scripted choices in place of random ones; every choice has its chance.

    A digit of the fraction has 4 values in place of 2^64, so that all can be tried. Where ``x`` is
    given, a coin of this chance stands for the comparison that makes one. Chances are rational.
    """

    def __init__(self, script, t, x=None):
        self.script, self._t, self.x = iter(script), t, x
        self._u, self._digits, self.fork = 0, [], []

    def _choose(self, chances):
        for choice in self.script:
            return choice
        self.fork = chances
        raise ForkError

    def _word(self):
        return self._choose([(k, Fraction(1, 4)) for k in range(4)])

    def _below(self, m):
        return self._choose([(k, Fraction(1, m)) for k in range(m)]) if m > 1 else 0

    def _less_than_x(self):
        if self.x is None:
            return super()._less_than_x()
        return self._choose([(True, self.x), (False, 1 - self.x)])


def enumerated(draw, t, x=None, sampler=Scripted):
    """Return the chances of all results, and that of paths that are left out: below 1e-7 each."""
    found, paths, left = defaultdict(Fraction), [(Fraction(1), ())], Fraction(0)
    while paths:
        chance, script = paths.pop()
        own = sampler(script, t, x)
        try:
            found[draw(own)] += chance
        except ForkError:
            for choice, share in own.fork:
                if chance * share > 1e-7:
                    paths.append((chance * share, (*script, choice)))
                else:
                    left += chance * share
    return found, left


@pytest.mark.parametrize(("t", "u", "digits"), [(3, 1, (2, 1)), (2, 0, (3, 3)), (1, 0, (1, 2))])
def test_a_coin_has_the_probability_of_the_number_itself(t, u, digits):
    """All paths: x is known up to two digits, and both numbers get more where these are equal."""
    low = Fraction(u, t) + sum(Fraction(w, t * 4 ** (i + 1)) for i, w in enumerate(digits))
    high = low + Fraction(1, t * 4 ** len(digits))

    def coin(sampler):
        sampler._u, sampler._digits = u, list(digits)
        return sampler._less_than_x()

    found, left = enumerated(coin, t)
    # More digits of x are as likely to be small as large, so that the mean is in the middle.
    assert abs(found[True] - (low + high) / 2) <= left
    assert found[True] + found[False] + left == 1
    assert left < 1e-3


X = [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(9, 10), Fraction(1)]


@pytest.mark.parametrize("x", X)
@pytest.mark.parametrize("v", [None, 0, 1, 2])
def test_coins_that_are_exponentials(x, v):
    """The coin e^-x, and the one that makes a Laplace draw v + x a normal one."""
    own = {"_exp_minus_x": ()} if v is None else {"_kept": (v,)}
    ((name, given),) = own.items()
    found, left = enumerated(lambda sampler: getattr(sampler, name)(*given), 1, x)
    chance = mp.exp(-mp.mpf(float(x)) if v is None else -((v + mp.mpf(float(x)) - 1) ** 2) / 2)
    assert float(found[True]) <= chance + 1e-12
    assert chance <= float(found[True] + left) + 1e-12
    assert left < 1e-4


@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_coins_of_whole_exponents(m):
    found, left = enumerated(lambda sampler: sampler._exp_minus_one_over(m), 1)
    assert float(found[True]) == pytest.approx(math.exp(-1 / m), abs=float(left) + 1e-12)
    assert left < 1e-4


class AgainError(Exception):
    """A sampler has rejected its number, and would draw another one."""


class OneTry(Scripted):
    """One try of a draw with a known x; the coins of the tests above have their chances."""

    tries = 0

    @property
    def _digits(self):
        return [1]

    @_digits.setter
    def _digits(self, _):
        self.tries += 1
        if self.tries > 2:  # the first is the constructor's
            raise AgainError

    def _coin(self, exponent):
        chance = Fraction(str(mp.exp(-exponent)))
        return self._choose([(True, chance), (False, 1 - chance)])

    def _exp_minus_x(self):
        return self._coin(mp.mpf(self.x.numerator) / self.x.denominator)

    def _exp_minus_one_over(self, m):
        return self._coin(mp.mpf(1) / m)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("x", [Fraction(1, 7), Fraction(1, 2), Fraction(9, 10)])
def test_a_try_has_the_density_of_its_law(law, x):
    """The chance that a try ends with v + x and a sign, in rational arithmetic, for every v."""

    def tried(sampler):
        try:
            return getattr(sampler, law)(0.0)
        except AgainError:
            return None

    found, left = enumerated(tried, 1, x, sampler=OneTry)
    assert left < 1e-4
    assert sum(found.values()) + left == 1
    for k in range(-5, 5):
        y = float(x) + (k if k >= 0 else -k - 1)  # floor(y) = k, or floor(-y) = k
        density = math.exp(-y) if law == "laplace" else math.exp(-0.5 - y * y / 2)
        chance = (1 - math.exp(-1)) / 2 * density
        assert float(found[k]) <= chance + 1e-12
        assert chance <= float(found[k] + left) + 1e-12


@pytest.mark.parametrize("f", [0.0, 0.25, 0.5, 1 - 2.0**-53, 1 / 3, 2.0**-70, 2.0**-200, 5e-324])
def test_comparisons_with_a_fraction_are_exact(f):
    """Against rational numbers, for digits around those of the fraction."""
    exact, digits = Fraction(f), []
    for _ in range(20):
        digits.append(math.floor(exact * 2**64))
        exact = exact * 2**64 - digits[-1]
    complement = [2**64 - 1 - digit for digit in digits]
    for base, check, holds in (
        (digits, "_exceeds", lambda w: w > Fraction(f)),
        (complement, "_carries", lambda w: w + Fraction(f) >= 1),
    ):
        for place in range(4):
            for change in (-1, 1):
                own = list(base)
                own[place] += change
                if not 0 <= own[place] < 2**64:
                    continue
                sampler = Scripted((), 1)
                sampler._digits = own
                w = sum(Fraction(digit, 2 ** (64 * (i + 1))) for i, digit in enumerate(own))
                assert getattr(sampler, check)(f) == holds(w)


@settings(max_examples=500, deadline=None)
@given(
    f=st.one_of(st.floats(-1, 1, exclude_min=True, exclude_max=True), st.floats(-1e-300, 1e-300)),
    digits=st.lists(st.sampled_from([0, 1, 2**63, 2**64 - 1]), min_size=20, max_size=20),
    negative=st.booleans(),
)
def test_the_floor_is_that_of_the_real_sum(f, digits, negative):
    """Against rational numbers; a fraction w ends in a digit that decides."""
    sampler = Scripted([negative], 5)
    sampler._u, sampler._digits = 3, [*digits, 12345]
    w = sum(Fraction(digit, 2 ** (64 * (i + 1))) for i, digit in enumerate(sampler._digits))
    number = (5 * 2 + 3 + w) * (-1 if negative else 1)
    assert sampler._floored(2, f) == math.floor(Fraction(f) + number)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("t", [1, 4, 30])
@pytest.mark.parametrize("f", [0.0, 0.3, -0.7, 1 - 2.0**-53])
def test_draws_have_their_probabilities(law, t, f):
    draws = draw_rounded(law, t, np.full(100_000, f), np.random.default_rng(t))
    x = np.arange(-3 * t, 3 * t + 1)
    seen = np.array([np.count_nonzero(draws == each) for each in x])
    expected = len(draws) * np.array([law_of(law, t, f, int(each)) for each in x])
    rest = len(draws) - seen.sum(), len(draws) - expected.sum()
    assert stats.chisquare([*seen, rest[0]], [*expected, rest[1]]).pvalue > 1e-4


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("t", [2**32, 2**32 + 1, 2**33 - 1, LARGEST_SCALE])
def test_at_large_scales_the_law_is_the_continuous_one(law, t):
    draws = draw_rounded(law, t, np.random.default_rng(1).random(100_000), np.random.default_rng(5))
    assert stats.kstest(draws / t, LAWS[law].cdf).pvalue > 1e-4
    # Equal cells of the law have equal counts, in the tails too; low bits are those of uniform
    # integers.
    cells = np.bincount((LAWS[law].cdf(draws / t) * 1000).astype(int), minlength=1000)
    assert stats.chisquare(cells).pvalue > 1e-4
    assert stats.chisquare(np.bincount(draws % 64, minlength=64)).pvalue > 1e-4


@pytest.mark.parametrize("t", [3, 2**32 + 5])
def test_opendp_draws_the_same_law(t):
    """Its discrete noise differs from rounded noise by 1/t^2 at most: here by nothing to see."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    domain, metric = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    theirs = np.array(dp.m.make_gaussian(domain, metric, scale=float(t))([0] * 4000))
    ours = draw_rounded("gaussian", t, np.full(4000, 0.5), np.random.default_rng(2))
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-4


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("t", [1, 2, 7, 1000, 2**32 + 5, LARGEST_SCALE])
def test_the_python_version_draws_the_same_from_the_same_bits(law, t, monkeypatch):
    rngs = np.random.default_rng(3), np.random.default_rng(3)
    fractions = np.random.default_rng(4).choice(
        [0.0, 0.5, -1 / 3, 1 - 2.0**-53, -(2.0**-130)], (30, 10)
    )
    drawn = draw_rounded(law, t, fractions, rngs[0])
    monkeypatch.setattr("fastmix.kernels.rounded.kernel", lambda name: None)
    np.testing.assert_array_equal(draw_rounded(law, t, fractions, rngs[1]), drawn)
    assert rngs[0].bit_generator.state == rngs[1].bit_generator.state


@pytest.mark.parametrize("law", LAWS)
def test_the_bits_that_it_takes_do_not_depend_on_the_values(law):
    """So neither the time of a draw nor any later draw tells anything about a value."""
    states = []
    for f in (0.0, 0.5, -0.999, 2.0**-80):
        rng = np.random.default_rng(6)
        draw_rounded(law, 2**32 + 5, np.full(1000, f), rng)
        states.append(rng.bit_generator.state)
    assert all(state == states[0] for state in states)


def test_it_draws_from_the_secret_generator():
    rng = secret_generator()
    before = rng.bit_generator.state["s"]["counter"].tolist()
    first, second = (draw_rounded("gaussian", 2**32, np.zeros(1000), rng) for _ in range(2))
    assert rng.bit_generator.state["s"]["counter"].tolist() != before
    assert not np.intersect1d(first, second).size
    assert draw_rounded("laplace", 9, np.zeros(0), rng).shape == (0,)


@pytest.mark.parametrize(
    ("law", "scale", "fraction", "message"),
    [
        ("normal", 1, 0.0, "law must be one of"),
        ("gaussian", 0, 0.0, "scale must be at least 1"),
        ("gaussian", LARGEST_SCALE + 1, 0.0, "scale must be at most"),
        ("gaussian", 1.5, 0.0, "scale must be an integer"),
        ("gaussian", 1, 1.0, r"fractions must lie in \(-1, 1\)"),
        ("gaussian", 1, -1.0, r"fractions must lie in \(-1, 1\)"),
        ("gaussian", 1, math.nan, r"fractions must lie in \(-1, 1\)"),
    ],
)
def test_what_it_refuses(law, scale, fraction, message):
    with pytest.raises((ValueError, TypeError), match=message):
        draw_rounded(law, scale, np.array([fraction]), secret_generator())
