"""What every method has: its parameters, a plan from public sizes, a solver and a forecast.

A method is a frozen value.  `Method.plan` states its releases once, as the account of the plan; the
calibration, the charge, the certificate and the check after the fit all read that account.
`Method.solve` draws exactly these releases.  `docs/extending.md` adds one in a single file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import (
    check_bool,
    check_choice,
    check_integer,
    check_probability,
    check_real,
    value_error,
)
from fastmix.accounting import (
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    Part,
    PrivacyEvent,
    PrivacySpent,
    SketchEvent,
    TailEvent,
)
from fastmix.data import Rows
from fastmix.engine.inference import Intervals, Trace
from fastmix.engine.population import Population
from fastmix.engine.scores import ResidualScores, Score, Scoring
from fastmix.releases import Noise

#: The methods by their names: a method is known as soon as its class is made.
METHODS: dict[str, type[Method]] = {}

#: Steps that a schedule of noise can have before its weights underflow.
MOST_STEPS = 1000

#: What is asked of parameters, by their names; None is always allowed.
_CHECKS: dict[str, Callable[[str, Any], object]] = {
    "failure_probability": check_probability,
    "fast": check_bool,
    "gaussian_size": partial(check_integer, at_least=1),
    "learning_rate": partial(check_real, above=0.0),
    "literal": check_bool,
    "n_steps": partial(check_integer, at_least=1, at_most=MOST_STEPS),
    "residual_clip": partial(check_real, above=0.0),
    "shrinkage": check_bool,
    "sketch_size": partial(check_integer, at_least=1),
}


class Sizes(NamedTuple):
    """Public sizes of a fit: rows, columns with that of the intercept."""

    n: int
    d: int
    #: Whether the last column is constant and the others have bounds: a mean can be taken off.
    centred: bool = False
    #: Whether there is an intercept.
    intercept: bool = False
    #: Rows that a person has at most, where n counts persons; None where it counts rows.
    rows_per_person: int | None = None
    #: Whether rows have sample weights.
    weighted: bool = False
    #: Whether n is a released number, not a public one.
    hidden: bool = False
    #: Columns of each category of a table, without its first level.
    categories: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        n: int,
        d: int,
        *,
        intercept: bool,
        bounds_X: Any,
        data_norm: Any,
        population: Population = Population(),  # noqa: B008 (it is frozen)
        categories: tuple[int, ...] = (),
    ) -> Sizes:
        """Return the sizes of a fit of n rows and d features with these parameters."""
        bounded = bounds_X is not None or data_norm is None
        with_mean = bool(intercept) and bounded
        beside = population.rows_per_person, population.weighted, population.hidden, categories
        return cls(n, d + bool(intercept), with_mean, bool(intercept), *beside)

    @property
    def population(self) -> Population:
        """Who is protected; weights count in units of their bound."""
        weight = 1.0 if self.weighted else None
        return Population(self.n, self.rows_per_person, weight, self.hidden)


class Target(NamedTuple):
    """The guarantee that is asked for, and the utility failure probability: a tenth of delta."""

    epsilon: float
    delta: float
    varrho: float | None = None
    #: Share of the budget (of mu^2) that is to pay for a score of the fit.
    reserved: float = 0.0
    #: Rényi order at which the budget of the fit adds up charges; None if it does not.
    order: float | None = None


@dataclass(frozen=True)
class Draws:
    """Where a fit draws from: secret noise, and public choices such as a sketch."""

    noise: Noise
    public: np.random.Generator
    #: Called with the number of each step and of all steps.
    progress: Callable[[int, int], None] = lambda step, steps: None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a fit will do, from public quantities only: its account, sizes and noise levels."""

    spent: PrivacySpent  #: The account of all releases.
    steps: int = 1
    residual_sigma: float | None = None  #: Noise of the counts of residuals for intervals.
    score_sigma: float | None = None  #: Noise of one release that costs what the score does.
    rows_per_person: int | None = None  #: For whom the account is: persons of so many rows.
    weight_sigma: float | None = None  #: Noise of the sum of sample weights.
    size_scale: float | None = None  #: Noise of the number of rows, which is released first.
    label_scale: float | None = None  #: Noise of the check for unlisted labels, before the fit.
    budget_order: float | None = None  #: Order of the budget it is calibrated for (`choice`).

    @property
    def is_private(self) -> bool:
        """Whether the method adds noise at all."""
        return not any(isinstance(event, NonPrivateEvent) for event in self.spent.events)

    @property
    def settings(self) -> dict[str, Any]:
        """Sizes and noise levels by name, as a certificate states them."""
        settings = {f.name: getattr(self, f.name) for f in fields(self)}
        del settings["spent"]
        optional = {f.name for f in fields(Plan)}
        return {name: v for name, v in settings.items() if v is not None or name not in optional}

    def matches(self, noise: Noise) -> bool:
        """Whether releases are those that were planned."""
        return _counted(noise.drawn) == _counted(self.spent.events)


