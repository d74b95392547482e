"""Options that several commands take, with the range in which an epsilon has a meaning."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fastmix._validation import check_real
from fastmix.estimators.parameters import LARGEST_EPSILON, SMALLEST_EPSILON

T = TypeVar("T")


def with_meaning(epsilon: float) -> float:
    """Refuse an epsilon without meaning; no command makes a fit without privacy by accident."""
    check_real("epsilon", epsilon, above=0.0)
    return check_real("epsilon", epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)


Columns = Annotated[
    int, typer.Option(min=1, max=10**6, help="Columns of features, after encoding.")
]
Data = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, Arrow, Feather or NPZ file.")]
Decimal = Annotated[
    str | None, typer.Option(help="Decimal mark of a CSV file, '.' or ','; ',' beside semicolons.")
]
Delta = Annotated[float | None, typer.Option(help="Failure probability; 1/n^2 by default.")]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a CSV file, such as cp1252; by its first line.")
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget.", callback=with_meaning)]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]
Intercept = Annotated[bool, typer.Option(help="With an intercept.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MethodName = Annotated[
    str, typer.Option(help="auto, adassp, dp_gd, fast_ihm, ihm, linear_mixing or objective.")
]
Rows = Annotated[int, typer.Option(min=1, max=10**12, help="Rows of the table.")]
Sep = Annotated[
    str | None, typer.Option(help="Separator of a CSV file, or 'tab'; by its first line.")
]
Target = Annotated[str, typer.Option(help="Column to predict.")]
Thousands = Annotated[
    str | None, typer.Option(help="Mark between groups of three digits of a CSV file; none.")
]


def grouped(kind: type[T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Let a command have the fields of a dataclass as its options, and take them as one object."""

    def wrap(run: Callable[[T], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            run(kind(**given))

        command.__doc__ = run.__doc__
        command.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
        return command

    return wrap
