"""Computed sums of hostile neighbours: never more apart than the sensitivity that noise is for.

A release of many records is compared with the exact sum (`math.fsum`) of what it is of each record
alone: that is the lemma of docs/proofs/machine.md, position by position.
"""

import math

import numpy as np
import pytest

from fastmix.data import ArrayRows, RowMap, TargetMap
from fastmix.data.chunks import ArrayChunk, ChunkRows, Chunks
from fastmix.data.persons import Persons
from fastmix.data.reductions import folded as fold
from fastmix.data.weights import on_grid
from fastmix.engine.objective import squares
from fastmix.kernels import mapped, reference
from fastmix.kernels.measured import row_lengths
from fastmix.kernels.sigmoids import Logistic
from fastmix.releases import (
    ABSOLUTE_LAYERS,
    BELOW,
    CONTRASTS,
    CURVATURE,
    GRADIENT,
    GRADIENT_COUNTS,
    GRAM,
    LABEL_COUNTS,
    LINE,
    LOSS_LAYERS,
    MEAN,
    PINBALL_LAYERS,
    RESIDUAL_COUNTS,
    SECOND_MOMENTS,
    SIGNED_COUNTS,
    SLOPES,
    SQUARES,
    TARGET_MEAN,
    TOTAL_WEIGHT,
)
from fastmix.releases.moments import MOMENT
from fastmix.releases.release import Public, folded
from fastmix.releases.rounding import rounded

D = 4
#: Releases of rows without weights only.
UNWEIGHTED = {"gradient", "gram"}
KINDS = ["noise", "cancelling", "ill-scaled", "tiny", "thirds", "long", "equal"]


def given(rng):
    """Return releases with values that they may be given."""
    theta, T = rng.normal(size=D), np.triu(rng.normal(size=(D, D))) + np.eye(D)
    joint = np.triu(rng.normal(size=(D + 1, D + 1))) * 10.0 ** rng.uniform(-1, 1)
    edges = np.array([0.05, 0.3, 1.0, 2.5])
    loss = squares(0.3, 200.0, 1.0, 2.0)
    logistic = Logistic(0.4, 0.5, 1.0)
    at = {"theta": theta, "transform": T, "least": 0.2}
    curved = {**at, "square": 0.5, "weights": None}
    return {
        "gradient": (GRADIENT, {"theta": theta, "clip": 0.7}),
        "mean": (MEAN, {}),
        "targets": (TARGET_MEAN, {}),
        "gram": (GRAM, {}),
        "moment": (MOMENT, {}),
        "second moments": (SECOND_MOMENTS, {"transform": joint}),
        "slopes": (SLOPES, {**at, "loss": loss}),
        "sigmoid slopes": (SLOPES, {**at, "loss": logistic}),
        "line": (LINE, {"center": theta, "move": theta[::-1].copy(), "widths": (0.4, 0.6)}),
        "curvature": (CURVATURE, {**curved, "loss": loss}),
        "sigmoid curvature": (CURVATURE, {**curved, "loss": logistic}),
        "squares": (SQUARES, {**curved, "loss": loss}),
        "sizes": (RESIDUAL_COUNTS, {"theta": theta, "clip": 0.7}),
        "signed": (SIGNED_COUNTS, {"theta": theta, "edges": np.append(0.0, edges)}),
        "gradients": (GRADIENT_COUNTS, {**at, "longest": 2.0, "edges": edges, "loss": None}),
        "squared layers": (ABSOLUTE_LAYERS, {"theta": theta, "edges": edges}),
        "pinball": (PINBALL_LAYERS, {"theta": theta, "edges": edges, "quantile": 0.3}),
        "contrasts": (CONTRASTS, {"thetas": rng.normal(size=(D, 3)), "level": 0.8}),
        "below": (BELOW, {"theta": theta}),
        "labels": (LABEL_COUNTS, {"theta": theta, "edges": edges - 0.5}),
        "losses": (LOSS_LAYERS, {"thetas": theta[:, None], "edges": edges}),
        "weights": (TOTAL_WEIGHT, {}),
    }


