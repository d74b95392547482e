"""``fastmix plan``: what to expect of a fit, from public sizes only."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix.cli import _options as options
from fastmix.cli._asked import Asked, check_target
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.cli._files import check_output, writing
from fastmix.data import Chunks
from fastmix.data.encode import table_columns
from fastmix.data.persons import counted_weights, new_key
from fastmix.estimators import PrivateModel
from fastmix.planning import FitPlan, plan, words
from fastmix.planning.rows_per_person import (
    CORRELATION,
    RowChoice,
    advice,
    guess_from,
    row_choices,
    usual_guess,
)
from fastmix.schema import PublicBounds, read_bounds

EXAMPLES = (
    "fastmix plan --rows 100000 --columns 20 --epsilon 1",
    "fastmix plan --rows 65536 --columns 1000 --json",
    "fastmix plan --rows 800000 --columns 20 --persons 1100 --epsilon 3",
    "fastmix plan --rows 100000 --bounds bounds.toml --out plan.html",
    "fastmix plan --rows 100000 --columns 20 --family logistic",
    "fastmix plan --rows 20000 --columns 18 --categories 5,12",
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
    quantile: Annotated[
        str, typer.Option(help="With --family quantile: one, or several separated by commas.")
    ] = "0.5",
    classes: Annotated[
        int,
        typer.Option(min=2, max=1000, help="With --family logistic and --columns: how many."),
    ] = 2,
    min_listed: options.MinListed = options.LISTED,
    categories: Annotated[
        str,
        typer.Option(help="With --columns: numbers of levels of the categories, as in 5,12,3."),
    ] = "",
    spread: Annotated[
        float | None,
        typer.Option(help="Categories: public guess at the residuals' root mean square."),
    ] = None,
    r2: Annotated[float, typer.Option(help="Categories: public guess at R^2.")] = 0.5,
    intercept: options.Intercept = True,
    intervals: Annotated[
        bool | None, typer.Option(help="Plan for standard errors, as 'fastmix fit' does.")
    ] = None,
    persons: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of persons, for a fit that protects them; print which --max-rows to use.",
        ),
    ] = None,
    typical_rows: Annotated[
        str, typer.Option(help=f"With --persons: {options.TYPICAL_ROWS} By default geometric.")
    ] = "",
    correlation: Annotated[
        float, typer.Option(help="A public guess at the correlation of a person's errors.")
    ] = CORRELATION,
    max_rows: Annotated[
        int | None,
        typer.Option(help=f"With --persons: {options.COUNTING}.", min=1),
    ] = None,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="The fit has a column of sample weights.")
    ] = False,
    private_rows: Annotated[
        bool, typer.Option("--private-rows", help="The number of rows is a guess, not public.")
    ] = False,
    bounds: Annotated[
        Path | None,
        typer.Option(help="Bounds file; gives columns, and errors in the target's units."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Table with the column names that patterns of the bounds file need."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="HTML page to write, with a plot.")] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Predict error, time and memory of a fit, without data."""
    if (columns is None) == (bounds is None):
        raise ValueError("Pass either --columns or --bounds.")
    for name, value, other, needed in (
        ("categories", categories, "columns", columns),
        ("data", data, "bounds", bounds),
        ("typical-rows", typical_rows, "persons", persons),
        ("max-rows", max_rows is not None, "persons", persons),
    ):
        if value and needed is None:
            raise ValueError(f"--{name} must be given with --{other}.")
    if out is not None:
        check_output(out, force=force, inputs=[] if bounds is None else [bounds])
    given: dict[str, Any] = {"fit_intercept": intercept, "public_rows": not private_rows}
    given |= {"categories": _levels(categories), "spread": spread, "r2": r2}
    ends: tuple[Any, ...] | None = tuple(range(classes)) if family == "logistic" else None
    if bounds is not None:
        public = read_bounds(bounds, lambda: _names(data))
        check_target(public, family)
        columns, ends = len(public.columns(intercept)), public.ends
        columns_of = public.categories() if intercept else ()
        given |= {**_named(public), "categories": [len(each) + 1 for each in columns_of]}
    if ends is not None:
        given["classes" if family == "logistic" else "bounds_y"] = ends
    options.check_listed(min_listed, family)
    if family == "logistic":
        given["min_listed"] = min_listed
    if quantile != "0.5" or family == "quantile":
        given["quantile"] = options.quantiles(quantile)
    if method != "auto" or family == "linear":
        given["method"] = method
    if max_rows is not None:
        given["max_rows_per_group"] = max_rows
    if weighted:
        given["max_weight"] = 1.0
    if intervals is None:  # as 'fastmix fit' decides
        intervals = method in options.INFERRING
    assert columns is not None
    made = plan(
        rows,
        columns,
        epsilon,
        delta,
        family=family,
        persons=persons,
        inference=intervals,
        **given,
    )
    if out is not None:
        with writing(out, force=force) as temporary:
            temporary.write_text(made.page(), encoding="utf-8")
    choices: list[RowChoice] = []
    if persons is not None:
        usual = usual_guess(rows, persons)
        guess = guess_from(typical_rows, "--typical-rows") if typical_rows else usual
        choices = row_choices(persons, columns, guess, epsilon, delta, correlation)
    show(made, choices, json, out)