def _counted(events: Iterable[PrivacyEvent]) -> Counter[Any]:
    """Count releases by law and ratio of noise to sensitivity, and the rows of sketches.

    Where a curve has an exact account, rows of two fast sketches are not as many rows of one.
    """
    counts: Counter[Any] = Counter()
    for event in events:
        if isinstance(event, GaussianEvent):
            counts["gaussian", event.sigma / event.sensitivity] += event.count
        elif isinstance(event, LaplaceEvent):
            counts["laplace", event.scale / event.sensitivity] += event.count
        elif isinstance(event, SketchEvent) and event.bound in ("gauss_mix", "fast_mix"):
            counts[event.bound, event.gamma] += event.rows
        elif not isinstance(event, TailEvent):
            counts[event] += 1
    return counts


@dataclass(frozen=True)
class Solution:
    """What a method gives back: private coefficients, and what they came about by.

    ``chosen`` are settings that were chosen from released values, by their names.
    """

    theta: FloatArray
    gamma: float | None = None
    eta: float | None = None
    gradient_noise: float | None = None
    trace: Trace | None = None
    residuals: FloatArray | None = None
    chosen: dict[str, float] | None = None
    intervals: Intervals | None = None
    scores: dict[str, Score] | None = None
    #: Released counts of the levels of each category of a table, that without a column first.
    levels: tuple[FloatArray, ...] | None = None
    #: Standard errors of these counts.
    level_errors: tuple[FloatArray, ...] | None = None
    #: The solutions of several classes or quantiles, whose coefficients ``theta`` has one after the
    #: other.
    parts: tuple[Solution, ...] = ()


