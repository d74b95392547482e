"""What ``fastmix fit`` is asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fastmix.cli import _options as options
from fastmix.data.delimited import TextFormat
from fastmix.engine.population import Population
from fastmix.paper import METHODS


@dataclass(frozen=True)
class Asked:
    """What ``fastmix fit`` is asked for."""

    data: options.Tables
    target: options.Target
    epsilon: options.Epsilon = 1.0
    delta: options.Delta = None
    bounds: Annotated[Path | None, typer.Option(help="Bounds file; see 'fastmix bounds'.")] = None
    features: Annotated[str, typer.Option(help="Features to use, separated by commas.")] = ""
    family: Annotated[
        str,
        typer.Option(
            help="linear, logistic (labels are listed, or the target's bounds), quantile or huber."
        ),
    ] = "linear"
    quantile: Annotated[float, typer.Option(help="Quantile, for --family quantile.")] = 0.5
    method: options.MethodName = "auto"
    intercept: Annotated[bool, typer.Option(help="Fit an intercept.")] = True
    intervals: Annotated[
        bool | None,
        typer.Option(
            help="Compute standard errors, for 5 to 15% of the budget, if the method has them."
        ),
    ] = None
    score_share: Annotated[
        float, typer.Option(help="Share of the budget for private scores of these rows, e.g. 0.05.")
    ] = 0.0
    engine: Annotated[
        str,
        typer.Option(help="memory, stream (block by block), dask (a cluster), or auto (by size)."),
    ] = "auto"
    scheduler: Annotated[
        str, typer.Option(help="Address of a Dask scheduler; by default a cluster on this machine.")
    ] = ""
    ledger: Annotated[
        Path | None, typer.Option(help="Shared budget to charge; see 'fastmix ledger'.")
    ] = None
    person: Annotated[str, typer.Option(help="Column of ids; protect persons instead of rows.")] = (
        ""
    )
    max_rows: Annotated[
        int | None, typer.Option(help="With --person: the most rows per person that count.")
    ] = None
    weight: Annotated[
        str, typer.Option(help="Column of sample weights: how much each row counts.")
    ] = ""
    max_weight: Annotated[
        float | None, typer.Option(help="With --weight: largest weight that counts, public.")
    ] = None
    private_rows: Annotated[
        bool,
        typer.Option(
            "--private-rows",
            help="The number of rows is not public: release it with noise. Needs --delta.",
        ),
    ] = False
    label: Annotated[str, typer.Option(help="Name of the fit in the ledger.")] = ""
    out: Annotated[Path, typer.Option(help="Folder for model, certificate and report.")] = Path(
        "model"
    )
    force: Annotated[bool, typer.Option("--force", help="Replace a model in the folder.")] = False
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the error to expect, and stop; nothing is spent."),
    ] = False
    unsafe_bounds_from_data: Annotated[
        bool,
        typer.Option(
            "--unsafe-bounds-from-data",
            help="Take bounds from the data. The result is NOT PRIVATE.",
        ),
    ] = False
    sep: options.Sep = None
    decimal: options.Decimal = None
    thousands: options.Thousands = None
    encoding: options.Encoding = None
    json: options.Json = False

    def __post_init__(self) -> None:
        _ = self.text  # refused before anything is read

    @property
    def text(self) -> TextFormat:
        """How a CSV file is written."""
        return TextFormat(self.sep, self.decimal, self.thousands, self.encoding)

    @property
    def names(self) -> list[str]:
        """The features that are asked for by name."""
        return [name.strip() for name in self.features.split(",") if name.strip()]

    @property
    def population(self) -> Population:
        """Who the fit is to protect."""
        return Population(None, self.max_rows, self.max_weight, self.private_rows)

    def check(self) -> None:
        """Refuse options that do not go together."""
        if (self.bounds is None) != self.unsafe_bounds_from_data:
            raise ValueError(
                "bounds must be given from public knowledge: write a file with 'fastmix bounds' "
                "and pass --bounds (or, for a result that is NOT PRIVATE, "
                "--unsafe-bounds-from-data alone)."
            )
        if bool(self.person) != (self.max_rows is not None):
            raise ValueError("--person and --max-rows must be given together.")
        if bool(self.weight) != (self.max_weight is not None):
            raise ValueError("--weight and --max-weight must be given together.")
        for name in ("person", "weight"):
            if getattr(self, name) and (self.bounds is None or self.engine == "memory"):
                raise ValueError(
                    f"--{name} must be given with --bounds, and with --engine stream or dask."
                )
        self._check_counting()

    def _check_counting(self) -> None:
        """Refuse persons, weights or a hidden number of rows where the method has no such fits."""
        other = self.method if self.family == "linear" else self.family
        choice = f"--{'method' if self.family == 'linear' else 'family'} {other}"
        kind = METHODS.get(other)  # None for auto
        missing = None if kind is None else self.population.unsupported(kind)
        if missing is not None:
            raise ValueError(
                f"{missing.option} must not be given with {choice}, which {missing.why}. Use "
                "--family linear and --method auto, its default, or objective."
            )