def records(kind, count, rng):
    """Return records of norm at most 1, and targets, that rounding treats badly."""
    X = rng.normal(size=(count, D))
    X *= (rng.uniform(0.0, 1.0, count) ** 0.25 / np.linalg.norm(X, axis=1))[:, None]
    y = rng.uniform(-1.0, 1.0, count)
    if kind == "cancelling":
        X[1::2], y[1::2] = -X[: len(X[1::2]) * 2 : 2], -y[: len(y[1::2]) * 2 : 2]
    elif kind == "ill-scaled":
        X *= 10.0 ** rng.uniform(-14, 0, X.shape)
    elif kind == "tiny":
        X *= 2.0 ** -rng.integers(20, 500)
        X[0] = [1.0, 0.0, 0.0, 0.0]
    elif kind == "thirds":
        X[:], y[:] = 1.0 / 3.0, 1.0 / 3.0
        X[0], y[0] = 0.5, 1.0
    elif kind == "long":
        X *= 10.0 ** rng.uniform(0, 8, (count, 1))
    elif kind == "equal":
        X[:], y[:] = 0.5, 1.0
    return X, y


def rows_of(X, y, weights=None):
    persons = None if weights is None else Persons(len(X), weights, len(X), 1)
    return ArrayRows(X, RowMap(1.0), y, TargetMap(), persons)


def computed(release, rows, values):
    """Return the statistic as the vector that gets noise."""
    found = release.statistic((rows,) if release is LOSS_LAYERS else rows, **values)
    return np.ravel(folded(found) if release.symmetric else found)


def exact(release, alone, values, copies):
    """Return the exact sum of what the release is of single records, so many of each."""
    terms = np.array([computed(release, one, values) for one in alone])
    # A product of a float and a whole number up to 2^26 is a sum of two floats.
    halves = np.float64(np.float32(terms)), terms - np.float64(np.float32(terms))
    parts = [half * copies[:, None] for half in halves]
    return np.array([math.fsum(each) for each in np.concatenate(parts).T])


def attack(kind, n, seed, *, weighted=False, only=None):
    """Yield names, the change by one record, the sensitivity, and the error of a sum by its bound.

    The table has few distinct records, many times each, in any order.
    """
    rng = np.random.default_rng([KINDS.index(kind), n, seed])
    distinct = min(n, 12)
    X, y = records(kind, distinct, rng)
    own = on_grid(rng.uniform(0.0, 1.0, distinct)) if weighted else None
    places = np.concatenate((np.arange(distinct), rng.integers(distinct, size=n - distinct)))
    rng.shuffle(places)
    gone = int(np.flatnonzero(places == rng.integers(distinct))[0])
    weights = None if own is None else own[places]
    whole = rows_of(X[places], y[places], weights)
    absent_X, absent_y = X[places], y[places]
    absent_X[gone] = absent_y[gone] = 0.0
    less = None if weights is None else np.where(np.arange(n) == gone, 0.0, weights)
    absent = rows_of(absent_X, absent_y, less)
    removed = rows_of(*(np.delete(each, gone, 0) for each in (X[places], y[places])))
    copies = np.bincount(places, minlength=distinct).astype(float)
    ones = [slice(i, i + 1) for i in range(distinct)]
    alone = [rows_of(X[i], y[i], None if own is None else own[i]) for i in ones]
    for name, (release, values) in given(rng).items():
        if (weighted and name in UNWEIGHTED) or (only and name not in only):
            continue
        first = computed(release, whole, values)
        limit = release.sensitivity(Public.of(whole), **values)
        others = [absent] if weighted or name == "weights" else [absent, removed]
        change = max(np.linalg.norm(first - computed(release, each, values)) for each in others)
        error = 0.0
        # Records are shortened, or limited, by what n is in these: only changes are compared.
        limited = release is SECOND_MOMENTS or (n >= 1 << 13 and release in (CURVATURE, SQUARES))
        if not limited:
            room = limit - _plain(release, Public.of(whole), values)
            off = np.linalg.norm(first - exact(release, alone, values, copies))
            error = 0.0 if off == 0.0 else off / max(0.5 * room, 1e-300)
        yield name, change, limit, error


