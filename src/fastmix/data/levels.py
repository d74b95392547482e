"""Counts of the levels in columns of categories: raw data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.data.arrow import decoded
from fastmix.data.read import arrow


def _text(column: Any) -> Any:
    """Return a column as text: every number has one spelling, and NaN is missing."""
    pa, column = arrow(), decoded(column)
    if pa.types.is_floating(column.type):
        column = pa.compute.if_else(pa.compute.is_nan(column), None, column)
    text = column.cast(pa.string())
    if pa.types.is_decimal(column.type):
        text = pa.compute.replace_substring_regex(text, r"^(-?[0-9]+(\.[0-9]*[1-9])?)\.?0*$", r"\1")
    return text


def _readable(level: bytes) -> str:
    """Return a level as text, empty if it is not valid UTF-8: no list can name it."""
    try:
        return level.decode()
    except UnicodeError:
        return ""


def text_counts(column: Any, weights: FloatArray | None = None) -> dict[str, float]:
    """Return how often each level of a column occurs.

    Values that are missing, empty or not valid UTF-8 do not count.
    """
    coded = _text(column).combine_chunks().dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    levels = [_readable(level) for level in coded.dictionary.cast(arrow().binary()).to_pylist()]
    own = None if weights is None else weights[codes >= 0]
    counts = np.bincount(codes[codes >= 0], own, minlength=len(levels))
    # What only rows without weight have is not there.
    pairs = zip(levels, counts.tolist(), strict=True)
    return {level: float(count) for level, count in pairs if level and count > 0}


def same_but_for_spelling(column: Any, levels: Sequence[str]) -> int:
    """Count values that differ from an entry of the list only in capitals or outer spaces."""
    pa = arrow()
    text = _text(column)
    loose = pa.compute.utf8_lower(pa.compute.utf8_trim_whitespace(text))
    listed = pa.compute.is_in(text, value_set=pa.array(list(levels), pa.string()))
    alike = pa.array([level.strip().lower() for level in levels], pa.string())
    near = pa.compute.and_(pa.compute.is_in(loose, value_set=alike), pa.compute.invert(listed))
    return int(pa.compute.sum(near).as_py() or 0)
