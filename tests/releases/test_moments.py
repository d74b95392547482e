"""Moments and counts of gradients: their sums, their noise, how much one record changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fastmix.accounting import GaussianEvent
from fastmix.data import ArrayRows, ChunkRows, Chunks, RowMap, TargetMap
from fastmix.data import rows as data_rows
from fastmix.data.chunks import ArrayChunk
from fastmix.kernels import measured
from fastmix.releases import (
    GRADIENT_COUNTS,
    LINE,
    RESIDUAL_COUNTS,
    SECOND_MOMENTS,
    TARGET_MEAN,
    Noise,
)
from fastmix.releases.sensitivity import line_sensitivity
from tests.releases.plain import zero


def arrays(X, y):
    return ArrayRows(X, RowMap(row_norm=1.0), y)


def chunks(X, y, size=17):
    parts = [ArrayChunk(str(i), X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]
    return ChunkRows(Chunks(parts, X.shape[1]), RowMap(row_norm=1.0), TargetMap())


def problem(seed, n=120, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1).max()
    return X, rng.uniform(-1, 1, n)


def direct(X, y, T):
    """Sum z z' one record at a time."""
    total = np.zeros((T.shape[1], T.shape[1]))
    for x, target in zip(X, y, strict=True):
        z = T.T @ np.append(x, target)
        z = z / max(1.0, np.linalg.norm(z))
        total += np.outer(z, z)
    return total


def entries(moments):
    """Return the vector that noise is added to."""
    above = np.triu_indices(len(moments), 1)
    return np.concatenate((np.diag(moments), math.sqrt(2.0) * moments[above]))


# --- second moments ------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0, 1e6])
@pytest.mark.parametrize("kind", [arrays, chunks])
def test_second_moments_are_sums_over_shortened_records(kind, scale):
    X, y = problem(0)
    T = scale * np.random.default_rng(1).normal(size=(4, 4))
    moments = zero().release(SECOND_MOMENTS, kind(X, y), transform=T, sigma=1.0)
    np.testing.assert_allclose(moments, direct(X, y, T), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(moments, moments.T)
    assert np.trace(moments) <= len(X)
    if scale == 1e6:  # every record is longer than 1
        assert np.trace(moments) == pytest.approx(len(X), rel=1e-10)


def test_arrays_and_chunks_agree():
    X, y = problem(2, n=1000, d=6)
    T = np.random.default_rng(2).normal(size=(7, 7)) * np.geomspace(1e-3, 1e3, 7)
    first = zero().release(SECOND_MOMENTS, arrays(X, y), transform=T, sigma=1.0)
    for size in (1, 13, 999, 1000):
        second = zero().release(SECOND_MOMENTS, chunks(X, y, size), transform=T, sigma=1.0)
        np.testing.assert_allclose(second, first, rtol=1e-9, atol=1e-9)


def many(seed, n=9000, d=6):
    """Return so many records that moments are corrected for long ones, not summed anew."""
    X, y = problem(seed, n, d)
    X[::7] *= np.random.default_rng(seed).uniform(0.01, 1.0, (len(X[::7]), 1))
    return X, y


def short(X, y, T):
    """Sum z z' over shortened records, all at once."""
    Z = np.column_stack((X, y)) @ T
    Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1))[:, None]
    return Z.T @ Z


@pytest.mark.parametrize("d", [2, 6, 40, 140])
@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0, 20.0])
def test_moments_that_are_corrected_for_long_records(scale, d, monkeypatch):
    """They are the same sum, whether none, some or all records are too long."""
    X, y = many(13, d=d)
    T = scale * np.triu(np.random.default_rng(d).normal(size=(d + 1, d + 1))) / math.sqrt(d)
    expected = short(X, y, T)
    found = arrays(X, y).second_moments(T)
    # Records are shortened to a hair less than 1: by what rounding can add to the sums.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * np.trace(expected))
    np.testing.assert_array_equal(found, found.T)
    for size in (64, 4000):
        np.testing.assert_allclose(
            chunks(X, y, size).second_moments(T), found, rtol=0, atol=1e-8 * len(X)
        )
    monkeypatch.setattr(data_rows, "_MOST_ERROR", -1.0)  # so that they are summed anew
    anew = arrays(X, y).second_moments(T)
    np.testing.assert_allclose(anew, expected, rtol=0, atol=1e-7 * len(X))


