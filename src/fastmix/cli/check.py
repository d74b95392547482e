"""``fastmix check``: what bounds do to a table, for the eyes of the data holder only."""

from pathlib import Path
from typing import Annotated

import typer

from fastmix._validation import value_error
from fastmix.cli import _options as options
from fastmix.cli._console import print_table, print_text
from fastmix.cli.plan import count_persons, print_choices
from fastmix.data.delimited import TextFormat
from fastmix.data.encode import table_chunks, table_columns
from fastmix.data.read import Table
from fastmix.files.check import check_table
from fastmix.planning.rows_per_person import RowsGuess, guess_from, row_choices, usual_guess
from fastmix.schema import PublicBounds, read_bounds

EXAMPLES = (
    "fastmix check people.csv --target income --bounds bounds.toml",
    "fastmix check visits.csv --bounds visits.toml --person patient --rows-per-person 1-40",
)

_WARNING = "FOR YOUR EYES ONLY: NOT PRIVATE. These shares come from the data without noise."


def command(
    data: options.Tables,
    bounds: Annotated[Path, typer.Option(help="Bounds file; see 'fastmix bounds'.")],
    target: Annotated[
        str, typer.Option(help="Column to predict; by default that of the bounds file.")
    ] = "",
    person: Annotated[
        str, typer.Option(help="Column of ids: check it, and advise on --max-rows of a fit.")
    ] = "",
    rows_per_person: Annotated[
        str, typer.Option(help="With --person: a public guess, 1-40 or 1:0.5,5:0.3,40:0.2.")
    ] = "",
    epsilon: Annotated[float, typer.Option(help="With --person: epsilon of the fit.")] = 1.0,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    no_header: options.NoHeader = False,
    query: options.SelectedRecords = None,
) -> None:
    """Compare a table with its bounds file, on this screen only: the result is NOT private.

    It shows shares of values outside bounds, of categories that are not in their list, and of
    missing values. Do not publish it, and do not choose bounds by it.
    """
    text = options.text_format(sep, decimal, thousands, encoding, no_header, bounds)
    data = options.asked_table(data, query)
    if rows_per_person and not person:
        raise ValueError("--rows-per-person must be given with --person.")
    guess = guess_from(rows_per_person) if rows_per_person else None

    def covered() -> list[str]:
        """Return the columns that patterns may cover: all but ids."""
        return [name for name in table_columns(data, text) if name != person]

    public = read_bounds(bounds, covered)
    if target not in ("", public.target.name):
        raise value_error("target", f"be that of the bounds file, {public.target.name!r}", target)
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
    if person:
        _advise(data, public, text, person, guess, epsilon)


def _advise(
    data: Table,
    public: PublicBounds,
    text: TextFormat,
    person: str,
    guess: RowsGuess | None,
    eps: float,
) -> None:
    """Print which number of rows per person to choose, from public numbers and a guess alone."""
    table = table_chunks(data, public, person=person, text=text)
    rows = table.n
    if rows is None:
        rows = sum(len(y) for chunk in table.chunks for _, y in chunk.read())
    persons = count_persons(table, rows)
    known = usual_guess(rows, persons) if guess is None else guess
    print_text(
        "",
        f"{persons:,} persons with {rows / persons:.3g} rows on average: public, unless you "
        f"hide them. {'The usual guess' if guess is None else 'Your guess'} has {known.mean:.3g} "
        "rows per person. How rows divide among persons is private, so it is not shown and does "
        "not change the advice.",
        "",
    )
    print_choices(row_choices(persons, len(public.columns()), known, eps))


def _share(count: int, rows: int) -> str:
    """Return a share in percent; nothing for none, and never 0% for some."""
    if not count:
        return "-"
    share = 100.0 * count / rows
    return "<0.1%" if share < 0.1 else f"{share:.1f}%"
