"""Public maps: their bounds hold whatever comes in."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fastmix.data import RowMap, TargetMap
from fastmix.errors import InvalidValueError

finite = st.floats(allow_nan=False, allow_infinity=False)
# Away from the ends of the range of floats, where no bound on a sum of squares makes sense.
moderate = st.floats(1e-60, 1e60)


def exact_square(row):
    """Return the squared norm without rounding."""
    return sum((Fraction(float(value)) ** 2 for value in row), Fraction(0))


def by_hand(
    X, row_norm, lower=None, upper=None, center=None, scale=None, constant=0.0, divisor=1.0
):
    """The map, one record at a time, in plain Python."""
    out = []
    for record in np.asarray(X, dtype=float).tolist():
        row = []
        for j, value in enumerate(record):
            if lower is not None:
                value = max(value, lower[j])
            if upper is not None:
                value = min(value, upper[j])
            value -= 0.0 if center is None else center[j]
            row.append(value / (1.0 if scale is None else scale[j]))
        length = math.hypot(*row)
        row = [value * min(1.0, row_norm / length if length else 1.0) for value in row]
        out.append([value / divisor for value in row + [constant] * (constant > 0)])
    return np.array(out)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(X=arrays(np.float64, (3, 4), elements=finite), row_norm=moderate, divisor=moderate)
def test_norm_is_bounded_without_rounding(X, row_norm, divisor):
    """Squares are added up exactly, so not even the last bit may exceed the bound."""
    row_map = RowMap(row_norm, divisor=divisor)
    limit = Fraction(row_map.bound) ** 2
    for row in np.asarray(row_map(X)):
        assert exact_square(row) <= limit


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    X=arrays(np.float64, (3, 3), elements=finite),
    row_norm=st.floats(1e-30, 1e30),
    center=arrays(np.float64, 3, elements=st.floats(-1e30, 1e30)),
    scale=arrays(np.float64, 3, elements=st.floats(1e-3, 1e30)),
    constant=st.sampled_from([0.0, 1e-30, 1.0, 1e30]),
    divisor=st.floats(1e-30, 1e30),
    bounded=st.booleans(),
)
def test_norm_is_bounded_for_every_setting(X, row_norm, center, scale, constant, divisor, bounded):
    box = {"lower": center - scale, "upper": center + scale, "center": center, "scale": scale}
    row_map = RowMap(row_norm, constant=constant, divisor=divisor, **(box if bounded else {}))
    A = np.asarray(row_map(X))
    assert A.shape == (3, row_map.width(3)) == (3, 3 + (constant > 0))
    assert np.isfinite(A).all()
    # The bound is itself rounded: half a unit in its last place.
    limit = (Fraction(row_map.bound) * (1 + Fraction(1, 2**52))) ** 2
    for row in A:
        assert exact_square(row) <= limit
    if constant > 0:
        assert (A[:, -1] == constant / divisor).all()


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_values(data):
    d = data.draw(st.integers(1, 5))

    def vector(low, high):
        return data.draw(arrays(np.float64, d, elements=st.floats(low, high)))

    X = data.draw(arrays(np.float64, (4, d), elements=st.floats(-100.0, 100.0)))
    lower = vector(-20.0, 0.0)
    arguments = {
        "row_norm": data.draw(st.floats(0.1, 10.0)),
        "lower": lower,
        "upper": lower + vector(0.1, 30.0),
        "center": vector(-5.0, 5.0),
        "scale": vector(0.5, 5.0),
        "constant": data.draw(st.sampled_from([0.0, 0.7])),
        "divisor": data.draw(st.floats(0.1, 10.0)),
    }
    for name in data.draw(st.sampled_from(["", "center", "scale", "center scale", "all"])).split():
        for removed in ("lower", "upper", "center", "scale") if name == "all" else (name,):
            del arguments[removed]
    assert np.asarray(RowMap(**arguments)(X)) == pytest.approx(
        by_hand(X, **arguments), rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize("norm", [0.0, 5e-324, 1e-200, 0.3, 0.999, 1.0 - 2.0**-40])
def test_short_rows_are_left_alone(norm):
    row = np.array([[norm, 0.0]])
    assert (np.asarray(RowMap(1.0)(row)) == row).all()


@pytest.mark.parametrize("norm", [1.0, 1.0 + 2.0**-52, 1.5, 1e6, 1e150])
def test_long_rows_keep_their_direction(norm):
    out = np.asarray(RowMap(1.0)(norm * np.array([[0.6, -0.8]])))
    assert out == pytest.approx(np.array([[0.6, -0.8]]), rel=1e-14)
    assert exact_square(out[0]) <= 1


@pytest.mark.parametrize("value", [1e155, 1e200, 1e300, 1.7976931348623157e308])
def test_rows_whose_squares_overflow_stay_bounded(value):
    out = np.asarray(RowMap(1.0)(np.array([[value, -value, 0.0], [0.0, 0.1, 0.0]])))
    half = math.sqrt(0.5)
    # A row that double precision cannot shrink becomes zero.
    expected = [half, -half, 0.0] if value < 1e306 else [0.0, 0.0, 0.0]
    assert out[0] == pytest.approx(expected)
    assert exact_square(out[0]) <= 1
    assert (out[1] == [0.0, 0.1, 0.0]).all()


def test_infinite_scale_removes_a_feature():
    box = {"lower": np.zeros(2), "upper": np.ones(2)}
    out = np.asarray(RowMap(1.0, scale=np.array([np.inf, 1.0]), **box)(np.array([[1e300, 0.5]])))
    assert (out == [[0.0, 0.5]]).all()


def test_records_do_not_see_each_other():
    """A map of single records: a block is mapped row by row, so neighbours stay neighbours."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4)) * 10.0 ** rng.integers(-8, 8, (50, 1))
    box = {"lower": np.full(4, -1e3), "upper": np.full(4, 1e3)}
    row_map = RowMap(1.0, center=np.full(4, 0.1), scale=np.full(4, 3.0), constant=0.5, **box)
    together = np.asarray(row_map(X))
    assert (np.vstack([np.asarray(row_map(X[i : i + 1])) for i in range(50)]) == together).all()


