"""What a loader returns: a regression problem with public bounds and its provenance."""

from __future__ import annotations

from dataclasses import dataclass

from fastmix._types import FloatArray


@dataclass(frozen=True)
class Table:
    """A regression problem with public bounds.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Features.
    y : ndarray of shape (n,)
        Target.
    feature_names : tuple of str
        Names of the features.
    target_name : str
        Name of the target.
    bounds_X : tuple of ndarray
        Public lower and upper bounds of the features.
    bounds_y : tuple of float
        Public bounds of the target.
    provenance : str
        Where the data come from and what was done to them.
    """

    X: FloatArray
    y: FloatArray
    feature_names: tuple[str, ...]
    target_name: str
    bounds_X: tuple[FloatArray, FloatArray]
    bounds_y: tuple[float, float]
    provenance: str