def dry_run(model: PrivateModel, asked: Asked, public: PublicBounds | None) -> None:
    """Print the plan of a fit with these options; count the rows of the table, read no values."""
    if public is None:
        raise ValueError("--dry-run must be given with --bounds.")
    if asked.private_rows:
        raise ValueError(
            "--dry-run counts the rows of the table, and --private-rows says that their number is "
            "not public. Use 'fastmix plan --private-rows' with a public guess at it."
        )
    bounds = {"bounds_X": public.feature_bounds(asked.intercept), model._ends: public.ends}
    model.set_params(data_norm=public.data_norm, **bounds)
    model._categories = public.categories() if asked.intercept else ()
    rows, persons = _counted(asked, public)
    columns, named = len(public.columns(asked.intercept)), _named(public)
    show(FitPlan(model, rows, columns, persons, named["target"], named["unit"]), [], asked.json)


def _counted(asked: Asked, public: PublicBounds) -> tuple[int, int | None]:
    """Count the rows of a table, and the persons if there are any, as a fit does."""
    table = asked.chunks(public, intercept=asked.intercept)
    return count_rows(table), count_persons(table) if asked.person else None


def count_rows(table: Chunks) -> int:
    """Count the rows of a table, whose number is public where a fit says so."""
    if table.n is not None:
        return table.n
    return sum(len(y) for chunk in table.chunks for _, y in chunk.read())


def count_persons(table: Chunks) -> int:
    """Count the persons of a table with ids, whose number is public where a fit says so."""
    key = new_key()
    hashed = table.executor.hashed(table.chunks, key)
    return counted_weights(count_rows(table), hashed, 1, None, key).count


def _levels(listed: str) -> list[int]:
    """Return numbers of levels from a comma-separated list."""
    found = options.names_in(listed)
    if not all(each.isdecimal() for each in found):
        raise ValueError(f"--categories must be numbers of levels, as in 5,12,3; got {listed!r}.")
    return [*map(int, found)]


def _named(public: PublicBounds) -> dict[str, str]:
    """Return the name and the unit of a target."""
    target = public.target
    return {"target": target.name, "unit": target.unit or ("days" if target.since else "")}


def _names(data: Path | None) -> list[str]:
    """Return the column names of a table, for patterns."""
    if data is None:
        raise ValueError(
            "a bounds file with patterns or included files needs the names of the table's columns; "
            "pass them with --data FILE."
        )
    return table_columns(data)


def show(made: FitPlan, choices: list[RowChoice], json: bool, out: Path | None = None) -> None:
    """Print a plan, and what each number of rows per person leads to expect."""
    if json:
        beside = {"persons": [each._asdict() for each in choices]} if choices else {}
        print_json({**made.to_dict(), **beside, "out": None if out is None else str(out)})
        return
    print_text(words.size(made), made.reason, "", words.headline(made), "")
    for header, *cells in words.tables(made):
        print_table(header, cells)
        print_text("")
    print_text(*words.notes(made))
    if choices:
        print_text("", "Rows of a person that count, from public sizes and a guess:", "")
        print_choices(choices)
    if out is not None:
        print_text("", f"Wrote {out}, with a plot of error against epsilon.")


def print_choices(choices: list[RowChoice]) -> None:
    """Print what each number of rows per person leads to expect, and which one to choose."""
    shown = [[f"{k:,}", f"{c:.0%}", f"{noise:.4g}", f"{e:.3g}"] for k, c, noise, e in choices]
    print_table(["--max-rows", "rows that count", "privacy noise", "error"], shown)
    print_text("", "Noise is in units of one row per person, errors of the smallest one.")
    print_text(advice(choices, "--max-rows"))
