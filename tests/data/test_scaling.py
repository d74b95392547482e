"""Public scaling: whatever the data, rows have norm at most 1 and targets lie in [-1, 1]."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastmix.data import ArrayRows
from fastmix.data.scaling import public_scaling
from fastmix.errors import PrivacyLeakWarning

RNG = np.random.default_rng(20)


def scale(X, y, *, bounds_X=None, bounds_y=(-1, 1), data_norm=None, fit_intercept=True, warn=True):
    return public_scaling(
        X,
        y,
        bounds_X=bounds_X,
        bounds_y=bounds_y,
        data_norm=data_norm,
        fit_intercept=fit_intercept,
        warn=warn,
    )


def mapped(scaling, X, y):
    """Rows and targets exactly as `fit` hands them to a mechanism."""
    rows = ArrayRows(X, scaling.row_map, y, scaling.target_map)
    blocks = list(rows.blocks())
    A = np.concatenate([block for block, _ in blocks])
    assert A.shape == (rows.n, rows.d)
    return A, np.concatenate([target for _, target in blocks]), rows.bound


def norms(A):
    """Row norms by exact summation."""
    return [math.sqrt(math.fsum(float(a) ** 2 for a in row)) for row in A]


def outlier(value, n=37, d=4):
    X = RNG.uniform(-1.0, 1.0, (n, d))
    X[3] = value
    X[4] = -value
    X[5, 0] = value
    return X


LOPSIDED = (np.array([-1.0, 0.0, 5.0, -7.0]), np.array([3.0, 1e-3, 6.0, -2.0]))

#: name: (X, arguments)
HARD = {
    "asymmetric bounds": (RNG.uniform(-9, 9, (50, 4)), {"bounds_X": LOPSIDED}),
    "scalar bounds": (RNG.uniform(-9, 9, (50, 4)), {"bounds_X": (-3, 0.5)}),
    "mixed bounds": (RNG.uniform(-9, 9, (50, 4)), {"bounds_X": (-8, LOPSIDED[1])}),
    "one-entry bounds": (RNG.uniform(-9, 9, (50, 4)), {"bounds_X": ([-3.0], [0.5])}),
    "constant column": (
        np.column_stack([RNG.uniform(-1, 1, 40), np.full(40, 2.5)]),
        {"bounds_X": ([-1, 2.5], [1, 2.5])},
    ),
    "constant column of zeros": (np.zeros((9, 2)), {"bounds_X": ([0, 0], [0, 1])}),
    "constant column that lies": (RNG.uniform(-9, 9, (9, 2)), {"bounds_X": ([1, 0], [1, 1])}),
    "outlier 1e6": (outlier(1e6), {"bounds_X": (-1, 1)}),
    "outlier 1e6, norm": (outlier(1e6), {"data_norm": 1.0}),
    "outlier 1e300": (outlier(1e300), {"bounds_X": (-1, 1)}),
    "outlier 1e300, norm": (outlier(1e300), {"data_norm": 1.0}),
    "outlier of the largest float": (outlier(np.finfo(float).max), {"data_norm": 1.0}),
    "norm and bounds": (outlier(1e6), {"bounds_X": LOPSIDED, "data_norm": 0.3}),
    "norm above the box": (outlier(1e6), {"bounds_X": LOPSIDED, "data_norm": 50.0}),
    "corners of the box": (
        np.array(np.meshgrid(*[[-3.0, 7.0]] * 5)).reshape(5, -1).T.copy(),
        {"bounds_X": (-3, 7)},
    ),
    "duplicate columns": (np.repeat(RNG.uniform(-5, 5, (50, 1)), 3, axis=1), {"bounds_X": (-1, 1)}),
    "d = 1": (RNG.uniform(-5, 5, (50, 1)), {"bounds_X": (-1, 4)}),
    "n = 1": (np.array([[7.0, -7.0, 1.0]]), {"bounds_X": (-1, 4)}),
    "n < d": (RNG.uniform(-5, 5, (3, 20)), {"bounds_X": (-1, 4)}),
    "n is no power of two": (RNG.uniform(-5, 5, (129, 3)), {"data_norm": 2.0}),
    "float32": (RNG.uniform(-5, 5, (50, 3)).astype(np.float32), {"bounds_X": (-1.1, 0.3)}),
    "float32, norm": (RNG.uniform(-5, 5, (50, 3)).astype(np.float32), {"data_norm": 0.7}),
    "bounds one unit apart": (
        np.array([[1e16], [1e16 + 2.0], [0.0]]),
        {"bounds_X": (1e16, 1e16 + 2.0)},
    ),
    "widest bounds": (outlier(1e308), {"bounds_X": (-1e100, 1e100)}),
    "narrowest bounds": (outlier(1.0), {"bounds_X": (0.0, 5e-324)}),
}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", HARD)
def test_rows_and_targets_obey_their_bounds(name, fit_intercept):
    X, arguments = HARD[name]
    y = np.resize([0.3, -1e6, 1e6, 1e300, -1e300, 2.0, 5.0], len(X))
    for bounds_y in [(-1, 1), (2.0, 5.0), (-3.0, -1.0), (4.0, 4.0), (0.0, 0.0)]:
        scaling = scale(X, y, **arguments, bounds_y=bounds_y, fit_intercept=fit_intercept)
        A, target, bound = mapped(scaling, X, y)
        assert bound == pytest.approx(1.0, abs=1e-15)
        assert max(norms(A)) <= 1.0
        assert np.abs(target).max() <= 1.0
        assert np.isfinite(A).all()
        assert np.isfinite(target).all()


@pytest.mark.parametrize("value", [1e6, 1e150])
def test_an_outlier_keeps_its_direction_and_gets_the_full_norm(value):
    X = np.array([[value, 0.0, 0.0], [0.0, -value, value]])
    A, _, _ = mapped(scale(X, X[:, 0], data_norm=1.0, fit_intercept=False), X, X[:, 0])
    np.testing.assert_allclose(A[0], [1.0, 0.0, 0.0], rtol=1e-14)
    np.testing.assert_allclose(A[1], [0.0, -math.sqrt(0.5), math.sqrt(0.5)], rtol=1e-14)


def test_rows_of_random_problems_obey_the_bound():
    rng = np.random.default_rng(21)
    worst = 0.0
    for _ in range(400):
        d = int(rng.integers(1, 40))
        lower = rng.normal(size=d) * 10.0 ** rng.uniform(-8, 8)
        upper = lower + np.abs(rng.normal(size=d)) * 10.0 ** rng.uniform(-8, 8)
        X = rng.normal(size=(12, d)) * 10.0 ** rng.uniform(-10, 10)
        X[0], X[1] = lower, upper
        data_norm = None if rng.random() < 0.4 else float(10.0 ** rng.uniform(-3, 3))
        bounds = (lower, upper) if data_norm is None or rng.random() < 0.5 else None
        scaling = scale(
            X, X[:, 0], bounds_X=bounds, data_norm=data_norm, fit_intercept=rng.random() < 0.5
        )
        A, _, bound = mapped(scaling, X, X[:, 0])
        assert bound == pytest.approx(1.0, abs=1e-15)
        worst = max(worst, *norms(A))
    assert 0.999 < worst <= 1.0


def test_the_paper_setting_leaves_the_data_alone():
    rng = np.random.default_rng(22)
    X = rng.normal(size=(200, 5))
    X *= rng.uniform(0.0, 1.0 - 1e-14, (200, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.uniform(-1.0, 1.0, 200)
    scaling = scale(X, y, data_norm=1, bounds_y=(-1, 1), fit_intercept=False)
    A, target, bound = mapped(scaling, X, y)
    np.testing.assert_array_equal(A, X)
    np.testing.assert_array_equal(target, y)
    assert bound == 1.0
    coef, intercept = scaling.coefficients(np.arange(5.0), 5)
    np.testing.assert_array_equal(coef, np.arange(5.0))
    assert intercept == 0.0


def test_rows_of_norm_one_move_by_a_few_ulp():
    rng = np.random.default_rng(23)
    X = rng.normal(size=(200, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    A, _, _ = mapped(scale(X, X[:, 0], data_norm=1, fit_intercept=False), X, X[:, 0])
    np.testing.assert_allclose(A, X, rtol=1e-14, atol=0)
    assert max(norms(A)) <= 1.0


CASES = {
    "bounds": {"bounds_X": ([-2.0, 1.0, 0.0], [5.0, 1.5, 1e4]), "bounds_y": (-3.0, 11.0)},
    "scalars": {"bounds_X": (-2.0, 5.0), "bounds_y": (0.0, 1e3)},
    "norm": {"data_norm": 30.0, "bounds_y": (-3.0, 11.0)},
    "norm and bounds": {
        "bounds_X": ([-2.0, 1.0, 0.0], [5.0, 1.5, 1e4]),
        "bounds_y": (-3.0, 11.0),
        "data_norm": 2.5,
    },
}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_coefficients_map_back_exactly(case, fit_intercept):
    rng = np.random.default_rng(24)
    lower, upper = CASES[case].get("bounds_X", (-2.0, 5.0))
    # Inside of the box and of the norm, so that nothing is clipped.
    middle, half = np.add(lower, upper) / 2.0, np.subtract(upper, lower) / 2.0
    X = middle + half * rng.uniform(-0.3, 0.3, (40, 3))
    low, high = CASES[case]["bounds_y"]
    y = rng.uniform(low, high, 40)
    scaling = scale(X, y, **CASES[case], fit_intercept=fit_intercept)
    A, target, _ = mapped(scaling, X, y)
    theta = rng.normal(size=A.shape[1])
    coef, intercept = scaling.coefficients(theta, 3)
    if not fit_intercept:
        assert intercept == 0.0
    # The prediction of the scaled model, taken back to the user's units by hand.
    y_mid = (low + high) / 2.0 if fit_intercept else 0.0
    y_half = (high - low) / 2.0 if fit_intercept else max(abs(low), abs(high))
    np.testing.assert_allclose(X @ coef + intercept, y_mid + y_half * (A @ theta), rtol=1e-11)
    np.testing.assert_allclose(y_mid + y_half * target, y, rtol=1e-11, atol=1e-12)


def test_features_are_centred_and_scaled_by_hand():
    X = np.array([[1.0, 10.0], [3.0, 30.0], [2.0, -99.0]])
    scaling = scale(X, X[:, 0], bounds_X=([1.0, 10.0], [3.0, 30.0]))
    A, _, _ = mapped(scaling, X, X[:, 0])
    # Half-widths 1 and 10, midpoints 2 and 20, then rows (., ., 1) divided by sqrt(3).
    expected = np.array([[-1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [0.0, -1.0, 1.0]]) / math.sqrt(3.0)
    np.testing.assert_allclose(A, expected, rtol=1e-13, atol=1e-15)


def test_nothing_is_centred_without_an_intercept():
    X = np.array([[1.0, 10.0], [3.0, 30.0], [0.0, 0.0]])
    y = np.array([4.0, 2.0, 0.0])
    scaling = scale(X, y, bounds_X=([0.0, 0.0], [3.0, 30.0]), bounds_y=(0, 8), fit_intercept=False)
    A, target, _ = mapped(scaling, X, y)
    np.testing.assert_allclose(A, np.array([[1, 1], [3, 3], [0, 0]]) / 3.0 / math.sqrt(2.0))
    np.testing.assert_allclose(target, [0.5, 0.25, 0.0])


def test_the_intercept_column_is_constant_and_inside_the_bound():
    X = outlier(1e6)
    for arguments in ({"bounds_X": (-1, 1)}, {"data_norm": 3.0}):
        A, _, _ = mapped(scale(X, X[:, 0], **arguments), X, X[:, 0])
        assert np.ptp(A[:, -1]) == 0.0
        # As large as a typical feature: row_norm / sqrt(d), over hypot(row_norm, itself).
        assert A[0, -1] == pytest.approx(1.0 / math.sqrt(5.0))


def test_a_column_that_bounds_make_constant_vanishes():
    X, arguments = HARD["constant column"]
    scaling = scale(X, X[:, 0], **arguments)
    A, _, _ = mapped(scaling, X, X[:, 0])
    np.testing.assert_array_equal(A[:, 1], 0.0)
    coef, intercept = scaling.coefficients(np.array([1.0, 1e9, 0.5]), 2)
    assert coef[1] == 0.0
    assert np.isfinite(intercept)


def test_data_are_read_only_where_a_bound_is_missing():
    class Unreadable(np.ndarray):
        def min(self, *args, **kwargs):
            raise AssertionError("data were read")

        max = __array_ufunc__ = min

    X, y = np.zeros((4, 2)).view(Unreadable), np.zeros(4).view(Unreadable)
    scale(X, y, bounds_X=(0, 1), bounds_y=(0, 1))
    scale(X, y, data_norm=1.0, bounds_y=(0, 1))
    with pytest.raises(AssertionError, match="data were read"):
        scale(X, y, bounds_y=(0, 1))
    with pytest.raises(AssertionError, match="data were read"):
        scale(X, y, data_norm=1.0, bounds_y=None)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"bounds_X": None, "bounds_y": (0, 1)}, ("bounds_X",)),
        ({"bounds_X": (0, 1), "bounds_y": None}, ("bounds_y",)),
        ({"bounds_X": None, "bounds_y": None}, ("bounds_X", "bounds_y")),
        ({"data_norm": 1.0, "bounds_y": None}, ("bounds_y",)),
    ],
)
def test_missing_bounds_come_from_the_data_with_a_warning(arguments, names):
    X = np.array([[1.0, -5.0], [2.0, 7.0], [0.5, 0.0]])
    y = np.array([3.0, 9.0, 4.0])
    with pytest.warns(PrivacyLeakWarning, match="NOT private") as caught:
        scaling = scale(X, y, **arguments)
    assert len(caught) == 1
    message = str(caught[0].message)
    for name in ("bounds_X", "bounds_y"):
        assert (name in message) == (name in names)
    # The values of the bounds are the data's: they belong in no message.
    assert not any(number in message for number in ("0.5", "-5", "7", "3", "9"))
    assert scaling.from_data == names
    if "bounds_X" in names:
        np.testing.assert_array_equal(scaling.bounds_X, [[0.5, -5.0], [2.0, 7.0]])
    if "bounds_y" in names:
        assert scaling.bounds_y == (3.0, 9.0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bounds_X": 5}, TypeError, r"bounds_X must be a pair \(lower, upper\); got bounds_X=5\."),
        ({"bounds_X": (1,)}, TypeError, r"bounds_X must be a pair .*; got bounds_X=\(1,\)\."),
        ({"bounds_X": (1, 2, 3)}, TypeError, r"bounds_X must be a pair"),
        ({"bounds_X": ([0, 0, 0], 1)}, ValueError, r"bounds_X must be scalars .* of 2 features; "),
        ({"bounds_X": (2, 1)}, ValueError, r"bounds_X must have no lower bound above its upper"),
        ({"bounds_X": ([0, 2], [1, 1])}, ValueError, r"bounds_X must have no lower bound above"),
        ({"bounds_X": (float("nan"), 1)}, ValueError, r"bounds_X must be finite; got bounds_X="),
        ({"bounds_X": (0, float("inf"))}, ValueError, r"bounds_X must be finite; got bounds_X="),
        ({"bounds_y": 3}, TypeError, r"bounds_y must be a pair \(lower, upper\); got bounds_y=3\."),
        ({"bounds_y": (2, 1)}, ValueError, r"bounds_y must have no lower bound above its upper"),
        ({"bounds_y": (0, float("inf"))}, ValueError, r"bounds_y must be finite; got bounds_y=inf"),
        ({"bounds_y": ("a", 1)}, TypeError, r"bounds_y must be a real number; got bounds_y='a'\."),
        ({"bounds_y": (None, 1)}, TypeError, r"bounds_y must be a real number; got bounds_y=None"),
    ],
)
def test_bad_bounds_are_refused_in_the_house_form(arguments, error, message):
    with pytest.raises(error, match=message):
        scale(np.zeros((3, 2)), np.zeros(3), **{"bounds_X": (0, 1), **arguments})


def test_describe_is_json_and_tells_where_bounds_came_from():
    import json

    X = np.array([[1.0, -5.0], [2.0, 7.0]])
    data = scale(X, X[:, 0], bounds_X=(-1, [2, 3]), bounds_y=(0, 5), data_norm=1.2).describe()
    assert json.loads(json.dumps(data)) == data
    assert data["bounds_X"] == [[-1.0, -1.0], [2.0, 3.0]]
    assert data["bounds_y"] == [0.0, 5.0]
    assert data["row_norm"] == 1.2
    assert data["taken_from_data"] == []
