"""Bounds files found privately from a table; known bounds stay as they are."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fastmix._text import toml_key, toml_string, toml_value, visible
from fastmix._types import FloatArray
from fastmix.certificate import PrivacyCertificate
from fastmix.data.arrow import id_values
from fastmix.data.columns import columns_of
from fastmix.data.delimited import TextFormat
from fastmix.data.levels import text_counts
from fastmix.data.persons import Persons
from fastmix.data.read import Table, no_column, parts, read_arrow, table_fields
from fastmix.engine.ranges import Range
from fastmix.errors import DataError
from fastmix.estimators import PrivateBounds
from fastmix.files.template import ID
from fastmix.schema.entries import column_markers, factors_of, table
from fastmix.schema.features import OTHER
from fastmix.schema.kinds import is_date, looks_like_id
from fastmix.show.progress import progress

_HEAD = """\
# Bounds for fastmix, found privately: for epsilon {epsilon:.6g} and delta {delta:.3g}.
# A fit that uses them spends its own budget in addition; both protect the same records.
# You may narrow bounds by public knowledge, and delete the lines of columns that you do not use.
"""


def find_bounds(
    path: Table,
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
    """Return a bounds file for a table, a file or a folder of files, and its certificate.

    ``categories`` and ``dates`` name columns of a CSV file, which has no types. ``known`` contains
    the tables of a bounds file, perhaps filled in only in part: its bounds are kept and cost
    nothing. With ``person``, a column of ids, the bounds protect persons. ``text`` describes the
    format of a CSV file.
    """
    text = text or TextFormat()
    files = parts(path)
    fields = table_fields(files[0], text)
    given, missing = _known(known or {}, target)
    text = replace(text, markers=tuple(column_markers(missing, fields).items()))
    left_out = {name for name, entry in given.items() if entry is False}
    terms = [name for name, entry in given.items() if entry is True]
    ids: list[str] = []
    if features is None:
        ids = [name for name in fields if looks_like_id(name) and name not in (target, *given)]
        features = [name for name in fields if name not in (person, *ids, *left_out)]
    skipped = [name for name in ids if name != person]
    chosen = [target, *(name for name in features if name not in (target, *terms))]
    listed, days = set(categories), set(dates)
    for name in (*chosen, *listed, *days, *([] if person is None else [person])):
        if name not in fields:
            raise DataError(no_column(path.name, name, fields, files[0], text))
    if target in listed or target in days:
        kind = "categories" if target in listed else "dates"
        raise ValueError(f"target must hold numbers; it is among the {kind}.")
    entries = {name: given[name] for name in chosen if name in given and name not in left_out}
    kinds = {name: _kind(name, fields[name], listed, days) for name in chosen}
    asked = {name: kind for name, kind in kinds.items() if name not in entries}
    entries |= {name: [0, 1] for name, kind in asked.items() if kind == "bool"}
    texts = [name for name, kind in asked.items() if kind == "text"]
    numbers = [name for name, kind in asked.items() if kind in ("number", "unknown")]
    if target not in (*entries, *numbers):
        raise DataError(f"{path.name}: column {target!r} must hold numbers to be the target.")
    found, lists, certificate = _release(path.name, files, finder, numbers, texts, person, text)
    lines = {name: f"{toml_key(name)} = {toml_value(e)}  # known" for name, e in entries.items()}
    lines |= {name: _number(name, one) for name, one in found.items()}
    lines |= {name: _category(name, several) for name, several in lists.items()}
    lines |= {name: _unused(name, asked[name]) for name in asked if name not in lines}
    bounded = {name for name, line in lines.items() if not line.startswith("#")}
    lines |= {name: _term(name, bounded) for name in terms if _columns(name) <= {*chosen}}
    lines |= {name: f"{toml_key(name)} = false  # {ID}" for name in skipped}
    lines = {name: lines[name] for name in (*chosen, *terms, *skipped) if name in lines}
    most = None if person is None else finder.max_rows_per_group
    return _written(
        target, lines, missing, bounded, certificate, finder.coverage, most
    ), certificate


def _release(
    name: str,
    files: list[Table],
    finder: PrivateBounds,
    numbers: list[str],
    texts: list[str],
    person: str | None,
    text: TextFormat,
) -> tuple[dict[str, Range | None], dict[str, tuple[str, ...]], PrivacyCertificate]:
    """Read the columns, and release their ranges and levels."""
    ids = [] if person is None or person in (*numbers, *texts) else [person]
    with progress("finding bounds", verbose=False) as bar:
        tables = []
        for k, file in enumerate(files):
            bar.say("reading", k, len(files))
            tables.append(read_arrow(file, numbers, [*texts, *ids], text))
        bar.say("counting")
    n = sum(part.num_rows for part in tables)
    if not n:
        raise DataError(f"{name} must have at least one row.")
    persons = None
    if person is not None:
        persons = finder.persons(*(id_values(part) for t in tables for part in t[person].chunks))
    values, levels = _counted(tables, numbers, texts, persons, text)
    return finder.find(values, levels, n, {}, persons)


def _written(
    target: str,
    lines: dict[str, str],
    missing: Mapping[str, Any],
    bounded: set[str],
    certificate: PrivacyCertificate,
    coverage: float,
    rows_per_person: int | None,
) -> str:
    """Return the text of a bounds file with these lines."""
    first, *others = [lines[target], *(line for name, line in lines.items() if name != target)]
    if first.startswith("#"):
        first += f"\n{toml_key(target)} = []"
    kept = {name: value for name, value in missing.get("values", {}).items() if name in bounded}
    marked = {name: [*own] for name, own in column_markers(missing, bounded).items()}
    spent = certificate.spent
    return "\n".join(
        [
            _HEAD.format(epsilon=spent.epsilon, delta=spent.delta),
            "[target]",
            first,
            "",
            "[features]",
            *others,
            "",
            "[missing]",
            f"rule = {toml_value(missing.get('rule', 'impute'))}",
            *([f"values = {toml_value(kept)}"] if kept else []),
            *([f"markers = {toml_value(marked)}"] if marked else []),
            "",
            "[found]",
            f"epsilon = {spent.epsilon!r}",
            f"delta = {spent.delta!r}",
            f"coverage = {float(coverage)!r}",
            f"certificate = {toml_string(certificate.digest)}",
            *([] if rows_per_person is None else [f"rows_per_person = {rows_per_person}"]),
            "",
        ]
    )


def _known(data: Mapping[str, Any], target: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return the entries of a bounds file for columns, and its table [missing]."""
    targets, features = table(data, "target"), table(data, "features")
    for name in targets:
        if name != target:
            raise ValueError(
                f"target must be the target of the known bounds, {name!r}; got {target!r}."
            )
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
    tables: list[Any],
    numbers: list[str],
    texts: list[str],
    persons: Persons | None,
    text: TextFormat,
) -> tuple[dict[str, FloatArray], dict[str, Counter[str]]]:
    """Return columns of numbers and counts of levels of all tables together."""
    parts: dict[str, list[FloatArray]] = {name: [] for name in numbers}
    levels: dict[str, Counter[str]] = {name: Counter() for name in texts}
    start = 0
    for part in tables:
        columns = columns_of(part, numbers, {}, text)
        stop = start + part.num_rows
        weights = None if persons is None else persons.weights[start:stop]
        start = stop
        for name in numbers:
            parts[name].append(columns.numbers[name])
        for name in texts:
            counts, absent = text_counts(part[name], weights), dict(text.markers).get(name, ())
            levels[name].update({key: counts[key] for key in counts if key not in absent})
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


def _unused(name: str, kind: str) -> str:
    """Return a comment on a column for which bounds cannot be found."""
    if kind == "date":
        return f"# {toml_key(name)}: dates need public knowledge, such as [2000-01-01, 2025-12-31]"
    return f"# {toml_key(name)} is of a type that cannot be used ({visible(kind)})"


def _term(name: str, bounded: set[str]) -> str:
    """Return the line of a known term: a comment if one of its columns has no bounds."""
    return f"{'' if _columns(name) <= bounded else '# '}{toml_key(name)} = true  # known"


def _columns(term: str) -> set[str]:
    return {name for name, _ in factors_of(term)}
