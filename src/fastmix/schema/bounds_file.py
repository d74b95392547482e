"""Reading bounds files: included files and patterns are replaced by one entry per column."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fastmix._validation import value_error
from fastmix.schema.bounds import PublicBounds, column_names
from fastmix.schema.entries import factors_of, markers_of, table, unfilled

#: Bytes of a bounds file: enough for a million categories.
_LARGEST_FILE = 1 << 25

#: Largest depth of included files.
_DEEPEST = 8


def read_bounds(path: Path, columns: Callable[[], Iterable[str]] | None = None) -> PublicBounds:
    """Read a bounds file, a TOML file of the form that `fastmix.schema.bounds` documents.

    ``columns`` gives the names of the table's columns, for patterns and included files.
    """
    data = read_tables(path, columns)
    try:
        _check_filled(path, data)
        return PublicBounds.from_dict(data)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from None


def named_columns(path: Path) -> tuple[str, ...]:
    """Return the names that a bounds file gives to the columns of a table; none by default."""
    return column_names(_toml(path))


def read_tables(path: Path, columns: Callable[[], Iterable[str]] | None = None) -> dict[str, Any]:
    """Return the tables of a bounds file, with included files and patterns written out."""
    data = _toml(path)
    try:
        return written_out(data, columns, path.parent)
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
    """Replace ``include`` and patterns by entries; columns that are left out keep ``false``."""
    data = dict(data)
    files = _included(data.pop("include", []), depth)
    if not files and not any(_is_pattern(*item) for item in table(data, "features").items()):
        return data
    if columns is None:
        raise ValueError(
            "a bounds file with patterns or included files needs the names of the table's columns."
        )
    names = list(columns())
    target = table(data, "target")
    missing = dict(table(data, "missing"))
    values = dict(table(missing, "values"))
    markers = markers_of(missing)
    others = [name for name in names if name not in target]
    features = _matched(table(data, "features"), others, strict=depth == 0)
    for file in files:
        try:
            shared = written_out(_toml(folder / file), columns, (folder / file).parent, depth + 1)
        except OSError:
            raise value_error("include", "name a file that can be read", file) from None
        target = target or table(shared, "target")
        for name, entry in {**table(shared, "target"), **table(shared, "features")}.items():
            if name not in target and _applies(name, entry, names):
                features.setdefault(name, entry)
        there = table(shared, "missing")
        if "rule" in there:
            missing.setdefault("rule", there["rule"])
        for name, value in table(there, "values").items():
            if name in target or features.get(name, False) is not False:
                values.setdefault(name, value)
        for name, own in markers_of(there).items():
            if name == "*" or name in target or features.get(name, False) is not False:
                markers.setdefault(name, own)
        data = _with_found(data, shared)
    if values:
        missing["values"] = values
    if markers:
        missing["markers"] = {name: list(own) for name, own in markers.items()}
    return {**data, "target": target, "features": features, "missing": missing}


def _included(files: Any, depth: int) -> list[str]:
    """Return the names of included files."""
    files = [files] if isinstance(files, str) else files
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise value_error("include", "be the name of a file, or a list of names", files)
    if depth > _DEEPEST:
        raise value_error("include", f"be nested at most {_DEEPEST} times", files)
    return files


def _with_found(data: dict[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Take the table [found] from an included file; refuse tables of two releases."""
    if "found" not in shared:
        return data
    if data.get("found", shared["found"]) != shared["found"]:
        raise ValueError(
            "a bounds file and the files that it includes must have one table [found] at most: "
            "each says what was spent on its own bounds. Find the bounds of all columns together."
        )
    return {**data, "found": shared["found"]}


def _applies(name: str, entry: Any, names: Sequence[str]) -> bool:
    """Tell whether an entry of an included file is for a table with these columns."""
    if entry is True:
        return all(factor in names for factor, _ in factors_of(name))
    return name in names


def _matched(entries: Mapping[str, Any], names: Sequence[str], *, strict: bool) -> dict[str, Any]:
    """Replace each pattern by the columns that match it and have no entry of their own."""
    found: dict[str, Any] = {}
    taken: dict[str, str] = {}
    for name, entry in sorted(entries.items(), key=lambda each: each[0] == "*"):  # "*" for the rest
        if not _is_pattern(name, entry):
            found[name] = entry
            continue
        if strict and not any(fnmatchcase(each, _escaped(name)) for each in names):
            raise ValueError(
                f"Pattern {name!r} matches no column of the table. Only * stands for other "
                "characters; ? and [0-9] stand for themselves."
            )
        for each in names:
            if fnmatchcase(each, _escaped(name)) and (each not in entries or each == name):
                if name not in ("*", taken.setdefault(each, name)):
                    raise ValueError(
                        f"Patterns {taken[each]!r} and {name!r} both match the column {each!r}. "
                        "Give this column an entry of its own, or change a pattern."
                    )
                found.setdefault(each, entry)
    return found


def _check_filled(path: Path, data: Mapping[str, Any]) -> None:
    """Refuse columns without bounds with a hint, if patterns of the file would cover them all."""
    empty = [name for name, entry in table(data, "features").items() if entry == []]
    if not empty or [] in table(data, "target").values():
        return
    entries = table(_toml(path), "features").items()
    patterns = [_escaped(name) for name, entry in entries if _is_pattern(name, entry) and entry]
    if all(any(fnmatchcase(name, pattern) for pattern in patterns) for name in empty):
        raise ValueError(unfilled(empty, covered=True))


def _is_pattern(name: str, entry: Any) -> bool:
    return "*" in name and not isinstance(entry, bool)


def _escaped(pattern: str) -> str:
    """Return a glob pattern in which only the asterisk is special."""
    return re.sub(r"([?\[])", r"[\1]", pattern)
