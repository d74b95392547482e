"""Conversion of one value to a number, to days, or to its place in a public list.

Every function here sees one value at a time, so that no record decides what another one becomes.
A value that does not fit is missing or not in the list; it never raises an error.
"""

import calendar
import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from fastmix.schema.values import NARROWER

#: Codes of values that are not in the public list, and of missing values.
UNLISTED, MISSING = -1, -2

#: Dates are read as days since this one.
EPOCH = datetime.date(1970, 1, 1)

#: Seconds of a day.
DAY = 86400.0

#: Types of real numbers, those of NumPy among them.
_REALS: tuple[Any, ...] = (Real, Decimal, np.bool_)

#: Numbers as categories spell them. "007" is text, because nobody writes the number 7 like this.
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")


def real(value: Any) -> float:
    """Return a number as float64, infinite if it is too large; NaN for anything else."""
    try:
        if type(value) is float:
            return value
        if isinstance(value, np.timedelta64) or not isinstance(value, _REALS):
            return math.nan
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    except Exception:
        return math.nan


def days(value: Any) -> float:
    """Return a date or a time, to the second, in days since 1970; NaN for anything else.

    A time without a time zone counts as one in UTC.
    """
    try:
        if is_missing(value):
            return math.nan
        if isinstance(value, np.datetime64):
            return float(value.astype("M8[s]").astype(np.int64)) / DAY
        if isinstance(value, datetime.datetime):
            return calendar.timegm(value.utctimetuple()) / DAY
        if isinstance(value, datetime.date):
            return calendar.timegm(value.timetuple()) / DAY
    except Exception:
        pass
    return math.nan


def is_missing(value: Any) -> bool:
    """Tell whether a value is missing: None, NaN, NaT, NA or masked."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    kind = type(value)  # pandas is not imported here
    return kind.__module__.startswith("pandas.") and kind.__name__ in ("NAType", "NaTType")


def level_number(level: str) -> int | float | None:
    """Return the number that a category spells, None for text; integers of any size are exact."""
    if not _NUMBER.fullmatch(level):
        return None
    whole, parts = Decimal(level).as_integer_ratio()
    if parts == 1:
        return whole
    rounded = float(level)
    return None if rounded.is_integer() else rounded


@dataclass(frozen=True)
class PublicList:
    """A public list of categories, by text and by number.

    Text matches by its characters, true and false as these words, numbers by their value: 2, 2.0
    and Decimal("2.00") are the same. Integers are compared exactly, however large. A number with
    a fraction matches a category that is the same in double, single or half precision.
    """

    texts: dict[str, int]
    numbers: dict[Any, int]

    @classmethod
    def of(cls, levels: Sequence[str]) -> "PublicList":
        """Build the list; if two categories spell the same number, the plain spelling counts."""
        texts = {level: place for place, level in enumerate(levels)}
        numbers: dict[Any, int] = {}
        for level, place in texts.items():
            number = level_number(level)
            if number is not None and (number not in numbers or level == str(number)):
                numbers[number] = place
        fractions = [each for each in numbers if isinstance(each, float)]
        for width in NARROWER:
            with np.errstate(all="ignore"):
                rounded = np.array(fractions).astype(width).tolist()
            for number, same in zip(fractions, rounded, strict=True):
                if math.isfinite(same) and not same.is_integer():
                    numbers.setdefault(same, numbers[number])
        return cls(texts, numbers)

    def place(self, value: Any) -> int:
        """Return the place of one value, `MISSING` or `UNLISTED`."""
        try:
            kind = type(value)
            if kind is str:
                return self.texts.get(value, UNLISTED if value else MISSING)
            if kind is int:
                return self.numbers.get(value, UNLISTED)
            if isinstance(value, str):
                return self.place(str.__str__(value))
            if is_missing(value):
                return MISSING
            if isinstance(value, (bool, np.bool_)):
                return self.texts.get("true" if value else "false", UNLISTED)
            if isinstance(value, np.timedelta64) or not isinstance(value, _REALS):
                return UNLISTED
            if isinstance(value, np.generic):
                value = value.item() if isinstance(value, np.integer) else float(value)
            found = self.numbers.get(value)  # Python compares numbers of all types exactly
            if found is None and not isinstance(value, (int, float)):
                rounded = float(value)
                found = None if rounded.is_integer() else self.numbers.get(rounded)
            return UNLISTED if found is None else found
        except Exception:
            return UNLISTED
