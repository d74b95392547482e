"""The part of the estimators that gives standard errors and confidence intervals."""

import math

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import check_probability, value_error
from fastmix.data.scaling import PublicScaling
from fastmix.engine import Plan, Solution
from fastmix.engine.inference import intervals
from fastmix.engine.table_inference import MOST_BIAS

#: What a fit with ``inference=True`` stores.
_STORED = (
    "coef_std_",
    "coef_covariance_",
    "_coef_bias",
    "_coef_noise",
    "coef_noise_std_",
    "coef_bias_bound_",
    "coef_identified_",
    "intercept_std_",
    "intercept_identified_",
    "residual_std_",
    "residual_std_identified_",
)


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
        clipping is not in them (docs/inference.md). A coefficient that the data do not identify
        has an infinite interval.
        """
        check_is_fitted(self)
        check_probability("level", level)
        if not hasattr(self, "coef_std_"):
            raise value_error("inference", "be True when the model is fitted", self.inference)
        center, std = np.ravel(self.coef_), np.ravel(self.coef_std_)
        if intercept:
            center = np.append(center, self.intercept_)
            std = np.append(std, self.intercept_std_)
        reach = float(ndtri(0.5 + level / 2.0)) * std
        return np.column_stack([center - reach, center + reach])

    def _store_intervals(
        self, solution: Solution, plan: Plan, scaling: PublicScaling, *, clip: float, n: int
    ) -> None:
        """Store standard errors in the user's units, or remove those of an earlier fit."""
        for name in _STORED:
            self.__dict__.pop(name, None)
        found, sigma = solution.intervals, plan.residual_sigma
        if solution.trace is not None and solution.residuals is not None and sigma is not None:
            # Across its bounds a feature may well change the target by twice its bounds' width.
            size = 2.0 * scaling.row_map.divisor
            found = intervals(
                solution.trace, solution.theta, solution.residuals, sigma, clip=clip, n=n, size=size
            )
        if found is None:
            return
        shape, d = np.shape(self.coef_), np.size(self.coef_)
        J = scaling.jacobian(d)
        std, noise = (_deviations(J, C) for C in (found.covariance, found.noise))
        bias, across = np.zeros(len(J)), std
        if found.hidden is not None and found.hidden.size:
            bias = _lengths(J @ found.hidden)
            # Along what is hidden noise may be stretched to any size: that is no standard error.
            Q = np.linalg.qr(found.hidden)[0]
            rest = J - (J @ Q) @ Q.T
            across = _deviations(rest, found.covariance)
        # What may be off by more than its standard error is not identified.
        identified = (bias <= across) & np.isfinite(std)
        if found.bias is not None:
            bias = np.sqrt(np.maximum(np.sum((J @ found.bias) * J, axis=1), 0.0))
            identified = bias**2 <= MOST_BIAS * std**2
        if found.known is not None:
            identified &= found.known
        std = np.where(identified, np.hypot(std, bias), np.inf)
        self.coef_covariance_ = _symmetric(J @ found.covariance @ J.T)
        self._coef_noise = _symmetric(J @ found.noise @ J.T)
        self._coef_bias = np.zeros_like(self.coef_covariance_)
        if found.bias is not None:
            self._coef_bias = _symmetric(J @ found.bias @ J.T)
        self.coef_std_, self.intercept_std_ = std[:d].reshape(shape), float(std[d])
        self.coef_noise_std_ = noise[:d].reshape(shape)
        self.coef_bias_bound_ = bias[:d].reshape(shape)
        self.coef_identified_ = identified[:d].reshape(shape)
        self.intercept_identified_ = bool(identified[d])
        self.residual_std_ = math.sqrt(found.variance) * scaling.target_map.scale
        self.residual_std_identified_ = found.sure


def _deviations(rows: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return standard deviations along rows; infinite where rounding leaves no variance."""
    with np.errstate(all="ignore"):
        variances = np.sum((rows @ covariance) * rows, axis=1)
        return np.asarray(np.sqrt(np.where(variances >= 0.0, variances, np.inf)))


def _symmetric(C: FloatArray) -> FloatArray:
    """Return a matrix whose upper triangle is a copy of the lower one, free of rounding."""
    return np.where(np.tri(len(C), dtype=bool), C, C.T)


def _lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))