@pytest.mark.parametrize("scale", [0.5, 1.0, 5.0, 100.0])
def test_an_absent_record_among_many_changes_the_vector_by_at_most_one(scale):
    """No slack: what rounding adds is taken off the records."""
    X, y = many(14)
    T = scale * np.triu(np.random.default_rng(3).normal(size=(7, 7)))
    present = entries(arrays(X, y).second_moments(T))
    longest = int(np.argmax(np.linalg.norm(np.column_stack((X, y)) @ T, axis=1)))
    for gone in (0, 7, longest):
        A, b = X.copy(), y.copy()
        A[gone], b[gone] = 0.0, 0.0
        assert np.linalg.norm(present - entries(arrays(A, b).second_moments(T))) <= 1.0


def test_no_record_that_is_too_long_is_left_alone(monkeypatch):
    """Single precision only tells which records are short for sure."""
    X, y = many(15, d=40)
    T = np.triu(np.random.default_rng(5).normal(size=(41, 41)))
    lengths = np.linalg.norm(np.column_stack((X, y)) @ T, axis=1)
    T /= np.median(lengths)  # half of the records are longer than 1, many of them hardly
    seen = []

    def looked(*args, single=False, **kwargs):
        seen.append(single)
        return measure(*args, single=single, **kwargs)

    measure = measured.row_lengths
    monkeypatch.setattr(measured, "row_lengths", looked)
    found = arrays(X, y).second_moments(T)
    assert True in seen
    assert np.trace(found) <= np.trace(short(X, y, T))
    np.testing.assert_allclose(found, short(X, y, T), rtol=0, atol=1e-5 * len(X))


def test_moments_are_those_of_the_rows_after_they_are_moved():
    """What is kept of the sums must not outlive the map that it belongs to."""
    X, y = many(16)
    X *= 0.5  # short enough to be moved
    row_map = RowMap(
        row_norm=1.0, lower=-np.ones(6), upper=np.ones(6), center=np.zeros(6), scale=np.ones(6)
    )
    mean = np.full(6, 0.05)
    parts = Chunks([ArrayChunk("all", X, y)], 6)
    for rows in (ArrayRows(X, row_map, y), ChunkRows(parts, row_map, TargetMap())):
        rows.moments()
        moved = rows.centred(mean)
        np.testing.assert_allclose(
            moved.moments()[0], (X - mean).T @ (X - mean), rtol=1e-9, atol=1e-9
        )


def test_noise_has_its_law():
    """Variance sigma^2 on the diagonal and half of it off it, all entries independent.

    Two-sided chi-square tests and one of correlations at 1e-6 each; the seed is fixed.
    """
    X, y = problem(3, n=20, d=2)
    T, sigma, draws = np.eye(3) / math.sqrt(2.0), 1.7, 2000
    noise = Noise(np.random.default_rng(4))
    rows, exact = arrays(X, y), direct(X, y, T)
    released = np.array(
        [
            noise.release(SECOND_MOMENTS, rows, transform=T, sigma=sigma) - exact
            for _ in range(draws)
        ]
    )
    np.testing.assert_array_equal(released, released.transpose(0, 2, 1))
    on = np.array([released[:, i, i] for i in range(3)]) / sigma
    off = np.array([released[:, i, j] for i, j in ((0, 1), (0, 2), (1, 2))]) / sigma
    off *= math.sqrt(2.0)
    for each in (*on, *off):
        low, high = stats.chi2(draws).ppf([5e-7, 1.0 - 5e-7])
        assert low <= float(each @ each) <= high
    independent = np.corrcoef(np.vstack((on, off))) - np.eye(6)
    assert np.abs(independent).max() <= 5.5 / math.sqrt(draws)
    assert stats.kstest(np.concatenate((on, off)).ravel(), "norm").pvalue > 1e-6


