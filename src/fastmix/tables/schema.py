"""The bounds file: what values are possible, from public knowledge.

::

    include = "common.toml"         # entries for columns that this file does not name

    [target]
    income = [0, 200000]            # a number: [lower, upper]

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
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_choice, check_real, value_error

#: Bytes of a bounds file: enough for a million categories.
_LARGEST_FILE = 1 << 25

#: Name of the category that takes everything that the public list does not name.
OTHER = "other"

#: How text files write dates unless the bounds file tells another form.
ISO = "%Y-%m-%d"

#: How often included files may include others, and columns that a message names.
_DEEPEST, _SHOWN = 8, 10

#: Largest magnitude of a bound, and of what follows from bounds.
_LARGEST = 1e100


@dataclass(frozen=True)
class Number:
    """A column of numbers, clipped to ``[lower, upper]``; ``missing`` replaces absent ones.

    Dates are days ``since`` a public date; ``form`` is how text files write them.
    """

    name: str
    lower: float
    upper: float
    missing: float | None = None
    unit: str = ""
    note: str = ""
    since: datetime.date | None = None
    form: str = ISO

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
    note: str = ""

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
            raise value_error("a term", "hold at most one category, to no power", self.name)
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


def _power(value: float, power: int) -> float:
    try:
        return value**power
    except OverflowError:
        return math.inf


Feature: TypeAlias = Number | Category | Term


@dataclass(frozen=True)
class PublicBounds:
    """Public knowledge about a table: the target's bounds, the features, the missing values.

    The rule "impute" puts a public value for a missing one (a missing category is ``other``);
    "drop" leaves such rows out, which makes the number of remaining rows public.
    """

    target: Number
    features: tuple[Feature, ...]
    missing: str = "impute"

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
    def dates(self) -> tuple[tuple[str, str], ...]:
        """Names of the columns of dates, with the form in which text files write them."""
        numbers = [f for f in (self.target, *self.features) if isinstance(f, Number)]
        return tuple((f.name, f.form) for f in numbers if f.since is not None)

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

    @property
    def data_norm(self) -> float:
        """Longest row of scaled features: each number, category and term is at most 1."""
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
        return {
            "target": {self.target.name: _entry(self.target)},
            "features": {f.name: _entry(f) for f in self.features},
            "missing": {"rule": self.missing, "values": values},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PublicBounds:
        """Build bounds from the tables of a bounds file."""
        unknown = sorted(set(data) - {"target", "features", "missing"})
        if unknown:
            raise value_error("tables", "be [target], [features] and [missing]", unknown)
        targets = _table(data, "target")
        entries = _table(data, "features").items()
        features = {name: entry for name, entry in entries if entry is not False}
        if len(targets) != 1:
            raise value_error("[target]", "name one column", targets)
        rules = _table(data, "missing")
        if not set(rules) <= {"rule", "values"}:
            raise value_error("[missing]", "hold rule and values only", rules)
        values = _table(rules, "values")
        strangers = sorted(set(values) - {*targets, *features})
        if strangers:
            raise value_error("[missing] values", "be for columns that are named", strangers)
        filled = (*targets.items(), *features.items())
        unfilled = [name for name, entry in filled if entry == []]
        if unfilled:
            raise ValueError(_unfilled(unfilled))
        made: dict[str, Number | Category] = {
            name: _feature(name, entry, values) for name, entry in filled if entry is not True
        }
        terms = {name: _term(name, made) for name, entry in features.items() if entry is True}
        target = made[next(iter(targets))] if True not in targets.values() else None
        if not isinstance(target, Number):
            raise value_error("[target]", "be a number with [lower, upper]", next(iter(targets)))
        chosen = tuple({**made, **terms}[name] for name in features)
        return cls(target, chosen, rules.get("rule", "impute"))


def read_bounds(path: Path, columns: Callable[[], Iterable[str]] | None = None) -> PublicBounds:
    """Read a bounds file, a TOML file of the form that this module documents.

    ``columns`` gives the names of the table's columns, for patterns and included files.
    """
    data = read_tables(path, columns)
    try:
        return PublicBounds.from_dict(data)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from None


def read_tables(
    path: Path, columns: Callable[[], Iterable[str]] | None = None, depth: int = 0
) -> dict[str, Any]:
    """Return the tables of a bounds file, with included files and patterns written out."""
    data = _toml(path)
    try:
        return written_out(data, columns, path.parent, depth)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from None


def _toml(path: Path) -> dict[str, Any]:
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
        quotes = (
            " Names with letters other than a to z, digits, _ and - need quotes."
            if "Expected '=' after a key" in str(error)
            else ""
        )
        raise ValueError(f"{path.name} must be a TOML file; {error}.{quotes}") from None


def written_out(
    data: dict[str, Any],
    columns: Callable[[], Iterable[str]] | None,
    folder: Path,
    depth: int = 0,
) -> dict[str, Any]:
    """Return tables without ``include``, patterns and columns that are set to false."""
    data = dict(data)
    files = data.pop("include", [])
    files = [files] if isinstance(files, str) else files
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise value_error("include", "be the name of a file, or a list of names", files)
    if depth > _DEEPEST:
        raise value_error("include", f"be nested at most {_DEEPEST} times", files)
    if not files and not any(_is_pattern(*item) for item in _table(data, "features").items()):
        return data
    if columns is None:
        raise ValueError(
            "a bounds file with patterns or included files needs the names of the table's columns."
        )
    names = list(columns())
    target = _table(data, "target")
    written, missing = dict(_table(data, "features")), dict(_table(data, "missing"))
    values = dict(_table(missing, "values"))
    others = [name for name in names if name not in target]
    features = _matched(written, others, strict=depth == 0)
    for file in files:
        try:
            shared = written_out(_toml(folder / file), columns, (folder / file).parent, depth + 1)
        except OSError:
            raise value_error("include", "name a file that can be read", file) from None
        target = target or _table(shared, "target")
        for name, entry in {**_table(shared, "target"), **_table(shared, "features")}.items():
            excluded = name in target or written.get(name) is False
            if not excluded and _applies(name, entry, names):
                features.setdefault(name, entry)
        there = _table(shared, "missing")
        if "rule" in there:
            missing.setdefault("rule", there["rule"])
        for name, value in _table(there, "values").items():
            if name in features or name in target:
                values.setdefault(name, value)
    if values:
        missing["values"] = values
    return {**data, "target": target, "features": features, "missing": missing}


def _applies(name: str, entry: Any, names: Sequence[str]) -> bool:
    """Tell whether an entry of an included file is for a table with these columns."""
    if entry is True:
        return all(factor in names for factor, _ in _factors(name))
    return name in names


def _matched(entries: Mapping[str, Any], names: Sequence[str], *, strict: bool) -> dict[str, Any]:
    """Put for each pattern the columns that match it and that no other entry names."""
    found: dict[str, Any] = {}
    for name, entry in entries.items():
        if not _is_pattern(name, entry):
            if entry is not False:
                found[name] = entry
            continue
        if strict and not any(fnmatchcase(each, _escaped(name)) for each in names):
            raise value_error("a pattern", "match a column of the table", name)
        for each in names:
            if fnmatchcase(each, _escaped(name)) and (each not in entries or each == name):
                found.setdefault(each, entry)
    return found


def _is_pattern(name: str, entry: Any) -> bool:
    return "*" in name and not isinstance(entry, bool)


def _escaped(pattern: str) -> str:
    """Return a pattern in which only the asterisk has a meaning."""
    return re.sub(r"([?\[])", r"[\1]", pattern)


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, Mapping):
        raise value_error(f"[{name}]", "be a table", found)
    return found


def _unfilled(names: Sequence[str]) -> str:
    """Say which columns have no bounds."""
    most = [*names[:_SHOWN], *([f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else [])]
    listed = " and ".join(filter(None, [", ".join(most[:-1]), most[-1]]))
    return (
        f"{listed} {'has' if len(names) == 1 else 'have'} no bounds yet. Fill in [lower, upper], "
        "or for a feature a list of categories, from public knowledge."
    )


def _feature(name: str, entry: Any, values: Mapping[str, Any]) -> Number | Category:
    """Build a column from its entry, in the short form or the long one."""
    given = dict(entry) if isinstance(entry, Mapping) else {}
    forms = [key for key in ("bounds", "categories", "dates") if key in given]
    if isinstance(entry, list):
        if all(isinstance(item, str) for item in entry):
            forms, given = ["categories"], {"categories": entry}
        elif len(entry) == 2:
            dates = all(isinstance(item, datetime.date) for item in entry)
            forms = ["dates" if dates else "bounds"]
            given = {forms[0]: entry}
    known = {
        "bounds": {"missing", "unit", "note"},
        "categories": {"note"},
        "dates": {"missing", "note", "since", "format"},
    }
    if len(forms) != 1 or not isinstance(given[forms[0]], list):
        raise value_error(
            name,
            "be [lower, upper], a list of categories in quotes, { categories = [1, 2, 3] } for "
            "codes, or two dates",
            entry,
        )
    form = forms[0]
    strange = sorted(set(given) - {form} - known[form])
    if strange:
        raise value_error(f"{name} with {form}", f"hold {sorted(known[form])} only", strange)
    if name in values and "missing" in given:
        raise value_error(f"missing value of {name}", "be given once", values[name])
    missing = values.get(name, given.get("missing"))
    words = {key: given.get(key, "") for key in ("note", "unit")}
    for key, value in words.items():
        if not isinstance(value, str):
            raise value_error(f"{key} of {name}", "be text", value)
    entries = given[form]
    if form == "categories":
        if missing is not None:
            raise value_error(f"missing value of {name}", "not be given for a category", missing)
        return Category(name, tuple(_level(name, item) for item in entries), words["note"])
    if len(entries) != 2:
        raise value_error(f"{form} of {name}", "be [lower, upper]", entries)
    if form == "bounds":
        return Number(name, entries[0], entries[1], missing, words["unit"], words["note"])
    first, last = (_date(name, item) for item in entries)
    since = _date(name, given.get("since", first))
    if missing is not None and not isinstance(missing, (int, float)):
        missing = (_date(name, missing) - since).days
    shape = given.get("format", ISO)
    if not isinstance(shape, str) or "%" not in shape:
        raise value_error(f"format of {name}", "be one such as '%d.%m.%Y'", shape)
    low, high = (first - since).days, (last - since).days
    return Number(name, low, high, missing, "", words["note"], since, shape)


def _level(name: str, item: Any) -> str:
    """Return a category as text; codes are integers, and true and false are words."""
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, (str, int)):
        return str(item)
    raise value_error(f"categories of {name}", "be strings or integers", item)


def _date(name: str, item: Any) -> datetime.date:
    if isinstance(item, datetime.datetime):
        item = item.date()
    if isinstance(item, str):
        try:
            item = datetime.date.fromisoformat(item)
        except ValueError:
            raise value_error(f"dates of {name}", "be such as 2000-12-31", item) from None
    if not isinstance(item, datetime.date):
        raise value_error(f"dates of {name}", "be such as 2000-12-31", item)
    return item


def _factors(name: str) -> list[tuple[str, int]]:
    """Return the columns of a term with their powers."""
    powers: dict[str, int] = {}
    for part in name.split("*"):
        column, mark, power = part.strip().rpartition("^")
        if not mark:
            column, power = part.strip(), "1"
        if not column.strip() or not power.strip().isdecimal() or not 1 <= int(power) <= 9:
            raise value_error("a term", "be such as 'age*hours' or 'age^2'", name)
        powers[column.strip()] = powers.get(column.strip(), 0) + int(power)
    return list(powers.items())


def _term(name: str, made: Mapping[str, Number | Category]) -> Term:
    factors = _factors(name)
    for column, _ in factors:
        if column not in made:
            raise value_error("a term", f"be of columns that have bounds, unlike {column!r}", name)
    if sum(power for _, power in factors) < 2:
        raise value_error("a term", "be such as 'age*hours' or 'age^2'", name)
    if all(isinstance(made[column], Category) for column, _ in factors):
        raise value_error("a term", "have a number among its factors", name)
    return Term(name, tuple((made[column], power) for column, power in factors))


def _entry(feature: Feature) -> Any:
    """Return the entry of a column in a bounds file, in the short form where that says all."""
    if isinstance(feature, Term):
        return True
    if isinstance(feature, Category):
        listed = list(feature.categories)
        return {"categories": listed, "note": feature.note} if feature.note else listed
    words = {key: getattr(feature, key) for key in ("unit", "note") if getattr(feature, key)}
    if feature.since is None:
        bounds = [feature.lower, feature.upper]
        return {"bounds": bounds, **words} if words else bounds
    ends = [str(feature.since + datetime.timedelta(d)) for d in (feature.lower, feature.upper)]
    return {"dates": ends, "since": str(feature.since), "format": feature.form, **words}
