"""``fastmix predict``: predictions of a saved model for the rows of a table."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_text
from fastmix.cli._files import check_output, writing
from fastmix.cli._folder import FILES
from fastmix.data.encode import needed
from fastmix.data.read import parts, read_columns, table_paths, table_suffix, write_predictions
from fastmix.errors import DataError
from fastmix.estimators.saving import public_schema
from fastmix.files.loading import load
from fastmix.show.progress import progress

EXAMPLES = (
    "fastmix predict model people.csv --out predictions.csv",
    "fastmix predict model people.csv --key institution.pub --out checked.csv",
)


@dataclass(frozen=True)
class AskedPredictions(options.TableOptions):
    """The options of ``fastmix predict``."""

    model: options.Model
    data: options.Tables
    out: Annotated[
        Path, typer.Option(help="File for the predictions; its extension sets the format.")
    ] = Path("predictions.csv")
    proba: Annotated[
        bool,
        typer.Option(
            "--proba",
            help="Of a logistic model: probabilities, of the second label if there are two.",
        ),
    ] = False
    extrapolate: Annotated[
        bool,
        typer.Option(
            "--extrapolate", help="Let predictions leave the public bounds of the target."
        ),
    ] = False
    key: options.Key = None
    force: options.Force = False
    json: options.Json = False


@options.grouped(AskedPredictions)
def command(asked: AskedPredictions) -> None:
    """Write predictions for the rows of a table to a file.

    Predictions say as much about the rows of this table as its features do. Those of a folder
    follow its files in the order of their names. They stay inside the public bounds of the target.
    For a category outside the public list they use the coefficient of "other".
    """
    out = asked.out
    table_suffix(out)
    files = parts(asked.data)
    paths = [path for part in files for path in table_paths(part)]
    inputs = [*paths, *(asked.model / file for file in FILES), asked.model]
    check_output(out, force=asked.force, inputs=inputs)
    fitted: Any = load(asked.model, key=asked.key)
    classifier = hasattr(fitted, "classes_")
    if asked.proba and not classifier:
        raise DataError("--proba needs a logistic regression: fit with --family logistic.")
    schema = fitted.schema_ = public_schema(fitted)
    text = asked.text.of(schema)
    numbers, categories = needed(schema, target=False)
    name = f"{'probability' if asked.proba else 'predicted'}_{schema.target.name}"
    answer = fitted.predict_proba if asked.proba else fitted.predict
    if asked.extrapolate and not classifier:
        answer = partial(answer, clip=False)
    with progress("predicting") as bar, writing(out, force=asked.force) as temporary:
        made = []
        for k, file in enumerate(files):
            bar.say("reading", k, len(files))
            part = read_columns(file, numbers, categories, text)
            made.append(answer(part))
        bar.say("writing")
        values = np.concatenate(made)
        each = fitted.classes_ if classifier else np.atleast_1d(getattr(fitted, "quantile", ()))
        labels = tuple(map(str, each)) if values.ndim > 1 else ()
        if classifier and len(labels) == 2:  # the probability of the second label says it all
            values, labels = values[:, 1], ()
        write_predictions(temporary, name, values, labels)
    named = [f"{name}={label}" for label in labels] or [name]
    if asked.json:
        columns = {"columns": named} if labels else {"column": name}
        print_json({"rows": len(values), **columns, "out": str(out)})
    else:
        said = f"{'columns' if labels else 'column'} {', '.join(named)}"
        print_text(f"Wrote {len(values):,} predictions to {out}, {said}.")
