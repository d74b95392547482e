"""The bounds file: the public range or list of the values of each column.

::

    include = "common.toml"         # entries for columns that this file does not name
    columns = ["age", "city"]       # names of the columns, of a file without a first line of names

    [target]
    income = [0, 200000]            # a number: [lower, upper]; for classes, a list of labels

    [features]
    age = { bounds = [0, 120], unit = "years", note = "at the interview" }
    city = ["Ulm", "Bonn", "Kiel"]  # a category; anything else goes to a column "other"
    region = { categories = [1, 2, 3] }  # codes
    joined = [2000-01-01, 2025-12-31]    # a date, in days since the first one
    "hour_*" = [0, 24]              # all other columns with such a name
    id = false                      # a column that no pattern takes
    "age^2" = true                  # terms, with bounds that follow from those of their columns
    "age*city" = true

    [missing]
    rule = "impute"                 # or "drop"
    values = { age = 40 }           # instead of the middle of the bounds
    markers = { age = ["NR", 999] } # spellings of missing values; a list is for all columns

Bounds that ``fastmix bounds --epsilon`` found privately have a table ``[found]`` that says what was
spent on them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_choice, check_integer, check_real, value_error
from fastmix.schema.entries import (
    column_markers,
    entry_of,
    feature_of,
    labels_of,
    markers_of,
    table,
    term_of,
    unfilled,
)
from fastmix.schema.features import OTHER, Category, Feature, Labels, Number, Term

_DIGEST = re.compile("sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Found:
    """Cost of bounds that were found privately, and the digest of their certificate."""

    epsilon: float
    delta: float
    coverage: float
    certificate: str
    rows_per_person: int | None = None  #: Largest number of rows of a protected person.

    def __post_init__(self) -> None:
        for name, above in (("epsilon", 0.0), ("delta", 0.0), ("coverage", 0.0)):
            value = check_real(f"{name} of [found]", getattr(self, name), above=above)
            object.__setattr__(self, name, value)
        if not isinstance(self.certificate, str) or not _DIGEST.fullmatch(self.certificate):
            raise value_error("certificate of [found]", "be a digest", self.certificate)
        if self.rows_per_person is not None:
            check_integer("rows_per_person of [found]", self.rows_per_person, at_least=1)

    def to_dict(self) -> dict[str, Any]:
        """Return the table [found] as plain JSON types."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Found:
        """Build the cost from the table [found] of a bounds file."""
        needed = {"epsilon", "delta", "coverage", "certificate"}
        if set(entries) - {"rows_per_person"} != needed:
            raise value_error("[found]", "be as fastmix wrote it", sorted(entries))
        return cls(**entries)


