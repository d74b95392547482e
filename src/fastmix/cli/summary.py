"""``fastmix summary``: the coefficients of a saved model as a statistician knows them."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fastmix._validation import check_probability
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_text
from fastmix.tables.model import SavedModel
from fastmix.tables.report import largest_effects

EXAMPLES = ("fastmix summary model",)


def command(
    model: Annotated[Path, typer.Argument(help="Folder or file that 'fastmix fit' wrote.")],
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    json: options.Json = False,
) -> None:
    """Print coefficients with standard errors, z, p-values and intervals.

    Everything is computed from released values: it costs no privacy.
    """
    check_probability("level", level)
    saved = SavedModel.load(model)
    made = saved.summary(level)
    if json:
        print_json(made.to_dict())
        return
    shown = largest_effects(saved.coef, saved.bounds, saved.fit_intercept)
    if (rest := len(saved.coef) - len(shown)) > 0:
        lines = (*(made.lines[j] for j in shown), *made.lines[len(saved.coef) :])
        made = replace(made, lines=lines, notes=(f"and {rest:,} more; --json has all", *made.notes))
    print_text(*str(made).split("\n"))
