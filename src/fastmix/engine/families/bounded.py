"""What the losses with bounded slopes share: Huber's and the quantile loss."""

import numpy as np

from fastmix._types import FloatArray
from fastmix.data import Rows
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.clipping import LEAST_RIDGE, LEFT, RIDGE, TABLE_RIDGE
from fastmix.engine.first_stage import SPREAD
from fastmix.kernels.losses import CalibratedHuber
from fastmix.kernels.sigmoids import SmoothedQuantile
from fastmix.releases.distance import Objective
from fastmix.releases.minimise import minimise

#: Forecasts: the residuals' spread where a first look explains a part of the target, and the share
#: of the signal that is lost because gradients of long rows are limited.
TYPICAL, LIMITED = 0.76 * SPREAD, 3e-4


def ridge_of(
    plan: AdaptivePlan, level: float, spread: float, curvature: float, n: int, d: int
) -> float:
    """Return the ridge for coordinates in which every eigenvalue is about n times the curvature."""
    noise, explained = level / plan.mu, LEFT * spread**2
    floor = LEAST_RIDGE if plan.level_sigma is None else TABLE_RIDGE
    needed = floor * n * curvature if plan.n_rounds else 0.0
    return max(RIDGE * noise / spread, noise**2 * d / (n * curvature * explained), needed)


def minimum(rows: Rows, loss: CalibratedHuber | SmoothedQuantile) -> FloatArray:
    """Return the minimiser of a loss, without privacy."""
    objective = Objective(loss, loss.ridge, np.zeros(rows.d), np.zeros(rows.d))
    return minimise(rows, objective, tolerance=1e-3, sketch=False)
