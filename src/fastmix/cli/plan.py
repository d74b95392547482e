"""``fastmix plan``: which method, and what to expect of it, from public sizes only."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.cli._files import check_output, writing
from fastmix.planning import DryRun, PersonCost, dry_run, person_costs, plan
from fastmix.show.html import number
from fastmix.tables import Labels, PublicBounds, read_bounds
from fastmix.tables.encode import table_columns
from fastmix.tables.schema import check_number

EXAMPLES = (
    "fastmix plan --rows 100000 --columns 20 --epsilon 1",
    "fastmix plan --rows 65536 --columns 1000 --json",
    "fastmix plan --rows 800000 --columns 20 --persons 1100 --epsilon 3",
    "fastmix plan --rows 100000 --bounds bounds.toml --out plan.html",
    "fastmix plan --rows 100000 --columns 20 --family logistic",
)


def command(
    rows: options.Rows,
    columns: Annotated[
        int | None,
        typer.Option(min=1, max=10**6, help="Number of features, after encoding; or --bounds."),
    ] = None,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    method: Annotated[str, typer.Option(help="auto, objective, ihm, fast_ihm or adassp.")] = "auto",
    family: Annotated[str, typer.Option(help="linear, logistic, quantile or huber.")] = "linear",
    quantile: Annotated[float, typer.Option(help="With --family quantile: which one.")] = 0.5,
    classes: Annotated[
        int, typer.Option(min=2, max=1000, help="With --family logistic: number of classes.")
    ] = 2,
    intercept: options.Intercept = True,
    persons: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of persons, for a fit that protects them; print the cost per cap on rows.",
        ),
    ] = None,
    bounds: Annotated[
        Path | None,
        typer.Option(help="Bounds file; gives columns, and errors in the target's units."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Table with the column names that patterns of the bounds file need."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="With --bounds: HTML page to write, with a plot.")
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Recommend a method and predict error, time and memory, without data."""
    if (columns is None) == (bounds is None):
        raise ValueError("Pass either --columns or --bounds.")
    if bounds is not None:
        if out is not None:
            check_output(out, force=force, inputs=[bounds])
        costs = [] if persons is None else person_costs(rows, persons, epsilon, delta)
        public = read_bounds(bounds, lambda: _names(data))
        run = dry_run(
            rows,
            len(public.columns(intercept)),
            (public.target.lower, public.target.upper),
            epsilon,
            delta,
            method=method,
            fit_intercept=intercept,
            target=public.target.name,
            unit=public.target.unit or ("days" if public.target.since else ""),
            persons=persons,
            family=family,
            n_classes=_labels(public, family, classes),
            quantile=quantile,
        )
        _show(run, costs, out, force, json)
        return
    if out is not None or data is not None:
        raise ValueError("--out and --data must be given with --bounds.")
    assert columns is not None
    made = plan(
        rows,
        columns,
        epsilon,
        delta,
        method=method,
        fit_intercept=intercept,
        persons=persons,
        family=family,
        n_classes=classes,
        quantile=quantile,
    )
    costs = [] if persons is None else person_costs(rows, persons, epsilon, delta)
    if json:
        said = {name: getattr(made, name) for name in ("method", "reason", "epsilon", "delta")}
        print_json({**said, "methods": made.table(), "warnings": made.warnings, **_told(costs)})
        return
    sizes = f"{made.size}, {made.d:,} columns"
    print_text(f"{sizes}, epsilon {made.epsilon:g}, delta {made.delta:.2g}", made.reason, "")
    header, *cells = made.cells()
    print_table(header, cells)
    meaning, *warnings = made.notes()
    print_text("", meaning)
    print_text(*warnings, style="bold")
    _show_persons(costs)


def _labels(public: PublicBounds, family: str, classes: int) -> int:
    """Return the number of classes: that of the labels of a bounds file, if it has some."""
    if family != "logistic":
        check_number(public)
    return len(public.target.labels) if isinstance(public.target, Labels) else classes


def _names(data: Path | None) -> list[str]:
    """Return the names of the columns of a table, which patterns need."""
    if data is None:
        raise ValueError(
            "a bounds file with patterns or included files needs the names of the table's columns; "
            "pass them with --data FILE."
        )
    return table_columns(data)


def _told(costs: list[PersonCost]) -> dict[str, Any]:
    """Return what persons cost, for JSON; nothing if that was not asked for."""
    return {"persons": [each._asdict() for each in costs]} if costs else {}


def _show_persons(costs: list[PersonCost]) -> None:
    """Print what persons cost, if that was asked for."""
    if costs:
        said = "Persons: noise in units of that of single rows, for fits with --person and"
        print_text("", f"{said} --max-rows.", "")
        cells = [[f"{k:,}", f"{ours:.3g}", f"{naive:.3g}"] for k, ours, naive in costs]
        print_table(["rows of a person", "noise", "naive group privacy"], cells)


def _show(run: DryRun, costs: list[PersonCost], out: Path | None, force: bool, json: bool) -> None:
    """Print a dry run, and write its page."""
    if out is not None:
        with writing(out, force=force) as temporary:
            temporary.write_text(run.page(), encoding="utf-8")
    if json:
        print_json({**asdict(run), **_told(costs), "out": None if out is None else str(out)})
        return
    sizes = f"{run.size}, {run.d:,} columns after encoding, delta {run.delta:.2g}"
    print_text(f"{sizes}, method {run.method}", run.headline(), "")
    unit = f", {run.unit}" if run.unit else ""
    header = [f"{run.what} that privacy adds{unit}", "typical", "easy data", "hard data"]
    least = min(e.typical for e in run.by_epsilon)
    most = max(e.typical for e in run.by_epsilon)
    scale = 23.0 / max(math.log(most / least), 1e-9)
    full = [1 + round(scale * math.log(e.typical / least)) for e in run.by_epsilon]
    bars = ["\u2588" * length + "\u2591" * (24 - length) for length in full]
    rows = [[*row, bar] for row, bar in zip(run.cells(run.by_epsilon), bars, strict=True)]
    print_table([*header, "typical, on a log scale"], rows)
    print_text("")
    print_table([f"other choices, epsilon {number(run.epsilon, 3)}", *header[1:]],
                run.cells(run.others))  # fmt: skip
    print_text("", *run.notes())
    _show_persons(costs)
    if out is not None:
        print_text("", f"Wrote {out}, with a picture of error against epsilon.")
