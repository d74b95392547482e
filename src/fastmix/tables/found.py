"""A bounds file from a table, found privately, with what is known kept as it is."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._text import toml_string, visible
from fastmix._types import FloatArray
from fastmix.certificate import PrivacyCertificate
from fastmix.data.arrow import id_values, table_files
from fastmix.data.persons import Persons
from fastmix.errors import DataError
from fastmix.estimators import PrivateBounds
from fastmix.methods.ranges import Range
from fastmix.tables.read import columns_of, no_column, read_arrow, table_fields, text_counts
from fastmix.tables.schema import OTHER

_HEAD = """\
# Bounds for fastmix, found privately: for epsilon {epsilon:.6g} and delta {delta:.3g}.
# A fit that uses them spends its own budget beside that; both protect the same records.
# Bounds may be narrowed by public knowledge, and lines of columns that are not wanted deleted.
"""


def find_bounds(
    path: Path,
    target: str,
    finder: PrivateBounds,
    *,
    features: Iterable[str] | None = None,
    categories: Iterable[str] = (),
    known: Mapping[str, Any] | None = None,
    person: str | None = None,
) -> tuple[str, PrivacyCertificate]:
    """Return a bounds file for a table, a file or a folder of files, and what it spent.

    ``categories`` names columns of a CSV file that hold categories; other files declare them.
    ``known`` is a bounds file, perhaps in part filled in: its bounds are kept and cost nothing.
    With ``person``, a column of ids, the bounds protect persons.
    """
    files = table_files(path) if path.is_dir() else [path]
    fields = table_fields(files[0])
    given = _known(known or {}, target)
    others = [name for name in fields if name not in (target, person)]
    names = others if features is None else list(features)
    chosen, listed = [target, *(name for name in names if name != target)], set(categories)
    for name in (*chosen, *listed, *([] if person is None else [person])):
        if name not in fields:
            raise DataError(no_column(path.name, name, fields))
    if target in listed:
        raise ValueError("target must hold numbers; it is among the categories.")
    kinds = {name: "text" if name in listed else fields[name] for name in chosen}
    useless = [name for name in chosen if kinds[name] not in ("number", "bool", "text", "unknown")]
    asked = [name for name in chosen if name not in given and name not in useless]
    entries: dict[str, Any] = {name: given[name] for name in chosen if name in given}
    entries |= {name: [0, 1] for name in asked if kinds[name] == "bool"}
    texts = [name for name in asked if kinds[name] == "text"]
    numbers = [name for name in asked if kinds[name] in ("number", "unknown")]
    if target in useless or target in texts:
        raise DataError(f"{path.name}: column {target!r} must hold numbers to be the target.")
    columns = [name for name in (person,) if name is not None and name not in (*numbers, *texts)]
    tables = [read_arrow(file, numbers, [*texts, *columns]) for file in files]
    n = sum(table.num_rows for table in tables)
    if not n:
        raise DataError(f"{path.name} must have at least one row.")
    persons = None
    if person is not None:
        ids = [id_values(part) for table in tables for part in table[person].chunks]
        persons = finder.persons(np.concatenate(ids))
    values, levels = _counted(tables, numbers, texts, persons)
    found, lists, certificate = finder.find(values, levels, n, {}, persons)
    lines = {name: _line(name, entry) for name, entry in entries.items()}
    lines |= {name: _number(name, one) for name, one in found.items()}
    lines |= {name: _category(name, several) for name, several in lists.items()}
    lines |= {
        name: f"# {_key(name)} is of a type that cannot be used ({visible(kinds[name])})"
        for name in useless
    }
    target_line = lines.pop(target)
    if target_line.startswith("#"):
        target_line += f"\n{_key(target)} = []"
    spent = certificate.spent
    text = "\n".join(
        [
            _HEAD.format(epsilon=spent.epsilon, delta=spent.delta),
            "[target]",
            target_line,
            "",
            "[features]",
            *(lines[name] for name in chosen if name != target),
            "",
            "[missing]",
            'rule = "impute"',
            "",
            "[found]",
            f"epsilon = {spent.epsilon!r}",
            f"delta = {spent.delta!r}",
            f"coverage = {float(finder.coverage)!r}",
            f"certificate = {toml_string(certificate.digest)}",
            *([] if persons is None else [f"rows_per_person = {finder.max_rows_per_group}"]),
            "",
        ]
    )
    return text, certificate


def _known(data: Mapping[str, Any], target: str) -> dict[str, Any]:
    """Return what a bounds file, perhaps in part filled in, says of columns."""
    targets, features = data.get("target", {}), data.get("features", {})
    for name in targets:
        if name != target:
            raise ValueError(f"target must be that of the known bounds, {name!r}; got {target!r}.")
    return {name: entry for name, entry in {**targets, **features}.items() if entry != []}


def _counted(
    tables: list[Any], numbers: list[str], texts: list[str], persons: Persons | None
) -> tuple[dict[str, FloatArray], dict[str, Counter[str]]]:
    """Return columns of numbers and counts of levels of all tables together."""
    parts: dict[str, list[FloatArray]] = {name: [] for name in numbers}
    levels: dict[str, Counter[str]] = {name: Counter() for name in texts}
    start = 0
    for table in tables:
        columns = columns_of(table, numbers, {})
        stop = start + table.num_rows
        weights = None if persons is None else persons.weights[start:stop]
        start = stop
        for name in numbers:
            parts[name].append(columns.numbers[name])
        for name in texts:
            levels[name].update(text_counts(table[name], weights))
    return {name: np.concatenate(each) for name, each in parts.items()}, levels


def _number(name: str, found: Range | None) -> str:
    if found is None:
        return f"# {_key(name)}: nothing was found above the noise; bounds need public knowledge"
    share = f"  # at most about {max(0.1, 100.0 * found.outside):.1f}% of rows outside"
    return f"{_key(name)} = [{found.lower!r}, {found.upper!r}]{share}"


def _category(name: str, levels: tuple[str, ...]) -> str:
    if not set(levels) - {OTHER}:
        return f"# {_key(name)}: no level was found above the noise; a list needs public knowledge"
    return f"{_key(name)} = [{', '.join(map(toml_string, levels))}]"


def _line(name: str, entry: Any) -> str:
    """Return known bounds as they were given."""
    items = [toml_string(item) if isinstance(item, str) else repr(item) for item in entry]
    return f"{_key(name)} = [{', '.join(items)}]  # known"


def _key(name: str) -> str:
    """Return a name as a TOML key."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_string(name)
