"""``fastmix bounds``: a bounds file to fill in."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_text
from fastmix.cli._files import check_output, writing
from fastmix.tables import TextFormat, bounds_template, table_fields
from fastmix.tables.read import check_columns

EXAMPLES = (
    "fastmix bounds people.csv --target income --out people.toml",
    "fastmix bounds people.csv --target income --categories city --out kinds.toml",
    "fastmix bounds people.parquet --target income --features age,city",
)


def command(
    data: options.Data,
    target: options.Target,
    features: Annotated[
        str, typer.Option(help="Columns to use, with commas; all by default.")
    ] = "",
    categories: Annotated[
        str, typer.Option(help="Columns that hold categories, with commas; for CSV files.")
    ] = "",
    dates: Annotated[
        str, typer.Option(help="Columns that hold dates, with commas; for CSV files.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="File to write; on the screen by default.")
    ] = None,
    force: options.Force = False,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    json: Annotated[bool, typer.Option("--json", help="Print names and kinds as JSON.")] = False,
) -> None:
    """Write a bounds file to fill in, from column names and types only, never from values."""
    text_format = TextFormat(sep, decimal, thousands, encoding)
    if out is not None:
        check_output(out, force=force, inputs=[data])
    fields = table_fields(data, text_format)
    names = _names(features) if features else None
    said = {"text": _names(categories), "date": _names(dates)}
    check_columns(data, [], (name for each in said.values() for name in each), text_format)
    if any(said.values()) and "unknown" in fields.values():  # what is not named holds numbers
        kinds = {name: kind for kind, each in said.items() for name in each}
        fields = {name: kinds.get(name, "number") for name in fields}
    check_columns(data, [], (target, *(names or ())), text_format)
    text = bounds_template(fields, target, names)
    if out is not None:
        with writing(out, force=force) as temporary:
            temporary.write_text(text, encoding="utf-8")
    if json:
        print_json({"target": target, "columns": fields, "out": None if out is None else str(out)})
    elif out is None:
        print_text(*text.splitlines())
    else:
        fit = ["fastmix", "fit", str(data), "--target", target, "--bounds", str(out)]
        fit += text_format.options()
        print_text(f"Wrote {out}. Fill in the bounds from public knowledge, then:", "")
        print_text(f"  {shlex.join([*fit, '--epsilon', '1'])}")


def _names(listed: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in listed.split(",") if name.strip()]
