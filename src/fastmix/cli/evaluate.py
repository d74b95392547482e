"""``fastmix evaluate``: private scores of a saved model on the rows of a table."""

from dataclasses import dataclass
from typing import Annotated

import typer

from fastmix.accounting import BudgetAccountant, noted
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.estimators.saving import public_schema
from fastmix.files.loading import load
from fastmix.show.progress import progress

EXAMPLES = (
    "fastmix evaluate model people.csv --epsilon 0.5 --metrics r2,mae",
    "fastmix evaluate model visits.csv --epsilon 0.5 --person patient",
)


@dataclass(frozen=True)
class AskedScores(options.TableOptions):
    """The options of ``fastmix evaluate``."""

    model: options.Model
    data: options.Tables
    epsilon: options.Epsilon
    delta: options.Delta = None
    metrics: Annotated[
        str,
        typer.Option(
            help="Scores, separated by commas; fewer are more precise. Linear: r2, mse, mae; "
            "logistic: accuracy, log_loss, auc; quantile: below, pinball. By default all."
        ),
    ] = ""
    ledger: options.LedgerFile = None
    label: options.Label = ""
    key: options.Key = None
    person: options.Person = ""
    max_rows: options.ScoredRows = None
    weight: options.Weight = ""
    max_weight: options.ScoredWeight = None
    json: options.Json = False


@options.grouped(AskedScores)
def command(asked: AskedScores) -> None:
    """Print private scores of a model, with a budget of their own.

    Rows of the fit are allowed: their privacy is charged once more. A model that protects persons
    needs --person, and each person counts as one.
    """
    if asked.max_rows is not None and not asked.person:
        raise ValueError("--max-rows must be given with --person.")
    fitted = load(asked.model, key=asked.key)
    schema = public_schema(fitted)
    with progress("evaluating"):
        rows = asked.chunks(schema, intercept=fitted.fit_intercept)
        notes = {"file": asked.data.name, "target": schema.target.name, "model": str(asked.model)}
        with noted(label=asked.label or None, **notes):
            found = fitted.evaluate(
                rows,
                metrics=options.names_in(asked.metrics) or None,
                epsilon=asked.epsilon,
                max_rows_per_group=asked.max_rows,
                max_weight=asked.max_weight,
                delta=asked.delta,
                accountant=None if asked.ledger is None else BudgetAccountant.load(asked.ledger),
            )
    spent = found.spent
    assert spent is not None
    if asked.json:
        print_json(
            {
                "private": fitted.privacy_.private,
                "epsilon": spent.epsilon,
                "delta": spent.delta,
                "n": found.n,
                "unit": found.population.unit,
                "scores": found.to_dict(),
                "calibration": [each._asdict() for each in found.calibration],
            }
        )
        return
    print_table(["score", "value", "std err", "95% interval"], found.rows())
    if found.baseline:
        print_text("", f"{found.baseline.capitalize()} of the {found.population.units}.")
    if found.calibration:
        print_text("")
        print_table(
            ["predicted", "observed", "std err", found.population.units],
            [
                [f"{p:.3f}", f"{observed:.3f}", f"{std:.3f}", f"{weight:.0%}"]
                for p, observed, std, weight in found.calibration
            ],
        )
    print_text(
        "",
        f"{'about ' * found.population.hidden}{found.n:,} {found.population.units}, epsilon "
        f"{spent.epsilon:.4g}, delta {spent.delta:.3g}, for {found.population.present}.",
    )
