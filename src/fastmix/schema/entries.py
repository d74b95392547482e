"""Entries of a bounds file, from TOML to columns and back."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastmix._validation import value_error
from fastmix.schema.features import ISO, Category, Feature, Labels, Number, Term

#: Columns that a message names.
_SHOWN = 10


def table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table of a bounds file, empty if it is not there."""
    found = data.get(name, {})
    if not isinstance(found, Mapping):
        raise value_error(f"[{name}]", "be a table", found)
    return found


def markers_of(rules: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the spellings of missing values by column, "*" for all columns, from [missing]."""
    given = rules.get("markers", {})
    given = {"*": given} if isinstance(given, list) else given
    if not isinstance(given, Mapping) or not all(isinstance(x, list) for x in given.values()):
        condition = 'be a list such as ["NR", 999], or lists by column'
        raise value_error("[missing] markers", condition, given)
    return {name: tuple(_marker(name, each) for each in own) for name, own in given.items()}


def column_markers(rules: Mapping[str, Any], names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the spellings of missing values of each of the named columns that has any."""
    given = markers_of(rules)
    own = {name: (*given.get("*", ()), *given.get(name, ())) for name in names}
    return {name: tuple(dict.fromkeys(each)) for name, each in own.items() if each}


def _marker(name: str, item: Any) -> str:
    """Return a marker as text; a number is spelled as a category spells it."""
    if type(item) in (int, float) and item == item:
        return str(int(item) if float(item).is_integer() else item)
    if isinstance(item, str) and item.strip() == item != "":
        return item
    condition = "be numbers, or words without spaces around them"
    raise value_error(f"[missing] markers of {name}", condition, item)


def unfilled(names: Sequence[str], covered: bool = False) -> str:
    """Return the message for columns without bounds, which a pattern may cover."""
    most = [*names[:_SHOWN], *([f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else [])]
    listed = " and ".join(filter(None, [", ".join(most[:-1]), most[-1]]))
    return (
        f"{listed} {'has' if len(names) == 1 else 'have'} no bounds yet. Fill in [lower, upper], "
        "or for a feature a list of categories, from public knowledge"
        + (", or delete their lines, so that the pattern covers them." if covered else ".")
    )


def feature_of(name: str, entry: Any, values: Mapping[str, Any]) -> Number | Category:
    """Build a column from its entry, in the short or the long form."""
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


def labels_of(name: str, entry: Any, values: Mapping[str, Any]) -> Labels | None:
    """Build a target of labels from its entry; None if the entry has no labels."""
    given = dict(entry) if isinstance(entry, Mapping) else {"labels": entry}
    form = "labels" if "labels" in given else "categories"
    found = given.pop(form, None)
    if not isinstance(found, list) or (not isinstance(entry, Mapping) and not _text(found)):
        return None
    note = given.pop("note", "")
    if given or not isinstance(note, str):
        raise value_error(f"{name} with {form}", "hold note only", sorted(given))
    if name in values:
        raise value_error(f"missing value of {name}", "not be given for labels", values[name])
    if not all(type(each) in (int, float) for each in found):
        found = [_level(name, each) for each in found]
    return Labels(name, tuple(found), note)


def _text(found: list[Any]) -> bool:
    """Tell whether a list in the short form contains labels: words, or true and false."""
    return bool(found) and any(all(isinstance(x, kind) for x in found) for kind in (str, bool))


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


def factors_of(name: str) -> list[tuple[str, int]]:
    """Return the columns of a term with their powers."""
    powers: dict[str, int] = {}
    for part in name.split("*"):
        column, mark, power = part.strip().rpartition("^")
        if not mark:
            column, power = part.strip(), "1"
        if not column.strip() or not power.strip().isdecimal() or not 1 <= int(power) <= 9:
            raise ValueError(f"Invalid term {name!r}; write 'age*hours' or 'age^2'.")
        powers[column.strip()] = powers.get(column.strip(), 0) + int(power)
    return list(powers.items())


def term_of(name: str, made: Mapping[str, Number | Category]) -> Term:
    """Build a term of columns that have bounds."""
    factors = factors_of(name)
    for column, _ in factors:
        if column not in made:
            raise ValueError(f"Term {name!r} needs bounds for its column {column!r}.")
    if sum(power for _, power in factors) < 2:
        raise ValueError(f"Invalid term {name!r}; write 'age*hours' or 'age^2'.")
    if all(isinstance(made[column], Category) for column, _ in factors):
        raise ValueError(f"Term {name!r} must have a number among its factors.")
    return Term(name, tuple((made[column], power) for column, power in factors))


def entry_of(feature: Feature | Labels) -> Any:
    """Return the entry of a column in a bounds file, in the short form if it is complete."""
    if isinstance(feature, Labels):
        labels = list(feature.labels)
        note = {"note": feature.note} if feature.note else {}
        return {"labels": labels, **note} if note or feature.numbers else labels
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
