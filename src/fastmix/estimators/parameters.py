"""Checks of the parameters that all estimators share."""

import math
from typing import Any

from fastmix._validation import (
    check_bool,
    check_probability,
    check_real,
    type_error,
    value_error,
)
from fastmix.accounting import BudgetAccountant
from fastmix.engine import Plan
from fastmix.random import is_seeded
from fastmix.releases.noise import check_noise

#: Far beyond any use, and well inside the range in which the accounting is exact enough.
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 1e6


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
    check_noise(model.noise, model.random_state)
    if model.noise == "exact":
        if model.inference:
            raise value_error("inference", "be False with noise='exact'", model.inference)
        # The range of docs/proofs/exact_noise.md.
        if not math.isinf(model.epsilon):
            check_real("epsilon", model.epsilon, at_least=1e-6, at_most=100.0)
        if model.delta is not None:
            check_real("delta", model.delta, at_least=1e-100)
    check_real("score_share", model.score_share, at_least=0.0, at_most=0.5)
    if model.score_share and model.noise == "exact":
        raise value_error("score_share", "be 0 with noise='exact'", model.score_share)
    if model.accountant is not None and not isinstance(model.accountant, BudgetAccountant):
        raise type_error("accountant", "be a BudgetAccountant or None", model.accountant)


def reasons_for_leaks(model: Any, plan: Plan) -> tuple[str, ...]:
    """Return the reasons why a fit with these parameters is not private; none if it is."""
    reasons = {
        "bounds_X was taken from the data": model.bounds_X is None and model.data_norm is None,
        "bounds_y was taken from the data": "bounds_y" in model.get_params(deep=False)
        and model.bounds_y is None,
        "classes was taken from the data": getattr(model, "_found", False),
        "the noise was seeded by the caller": is_seeded(model.random_state),
        "the method adds no noise": not plan.is_private,
    }
    return tuple(reason for reason, holds in reasons.items() if holds)
