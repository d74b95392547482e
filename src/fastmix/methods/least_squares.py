"""Least squares without privacy, for an infinite epsilon."""

import numpy as np
from sklearn.linear_model import LinearRegression

from fastmix._types import FloatArray
from fastmix.data import ChunkRows, Rows
from fastmix.data.scaling import PublicScaling
from fastmix.mechanisms import symmetric_solve


def least_squares(rows: Rows, scaling: PublicScaling) -> FloatArray:
    """Solve the clipped problem without privacy and return scaled coefficients."""
    if isinstance(rows, ChunkRows):
        return symmetric_solve(*rows.moments())
    A, y = (np.concatenate(parts) for parts in zip(*rows.blocks(), strict=True))
    public = scaling.row_map
    intercept = public.constant > 0.0
    d = rows.d - intercept
    # Back in the user's units, so that a rank-deficient problem has scikit-learn's solution.
    unit = public.divisor * np.ones(d)
    if public.scale is not None:
        unit *= np.where(np.isfinite(public.scale), public.scale, 0.0)
    model = LinearRegression(fit_intercept=intercept).fit(A[:, :d] * unit, y)
    theta: FloatArray = model.coef_ * unit
    if intercept:
        theta = np.append(theta, model.intercept_ * public.divisor / public.constant)
    return theta
