"""The options of ``fastmix fit`` and ``fastmix compare``, with checks of their combinations."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastmix.accounting import BudgetAccountant, noted
from fastmix.cli import _options as options
from fastmix.data.delimited import TextFormat
from fastmix.data.encode import encode, needed
from fastmix.data.read import read_columns
from fastmix.engine.population import Population
from fastmix.errors import DataError
from fastmix.paper import METHODS
from fastmix.schema import Labels, Number, PublicBounds
from fastmix.schema.bounds import check_number

#: How to find labels outside the public list; the fit itself must not tell.
UNLISTED = "'fastmix check' shows their share, for your eyes only"


def check_target(public: PublicBounds, family: str) -> None:
    """Refuse a target of numbers for classes, and a target of labels for any other family."""
    if family != "logistic":
        check_number(public)
        return
    target = public.target
    if isinstance(target, Number) and (target.upper - target.lower, target.lower % 1.0) != (1, 0):
        raise ValueError(
            f"--family logistic needs a target of labels; {target.name} has the bounds "
            f"[{target.lower:g}, {target.upper:g}]. List its labels in the bounds file: "
            f"{target.name} = {{ labels = [0, 1] }}, or pass --family linear."
        )


_MODEL, _PRIVACY, _OUTPUT, _PAPERS, _READING = map(
    options.panel, ("Model", "Privacy", "Output", "Papers", options.READING)
)


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """The options that ``fastmix fit`` and ``fastmix compare`` share."""

    data: options.Tables
    target: Annotated[str, _MODEL("Column to predict.")]
    bounds: Annotated[Path | None, _MODEL("Bounds file; see 'fastmix bounds'.")]
    intercept: Annotated[bool, _MODEL("Fit an intercept.")] = True
    epsilon: Annotated[float, _PRIVACY("Privacy budget.", callback=options.with_meaning)] = 1.0
    delta: Annotated[float | None, _PRIVACY("Failure probability; by default 1/n^2.")] = None
    ledger: Annotated[Path | None, _PRIVACY("Shared budget to charge; see 'fastmix ledger'.")] = (
        None
    )
    label: Annotated[str, _PRIVACY("Name of the charge in the ledger.")] = ""
    min_listed: Annotated[float, _PRIVACY(options.MIN_LISTED)] = options.LISTED
    person: options.Person = ""
    max_rows: options.MaxRows = None
    weight: options.Weight = ""
    max_weight: options.MaxWeight = None
    private_rows: options.PrivateRows = False
    papers: options.Papers = None
    sign: options.Sign = None
    out: Annotated[Path, _OUTPUT("Folder for model, certificate and report.")] = Path("model")
    force: Annotated[bool, _OUTPUT("Replace a model in the folder.", "--force")] = False
    json: Annotated[bool, _OUTPUT("Print JSON.", "--json")] = False

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that all estimators have."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "fit_intercept": self.intercept,
            "public_rows": not self.private_rows,
            "accountant": None if self.ledger is None else BudgetAccountant.load(self.ledger),
        }

    def noted(self) -> AbstractContextManager[None]:
        """Let the ledger keep what the fit is about."""
        notes = {"file": self.data.name, "target": self.target, "model": str(self.out)}
        return noted(label=self.label or None, **notes)

    def records(self, public: PublicBounds, text: TextFormat) -> tuple[Any, Any]:
        """Return the encoded table in memory, and its targets or labels."""
        columns = read_columns(self.data, *needed(public), text.of(public))
        X, y = encode(columns, public, intercept=self.intercept)
        return X, self.targets(public, y)

    def targets(self, public: PublicBounds, y: Any) -> Any:
        """Return encoded targets as an estimator takes them; refuse an empty table."""
        if not len(y) and not self.private_rows:
            raise DataError(f"{self.data.name} must have at least one row to fit.")
        return public.target.decoded(y) if isinstance(public.target, Labels) else y


@dataclass(frozen=True, kw_only=True)
class Asked(options.TableOptions, FitOptions):
    """The options of ``fastmix fit``."""

    bounds: Annotated[Path | None, _MODEL("Bounds file; see 'fastmix bounds'.")] = None
    features: Annotated[str, _MODEL("Features to use, separated by commas.")] = ""
    family: Annotated[str, _MODEL("linear, logistic (for labels), quantile or huber.")] = "linear"
    quantile: Annotated[
        str, _MODEL("For --family quantile: one, or several separated by commas.")
    ] = "0.5"
    method: Annotated[
        str, _MODEL("auto, adassp, dp_gd, fast_ihm, ihm, linear_mixing or objective.")
    ] = "auto"
    intervals: Annotated[
        bool | None,
        _PRIVACY("Compute standard errors, for 5 to 23% of the budget, if the method has them."),
    ] = None
    score_share: Annotated[
        float, _PRIVACY("Share of the budget for private scores of these rows, e.g. 0.05.")
    ] = 0.0
    dry_run: Annotated[
        bool, _PRIVACY("Print the error to expect, and stop; nothing is spent.", "--dry-run")
    ] = False
    unsafe_bounds_from_data: Annotated[
        bool,
        _PRIVACY(
            "Take bounds from the data. The result is NOT PRIVATE.", "--unsafe-bounds-from-data"
        ),
    ] = False
    audit: Annotated[
        Path | None, _PAPERS("Findings of 'fastmix audit --json' for this version, for the papers.")
    ] = None
    engine: Annotated[
        str, _READING("memory, stream (block by block), dask (a cluster), or auto (by size).")
    ] = "auto"
    memory: options.Memory = 1.0
    scheduler: Annotated[
        str, _READING("Address of a Dask scheduler; by default a cluster on this machine.")
    ] = ""

    @property
    def names(self) -> list[str]:
        """Names of the features to use; none for all."""
        return options.names_in(self.features)

    @property
    def population(self) -> Population:
        """Who the fit is to protect."""
        return Population(None, self.max_rows, self.max_weight, self.private_rows)

    def check(self) -> None:
        """Refuse combinations of options that have no meaning."""
        if (self.bounds is None) != self.unsafe_bounds_from_data:
            raise ValueError(
                "bounds must be given from public knowledge: write a file with 'fastmix bounds' "
                "and pass --bounds (or, for a result that is NOT PRIVATE, "
                "--unsafe-bounds-from-data alone)."
            )
        options.check_counting(self.person, self.max_rows, self.weight, self.max_weight)
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
