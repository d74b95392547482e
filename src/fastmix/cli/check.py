"""``fastmix check``: what bounds do to a table, for the eyes of the data holder only."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fastmix.cli import _options as options
from fastmix.cli._console import print_table, print_text
from fastmix.data.delimited import TextFormat
from fastmix.data.encode import table_columns
from fastmix.files.check import check_table
from fastmix.schema import read_bounds

EXAMPLES = ("fastmix check people.csv --bounds bounds.toml",)

_WARNING = "FOR YOUR EYES ONLY: NOT PRIVATE. These shares come from the data without noise."


def command(
    data: options.Tables,
    bounds: Annotated[Path, typer.Option(help="Bounds file; see 'fastmix bounds'.")],
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
) -> None:
    """Compare a table with its bounds file, on this screen only: the result is NOT private.

    It shows shares of values outside bounds, of categories that are not in their list, and of
    missing values. Do not publish it, and do not choose bounds by it.
    """
    text = TextFormat(sep, decimal, thousands, encoding)
    public = read_bounds(bounds, partial(table_columns, data, text))
    found = check_table(data, public, text)
    print_text(_WARNING, style="bold")
    print_text("Do not publish them, and do not choose bounds by them: correct mistakes only.", "")
    rows = [
        [
            each.name,
            _share(each.missing, each.rows),
            _share(each.below, each.rows),
            _share(each.above, each.rows),
            _share(each.other, each.rows),
        ]
        for each in found
    ]
    print_table(["column", "missing", "below", "above", "other"], rows)
    remarks = [f"{each.name}: {'; '.join(each.remarks)}." for each in found if each.remarks]
    if remarks:
        print_text("", *remarks)
    print_text("", f"{found[0].rows:,} rows. {_WARNING}")


def _share(count: int, rows: int) -> str:
    """Return a share in percent; nothing for none, and never 0% for some."""
    if not count:
        return "-"
    share = 100.0 * count / rows
    return "<0.1%" if share < 0.1 else f"{share:.1f}%"
