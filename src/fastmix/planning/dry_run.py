"""A dry run: what error to expect of a fit in the units of its target, without data."""

import math
from dataclasses import dataclass, field

from fastmix._validation import check_integer, check_real, value_error
from fastmix.methods import Method, Sizes, Target, default_delta, plan_fit
from fastmix.methods.forecast import TARGET_VARIANCE, Outlook, concerns, outlook
from fastmix.planning.families import Described, Family
from fastmix.planning.people import records_of, rows_of_each
from fastmix.show import html
from fastmix.show.error_chart import error_chart

#: Epsilons at which errors are shown, beside the one that is asked for.
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Error:
    """The error that privacy adds to predictions, in the units of the target.

    For a logistic regression it is excess log-loss, for a quantile excess pinball loss.
    """

    what: str  #: What the fit differs in from the one that is asked for.
    epsilon: float
    low: float  #: For easy data: uncorrelated features that fill their bounds.
    typical: float
    high: float  #: For hard data: correlated features, or bounds far wider than the data.


@dataclass(frozen=True)
class DryRun(Described):
    """What to expect of a fit of a table, from public sizes and bounds only.

    ``by_epsilon`` has the errors at several epsilons, ``others`` what other changes would give, and
    ``spread`` is the standard deviation of a target that uses a third of its bounds. A fit whose
    error is ``useless`` is of no use: for a linear model that is the spread.
    """

    n: int
    d: int
    epsilon: float
    delta: float
    method: str
    target: str
    unit: str
    lower: float
    upper: float
    asked: Error
    by_epsilon: tuple[Error, ...]
    others: tuple[Error, ...]
    warnings: tuple[str, ...] = field(default=())
    n_persons: int | None = None
    family: str = "linear"
    n_classes: int = 2
    quantile: float = 0.5
    nothing: float = math.nan  #: Excess risk of a model without features on typical data.

    @property
    def spread(self) -> float:
        """Standard deviation of a target that uses a third of its bounds."""
        return math.sqrt(TARGET_VARIANCE) * (self.upper - self.lower) / 2.0

    @property
    def useless(self) -> float:
        """The error of a fit that is of no use."""
        if self.family in ("linear", "huber"):
            return self.spread
        return self._family.error(self.nothing, (self.upper - self.lower) / 2.0)

    @property
    def what(self) -> str:
        """What privacy adds."""
        return {"logistic": "log-loss", "quantile": "pinball loss"}.get(self.family, "error")

    @property
    def title(self) -> str:
        """What is planned."""
        return f"Plan: {self._family.title} of {self.target}"

    def headline(self) -> str:
        """Say what error to expect."""
        e = self.asked
        between = f"between {self.amount(e.low)} for easy data and {self.amount(e.high)} for hard"
        start = f"At epsilon {self.epsilon:g}, privacy is expected to add"
        if self.family in ("linear", "huber"):
            return (
                f"{start} an error of about {self.amount(e.typical)} to predictions of "
                f"{self.target}: {between} data."
            )
        half = 1.0 if self.family == "logistic" else (self.upper - self.lower) / 2.0
        return (
            f"{start} about {self.amount(e.typical)} to the mean {self.what} of predictions of "
            f"{self.target}: {between} data. {self._family.in_points(e.typical / half)}"
        )

    def notes(self) -> list[str]:
        """Return what is needed to read the numbers, and the warnings of a fit."""
        return [
            self._compared(),
            "Easy data have uncorrelated features that fill their bounds. Hard data have strongly "
            "correlated features, or bounds far wider than the values. Tighter bounds of features "
            "move a table towards easy data; by how much depends on the data, so it is not "
            "forecast.",
            *(f"Warning: {warning}" for warning in self.warnings),
        ]

    def _compared(self) -> str:
        """Say what the errors are beyond, and which are too large."""
        if self.family in ("linear", "huber"):
            return (
                "These errors are root mean squares, and privacy adds them to the error that "
                f"{self._family.reference} has anyway. To compare: without a model, the mean of "
                f"{self.target} as the prediction of every row is off by its standard deviation, "
                f"{self.amount(self.spread)} if that is a sixth of the range of its bounds. Where "
                "privacy adds as much, the fit is of no use."
            )
        return (
            "Privacy adds this loss to that of the fit without privacy. To compare: on typical "
            f"data, a model without features has {self.amount(self.useless)} more loss than the "
            "best one. Where privacy adds as much, the fit is of no use."
        )

    def amount(self, error: float) -> str:
        """Return an error with its unit."""
        return f"{_rounded(error)} {self.unit}".rstrip()

    def cells(self, errors: tuple[Error, ...]) -> list[list[str]]:
        """Return rows of a table of errors."""
        return [
            [e.what, *(_rounded(value) for value in (e.typical, e.low, e.high))] for e in errors
        ]

    def page(self) -> str:
        """Return the dry run as an HTML page that stands alone."""
        header = ["", f"typical{f', {self.unit}' if self.unit else ''}", "easy data", "hard data"]
        points = [(e.epsilon, e.low, e.typical, e.high) for e in self.by_epsilon]
        chart = error_chart(
            points,
            mark=(self.epsilon, self.asked.typical),
            limit=self.useless,
            unit=self.unit,
            what=self.what,
        )
        body = [
            f"<h1>{html.escape(self.title)}</h1>",
            f"<p>{html.escape(self.headline())}</p>",
            html.definition_list(
                [
                    ("table", self.size),
                    ("columns", f"{self.d:,}"),
                    ("epsilon", f"{self.epsilon:g}"),
                    ("delta", f"{self.delta:.2g}"),
                    ("method", self.method),
                ]
            ),
            f"<h2>More privacy costs more {self.what}</h2>",
            f"<figure>{chart}</figure>",
            html.table(header, self.cells(self.by_epsilon)),
            "<h2>What other choices would give</h2>",
            html.table(header, self.cells(self.others)),
            html.paragraphs(self.notes()),
            '<p class="soft">Made by fastmix from public sizes and bounds; no data was read.</p>',
        ]
        return html.page(self.title, "\n".join(body))

    def _repr_html_(self) -> str:
        header = ["", f"typical{f', {self.unit}' if self.unit else ''}", "easy data", "hard data"]
        rows = self.cells((*self.by_epsilon, *self.others))
        return html.paragraphs([self.headline()]) + html.table(header, rows)

    def __str__(self) -> str:
        rows = [["", "typical", "easy", "hard"], *self.cells((*self.by_epsilon, *self.others))]
        lines = ["{:<36} {:>12} {:>12} {:>12}".format(*row) for row in rows]
        return "\n".join([self.headline(), "", *lines, "", *self.notes()])


