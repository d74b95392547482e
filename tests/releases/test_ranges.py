"""Counts of columns: one record changes one count in each, and rare levels stay hidden."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from fastmix.accounting import GaussianEvent, LaplaceEvent, TailEvent
from fastmix.engine.ranges import (
    LARGEST,
    SMALLEST,
    _trimmed,
    find_ranges,
    octave_edges,
    plan_ranges,
)
from fastmix.releases import Noise, make_noise
from fastmix.releases.columns import COLUMN_COUNTS, Columns, level_threshold, range_events
from fastmix.releases.sensitivity import columns_sensitivity


class Recorder(Noise):
    """Noise that adds nothing and keeps what it was given."""

    def __init__(self):
        super().__init__(np.random.default_rng(0))

    def _gaussian(self, values, sensitivity, ratio):
        self.values, self.sensitivity, self.ratio = values.copy(), sensitivity, ratio
        return values


@pytest.mark.parametrize("seed", range(20))
def test_a_record_changes_one_count_in_each_column(seed):
    rng = np.random.default_rng(seed)
    p, n = int(rng.integers(1, 6)), 50
    columns = [rng.standard_cauchy(n) * 10.0 ** rng.integers(-9, 15) for _ in range(p)]
    for column in columns:
        column[rng.random(n) < 0.2] = rng.choice([np.nan, 0.0, np.inf, -np.inf])
    edges = [octave_edges(None, (SMALLEST, LARGEST))] * p
    levels = rng.integers(0, 5, n)
    gone = int(rng.integers(n))
    found = []
    for rows in (np.arange(n), np.delete(np.arange(n), gone)):
        noise = Recorder()
        counts = dict(enumerate(np.bincount(levels[rows], minlength=5).astype(float)))
        kept = Columns([c[rows] for c in columns], [counts])
        noise.release(COLUMN_COUNTS, kept, edges=edges, threshold=None, sigma=3.0)
        found.append(noise.values)
    assert noise.sensitivity == columns_sensitivity(p + 1)
    difference = found[0] - found[1]
    assert sorted(set(difference)) == [0.0, 1.0]
    assert np.linalg.norm(difference) == pytest.approx(noise.sensitivity, rel=1e-12)


def test_every_row_is_in_one_bin():
    values = np.array([-1e99, -2.0, -1.5, 0.0, 1e-12, 1.0, 2.0, 3.0, 1e99, np.nan])
    edges = octave_edges(None, (0.5, 4.0))
    given = {"edges": [edges], "threshold": None, "sigma": 1.0}
    (counts,), _ = Recorder().release(COLUMN_COUNTS, Columns([values]), **given)
    assert list(edges) == [-4.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 4.0]
    # (-4, -2], (-2, -1], ..., zeros, ..., and missing ones at the end.
    assert list(counts) == [2, 1, 0, 2, 1, 1, 2, 1]


@pytest.mark.parametrize(("columns", "categories"), [(1, 1), (7, 3), (40, 40)])
def test_a_level_of_one_record_is_as_rare_as_charged(columns, categories):
    tail, sigma = 1e-7, 12.0
    level = level_threshold(sigma=sigma, columns=columns, categories=categories, tail=tail)
    scale = sigma * math.sqrt(columns)
    # Each record may have such a level in each column of categories; a grid step is allowed for.
    rare = categories * ndtr(-(level - scale * 2.0**-20 - 1.0) / scale)
    assert 0.99 * tail < rare <= tail * (1.0 + 1e-9)


def test_the_threshold_is_exact_in_simulation():
    tail = 0.02
    level = level_threshold(sigma=5.0, columns=2, categories=2, tail=tail)
    noise = make_noise(0, warn=False)
    ones = dict.fromkeys(range(100_000), 1.0)
    given = {"edges": [], "threshold": level, "sigma": 5.0}
    _, (first, second) = noise.release(COLUMN_COUNTS, Columns([], [ones, ones]), **given)
    assert min(first.values()) > level
    # Only levels above the threshold are on record.
    assert noise.transcript[0].value == ([], [first, second])
    assert len(first.keys() | second.keys()) / len(ones) == pytest.approx(tail, rel=0.1)


def test_events_of_a_plan():
    plan = plan_ranges(0.5, 1e-6, 3, 2)
    kinds = [type(event) for event in plan.spent.events]
    assert kinds == [GaussianEvent, GaussianEvent, TailEvent, LaplaceEvent]
    assert plan.spent.epsilon <= 0.5
    assert plan.spent.epsilon == pytest.approx(0.5, rel=1e-6)
    # Without categories all is Gaussian, which every rule of a budget takes.
    assert {type(event) for event in plan_ranges(0.5, 1e-6, 3).spent.events} == {GaussianEvent}
    tail = 5e-8
    assert range_events(3.0, None, categories=1, tail=tail)[1:] == [
        TailEvent(tail),
        LaplaceEvent(1.0, -math.log1p(-tail)),
    ]


def test_what_is_drawn_is_what_is_planned():
    plan = plan_ranges(1.0, 1e-6, 1, 1)
    noise = make_noise(0, warn=False)
    find_ranges({"x": np.ones(100)}, {"c": {"a": 3}}, plan, 100, noise, coverage=0.999, limits={})
    assert noise.drawn == [e for e in plan.spent.events if isinstance(e, GaussianEvent)]


def test_levels_that_no_record_has_never_appear():
    plan = plan_ranges(1.0, 1e-6, 0, 1)
    for seed in range(200):
        noise = make_noise(seed, warn=False)
        levels = {"c": {"a": 500, "rare": 1, "b": 400}}
        _, lists = find_ranges({}, levels, plan, 901, noise, coverage=0.999, limits={})
        assert lists["c"] == ("a", "b")


def test_ranges_of_exact_counts():
    edges = octave_edges(None, (0.25, 64.0))
    counts = np.zeros(len(edges))
    counts[np.searchsorted(edges, 3.0) - 1] = 1000.0
    assert _trimmed(edges, counts, 1.0, 0.0, 1000, 1)[:2] == (2.0, 4.0)
    assert _trimmed(edges, np.zeros(len(edges)), 1.0, 0.0, 1000, 1) is None
    zeros = np.zeros(len(edges))
    zeros[np.searchsorted(edges, 0.0) - 1] = 1000.0
    assert _trimmed(edges, zeros, 1.0, 0.0, 1000, 1)[:2] == (-0.25, 0.25)


def test_limits_cut_the_grid():
    assert list(octave_edges((-0.3, 5.0), (0.25, 64.0))) == [-0.3, -0.25, 0.25, 0.5, 1, 2, 4, 5]
    with pytest.raises(ValueError, match="limits must increase"):
        octave_edges((1.0, 1.0), (0.25, 64.0))
    with pytest.raises(ValueError, match="grid must increase"):
        octave_edges(None, (2.0, 1.0))
