"""The engine: plans from public sizes, private fits, their intervals, scores and forecasts."""

from fastmix.engine.choice import finish_reason
from fastmix.engine.families import (
    AdaptiveObjective,
    HuberObjective,
    LogisticObjective,
    QuantileObjective,
)
from fastmix.engine.family import Family
from fastmix.engine.fit import default_delta, plan_fit, solve_fit
from fastmix.engine.objective import PerturbedObjective
from fastmix.engine.plan import METHODS, Draws, Forecast, Method, Plan, Sizes, Solution, Target

__all__ = [
    "METHODS",
    "AdaptiveObjective",
    "Draws",
    "Family",
    "Forecast",
    "HuberObjective",
    "LogisticObjective",
    "Method",
    "PerturbedObjective",
    "Plan",
    "QuantileObjective",
    "Sizes",
    "Solution",
    "Target",
    "default_delta",
    "finish_reason",
    "plan_fit",
    "solve_fit",
]
