"""Public sizes that commands take, with the range in which a plan is more than a number."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["LARGEST_EPSILON", "Columns", "Rows"]

#: Far beyond any guarantee; above it the accounting leaves the range of floating point.
LARGEST_EPSILON = 1e6

Rows = Annotated[int, typer.Option(min=1, max=10**12, help="Rows of the table.")]
Columns = Annotated[
    int, typer.Option(min=1, max=10**6, help="Columns of features, after encoding.")
]
