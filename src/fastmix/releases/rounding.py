r"""Room for rounding: how much more a record can change a computed sum than the exact one.

A computed statistic is an exact sum over records, of a function of each record alone, plus an
error of at most E in the norm of the sensitivity S. So two computed statistics of neighbours differ
by at most S + 2E. E follows from public sizes: the number of records, of columns, and of additions
that a term goes through (docs/proofs/machine.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastmix.kernels.mapped import sum_error, summation_error

if TYPE_CHECKING:
    from fastmix.releases.release import Public

#: Unit of rounding, and the largest error of a product that is too small for full precision.
UNIT, TINY = 2.0**-53, 2.0**-1074

Sensitivity = Callable[..., float]
#: An error as a function of what is public and given.
Error = Callable[..., float]


def nothing(public: Public, **given: Any) -> float:
    """Return 0."""
    return 0.0


def record_error(public: Public) -> float:
    """Return what rounding can add to the term of one record, as a share of its largest norm."""
    return (8 * public.d + 64) * UNIT


def rounded(public: Public, sensitivity: float, *, sums: float = 1.0, error: float = 0.0) -> float:
    """Return the sensitivity of a computed sum.

    ``sums`` are the sums of terms of that size that it is made of, ``error`` is that of each record
    beyond `record_error`. All are shares of the sensitivity.
    """
    count = public.additions + 5 * public.d + 64
    room = sums * sum_error(count, public.most) + public.most * error
    share = 1.0 + record_error(public) + 2.0 * room * (1.0 + record_error(public))
    return sensitivity * share + 2.0 * public.most * (public.d + 1) ** 2 * TINY


def summed(sensitivity: Sensitivity, *, sums: float = 1.0, error: Error = nothing) -> Sensitivity:
    """Return the sensitivity of a computed sum as a function of what is public and given."""

    def computed(public: Public, **given: Any) -> float:
        exact = sensitivity(public, **given)
        return rounded(public, exact, sums=sums, error=error(public, **given))

    return computed


def counted(sensitivity: Sensitivity, *, sums: float = 1.0) -> Sensitivity:
    """Return the sensitivity of counts, which are exact unless records have weights."""
    weighted = summed(sensitivity, sums=sums)

    def computed(public: Public, **given: Any) -> float:
        return (weighted if public.weighted else sensitivity)(public, **given)

    return computed


def eigenvalue_error(public: Public, **given: Any) -> float:
    """Return the error of a computed eigenvalue of a sum of n matrices, for each of them.

    That of LAPACK is a modest multiple of the unit and of the norm; 16 d^2 leaves room.
    """
    return 16.0 * public.d**2 * UNIT


def slope_error(public: Public, *, loss: Any, transform: Any, least: float, **given: Any) -> float:
    r"""Return the error of :math:`T^\top \sum f' x` for each record, as a share of L.

    Slopes are at most L over the ``least`` length; sums are exact but for the error of products.
    The matrix multiplies the error.
    """
    most = max(loss.lipschitz, loss.size * least) / (loss.lipschitz * least)
    stretch = float(np.linalg.norm(transform)) * public.bound
    summation = summation_error(loss, weighted=public.weighted)
    return float((summation + (public.d + 32) * UNIT) * most * stretch)


def product_error(
    public: Public, *, loss: Any, transform: Any, least: float, square: float, **given: Any
) -> float:
    r"""Return the error of a record's matrix :math:`\kappa z z^\top` for :math:`z = T^\top x`.

    BLAS computes z to within :math:`\delta = 4(d + 16) u \|T\|_F \|x\|`. The matrix changes by at
    most :math:`3\delta/\rho` of its largest norm, where :math:`\rho` is the ``least`` length, or
    the one from which on curvatures are limited to ``square``.
    """
    shortest = min(least, math.sqrt(square / loss.bend))
    stretch = float(np.linalg.norm(transform)) * public.bound
    return 12.0 * (public.d + 16) * UNIT * stretch / shortest