def hostile_transforms(power=170):
    """Any scale and condition number, down to entries whose squares over- or underflow."""
    powers = st.integers(-power, power)
    entry = st.tuples(st.floats(-1.0, 1.0), powers).map(lambda p: p[0] * 10.0 ** p[1])
    free = st.lists(entry, min_size=9, max_size=9).map(lambda v: np.reshape(v, (3, 3)))
    plain = st.lists(st.floats(-100, 100), min_size=9, max_size=9).map(
        lambda v: np.reshape(v, (3, 3))
    )
    return st.one_of(free, plain)


unit = st.floats(-1.0, 1.0)
record = st.tuples(unit, unit, unit)


@settings(max_examples=150, deadline=None)
@given(st.lists(record, min_size=1, max_size=6), hostile_transforms())
def test_an_absent_record_changes_the_vector_by_at_most_one(records, T):
    data = np.array(records)
    X, y = data[:, :2] / math.sqrt(2.0), data[:, 2]
    with np.errstate(all="ignore"):
        present = entries(zero().release(SECOND_MOMENTS, arrays(X, y), transform=T, sigma=1.0))
        X[0], y[0] = 0.0, 0.0
        absent = entries(zero().release(SECOND_MOMENTS, arrays(X, y), transform=T, sigma=1.0))
    assert np.isfinite(present).all()
    # Sums of a few terms of size 1 are rounded: their error is not a record's.
    assert np.linalg.norm(present - absent) <= 1.0 + 1e-14 * len(y)


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (5, 5)])
def test_transforms_of_other_shapes_are_refused(shape):
    noise = zero()
    with pytest.raises(ValueError, match="transform must be finite and have shape"):
        noise.release(SECOND_MOMENTS, arrays(*problem(5)), transform=np.zeros(shape), sigma=1.0)
    T = np.full((4, 4), np.nan)
    with pytest.raises(ValueError, match="transform must be finite"):
        noise.release(SECOND_MOMENTS, arrays(*problem(5)), transform=T, sigma=1.0)
    assert noise.drawn == []


# --- mean of the target --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [arrays, chunks])
def test_mean_of_the_target(kind):
    X, y = problem(6)
    assert zero().release(TARGET_MEAN, kind(X, y), sigma=1.0) == pytest.approx(y.mean())
    assert zero().release(TARGET_MEAN, kind(X, 5.0 + y), sigma=1.0) == 1.0


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=9))
def test_an_absent_target_changes_the_sum_by_at_most_one(targets):
    y = np.array(targets)
    X = np.zeros((len(y), 1))
    present = arrays(X, y).target_total()
    y[0] = 0.0
    assert abs(present - arrays(X, y).target_total()) <= 1.0 + 1e-14


def test_noise_of_the_mean_has_its_law():
    """False alarm: 1e-6, two-sided chi-square; the seed is fixed."""
    X, y = problem(7, n=500)
    noise, draws = Noise(np.random.default_rng(8)), 2000
    rows = arrays(X, 0.1 * y)
    means = [noise.release(TARGET_MEAN, rows, sigma=2.0) for _ in range(draws)]
    z = (np.array(means) - 0.1 * y.mean()) * 500 / 2.0
    low, high = stats.chi2(draws).ppf([5e-7, 1.0 - 5e-7])
    assert low <= float(z @ z) <= high


# --- counts of gradients -------------------------------------------------------------------------

EDGES = 2.0 ** np.arange(-6.0, 5.0)


def counted(rows, theta, T, least=0.3, longest=2.0):
    return zero().release(
        GRADIENT_COUNTS,
        rows,
        theta=theta,
        transform=T,
        least=least,
        longest=longest,
        edges=EDGES,
        loss=None,
        sigma=1.0,
    )


