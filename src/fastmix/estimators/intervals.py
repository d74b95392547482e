"""The part of the estimators that gives standard errors and confidence intervals."""

import math

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import check_probability, value_error
from fastmix.data.scaling import PublicScaling
from fastmix.methods import Plan, Solution
from fastmix.methods.inference import intervals


class ConfidenceIntervals:
    """Standard errors of a fit with ``inference=True``, and `conf_int`."""

    inference: bool
    coef_: FloatArray
    intercept_: float

    def conf_int(self, level: float = 0.95, *, intercept: bool = False) -> FloatArray:
        """Return confidence intervals of the coefficients, from released values only.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which an interval covers the coefficient of the population, when no
            value is clipped.
        intercept : bool, default=False
            Put the interval of the intercept at the end.

        Returns
        -------
        ndarray of shape (n_features, 2) or (n_features + 1, 2)
            Lower and upper ends, in the user's units.

        Notes
        -----
        Needs ``inference=True``. They count privacy noise and the sampling of records; bias from
        clipping is not in them (docs/proofs/confidence.md).
        """
        check_is_fitted(self)
        check_probability("level", level)
        if not hasattr(self, "coef_std_"):
            raise value_error("inference", "be True when the model is fitted", self.inference)
        center, std = self.coef_, self.coef_std_
        if intercept:
            center = np.append(center, self.intercept_)
            std = np.append(std, self.intercept_std_)
        reach = float(ndtri(0.5 + level / 2.0)) * std
        return np.column_stack([center - reach, center + reach])

    def _store_intervals(
        self, solution: Solution, plan: Plan, scaling: PublicScaling, *, clip: float, n: int
    ) -> None:
        """Store standard errors in the user's units, or remove those of an earlier fit."""
        for name in ("coef_std_", "coef_noise_std_", "intercept_std_", "residual_std_"):
            self.__dict__.pop(name, None)
        sigma = plan.residual_sigma
        if solution.trace is None or solution.residuals is None or sigma is None:
            return
        # Across its bounds a feature may well change the target by twice the width of its bounds.
        size = 2.0 * scaling.row_map.divisor
        found = intervals(
            solution.trace, solution.theta, solution.residuals, sigma, clip=clip, n=n, size=size
        )
        d = len(self.coef_)
        J = scaling.jacobian(d)
        std, noise = (
            np.sqrt(np.einsum("ij,jk,ik->i", J, C, J)) for C in (found.covariance, found.noise)
        )
        self.coef_std_, self.intercept_std_ = std[:d], float(std[d])
        self.coef_noise_std_ = noise[:d]
        self.residual_std_ = math.sqrt(found.variance) * scaling.target_map.scale
