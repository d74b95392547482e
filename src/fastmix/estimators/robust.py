"""Regressors of other losses than squares: quantiles, and Huber's."""

from typing import Any, ClassVar

from fastmix import engine
from fastmix.engine import Method
from fastmix.engine.families.quantile import NO_WIDTH
from fastmix.estimators.base import PrivateRegressor, estimator


@estimator
class PrivateQuantileRegressor(PrivateRegressor):
    """Private quantile regression by objective perturbation that adapts to the data.

    The quantile loss is smoothed, as privacy asks for. A first stage spends 12% of the budget on
    noisy second moments, as that of `AdaptiveRegression`.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile of the target that is predicted, between 0 and 1.
    smoothing : float, default=None
        Width of the smoothing, in the units of the target: the quantile is that of the target plus
        a logistic variable of this scale. None means 0.03 of the spread of residuals that the
        first stage finds. It is made wider where privacy asks for it.
    rounds : int, default=None
        As for `AdaptiveRegression`.
    solver : {"auto", "gram", "sketch"}, default="auto"
        What preconditions the solver: the Gram matrix, or that of a fast sketch.

    Attributes
    ----------
    smoothing_ : float
        The width of the smoothing, in the units of the target.
    chosen_ : dict
        What was chosen from released values, in scaled units.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Section 8.

    Examples
    --------
    {example}
    """

    quantile: float = 0.5
    smoothing: float | None = None
    rounds: int | None = None
    solver: str = "auto"

    _method: ClassVar[type[Method]] = engine.QuantileObjective
    _title: ClassVar[str] = "Private quantile regression"

    def _store(self, method: Method, plan: Any, solution: Any, scaling: Any, *facts: Any) -> None:
        super()._store(method, plan, solution, scaling, *facts)
        chosen = solution.chosen or {}
        width = chosen.get("smoothing", NO_WIDTH)
        self.smoothing_ = width * scaling.target_map.scale


@estimator
class PrivateHuberRegressor(PrivateRegressor):
    """Private robust regression: residuals beyond a scale count as if they were at that scale.

    A first stage spends 12% of the budget on noisy second moments, as that of `AdaptiveRegression`.

    Parameters
    ----------
    residual_clip : float, default=None
        Public scale at which residuals of rows of typical length are clipped, in the units of the
        target. None means 1.345 times the spread of residuals that the first stage finds.
    rounds : int, default=None
        As for `AdaptiveRegression`.
    solver : {"auto", "gram", "sketch"}, default="auto"
        What preconditions the solver: the Gram matrix, or that of a fast sketch.

    Attributes
    ----------
    chosen_ : dict
        What was chosen from released values, in scaled units.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Section 7.

    Examples
    --------
    {example}
    """

    residual_clip: float | None = None
    rounds: int | None = None
    solver: str = "auto"

    _method: ClassVar[type[Method]] = engine.HuberObjective
    _title: ClassVar[str] = "Private robust regression"

    def _store_intervals(self, *given: Any, **sizes: Any) -> None:
        super()._store_intervals(*given, **sizes)
        for name in ("residual_std_", "residual_std_identified_"):
            self.__dict__.pop(name, None)  # clipped residuals do not tell the spread of errors
