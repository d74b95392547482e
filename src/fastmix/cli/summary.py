"""``fastmix summary``: the coefficients of a saved model as a statistician knows them."""

from typing import Annotated

import typer

from fastmix._validation import check_probability
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_text
from fastmix.files.doubts import doubts
from fastmix.files.loading import load
from fastmix.files.report import model_summary
from fastmix.show.html import LONGEST

EXAMPLES = ("fastmix summary model", "fastmix summary model --all")


def command(
    model: options.Model,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    everything: Annotated[
        bool, typer.Option("--all", help=f"Show all effects, not the {LONGEST} largest.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Print coefficients with standard errors, z, p-values and intervals.

    Everything is computed from released values: it costs no privacy.
    """
    check_probability("level", level)
    fitted = load(model)
    made = model_summary(fitted, level)
    if json:
        print_json(made.to_dict())
        return
    print_text(*made.text(None if everything else LONGEST).split("\n"))
    if found := doubts(fitted):
        print_text(found, style="bold")
