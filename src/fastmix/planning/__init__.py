"""Plans from public sizes: is a table big enough for the fit, and what does the fit cost?"""

from fastmix.planning.cost import COSTED, CostModel, PersonCost, Problem, person_costs, work
from fastmix.planning.from_sizes import plan
from fastmix.planning.plan import Error, FitPlan

__all__ = [
    "COSTED",
    "CostModel",
    "Error",
    "FitPlan",
    "PersonCost",
    "Problem",
    "person_costs",
    "plan",
    "work",
]
