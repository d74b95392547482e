"""Strict readers of the values in a model's document: anything of another kind is a ValueError."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.engine.layers import Count, Limits
from fastmix.engine.scores import Bin, Score
from fastmix.estimators.evaluation import NAMES


def real(value: Any) -> float:
    """Return a number; documents spell infinite numbers "inf" and "-inf"."""
    if value not in ("inf", "-inf") and type(value) not in (int, float):
        raise ValueError("number")
    return float(value)


def finite(value: Any) -> float:
    """Return a finite number."""
    found = real(value)
    if not math.isfinite(found):
        raise ValueError("finite")
    return found


def optional(value: Any) -> float | None:
    """Return a number, or None."""
    return None if value is None else real(value)


def truth(value: Any) -> bool:
    """Return True or False."""
    if type(value) is not bool:
        raise ValueError("bool")
    return value


def whole(value: Any) -> int:
    """Return an integer."""
    if type(value) is not int:
        raise ValueError("integer")
    return value


def parameter(value: Any) -> Any:
    """Return a parameter: None, text, a number, or a list of numbers; "inf" is infinite."""
    if type(value) is list:
        return [finite(each) for each in value]
    if value is not None and type(value) not in (bool, int, float, str):
        raise ValueError("parameter")
    return math.inf if value == "inf" else value


def listed(values: Any) -> list[Any]:
    """Return a list."""
    if type(values) is not list:
        raise ValueError("list")
    return values


def array_of(values: Any, shape: tuple[int, ...], kind: Callable[[Any], Any]) -> Any:
    """Return nested lists of this shape as an array; a single value if the shape is ()."""
    if not shape:
        return kind(values)
    if len(listed(values)) != shape[0]:
        raise ValueError("shape")
    return np.array([array_of(each, shape[1:], kind) for each in values])


def symmetric(values: Any, size: int, several: tuple[int, ...] = ()) -> FloatArray:
    """Return a symmetric matrix, or several, by the rows of lower triangles; entries may be NaN."""
    if several:
        if len(listed(values)) != several[0]:
            raise ValueError("shape")
        return np.stack([symmetric(each, size) for each in values])
    count = size * (size + 1) // 2
    found = array_of(values, (count,), lambda value: math.nan if value == "nan" else real(value))
    matrix = np.zeros((size, size))
    matrix[np.tril_indices(size)] = found
    return np.where(np.tri(size, dtype=bool), matrix, matrix.T)


def counts(values: Any) -> tuple[FloatArray, ...]:
    """Return the counts of the levels of each category."""
    return tuple(array_of(own, (len(listed(own)),), finite) for own in listed(values))


def scores(data: dict[str, Any]) -> dict[str, Score]:
    """Return private scores of known names."""
    if not data or data.keys() - NAMES.keys():
        raise ValueError("scores")
    return {name: _score(**each) for name, each in data.items()}


def _score(
    *, bins: Any, limits: Any, counts: Any, clip: Any, baseline: Any, **numbers: Any
) -> Score:
    if numbers.keys() != {"value", "std", "hidden"}:
        raise ValueError("scores")
    return Score(
        clip=optional(clip),
        baseline=optional(baseline),
        bins=tuple(Bin(*map(real, each)) for each in listed(bins)),
        limits=tuple(Limits(*map(real, each)) for each in listed(limits)),
        counts=tuple(Count(*map(real, each)) for each in listed(counts)),
        **{name: real(each) for name, each in numbers.items()},
    )