@pytest.mark.parametrize("kind", [arrays, chunks])
def test_counts_are_those_of_gradients(kind):
    """Gradients are those of the loss: a long row counts as if it and its target were shorter."""
    X, y = problem(9, n=500)
    rng = np.random.default_rng(9)
    T, theta = 3.0 * rng.normal(size=(3, 3)), rng.normal(size=3)
    rho = np.maximum(np.linalg.norm(X @ T, axis=1), 0.3)
    short = np.minimum(1.0, 2.0 / rho)
    size = np.abs(short * (y - X @ theta)) * (short * rho)
    expected = np.histogram(np.minimum(size, EDGES[-1]), EDGES)[0]
    np.testing.assert_array_equal(counted(kind(X, y), theta, T), expected)
    assert (rho > 2.0).any()
    assert (rho == 0.3).any()


@pytest.mark.parametrize("kind", [arrays, chunks])
def test_rows_that_are_all_short_count_with_the_least_length(kind):
    """No row is measured if none can be longer, and the counts are the same."""
    X, y = problem(9, n=500)
    theta = np.array([0.3, -0.2, 0.1])
    short, long = counted(kind(X, y), theta, np.eye(3), least=1.0), []
    for transform in (np.eye(3), np.diag([1.0, 1.0, 1.0 + 1e-9])):  # the second is measured
        long.append(counted(kind(X, y), theta, transform, least=1.0))
    np.testing.assert_array_equal(short, long[1])
    expected = np.histogram(np.minimum(np.abs(y - X @ theta), EDGES[-1]), EDGES)[0]
    np.testing.assert_array_equal(short, expected)


@settings(max_examples=100, deadline=None)
@given(st.lists(record, min_size=1, max_size=6), hostile_transforms(90), st.tuples(unit, unit))
def test_an_absent_record_counts_nowhere(records, T, theta):
    data = np.array(records)
    X, y, theta = data[:, :2] / math.sqrt(2.0), data[:, 2], 1e3 * np.array(theta)
    T = T[:2, :2]
    with np.errstate(all="ignore"):
        present = counted(arrays(X, y), theta, T)
        X[0], y[0] = 0.0, 0.0
        absent = counted(arrays(X, y), theta, T)
    change = present - absent
    assert ((change == 0.0) | (change == 1.0)).all()
    assert change.sum() <= 1.0
    X[:], y[:] = 0.0, 0.0
    assert not counted(arrays(X, y), theta, T).any()


def test_edges_at_zero_are_refused():
    noise = zero()
    with pytest.raises(ValueError, match="edges must be above 0"):
        noise.release(
            GRADIENT_COUNTS,
            arrays(*problem(10)),
            theta=np.zeros(3),
            transform=np.eye(3),
            least=1.0,
            longest=1.0,
            edges=np.array([0.0, 1.0]),
            loss=None,
            sigma=1.0,
        )
    assert noise.drawn == []


def test_a_transform_that_was_changed_in_place_is_measured_again():
    """Rows that are ten times as long must not keep their old lengths: their slopes would."""
    X, y = problem(11)
    T, rows = np.eye(3), arrays(X, y)
    counted(rows, np.zeros(3), T)
    T *= 10.0
    np.testing.assert_array_equal(
        counted(rows, np.zeros(3), T, longest=1e9),
        counted(arrays(X, y), np.zeros(3), T, longest=1e9),
    )


# --- a line through predictions and residuals ----------------------------------------------------


@pytest.mark.parametrize("kind", [arrays, chunks])
def test_a_line_is_the_means_of_clipped_pairs(kind):
    X, y = problem(13, n=500)
    center, move = np.array([0.1, -0.2, 0.3]), np.array([1.0, 2.0, -0.5])
    widths = (0.5, 0.7)
    p, r = np.clip(X @ move / 0.5, -1, 1), np.clip((y - X @ center) / 0.7, -1, 1)
    assert (np.abs(p) == 1.0).any()
    assert (np.abs(r) == 1.0).any()
    means = zero().release(LINE, kind(X, y), center=center, move=move, widths=widths, sigma=1.0)
    e = np.clip(y - X @ (center + move), -1, 1)
    assert (np.abs(e) == 1.0).any()
    np.testing.assert_allclose(means, [p.mean(), e.mean(), (p * r).mean(), (p * p).mean()])


