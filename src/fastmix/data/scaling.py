"""Public bounds, and the scaling by them to rows of norm 1 and targets in [-1, 1], and back."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_real, type_error, value_error
from fastmix.data import RowMap, TargetMap
from fastmix.errors import PrivacyLeakWarning, caller_level
from fastmix.schema.values import as_reals, check_finite

#: Bounds beyond this would overflow; half-widths below its inverse make a feature constant.
LARGEST = 1e100
#: The least norm of rows with dummies, whose coordinates stretch by as much as rows are shortened.
_LEAST_NORM = 1e-12


@dataclass(frozen=True)
class PublicScaling:
    """Public maps to rows of norm 1 and targets in [-1, 1], their bounds, and the way back."""

    row_map: RowMap
    target_map: TargetMap
    bounds_X: tuple[FloatArray, FloatArray] | None
    bounds_y: tuple[float, float]
    from_data: tuple[str, ...]  #: Names of the bounds that were taken from the data.

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
        if not 1e-12 <= clip <= 1e12:
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
    dummies: tuple[tuple[int, ...], ...] = (),
) -> PublicScaling:
    """Build the public scaling of a problem; X and y are read only where a bound is missing.

    ``data_norm`` bounds the rows in scaled units when there are ``bounds_X``, in the user's units
    otherwise. Without an intercept nothing is centred, because a shift would be one. Its constant
    column is as large as a typical feature, ``row_norm / sqrt(d)``, and lies inside the same bound:
    all rows are divided by ``hypot(row_norm, constant)``. Each of the ``dummies`` is the columns
    of one category, which adds 1 to the squared norm of a row; the map enforces that.
    """
    d = X.shape[1]
    if dummies and data_norm is not None:
        if bounds_X is None:
            raise value_error("bounds_X", "be given with categories", None)
        if not data_norm >= _LEAST_NORM:
            condition = f"be at least {_LEAST_NORM:g} with categories"
            raise value_error("data_norm", condition, data_norm)
    box: tuple[FloatArray, FloatArray] | None = None
    if bounds_X is not None:
        box = feature_bounds(bounds_X, d, labels)
    elif data_norm is None:
        box = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        check_finite(*box)
    if box is not None and dummies:
        each = [j for columns in dummies for j in columns]
        box[0][each], box[1][each] = -1.0, 1.0  # around 0, so that 0 stays 0
    low, high = (y.min(), y.max()) if bounds_y is None else check_target_bounds(bounds_y)
    missing = {"bounds_X": bounds_X is None and data_norm is None, "bounds_y": bounds_y is None}
    from_data = tuple(name for name in missing if missing[name])
    if from_data and warn:
        names = " and ".join(from_data)
        warnings.warn(
            f"{names} not given: taken from the data, so the result is NOT private. "
            f"Pass {names} from public knowledge.",
            PrivacyLeakWarning,
            stacklevel=caller_level(),
        )

    maps: dict[str, FloatArray] = {}
    # A hair longer than the corners of the box: no row within the bounds is ever shortened.
    features = d - sum(len(columns) - 1 for columns in dummies)
    row_norm = np.sqrt(features) * (1.0 + (2 * d + 64) * 2.0**-52)
    if box is not None:
        center, scale = _center_and_scale(*box, fit_intercept)
        maps = {"lower": box[0], "upper": box[1], "center": center, "scale": scale}
    if box is None or data_norm is not None:
        given = check_real("data_norm", data_norm, above=0.0)
        row_norm = min(given, row_norm) if dummies else given
    constant = row_norm / np.sqrt(d) if fit_intercept else 0.0
    divisor = float(np.hypot(row_norm, constant))
    row_map = RowMap(
        float(row_norm), constant=float(constant), divisor=divisor, dummies=dummies, **maps
    )
    sides = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    y_center, y_scale = map(float, _center_and_scale(*sides, fit_intercept))
    # A target that is constant by its bounds keeps a finite scale; it is clipped to 0 anyway.
    y_scale = y_scale if np.isfinite(y_scale) else 1.0
    target_map = TargetMap(float(low), float(high), y_center, y_scale)
    return PublicScaling(row_map, target_map, box, (float(low), float(high)), from_data)


def _center_and_scale(
    lower: FloatArray, upper: FloatArray, centred: bool
) -> tuple[FloatArray, FloatArray]:
    """Return midpoints and half-widths, or 0 and the largest magnitude when not centred.

    A feature that its bounds make constant gets an infinite scale, which removes it.
    """
    center = lower / 2.0 + upper / 2.0 if centred else np.zeros_like(lower)
    scale = upper / 2.0 - lower / 2.0 if centred else np.maximum(np.abs(lower), np.abs(upper))
    return center, np.where(scale > 1.0 / LARGEST, scale, np.inf)


def feature_bounds(
    bounds: Any, d: int, labels: Sequence[Any] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper bounds of d features, finite and in the order of their labels.

    Each side is a scalar, a sequence with one entry per feature, or a pandas Series or a mapping by
    label; instead of two sides there may be a mapping with a pair (lower, upper) for each label.
    """
    if isinstance(bounds, Mapping):
        pairs = [_pair("bounds_X", pair) for pair in _aligned(bounds, labels)]
        bounds = [low for low, _ in pairs], [high for _, high in pairs]
    lower, upper = (_side(side, d, labels) for side in _pair("bounds_X", bounds))
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise value_error("bounds_X", "be finite", bounds)
    if max(np.abs(lower).max(), np.abs(upper).max()) > LARGEST:
        raise value_error("bounds_X", f"be at most {LARGEST:g} in magnitude", bounds)
    if not (lower <= upper).all():
        raise value_error("bounds_X", "have no lower bound above its upper bound", bounds)
    return lower, upper


