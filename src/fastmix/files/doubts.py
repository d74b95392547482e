"""Doubts about the bounds of a fit, from released and public values only."""

from typing import Any

import numpy as np

from fastmix.estimators.evaluation import PrivateScores

#: Predictions for every record within the bounds that stay this near to an end of the target's
#: bounds, as a share of their width, are a sign of wrong bounds.
_NEAR = 0.05

_CHECK = (
    "Your bounds look wrong. Compare them with the table by 'fastmix check', for your eyes only."
)


def doubts(model: Any) -> str:
    """Return the first reason to doubt the bounds of a fitted model, nothing if there is none."""
    return low_r2(getattr(model, "scores_", None)) or squeezed(model)


def low_r2(scores: PrivateScores | None) -> str:
    """Return a warning if a private R^2 is below 0 beyond its noise."""
    r2 = {} if scores is None else scores.scores
    if "r2" not in r2 or not r2["r2"].interval()[1] < 0.0:
        return ""
    return "Private R² is below 0: the model predicts worse than the mean of the target. " + _CHECK


def squeezed(model: Any) -> str:
    """Return a warning if every prediction lies near one end of the target's bounds."""
    if hasattr(model, "classes_") or model.bounds_X_ is None:
        return ""
    coef, (lower, upper) = np.atleast_2d(model.coef_), model.bounds_X_
    lowest = np.minimum(coef * lower, coef * upper).sum(axis=1) + model.intercept_
    highest = np.maximum(coef * lower, coef * upper).sum(axis=1) + model.intercept_
    low, high = model.bounds_y_
    near = _NEAR * (high - low)
    if np.all(highest < low + near):
        side = "lower"
    elif np.all(lowest > high - near):
        side = "upper"
    else:
        return ""
    return f"Every prediction lies at the {side} end of the target's bounds. {_CHECK}"
