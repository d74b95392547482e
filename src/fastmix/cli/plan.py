"""``fastmix plan``: which method, and what to expect of it, from public sizes only."""

from typing import Annotated

import typer

from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.planning import plan

EXAMPLES = (
    "fastmix plan --rows 100000 --columns 20 --epsilon 1",
    "fastmix plan --rows 65536 --columns 1000 --json",
)


def command(
    rows: options.Rows,
    columns: options.Columns,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    method: Annotated[str, typer.Option(help="auto, objective, ihm, fast_ihm or adassp.")] = "auto",
    intercept: options.Intercept = True,
    json: options.Json = False,
) -> None:
    """Say which method to take and what error, seconds and memory to expect, without data."""
    options.check_epsilon(epsilon)
    made = plan(rows, columns, epsilon, delta, method=method, fit_intercept=intercept)
    table = made.table()
    if json:
        said = {name: getattr(made, name) for name in ("method", "reason", "epsilon", "delta")}
        print_json({**said, "methods": table, "warnings": made.warnings})
        return
    print_text(
        f"{made.n:,} rows, {made.d:,} columns, epsilon {made.epsilon:g}, delta {made.delta:.2g}",
        made.reason,
        "",
    )
    print_table(
        ["method", "excess risk", "from", "to", "seconds", "MiB", "sizes"],
        [
            [
                row["method"],
                f"{row['excess_risk']:.2g}",
                f"{row['excess_risk_low']:.1g}",
                f"{row['excess_risk_high']:.1g}",
                f"{row['seconds']:.3g}",
                f"{row['memory_mib']:.0f}",
                row["sizes"],
            ]
            for row in table
        ],
    )
    print_text("", made.meaning())
    for each in made.warnings:
        print_text(f"Warning: {each}", style="bold")
