"""Curvatures and squares of gradients: their sums, how much one record changes, their events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from fastmix.data import ArrayRows, ChunkRows, Chunks, RowMap, TargetMap, curvatures
from fastmix.data import rows as data_rows
from fastmix.data.chunks import ArrayChunk
from fastmix.data.persons import Persons
from fastmix.data.weights import on_grid
from fastmix.kernels.losses import CalibratedHuber
from fastmix.kernels.sigmoids import Logistic, SmoothedQuantile, UpperLogistic
from fastmix.releases import CURVATURE, CURVATURES, SQUARES, Noise, sensitivity
from tests.releases.plain import zero

LOSS = CalibratedHuber(0.5, 20.0, 1.0, 3.0)


def arrays(X, y):
    return ArrayRows(X, RowMap(row_norm=1.0), y)


def chunks(X, y, size=17):
    parts = [ArrayChunk(str(i), X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]
    return ChunkRows(Chunks(parts, X.shape[1]), RowMap(row_norm=1.0), TargetMap())


def released(rows, theta, T, *, square=4.0, loss=LOSS, least=0.3, noise=None, weights=None):
    noise = zero() if noise is None else noise
    return noise.release(
        CURVATURES,
        rows,
        theta=theta,
        loss=loss,
        transform=T,
        least=least,
        square=square,
        weights=weights,
        sigma=(2.0, 3.0),
    )


def problem(seed, n=120, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1).max()
    return X, rng.uniform(-1, 1, n)


@pytest.mark.parametrize("kind", [arrays, chunks])
def test_sums_one_record_at_a_time(kind):
    X, y = problem(0)
    rng = np.random.default_rng(1)
    T, theta = 4.0 * rng.normal(size=(3, 3)), rng.normal(size=3)
    curvature, squares = np.zeros((3, 3)), np.zeros((3, 3))
    limited = 0
    for x, target in zip(X, y, strict=True):
        z = T.T @ x
        length = np.array([max(0.3, np.linalg.norm(z))])
        u = np.array([target - x @ theta])
        weight = min(LOSS.curvature(u, length)[0], 4.0 / length[0] ** 2)
        limited += weight < LOSS.curvature(u, length)[0]
        curvature += weight * np.outer(z, z)
        squares += LOSS.slope(u, length)[0] ** 2 * np.outer(z, z)
    found = released(kind(X, y), theta, T)
    assert 0 < limited < len(X)
    np.testing.assert_allclose(found.curvature, curvature, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.squares, squares, rtol=1e-9, atol=1e-9)


unit = st.floats(-1.0, 1.0)
record = st.tuples(unit, unit, unit)


def changes(records, T, theta, square, loss):
    """Return by how much an absent record changes both matrices, in units of the sensitivities."""
    data = np.array(records)
    X, y, theta = data[:, :2] / math.sqrt(2.0), data[:, 2], np.array(theta)
    present = released(arrays(X, y), theta, T, square=square, loss=loss)
    X[0], y[0] = 0.0, 0.0
    absent = released(arrays(X, y), theta, T, square=square, loss=loss)
    limits = (
        sensitivity.curvature_sensitivity(square),
        sensitivity.gradient_square_sensitivity(loss.lipschitz),
    )
    return [
        np.linalg.norm(a - b) / limit for a, b, limit in zip(present, absent, limits, strict=True)
    ]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(record, min_size=1, max_size=6),
    st.lists(st.floats(-100, 100), min_size=4, max_size=4).map(lambda v: np.reshape(v, (2, 2))),
    st.tuples(st.floats(-50, 50), st.floats(-50, 50)),
    st.floats(0.1, 50.0),
    st.floats(0.01, 10.0),
)
def test_an_absent_record_changes_each_by_at_most_its_sensitivity(records, T, theta, square, clip):
    loss = CalibratedHuber(clip, 20.0, 1.0, 3.0)
    for change in changes(records, T, theta, square, loss):
        assert change <= 1.0 + 1e-12


@settings(max_examples=100, deadline=None)
@given(
    st.lists(record, min_size=1, max_size=6),
    st.lists(st.floats(-100, 100), min_size=4, max_size=4).map(lambda v: np.reshape(v, (2, 2))),
    st.tuples(st.floats(-50, 50), st.floats(-50, 50)),
    st.floats(0.1, 50.0),
    st.floats(0.01, 10.0),
)
def test_so_does_one_with_a_label(records, T, theta, square, clip):
    for change in changes(records, T, theta, square, Logistic(clip, 20.0, 1.0)):
        assert change <= 1.0 + 1e-12


@settings(max_examples=100, deadline=None)
@given(
    st.lists(record, min_size=1, max_size=6),
    st.lists(st.floats(-100, 100), min_size=4, max_size=4).map(lambda v: np.reshape(v, (2, 2))),
    st.tuples(st.floats(-50, 50), st.floats(-50, 50)),
    st.floats(0.1, 50.0),
    st.floats(0.01, 10.0),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.sampled_from([1e-3, 0.2, 10.0]),
)
def test_so_does_one_in_a_quantile_regression(records, T, theta, square, clip, quantile, width):
    loss = SmoothedQuantile(clip, 1e3 * square, 1e3, quantile, width)
    for change in changes(records, T, theta, square, loss):
        assert change <= 1.0 + 1e-12


def test_curvatures_of_labels_are_those_of_the_logistic_loss():
    X, _ = problem(3)
    y = np.where(np.arange(len(X)) % 3 == 0, -1.0, 0.5)
    y[5] = 0.0  # no label
    theta, T = np.array([1.0, -2.0, 0.5]), np.eye(3)
    loss = Logistic(50.0, 1e6, 1.0)  # so wide that nothing is limited
    found = released(arrays(X, y), theta, T, square=1e6, loss=loss)
    p = expit(X @ theta)
    weights = np.abs(y)
    gradients = weights * np.where(y > 0, 1.0 - p, -p)
    np.testing.assert_allclose(found.curvature, (X * (weights * p * (1 - p))[:, None]).T @ X)
    np.testing.assert_allclose(found.squares, (X * (gradients**2)[:, None]).T @ X)


def test_the_sensitivities_are_attained():
    """A long row near the line has the largest curvature; far from it, the largest gradient."""
    T = 10.0 * np.eye(2)
    near = changes([(1.0, 1.0, 0.0)], T, (0.0, 0.0), 4.0, LOSS)
    far = changes([(0.3, 0.0, 1.0)], T, (-50.0, 0.0), 4.0, LOSS)
    assert near[0] == pytest.approx(1.0, rel=1e-6)
    assert far[1] == pytest.approx(1.0, rel=1e-3)


def broken_limit(block, *, square, **given):
    """Forget to limit the curvature of long rows."""
    return curvatures.curvatures(block, square=1e9 * square, **given)


def broken_slope(block, *, at, **given):
    """Take residuals for slopes: nothing limits gradients."""
    totals = curvatures.curvatures(block, at, **given)
    for A, y in block.formed():
        Z = (A @ at.transform) * (y - A @ at.theta)[:, None]
        totals[1] = Z.T @ Z
    return totals


@pytest.mark.parametrize("loss", [LOSS, SmoothedQuantile(20.0, 1e4, 1e3, 0.9, 0.01)])
@pytest.mark.parametrize("broken", [broken_limit, broken_slope])
def test_mutants_exceed_the_sensitivities(monkeypatch, broken, loss):
    """Without a limit the same neighbours differ by more than what noise is made for."""
    real = ArrayRows.run

    def run(self, task):
        return (
            broken(self._block, **task.value.keywords)
            if "square" in keys(task)
            else real(self, task)
        )

    def keys(task):
        return getattr(task.value, "keywords", {})

    monkeypatch.setattr(ArrayRows, "run", run)
    near = changes([(1.0, 1.0, 0.0)], 10.0 * np.eye(2), (0.0, 0.0), 4.0, loss)
    far = changes([(0.3, 0.0, 1.0)], 10.0 * np.eye(2), (-50.0, 0.0), 4.0, loss)
    assert max(near[0], far[1]) > 1.5


def test_events_are_what_is_drawn():
    X, y = problem(3)
    noise = Noise(np.random.default_rng(0))
    released(arrays(X, y), np.zeros(3), np.eye(3), noise=noise)
    assert noise.drawn == [CURVATURE.event(2.0), SQUARES.event(3.0)]


def test_noise_has_its_scale():
    """Means of squares of 600 draws are within 6 standard deviations; the seed is fixed."""
    X, y = problem(4)
    rows, noise = arrays(X, y), Noise(np.random.default_rng(5))
    exact = released(rows, np.zeros(3), np.eye(3))
    draws = [released(rows, np.zeros(3), np.eye(3), noise=noise) for _ in range(600)]
    for name, scale in (("curvature", 2.0 * 4.0), ("squares", 3.0 * 0.5**2)):
        z = np.array([getattr(each, name) - getattr(exact, name) for each in draws]) / scale
        assert np.mean(z[:, 0, 0] ** 2) == pytest.approx(1.0, abs=6 * math.sqrt(2 / 600))
        assert np.mean(z[:, 0, 1] ** 2) == pytest.approx(0.5, abs=3 * math.sqrt(2 / 600))
        np.testing.assert_array_equal(z, z.transpose(0, 2, 1))


def test_wrong_arguments_draw_nothing():
    X, y = problem(6)
    noise = Noise(np.random.default_rng(0))
    with pytest.raises(ValueError, match="theta must be"):
        released(arrays(X, y), np.full(3, 1e200), np.eye(3), noise=noise)
    with pytest.raises(ValueError, match="transform must have a norm"):
        released(arrays(X, y), np.zeros(3), np.full((3, 3), np.inf), noise=noise)
    with pytest.raises(ValueError, match="square must be"):
        released(arrays(X, y), np.zeros(3), np.eye(3), square=0.0, noise=noise)
    assert noise.drawn == []


def many(seed, kind="plain"):
    """Return so many rows that sums come from Gram matrices of rows with scales."""
    X, y = problem(seed, n=9001)
    X[::7] *= 3.0  # the map shortens these
    if kind == "constant":
        return ArrayRows(X, RowMap(row_norm=1.0, constant=0.6), y)
    if kind == "weighted":
        weights = on_grid(np.random.default_rng(seed).uniform(0.0, 1.0, len(X)))
        return ArrayRows(X, RowMap(row_norm=1.0), y, persons=Persons(len(X), weights, len(X)))
    if kind == "persons":
        X, y = np.concatenate([X, X, X]), np.concatenate([y, -y, 0.5 * y])
        codes = np.arange(len(X)) % 9001
        persons = Persons(9001, np.full(len(X), 0.25), len(X), 3, codes)
        return ArrayRows(X, RowMap(row_norm=1.0), y, persons=persons)
    rows = (chunks if kind == "chunks" else arrays)(X, y)
    if kind == "known":
        rows.joint_moments()
    return rows


LOSSES = [
    LOSS,
    SmoothedQuantile(20.0, 1e4, 1e3, 0.9, 0.01),
    Logistic(0.5, 30.0, 1.0),
    UpperLogistic(0.5, 30.0, 1.0),
]


@pytest.mark.parametrize("kind", ["plain", "constant", "weighted", "persons", "chunks", "known"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gram_matrices_of_scaled_rows_give_the_same_sums(monkeypatch, kind, loss):
    rows = many(8, kind)
    rng = np.random.default_rng(9)
    T, theta = 5.0 * rng.normal(size=(rows.d, rows.d)), 0.4 * rng.normal(size=rows.d)
    for weights in (None, np.linspace(0.2, 1.0, rows.d)):
        given = {"square": 4.0, "loss": loss, "weights": weights}
        with monkeypatch.context() as patch:
            patch.setattr(curvatures, "curvatures", None)
            found = released(rows, theta, T, **given)
        with monkeypatch.context() as patch:
            patch.setattr(data_rows, "_FEW_ROWS", 10**9)
            patch.setattr(curvatures, "whole_curvatures", None)
            formed = released(rows, theta, T, **given)
        for name in ("curvature", "squares"):
            want = getattr(formed, name)
            # Terms at a limit are shorter by the room for rounding.
            np.testing.assert_allclose(getattr(found, name), want, rtol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("record", [(1.0, 0.0, 0.0, 0.0), (0.2, 0.1, 0.0, 1.0), (-1, 1, 1, -1)])
def test_one_of_many_records_changes_sums_by_at_most_the_sensitivities(loss, record):
    X, y = problem(10, n=9001)
    T = np.diag([10.0, 2.0, 0.1])
    changed, other = X.copy(), y.copy()
    X[17], y[17] = record[:3], record[3]
    changed[17], other[17] = 0.0, 0.0
    given = {"theta": np.array([-3.0, 1.0, 1.0]), "T": T, "loss": loss}
    one, two = (released(arrays(*each), **given) for each in ((X, y), (changed, other)))
    limits = (
        sensitivity.curvature_sensitivity(4.0),
        sensitivity.gradient_square_sensitivity(loss.lipschitz),
    )
    for name, limit in zip(("curvature", "squares"), limits, strict=True):
        assert np.linalg.norm(getattr(one, name) - getattr(two, name)) <= limit


def test_coordinates_that_rounding_does_not_allow_are_formed(monkeypatch):
    """Rows that are far shorter in the given coordinates than their entries say."""
    monkeypatch.setattr(curvatures, "whole_curvatures", None)
    T = 1e7 * np.array([[1.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    released(many(11), np.zeros(3), T)
