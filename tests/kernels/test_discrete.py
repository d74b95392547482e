"""The sampler of discrete noise: exact probabilities, two versions that draw the same, speed apart.

Statistical tests are seeded, and would fail for one seed in 10,000 at most.
"""

import math
from collections import defaultdict

import numpy as np
import pytest
from scipy import stats

from fastmix.kernels.discrete import LARGEST_SCALE, Sampler, draw_discrete
from fastmix.random import secret_generator

LAWS = ("gaussian", "laplace")


def law_of(law, t, x):
    """Return the probabilities of integers, by their definition."""
    wide = np.arange(-60 * t, 60 * t + 1)

    def weight(at):
        at = np.abs(at) / t
        return np.exp(-(at**2) / 2.0 if law == "gaussian" else -at)

    return weight(np.asarray(x)) / math.fsum(weight(wide))


class ForkError(Exception):
    """A sampler has come to a choice that its script does not have."""


class Scripted(Sampler):
    """The sampler with scripted choices in place of random ones; every choice has its chance.

    Parts that other tests enumerate are choices as well: those in ``known``, by their law. A draw
    that starts a second time returns None in the end: what comes then has the same law again.
    """

    def __init__(self, script, known, t):
        self.script, self.known, self.t = iter(script), known, t
        self.fork, self.starts = [], 0

    def _choose(self, chances):
        for choice in self.script:
            return choice
        self.fork = chances
        raise ForkError

    def _happens(self, chance):
        if chance in (0.0, 1.0):
            return chance == 1.0
        return self._choose([(True, chance), (False, 1.0 - chance)])

    def _start(self):
        self.starts += 1
        if self.starts > 1:
            raise StopIteration

    def _below(self, m):
        if m == self.t:
            self._start()
        return self._choose([(k, 1.0 / m) for k in range(m)]) if m > 1 else 0

    def _coin(self, a, b):
        return self._happens(a / b)

    def _exp_minus(self, a, b):
        if "exp_minus" in self.known:
            return self._happens(math.exp(-a / b))
        return super()._exp_minus(a, b)

    def _exp_minus_half_square(self, a, t):
        if "half_square" in self.known:
            return self._happens(math.exp(-0.5 * (a / t) ** 2))
        return super()._exp_minus_half_square(a, t)

    def laplace(self, t):
        if "laplace" in self.known:
            self._start()
            x = range(-30 * t, 30 * t + 1)
            return self._choose(list(zip(x, law_of("laplace", t, x), strict=True)))
        return super().laplace(t)


def enumerated(draw, known=(), t=None):
    """Return the chances of all results; paths of less than 1e-13 are left out."""
    found, paths = defaultdict(float), [(1.0, ())]
    while paths:
        chance, script = paths.pop()
        sampler = Scripted(script, known, t)
        try:
            found[draw(sampler)] += chance
        except ForkError:
            paths += [
                (chance * share, (*script, choice))
                for choice, share in sampler.fork
                if chance * share > 1e-13
            ]
        except StopIteration:
            pass
    return found


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 1), (1, 2), (2, 3), (5, 7), (1, 100)])
def test_coins_that_are_exponentials(a, b):
    found = enumerated(lambda sampler: sampler._exp_minus(a, b))
    assert found[True] + found[False] == pytest.approx(1.0, abs=1e-10)
    assert found[True] == pytest.approx(math.exp(-a / b), abs=1e-10)


@pytest.mark.parametrize(("a", "t"), [(0, 3), (1, 1), (2, 5), (5, 5), (7, 5), (11, 4), (3, 1)])
def test_coins_of_a_normal_law(a, t):
    found = enumerated(lambda s: s._exp_minus_half_square(a, t), {"exp_minus"})
    assert found[True] == pytest.approx(math.exp(-0.5 * (a / t) ** 2), abs=1e-10)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("t", [1, 3, 5])
def test_all_paths_together_have_the_law(law, t):
    """Of one try, given that it is not followed by another."""
    known = {"exp_minus", "half_square", "laplace"} if law == "gaussian" else {"exp_minus"}
    found = enumerated(lambda sampler: getattr(sampler, law)(t), known, t)
    x = list(found)
    assert {*range(-5 * t, 5 * t + 1)} <= {*x}
    chances = np.array([found[each] for each in x])
    np.testing.assert_allclose(chances / chances.sum(), law_of(law, t, x), atol=1e-9)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("t", [1, 4, 30])
def test_draws_have_their_probabilities(law, t):
    draws = draw_discrete(law, t, 400_000, np.random.default_rng(t))
    x = np.arange(-3 * t, 3 * t + 1)
    seen = np.array([np.count_nonzero(draws == each) for each in x])
    expected = len(draws) * law_of(law, t, x)
    rest = len(draws) - seen.sum(), len(draws) - expected.sum()
    test = stats.chisquare([*seen, rest[0]], [*expected, rest[1]])
    assert test.pvalue > 1e-4


@pytest.mark.parametrize(("law", "continuous"), [("gaussian", "norm"), ("laplace", "laplace")])
@pytest.mark.parametrize("t", [2**32, 2**32 + 1, 2**33 - 1, LARGEST_SCALE])
def test_at_large_scales_the_law_is_the_continuous_one(law, continuous, t):
    draws = draw_discrete(law, t, 100_000, np.random.default_rng(5))
    assert stats.kstest(draws / t, continuous).pvalue > 1e-4
    # Low bits are those of uniform integers.
    assert stats.chisquare(np.bincount(draws % 64, minlength=64)).pvalue > 1e-4


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("t", [1, 2, 7, 1000, 2**32 + 5, LARGEST_SCALE])
def test_the_python_version_draws_the_same_from_the_same_bits(law, t, monkeypatch):
    rngs = np.random.default_rng(3), np.random.default_rng(3)
    drawn = draw_discrete(law, t, 300, rngs[0])
    monkeypatch.setattr("fastmix.kernels.discrete.kernel", lambda name: None)
    np.testing.assert_array_equal(draw_discrete(law, t, 300, rngs[1]), drawn)
    assert rngs[0].bit_generator.state == rngs[1].bit_generator.state


def test_it_draws_from_the_secret_generator():
    rng = secret_generator()
    before = rng.bit_generator.state["s"]["counter"].tolist()
    first, second = (draw_discrete("gaussian", 2**32, 1000, rng) for _ in range(2))
    assert rng.bit_generator.state["s"]["counter"].tolist() != before
    assert not np.intersect1d(first, second).size
    assert draw_discrete("laplace", 9, 0, rng).shape == (0,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("normal", 1), "law must be one of"),
        (("gaussian", 0), "scale must be at least 1"),
        (("gaussian", LARGEST_SCALE + 1), "scale must be at most"),
        (("gaussian", 1.5), "scale must be an integer"),
    ],
)
def test_what_it_refuses(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        draw_discrete(*given, 1, secret_generator())
