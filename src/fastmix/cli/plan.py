"""``fastmix plan``: which method, and what to expect of it, from public sizes only."""

from typing import Annotated

import typer

from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.planning import person_costs, plan

EXAMPLES = (
    "fastmix plan --rows 100000 --columns 20 --epsilon 1",
    "fastmix plan --rows 65536 --columns 1000 --json",
    "fastmix plan --rows 800000 --columns 20 --persons 1100 --epsilon 3",
)


def command(
    rows: options.Rows,
    columns: options.Columns,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    method: Annotated[str, typer.Option(help="auto, objective, ihm, fast_ihm or adassp.")] = "auto",
    intercept: options.Intercept = True,
    persons: Annotated[
        int | None, typer.Option(min=1, help="Persons whose rows they are: what each cap costs.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Say which method to take and what error, seconds and memory to expect, without data."""
    made = plan(rows, columns, epsilon, delta, method=method, fit_intercept=intercept)
    costs = [] if persons is None else person_costs(rows, persons, epsilon, delta)
    if json:
        said = {name: getattr(made, name) for name in ("method", "reason", "epsilon", "delta")}
        told = {} if persons is None else {"persons": [each._asdict() for each in costs]}
        print_json({**said, "methods": made.table(), "warnings": made.warnings, **told})
        return
    sizes = f"{made.n:,} rows, {made.d:,} columns"
    print_text(f"{sizes}, epsilon {made.epsilon:g}, delta {made.delta:.2g}", made.reason, "")
    header, *cells = made.cells()
    print_table(header, cells)
    meaning, *warnings = made.notes()
    print_text("", meaning)
    print_text(*warnings, style="bold")
    if persons is not None:
        said_of = f"{persons:,} persons: noise in units of that of single rows"
        print_text("", f"{said_of}, for fits with --person and --max-rows.", "")
        cells = [[f"{k:,}", f"{ours:.3g}", f"{naive:.3g}"] for k, ours, naive in costs]
        print_table(["rows of a person", "noise", "naive group privacy"], cells)
