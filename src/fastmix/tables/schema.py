"""The bounds file: what values are possible, from public knowledge.

::

    [target]
    income = [0, 200000]            # a number: [lower, upper]

    [features]
    age = [0, 120]
    city = ["Ulm", "Bonn", "Kiel"]  # a category; anything else goes to a column "other"

    [missing]
    rule = "impute"                 # or "drop"
    values = { age = 40 }           # instead of the middle of the bounds

Bounds that ``fastmix bounds --epsilon`` found privately have a table ``[found]`` that says what was
spent on them.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_choice, check_integer, check_real, value_error

#: Bytes of a bounds file: enough for a million categories.
_LARGEST_FILE = 1 << 25

_DIGEST = re.compile("sha256:[0-9a-f]{64}")

#: Name of the category that takes everything that the public list does not name.
OTHER = "other"


@dataclass(frozen=True)
class Number:
    """A column of numbers, clipped to ``[lower, upper]``; ``missing`` replaces absent ones."""

    name: str
    lower: float
    upper: float
    missing: float | None = None

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
    def filler(self) -> float:
        """The public value that is put for a missing one."""
        return self.lower / 2.0 + self.upper / 2.0 if self.missing is None else self.missing

    def columns(self, intercept: bool) -> tuple[str, ...]:
        """Return the names of the encoded columns."""
        return (self.name,)


@dataclass(frozen=True)
class Category:
    """A column of categories from a public list; everything else is ``other``."""

    name: str
    categories: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.categories)) != len(self.categories) or not self.categories:
            raise value_error(
                f"categories of {self.name}", "be different strings", list(self.categories)
            )
        if self.levels == (OTHER,):
            raise value_error(f"categories of {self.name}", "name more than other", [OTHER])

    @property
    def levels(self) -> tuple[str, ...]:
        """The categories with ``other``, which is added at the end if it is not among them."""
        return self.categories if OTHER in self.categories else (*self.categories, OTHER)

    def columns(self, intercept: bool) -> tuple[str, ...]:
        """Return the names of the encoded columns.

        Beside an intercept the first category has none: it is what the others are compared with.
        """
        return tuple(f"{self.name}={level}" for level in self.levels[bool(intercept) :])


Feature: TypeAlias = Number | Category


@dataclass(frozen=True)
class Found:
    """What was spent on bounds that were found privately, and the digest of its certificate."""

    epsilon: float
    delta: float
    coverage: float
    certificate: str
    rows_per_person: int | None = None  #: Persons that they protect have so many rows at most.

    def __post_init__(self) -> None:
        for name, above in (("epsilon", 0.0), ("delta", 0.0), ("coverage", 0.0)):
            value = check_real(f"{name} of [found]", getattr(self, name), above=above)
            object.__setattr__(self, name, value)
        if not isinstance(self.certificate, str) or not _DIGEST.fullmatch(self.certificate):
            raise value_error("certificate of [found]", "be a digest", self.certificate)
        if self.rows_per_person is not None:
            check_integer("rows_per_person of [found]", self.rows_per_person, at_least=1)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types, without what does not apply."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class PublicBounds:
    """Public knowledge about a table: the target's bounds, the features, the missing values.

    The rule "impute" puts a public value for a missing one (a missing category is ``other``);
    "drop" leaves such rows out, which makes the number of remaining rows public.
    """

    target: Number
    features: tuple[Feature, ...]
    missing: str = "impute"
    found: Found | None = None

    def __post_init__(self) -> None:
        check_choice("rule for missing values", self.missing, ("impute", "drop"))
        names = [feature.name for feature in self.features]
        if not names:
            raise value_error("features", "name at least one column", names)
        if len(set(names)) != len(names) or self.target.name in names:
            raise value_error("features", "be different columns, without the target", names)

    def columns(self, intercept: bool = True) -> tuple[str, ...]:
        """Return the names of all encoded columns."""
        return tuple(name for feature in self.features for name in feature.columns(intercept))

    def feature_bounds(self, intercept: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return bounds of the encoded columns, for ``bounds_X``.

        A column of a category holds 0 or 1; its bounds are symmetric so that 0 stays 0, and the
        columns of one category together have norm at most 1.
        """
        sides: list[tuple[float, float]] = []
        for feature in self.features:
            box = (feature.lower, feature.upper) if isinstance(feature, Number) else (-1.0, 1.0)
            sides += [box] * len(feature.columns(intercept))
        lower, upper = np.array(sides).T
        return lower.copy(), upper.copy()

    @property
    def data_norm(self) -> float:
        """Longest row of scaled features: each number and each category is at most 1."""
        return math.sqrt(len(self.features))

    def select(self, names: Iterable[str]) -> PublicBounds:
        """Return the same bounds for some features only, in the order given."""
        known = {feature.name: feature for feature in self.features}
        chosen = list(names)
        for name in chosen:
            if name not in known:
                raise value_error("features", f"be among {list(known)}", name)
        return replace(self, features=tuple(known[name] for name in chosen))

    def to_dict(self) -> dict[str, Any]:
        """Return the bounds as plain JSON types, in the form of the bounds file."""
        numbers = [f for f in (self.target, *self.features) if isinstance(f, Number)]
        values = {f.name: f.missing for f in numbers if f.missing is not None}
        found = {} if self.found is None else {"found": self.found.to_dict()}
        return {
            "target": {self.target.name: [self.target.lower, self.target.upper]},
            "features": {
                f.name: [f.lower, f.upper] if isinstance(f, Number) else list(f.categories)
                for f in self.features
            },
            "missing": {"rule": self.missing, "values": values},
            **found,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PublicBounds:
        """Build bounds from the tables of a bounds file."""
        unknown = sorted(set(data) - {"target", "features", "missing", "found"})
        if unknown:
            raise value_error("tables", "be [target], [features], [missing], [found]", unknown)
        targets, features = _table(data, "target"), _table(data, "features")
        if len(targets) != 1:
            raise value_error("[target]", "name one column", targets)
        rules = _table(data, "missing")
        if not set(rules) <= {"rule", "values"}:
            raise value_error("[missing]", "hold rule and values only", rules)
        values = _table(rules, "values")
        strangers = sorted(set(values) - {*targets, *features})
        if strangers:
            raise value_error("[missing] values", "be for columns that are named", strangers)
        made = [
            _feature(name, entry, values) for name, entry in (*targets.items(), *features.items())
        ]
        if not isinstance(made[0], Number):
            raise value_error("[target]", "be a number with [lower, upper]", made[0].name)
        found = None
        if "found" in data:
            entries = _table(data, "found")
            needed = {"epsilon", "delta", "coverage", "certificate"}
            if set(entries) - {"rows_per_person"} != needed:
                raise value_error("[found]", "be as fastmix wrote it", sorted(entries))
            found = Found(**entries)
        return cls(made[0], tuple(made[1:]), rules.get("rule", "impute"), found)


def read_bounds(path: Path) -> PublicBounds:
    """Read a bounds file, a TOML file of the form that this module documents."""
    data = read_toml(path)
    try:
        return PublicBounds.from_dict(data)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read the tables of a bounds file, perhaps not yet filled in."""
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise ValueError(
            f"{path.name} must be at most {_LARGEST_FILE:,} bytes long; it has {size:,}."
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (RecursionError, MemoryError):
        raise ValueError(f"{path.name} must not be nested so deeply.") from None
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise ValueError(f"{path.name} must be a TOML file; {error}.") from None


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, Mapping):
        raise value_error(f"[{name}]", "be a table", found)
    return found


def _feature(name: str, entry: Any, values: Mapping[str, Any]) -> Feature:
    if entry == []:
        raise ValueError(
            f"{name} has no bounds yet. Fill in [lower, upper], or for a feature a list of "
            f"categories, from public knowledge."
        )
    if isinstance(entry, list) and all(isinstance(item, str) for item in entry):
        if name in values:
            raise value_error(
                f"missing value of {name}", "not be given for a category", values[name]
            )
        return Category(name, tuple(entry))
    if isinstance(entry, list) and len(entry) == 2:
        return Number(name, entry[0], entry[1], values.get(name))
    raise value_error(name, "be [lower, upper] or a list of categories in quotes", entry)
