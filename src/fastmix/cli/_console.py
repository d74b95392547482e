"""Output of commands: text for people, JSON for machines."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fastmix._text import visible
from fastmix.certificate import jsonable


def console() -> Console:
    """Return a console on the current standard output."""
    # A pipe has no width; tables must not be cut for one.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def print_text(*lines: str, style: str | None = None) -> None:
    """Print lines as plain text: markup and escape sequences in names have no effect."""
    for line in lines:
        console().print(Text(visible(line), style=style or ""), soft_wrap=True)


def print_json(data: Any) -> None:
    """Print data as one JSON document, floats in full, infinities as text."""
    print(json.dumps(jsonable(data), indent=2, allow_nan=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; every column but the first is aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(columns):
        table.add_column(Text(visible(name)), justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    console().print(table)
