"""Plans from public sizes: method, sizes, predicted noise, error, seconds and memory."""

from fastmix.methods import Forecast
from fastmix.methods.forecast import CASES, Case, Outlook, outlook
from fastmix.planning.cost import METHODS, CostModel, Problem, work
from fastmix.planning.fit import FitPlan, plan

__all__ = [
    "CASES",
    "METHODS",
    "Case",
    "CostModel",
    "FitPlan",
    "Forecast",
    "Outlook",
    "Problem",
    "outlook",
    "plan",
    "work",
]