def test_dtypes_layouts_and_no_aliasing():
    X = np.random.default_rng(1).standard_normal((6, 4))
    single = X.astype(np.float32)
    for data in (single, np.asfortranarray(single), np.repeat(single, 2, axis=0)[::2]):
        data.setflags(write=False)
        out = np.asarray(RowMap(0.5)(data))
        assert out.dtype == np.float64
        assert out == pytest.approx(np.asarray(RowMap(0.5)(single.astype(np.float64))), rel=1e-15)
        assert not np.shares_memory(out, data)
        assert (np.linalg.norm(out, axis=1) <= 0.5).all()


def test_bound():
    assert RowMap(3.0, constant=4.0, divisor=2.0).bound == 2.5
    assert RowMap(3.0).bound == 3.0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"row_norm": 0.0}, ValueError),
        ({"row_norm": -1.0}, ValueError),
        ({"row_norm": math.nan}, ValueError),
        ({"row_norm": math.inf}, ValueError),
        ({"row_norm": "1"}, TypeError),
        ({"row_norm": 1.0, "constant": -0.1}, ValueError),
        ({"row_norm": 1.0, "constant": math.nan}, ValueError),
        ({"row_norm": 1.0, "divisor": 0.0}, ValueError),
        ({"row_norm": 1.0, "divisor": math.inf}, ValueError),
        ({"row_norm": 1e-170}, ValueError),
        ({"row_norm": 1e160}, ValueError),
        ({"row_norm": 1.0, "scale": np.ones(2)}, ValueError),
        ({"row_norm": 1.0, "lower": np.array([-1e101]), "upper": np.ones(1)}, ValueError),
    ],
)
def test_errors(arguments, error):
    with pytest.raises(error, match=r"row_norm|constant|divisor|lower"):
        RowMap(**arguments)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    y=arrays(np.float64, 5, elements=st.floats(allow_nan=False)),
    lower=st.floats(-1e100, 1e100),
    width=st.floats(1e-3, 1e100),
    center=st.floats(-1e100, 1e100),
    scale=st.floats(1e-3, 1e100),
)
def test_targets_are_bounded(y, lower, width, center, scale):
    out = np.asarray(TargetMap(lower, lower + width, center, scale)(y))
    assert ((out >= -1.0) & (out <= 1.0)).all()
    expected = [
        max(-1.0, min(1.0, (max(lower, min(lower + width, v)) - center) / scale))
        for v in y.tolist()
    ]
    assert out == pytest.approx(np.array(expected), rel=1e-12)


