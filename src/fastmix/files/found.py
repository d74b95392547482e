"""A bounds file from a table, found privately, with what is known kept as it is."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._text import toml_key, toml_string, toml_value, visible
from fastmix._types import FloatArray
from fastmix.certificate import PrivacyCertificate
from fastmix.data.arrow import id_values, table_files
from fastmix.data.columns import columns_of
from fastmix.data.delimited import TextFormat
from fastmix.data.levels import text_counts
from fastmix.data.persons import Persons
from fastmix.data.read import no_column, read_arrow, table_fields
from fastmix.engine.ranges import Range
from fastmix.errors import DataError
from fastmix.estimators import PrivateBounds
from fastmix.schema.entries import factors_of, table
from fastmix.schema.features import OTHER
from fastmix.schema.kinds import is_date
from fastmix.show.progress import progress

_HEAD = """\
# Bounds for fastmix, found privately: for epsilon {epsilon:.6g} and delta {delta:.3g}.
# A fit that uses them spends its own budget in addition; both protect the same records.
# You may narrow bounds by public knowledge, and delete the lines of columns that you do not use.
"""


def find_bounds(
    path: Path,
    target: str,
    finder: PrivateBounds,
    *,
    features: Iterable[str] | None = None,
    categories: Iterable[str] = (),
    dates: Iterable[str] = (),
    known: Mapping[str, Any] | None = None,
    person: str | None = None,
    text: TextFormat | None = None,
) -> tuple[str, PrivacyCertificate]:
    """Return a bounds file for a table, a file or a folder of files, and what it spent.

    ``categories`` and ``dates`` name columns of a CSV file, which has no types. ``known`` holds the
    tables of a bounds file, written out and perhaps in part filled in: its bounds are kept and
    cost nothing. With ``person``, a column of ids, the bounds protect persons. ``text`` says how a
    CSV file is written.
    """
    text = text or TextFormat()
    files = table_files(path) if path.is_dir() else [path]
    fields = table_fields(files[0], text)
    given, missing = _known(known or {}, target)
    out = {name for name, entry in given.items() if entry is False}
    terms = [name for name, entry in given.items() if entry is True]
    others = [name for name in fields if name not in (target, person) and name not in out]
    names = [name for name in (others if features is None else features) if name not in terms]
    chosen, listed = [target, *(name for name in names if name != target)], set(categories)
    days = set(dates)
    for name in (*chosen, *listed, *days, *([] if person is None else [person])):
        if name not in fields:
            raise DataError(no_column(path.name, name, fields, files[0], text))
    if target in listed or target in days:
        kind = "categories" if target in listed else "dates"
        raise ValueError(f"target must hold numbers; it is among the {kind}.")
    kinds = {name: _kind(name, fields[name], listed, days) for name in chosen}
    entries = {name: given[name] for name in chosen if name in given and name not in out}
    asked = {name: kind for name, kind in kinds.items() if name not in entries}
    entries |= {name: [0, 1] for name, kind in asked.items() if kind == "bool"}
    texts = [name for name, kind in asked.items() if kind == "text"]
    numbers = [name for name, kind in asked.items() if kind in ("number", "unknown")]
    if target not in (*entries, *numbers):
        raise DataError(f"{path.name}: column {target!r} must hold numbers to be the target.")
    columns = [name for name in (person,) if name is not None and name not in (*numbers, *texts)]
    with progress("finding bounds", verbose=False) as bar:
        tables = []
        for k, file in enumerate(files):
            bar.say("reading", k, len(files))
            tables.append(read_arrow(file, numbers, [*texts, *columns], text))
        bar.say("counting")
    n = sum(part.num_rows for part in tables)
    if not n:
        raise DataError(f"{path.name} must have at least one row.")
    persons = None
    if person is not None:
        ids = [id_values(part) for each in tables for part in each[person].chunks]
        persons = finder.persons(*ids)
    values, levels = _counted(tables, numbers, texts, persons)
    found, lists, certificate = finder.find(values, levels, n, {}, persons)
    lines = {name: _line(name, entry) for name, entry in entries.items()}
    lines |= {name: _number(name, one) for name, one in found.items()}
    lines |= {name: _category(name, several) for name, several in lists.items()}
    lines |= {name: _unused(name, asked[name]) for name in asked if name not in lines}
    bounded = {name for name, line in lines.items() if not line.startswith("#")}
    lines |= {name: _term(name, bounded) for name in terms if _columns(name) <= {*chosen}}
    target_line = lines.pop(target)
    if target_line.startswith("#"):
        target_line += f"\n{toml_key(target)} = []"
    kept = {name: value for name, value in missing.get("values", {}).items() if name in bounded}
    spent = certificate.spent
    made = "\n".join(
        [
            _HEAD.format(epsilon=spent.epsilon, delta=spent.delta),
            "[target]",
            target_line,
            "",
            "[features]",
            *(lines[name] for name in (*chosen, *terms) if name in lines),
            "",
            "[missing]",
            f"rule = {toml_value(missing.get('rule', 'impute'))}",
            *([f"values = {toml_value(kept)}"] if kept else []),
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
    return made, certificate


def _known(data: Mapping[str, Any], target: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return what a bounds file, perhaps in part filled in, says of columns and missing values."""
    targets, features = table(data, "target"), table(data, "features")
    for name in targets:
        if name != target:
            raise ValueError(f"target must be that of the known bounds, {name!r}; got {target!r}.")
    if "found" in data:
        raise ValueError(
            "known bounds must be public; these have a table [found], so they were found "
            "privately. Find the bounds of all columns together."
        )
    entries = {**targets, **features}
    return {name: entry for name, entry in entries.items() if entry != []}, table(data, "missing")


