"""The columns of a bounds file: numbers, dates and categories, and products of columns."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.schema.values import label_places

#: Name of the category for all values outside the public list.
OTHER = "other"

#: Default format of dates in text files.
ISO = "%Y-%m-%d"

#: Largest magnitude of bounds, also of the bounds of products.
_LARGEST = 1e100


@dataclass(frozen=True)
class Number:
    """A column of numbers, clipped to ``[lower, upper]``; ``missing`` replaces missing numbers.

    Dates are days ``since`` a public date; ``form`` is their format where they are text.
    ``markers`` are public spellings of missing values, such as "NR" and "999".
    """

    name: str
    lower: float
    upper: float
    missing: float | None = None
    unit: str = ""
    note: str = ""
    since: datetime.date | None = None
    form: str = ISO
    markers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for side in ("lower", "upper"):
            value = check_real(f"{side} bound of {self.name}", getattr(self, side))
            object.__setattr__(self, side, value)
        if not self.lower < self.upper:
            raise value_error(f"bounds of {self.name}", "increase", [self.lower, self.upper])
        if self.missing is not None:
            name = f"missing value of {self.name}"
            value = check_real(name, self.missing, at_least=self.lower, at_most=self.upper)
            object.__setattr__(self, "missing", value)

    @property
    def words(self) -> str:
        """The public range in words."""
        said = f"{self.lower:g} to {self.upper:g}"
        if self.since is not None:
            first, last = (self.since + datetime.timedelta(d) for d in (self.lower, self.upper))
            return f"{first} to {last}, in days since {self.since}"
        return f"{said} {self.unit}" if self.unit else said

    @property
    def filler(self) -> float:
        """The public value that replaces missing numbers."""
        return self.lower / 2.0 + self.upper / 2.0 if self.missing is None else self.missing

    def columns(self, intercept: bool) -> tuple[str, ...]:
        """Return the names of the encoded columns."""
        return (self.name,)


@dataclass(frozen=True)
class Category:
    """A column of categories from a public list; everything else is ``other``."""

    name: str
    categories: tuple[str, ...]
    note: str = ""
    markers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_markers(self.name, self.markers, self.categories)
        if len(set(self.categories)) != len(self.categories) or not self.categories:
            raise value_error(
                f"categories of {self.name}", "be different strings", list(self.categories)
            )
        if self.levels == (OTHER,):
            raise value_error(f"categories of {self.name}", "name more than other", [OTHER])

    @property
    def levels(self) -> tuple[str, ...]:
        """The categories and ``other``, which comes last unless the list names it."""
        return self.categories if OTHER in self.categories else (*self.categories, OTHER)

    def columns(self, intercept: bool) -> tuple[str, ...]:
        """Return the names of the encoded columns.

        With an intercept, the first category has no column: the others are compared with it.
        """
        return tuple(f"{self.name}={level}" for level in self.levels[bool(intercept) :])


@dataclass(frozen=True)
class Labels:
    """A target of labels from a sorted public list, all text or all numbers.

    Encoded targets are places in the list; a row with another label counts as absent.
    """

    name: str
    labels: tuple[str, ...] | tuple[float, ...]
    note: str = ""
    markers: tuple[str, ...] = ()

    unit: ClassVar[str] = ""
    since: ClassVar[None] = None
    missing: ClassVar[None] = None
    lower: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        text = all(isinstance(each, str) for each in self.labels)
        numbers = all(isinstance(each, (int, float)) and abs(each) < 1e15 for each in self.labels)
        several = len(self.labels) >= 2 and len(set(self.labels)) == len(self.labels)
        if not several or not (text or numbers):
            condition = "be at least two different ones, all text or all numbers"
            raise value_error(f"labels of {self.name}", condition, list(self.labels))
        object.__setattr__(self, "labels", tuple(sorted(self.labels)))
        check_markers(self.name, self.markers, [f"{each}" for each in self.labels])

    @property
    def upper(self) -> float:
        """Place of the last label."""
        return len(self.labels) - 1.0

    @property
    def numbers(self) -> bool:
        """Whether labels are numbers."""
        return not isinstance(self.labels[0], str)

    @property
    def words(self) -> str:
        """The public list in words."""
        shown = [str(each) for each in self.labels[:10]]
        more = len(self.labels) - len(shown)
        return ", ".join([*shown, *([f"{more} more"] if more else [])])

    def places(self, values: npt.NDArray[Any]) -> FloatArray:
        """Return the places of labels that are numbers; -1 for other numbers."""
        found = label_places(values, np.array(self.labels, dtype=np.float64))
        return found.astype(np.float64)

    def decoded(self, places: FloatArray) -> npt.NDArray[Any]:
        """Return the labels at places; -1 gives a value that is not in the list."""
        absent = None if isinstance(self.labels[0], str) else float(self.labels[0]) - 1.0
        kind = np.float64 if self.numbers else object
        return np.array([*self.labels, absent], dtype=kind)[places.astype(np.int64)]


@dataclass(frozen=True)
class Term:
    """A product of powers of numbers, and of at most one category: ``age*hours``, ``age^2``.

    Its bounds follow from those of its factors, whose values are clipped before they are
    multiplied.
    """

    name: str
    factors: tuple[tuple[Number | Category, int], ...]

    def __post_init__(self) -> None:
        categories = [f for f, _ in self.factors if isinstance(f, Category)]
        if len(categories) > 1 or any(power != 1 for f, power in self.factors if f in categories):
            raise ValueError(
                f"Term {self.name!r} must have at most one category, and no power of a category."
            )
        if not max(map(abs, self.range)) <= _LARGEST:
            raise value_error("bounds of a term", f"be at most {_LARGEST:g}", self.name)

    @property
    def category(self) -> Category | None:
        """The category of the term, if there is one."""
        return next((f for f, _ in self.factors if isinstance(f, Category)), None)

    @property
    def range(self) -> tuple[float, float]:
        """Bounds of the product of the numbers."""
        low, high = 1.0, 1.0
        for factor, power in self.factors:
            if isinstance(factor, Number):
                a, b = _power(factor.lower, power), _power(factor.upper, power)
                least = 0.0 if power % 2 == 0 and factor.lower < 0.0 < factor.upper else min(a, b)
                corners = [x * y for x in (low, high) for y in (least, max(a, b))]
                low, high = min(corners), max(corners)
        return low, high

    @property
    def box(self) -> tuple[float, float]:
        """Bounds of an encoded column; symmetric beside a category, so that 0 stays 0."""
        low, high = self.range
        return (low, high) if self.category is None else (-max(-low, high), max(-low, high))

    @property
    def words(self) -> str:
        """The public range in words."""
        low, high = self.range
        return f"{low:g} to {high:g}" + ("" if self.category is None else ", or 0")

    def columns(self, intercept: bool) -> tuple[str, ...]:
        """Return the names of the encoded columns."""
        if self.category is None:
            return (self.name,)
        rest = "*".join(
            f.name if power == 1 else f"{f.name}^{power}"
            for f, power in self.factors
            if isinstance(f, Number)
        )
        return tuple(f"{column}*{rest}" for column in self.category.columns(intercept))


def check_markers(name: str, markers: Sequence[str], listed: Sequence[str]) -> None:
    """Refuse markers of missing values that are in the public list of a column."""
    if both := sorted({*markers} & {*listed}):
        raise value_error(f"markers of {name}", "not be in its public list", both)


def _power(value: float, power: int) -> float:
    try:
        return value**power
    except OverflowError:
        return math.inf


Feature: TypeAlias = Number | Category | Term
