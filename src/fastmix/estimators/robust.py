"""Regressors of quantiles, and of Huber's loss."""

from typing import Any, ClassVar

from fastmix import engine
from fastmix.engine import Method
from fastmix.engine.families.quantile import NO_WIDTH
from fastmix.estimators._documentation import estimator
from fastmix.estimators.base import EngineRegressor


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
    quantile : float, default=0.5
        The quantile of the target to predict, between 0 and 1.

    Attributes
    ----------
    {coefficients}
    {attributes}
    smoothing_ : float
        The width of the smoothing, in the units of the target.
    chosen_ : dict
        Settings that the fit chose from released values, in scaled units.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Section 8.

    Examples
    --------
    {example}
    """

    quantile: float = 0.5

    _method: ClassVar[type[Method]] = engine.QuantileObjective
    _title: ClassVar[str] = "Private quantile regression"

    def _store(self, method: Method, plan: Any, solution: Any, scaling: Any, *facts: Any) -> None:
        super()._store(method, plan, solution, scaling, *facts)
        chosen = solution.chosen or {}
        width = chosen.get("smoothing", NO_WIDTH)
        self.smoothing_ = width * scaling.target_map.scale

    def _store_intervals(self, *given: Any, **sizes: Any) -> None:
        super()._store_intervals(*given, **sizes)
        for name in ("residual_std_", "residual_std_identified_"):
            self.__dict__.pop(name, None)  # quantiles do not tell the spread of errors


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

    residual_clip: float | None = None

    _method: ClassVar[type[Method]] = engine.HuberObjective
    _title: ClassVar[str] = "Private robust regression"

    def _store_intervals(self, *given: Any, **sizes: Any) -> None:
        super()._store_intervals(*given, **sizes)
        for name in ("residual_std_", "residual_std_identified_"):
            self.__dict__.pop(name, None)  # clipped residuals do not tell the spread of errors
