"""Checks that declared types of columns agree with the bounds file; values are never read."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence

from fastmix.errors import DataError
from fastmix.schema.elements import level_number

#: Names of columns that say whose record it is, such as id, patient_id, PatientID and person.id,
#: or that number the records: Case no., case_number, Personen-Nr., Fallnummer.
_ID = re.compile(
    r"(.*[^A-Za-z0-9])?(?i:id|uuid|guid|pseudonym)|.*[a-z](ID|Id)"
    r"|((?i:(.*[^A-Za-z0-9])?nr|.+[^A-Za-z0-9](no|number)|.*nummer)|.*[a-z]N[rRo])\.?"
)


def looks_like_id(name: str) -> bool:
    """Tell whether a column holds ids, by its name alone."""
    return _ID.fullmatch(name) is not None


def is_date(kind: str) -> bool:
    """Tell whether a type of Arrow, by its name, holds dates or times."""
    return kind.startswith(("date", "timestamp"))


def check_kinds(
    table: str,
    fields: Mapping[str, str],
    numbers: Iterable[str],
    dates: Container[str],
    marked: Container[str] = (),
) -> None:
    """Refuse columns of numbers or dates whose declared type is different.

    Dates may be text in their declared form; so may be numbers with ``marked`` missing values.
    """
    for name in numbers:
        if name in dates:
            if not (is_date(fields[name]) or fields[name] in ("text", "unknown")):
                raise DataError(
                    f"{table}: column {name!r} must hold dates, as its bounds say; it is of "
                    f"type {fields[name]}."
                )
        elif fields[name] not in ("number", "bool", "unknown", *(["text"] * (name in marked))):
            how = (
                " Numbers that are text beside a word for missing values need that word among the "
                "markers of [missing] in the bounds file."
                if fields[name] == "text"
                else ""
            )
            raise DataError(
                f"{table}: column {name!r} must hold numbers, as its bounds say; it is "
                f"of type {fields[name]}.{how}"
            )


def check_list(table: str, name: str, kind: str, levels: Sequence[str]) -> None:
    """Refuse a public list if the declared type can hold none of its entries."""
    if is_date(kind):
        raise DataError(
            f"{table}: column {name!r} holds dates, of type {kind}, and its bounds "
            "are a list of categories. In a bounds file write the first and the last date "
            "without quotes, such as [2018-01-01, 2023-12-31]."
        )
    if kind not in ("bool", "number", "text", "unknown", "null"):
        raise DataError(
            f"{table}: column {name!r} must hold text, numbers or true and false, as its bounds "
            f"list categories; it is of type {kind}."
        )
    if not levels:
        return
    if kind == "bool" and not {"false", "true"} & set(levels):
        raise DataError(
            f"{table}: column {name!r} holds true and false, which its list does not name. In a "
            "bounds file write { labels = [false, true] } for a target, { categories = [false, "
            "true] } for a feature."
        )
    if kind == "number" and all(level_number(level) is None for level in levels):
        raise DataError(
            f"{table}: column {name!r} holds numbers, and its list names none. In a bounds file "
            "write { labels = [0, 1] } for a target, { categories = [1, 2, 3] } for a feature."
        )


def check_kind(table: str, name: str, kind: str, date: bool, category: bool) -> None:
    """Refuse a column of a table in memory whose declared type contradicts its bounds."""
    if kind == "null":
        return
    if category:
        fits, what = kind in ("bool", "number", "text") or is_date(kind), "categories"
    elif date:
        fits, what = is_date(kind), "dates"
    else:
        fits, what = kind in ("bool", "number"), "numbers"
    if not fits:
        call = f"pd.to_datetime(X[{name!r}], format='%d.%m.%Y')"
        how = f" {call} makes dates of text that is written so." if date else ""
        raise DataError(f"{table}: column {name!r} must hold {what}, as its bounds say.{how}")
