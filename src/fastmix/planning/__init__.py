"""Plans from public sizes: method, sizes, predicted noise, error, seconds and memory."""

from fastmix.planning.cost import METHODS, CostModel, Measurement, Problem, fit_cost_model
from fastmix.planning.fit import FitPlan, plan
from fastmix.planning.forecast import Forecast, forecast

__all__ = [
    "METHODS",
    "CostModel",
    "FitPlan",
    "Forecast",
    "Measurement",
    "Problem",
    "fit_cost_model",
    "forecast",
    "plan",
]
