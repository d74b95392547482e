"""Plans from public sizes: is a table big enough for the fit, and what does the fit cost?"""

from fastmix.planning.cost import COSTED, CostModel, Problem, work
from fastmix.planning.from_sizes import plan
from fastmix.planning.persons import Guess, RowChoice, row_choices
from fastmix.planning.plan import Error, FitPlan

__all__ = [
    "COSTED",
    "CostModel",
    "Error",
    "FitPlan",
    "Guess",
    "Problem",
    "RowChoice",
    "plan",
    "row_choices",
    "work",
]
