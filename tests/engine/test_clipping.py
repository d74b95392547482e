"""Clipping levels of persons with intervals: what noisy counts tell of long gradients."""

import numpy as np
import pytest

from fastmix.engine.clipping import (
    ALONG,
    CHEAP,
    COMMON,
    FALLING,
    FEW_EDGES,
    MOST_BIAS,
    numbers_beyond,
    true_clip,
    unbiased_clip,
)


def lengths(index, n=20_000):
    """Return lengths at even quantiles of a power law from 0.5 on."""
    return 0.5 * (1.0 - (np.arange(n) + 0.5) / n) ** (-1.0 / index)


def counted(sizes):
    return np.histogram(np.minimum(sizes, FEW_EDGES[-1]), FEW_EDGES)[0].astype(float)


def test_numbers_are_those_of_the_counts_where_there_is_no_noise():
    sizes = lengths(2.5)
    found = numbers_beyond(counted(sizes), FEW_EDGES, 1e-6, len(sizes))
    wanted = [np.sum(sizes > edge) for edge in FEW_EDGES[1:-1]]
    np.testing.assert_allclose(found[1:-1], wanted, rtol=1e-3, atol=1e-3)


def test_numbers_fall_as_a_power_where_noise_hides_the_counts():
    found = numbers_beyond(np.zeros(len(FEW_EDGES) - 1), FEW_EDGES, 1e9, 1_000)
    falls = FALLING ** (2.0 * np.log2(FEW_EDGES[1:] / FEW_EDGES[:-1]))
    np.testing.assert_allclose(found[1:] / found[:-1], falls, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_numbers_never_grow_whatever_the_noise(seed):
    noise = 1e4 * np.random.default_rng(seed).normal(size=len(FEW_EDGES) - 1)
    found = numbers_beyond(noise, FEW_EDGES, 30.0, 1_000)
    assert (found >= 0.0).all()
    assert (np.diff(found) <= 0.0).all()
    assert found[0] <= 1_000


@pytest.mark.parametrize("index", [2.5, 4.0])
@pytest.mark.parametrize("mu", [0.2, 1.0])
def test_the_level_bears_the_bias_that_it_states(index, mu):
    """With counts without noise, and as far as lengths beyond the last counts fall as assumed.

    They fall as a power of index 3.5 in the rule. Here they fall more slowly or faster, so that
    what is clipped is up to a half more than stated.
    """
    sizes, spread = lengths(index), 0.4
    level, clipped = true_clip(counted(sizes), FEW_EDGES, 1e-6, len(sizes), mu, spread)
    own = ALONG * np.sum(np.maximum(sizes - level, 0.0))
    assert 0.75 * clipped < own < 1.5 * clipped
    allowed = MOST_BIAS * np.hypot(np.sqrt(len(sizes) * COMMON) * spread, level / mu)
    assert 0.7 * allowed < own < 1.5 * allowed


def test_longer_tails_have_higher_levels():
    levels = [
        true_clip(counted(lengths(index)), FEW_EDGES, 1.0, 20_000, 0.5, 0.4)[0]
        for index in (6.0, 4.0, 2.5)
    ]
    assert levels[0] < levels[1] < levels[2]


def test_a_level_of_labels_rises_until_its_bias_is_borne_or_noise_is_not_cheap():
    sizes, edges = lengths(4.0), FEW_EDGES[1:]
    counts, d = counted(sizes), 10
    levels = [unbiased_clip(1.0, counts, edges, 1e-6, d, mu) for mu in (1e4, 0.1, 1e-3)]
    assert levels[0] > levels[1] > levels[2] == 1.0
    whole = np.minimum(edges[None, :], levels[0]) ** 2 @ counts
    clipped = np.maximum(edges - levels[0], 0.0) @ counts
    assert ALONG * clipped <= MOST_BIAS * np.sqrt(whole)
    whole = np.minimum(edges, levels[1]) ** 2 @ counts
    assert d * (levels[1] / 0.1) ** 2 <= CHEAP * whole
    assert unbiased_clip(1.0, np.zeros(len(counts)), edges, 1.0, d, 1.0) == 1.0