@settings(max_examples=100, deadline=None)
@given(st.lists(record, min_size=1, max_size=6), st.tuples(unit, unit), st.floats(1e-90, 1e9))
def test_an_absent_record_moves_a_line_by_at_most_its_sensitivity(records, theta, width):
    data = np.array(records)
    X, y, theta = data[:, :2] / math.sqrt(2.0), data[:, 2], 1e3 * np.array(theta)
    present = arrays(X, y).line(-theta, theta, (width, 1.0))
    X[0], y[0] = 0.0, 0.0
    absent = arrays(X, y).line(-theta, theta, (width, 1.0))
    assert np.linalg.norm(present - absent) <= line_sensitivity() * (1.0 + 1e-12)


def test_the_sensitivity_of_a_line_is_attained():
    X, y = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([1.0, 0.0])
    sums = arrays(X, y).line(np.zeros(2), np.array([2.0, 0.0]), (1.0, 1.0))
    assert np.linalg.norm(sums) == pytest.approx(line_sensitivity(), rel=1e-12)


def test_noise_of_a_line_has_its_law():
    """False alarm: 1e-6, two-sided chi-square; the seed is fixed."""
    X, y = problem(14, n=50)
    noise, draws, theta = Noise(np.random.default_rng(15)), 500, np.ones(3)
    lines = [
        noise.release(LINE, arrays(X, y), center=theta, move=theta, widths=(1.0, 1.0), sigma=3.0)
        for _ in range(draws)
    ]
    exact = zero().release(
        LINE, arrays(X, y), center=theta, move=theta, widths=(1.0, 1.0), sigma=3.0
    )
    z = (np.array(lines) - exact).ravel() * 50 / (3.0 * line_sensitivity())
    low, high = stats.chi2(4 * draws).ppf([5e-7, 1.0 - 5e-7])
    assert low <= float(z @ z) <= high


@pytest.mark.parametrize(
    "wrong",
    [{"sigma": 0.0}, {"widths": (0.0, 1.0)}, {"center": np.zeros(2)}, {"move": [1e300] * 3}],
)
def test_a_line_that_cannot_be_had_is_refused(wrong):
    noise = zero()
    given = {"center": np.zeros(3), "move": np.ones(3), "widths": (1.0, 1.0), "sigma": 1.0} | wrong
    given["move"] = np.asarray(given["move"])
    with pytest.raises(ValueError, match=next(iter(wrong))):
        noise.release(LINE, arrays(*problem(5)), **given)
    assert noise.drawn == []


# --- events --------------------------------------------------------------------------------------


def same(drawn, *events):
    def plain(each):
        return [(e.sigma / e.sensitivity, e.count) for e in each]

    assert all(isinstance(event, GaussianEvent) for event in drawn)
    return plain(drawn) == plain(events)


def test_events_are_what_is_drawn():
    X, y = problem(12)
    noise = Noise(np.random.default_rng(0))
    noise.release(SECOND_MOMENTS, arrays(X, y), transform=np.eye(4), sigma=3.0)
    assert same(noise.drawn, SECOND_MOMENTS.event(3.0))
    assert SECOND_MOMENTS.event(3.0, count=4).mu == pytest.approx(2.0 / 3.0)
    noise = Noise(np.random.default_rng(0))
    noise.release(TARGET_MEAN, arrays(X, y), sigma=0.5)
    assert same(noise.drawn, TARGET_MEAN.event(0.5))
    noise, ones = Noise(np.random.default_rng(0)), np.ones(3)
    noise.release(LINE, arrays(X, y), center=ones, move=ones, widths=(1.0, 1.0), sigma=0.5)
    assert same(noise.drawn, LINE.event(0.5))
    noise = Noise(np.random.default_rng(0))
    noise.release(
        GRADIENT_COUNTS,
        arrays(X, y),
        theta=np.zeros(3),
        transform=np.eye(3),
        least=1.0,
        longest=1.0,
        edges=EDGES,
        loss=None,
        sigma=7.0,
    )
    assert same(noise.drawn, RESIDUAL_COUNTS.event(7.0))
