"""Is a table big enough? The error to expect of a fit, from public sizes and bounds only."""

import math
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_choice, check_integer, check_real, value_error
from fastmix.engine import Method, Plan, choose_method, default_delta
from fastmix.engine.forecast import Outlook, concerns, outlook
from fastmix.engine.population import Population
from fastmix.errors import CalibrationError
from fastmix.estimators import (
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateModel,
    PrivateQuantileRegressor,
)
from fastmix.estimators.regression import with_method
from fastmix.planning import words
from fastmix.planning.cost import CostModel, memory, seconds

#: Epsilons at which errors are shown, beside the one that is asked for.
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
#: Methods that a linear regression is compared with.
COMPARED = ("objective", "ihm", "fast_ihm", "adassp")
FAMILIES: dict[str, type[PrivateModel]] = {
    "linear": PrivateLinearRegression,
    "logistic": PrivateLogisticRegression,
    "quantile": PrivateQuantileRegressor,
    "huber": PrivateHuberRegressor,
}


class Error(NamedTuple):
    """The error that privacy adds to predictions, in the units of the target.

    For a logistic regression it is excess log-loss, for a quantile excess pinball loss.
    """

    what: str  #: How the fit differs from the one that is asked for.
    epsilon: float
    low: float  #: For easy data: uncorrelated features that fill their bounds.
    typical: float
    high: float  #: For hard data: correlated features, or bounds far wider than the data.


