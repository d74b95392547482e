"""A plan of a fit from public quantities, with reasons."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_choice, check_integer, check_real, value_error
from fastmix.estimators import PrivateLinearRegression
from fastmix.methods import METHODS, Sizes, Target, default_delta, plan_fit
from fastmix.methods.forecast import TARGET_VARIANCE, Outlook, concerns, outlook
from fastmix.planning.cost import CostModel, Problem
from fastmix.planning.families import Described, Family
from fastmix.planning.people import records_of, rows_of_each
from fastmix.show.html import paragraphs, table

_COMPARED = ("objective", "ihm", "fast_ihm", "adassp")
_COST_NAMES = {
    "gram": "objective_gram",
    "sketch": "objective_sketch",
    "fast_ihm": "fast_ihm_shared",
    "logistic": "objective_sigmoid",
    "quantile": "objective_sigmoid",
}
_MEBI = float(1 << 20)


@dataclass(frozen=True)
class MethodPlan:
    """One method: what it would do, and what is expected of it."""

    method: str
    sizes: dict[str, int]
    outlook: Outlook
    seconds: float
    memory: float


@dataclass(frozen=True)
class FitPlan(Described):
    """The chosen method beside those it was compared with, from public quantities only.

    ``d`` counts features without the intercept; ``methods`` begins with the chosen one;
    ``warnings`` are what a fit of these sizes would warn of.
    """

    n: int
    d: int
    epsilon: float
    delta: float
    method: str
    reason: str
    methods: tuple[MethodPlan, ...]
    warnings: tuple[str, ...] = ()
    n_persons: int | None = None
    family: str = "linear"
    n_classes: int = 2
    quantile: float = 0.5

    @property
    def chosen(self) -> MethodPlan:
        """The plan of the chosen method."""
        return self.methods[0]

    def table(self) -> list[dict[str, Any]]:
        """Return one row per method, as plain values."""
        return [
            {
                "method": each.method,
                "sizes": ", ".join(f"{name}={size}" for name, size in each.sizes.items()),
                "excess_risk_low": each.outlook.low,
                "excess_risk": each.outlook.typical,
                "excess_risk_high": each.outlook.high,
                "eta": each.outlook.forecast.eta,
                "gradient_noise": each.outlook.forecast.gradient_noise,
                "seconds": each.seconds,
                "memory_mib": each.memory / _MEBI,
            }
            for each in self.methods
        ]

    def meaning(self) -> str:
        """Say what the excess risk of the chosen method means for predictions."""
        at = self.chosen.outlook
        if self.family in ("logistic", "quantile"):
            return self._family.meaning(at, self.method)
        lost = [min(1.0, risk / TARGET_VARIANCE) for risk in (at.typical, at.low, at.high)]
        return (
            "Excess risk is the mean squared error that privacy adds, for a target scaled to "
            "[-1, 1] by its bounds. If the target's standard deviation is a third of that scale, "
            f"{self.method} loses about {lost[0]:.2g} of R² to privacy: "
            f"between {lost[1]:.1g} (uncorrelated features that fill their bounds) and "
            f"{lost[2]:.1g} (strongly correlated features, or bounds much wider than the data). "
            f"Predictions are off by {math.sqrt(at.typical):.2g} of half the width of the "
            f"target's bounds, beyond the error of {self._family.reference}."
        )

    def cells(self) -> list[list[str]]:
        """Return the table in words, its header first."""
        header = ["method", self._family.measure, "from", "to", "seconds", "MiB", "sizes"]
        form = (
            "{method}|{excess_risk:.2g}|{excess_risk_low:.1g}|{excess_risk_high:.1g}|"
            "{seconds:.3g}|{memory_mib:.0f}|{sizes}"
        )
        return [header, *(form.format(**row).split("|") for row in self.table())]

    def notes(self) -> list[str]:
        """Return what stands under the table: its meaning, and the warnings."""
        return [self.meaning(), *(f"Warning: {each}" for each in self.warnings)]

    def __str__(self) -> str:
        sizes, wide = f"{self.size}, {self.d} features", len(self._family.measure)
        lines = [
            "{:<10} {:>{wide}} {:>8} {:>8} {:>9} {:>7}  {}".format(*row, wide=wide)
            for row in self.cells()
        ]
        head = [f"{sizes}, epsilon {self.epsilon:g}, delta {self.delta:.2g}", self.reason]
        return "\n".join([*head, "", *lines, "", *self.notes()])

    def _repr_html_(self) -> str:
        rows = self.table()
        cells = [[v if isinstance(v, str) else f"{v:.3g}" for v in row.values()] for row in rows]
        return paragraphs([self.reason]) + table(list(rows[0]), cells) + paragraphs(self.notes())


def plan(
    n: int,
    d: int,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    method: str = "auto",
    fit_intercept: bool = True,
    eigenvalues: npt.ArrayLike | None = None,
    theta_norm: float = 1.0,
    cost: CostModel | None = None,
    persons: int | None = None,
    family: str = "linear",
    n_classes: int = 2,
    quantile: float = 0.5,
) -> FitPlan:
    """Plan a fit: method, sizes, noise, expected error, seconds and memory.

    Parameters
    ----------
    n, d : int
        Rows and features.
    epsilon : float, default 1.0
        Target epsilon.
    delta : float, optional
        Target delta; ``1 / n**2`` by default, ``1 / persons**2`` with persons.
    method : {"auto", "objective", "ihm", "fast_ihm", "adassp"}, default "auto"
        The method; "auto" chooses as `PrivateLinearRegression` does.
    fit_intercept : bool, default True
        Whether there is an intercept, which is one more column.
    eigenvalues : array_like, optional
        Public guess at the eigenvalues of the Gram matrix of the scaled rows, whose norm is at
        most 1. With it the range is a factor of 3 in both directions; without it the range is
        that of easy to hard data.
    theta_norm : float, default 1.0
        With ``eigenvalues``, a public guess at the norm of the coefficients of scaled rows and
        targets.
    cost : CostModel, optional
        Seconds for each unit of work; by default those that were measured for the documentation.
    persons : int, optional
        Persons whose rows they are, for a fit that protects persons: each counts as one record.
        The plan has the methods that protect persons.
    family : {"linear", "logistic", "quantile", "huber"}, default "linear"
        What is fitted. The families beside linear regression have one method each, and excess risk
        is that of their loss: log-loss, pinball loss, or the mean square by which predictions move.
    n_classes : int, default 2
        Number of classes of a logistic regression.
    quantile : float, default 0.5
        The quantile of a quantile regression.

    Returns
    -------
    FitPlan
        The plan; print it for a table.

    Examples
    --------
    >>> from fastmix import plan
    >>> plan(n=100_000, d=20, epsilon=1.0).method
    'adaptive'
    """
    records = records_of(n, persons)
    check_integer("d", d, at_least=1)
    kind = Family(family, n_classes, quantile)
    compared = [name for name in _COMPARED if persons is None or METHODS[name].persons]
    if family == "linear":
        check_choice("method", method, ("auto", *compared))
    else:
        compared = []
    theta_norm = check_real("theta_norm", theta_norm, at_least=0.0)
    columns = d + bool(fit_intercept)
    values = None if eigenvalues is None else _spectrum(eigenvalues, columns)
    if math.isinf(check_real("epsilon", epsilon, above=0.0, allow_inf=True)):
        raise value_error("epsilon", "be finite", epsilon)
    PrivateLinearRegression(epsilon=epsilon, delta=delta)._check_parameters()
    given = default_delta(delta, records)
    intercept = bool(fit_intercept)
    sizes = Sizes(records, columns, intercept, intercept, rows_of_each(n, persons))
    target = Target(float(epsilon), given)
    chosen, reason = kind.chosen(method, columns)
    methods = []
    for name in [chosen, *(name for name in compared if name != chosen)]:
        algorithm = kind.method(name)
        planned = plan_fit(algorithm, sizes, target)
        settings = planned.settings
        rows: dict[str, int] = {key: settings[key] for key in ("k", "k1", "k2") if key in settings}
        problem = Problem(n, columns, rows.get("k2", 1), planned.steps)
        solver = settings.get("preconditioner", name)
        solver = name if name in _COST_NAMES else solver
        seconds = (cost or CostModel()).predict(_COST_NAMES.get(solver, solver), problem)
        seconds *= n_classes if n_classes > 2 else 1
        memory = _memory(name, n, columns, rows.get("k2", 0))
        expected = outlook(algorithm, planned, records, columns)
        assert expected is not None
        if values is not None:
            squares = np.full(columns, theta_norm**2 / columns)
            known = algorithm.forecast(planned, records, values, squares)
            assert known is not None
            risk = known.excess_risk
            expected = Outlook(risk / 3.0, risk, 3.0 * risk, known)
        taken = {"steps": planned.steps, **rows}
        methods.append(MethodPlan(name, taken, expected, seconds, memory))
    noun = "rows" if persons is None else "persons"
    warned = concerns(epsilon, given, records, columns, methods[0].outlook, noun)
    warnings = tuple(message for _, message in warned)
    return FitPlan(
        n, d, float(epsilon), given, chosen, reason, tuple(methods), warnings, persons,
        family, n_classes, quantile,
    )  # fmt: skip


def _spectrum(eigenvalues: npt.ArrayLike, columns: int) -> FloatArray:
    values = np.asarray(eigenvalues, dtype=np.float64)
    if values.shape != (columns,) or not (np.isfinite(values) & (values >= 0.0)).all():
        raise value_error("eigenvalues", f"be {columns} finite numbers, none negative", values)
    return np.sort(values)


def _memory(method: str, n: int, columns: int, k2: int) -> float:
    """Return bytes beyond the data: norms, one block or sketch, a few Gram matrices."""
    block = min(n * columns * 8, 64 << 20) if columns > 128 else 0
    sketch = k2 * columns * 8 if method == "fast_ihm" else block
    return 16.0 * n + sketch + 5.0 * 8.0 * columns**2
