"""Fused passes over the rows of an array that is seen through a public map.

Each pass reads the caller's array where it lies, in its own layout and dtype, maps entries on the
fly and makes no n x d copy.  Sums are taken over fixed blocks in a fixed order, so the result
does not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix.kernels import reference

__all__ = [
    "Mapped",
    "Targets",
    "gradient",
    "gram",
    "map_rows",
    "map_targets",
    "squared_norms",
    "srht",
]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Mapped:
    """An n x p matrix A, never formed: an array seen through a public map of its entries.

    ``a_ij = f_i s_j (clip(x_ij, l_j, u_j) - c_j)`` for the d columns of X, followed by one column
    of ``constant`` if that is not 0.

    Parameters
    ----------
    X : numpy.ndarray of shape (n, d)
        float32 or float64, any layout.
    lower, upper, center, inverse_scale : numpy.ndarray of shape (d,), optional
        l, u, c and s; None stands for no bound, 0 and 1.
    factors : numpy.ndarray of shape (n,), optional
        f; None stands for 1.
    constant : float, default 0.0
        Value of the last column; 0 means that there is none.
    """

    X: npt.NDArray[np.floating[Any]]
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    center: FloatArray | None = None
    inverse_scale: FloatArray | None = None
    factors: FloatArray | None = None
    constant: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of A."""
        n, d = self.X.shape
        return n, d + (self.constant != 0.0)


@dataclass(frozen=True)
class Targets:
    """Targets seen through a public map: ``clip((clip(y, lower, upper) - center) * s, -1, 1)``.

    Parameters
    ----------
    y : numpy.ndarray of shape (n,)
        float64.
    lower, upper, center, inverse_scale : float
        Public bounds, centre and s.
    """

    y: FloatArray
    lower: float = -1.0
    upper: float = 1.0
    center: float = 0.0
    inverse_scale: float = 1.0


def map_rows(A: Mapped, start: int, stop: int) -> FloatArray:
    """Return rows ``start`` to ``stop`` of A as a new array."""
    return reference.map_rows(A, start, stop)


def map_targets(targets: Targets, start: int, stop: int) -> FloatArray:
    """Return targets ``start`` to ``stop`` through their map."""
    return reference.map_targets(targets, start, stop)


def squared_norms(A: Mapped, *, n_threads: int | None = None) -> FloatArray:
    """Return the squared norms of the rows of A, without factors and constant.

    A row with an entry of X that is NaN or infinite has norm NaN, whatever the map makes of it.
    """
    return reference.squared_norms(A)


def gram(A: Mapped, *, n_threads: int | None = None) -> FloatArray:
    """Return ``A'A``, summed in float64."""
    return reference.gram(A)


def gradient(
    A: Mapped, targets: Targets, theta: FloatArray, clip: float, *, n_threads: int | None = None
) -> FloatArray:
    """Return ``A' clip(y - A theta)``, residuals clipped to [-clip, clip]."""
    return reference.gradient(A, targets, theta, clip)


def srht(
    A: Mapped,
    signs: npt.NDArray[np.int8],
    rows: npt.NDArray[np.int64],
    n_pad: int,
    *,
    distortion: bool = True,
    n_threads: int | None = None,
) -> tuple[FloatArray, float]:
    """Return ``S A`` for an SRHT, and its largest row distortion (0 if not asked for).

    Notes
    -----
    Paper: Appendix C.4.2. For a tile of columns: signs, transform, gather the sampled rows,
    scale by (n/k - 1) there and -1 elsewhere, transform again, add squares to n sums.
    Deviation: one pass for both; no copy of the data.
    Sensitive inputs: A. Both outputs are functions of it and are not private.
    """
    return reference.srht(A, signs, rows, n_pad, distortion)
