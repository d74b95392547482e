"""Plans from public sizes: method, sizes, predicted noise, error, seconds and memory."""

from fastmix.methods import Forecast
from fastmix.methods.forecast import CASES, Case, Outlook, outlook
from fastmix.planning.cost import METHODS, CostModel, Problem, work
from fastmix.planning.dry_run import DryRun, Error, dry_run
from fastmix.planning.fit import FitPlan, plan
from fastmix.planning.people import PersonCost, person_costs

__all__ = [
    "CASES",
    "METHODS",
    "Case",
    "CostModel",
    "DryRun",
    "Error",
    "FitPlan",
    "Forecast",
    "Outlook",
    "PersonCost",
    "Problem",
    "dry_run",
    "outlook",
    "person_costs",
    "plan",
    "work",
]
