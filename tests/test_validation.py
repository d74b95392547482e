"""Checks of parameters: what passes, what is refused, and the sentence that says so."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from fastmix import BudgetAccountant, PrivateLogisticRegression, PrivateQuantileRegressor
from fastmix._validation import (
    check_choice,
    check_integer,
    check_matrix,
    check_probability,
    check_real,
    type_error,
    value_error,
)
from fastmix.errors import BudgetError, CalibrationError, PrivacyLeakWarning


def message_of(call, error):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


# --- real numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [2, 2.0, np.float64(2), np.float32(2), np.int64(2)])
def test_real_numbers_pass_as_floats(value):
    got = check_real("x", value, above=1.0, at_least=2.0)
    assert type(got) is float
    assert got == 2.0


@pytest.mark.parametrize(
    "value", [True, np.bool_(True), "2", None, 2j, [2.0], np.array(2.0), Decimal(2)]
)
def test_other_kinds_are_no_real_numbers(value):
    message = message_of(lambda: check_real("x", value), TypeError)
    assert message.startswith("x must be a real number; got x=")


@pytest.mark.parametrize("value", [Fraction(2), np.longdouble(2)])
def test_numbers_that_no_certificate_states_are_refused_before_the_charge(value):
    message = message_of(lambda: check_real("x", value), TypeError)
    assert message.startswith("x must be a float or an integer; got x=")
    budget = BudgetAccountant(math.inf, 1e-3)
    model = PrivateQuantileRegressor(bounds_X=(-1, 1), bounds_y=(-1, 1), accountant=budget)
    for given in ({"epsilon": value}, {"quantile": value / 4}, {"quantile": [value / 4]}):
        with pytest.raises(TypeError, match="must be a float or an integer"):
            clone(model).set_params(**given).fit(np.zeros((50, 2)), np.zeros(50))
    with pytest.raises(ValueError, match="classes must"):
        PrivateLogisticRegression(
            bounds_X=(-1, 1), classes=[0 * value, value], accountant=budget
        ).fit(np.zeros((50, 2)), np.zeros(50))
    assert not len(budget)


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (math.nan, {}, "x must be finite; got x=nan."),
        (math.inf, {}, "x must be finite; got x=inf."),
        (-math.inf, {}, "x must be finite; got x=-inf."),
        (math.nan, {"allow_inf": True}, "x must not be NaN; got x=nan."),
        (1.0, {"above": 1.0}, "x must be greater than 1; got x=1.0."),
        (0.5, {"above": 1.0}, "x must be greater than 1; got x=0.5."),
        (0.5, {"at_least": 1.0}, "x must be at least 1; got x=0.5."),
        (-math.inf, {"above": 0.0, "allow_inf": True}, "x must be greater than 0; got x=-inf."),
        (math.nan, {"above": 0.0, "allow_inf": True}, "x must not be NaN; got x=nan."),
    ],
)
def test_real_ranges(value, limits, message):
    assert message_of(lambda: check_real("x", value, **limits), ValueError) == message


def test_real_borders():
    assert check_real("x", 1.0, at_least=1.0) == 1.0
    assert check_real("x", math.inf, above=0.0, allow_inf=True) == math.inf
    assert check_real("x", math.nextafter(1.0, 2.0), above=1.0) > 1.0


# --- probabilities ------------------------------------------------------------------------------


def test_probabilities():
    assert check_probability("p", 5e-324) == 5e-324
    assert check_probability("p", 0.5) == 0.5
    for value in (0.0, 1.0, -0.1, 2):
        expected = f"p must lie strictly between 0 and 1; got p={value!r}."
        assert message_of(lambda value=value: check_probability("p", value), ValueError) == expected
    assert message_of(lambda: check_probability("p", math.nan), ValueError) == (
        "p must be finite; got p=nan."
    )
    message_of(lambda: check_probability("p", "0.5"), TypeError)


# --- integers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_integers_pass_as_ints(value):
    got = check_integer("k", value, at_least=3, at_most=3)
    assert type(got) is int
    assert got == 3


@pytest.mark.parametrize("value", [3.0, np.float64(3), True, np.bool_(False), "3", None, 3j])
def test_other_kinds_are_no_integers(value):
    message = message_of(lambda: check_integer("k", value), TypeError)
    assert message == f"k must be an integer; got k={value!r}."


def test_integer_ranges():
    assert message_of(lambda: check_integer("k", 0, at_least=1), ValueError) == (
        "k must be at least 1; got k=0."
    )
    assert message_of(lambda: check_integer("k", 9, at_most=8), ValueError) == (
        "k must be at most 8; got k=9."
    )
    assert check_integer("k", -5) == -5


# --- choices ------------------------------------------------------------------------------------


def test_choices():
    assert check_choice("mode", "a", ("a", "b")) == "a"
    for value in ("c", "A", "", None, 1, ["a"], ("a", "b")):
        message = message_of(
            lambda value=value: check_choice("mode", value, ("a", "b")), ValueError
        )
        assert message == f"mode must be one of 'a', 'b'; got mode={value!r}."


# --- matrices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_float_matrices_pass_untouched(dtype, order):
    X = np.asarray(np.arange(6).reshape(2, 3), dtype=dtype, order=order)
    assert check_matrix("X", X) is X


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool, np.float16, np.longdouble, ">f8"])
def test_other_numbers_become_float64(dtype):
    X = np.ones((2, 3), dtype=dtype)
    got = check_matrix("X", X)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, 1.0)


def test_lists_pass():
    assert check_matrix("X", [[1, 2], [3, 4]]).shape == (2, 2)


@pytest.mark.parametrize("X", [np.ones((2, 2), complex), np.array([["1"]]), np.array([[None]])])
def test_other_contents_are_refused_by_kind(X):
    message = message_of(lambda: check_matrix("X", X), TypeError)
    assert message == (
        f"X must hold real numbers; got X=array of shape {X.shape} and dtype {X.dtype}."
    )


@pytest.mark.parametrize(
    ("shape", "condition"),
    [
        ((3,), "be two-dimensional"),
        ((2, 2, 2), "be two-dimensional"),
        ((), "be two-dimensional"),
        ((0, 3), "have at least one row and one column"),
        ((3, 0), "have at least one row and one column"),
    ],
)
def test_shapes(shape, condition):
    message = message_of(lambda: check_matrix("X", np.ones(shape)), ValueError)
    assert message == f"X must {condition}; got X=array of shape {shape} and dtype float64."


def test_messages_never_show_the_contents_of_an_array():
    for build in (type_error, value_error):
        message = str(build("X", "be small", np.full(3, 123456.75)))
        assert message == "X must be small; got X=array of shape (3,) and dtype float64."


# --- errors -------------------------------------------------------------------------------------


def test_kinds_of_errors():
    assert issubclass(CalibrationError, ValueError)
    assert issubclass(BudgetError, ValueError)
    assert issubclass(PrivacyLeakWarning, RuntimeWarning)
    assert not issubclass(CalibrationError, BudgetError)
    assert isinstance(type_error("x", "y", 1), TypeError)
    assert isinstance(value_error("x", "y", 1), ValueError)