def test_targets_by_default():
    y = np.array([-7.0, -1.0, 0.25, 1.0, 9.0])
    out = np.asarray(TargetMap()(y))
    assert (out == [-1.0, -1.0, 0.25, 1.0, 1.0]).all()
    assert y[0] == -7.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("bounded", [False, True])
def test_non_finite_entries_are_refused_without_being_shown(bad, bounded):
    """Also where clipping to the bounds would have hidden them."""
    X = np.full((2, 3), 123456.75)
    X[1, 2] = bad
    box = {"lower": np.zeros(3), "upper": np.ones(3)} if bounded else {}
    with pytest.raises(ValueError, match="finite") as caught:
        RowMap(1.0, **box)(X)
    assert str(caught.value) == InvalidValueError.MESSAGE


@pytest.mark.parametrize("d", [100, 1000, 10_000])
def test_bound_holds_to_the_last_bit_in_many_dimensions(d):
    """One large entry and many that are too small to count one by one in a sum of squares."""
    x = np.full((1, d), 1e-8)
    x[0, 0] = 1.0
    assert exact_square(np.asarray(RowMap(1.0)(x))[0]) <= 1


@pytest.mark.parametrize("d", [1, 2, 7, 100, 1000])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_box_that_holds_no_long_row_is_not_read_again(d, intercept):
    """Corners of the box, where rows are longest, obey the bound without being shortened."""
    from fastmix.data.scaling import public_scaling

    rng = np.random.default_rng(d)
    lower, upper = rng.normal(-3.0, 1.0, d) - 5.0, rng.normal(3.0, 10.0, d) + 50.0
    corners = np.where(rng.random((200, d)) < 0.5, lower, upper)
    corners[0], corners[1] = lower, upper
    scaling = public_scaling(
        corners,
        np.zeros(200),
        bounds_X=(lower, upper),
        bounds_y=(-1, 1),
        data_norm=None,
        fit_intercept=intercept,
    )
    assert not scaling.row_map.shortens
    mapped = scaling.row_map(corners, checked=True)
    assert mapped.factors is None
    rows = np.asarray(mapped)
    assert (np.linalg.norm(rows, axis=1) <= scaling.row_map.bound).all()
    np.testing.assert_array_equal(rows, np.asarray(scaling.row_map(corners)))


def test_boxes_with_long_rows_are_always_read():
    box = {"lower": np.full(4, -1.0), "upper": np.full(4, 1.0)}
    assert RowMap(1.9, **box).shortens
    assert RowMap(2.0, **box).shortens  # a corner could round to more
    assert not RowMap(2.1, **box).shortens
    assert RowMap(2.1).shortens
    corner = np.ones((3, 4))
    rows = np.asarray(RowMap(1.9, **box)(corner, checked=True))
    assert (np.linalg.norm(rows, axis=1) <= 1.9).all()
    bad = np.full((3, 4), np.nan)
    with pytest.raises(InvalidValueError):
        RowMap(1.9, **box)(bad, checked=True)
    with pytest.raises(InvalidValueError):
        RowMap(2.1, **box)(bad)
