"""Is a table big enough? The error to expect of a fit, from public sizes and bounds only."""

import math
from collections.abc import Iterable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from fastmix._types import FloatArray
from fastmix._validation import (
    check_integer,
    check_probability,
    check_real,
    value_error,
)
from fastmix.engine import Method, Plan, default_delta, finish_reason
from fastmix.engine.forecast import Outlook, concerns, outlook
from fastmix.errors import CalibrationError
from fastmix.estimators import PrivateLinearRegression, PrivateModel
from fastmix.estimators.regression import with_method
from fastmix.planning import words
from fastmix.planning.cost import CostModel, memory, seconds
from fastmix.planning.rehearsal import R2, SPREAD, Rehearsal, rehearse

#: Epsilons at which errors are shown, beside the one that is asked for.
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
#: Errors of tables with categories lie within this factor of the forecast in most cases.
TABLE_FACTOR = 2.0
#: Methods that a linear regression is compared with.
COMPARED = ("objective", "ihm", "fast_ihm", "adassp")


class Error(NamedTuple):
    """The error that privacy adds to predictions, in the units of the target.

    For a logistic regression it is excess log-loss, for a quantile excess pinball loss.
    """

    what: str  #: How the fit differs from the one that is asked for.
    epsilon: float
    low: float  #: For easy data: uncorrelated features that fill their bounds.
    typical: float
    high: float  #: For hard data: correlated features, or bounds far wider than the data.
    #: Effects of a table with categories, and how many of them will have an interval.
    effects: int | None = None
    known: int | None = None


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
    #: For a table with categories, public guesses at the root mean square of residuals without
    #: privacy, in the units of the target, and at R^2.
    spread: float | None = None
    r2: float = R2
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
        check_probability("r2", self.r2)
        if self.spread is not None:
            check_real("spread", self.spread, above=0.0, at_most=self.half_width)
        delta = default_delta(self.model.delta, self.records)
        object.__setattr__(self, "model", copy(self.model).set_params(delta=delta))
        _ = self.outlook  # errors in the parameters are raised here, not when the plan is shown

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
        """Why the fit has this method, and why it is calibrated for a budget if it is."""
        said = f"{self.method}: asked for."
        if self.family != "linear":
            said = f"{self.method}: the method of this family."
        elif isinstance(self.model, PrivateLinearRegression):
            said = (
                "adaptive: the minimiser of a perturbed objective, whose coordinates, clipping and "
                "ridge come from a small first release, adds the least error on most data"
                f"{', and it has intervals' if self.model.inference else ''}."
            )
        return f"{said} {finish_reason(self._planned[1])}".rstrip()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the fit."""
        public = self.model._sizes(self.records, self.d), self.model._target(self.records)
        return tuple(message for _, message in concerns(*self._planned, *public))

    @property
    def categories(self) -> tuple[tuple[int, ...], ...]:
        """Columns of each category."""
        return self.model._categories or self.model._dummies

    @cached_property
    def rehearsal(self) -> Rehearsal | None:
        """The fit of a made-up table of the same sizes, for a table with categories."""
        several = len(getattr(self.model, "classes", None) or ()) > 2
        if not self.categories or several or not self._planned[0].tables:
            return None
        spread = SPREAD if self.spread is None else self.spread / self.half_width
        return rehearse(self.model, self.records, self.d, spread=spread, r2=self.r2)

    @cached_property
    def outlook(self) -> Outlook:
        """The range of excess risk, for a target scaled to [-1, 1]."""
        if (seen := self.rehearsal) is not None:
            ends = seen.risk / TABLE_FACTOR**2, seen.risk, seen.risk * TABLE_FACTOR**2
            return Outlook(*ends, None, seen.nothing)
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
        at, seen = self.outlook, self.rehearsal
        effects, known = (None, None) if seen is None else (seen.effects, seen.known)
        low, typical, high = map(self._in_units, (at.low, at.typical, at.high))
        return Error(what, self.epsilon, low, typical, high, effects, known)

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
        if self.categories:
            found += self._without_a_category()
        elif self.spectrum is None and self.d > 1:
            fewer = self.d // 2
            found.append(replace(self, d=fewer).error(f"{fewer:,} of {self.d:,} columns"))
        if self.model.inference:
            found.append(self._with(inference=False).error("without intervals"))
        return tuple(found)

    def _without_a_category(self) -> list[Error]:
        """Return the error without the category that has the most levels."""
        sizes = sorted(map(len, self.categories))
        if self.d == sizes[-1]:
            return []
        model = copy(self.model)
        model._categories, model._dummies = (), places(sizes[:-1])
        if model.bounds_X is not None:
            model.set_params(bounds_X=(0.0, 1.0), data_norm=None)
        fewer = replace(self, model=model, d=self.d - sizes[-1])
        return [fewer.error(f"without the category of {sizes[-1] + 1:,} levels")]

    @cached_property
    def methods(self) -> tuple["FitPlan", ...]:
        """This plan, and the plans of other methods that can make the same fit."""
        model, able = self.model, []
        if self.family == "linear" and not self.categories:
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


def places(sizes: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """Return columns of categories of these sizes, one after the other."""
    ends = accumulate(sizes, initial=0)
    return tuple(tuple(range(*pair)) for pair in pairwise(ends))