@dataclass(frozen=True)
class Forecast:
    """Expected noise and error, in units of scaled rows (norm 1) and targets (in [-1, 1])."""

    eta: float  #: Noise mixed into the sketch; for statistics, the square root of the ridge.
    gradient_noise: float  #: Standard deviation of the noise of the last gradient or the moments.
    noise_risk: float  #: Part of the excess risk that comes from noise.
    bias_risk: float  #: Part that comes from directions which have not converged.

    @property
    def excess_risk(self) -> float:
        """Expected excess of the mean loss over the least; for least squares, of squares."""
        return self.noise_risk + self.bias_risk


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """An algorithm with its parameters; subclasses add fields and give `plan` and `solve`.

    The data that a method sees are rows of norm at most 1 and targets in [-1, 1]; ``d`` counts
    the intercept, which is the last column.
    """

    #: Name of the method in messages, tables and certificates, and of its estimator.
    name: ClassVar[str] = ""
    estimator: ClassVar[str] = ""
    #: What is fitted: "linear", "logistic", "quantile" or "huber".
    family: ClassVar[str] = "linear"
    #: Whether `Solution.trace` says how the coefficients came about, for intervals.
    infers: ClassVar[bool] = False
    #: Whether tables with categories have coordinates of their own.
    tables: ClassVar[bool] = False
    #: Whether a share of the budget can be reserved for a score.
    reserves: ClassVar[bool] = False
    #: Whether residuals are clipped by the method itself.
    clips: ClassVar[bool] = False
    #: Whether `Solution.chosen` says what was chosen from released values.
    chooses: ClassVar[bool] = False
    #: Whether it takes persons of several rows, whose weights add up to 1.
    persons: ClassVar[bool] = False
    #: Whether it takes sample weights, and a released number in place of that of the rows.
    weights: ClassVar[bool] = False
    #: How long the last step takes, in units of the others: for the time left, about.
    last_step: ClassVar[float] = 1.0
    #: What parameters may be, by name, where that is one of a few words.
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __init_subclass__(cls) -> None:
        if not cls.name:
            return
        # A class can be made twice, when a notebook cell is run again.
        same = METHODS.get(cls.name, cls)
        if (same.__module__, same.__qualname__) != (cls.__module__, cls.__qualname__):
            raise value_error("name", "be that of no other method", cls.name)
        METHODS[cls.name] = cls

    def __post_init__(self) -> None:
        # Python's integers: products of NumPy's small ones overflow.
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())

    @abstractmethod
    def plan(self, sizes: Sizes, target: Target) -> Any:
        """Plan a fit from public quantities only."""

    def inferring_plan(self, sizes: Sizes, target: Target) -> Any:
        """Plan a fit that releases what its intervals need, or None: counts of residuals do.

        The solution of such a plan has its `Solution.intervals`.
        """
        return None

    @abstractmethod
    def solve(self, rows: Rows, plan: Any, clip: float, draws: Draws) -> Solution:
        """Draw the planned releases from rows of norm 1 and targets in [-1, 1]."""

    def exact(self, rows: Any, clip: float) -> FloatArray | None:
        """Return the coefficients without privacy; None means those of least squares."""
        return None

    def forecast(
        self, plan: Any, n: int, eigenvalues: FloatArray, theta_squared: FloatArray
    ) -> Forecast | None:
        """Return what a planned fit is expected to give, or None if the method has no forecast.

        The eigenvalues are those of the Gram matrix of the scaled rows, in ascending order;
        ``theta_squared`` are the squares of the scaled coefficients in the eigenvectors.
        """
        return None

    @property
    def outputs(self) -> int:
        """How many vectors of coefficients a fit has, beside those of classes."""
        return 1

    @property
    def risk_of_nothing(self) -> float:
        """Excess risk of a model without features, in units of the mean square of predictions."""
        return 1.0

    def scoring(self) -> Scoring:
        """Return which scores its models have, and how they are released."""
        return ResidualScores()

    def ignored(self) -> tuple[str, ...]:
        """Return the parameters without effect beside the values of the others."""
        return ()

    def in_blocks(self) -> bool:
        """Whether passes over blocks of rows are all that the method needs."""
        return True

    def cautions(self, plan: Any, d: int) -> list[str]:
        """Return why a planned fit may go wrong by its parameters, for d columns."""
        return []

    def varrho(self, target: Target) -> float:
        """Return the utility failure probability."""
        given = getattr(self, "failure_probability", None)
        given = target.varrho if given is None else given
        return target.delta / 10.0 if given is None else float(given)

    def check(self) -> None:
        """Raise an error that names the first parameter that is out of its range."""
        for name, options in self.choices.items():
            check_choice(name, getattr(self, name), options)
        defaults = {field.name: field.default for field in fields(self)}
        for name in defaults:
            if name in _CHECKS and (value := getattr(self, name)) is not None:
                _CHECKS[name](name, value)
        for name in self.ignored():
            if (value := getattr(self, name)) != defaults[name]:
                condition = f"be {defaults[name]!r}, because {self.name} with these parameters"
                raise value_error(name, f"{condition} ignores it", value)


def joint(events: list[PrivacyEvent], delta: float) -> PrivacySpent:
    """Return the account of events that are composed and converted once."""
    return PrivacySpent([Part("all releases", events, delta)])
