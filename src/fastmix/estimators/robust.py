"""Regressors of quantiles, and of Huber's loss."""

from typing import Any, ClassVar

import numpy as np

from fastmix import engine
from fastmix._types import FloatArray
from fastmix.data.dask import is_dask
from fastmix.engine import Method
from fastmix.engine.families.quantile import NO_WIDTH
from fastmix.estimators._documentation import estimator
from fastmix.estimators.models import EngineRegressor


@estimator
class PrivateQuantileRegressor(EngineRegressor):
    """Private quantile regression by objective perturbation that adapts to the data.

    The quantile loss is smoothed, because privacy needs a bounded curvature: the model predicts the
    quantile of the target plus a logistic variable, whose scale is 0.03 of the spread of residuals
    that the first stage finds, or more where privacy needs more. The first stage spends 12% of the
    budget on noisy second moments, as in `PrivateLinearRegression`.

    Parameters
    ----------
    {parameters}
    {engine_parameters}
    {bounds_y}
    quantile : float or list of float, default=0.5
        The quantile of the target to predict, between 0 and 1. A list of rising quantiles is fitted
        under one account: the first stage is shared, and each quantile has a minimiser of its own.

    Attributes
    ----------
    {coefficients}
    {attributes}
    smoothing_ : float
        The width of the smoothing, in the units of the target. With several quantiles, this and
        the attributes of coefficients and intercepts have one entry, or row, per quantile.
    chosen_ : dict
        Settings that the fit chose from released values, in scaled units.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Section 8.

    Examples
    --------
    {example}
    """

    quantile: Any = 0.5

    _method: ClassVar[type[Method]] = engine.QuantileObjective
    _title: ClassVar[str] = "Private quantile regression"
    _spread: ClassVar[bool] = False

    def predict(self, X: Any, *, clip: bool = True) -> FloatArray:
        values: Any = super().predict(X, clip=clip)
        if values.ndim == 1:
            return values  # type: ignore[no-any-return]
        return values.map_blocks(np.sort) if is_dask(values) else np.sort(values, axis=1)

    def _store(self, method: Method, plan: Any, solution: Any, scaling: Any, *facts: Any) -> None:
        super()._store(method, plan, solution, scaling, *facts)
        width = (solution.chosen or {}).get("smoothing", NO_WIDTH)
        scale = scaling.target_map.scale
        several = solution.parts
        self.smoothing_ = scale * np.array(width) if several else width * scale


@estimator
class PrivateHuberRegressor(EngineRegressor):
    """Private robust regression: residuals beyond a scale count as if they were at that scale.

    A first stage spends 12% of the budget on noisy second moments, as in
    `PrivateLinearRegression`.

    Parameters
    ----------
    {parameters}
    {engine_parameters}
    {bounds_y}
    residual_clip : float, default=None
        Public scale at which residuals of rows of typical length are clipped, in the units of the
        target. None means 1.345 times the spread of residuals that the first stage finds.

    Attributes
    ----------
    {coefficients}
    {attributes}
    chosen_ : dict
        Settings that the fit chose from released values, in scaled units.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Section 7.

    Examples
    --------
    {example}
    """

    inference: bool = True
    residual_clip: float | None = None

    _method: ClassVar[type[Method]] = engine.HuberObjective
    _title: ClassVar[str] = "Private robust regression"
    _spread: ClassVar[bool] = False  # residuals are clipped
