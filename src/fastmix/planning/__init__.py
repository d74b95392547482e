"""Plans from public sizes: is a table big enough for the fit, and what does the fit cost?"""

from fastmix.planning.cost import COSTED, CostModel, Problem, work
from fastmix.planning.fit_plan import Error, FitPlan
from fastmix.planning.from_sizes import plan
from fastmix.planning.rows_per_person import RowChoice, RowsGuess, row_choices

__all__ = [
    "COSTED",
    "CostModel",
    "Error",
    "FitPlan",
    "Problem",
    "RowChoice",
    "RowsGuess",
    "plan",
    "row_choices",
    "work",
]
