"""Releases of a fit of a table: what one record, or one person, changes in each of them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fastmix.data import ArrayRows, RowMap
from fastmix.data.encode import encode
from fastmix.data.frames import frame_columns
from fastmix.data.persons import Persons
from fastmix.data.scaling import public_scaling
from fastmix.data.weights import on_grid
from fastmix.engine.objective import squares
from fastmix.releases import (
    CURVATURES,
    LEVEL_COUNTS,
    NUMBER_MOMENTS,
    SLOPES,
    checks,
    sensitivity,
)
from fastmix.releases.release import Public
from fastmix.schema import PublicBounds
from fastmix.schema.categories import Categories
from tests.releases.plain import Zero, zero

BOUNDS = PublicBounds.from_dict(
    {
        "target": {"y": [0.0, 10.0]},
        "features": {
            "age": [0.0, 100.0],
            "city": ["Ulm", "Bonn", "Kiel"],
            "hours": [-3.0, 5.0],
            "sex": ["f", "m"],
            "age*hours": True,
            "hours*city": True,
            "kind": ["other", "a", "b"],
        },
    }
)
F = 3  # categories
#: Records that a table can hold and that nobody wishes for, first those at the ends of all bounds.
HOSTILE = [
    (100.0, "Kiel", 5.0, "m", "b", 10.0),
    (0.0, "Ulm", -3.0, "f", "other", 0.0),
    (1e300, "Bonn", -1e300, "m", "a", -1e9),
    (math.nan, None, math.nan, None, None, 3.0),
    (50.0, "nowhere", 1.0, "other", "unknown", 5.0),
    (-math.inf, "", math.inf, "F", "A", 1e9),
    (20.0, "other", 0.0, "f ", " b", 7.0),
]
NAMES = ["age", "city", "hours", "sex", "kind", "y"]


def table(records):
    """Return encoded records, their targets, and the public scaling."""
    frame = pd.DataFrame(records, columns=NAMES)
    X, y = encode(frame_columns(frame, BOUNDS), BOUNDS)
    scaling = public_scaling(
        X,
        y,
        bounds_X=BOUNDS.feature_bounds(),
        bounds_y=BOUNDS.ends,
        data_norm=BOUNDS.data_norm,
        fit_intercept=True,
    )
    return X, y, scaling


def rows_of(records, weights=None):
    """Return the rows of a fit, and which of their columns are levels."""
    X, y, scaling = table(records)
    persons = None if weights is None else Persons(len(X), weights, len(X), 4)
    rows = ArrayRows(X, scaling.row_map, y, scaling.target_map, persons)
    return rows, Categories(BOUNDS.categories(), 1.0 / scaling.row_map.divisor)


def crowd(n, seed=0):
    """Return ordinary and hostile records."""
    rng = np.random.default_rng(seed)
    cities, sexes, kinds = ["Ulm", "Bonn", "Kiel", None], ["f", "m"], ["a", "b", "c"]
    ordinary = [
        (
            rng.uniform(0, 100),
            rng.choice(cities),
            rng.uniform(-3, 5),
            rng.choice(sexes),
            rng.choice(kinds),
            rng.uniform(0, 10),
        )
        for _ in range(n)
    ]
    return [*HOSTILE, *ordinary]


def released(release, rows, **given):
    return zero().release(release, rows, sigma=1.0, **given)


def longest(d, seed):
    """Return coordinates that stretch rows, the larger the seed."""
    return 3.0**seed * np.random.default_rng(seed).normal(size=(d, d))


def statistics(records, weights=None, seed=0, hidden=None):
    """Return each statistic of a table fit with its sensitivity, as vectors of their norm."""
    rows, categories = rows_of(records, weights)
    if hidden is not None:
        rows = rows.counted(hidden, 1 << 20)
    d, rng = rows.d, np.random.default_rng(100 + seed)
    theta, T = 3.0**seed * rng.normal(size=d), longest(d, seed)
    loss = squares(0.3, 1e6 * 100.0, 1.0, 10.0)
    numbers = [*categories.numbers(d), d - 1, d]
    inner = np.zeros((d + 1, d + 1))
    inner[np.ix_(numbers, numbers)] = 3.0**seed * rng.normal(size=(len(numbers),) * 2)
    found = {
        "levels": (
            released(LEVEL_COUNTS, rows, categories=categories),
            sensitivity.level_sensitivity(F),
        ),
        "numbers": (
            released(NUMBER_MOMENTS, rows, transform=inner, columns=numbers),
            sensitivity.second_moment_sensitivity(),
        ),
        "slopes": (
            released(SLOPES, rows, theta=theta, loss=loss, transform=T, least=0.5),
            sensitivity.slope_sensitivity(loss.lipschitz),
        ),
    }
    if weights is None:
        curvature = Zero(rng).release(
            CURVATURES,
            rows,
            theta=theta,
            loss=loss,
            transform=T,
            least=0.5,
            square=2.0,
            weights=np.linspace(0.1, 1.0, d),
            sigma=(1.0, 1.0),
        )
        limits = sensitivity.curvature_sensitivity(2.0), loss.lipschitz**2
        found["curvature"] = curvature.curvature, limits[0]
        found["squares"] = curvature.squares, limits[1]
    return found


def changes(first, second):
    """Return the change of each statistic in units of its sensitivity."""
    return {
        name: float(np.linalg.norm(first[name][0] - second[name][0])) / first[name][1]
        for name in first
    }


@pytest.mark.parametrize("seed", range(5))
def test_one_record_changes_each_statistic_by_at_most_its_sensitivity(seed):
    """Each record absent, hostile ones too; and replaced by any other, at most twice that."""
    records = crowd(12)
    whole = statistics(records, seed=seed)
    for at in range(len(records)):
        less = [each for i, each in enumerate(records) if i != at]
        for name, change in changes(whole, statistics(less, seed=seed)).items():
            assert change <= 1.0 + 1e-9, (name, records[at])
    for at, other in [(i, j) for i in range(0, 19, 3) for j in range(len(HOSTILE))]:
        replaced = [*records[:at], HOSTILE[other], *records[at + 1 :]]
        for name, change in changes(whole, statistics(replaced, seed=seed)).items():
            assert change <= 2.0 + 1e-9, (name, records[at], HOSTILE[other])


def test_sensitivities_are_attained():
    """By one of the hostile records; weights below 1 leave squares of gradients below theirs."""
    most = dict.fromkeys(statistics(HOSTILE), 0.0)
    for seed in range(5):
        whole = statistics(HOSTILE, seed=seed)
        for at in range(len(HOSTILE)):
            less = [each for i, each in enumerate(HOSTILE) if i != at]
            for name, change in changes(whole, statistics(less, seed=seed)).items():
                most[name] = max(most[name], change)
    assert most.pop("squares") > 0.5
    assert min(most.values()) > 0.97, most


@pytest.mark.parametrize("seed", range(4))
def test_a_person_changes_each_statistic_by_at_most_its_sensitivity(seed):
    """Rows 0 to 3 are one person, whose weights add up to at most 1; the others have any."""
    records = [HOSTILE[seed]] * 2 + [HOSTILE[seed + 1], HOSTILE[2], *crowd(8)]
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.0, 1.0, len(records))
    weights[:4] = [[0.25] * 4, [1.0, 0, 0, 0], [0.4, 0.3, 0.2, 0.1], [0.5, 0.5, 0, 0]][seed]
    weights = on_grid(weights, 4)
    absent = weights.copy()
    absent[:4] = 0.0
    full, less = (statistics(records, each, seed) for each in (weights, absent))
    assert set(full) == {"levels", "numbers", "slopes"}
    assert max(changes(full, less).values()) <= 1.0 + 1e-9
    assert changes(full, less)["levels"] > 0.5


def test_a_person_of_equal_rows_attains_the_sensitivity():
    records = [HOSTILE[0]] * 4 + crowd(8)
    weights = on_grid(np.full(len(records), 0.25), 4)
    absent = np.where(np.arange(len(records)) < 4, 0.0, weights)
    full, less = (statistics(records, each, 3) for each in (weights, absent))
    assert min(changes(full, less).values()) > 0.97


@pytest.mark.parametrize("seed", range(3))
def test_the_number_of_rows_need_not_be_public(seed):
    """Statistics do not depend on the released number, and change by no more with a record less."""
    records = crowd(6)
    first, second = (statistics(records, seed=seed, hidden=n) for n in (3, 5_000))
    assert max(changes(first, second).values()) == 0.0
    for at in range(len(HOSTILE)):
        less = [each for i, each in enumerate(records) if i != at]
        found = changes(first, statistics(less, seed=seed, hidden=3))
        assert max(found.values()) <= 1.0 + 1e-9
    assert found["levels"] == pytest.approx(1.0, abs=1e-7)


def test_counts_are_those_of_the_table():
    """Each record is in one level of each category, whatever it holds."""
    records = crowd(40)
    rows, categories = rows_of(records)
    counts = released(LEVEL_COUNTS, rows, categories=categories)
    kinds = BOUNDS.features[1], BOUNDS.features[3], BOUNDS.features[6]
    at = 0
    for feature in kinds:
        column = [record[NAMES.index(feature.name)] for record in records]
        levels = [each if each in feature.levels else "other" for each in column]
        expected = [levels.count(level) for level in feature.levels]
        np.testing.assert_allclose(counts[at : at + len(expected)], expected, atol=1e-9)
        at += len(expected)
    assert at == len(counts)
    assert counts.sum() == pytest.approx(F * len(records))


def test_the_encoder_gives_one_level_of_each_category():
    """What LEVEL_COUNTS rests on: 0 or 1 in all columns of levels, at most one 1; terms are none.

    Mapped, a 1 is the unit, or less by a hair where all features are at their ends.
    """
    X, _, scaling = table(crowd(200))
    rows, categories = rows_of(crowd(200))
    assert categories.unit == 1.0 / scaling.row_map.divisor
    mapped = np.concatenate([A for A, _ in rows.blocks()])
    for columns, feature in zip(categories.columns, ("city", "sex", "kind"), strict=True):
        own = X[:, list(columns)]
        assert set(np.unique(own)) <= {0.0, 1.0}
        assert own.sum(axis=1).max() <= 1.0
        names = [BOUNDS.columns()[j] for j in columns]
        assert all(name.startswith(f"{feature}=") and "*" not in name for name in names)
        levels = mapped[:, list(columns)] / categories.unit
        assert levels.max() <= 1.0
        np.testing.assert_allclose(levels, own, rtol=0.0, atol=1e-13)
    np.testing.assert_array_equal(mapped[:, -1], rows.constant)


def test_a_row_that_is_shortened_still_changes_counts_by_less():
    """Its level counts s, and the rest, 1 - s, is in the level without a column."""
    for s in np.linspace(0.0, 1.0, 11):
        rows, categories = rows_of(HOSTILE[:1])
        A = np.array(next(iter(rows.blocks()))[0])
        A[:, :-1] *= s
        one = ArrayRows(A, RowMap(rows.bound * (1.0 + 1e-9)))
        one.constant = rows.constant
        change = released(LEVEL_COUNTS, one, categories=categories)
        assert np.linalg.norm(change) <= sensitivity.level_sensitivity(F)


def test_counts_of_many_rows_are_whole():
    """Sums of the unit are rounded, and counts must not show how: 300,000 rows, one less."""
    n = 300_000
    rng = np.random.default_rng(0)
    X = np.zeros((n, table(HOSTILE)[0].shape[1]))
    _, _, scaling = table(HOSTILE)
    categories = Categories(BOUNDS.categories(), 1.0 / scaling.row_map.divisor)
    for columns in categories.columns:
        level = rng.integers(0, 1 + len(columns), n)
        X[:, list(columns)] = level[:, None] == np.arange(1, 1 + len(columns))
    rows = ArrayRows(X, scaling.row_map)
    full = released(LEVEL_COUNTS, rows, categories=categories)
    less = released(LEVEL_COUNTS, ArrayRows(X[1:], scaling.row_map), categories=categories)
    limit = LEVEL_COUNTS.sensitivity(Public.of(rows), categories=categories)
    assert sensitivity.level_sensitivity(F) < np.linalg.norm(full - less) <= limit


@pytest.mark.parametrize("wrong", [np.full(3, 1.01), np.full(3, -0.1), np.full(3, math.nan)])
def test_weights_of_coordinates_above_one_are_refused(wrong):
    with pytest.raises(ValueError, match="between 0 and 1"):
        checks.weights("weights", wrong, None)


#: Rows of a matrix with dummies in columns 1 to 3, and 4 to 5, that nobody wishes for.
MATRIX = np.array(
    [
        [5.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        [5.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        [-3.0, 1e300, -1e300, 1e300, -1e308, 1e308],
        [1e300, 0.4, 0.4, 0.4, 0.5, 0.5],
        [0.0, -1.0, -1.0, -1.0, -1.0, -1.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [1e308, 3.0, 2.0, 0.6, -7.0, 0.3],
    ]
)


@pytest.mark.parametrize("norm", [None, 0.1, 1.0, 1e6])
def test_a_hostile_row_of_a_matrix_counts_once_per_category(norm):
    """Whatever dummies hold, and whether or not rows are shortened: at most sqrt(2)."""
    dummies = (1, 2, 3), (4, 5)
    bounds = np.array([-3.0, *[0.0] * 5]), np.array([5.0, *[1.0] * 5])
    scaling = public_scaling(
        MATRIX,
        np.zeros(len(MATRIX)),
        bounds_X=bounds,
        bounds_y=(0.0, 1.0),
        data_norm=norm,
        fit_intercept=True,
        dummies=dummies,
    )
    categories = Categories(dummies, 1.0 / scaling.row_map.divisor)
    counts = []
    for row in MATRIX:
        rows = ArrayRows(row[None], scaling.row_map, np.zeros(1), scaling.target_map)
        counts.append(released(LEVEL_COUNTS, rows, categories=categories))
        assert np.linalg.norm(next(rows.blocks())[0]) <= rows.bound
    lengths = np.linalg.norm(counts, axis=1)
    assert lengths.max() <= sensitivity.level_sensitivity(2)
    if norm is None or norm > 1.0:  # rows keep their lengths, and the bound is attained
        assert scaling.row_map.row_norm == pytest.approx(math.sqrt(3.0))
        np.testing.assert_allclose(lengths, math.sqrt(2.0), rtol=1e-12)
        np.testing.assert_allclose(counts[1], [0, 1, 0, 0, 0, 1, 0], atol=1e-12)
        np.testing.assert_allclose(counts[4], [1, 0, 0, 0, 1, 0, 0], atol=1e-12)
    # All of them together count what each of them does.
    rows = ArrayRows(MATRIX, scaling.row_map, np.zeros(len(MATRIX)), scaling.target_map)
    both = released(LEVEL_COUNTS, rows, categories=categories)
    np.testing.assert_allclose(both, np.sum(counts, axis=0), atol=1e-9)