@dataclass(frozen=True)
class PublicBounds:
    """Public knowledge about a table: the target's bounds, the features, the missing values.

    The rule "impute" replaces missing numbers by a public value, and missing categories by
    ``other``. "drop" leaves out rows with missing values, so the number of other rows is public.
    ``names`` are all columns of a file that does not name them itself.
    """

    target: Number | Labels
    features: tuple[Feature, ...]
    missing: str = "impute"
    found: Found | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("rule for missing values", self.missing, ("impute", "drop"))
        names = [feature.name for feature in self.features]
        if not names:
            raise value_error("features", "name at least one column", names)
        if len(set(names)) != len(names) or self.target.name in names:
            raise value_error("features", "be different columns, without the target", names)
        for feature in self.features:
            for factor, _ in feature.factors if isinstance(feature, Term) else ():
                if factor not in self.features:
                    condition = f"have {factor.name} beside {feature.name}"
                    raise value_error("features", condition, names)

    @property
    def ends(self) -> tuple[Any, ...]:
        """The bounds of the target, or its labels."""
        target = self.target
        return target.labels if isinstance(target, Labels) else (target.lower, target.upper)

    @property
    def dates(self) -> tuple[tuple[str, str], ...]:
        """Names of the columns of dates, each with its format in text files."""
        numbers = [f for f in (self.target, *self.features) if isinstance(f, Number)]
        return tuple((f.name, f.form) for f in numbers if f.since is not None)

    @property
    def markers(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Names of the columns with markers of missing values, each with its markers."""
        own = [f for f in (self.target, *self.features) if not isinstance(f, Term)]
        return tuple((f.name, f.markers) for f in own if f.markers)

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
            box = (-1.0, 1.0)
            if isinstance(feature, Number):
                box = feature.lower, feature.upper
            elif isinstance(feature, Term):
                box = feature.box
            sides += [box] * len(feature.columns(intercept))
        lower, upper = np.array(sides).T
        return lower.copy(), upper.copy()

    def categories(self, intercept: bool = True) -> tuple[tuple[int, ...], ...]:
        """Return the encoded columns of each category."""
        blocks = self._blocks(intercept)
        return tuple(columns for feature, columns in blocks if isinstance(feature, Category))

    def unlisted(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Return the columns of each category and of its terms, beside an intercept.

        Nothing for a category whose public list names ``other``: all its levels are listed.
        """
        blocks: dict[str, list[tuple[int, ...]]] = {}
        for feature, columns in self._blocks():
            category = feature.category if isinstance(feature, Term) else feature
            if isinstance(category, Category):
                blocks.setdefault(category.name, []).append(columns)
        categories = [feature for feature in self.features if isinstance(feature, Category)]
        return tuple(
            () if OTHER in each.categories else tuple(blocks[each.name]) for each in categories
        )

    def _blocks(self, intercept: bool = True) -> Iterator[tuple[Feature, tuple[int, ...]]]:
        """Yield each feature with the places of its encoded columns."""
        start = 0
        for feature in self.features:
            end = start + len(feature.columns(intercept))
            yield feature, tuple(range(start, end))
            start = end

    @property
    def data_norm(self) -> float:
        """Norm of the longest row of scaled features: each feature adds at most 1 to its square."""
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
        marked = {name: list(own) for name, own in self.markers}
        return {
            **({"columns": list(self.names)} if self.names else {}),
            "target": {self.target.name: entry_of(self.target)},
            "features": {f.name: entry_of(f) for f in self.features},
            "missing": {
                "rule": self.missing,
                "values": values,
                **({"markers": marked} if marked else {}),
            },
            **found,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PublicBounds:
        """Build bounds from the tables of a bounds file."""
        unknown = sorted(set(data) - {"columns", "target", "features", "missing", "found"})
        if unknown:
            raise value_error("tables", "be [target], [features], [missing], [found]", unknown)
        targets = table(data, "target")
        entries = table(data, "features").items()
        features = {name: entry for name, entry in entries if entry is not False}
        if len(targets) != 1:
            raise value_error("[target]", "name one column", targets)
        rules = table(data, "missing")
        if not set(rules) <= {"rule", "values", "markers"}:
            raise value_error("[missing]", "hold rule, values and markers only", rules)
        values, markers = table(rules, "values"), markers_of(rules)
        for part, named in (("values", set(values)), ("markers", set(markers) - {"*"})):
            if strangers := sorted(named - {*targets, *features}):
                raise value_error(f"[missing] {part}", "be for columns that are named", strangers)
        filled = (*targets.items(), *features.items())
        if empty := [name for name, entry in filled if entry == []]:
            raise ValueError(unfilled(empty))
        ((name, entry),) = targets.items()
        labels = labels_of(name, entry, values)
        filled = filled if labels is None else (*features.items(),)
        made: dict[str, Number | Category] = {
            name: feature_of(name, entry, values) for name, entry in filled if entry is not True
        }
        target = made.get(name) if labels is None else labels
        if not isinstance(target, Number | Labels):
            condition = "be a number with [lower, upper], or a list of labels"
            raise value_error("[target]", condition, name)
        own = column_markers(rules, (*targets, *features))

        def marked(feature: Any) -> Any:
            return replace(feature, markers=own.get(feature.name, ()))

        made = {name: marked(feature) for name, feature in made.items()}
        terms = {name: term_of(name, made) for name, entry in features.items() if entry is True}
        chosen = tuple({**made, **terms}[name] for name in features)
        found = Found.from_dict(table(data, "found")) if "found" in data else None
        names = column_names(data)
        return cls(marked(target), chosen, rules.get("rule", "impute"), found, names)


def column_names(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names that a bounds file gives to the columns of a file; none by default."""
    names = data.get("columns", [])
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not texts or len(set(names)) != len(names):
        raise value_error("columns", "be a list of different names", names)
    return tuple(names)


def check_number(bounds: PublicBounds) -> None:
    """Refuse labels as the target of a model that predicts numbers."""
    if isinstance(bounds.target, Labels):
        raise ValueError(
            f"[target] must be a number with [lower, upper]; {bounds.target.name} has a list of "
            "labels. Labels need a logistic regression: --family logistic, or "
            "PrivateLogisticRegression."
        )


def check_persons(bounds: PublicBounds, persons: bool, public_rows: bool = True) -> None:
    """Refuse bounds of a table whose release protects less than the fit."""
    if bounds.found is not None:
        check_protection([bounds.found.rows_per_person], persons=persons, public_rows=public_rows)


def check_protection(
    rows_per_person: Sequence[int | None], *, persons: bool, public_rows: bool
) -> None:
    """Refuse bounds that were found privately if their releases protect less than the fit.

    ``rows_per_person`` has one entry per release, None for a release that protects single rows.
    """
    if rows_per_person and not public_rows:
        raise ValueError(
            "public_rows must be True with bounds that were found privately, because the number of "
            "rows is public then. Take bounds from public knowledge."
        )
    if persons and None in rows_per_person:
        raise ValueError(
            "bounds that were found privately must protect persons if the fit does: find them "
            "with groups (--person and --max-rows), or take public ones."
        )
