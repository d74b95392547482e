"""``fastmix bounds``: a bounds file to fill in, or one found privately."""

import shlex
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix._validation import value_error
from fastmix.accounting import BudgetAccountant, noted
from fastmix.certificate import PrivacyCertificate, headline
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_text
from fastmix.cli._files import check_output, fill, writing
from fastmix.data.encode import table_columns
from fastmix.data.read import check_columns, parts, table_fields, table_paths
from fastmix.errors import DataError
from fastmix.estimators import PrivateBounds
from fastmix.files.found import find_bounds
from fastmix.files.template import bounds_template
from fastmix.schema.bounds_file import read_tables
from fastmix.schema.features import ISO
from fastmix.show.progress import progress

EXAMPLES = (
    "fastmix bounds people.csv --target income --out people.toml",
    "fastmix bounds people.csv --target income --categories city --out kinds.toml",
    "fastmix bounds people.parquet --target income --features age,city",
    "fastmix bounds people.parquet --target income --epsilon 0.1 --out found.toml",
    "fastmix bounds people.csv --target income --categories city --epsilon 0.1 --delta 1e-7",
)

#: Bytes that are reserved for a column of a bounds file, and for its other lines, with a margin.
_ROOM = 1 << 12

#: Rows per person in the next step that is shown, where none are given.
_MAX_ROWS = 10


@dataclass(frozen=True)
class AskedBounds(options.TableOptions):
    """The options of ``fastmix bounds``."""

    data: options.Tables
    target: options.Target
    features: Annotated[
        str, typer.Option(help="Columns to use, separated by commas; all by default.")
    ] = ""
    categories: Annotated[
        str,
        typer.Option(help="Columns of categories in a CSV file, separated by commas."),
    ] = ""
    dates: Annotated[
        str, typer.Option(help="Columns of dates in a CSV file, separated by commas.")
    ] = ""
    epsilon: Annotated[
        float | None,
        typer.Option(help="Find the bounds privately, at this cost; by default write a template."),
    ] = None
    delta: options.Delta = None
    coverage: Annotated[
        float, typer.Option(help="Share of rows that the bounds should contain.")
    ] = 0.999
    known: Annotated[
        Path | None, typer.Option(help="Bounds file with known bounds, which cost nothing.")
    ] = None
    person: Annotated[
        str, typer.Option(help="Column of ids; protect persons, see 'fastmix fit --person'.")
    ] = ""
    max_rows: Annotated[
        int | None,
        typer.Option(help=f"With --person: {options.COUNTING}.", min=1),
    ] = None
    ledger: options.LedgerFile = None
    label: options.Label = ""
    out: Annotated[Path | None, typer.Option(help="File to write; by default the screen.")] = None
    force: options.Force = False
    json: Annotated[bool, typer.Option("--json", help="Print names and kinds as JSON.")] = False

    @property
    def names(self) -> list[str] | None:
        """Names of the columns to use; None for all."""
        return options.names_in(self.features) or None


