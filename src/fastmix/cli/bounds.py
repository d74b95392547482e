"""``fastmix bounds``: a bounds file to fill in, or one whose bounds are found privately."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix._validation import value_error
from fastmix.accounting import BudgetAccountant
from fastmix.certificate import headline
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_text, working
from fastmix.cli._files import check_output, writing
from fastmix.estimators import PrivateBounds
from fastmix.tables import bounds_template, table_fields
from fastmix.tables.found import find_bounds
from fastmix.tables.schema import read_toml

EXAMPLES = (
    "fastmix bounds people.csv --target income --out people.toml",
    "fastmix bounds people.parquet --target income --features age,city",
    "fastmix bounds people.parquet --target income --epsilon 0.1 --out found.toml",
    "fastmix bounds people.csv --target income --categories city --epsilon 0.1 --delta 1e-7",
)


def command(
    data: options.Data,
    target: options.Target,
    features: Annotated[
        str, typer.Option(help="Columns to use, with commas; all by default.")
    ] = "",
    epsilon: Annotated[
        float | None,
        typer.Option(help="Find the bounds privately, for this much; a template without it."),
    ] = None,
    delta: options.Delta = None,
    coverage: Annotated[
        float, typer.Option(help="Share of rows that should lie inside the bounds found.")
    ] = 0.999,
    categories: Annotated[
        str, typer.Option(help="Columns of a CSV file that hold categories, with commas.")
    ] = "",
    known: Annotated[
        Path | None, typer.Option(help="Bounds file with what is known; it is kept, for free.")
    ] = None,
    person: Annotated[
        str, typer.Option(help="Column of ids: protect persons; see 'fastmix fit --person'.")
    ] = "",
    max_rows: Annotated[
        int | None, typer.Option(help="With --person: rows of a person that count at most.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Shared budget to charge; see 'fastmix ledger'.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; on the screen by default.")
    ] = None,
    force: options.Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print names and kinds as JSON.")] = False,
) -> None:
    """Write a bounds file to fill in, from names and types; with --epsilon, found privately."""
    if out is not None:
        inputs = [path for path in (data, known, ledger) if path is not None]
        check_output(out, force=force, inputs=inputs)
    names = _names(features) or None
    said: tuple[str, ...] = ()
    if epsilon is None:
        given = {"known": known, "ledger": ledger, "delta": delta, "person": person or None}
        for name, value in given.items():
            if value is not None:
                raise value_error(name, "be given with --epsilon", str(value))
        text = bounds_template(table_fields(data), target, names)
        told: dict[str, Any] = {"target": target, "columns": table_fields(data)}
    else:
        finder = PrivateBounds(
            epsilon=options.with_meaning(epsilon),
            delta=delta,
            coverage=coverage,
            max_rows_per_group=max_rows,
            accountant=None if ledger is None else BudgetAccountant.load(ledger),
        )
        if bool(person) != (max_rows is not None):
            raise ValueError("--person and --max-rows must be given together.")
        with working("counting"):
            text, certificate = find_bounds(
                data,
                target,
                finder,
                features=names,
                categories=_names(categories),
                known=None if known is None else read_toml(known),
                person=person or None,
            )
        said = (f"Found bounds: {headline(certificate)}",)
        told = {"target": target, "epsilon": certificate.epsilon, "delta": certificate.delta}
    if out is not None:
        with writing(out, force=force) as temporary:
            temporary.write_text(text, encoding="utf-8")
    if json:
        print_json({**told, "out": None if out is None else str(out)})
    elif out is None:
        print_text(*text.splitlines())
    else:
        fit = ["fastmix", "fit", str(data), "--target", target, "--bounds", str(out)]
        fit += [] if ledger is None else ["--ledger", str(ledger)]
        next_step = "Fill in the bounds from public knowledge, then:" if not said else "Then:"
        print_text(*said, f"Wrote {out}. {next_step}", "")
        print_text(f"  {shlex.join([*fit, '--epsilon', '1'])}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
