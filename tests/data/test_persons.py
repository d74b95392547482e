"""Which rows of a person count, and what is refused."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from fastmix.data.persons import InvalidGroupError, hash_ids, person_weights

KEY = bytes(range(32))


def weights(ids, k, key=KEY):
    return person_weights([hash_ids(ids, key)], k, key)


def test_weights_of_a_person_add_up_to_one():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 50, 1000)
    for k in (1, 3, 7, 1000):
        found = weights(ids, k)
        assert found.count == len(np.unique(ids))
        for person in np.unique(ids):
            own = found.weights[ids == person]
            m = min(len(own), k)
            assert (own > 0).sum() == m
            assert np.unique(own[own > 0]) == pytest.approx(1.0 / m)
            assert 1.0 - 1e-9 < own.sum() <= 1.0


def test_nobody_changes_the_rows_of_another():
    """Taking one person away leaves the choice for all others as it was."""
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 30, 600)
    whole = weights(ids, 4).weights
    for person in range(30):
        others = ids != person
        np.testing.assert_array_equal(weights(ids[others], 4).weights, whole[others])


def test_the_choice_is_random_and_fair():
    ids = np.zeros(6, dtype=int)
    counts = np.zeros(6)
    for seed in range(3000):
        key = seed.to_bytes(32, "little")
        counts += weights(ids, 2, key).weights > 0
    assert np.abs(counts / 3000 - 1 / 3).max() < 0.035


def test_blocks_are_one_table():
    rng = np.random.default_rng(2)
    ids = rng.integers(0, 40, 500)
    parts = [hash_ids(part, KEY) for part in np.split(ids, [7, 130, 131, 400])]
    np.testing.assert_array_equal(person_weights(parts, 3, KEY).weights, weights(ids, 3).weights)


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 2, 1, 3],
        np.array([3, 1, 2, 1, 3], dtype=np.uint8),
        np.array([3.0, 1.0, 2.0, 1.0, 3.0]),
        [Decimal(3), 1, 2.0, np.int16(1), 3],
        pd.Series([3, 1, 2, 1, 3]),
        pd.Series([3, 1, 2, 1, 3], dtype="Int64"),
        ["c", "a", "b", "a", "c"],
        pd.Series(["c", "a", "b", "a", "c"]),
        pd.Series(["c", "a", "b", "a", "c"], dtype="category"),
        pd.Series(["c", "a", "b", "a", "c"], dtype="string"),
    ],
)
def test_ids_of_many_kinds(ids):
    found = weights(ids, 1)
    assert found.count == 3
    assert (found.weights[[0, 4]] > 0).sum() == (found.weights[[1, 3]] > 0).sum() == 1
    assert found.weights[2] > 0


SECRET = "Rumpelstilzchen"

BAD = [
    [1.0, np.nan],
    [None, "a"],
    ["a", 1],
    [SECRET, ""],
    [SECRET, "  "],
    [1.5, 2.0],
    [True, False],
    [np.inf, 1.0],
    [1e300, 1.0],
    [[1], [2]],
    5,
    np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    np.array([1, 2], dtype="timedelta64[s]"),
    [1 + 2j, 3],
    [b"a", b"b"],
    [SECRET, float("nan")],
    pd.Series([1, None], dtype="Int64"),
    pd.Series(["a", None], dtype="string"),
    np.ma.masked_array([1, 2], mask=[False, True]),
    [object(), object()],
    [2**70, 1],
    [Decimal("nan"), 1],
    [[1, 2], [3]],
    [2.0**53, 1.0],  # where a type of floats rounds, two ids may have become one
    [np.float32(2**24), 1],
    np.array([2**24, 1], dtype=np.float32),
    np.array([2048, 1], dtype=np.float16),
]


@pytest.mark.parametrize("ids", BAD, ids=range(len(BAD)))
def test_bad_ids_are_refused_in_one_sentence(ids):
    with pytest.raises(InvalidGroupError) as caught:
        weights(ids, 2)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_kinds_must_be_the_same_in_all_blocks():
    parts = [hash_ids([1, 2], KEY), hash_ids(["1", "2"], KEY)]
    with pytest.raises(InvalidGroupError):
        person_weights(parts, 2, KEY)
    for empty in ([], np.array([], dtype=object), np.array([], dtype="U1"), np.array([], int)):
        parts = [hash_ids(empty, KEY), hash_ids(["1", "2"], KEY)]
        assert person_weights(parts, 2, KEY).count == 2


def test_malformed_columns_are_refused_or_right():
    """Ten thousand random columns: an error, or weights as the ids say."""
    rng = np.random.default_rng(3)
    pool = [
        1,
        2,
        2,
        3.0,
        "a",
        "b",
        "",
        None,
        np.nan,
        1.5,
        True,
        Decimal(2),
        b"x",
        np.int8(1),
        2**70,
    ]
    right = 0
    for _ in range(10_000):
        some = rng.choice(len(pool), rng.integers(1, 4))
        ids = [pool[i] for i in rng.choice(some, rng.integers(1, 8))]
        try:
            found = weights(ids, 2)
        except InvalidGroupError:
            wrong = any(
                each is None
                or isinstance(each, (bool, bytes))
                or each in ("", 1.5, 2**70)
                or each != each
                for each in ids
            )
            mixed = len({isinstance(each, str) for each in ids}) > 1
            assert wrong or mixed
            continue
        right += 1
        assert found.count == len(set(ids))
        assert found.weights.sum() == pytest.approx(found.count)
    assert right > 1000


@pytest.mark.parametrize("ids", [np.arange(1_000_000), np.zeros(1_000_000, dtype=int)])
def test_a_million_ids_and_one(ids):
    found = weights(ids, 5)
    assert found.count == len(np.unique(ids))
    assert (found.weights > 0).sum() == (5 if found.count == 1 else 1_000_000)
