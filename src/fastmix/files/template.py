"""Empty bounds files, made from names and types of columns only."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template

from fastmix._text import toml_key, toml_value, visible
from fastmix.data.read import no_column
from fastmix.errors import DataError
from fastmix.schema.kinds import is_date, looks_like_id

_FILE = Path(__file__).with_name("template.toml")

_HINTS = {
    "number": "[]  # a number: [lower, upper]; codes: { categories = [1, 2, 3] }",
    "date": "[]  # a date: [2000-01-01, 2025-12-31], as days since the first",
    "bool": "[0, 1]  # true or false, as 1 or 0",
    "text": '[]  # a category: ["a", "b", ...]',
    "unknown": '[]  # a number: [lower, upper]; a category: ["a", "b", ...]',
}

#: Hints for the target; labels are for a logistic regression.
_TARGETS = {
    "bool": "[]  # true or false, for --family logistic: { labels = [false, true] }",
    "text": '[]  # labels, for --family logistic: ["no", "yes"]',
    "unknown": '[]  # a number: [lower, upper]; for --family logistic labels: ["no", "yes"]',
}
#: What to do with a column of ids.
ID = "an id by its name, left out; to protect persons with several rows: fit --person"
_NUMBER = "[]  # a number: [lower, upper]"


def bounds_template(
    fields: Mapping[str, str],
    target: str,
    features: Iterable[str] | None = None,
    columns: Sequence[str] = (),
) -> str:
    """Return a bounds file to fill in; no value of the table is read.

    ``fields`` are kinds of columns as `table_fields` gives them; the features are all columns but
    the target by default. ``columns`` are the names of all columns of a file without such a line.
    """
    names = [name for name in fields if name != target] if features is None else list(features)
    for name in (target, *names):
        if name not in fields:
            raise DataError(no_column("the table", name, fields))
    lines = []
    for name in names:
        if features is None and looks_like_id(name):
            lines.append(f"{toml_key(name)} = false  # {ID}")
            continue
        kind = "date" if is_date(fields[name]) else fields[name]
        if kind in _HINTS:
            lines.append(f"{toml_key(name)} = {_HINTS[kind]}")
        else:
            kind = visible(fields[name])  # the names of nested fields are part of it
            lines.append(f"# {toml_key(name)} is of a type that cannot be used ({kind})")
    made = {
        "columns": f"\ncolumns = {toml_value([*columns])}  # change them here\n" if columns else "",
        "target": f"{toml_key(target)} = {_TARGETS.get(fields[target], _NUMBER)}",
        "features": "\n".join(lines),
    }
    return Template(_FILE.read_text(encoding="utf-8")).substitute(made)