def dry_run(
    n: int,
    d: int,
    bounds_y: tuple[float, float] | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    method: str = "auto",
    fit_intercept: bool = True,
    target: str = "the target",
    unit: str = "",
    persons: int | None = None,
    family: str = "linear",
    n_classes: int = 2,
    quantile: float = 0.5,
) -> DryRun:
    """Return what error to expect of a fit, in the units of its target; reads no data.

    Parameters
    ----------
    n, d : int
        Rows and features, after encoding.
    bounds_y : tuple of (lower, upper), optional
        Public bounds of the target; a logistic regression needs none.
    epsilon : float, default 1.0
        Target epsilon.
    delta : float, optional
        Target delta; ``1 / n**2`` by default, ``1 / persons**2`` with persons.
    method : str, default "auto"
        The method; "auto" chooses as `fastmix.PrivateLinearRegression` does.
    fit_intercept : bool, default True
        Whether there is an intercept, which is one more column.
    target, unit : str
        Name and unit of the target, for messages.
    persons : int, optional
        Persons whose rows they are, for a fit that protects persons: each counts as one record.
    family : {"linear", "logistic", "quantile", "huber"}, default "linear"
        What is fitted. Errors of a logistic regression are excess log-loss, those of a quantile
        excess pinball loss in the units of the target.
    n_classes : int, default 2
        Number of classes of a logistic regression.
    quantile : float, default 0.5
        The quantile of a quantile regression.

    Returns
    -------
    DryRun
        Expected errors at several epsilons, and what other choices would give; print it for a
        table, or write its ``page()`` to a file.

    Examples
    --------
    >>> from fastmix.planning import dry_run
    >>> run = dry_run(100_000, 20, (0, 200_000), epsilon=1.0, target="income", unit="EUR")
    >>> run.asked.low < run.asked.typical < run.asked.high
    True
    """
    check_integer("n", n, at_least=1)
    check_integer("d", d, at_least=1)
    check_real("epsilon", epsilon, above=0.0)
    kind = Family(family, n_classes, quantile)
    if bounds_y is None and family != "logistic":
        raise value_error("bounds_y", "be given unless family is logistic", None)
    low, high = (check_real("bounds_y", side) for side in bounds_y or (0.0, 1.0))
    check_real("width of bounds_y", high - low, above=0.0)
    columns = d + bool(fit_intercept)
    chosen = kind.chosen(method, columns)[0]
    records = records_of(n, persons)
    given = default_delta(delta, records)
    half = (high - low) / 2.0
    found: dict[tuple[int, int, float], Outlook | None] = {}

    def expected(rows: int, width: int, asked: float) -> Outlook:
        key = (rows, width, asked)
        if key not in found:
            found[key] = _outlook(
                kind.method(chosen), *key, given, bool(fit_intercept), rows_of_each(n, persons)
            )
        at = found[key]
        if at is None:
            raise ValueError(f"method must have a forecast; got method={method!r}.")
        return at

    def error(what: str, rows: int, width: int, asked: float, scale: float = 1.0) -> Error:
        at = expected(rows, width, asked)
        sides = (scale * kind.error(risk, half) for risk in (at.low, at.typical, at.high))
        return Error(what, asked, *sides)

    noun = "rows" if persons is None else "persons"
    others = [error(f"twice the {noun}", 2 * records, columns, epsilon)]
    if family != "logistic":
        narrow = f"{target} within bounds half as wide"
        others.append(error(narrow, records, columns, epsilon, 0.5))
    if d > 1:
        fewer = d // 2 + bool(fit_intercept)
        others.append(error(f"{d // 2:,} of {d:,} columns", records, fewer, epsilon))
    at = expected(records, columns, epsilon)
    warned = concerns(epsilon, given, records, columns, at, noun)
    epsilons = sorted({*EPSILONS, float(epsilon)})
    curve = [error(f"epsilon {e:g}", records, columns, e) for e in epsilons]
    return DryRun(
        n, d, float(epsilon), given, chosen, target, unit, low, high,
        error("as asked", records, columns, epsilon), tuple(curve), tuple(others),
        tuple(message for _, message in warned), persons, family, n_classes, quantile, at.nothing,
    )  # fmt: skip


def _rounded(error: float) -> str:
    """Return an error with the two digits that a forecast has at most."""
    return html.number(float(f"{error:.2g}"), 2)


def _outlook(
    algorithm: Method,
    n: int,
    columns: int,
    epsilon: float,
    delta: float,
    intercept: bool,
    rows_per_person: int | None,
) -> Outlook | None:
    """Return the range of excess risk of one method."""
    sizes = Sizes(n, columns, intercept, intercept, rows_per_person)
    return outlook(algorithm, plan_fit(algorithm, sizes, Target(epsilon, delta)), n, columns)
