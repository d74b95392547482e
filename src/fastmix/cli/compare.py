"""``fastmix compare``: several feature sets of a table under one budget, the best one fitted."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fastmix._validation import check_choice, value_error
from fastmix.accounting import BudgetAccountant, noted
from fastmix.certificate.explain import headline
from fastmix.cli import _options as options
from fastmix.cli._asked import check_target
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.cli._folder import model_folder
from fastmix.cli._papers import Papers
from fastmix.data.delimited import TextFormat
from fastmix.data.encode import encode, needed, table_chunks, table_columns
from fastmix.data.read import Table, read_columns, table_paths
from fastmix.errors import DataError
from fastmix.estimators import PrivateLinearRegression, PrivateLogisticRegression, compare
from fastmix.schema import PublicBounds, read_bounds
from fastmix.schema.bounds import check_persons
from fastmix.schema.features import Labels
from fastmix.show.progress import progress

EXAMPLES = (
    "fastmix compare people.csv --target income --bounds bounds.toml --epsilon 1 --delta 1e-6 "
    "--set age,city --set age",
    "fastmix compare smokers.csv --target smoker --bounds smokers.toml --delta 1e-6 "
    "--family logistic --set age,city --set age --out smoking",
)


def command(
    data: options.Tables,
    target: options.Target,
    bounds: Annotated[Path, typer.Option(help="Bounds file; see 'fastmix bounds'.")],
    sets: Annotated[
        list[str],
        typer.Option("--set", help="Features of a set, separated by commas; once per set."),
    ],
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    family: Annotated[str, typer.Option(help="linear, or logistic (for labels).")] = "linear",
    min_listed: options.MinListed = options.LISTED,
    intercept: options.Intercept = True,
    intervals: Annotated[bool, typer.Option(help="Standard errors of the best model.")] = True,
    ledger: Annotated[
        Path | None, typer.Option(help="Shared budget to charge; see 'fastmix ledger'.")
    ] = None,
    label: options.Label = "",
    papers: options.Papers = None,
    sign: options.Sign = None,
    out: Annotated[Path, typer.Option(help="Folder for the best model.")] = Path("model"),
    force: options.Force = False,
    person: options.Person = "",
    max_rows: options.MaxRows = None,
    weight: options.Weight = "",
    max_weight: options.MaxWeight = None,
    private_rows: options.PrivateRows = False,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    no_header: options.NoHeader = False,
    query: options.SelectedRecords = None,
    json: options.Json = False,
) -> None:
    """Rank feature sets privately, and fit the best with the rest of the budget.

    The sets are declared together and charged as one; 30% of the budget pays for the ranking.
    """
    options.check_counting(person, max_rows, weight, max_weight)
    text = options.text_format(sep, decimal, thousands, encoding, no_header, bounds)
    data = options.asked_table(data, query)

    def covered() -> list[str]:
        """Return the columns that patterns may cover: all but ids and weights."""
        return [name for name in table_columns(data, text) if name not in (person, weight)]

    public = read_bounds(bounds, covered)
    if public.target.name != target:
        raise value_error("target", f"be that of the bounds file, {public.target.name!r}", target)
    check_choice("family", family, ("linear", "logistic"))
    options.check_listed(min_listed, family)
    check_target(public, family)
    check_persons(public, bool(person), not private_rows)
    named = [options.names_in(each) for each in sets]
    chosen = {",".join(names): public.select(names) for names in named}
    if len(chosen) < len(named):
        raise value_error("set", "be another one each time", sets)
    places = {name: k for k, name in enumerate(public.columns(intercept))}
    candidates = {
        name: [places[column] for column in each.columns(intercept)]
        for name, each in chosen.items()
    }
    common: Any = {
        "epsilon": epsilon,
        "delta": delta,
        "fit_intercept": intercept,
        "inference": intervals,
        "bounds_X": public.feature_bounds(intercept),
        "data_norm": public.data_norm,
        "public_rows": not private_rows,
        "accountant": None if ledger is None else BudgetAccountant.load(ledger),
    }
    model: Any
    if family == "logistic":
        model = PrivateLogisticRegression(classes=public.ends, min_listed=min_listed, **common)
    else:
        model = PrivateLinearRegression(bounds_y=public.ends, **common)
    stated = Papers(papers, sign)
    inputs = (*table_paths(data), bounds, *stated.inputs)
    given: Any = {"words": [*places, *stated.words], "inputs": inputs}
    given |= {"ledger": ledger, "signer": stated.signer}
    with model_folder(out, force=force, **given) as publish:
        with progress("comparing") as bar:
            bar.say("reading")
            if person or weight:
                X, y, whose = _with_persons(data, public, intercept, text, person, weight)
                limits: Any = {"max_rows_per_group": max_rows, "max_weight": max_weight or 1.0}
            else:
                columns = read_columns(data, *needed(public), text.of(public))
                X, y = encode(columns, public, intercept=intercept)
                whose, limits = {}, {}
            if isinstance(public.target, Labels):
                y = public.target.decoded(y)
            if not len(y) and not private_rows:
                raise DataError(f"{data.name} must have at least one row to fit.")
            with noted(label=label or None, file=data.name, target=target, model=str(out)):
                found = compare(candidates, X, y, model=model, **whose, **limits)
        best = found.model
        best.schema_ = chosen[found.best]
        stated.publish(best, publish)
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


def _with_persons(
    data: Table, public: PublicBounds, intercept: bool, text: TextFormat, person: str, weight: str
) -> tuple[Any, Any, dict[str, Any]]:
    """Return the encoded table in memory, with its ids and weights as `compare` takes them."""
    table = table_chunks(
        data, public, intercept=intercept, person=person or None, weight=weight or None, text=text
    )
    chunks = table.chunks
    records = [part for chunk in chunks for part in chunk.read()]
    X, y = (np.concatenate(parts) for parts in zip(*records, strict=True))
    whose: dict[str, Any] = {}
    if person:
        whose["groups"] = np.concatenate([ids for chunk in chunks for ids in chunk.read_ids()])
    if weight:
        parts = [own for chunk in chunks for own in chunk.read_weights()]
        whose["sample_weight"] = np.concatenate(parts)
    return X, y, whose
