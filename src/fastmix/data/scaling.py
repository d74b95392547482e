"""Public scaling: from the user's units to rows of norm 1 and targets in [-1, 1], and back."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.data import RowMap, TargetMap
from fastmix.data.bounds import LARGEST, check_target_bounds, feature_bounds
from fastmix.data.values import check_finite
from fastmix.errors import PrivacyLeakWarning


@dataclass(frozen=True)
class PublicScaling:
    """Public maps of records and targets, the bounds behind them, and the way back.

    Rows have norm at most 1 and targets lie in [-1, 1]; ``from_data`` names the bounds that were
    taken from the data.
    """

    row_map: RowMap
    target_map: TargetMap
    bounds_X: tuple[FloatArray, FloatArray] | None
    bounds_y: tuple[float, float]
    from_data: tuple[str, ...]

    def coefficients(self, theta: FloatArray, d: int) -> tuple[FloatArray, float]:
        r"""Map coefficients of the scaled problem to the user's units.

        With rows :math:`a = ((x - c)/s, c_0)/N` and target :math:`(y - c_y)/s_y`, the model
        :math:`a^\top\theta` is :math:`x^\top w + b` with :math:`w = s_y \theta_x / (N s)` and
        :math:`b = c_y + s_y c_0 \theta_0 / N - c^\top w`. The error for coefficients that are not
        finite reveals no more than they do: they are released, and the bounds are public.
        """
        rows, target = self.row_map, self.target_map
        scale = 1.0 if rows.scale is None else rows.scale
        intercept = 0.0
        with np.errstate(all="ignore"):
            coef = np.asarray(target.scale * theta[:d] / (rows.divisor * scale))
            if rows.constant > 0.0:
                center = 0.0 if rows.center is None else float(rows.center @ coef)
                offset = target.scale * rows.constant * float(theta[d]) / rows.divisor
                intercept = target.center + offset - center
        if not (np.isfinite(coef).all() and np.isfinite(intercept)):
            raise OverflowError(
                "the coefficients overflow: the noise of this fit swamps the data. Its charge "
                "stands, and the model is as it was before. Use fewer steps, fewer columns, more "
                "rows or a larger epsilon."
            )
        return coef, intercept

    def clipping(self, residual_clip: float | None) -> float:
        """Return the level at which residuals of the scaled problem are clipped."""
        clip = 1.0 if residual_clip is None else float(residual_clip) / self.target_map.scale
        if not 1e-100 <= clip <= 1e100:
            raise value_error("residual_clip", "be of the order of bounds_y", residual_clip)
        return clip

    def jacobian(self, d: int) -> FloatArray:
        """Return the derivative of the user's coefficients, intercept last, by the scaled ones."""
        size = d + (self.row_map.constant > 0.0)
        base = self.coefficients(np.zeros(size), d)[1]
        columns = [self.coefficients(unit, d) for unit in np.eye(size)]
        return np.column_stack([np.append(coef, offset - base) for coef, offset in columns])

    def describe(self) -> dict[str, Any]:
        """Return the bounds and the clipping that follows from them, as plain JSON types."""
        bounds = None if self.bounds_X is None else [side.tolist() for side in self.bounds_X]
        return {
            "bounds_X": bounds,
            "bounds_y": list(self.bounds_y),
            "row_norm": self.row_map.row_norm,
            "intercept_column": self.row_map.constant,
            "taken_from_data": list(self.from_data),
        }


def public_scaling(
    X: npt.NDArray[np.floating[Any]],
    y: npt.NDArray[np.floating[Any]],
    *,
    bounds_X: Any,
    bounds_y: Any,
    data_norm: float | None,
    fit_intercept: bool,
    warn: bool = True,
    labels: Sequence[Any] | None = None,
) -> PublicScaling:
    """Build the public scaling of a problem; X and y are read only where a bound is missing.

    ``data_norm`` bounds the rows in scaled units when there are ``bounds_X``, in the user's units
    otherwise. Without an intercept nothing is centred, because a shift would be one. Its constant
    column is as large as a typical feature, ``row_norm / sqrt(d)``, and lies inside the same bound:
    all rows are divided by ``hypot(row_norm, constant)``.
    """
    d = X.shape[1]
    from_data = []
    if bounds_X is None and data_norm is None:
        from_data.append("bounds_X")
        lows, highs = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        check_finite(lows, highs)
        box: tuple[FloatArray, FloatArray] | None = (lows, highs)
    else:
        box = None if bounds_X is None else feature_bounds(bounds_X, d, labels)
    if bounds_y is None:
        from_data.append("bounds_y")
        target_bounds = (float(y.min()), float(y.max()))
    else:
        target_bounds = check_target_bounds(bounds_y)
    if from_data and warn:
        names = " and ".join(from_data)
        warnings.warn(
            f"{names} not given: taken from the data, so the result is NOT private. "
            f"Pass {names} from public knowledge.",
            PrivacyLeakWarning,
            stacklevel=5,
        )

    if box is None:
        lower = upper = center = scale = None
        row_norm = check_real("data_norm", data_norm, above=0.0)
    else:
        lower, upper = box
        center, scale = _center_and_scale(lower, upper, fit_intercept)
        # A hair longer than the corners of the box: no row within the bounds is ever shortened.
        corner = np.sqrt(d) * (1.0 + (2 * d + 64) * 2.0**-52)
        row_norm = corner if data_norm is None else check_real("data_norm", data_norm, above=0.0)
    constant = row_norm / np.sqrt(d) if fit_intercept else 0.0
    row_map = RowMap(
        row_norm=float(row_norm),
        lower=lower,
        upper=upper,
        center=center,
        scale=scale,
        constant=float(constant),
        divisor=float(np.hypot(row_norm, constant)),
    )
    low, high = target_bounds
    y_center, y_scale = _center_and_scale(np.asarray([low]), np.asarray([high]), fit_intercept)
    # A target that is constant by its bounds keeps a finite scale; it is clipped to 0 anyway.
    y_unit = float(y_scale[0]) if np.isfinite(y_scale[0]) else 1.0
    target_map = TargetMap(lower=low, upper=high, center=float(y_center[0]), scale=y_unit)
    return PublicScaling(row_map, target_map, box, target_bounds, tuple(from_data))


def _center_and_scale(
    lower: FloatArray, upper: FloatArray, centred: bool
) -> tuple[FloatArray, FloatArray]:
    """Return midpoints and half-widths, or 0 and the largest magnitude when not centred.

    A feature that its bounds make constant gets an infinite scale, which removes it.
    """
    center = lower / 2.0 + upper / 2.0 if centred else np.zeros_like(lower)
    scale = upper / 2.0 - lower / 2.0 if centred else np.maximum(np.abs(lower), np.abs(upper))
    return center, np.where(scale > 1.0 / LARGEST, scale, np.inf)
