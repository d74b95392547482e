"""Checks of the parameters that all estimators share, before anything else happens."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from fastmix._validation import (
    check_choice,
    check_integer,
    check_probability,
    check_real,
    type_error,
    value_error,
)
from fastmix.accounting import BudgetAccountant
from fastmix.estimators._plan import Plan
from fastmix.mechanisms.exact_noise import exact_source
from fastmix.random import check_noise, is_seeded

__all__ = [
    "LARGEST_EPSILON",
    "MOST_STEPS",
    "SMALLEST_EPSILON",
    "check_ignored",
    "check_parameters",
    "reasons_for_leaks",
]

#: Far beyond any use, and well inside the range in which the accounting is exact enough.
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 1e6

#: Steps that a schedule of noise can have before its weights underflow.
MOST_STEPS = 1000


def check_parameters(model: Any) -> None:
    """Raise an error that names the first parameter of an estimator that is out of its range."""
    check_real("epsilon", model.epsilon, above=0.0, allow_inf=True)
    if not math.isinf(model.epsilon):
        check_real("epsilon", model.epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)
    if model.delta is not None:
        check_probability("delta", model.delta)
    if model.failure_probability is not None:
        check_probability("failure_probability", model.failure_probability)
    if model.data_norm is not None:
        check_real("data_norm", model.data_norm, at_least=1e-100, at_most=1e100)
    if model.residual_clip is not None:
        check_real("residual_clip", model.residual_clip, above=0.0)
    if model.n_steps is not None:
        check_integer("n_steps", model.n_steps, at_least=1, at_most=MOST_STEPS)
    for name in ("fit_intercept", "shrinkage", "inference", "verbose"):
        if not isinstance(getattr(model, name), (bool, np.bool_)):
            raise type_error(name, "be a bool", getattr(model, name))
    for name in ("gaussian_size", "sketch_size"):
        if getattr(model, name) is not None:
            check_integer(name, getattr(model, name), at_least=1)
    check_choice("engine", model.engine, ("auto", "literal"))
    if check_noise(model.noise, model.random_state) == "exact":
        exact_source()
        if model.inference:
            raise value_error("inference", "be False with noise='exact'", model.inference)
        # The range of docs/proofs/exact_noise.md.
        if not math.isinf(model.epsilon):
            check_real("epsilon", model.epsilon, at_least=1e-6, at_most=100.0)
        if model.delta is not None:
            check_real("delta", model.delta, at_least=1e-100)
    if model.accountant is not None and not isinstance(model.accountant, BudgetAccountant):
        raise type_error("accountant", "be a BudgetAccountant or None", model.accountant)
    check_ignored(model, type(model).__name__)


def check_ignored(model: Any, who: str, columns: int | None = None) -> None:
    """Refuse parameters that have no effect and are not at their default: who sets one expects it.

    Parameters
    ----------
    model : PrivateRegressor
        The estimator.
    who : str
        What errors call its method.
    columns : int, optional
        Columns of the problem, intercept included; None if they are not known.
    """
    defaults = {field.name: field.default for field in fields(model)}
    for name in model._ignored(columns):
        value = getattr(model, name)
        if value != defaults[name]:
            condition = f"be {defaults[name]!r}, because {who} with these parameters ignores it"
            raise value_error(name, condition, value)


def reasons_for_leaks(model: Any, plan: Plan) -> tuple[str, ...]:
    """Return the reasons why a fit with these parameters is not private, if it is not."""
    reasons = {
        "bounds_X was taken from the data": model.bounds_X is None and model.data_norm is None,
        "bounds_y was taken from the data": model.bounds_y is None,
        "the noise was seeded by the caller": is_seeded(model.random_state),
        "the method adds no noise": not plan.is_private,
    }
    return tuple(reason for reason, holds in reasons.items() if holds)