def _plain(release, public, values):
    """Return the sensitivity of the exact sum: that of so few records that none is added."""
    return release.sensitivity(public._replace(most=0, weighted=False), **values)


def worst(*args, **kwargs):
    """Return the largest change of each release in units of its sensitivity, and error."""
    found = {}
    for name, change, limit, error in attack(*args, **kwargs):
        found[name] = change / limit, error
    return found


def check(found, note):
    for name, (change, error) in found.items():
        assert change <= 1.0, (name, change, note)
        assert error <= 1.0, (name, error, note)


@pytest.fixture(params=["compiled", "numpy"])
def kernels(request, monkeypatch):
    """Passes in C++ and in NumPy."""
    if request.param == "numpy":
        monkeypatch.setattr(mapped, "kernel", lambda name: None)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_pair_is_farther_apart_than_the_sensitivity(kind, weighted):
    """And no sum is farther from the exact one than its bound says."""
    for n, count in ((2, 2), (13, 2), (600, 2), (5000, 1)):
        for seed in range(count):
            check(worst(kind, n, seed, weighted=weighted), (kind, n, seed))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
def test_no_pair_of_long_tables(weighted):
    for kind in ("thirds", "cancelling"):
        check(worst(kind, 60_000, 0, weighted=weighted), kind)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
def test_fifty_thousand_hostile_pairs(weighted):
    pairs, seed = 0, 100
    while pairs < 25_000:
        for kind in KINDS:
            found = worst(kind, [2, 7, 40, 300, 2100][seed % 5], seed, weighted=weighted)
            check(found, (kind, seed))
            pairs += len(found)
        seed += 1


def test_sensitivities_are_attained():
    """By some record of some pair, within a thousandth."""
    most = {}
    for kind in KINDS:
        for seed in range(3):
            for name, (change, _) in worst(kind, 40, seed).items():
                most[name] = max(most.get(name, 0.0), change)
    attained = {name for name, change in most.items() if change >= 0.999}
    assert {"mean", "gram", "targets", "moment", "second moments", "sizes", "signed", "below"} <= (
        attained
    )
    assert {"labels", "gradients"} <= attained


def test_without_room_a_record_exceeds_the_sensitivity():
    """A record that takes a sum past a power of two, where its numbers lie less densely."""
    exceeding = set()
    for n in (20_001, 23_456, 30_000, 41_234):
        for seed in range(6):
            rng = np.random.default_rng(seed)
            X = np.full((n, D), (2048.0 - rng.uniform(0.1, 0.4)) / (n - 1))
            y = np.full(n, (4096.0 - rng.uniform(0.1, 0.9)) / (n - 1))
            if seed % 2:
                X[:], y[:] = rng.uniform(0.1, 0.3), rng.uniform(0.1, 0.9)
            gone = int(rng.integers(n))
            X[gone], y[gone] = 0.5, 1.0
            less_X, less_y = X.copy(), y.copy()
            less_X[gone] = less_y[gone] = 0.0
            whole, absent = rows_of(X, y), rows_of(less_X, less_y)
            for name in ("mean", "targets", "gram", "moment"):
                release, values = given(rng)[name]
                first, second = (computed(release, each, values) for each in (whole, absent))
                change = np.linalg.norm(first - second)
                assert change <= release.sensitivity(Public.of(whole), **values)
                exceeding |= {name} if change > 1.0 + 100 * 2.0**-53 else set()
    assert exceeding == {"mean", "targets", "gram", "moment"}


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("d", [3, 40, 140])
def test_a_record_counts_alike_wherever_it_stands(d):
    """Residuals, lengths and so bins and limits are of the record alone, to the last bit."""
    rng = np.random.default_rng(d)
    n = 521
    X, y = rng.normal(size=(n, d)), rng.uniform(-1, 1, n)
    theta, T = rng.normal(size=d), rng.normal(size=(d, d))
    for order in ("C", "F"):
        full = rows_of(np.array(X, order=order), y)._block
        lengths = row_lengths(full.A, T, 0.0)
        residuals = next(full.residuals(theta))[1][0]
        for start in (1, 2, 3, 5, 8, 130, n - 2):
            part = rows_of(np.array(X[start:], order=order), y[start:])._block
            np.testing.assert_array_equal(next(part.residuals(theta))[1][0], residuals[start:])
            np.testing.assert_array_equal(row_lengths(part.A, T, 0.0), lengths[start:])


