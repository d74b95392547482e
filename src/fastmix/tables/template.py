"""A bounds file to fill in, from names and types of columns only."""

import re
from collections.abc import Iterable, Mapping

from fastmix._text import toml_string, visible
from fastmix.errors import DataError
from fastmix.tables.read import no_column

_HEAD = """\
# Bounds for fastmix: what values are possible, from public knowledge.
#
# - Never look at the data to choose them: bounds taken from the data leak what they were taken
#   from. Ask instead what anyone could say about the column: ages lie in 0 to 120.
# - A number gets [lower, upper]; values outside are moved to the nearer bound. Narrow bounds
#   need less noise, too narrow ones bias the fit.
# - A category gets the public list of its values in quotes: ["a", "b", "c"]. The first one is what
#   the others are compared with. Anything that is not in the list goes to a column "other".
# - Delete the lines of columns that the fit should not use.
"""

_MISSING = """\
[missing]
# "impute": a missing number becomes the middle of its bounds, a missing category "other".
# "drop": rows with a missing value are left out; the number of rows that remain becomes public.
rule = "impute"
# values = { column = 0 }   # a public value to put instead of the middle
"""

_HINTS = {
    "number": "[]  # a number: [lower, upper]",
    "bool": "[0, 1]  # true or false, as 1 or 0",
    "text": '[]  # a category: ["a", "b", ...]',
    "unknown": '[]  # a number: [lower, upper]; a category: ["a", "b", ...]',
}


def bounds_template(
    fields: Mapping[str, str], target: str, features: Iterable[str] | None = None
) -> str:
    """Return a bounds file to fill in, made without a look at any value.

    ``fields`` are kinds of columns as `table_fields` gives them; the features are all columns but
    the target by default.
    """
    names = [name for name in fields if name != target] if features is None else list(features)
    for name in (target, *names):
        if name not in fields:
            raise DataError(no_column("the table", name, fields))
    lines = [_HEAD, "[target]", f"{_key(target)} = {_HINTS['number']}", "", "[features]"]
    for name in names:
        if fields[name] in _HINTS:
            lines.append(f"{_key(name)} = {_HINTS[fields[name]]}")
        else:
            kind = visible(fields[name])  # the names of nested fields are part of it
            lines.append(f"# {_key(name)} is of a type that cannot be used ({kind})")
    return "\n".join([*lines, "", _MISSING])


def _key(name: str) -> str:
    """Return a name as a TOML key."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_string(name)
