"""Standard errors and confidence intervals of a fitted estimator."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import check_probability, value_error
from fastmix.data.scaling import PublicScaling
from fastmix.engine import Plan, Solution
from fastmix.engine.inference import Intervals, intervals
from fastmix.engine.table_inference import MOST_BIAS

#: Attributes of a fit with ``inference=True``.
_STORED = (
    "coef_std_",
    "coef_covariance_",
    "_coef_bias",
    "_coef_noise",
    "coef_noise_std_",
    "coef_bias_bound_",
    "coef_identified_",
    "intercept_std_",
    "intercept_identified_",
    "residual_std_",
    "residual_std_identified_",
)


def confidence_intervals(model: Any, level: float, *, intercept: bool) -> FloatArray:
    """Return the intervals of the coefficients; the interval of the intercept is last, if asked."""
    check_is_fitted(model)
    check_probability("level", level)
    if not hasattr(model, "coef_std_"):
        if not model.privacy_.epsilon < np.inf:
            must = "be finite when the model is fitted: a fit without noise has no intervals"
            raise value_error("epsilon", must, model.privacy_.epsilon)
        raise value_error("inference", "be True when the model is fitted", model.inference)
    center, std = (np.atleast_2d(each) for each in (model.coef_, model.coef_std_))
    if intercept:
        center = np.column_stack([center, np.ravel(model.intercept_)])
        std = np.column_stack([std, np.ravel(model.intercept_std_)])
    reach = float(ndtri(0.5 + level / 2.0)) * std
    found = np.stack([center - reach, center + reach], axis=-1)
    return found if len(found) > 1 else found[0]


def store_intervals(
    model: Any, solution: Solution, plan: Plan, scaling: PublicScaling, *, clip: float, n: int
) -> None:
    """Store standard errors in the user's units, in place of those of an earlier fit.

    Those of several classes or quantiles are along the first axis.
    """
    for name in _STORED:
        model.__dict__.pop(name, None)
    if not solution.parts:
        _store(model, solution, plan, scaling, clip, n)
        return
    several = [SimpleNamespace(coef_=coef, _spread=False) for coef in model.coef_]
    for one, part in zip(several, solution.parts, strict=True):
        _store(one, part, plan, scaling, clip, n)
    for name in _STORED:
        if hasattr(several[0], name):
            setattr(model, name, np.stack([getattr(one, name) for one in several]))


def _store(
    model: Any, solution: Solution, plan: Plan, scaling: PublicScaling, clip: float, n: int
) -> None:
    """Store standard errors, if the fit has released what they need."""
    found, sigma = solution.intervals, plan.residual_sigma
    if solution.trace is not None and solution.residuals is not None and sigma is not None:
        # A feature may change the target by twice the width of the target's bounds.
        size = 2.0 * scaling.row_map.divisor
        found = intervals(
            solution.trace, solution.theta, solution.residuals, sigma, clip=clip, n=n, size=size
        )
    if found is not None:
        _store_in_units(model, found, scaling)


@np.errstate(over="ignore", invalid="ignore")  # in some units a variance is infinite
def _store_in_units(model: Any, found: Intervals, scaling: PublicScaling) -> None:
    """Store standard errors and covariances in the units of the features and the target."""
    shape, d = np.shape(model.coef_), np.size(model.coef_)
    J = scaling.jacobian(d)
    std, noise = (_deviations(J, C) for C in (found.covariance, found.noise))
    bias, identified = np.zeros(len(J)), np.isfinite(std)
    if found.bias is not None:  # a coefficient is not identified if it may be off by too much
        squares = np.sum((J @ found.bias) * J, axis=1)
        bias = np.sqrt(np.where(np.isnan(squares), np.inf, np.maximum(squares, 0.0)))
        identified = bias**2 <= MOST_BIAS * std**2
    if found.known is not None:
        identified &= found.known
    std = np.where(identified, np.hypot(std, bias), np.inf)
    model.coef_covariance_ = _symmetric(J @ found.covariance @ J.T)
    model._coef_noise = _symmetric(J @ found.noise @ J.T)
    model._coef_bias = np.zeros_like(model.coef_covariance_)
    if found.bias is not None:
        model._coef_bias = _symmetric(J @ found.bias @ J.T)
    model.coef_std_, model.intercept_std_ = std[:d].reshape(shape), float(std[d])
    model.coef_noise_std_ = noise[:d].reshape(shape)
    model.coef_bias_bound_ = bias[:d].reshape(shape)
    model.coef_identified_ = identified[:d].reshape(shape)
    model.intercept_identified_ = bool(identified[d])
    if model._spread:
        model.residual_std_ = math.sqrt(found.variance) * scaling.target_map.scale
        model.residual_std_identified_ = found.sure


def _deviations(rows: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return standard deviations along rows; infinite where rounding leaves no variance."""
    with np.errstate(all="ignore"):
        variances = np.sum((rows @ covariance) * rows, axis=1)
        return np.asarray(np.sqrt(np.where(variances >= 0.0, variances, np.inf)))


def _symmetric(C: FloatArray) -> FloatArray:
    """Return a matrix whose upper triangle is a copy of the lower one, free of rounding."""
    return np.where(np.tri(len(C), dtype=bool), C, C.T)