def _kind(name: str, kind: str, listed: set[str], days: set[str]) -> str:
    """Return the kind of a column: as the user says, or as the file declares."""
    if name in listed:
        return "text"
    return "date" if name in days or is_date(kind) else kind


def _counted(
    tables: list[Any], numbers: list[str], texts: list[str], persons: Persons | None
) -> tuple[dict[str, FloatArray], dict[str, Counter[str]]]:
    """Return columns of numbers and counts of levels of all tables together."""
    parts: dict[str, list[FloatArray]] = {name: [] for name in numbers}
    levels: dict[str, Counter[str]] = {name: Counter() for name in texts}
    start = 0
    for part in tables:
        columns = columns_of(part, numbers, {})
        stop = start + part.num_rows
        weights = None if persons is None else persons.weights[start:stop]
        start = stop
        for name in numbers:
            parts[name].append(columns.numbers[name])
        for name in texts:
            levels[name].update(text_counts(part[name], weights))
    return {name: np.concatenate(each) for name, each in parts.items()}, levels


def _number(name: str, found: Range | None) -> str:
    if found is None:
        return (
            f"# {toml_key(name)}: nothing was found above the noise; bounds need public knowledge"
        )
    share = f"  # at most about {max(0.1, 100.0 * found.outside):.1f}% of rows outside"
    return f"{toml_key(name)} = [{found.lower!r}, {found.upper!r}]{share}"


def _category(name: str, levels: tuple[str, ...]) -> str:
    if not set(levels) - {OTHER}:
        return (
            f"# {toml_key(name)}: no level was found above the noise; a list needs public knowledge"
        )
    return f"{toml_key(name)} = [{', '.join(map(toml_string, levels))}]"


def _line(name: str, entry: Any) -> str:
    """Return known bounds as they were given."""
    return f"{toml_key(name)} = {toml_value(entry)}  # known"


def _unused(name: str, kind: str) -> str:
    """Say why nothing is found for a column."""
    if kind == "date":
        return f"# {toml_key(name)}: dates need public knowledge, such as [2000-01-01, 2025-12-31]"
    return f"# {toml_key(name)} is of a type that cannot be used ({visible(kind)})"


def _term(name: str, bounded: set[str]) -> str:
    """Return a known term, unless a column of it has no bounds."""
    return f"{'' if _columns(name) <= bounded else '# '}{toml_key(name)} = true  # known"


def _columns(term: str) -> set[str]:
    return {name for name, _ in factors_of(term)}
