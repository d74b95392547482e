"""The one place where the sentences of parameter errors are built.

Every message reads ``<name> must <condition>; got <name>=<value>.``  Messages show
parameters, shapes and dtypes, never values of the data.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt


def type_error(name: str, condition: str, value: Any) -> TypeError:
    """Build the error for a parameter of the wrong kind."""
    return TypeError(f"{name} must {condition}; got {name}={_show(value)}.")


def value_error(name: str, condition: str, value: Any) -> ValueError:
    """Build the error for a parameter outside its range."""
    return ValueError(f"{name} must {condition}; got {name}={_show(value)}.")


def _show(value: Any) -> str:
    """Describe a value without printing the contents of an array."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape} and dtype {value.dtype}"
    return repr(value)


@contextmanager
def unchained() -> Iterator[None]:
    """Let errors that are raised ``from None`` forget the error that they replace.

    Python keeps that one as ``__context__``, where loggers find it, and it may quote data.
    """
    try:
        yield
    except Exception as error:
        if error.__suppress_context__:
            error.__context__ = None
        raise


def usual_arithmetic() -> np.errstate:
    """Let NumPy treat overflow and underflow as it does by default, whatever the caller has set.

    With ``np.seterr(all="raise")`` an underflow would end a fit after its charge.
    """
    return np.errstate(all="warn", under="ignore")


def check_real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    allow_inf: bool = False,
) -> float:
    """Return ``value`` as a float after checking kind and range."""
    # NumPy's time spans are integers to Python.
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, Real):
        raise type_error(name, "be a real number", value)
    kind: Any = type(value)
    if kind is np.longdouble or not issubclass(kind, (int, float, np.number)):
        # No certificate could state a fraction or a long double, after the charge.
        raise type_error(name, "be a float or an integer", value)
    try:
        number = float(value)
    except OverflowError:
        raise value_error(name, f"be at most {np.finfo(float).max:g}", "a larger number") from None
    if math.isnan(number) or (math.isinf(number) and not allow_inf):
        raise value_error(name, "be finite" if not allow_inf else "not be NaN", value)
    if above is not None and not number > above:
        raise value_error(name, f"be greater than {above:g}", value)
    if at_least is not None and not number >= at_least:
        raise value_error(name, f"be at least {at_least:g}", value)
    if at_most is not None and not number <= at_most:
        raise value_error(name, f"be at most {at_most:g}", value)
    return number


def check_probability(name: str, value: Any) -> float:
    """Return ``value`` as a float strictly between 0 and 1."""
    number = check_real(name, value)
    if not 0.0 < number < 1.0:
        raise value_error(name, "lie strictly between 0 and 1", value)
    return number


def check_integer(
    name: str, value: Any, *, at_least: int | None = None, at_most: int | None = None
) -> int:
    """Return ``value`` as an int after checking kind and range."""
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, Integral):
        raise type_error(name, "be an integer", value)
    number = int(value)
    if at_least is not None and number < at_least:
        raise value_error(name, f"be at least {at_least}", value)
    if at_most is not None and number > at_most:
        raise value_error(name, f"be at most {at_most}", value)
    return number


def check_bool(name: str, value: Any) -> None:
    """Refuse what is not a bool of Python or NumPy."""
    if not isinstance(value, (bool, np.bool_)):
        raise type_error(name, "be a bool", value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        options = ", ".join(repr(choice) for choice in choices)
        raise value_error(name, f"be one of {options}", value)
    return value


def check_matrix(name: str, value: Any) -> npt.NDArray[np.floating[Any]]:
    """Return ``value`` as a non-empty, two-dimensional float32 or float64 array.

    An array that already is one is returned as it is, in its own layout and dtype.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise type_error(name, "hold real numbers", array)
    if array.ndim != 2:
        raise value_error(name, "be two-dimensional", array)
    if array.shape[0] < 1 or array.shape[1] < 1:
        raise value_error(name, "have at least one row and one column", array)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    return array