@options.grouped(AskedBounds)
def command(asked: AskedBounds) -> None:
    """Write a bounds file to fill in; with --epsilon, find the bounds privately."""
    text_format, out = asked.text, asked.out
    if out is not None:
        given = (*table_paths(asked.data), asked.known, asked.ledger)
        inputs = [path for path in given if path is not None]
        check_output(out, force=asked.force, inputs=inputs)
    said: tuple[str, ...] = ()
    text, told, kind = "", dict[str, Any](), ""
    # Room on the disk is there before the ledger is charged.
    room = 0 if out is None else _ROOM * (8 + len(table_columns(asked.data, text_format)))
    file = nullcontext() if out is None else writing(out, force=asked.force, room=room)
    try:
        with file as temporary:
            if asked.epsilon is None:
                fields = _fields(asked)
                named = () if text_format.has_names else table_columns(asked.data, text_format)
                text = bounds_template(fields, asked.target, asked.names, named)
                told, kind = {"target": asked.target, "columns": fields}, fields[asked.target]
            else:
                text, certificate = _found(asked, asked.epsilon)
                said = (f"Found bounds: {headline(certificate)}",)
                told = {
                    "target": asked.target,
                    "epsilon": certificate.epsilon,
                    "delta": certificate.delta,
                }
            if temporary is not None:
                fill(temporary, text.encode())
    except OSError as error:
        if not said:
            raise
        print_text(*text.splitlines())  # paid for: not lost with the file
        raise DataError(
            f"The bounds above could not be written to {str(out)!r}: {error.strerror}. They were "
            "found privately and charged: save them from the screen instead of finding them again."
        ) from None
    if asked.json:
        print_json({**told, "out": None if out is None else str(out)})
    elif out is None:
        print_text(*text.splitlines())
    else:
        fit = ["fastmix", "fit", str(asked.data), "--target", asked.target, "--bounds", str(out)]
        fit += [] if asked.query is None else ["--query", asked.query]
        fit += text_format.options()
        most = str(asked.max_rows or _MAX_ROWS)
        fit += ["--person", asked.person, "--max-rows", most] if asked.person else []
        fit += [] if asked.ledger is None else ["--ledger", str(asked.ledger)]
        fit += ["--family", "logistic"] if kind in ("text", "bool") else []
        next_step = "Fill in the bounds from public knowledge, then:" if not said else "Then:"
        print_text(*said, f"Wrote {out}. {next_step}", "")
        print_text(f"  {shlex.join([*fit, '--epsilon', '1'])}")


def _fields(asked: AskedBounds) -> dict[str, str]:
    """Return the kinds of the columns for a template: as given, or as the file declares."""
    given = {"known": asked.known, "ledger": asked.ledger, "delta": asked.delta}
    for name, value in given.items():
        if value is not None:
            raise value_error(name, "be given with --epsilon", str(value))
    listed, days, text = (
        options.names_in(asked.categories),
        options.names_in(asked.dates),
        asked.text,
    )
    data = parts(asked.data)[0]
    fields = table_fields(data, text)
    written = replace(text, dates=tuple((name, ISO) for name in days))
    ids = [asked.person] if asked.person else []
    check_columns(data, days, listed, written, (asked.target, *(asked.names or ()), *ids))
    kinds = {**dict.fromkeys(days, "date"), **dict.fromkeys(listed, "text")}
    if kinds:  # what is not named holds numbers
        fields = {name: "number" if kind == "unknown" else kind for name, kind in fields.items()}
    out = {*ids} - {*(asked.names or ())}  # ids are no feature, unless they are asked for
    return {name: kind for name, kind in {**fields, **kinds}.items() if name not in out}


def _found(asked: AskedBounds, epsilon: float) -> tuple[str, PrivacyCertificate]:
    """Find bounds privately; return the bounds file and its certificate."""
    finder = PrivateBounds(
        epsilon=options.with_meaning(epsilon),
        delta=asked.delta,
        coverage=asked.coverage,
        max_rows_per_group=asked.max_rows,
        accountant=None if asked.ledger is None else BudgetAccountant.load(asked.ledger),
    )
    options.check_counting(asked.person, asked.max_rows)

    def columns() -> list[str]:
        """Return the columns that patterns and included files may cover."""
        there = table_columns(asked.data, asked.text)
        return [name for name in there if name not in (asked.target, asked.person)]

    notes = {"file": asked.data.name, "target": asked.target}
    with progress("finding bounds"), noted(label=asked.label or None, **notes):
        return find_bounds(
            asked.data,
            asked.target,
            finder,
            features=asked.names,
            categories=options.names_in(asked.categories),
            dates=options.names_in(asked.dates),
            known=None if asked.known is None else read_tables(asked.known, columns),
            person=asked.person or None,
            text=asked.text,
        )