@dataclass(frozen=True, eq=False)
class FitPlan:
    """The error to expect of a fit, from the parameters of its estimator and public sizes.

    ``d`` counts features without the intercept; with ``n_persons`` each person is one record.
    """

    model: PrivateModel
    n: int
    d: int
    n_persons: int | None = None
    target: str = "the target"
    unit: str = ""
    #: Public eigenvalues of the scaled rows, and squared coefficients in their eigenvectors.
    spectrum: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False)
    cost: CostModel = field(default_factory=CostModel, repr=False)

    def __post_init__(self) -> None:
        check_integer("n", self.n, at_least=1)
        check_integer("d", self.d, at_least=1)
        self.model._check_parameters()
        if math.isinf(self.model.epsilon):
            raise value_error("epsilon", "be finite", self.model.epsilon)
        if self.n_persons is not None:
            check_integer("persons", self.n_persons, at_least=1, at_most=self.n)
        if (self.n_persons is not None) != self.model._population.persons:
            raise value_error("persons", "be given with max_rows_per_group", self.n_persons)
        check_real("width of bounds_y", self.half_width, above=0.0)
        delta = default_delta(self.model.delta, self.records)
        object.__setattr__(self, "model", copy(self.model).set_params(delta=delta))
        _ = self.outlook  # refused now, not when it is shown

    @property
    def records(self) -> int:
        """Number of rows, or of persons where they are protected."""
        return self.n if self.n_persons is None else self.n_persons

    @property
    def columns(self) -> int:
        """Number of features, and one for the intercept."""
        return self.d + bool(self.model.fit_intercept)

    @property
    def half_width(self) -> float:
        """Half the width of the bounds of the target."""
        lower, upper = (check_real("bounds_y", y) for y in self.model._bounds_y() or (-1.0, 1.0))
        return (upper - lower) / 2.0

    @property
    def epsilon(self) -> float:
        """Target epsilon."""
        return float(self.model.epsilon)

    @property
    def delta(self) -> float:
        """Target delta."""
        return default_delta(self.model.delta, self.records)

    @cached_property
    def _planned(self) -> tuple[Method, Plan]:
        return self.model._planned(self.records, self.d)

    @property
    def method(self) -> str:
        """Name of the method."""
        return self._planned[0].name

    @property
    def family(self) -> str:
        """What is fitted: linear, logistic, quantile or huber."""
        return self._planned[0].family

    @property
    def reason(self) -> str:
        """Why the fit has this method."""
        if self.family != "linear":
            return f"{self.method}: the method of this family."
        if isinstance(self.model, PrivateLinearRegression):
            return choose_method(self.columns, inference=self.model._infers)[1]
        return f"{self.method}: asked for."

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the fit."""
        public = self.model._sizes(self.records, self.d), self.model._target(self.records)
        return tuple(message for _, message in concerns(*self._planned, *public))

    @cached_property
    def outlook(self) -> Outlook:
        """The range of excess risk, for a target scaled to [-1, 1]."""
        found = outlook(*self._planned, self.records, self.columns, self.spectrum)
        if found is None:
            known = ", ".join(("auto", *COMPARED))
            raise value_error("method", f"have a forecast, as {known} do", self.method)
        return found

    def _in_units(self, risk: float) -> float:
        """Return an excess risk as an error in the units of the target."""
        if self.family == "logistic":
            return risk
        return self.half_width * (risk if self.family == "quantile" else math.sqrt(risk))

    def error(self, what: str) -> Error:
        """Return the range of errors of the fit, under a name."""
        at = self.outlook
        return Error(what, self.epsilon, *map(self._in_units, (at.low, at.typical, at.high)))

    @property
    def asked(self) -> Error:
        """The error of the fit."""
        return self.error("as asked")

    @property
    def useless(self) -> float:
        """The error of a model without features; a fit with this error is of no use."""
        return self._in_units(self.outlook.nothing)

    def _with(self, **parameters: object) -> "FitPlan":
        """Return the plan with other parameters of the estimator."""
        return replace(self, model=copy(self.model).set_params(**parameters))

    @cached_property
    def by_epsilon(self) -> tuple[Error, ...]:
        """The errors at several epsilons, as far as the method has a plan for them."""
        found = []
        for epsilon in sorted({*EPSILONS, self.epsilon}):
            with suppress(CalibrationError):
                found.append(self._with(epsilon=epsilon).error(f"epsilon {epsilon:g}"))
        return tuple(found)

    @cached_property
    def others(self) -> tuple[Error, ...]:
        """The errors that other choices would give."""
        found = []
        if self.spectrum is None:
            noun, twice = "rows", replace(self, n=2 * self.n)
            if self.n_persons is not None:
                noun, twice = "persons", replace(twice, n_persons=2 * self.n_persons)
            found.append(twice.error(f"twice the {noun}"))
        if self.family != "logistic":
            narrow = self._with(bounds_y=(0.0, self.half_width))
            found.append(narrow.error(f"{self.target} within bounds half as wide"))
        if self.spectrum is None and self.d > 1:
            fewer = self.d // 2
            found.append(replace(self, d=fewer).error(f"{fewer:,} of {self.d:,} columns"))
        if self.model._infers:
            found.append(self._with(inference=False).error("without intervals"))
        return tuple(found)

    @cached_property
    def methods(self) -> tuple["FitPlan", ...]:
        """This plan, and the plans of other methods that can make the same fit."""
        model, able = self.model, []
        if self.family == "linear":
            for name in ("adaptive", *COMPARED):
                with suppress(ValueError):  # without persons, weights, intervals or scores
                    able.append(replace(self, model=with_method(model, name)))
        return (self, *(each for each in able if each.method != self.method))

    @property
    def seconds(self) -> float:
        """Predicted seconds of the fit."""
        return seconds(*self._planned, self.n, self.columns, self.cost)

    def table(self) -> list[dict[str, str | float]]:
        """Return one row per method, as plain values."""
        return [
            {
                "method": each.method,
                "error_low": each.asked.low,
                "error": each.asked.typical,
                "error_high": each.asked.high,
                "excess_risk": each.outlook.typical,
                "seconds": each.seconds,
                "memory_mib": memory(*each._planned, each.n, each.columns) / 2**20,
            }
            for each in self.methods
        ]

    def to_dict(self) -> dict[str, object]:
        """Return the plan as plain values."""
        plain = "n d n_persons epsilon delta method reason family target unit useless warnings"
        found = {name: getattr(self, name) for name in plain.split()}
        for name in ("by_epsilon", "others"):
            found[name] = [each._asdict() for each in getattr(self, name)]
        return {**found, "asked": self.asked._asdict(), "methods": self.table()}

    def __str__(self) -> str:
        return words.text(self)

    def _repr_html_(self) -> str:
        return words.fragment(self)

    def page(self) -> str:
        """Return the plan as an HTML page that stands alone."""
        return words.page(self)


def plan(
    n: int,
    d: int,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    family: str = "linear",
    persons: int | None = None,
    target: str = "the target",
    unit: str = "",
    eigenvalues: npt.ArrayLike | None = None,
    theta_norm: float = 1.0,
    cost: CostModel | None = None,
    **parameters: Any,
) -> FitPlan:
    """Plan a fit from public sizes: its method, and the error, seconds and memory to expect.

    Parameters
    ----------
    n, d : int
        Rows and features, after encoding.
    epsilon : float, default 1.0
        Target epsilon.
    delta : float, optional
        Target delta; ``1 / n**2`` by default, ``1 / persons**2`` with persons.
    family : {"linear", "logistic", "quantile", "huber"}, default "linear"
        What is fitted. Errors of a logistic regression are excess log-loss, those of a quantile
        excess pinball loss, those of the others root mean squares.
    persons : int, optional
        Persons whose rows they are, for a fit that protects persons: each counts as one record.
        ``max_rows_per_group`` is the number of rows that persons have on average by default.
    target, unit : str
        Name and unit of the target, for messages.
    eigenvalues : array_like, optional
        Public guess at the eigenvalues of the Gram matrix of the scaled rows, whose norm is at
        most 1. With it the range is a factor of 3 in both directions; without it the range is
        that of easy to hard data.
    theta_norm : float, default 1.0
        With ``eigenvalues``, a public guess at the norm of the coefficients of scaled rows and
        targets.
    cost : CostModel, optional
        Seconds for each unit of work; by default those that were measured for the documentation.
    **parameters
        Parameters of the estimator of the family, such as ``bounds_y``, ``method``, ``quantile``,
        ``classes``, ``inference``, ``score_share``, ``max_weight`` and ``public_rows``. Without
        ``bounds_y`` errors are for a target with the bounds [-1, 1].

    Returns
    -------
    FitPlan
        The plan; print it for a table, or write its ``page()`` to a file.

    Examples
    --------
    >>> from fastmix import plan
    >>> found = plan(100_000, 20, bounds_y=(0, 200_000), target="income", unit="EUR")
    >>> found.method
    'adaptive'
    >>> found.asked.low < found.asked.typical < found.asked.high
    True
    """
    kind = FAMILIES[check_choice("family", family, tuple(FAMILIES))]
    method = parameters.pop("method", "auto") if family == "linear" else "auto"
    counted = {name: parameters.pop(name, None) for name in ("max_rows_per_group", "max_weight")}
    known = kind().get_params()
    for name, value in parameters.items():
        if name not in known:
            raise value_error(name, f"be left out of a plan of {kind.__name__}", value)
    if persons is not None and counted["max_rows_per_group"] is None:
        counted["max_rows_per_group"] = -(-n // max(persons, 1))
    model = kind(epsilon=epsilon, delta=delta, **parameters)
    model._population = Population.given(
        groups=persons is not None,
        sample_weight=counted["max_weight"] is not None,
        max_rows_per_group=counted["max_rows_per_group"],
        max_weight=1.0 if counted["max_weight"] is None else counted["max_weight"],
        public_rows=model.public_rows,
    )
    if method != "auto":
        model = with_method(model, method)
    spectrum = None
    if eigenvalues is not None:
        columns = d + bool(model.fit_intercept)
        values = np.sort(np.asarray(eigenvalues, dtype=np.float64))
        if values.shape != (columns,) or not (np.isfinite(values) & (values >= 0.0)).all():
            raise value_error("eigenvalues", f"be {columns} finite numbers, none negative", values)
        square = check_real("theta_norm", theta_norm, at_least=0.0) ** 2
        spectrum = values, np.full(columns, square / columns)
    return FitPlan(model, n, d, persons, target, unit, spectrum, cost or CostModel())