def check_target_bounds(bounds: Any) -> tuple[float, float]:
    """Return the bounds of the target."""
    sides = [np.ma.asanyarray(side) for side in _pair("bounds_y", bounds)]
    if any(side.size != 1 or np.ma.is_masked(side) for side in sides):
        raise value_error("bounds_y", "be a pair of numbers", bounds)
    lower, upper = (
        check_real("bounds_y", side.item(), at_least=-LARGEST, at_most=LARGEST) for side in sides
    )
    if not lower <= upper:
        raise value_error("bounds_y", "have no lower bound above its upper bound", bounds)
    return lower, upper


def _pair(name: str, bounds: Any) -> tuple[Any, Any]:
    """Return both sides; what has no order, or iterates over labels, is no pair."""
    try:
        if isinstance(bounds, (Mapping, set, frozenset, str, bytes)) or hasattr(bounds, "columns"):
            raise TypeError
        lower, upper = bounds
    except (TypeError, ValueError):
        raise type_error(name, "be a pair (lower, upper)", bounds) from None
    return lower, upper


def _side(side: Any, d: int, labels: Sequence[Any] | None) -> FloatArray:
    """Return one side of the bounds, with an entry for each feature."""
    if isinstance(side, Mapping):
        side = _aligned(side, labels)
    elif hasattr(side, "iloc") and hasattr(side, "index"):  # a pandas Series
        own = list(side.index)
        if len(set(own)) != len(own):
            raise value_error("bounds_X", "have each label once", own)
        named = labels is None or all(isinstance(label, str) for label in labels)
        in_order = named and own == [*range(len(own))]  # without labels of its own
        values = side.array
        side = values if in_order else _aligned(dict(zip(own, values, strict=True)), labels)
    try:
        values = as_reals("bounds_X", side).astype(np.float64)
    except ValueError:
        raise type_error("bounds_X", "hold real numbers", side) from None
    if values.shape not in ((), (1,), (d,)):
        raise value_error(
            "bounds_X", f"be scalars or have one entry for each of {d} features", values
        )
    return np.array(np.broadcast_to(values, (d,)))


def _aligned(bounds: Mapping[Any, Any], labels: Sequence[Any] | None) -> list[Any]:
    """Return labelled bounds in the order of the features, whose labels must be the same."""
    if labels is None:
        raise value_error(
            "bounds_X", "have no labels, because the columns of X have no names", list(bounds)
        )
    if len(set(labels)) != len(labels):
        raise value_error("X", "have each name once for bounds with labels", list(labels))
    missing = [label for label in labels if label not in bounds]
    extra = [label for label in bounds if label not in set(labels)]
    if missing or extra:
        raise ValueError(
            "bounds_X must name every column of X, and no other; "
            f"columns without bounds: {missing}; names that are not columns: {extra}."
        )
    return [bounds[label] for label in labels]
