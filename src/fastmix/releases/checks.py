"""Checks of the values that releases are given, each for all releases: numbers, shapes, sizes.

A check takes the name, the value and what is public about the rows, and returns the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_choice, check_probability, check_real, value_error

if TYPE_CHECKING:
    from fastmix.releases.release import Public

Check = Callable[[str, Any, "Public"], Any]

#: Larger coefficients could make residuals of some data overflow.
_LARGEST = 1e100


def positive(name: str, value: Any, public: Public) -> float:
    """Accept a number above 0."""
    return check_real(name, value, above=0.0)


def not_negative(name: str, value: Any, public: Public) -> float:
    """Accept a number of at least 0."""
    return check_real(name, value, at_least=0.0)


def probability(name: str, value: Any, public: Public) -> float:
    """Accept a number between 0 and 1."""
    return check_probability(name, value)


def laws(name: str, value: Any, public: Public) -> str:
    """Accept the name of a law of noise."""
    return check_choice(name, value, ("laplace", "gaussian"))


def anything(name: str, value: Any, public: Public) -> Any:
    """Accept any value."""
    return value


def coefficients(name: str, value: FloatArray, public: Public) -> FloatArray:
    """Accept one coefficient per column, so small that no residual overflows."""
    return _array(name, value, (public.d,))


def models(name: str, value: FloatArray, public: Public) -> FloatArray:
    """Accept the coefficients of one model for each view of the rows, as columns."""
    return _array(name, value, (public.d, public.views))


def several_models(name: str, value: FloatArray, public: Public) -> FloatArray:
    """Accept the coefficients of at least two models of the same rows, as columns."""
    fits = value.ndim == 2 and value.shape[0] == public.d and value.shape[1] > 1
    if not fits or not np.abs(value).max() <= _LARGEST:
        raise value_error(name, f"be at most 1e100 and have {public.d} rows", value)
    return value


def transform(name: str, value: FloatArray, public: Public) -> FloatArray:
    """Accept a matrix of a norm that cannot overflow."""
    if not np.linalg.norm(value) <= _LARGEST:
        raise value_error(name, "have a norm of at most 1e100", value)
    return value


def joint_transform(name: str, value: FloatArray, public: Public) -> FloatArray:
    """Accept a finite square matrix for rows with their targets."""
    size = public.d + 1
    if value.shape != (size, size) or not np.isfinite(value).all():
        raise value_error(name, f"be finite and have shape {(size, size)}", value)
    return value


def weights(name: str, value: FloatArray | None, public: Public) -> FloatArray | None:
    """Accept a weight of at most 1 for each coordinate, or none."""
    if value is not None and not (value.min() >= 0.0 and value.max() <= 1.0):
        raise value_error(name, "be between 0 and 1", value)
    return value


def widths(name: str, value: tuple[float, float], public: Public) -> tuple[float, float]:
    """Accept two lengths to divide by."""
    first, second = (check_real(name, each, at_least=1e-100) for each in value)
    return first, second


def edges_above_zero(name: str, value: FloatArray, public: Public) -> FloatArray:
    """Accept edges of bins above 0: an absent record, whose residual is 0, counts nowhere."""
    if not value[0] > 0.0:
        raise value_error(name, "be above 0", value)
    return value


def edges_from_zero(name: str, value: FloatArray, public: Public) -> FloatArray:
    """Accept at least two rising edges from 0 on; a residual of 0 counts nowhere."""
    if value.ndim != 1 or len(value) < 2 or value[0] < 0.0 or not np.all(np.diff(value) > 0.0):
        raise value_error(name, "be at least two rising numbers from 0 on", value)
    return value


def rising(name: str, value: FloatArray, public: Public) -> FloatArray:
    """Accept an array of rising numbers."""
    if value.ndim != 1 or not len(value) or not np.all(np.diff(value) > 0.0):
        raise value_error(name, "be an array of rising numbers", value)
    return value


def layered(name: str, value: FloatArray, public: Public) -> FloatArray:
    """Accept the upper edges of layers, rising numbers above 0."""
    if not rising(name, value, public)[0] > 0.0 or not value[-1] <= _LARGEST:
        raise value_error(name, "be rising numbers above 0", value)
    return value


def _array(name: str, value: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    if value.shape != shape or not np.abs(value).max() <= _LARGEST:
        raise value_error(name, f"be at most 1e100 and have shape {shape}", value)
    return value
