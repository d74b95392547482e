"""What only the data office knows about a release: who publishes it, why, and from what."""

import datetime
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastmix._validation import value_error

#: Entries of a file of papers, all optional, with what each is for.
ENTRIES = {
    "title": "name of the release",
    "curator": "who publishes it and answers for the data; a list if there are several",
    "contact": "where to ask",
    "purpose": "what the release is for",
    "region": "where the people live, or whose law applies",
    "sector": "Technology, Healthcare, Education, Government, Energy or Finance",
    "published": "day of publication, by default the day of the fit",
    "reason": "why this epsilon and delta",
    "bounds": "where the bounds come from; a note in the bounds file is about its column alone",
    "preparation": "how the data were prepared, what was looked at, how settings were chosen",
    "access": "who can see the raw data, and how they are kept",
    "releases": "what else is, or will be, released from the same data",
    "sources": "links to descriptions of the release",
    "authors": "who filled in these entries; a list if there are several",
}
_LISTS = ("curator", "authors")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")

#: Characters of an entry.
_LONGEST = 4_000


def check_papers(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries in their order, as text and lists of text; reject all others."""
    if unknown := sorted(set(given) - set(ENTRIES)):
        raise value_error("papers", f"have entries among {', '.join(ENTRIES)}", unknown)
    return {name: _entry(name, given[name]) for name in ENTRIES if name in given}


def _entry(name: str, value: Any) -> Any:
    if name in _LISTS:
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(map(_is_text, listed)):
            raise value_error(name, "be text, or a list of texts", value)
        return listed
    if name == "published":
        try:
            return datetime.date.fromisoformat(str(value)).isoformat()
        except ValueError:
            raise value_error(name, "be a day such as 2026-12-31", value) from None
    if name == "sector" and value not in SECTORS:
        raise value_error(name, f"be one of {', '.join(SECTORS)}", value)
    if not _is_text(value):
        raise value_error(name, f"be text of at most {_LONGEST:,} characters", value)
    return value.strip()


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= _LONGEST


def read_papers(path: Path) -> dict[str, Any]:
    """Read a file of papers, a TOML file with entries that `ENTRIES` lists."""
    try:
        return check_papers(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:  # also not TOML, not UTF-8
        raise ValueError(f"{path.name}: {error}") from None
