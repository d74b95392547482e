"""Options that several commands share."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fastmix._validation import check_real, value_error
from fastmix.data import Chunks
from fastmix.data.arrow import is_address
from fastmix.data.databases import Query, is_database
from fastmix.data.delimited import TextFormat
from fastmix.data.encode import table_chunks, table_columns
from fastmix.data.read import Table
from fastmix.data.sheets import Sheet
from fastmix.estimators.parameters import LARGEST_EPSILON, SMALLEST_EPSILON
from fastmix.schema import PublicBounds
from fastmix.schema.bounds_file import named_columns, read_bounds

T = TypeVar("T")

#: Methods that have standard errors.
INFERRING = ("auto", "adaptive", "adassp", "fast_ihm", "ihm")


def with_meaning(epsilon: float) -> float:
    """Reject epsilon outside [1e-6, 1e6]: no command makes a fit without privacy by accident."""
    check_real("epsilon", epsilon, above=0.0)
    return check_real("epsilon", epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)


def check_counting(
    person: str, max_rows: int | None, weight: str = "", max_weight: float | None = None
) -> None:
    """Refuse persons or weights without the public number that limits them, and the reverse."""
    if bool(person) != (max_rows is not None):
        raise ValueError(
            f"--person and --max-rows must be given together: --max-rows is {COUNTING}, a public "
            "number. A large one costs hardly any accuracy, for instance --max-rows 10; 'fastmix "
            "check --person' compares several."
        )
    if bool(weight) != (max_weight is not None):
        raise ValueError(
            "--weight and --max-weight must be given together: --max-weight is the largest weight "
            "that counts, a public number."
        )


def panel(title: str) -> Callable[..., Any]:
    """Return a function that makes an option of the named group of a help page."""

    def option(help: str, *names: str, **given: Any) -> Any:
        return typer.Option(*names, help=help, rich_help_panel=title, **given)

    return option


#: The group of the options that say how a table is read.
READING = "Reading the table"
_READING = panel(READING)


def _table(given: str) -> Any:
    """Return the file or folder of a name, or the database of an address."""
    if is_database(given):
        return Query(given)
    if is_address(given):
        raise typer.BadParameter("an address must begin with postgresql: or duckdb:.")
    return Path(given)


Columns = Annotated[int, typer.Option(min=1, max=10**6, help="Number of features, after encoding.")]

Decimal = Annotated[str | None, _READING("Decimal mark of a CSV file; by default ',' with ';'.")]
Delta = Annotated[float | None, typer.Option(help="Failure probability; by default 1/n^2.")]
NoHeader = Annotated[
    bool,
    _READING(
        "The first line is a record; columns are c1, c2, ..., or as the bounds file names them.",
        "--no-header",
    ),
]
SelectedRecords = Annotated[
    str | None, _READING("SQL that selects the records of a database; a sheet of an Excel file.")
]
Memory = Annotated[
    float, _READING("GiB of memory for decoded records; larger tables are decoded in each pass.")
]
Encoding = Annotated[
    str | None, _READING("Encoding of a CSV file, such as cp1252; detected by default.")
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget.", callback=with_meaning)]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Intercept = Annotated[bool, typer.Option(help="Fit an intercept.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MethodName = Annotated[
    str, typer.Option(help="auto, adassp, dp_gd, fast_ihm, ihm, linear_mixing or objective.")
]
_COUNTED = panel("Who and what counts")
#: What --max-rows is in every command.
COUNTING = "the most rows per person that count"
#: What --typical-rows is.
TYPICAL_ROWS = "a public guess at the rows per person, 1-40 or 1:0.5,5:0.3,40:0.2."
Person = Annotated[str, _COUNTED("Column of ids; protect persons instead of rows.")]
MaxRows = Annotated[int | None, _COUNTED(f"With --person: {COUNTING}.", min=1)]
Weight = Annotated[str, _COUNTED("Column of sample weights: how much each row counts.")]
MaxWeight = Annotated[float | None, _COUNTED("With --weight: largest weight that counts, public.")]
#: The same for scores of a model.
ScoredRows = Annotated[
    int | None, _COUNTED(f"With --person: {COUNTING}; by default the fit's.", min=1)
]
ScoredWeight = Annotated[
    float | None, _COUNTED("With --weight: largest weight; by default the fit's.")
]
PrivateRows = Annotated[
    bool,
    _COUNTED(
        "The number of rows is not public: release it with noise. Needs --delta.",
        "--private-rows",
    ),
]
_PAPERS = panel("Papers")
Papers = Annotated[
    Path | None, _PAPERS("TOML file with curator, purpose, reason and the like, for the papers.")
]
Sign = Annotated[Path | None, _PAPERS("Sign the files with this private key; see 'fastmix key'.")]
Key = Annotated[
    Path | None, _PAPERS("Public key: refuse a model that it has not signed; see 'fastmix key'.")
]
#: Least share of records with a label of the list: commands cannot show how labels are spelled.
LISTED = 0.5
MIN_LISTED = (
    "For labels: stop if fewer of the rows have a label of the list, by a count with noise for 2% "
    "of epsilon; 0 does not count."
)
MinListed = Annotated[float, typer.Option(help=MIN_LISTED)]


def check_listed(min_listed: float, family: str) -> None:
    """Refuse a share of listed labels where there are none."""
    if min_listed != LISTED and family != "logistic":
        raise value_error("min_listed", "be given with --family logistic", min_listed)


LedgerFile = Annotated[
    Path | None, typer.Option(help="Shared budget to charge; see 'fastmix ledger'.")
]
Model = Annotated[Path, typer.Argument(help="Folder or file that 'fastmix fit' wrote.")]
Label = Annotated[str, typer.Option(help="Name of the charge in the ledger.")]
Rows = Annotated[int, typer.Option(min=1, max=10**12, help="Number of rows.")]
Sep = Annotated[str | None, _READING("Separator of a CSV file, or 'tab'; detected by default.")]
Tables = Annotated[
    Any,
    typer.Argument(
        parser=_table,
        metavar="DATA",
        help="CSV, Parquet, Arrow, Excel, SAS, SPSS or Stata file; a folder of Parquet or Arrow "
        "files; postgresql://HOST/DATABASE or duckdb:FILE with --query.",
    ),
]
Target = Annotated[str, typer.Option(help="Column to predict.")]
Thousands = Annotated[str | None, _READING("Thousands separator of a CSV file; by default none.")]


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The options that say how the table ``data`` of a command is read."""

    sep: Sep = None
    decimal: Decimal = None
    thousands: Thousands = None
    encoding: Encoding = None
    no_header: NoHeader = False
    query: SelectedRecords = None

    def __post_init__(self) -> None:
        _ = self.text  # a wrong option is refused before anything is read
        object.__setattr__(self, "data", self._asked(self.data))  # type: ignore[attr-defined]

    @property
    def text(self) -> TextFormat:
        """Format of a CSV file, with the names of its columns if the bounds file has them."""
        bounds: Path | None = getattr(self, "bounds", None)
        names = () if bounds is None else named_columns(bounds)
        marks = self.sep, self.decimal, self.thousands, self.encoding
        return TextFormat(*marks, not self.no_header, names)

    def _asked(self, table: Table) -> Table:
        """Return the table, or the part of it that ``--query`` asks for."""
        if isinstance(table, Query):
            return table.asked(self.query, int(getattr(self, "memory", 1.0) * 2**30))
        if self.query is None:
            return table
        if not isinstance(table, Path) or table.suffix.lower() not in (".xlsx", ".xlsm"):
            raise ValueError("--query must be given with a database or an Excel file only.")
        return Sheet(table, self.query)

    def public(self, bounds: Path, target: str, *others: str) -> PublicBounds:
        """Read the bounds file; patterns cover all columns but ``others``: ids and weights."""
        data: Table = self.data  # type: ignore[attr-defined]

        def columns() -> list[str]:
            return [name for name in table_columns(data, self.text) if name not in others]

        public = read_bounds(bounds, columns)
        if target not in ("", public.target.name):
            condition = f"be that of the bounds file, {public.target.name!r}"
            raise value_error("target", condition, target)
        return public

    def chunks(self, public: PublicBounds, *, intercept: bool = True, **given: Any) -> Chunks:
        """Return the table in chunks, with its ids and weights if the command has such columns."""
        columns = {name: getattr(self, name, "") or None for name in ("person", "weight")}
        given |= {"intercept": intercept, "text": self.text, **columns}
        return table_chunks(self.data, public, **given)  # type: ignore[attr-defined]


def names_in(listed: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def quantiles(listed: str) -> float | list[float]:
    """Return the quantile, or the quantiles, in a comma-separated list."""
    try:
        found = [float(each) for each in names_in(listed)]
    except ValueError:
        found = []
    if not found:
        raise value_error("quantile", "be a number, or numbers separated by commas", listed)
    return found if len(found) > 1 else found[0]


def grouped(kind: type[T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Make the fields of a dataclass the options of a command, which takes them as one object."""

    def wrap(run: Callable[[T], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            run(kind(**given))

        command.__doc__ = run.__doc__
        command.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
        return command

    return wrap
