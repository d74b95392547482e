"""``fastmix compare``: several feature sets of a table under one budget, the best one fitted."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix._validation import value_error
from fastmix.accounting import BudgetAccountant
from fastmix.certificate.documents import write_document
from fastmix.certificate.explain import headline
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.cli._folder import model_folder
from fastmix.data.delimited import TextFormat
from fastmix.data.encode import encode, needed, table_columns
from fastmix.data.read import read_columns
from fastmix.errors import DataError
from fastmix.estimators import PrivateLinearRegression, compare
from fastmix.estimators.saving import model_document
from fastmix.files.report import fit_report
from fastmix.schema import read_bounds
from fastmix.schema.bounds import check_number
from fastmix.show.progress import progress

EXAMPLES = (
    "fastmix compare people.csv --target income --bounds bounds.toml --epsilon 1 --delta 1e-6 "
    "--set age,city --set age",
)


def command(
    data: options.Data,
    target: options.Target,
    bounds: Annotated[Path, typer.Option(help="Bounds file; see 'fastmix bounds'.")],
    sets: Annotated[
        list[str],
        typer.Option("--set", help="Features of a set, separated by commas; once per set."),
    ],
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    intercept: options.Intercept = True,
    intervals: Annotated[bool, typer.Option(help="Standard errors of the best model.")] = True,
    ledger: Annotated[
        Path | None, typer.Option(help="Shared budget to charge; see 'fastmix ledger'.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the best model.")] = Path("model"),
    force: options.Force = False,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    json: options.Json = False,
) -> None:
    """Rank feature sets privately, and fit the best with the rest of the budget.

    The sets are declared together and charged as one; 30% of the budget pays for the ranking.
    """
    text = TextFormat(sep, decimal, thousands, encoding)
    public = read_bounds(bounds, partial(table_columns, data, text))
    if public.target.name != target:
        raise value_error("target", f"be that of the bounds file, {public.target.name!r}", target)
    check_number(public)
    named = [options.names_in(each) for each in sets]
    chosen = {",".join(names): public.select(names) for names in named}
    if len(chosen) < len(named):
        raise value_error("set", "be another one each time", sets)
    places = {name: k for k, name in enumerate(public.columns(intercept))}
    candidates = {
        name: [places[column] for column in each.columns(intercept)]
        for name, each in chosen.items()
    }
    model = PrivateLinearRegression(
        epsilon=epsilon,
        delta=delta,
        fit_intercept=intercept,
        inference=intervals,
        bounds_X=public.feature_bounds(intercept),
        bounds_y=(public.target.lower, public.target.upper),
        data_norm=public.data_norm,
        accountant=None if ledger is None else BudgetAccountant.load(ledger),
    )
    given: Any = {"words": places, "inputs": (data, bounds), "ledger": ledger}
    with model_folder(out, force=force, **given) as publish:
        with progress("comparing") as bar:
            bar.say("reading")
            columns = read_columns(data, *needed(public), text.with_dates(public.dates))
            X, y = encode(columns, public, intercept=intercept)
            if not len(y):
                raise DataError(f"{data.name} must have at least one row to fit.")
            found = compare(candidates, X, y, model=model)
        best = found.model
        best.schema_ = chosen[found.best]
        document, best.privacy_ = model_document(best)
        publish(write_document(document), best.privacy_.to_json(), fit_report(best))
    if json:
        ranking = [{"features": name, "excess_mse": value} for name, value in found.excess.items()]
        spent = best.privacy_
        told = {"epsilon": spent.epsilon, "delta": spent.delta, "private": spent.private}
        print_json({**told, "best": found.best, "ranking": ranking, "std": found.std})
        return
    print_table(["features", "columns", "excess MSE"], found.rows())
    print_text("", f"Standard error of a difference: {found.std:.2g}.", "")
    print_text(headline(best.privacy_))
    print_text(f"Wrote model.json, certificate.json and report.html of the best model to {out}.")