def test_blocks_of_files_are_added_in_pairs():
    """The number of blocks does not matter: each goes through as many sums as it has digits."""
    depths = []

    def deeper(first, second):
        return max(first, second) + 1

    for count in (1, 2, 3, 7, 64, 1000, 4097):
        depths.append(fold(deeper, [0] * count))
        assert depths[-1] <= count.bit_length()
    assert fold(deeper, [None, None]) is None
    assert fold(lambda a, b: a + b, ["a", None, "b", "c", "d", "e"]) == "abcde"


@pytest.mark.parametrize("size", [1, 37])
def test_tables_in_many_files_obey_the_same_bound(size):
    rng = np.random.default_rng(1)
    X, y = records("thirds", 500, rng)
    parts = [ArrayChunk(str(i), X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]
    files = ChunkRows(Chunks(parts, D), RowMap(1.0), TargetMap())
    array = rows_of(X, y)
    assert Public.of(files) == Public.of(array)
    room = rounded(Public.of(array), 1.0) - 1.0
    for name in ("mean", "gram", "moment", "targets"):
        release, values = given(rng)[name]
        gap = computed(release, files, values) - computed(release, array, values)
        assert np.linalg.norm(gap) <= room  # each is half of it from the exact sum


@pytest.mark.parametrize("d", [1, 10, 64])
def test_the_room_is_small(d):
    """Below a millionth for a million rows, and a thousandth for 67 million."""
    for n, most in ((10_000, 1e-8), (1 << 20, 1e-6), (1 << 26, 1e-3)):
        public = Public(n, d, 1.0, 0.0, most=n, additions=mapped.additions(n, d + 1))
        assert 0.0 < rounded(public, 1.0) - 1.0 < most
        assert rounded(public, 3.0) == pytest.approx(3.0 * rounded(public, 1.0), rel=1e-15)


def test_hidden_numbers_and_persons_have_public_bounds():
    """What is not public does not steer the room: the number of rows, of blocks, of a person's."""
    weights = on_grid(np.full(6, 0.25), 4)
    codes = np.array([0, 0, 0, 0, 1, 1])
    rows = ArrayRows(
        np.zeros((6, 2)), RowMap(1.0), np.zeros(6), persons=Persons(2, weights, 6, 4, codes)
    )
    fewer = ArrayRows(
        np.zeros((4, 2)), RowMap(1.0), np.zeros(4), persons=Persons(1, weights[:4], 4, 4, codes[:4])
    )
    first, second = (Public.of(each.counted(5, 1000)) for each in (rows, fewer))
    assert first == second
    assert first.most == 1000
    assert first.additions == mapped.additions(4000, 3) + 8


@pytest.mark.parametrize("n", [1, 511, 70_000, 1_000_000])
@pytest.mark.parametrize("p", [2, 20, 127, 600, 5000])
def test_additions_cover_the_blocks_of_numpy(n, p):
    """A sum adds the rows of a block, then the blocks, and BLAS may do so in order."""
    blocks = list(reference.row_blocks(mapped.Mapped(np.broadcast_to(0.0, (n, p)))))
    in_order = max(stop - start for start, stop in blocks) + len(blocks) - 1
    assert in_order <= mapped.additions(n, p)
