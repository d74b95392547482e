"""``fastmix check``: what bounds do to a table, for the eyes of the data holder only."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fastmix.cli import _options as options
from fastmix.cli._console import print_table, print_text
from fastmix.cli.plan import count_persons, count_rows, print_choices
from fastmix.files.check import check_table
from fastmix.planning.rows_per_person import RowsGuess, guess_from, row_choices, usual_guess
from fastmix.schema import PublicBounds

EXAMPLES = (
    "fastmix check people.csv --target income --bounds bounds.toml",
    "fastmix check visits.csv --bounds visits.toml --person patient --typical-rows 1-40",
)

_WARNING = "FOR YOUR EYES ONLY: NOT PRIVATE. These shares come from the data without noise."


@dataclass(frozen=True)
class AskedCheck(options.TableOptions):
    """The options of ``fastmix check``."""

    data: options.Tables
    bounds: Annotated[Path, typer.Option(help="Bounds file; see 'fastmix bounds'.")]
    target: Annotated[
        str, typer.Option(help="Column to predict; by default that of the bounds file.")
    ] = ""
    person: Annotated[
        str, typer.Option(help="Column of ids: check it, and advise on --max-rows of a fit.")
    ] = ""
    typical_rows: Annotated[str, typer.Option(help=f"With --person: {options.TYPICAL_ROWS}")] = ""
    epsilon: Annotated[float, typer.Option(help="With --person: epsilon of the fit.")] = 1.0


@options.grouped(AskedCheck)
def command(asked: AskedCheck) -> None:
    """Compare a table with its bounds file, on this screen only: the result is NOT private.

    It shows shares of values outside bounds, of categories that are not in their list, and of
    missing values. Do not publish it, and do not choose bounds by it.
    """
    if asked.typical_rows and not asked.person:
        raise ValueError("--typical-rows must be given with --person.")
    guess = guess_from(asked.typical_rows, "--typical-rows") if asked.typical_rows else None
    public = asked.public(asked.bounds, asked.target, asked.person)
    found = check_table(asked.data, public, asked.text)
    print_text(_WARNING, style="bold")
    print_text("Do not publish them, and do not choose bounds by them: correct mistakes only.", "")
    kinds = ("missing", "below", "above", "other")
    shares = [[_share(getattr(each, kind), each.rows) for kind in kinds] for each in found]
    rows = [[each.name, *own] for each, own in zip(found, shares, strict=True)]
    print_table(["column", *kinds], rows)
    remarks = [f"{each.name}: {'; '.join(each.remarks)}." for each in found if each.remarks]
    if remarks:
        print_text("", *remarks)
    print_text("", f"{found[0].rows:,} rows. {_WARNING}")
    if asked.person:
        _advise(asked, public, guess)


def _advise(asked: AskedCheck, public: PublicBounds, guess: RowsGuess | None) -> None:
    """Print which number of rows per person to choose, from public numbers and a guess alone."""
    table = asked.chunks(public)
    rows, persons = count_rows(table), count_persons(table)
    known = usual_guess(rows, persons) if guess is None else guess
    print_text(
        "",
        f"{persons:,} persons with {rows / persons:.3g} rows on average: public, unless you "
        f"hide them. {'The usual guess' if guess is None else 'Your guess'} has {known.mean:.3g} "
        "rows per person. How rows divide among persons is private, so it is not shown and does "
        "not change the advice.",
        "",
    )
    print_choices(row_choices(persons, len(public.columns()), known, asked.epsilon))


def _share(count: int, rows: int) -> str:
    """Return a share in percent; nothing for none, and never 0% for some."""
    if not count:
        return "-"
    share = 100.0 * count / rows
    return "<0.1%" if share < 0.1 else f"{share:.1f}%"
