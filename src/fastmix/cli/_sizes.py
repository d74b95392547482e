"""Public sizes that commands take, with the range in which a plan is more than a number."""

from __future__ import annotations

from typing import Annotated

import typer

from fastmix._validation import check_real
from fastmix.estimators.parameters import LARGEST_EPSILON, SMALLEST_EPSILON

Rows = Annotated[int, typer.Option(min=1, max=10**12, help="Rows of the table.")]
Columns = Annotated[
    int, typer.Option(min=1, max=10**6, help="Columns of features, after encoding.")
]


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon without meaning; no command makes a fit without privacy by accident."""
    check_real("epsilon", epsilon, above=0.0)
    check_real("epsilon", epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)
