"""The parameters that all estimators share, and their checks."""

import math
from dataclasses import fields
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from fastmix._validation import (
    check_bool,
    check_probability,
    check_real,
    type_error,
    value_error,
)
from fastmix.accounting import BudgetAccountant
from fastmix.certificate.guarantee import FOUND_OPENLY
from fastmix.engine import Method, Plan
from fastmix.engine.population import Population
from fastmix.estimators._documentation import estimator
from fastmix.estimators._found import found_releases
from fastmix.estimators._labels import Codec, NumberCodec
from fastmix.random import RandomState, is_seeded
from fastmix.releases.noise import check_random_state
from fastmix.schema.bounds import check_protection

#: Far beyond any use, and well inside the range in which the accounting is exact enough.
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 1e6


@estimator
class Parameters(BaseEstimator):  # type: ignore[misc]
    """The parameters of all estimators, the method that they make, and what they state."""

    epsilon: float = 1.0
    delta: float | None = None
    bounds: Any = None
    bounds_X: Any = None
    data_norm: float | None = None
    fit_intercept: bool = True
    inference: bool = False
    accountant: BudgetAccountant | None = None
    random_state: RandomState = None

    # Constants here, parameters of `EngineModel`.
    score_share = 0.0
    public_rows = True
    # A parameter of classifiers.
    min_listed = 0.0

    #: The algorithm. An estimator's parameters of the same names are the method's.
    _method: ClassVar[type[Method]]
    #: Values of the method's parameters that are no parameters of the estimator.
    _fixed: ClassVar[dict[str, Any]] = {}
    #: The parameter with the ends of the target, which ``bounds`` may state instead.
    _ends: ClassVar[str] = "bounds_y"
    #: The title of the summary, and whether the summary has odds ratios.
    _title: ClassVar[str] = "Private linear regression"
    _odds: ClassVar[bool] = False
    #: Whether residuals tell the spread of the errors.
    _spread: ClassVar[bool] = True

    #: Who the fit protects.
    _population = Population()
    #: Encoded columns of each category of a table, without its first level.
    _categories = tuple[tuple[int, ...], ...]()
    #: Columns of levels outside the public lists of a table (`PublicBounds.unlisted`).
    _unlisted = tuple[tuple[tuple[int, ...], ...], ...]()
    #: Columns of the dummies of each category of a matrix, which its row map enforces.
    _dummies = tuple[tuple[int, ...], ...]()

    def _budget(self) -> BudgetAccountant | None:
        """Return the budget of a fit: the one that is given, or the active one."""
        return self.accountant if self.accountant is not None else BudgetAccountant.current()

    def _resolve(self) -> Method:
        """Return the method with its parameters."""
        own = {f.name: getattr(self, f.name) for f in fields(self._method) if hasattr(self, f.name)}
        return self._method(**own, **self._fixed)

    def _check_parameters(self) -> None:
        """Reject parameters out of their ranges, and fits that the population does not allow."""
        check_parameters(self)
        method, population = self._resolve(), self._population
        method.check()
        asked: Any = {"inference": self.inference, "score_share": self.score_share}
        population.check(method, epsilon=float(self.epsilon), **asked)
        found = [each.rows_per_person for each in found_releases(self)]
        check_protection(found, persons=population.persons, public_rows=not population.hidden)

    def _codec(self) -> Codec:
        """Return the map of targets to [-1, 1]."""
        return NumberCodec()

    def _bounds_y(self) -> Any:
        """Return the public bounds of the target, None if there are none."""
        return None

    def _stated(self) -> dict[str, Any]:
        """Return the parameters that a certificate states beside those of the method."""
        names = ("epsilon", "delta", "data_norm", "fit_intercept", "inference")
        stated = {name: getattr(self, name) for name in names}
        stated["max_rows_per_group"] = self._population.rows_per_person
        if self.score_share:
            stated["score_share"] = self.score_share
        if self.min_listed:
            stated["min_listed"] = self.min_listed
        if self._population.weighted:
            stated["max_weight"] = self._population.max_weight
        if self._population.hidden:
            stated["public_rows"] = False
        return stated

    def __getstate__(self) -> dict[str, Any]:
        # A copy that is sent away from inside a budget's block is charged where it is fitted.
        state: dict[str, Any] = super().__getstate__()
        if state.get("accountant") is None:
            state = {**state, "accountant": BudgetAccountant.current()}
        return state


def check_parameters(model: Any) -> None:
    """Reject the first common parameter that is out of its range."""
    check_real("epsilon", model.epsilon, above=0.0, allow_inf=True)
    if not math.isinf(model.epsilon):
        check_real("epsilon", model.epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)
    if model.delta is not None:
        check_probability("delta", model.delta)
    if model.data_norm is not None:
        check_real("data_norm", model.data_norm, at_least=1e-100, at_most=1e100)
    for name in ("fit_intercept", "inference", "public_rows"):
        check_bool(name, getattr(model, name))
    if not model.public_rows and model.delta is None:
        raise value_error("delta", "be given with public_rows=False: 1/n^2 would reveal n", None)
    check_random_state(model.random_state)
    check_real("score_share", model.score_share, at_least=0.0, at_most=0.5)
    if 0.0 < model.score_share < 1e-3:  # its noise could be too large to draw
        raise value_error("score_share", "be 0 or at least 0.001", model.score_share)
    if check_real("min_listed", model.min_listed, at_least=0.0):
        check_probability("min_listed", model.min_listed)
    if model.accountant is not None and not isinstance(model.accountant, BudgetAccountant):
        raise type_error("accountant", "be a BudgetAccountant or None", model.accountant)


def reasons_for_leaks(model: Any, plan: Plan) -> tuple[str, ...]:
    """Return the reasons why a fit with these parameters is not private; none if it is."""
    reasons = {
        "bounds_X was taken from the data": model.bounds_X is None and model.data_norm is None,
        "bounds_y was taken from the data": getattr(model, "bounds_y", ()) is None,
        "classes was taken from the data": getattr(model, "_found", False),
        FOUND_OPENLY: math.inf in [each.epsilon for each in found_releases(model)],
        "the noise was seeded by the caller": is_seeded(model.random_state),
        "the method adds no noise": not plan.is_private,
    }
    return tuple(reason for reason, holds in reasons.items() if holds)
