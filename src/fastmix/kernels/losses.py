"""Convex losses with bounded slope: their slopes and curvatures.

A loss is a frozen value, the same for all rows, or adapted to the length of each.  It is a function
of the residual ``u = y - x' theta``, or of ``x' theta = y - u`` and the target.  The compiled
passes know it by its ``constants``; the functions here are the same in NumPy.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from fastmix._types import BoolArray, FloatArray
from fastmix._validation import check_real, value_error


def least_ridge(eps_c: float) -> float:
    r"""Return :math:`1/(e^{\epsilon_c} - 1)`, below which no quadratic zone is left."""
    return 1.0 / math.expm1(min(eps_c, 700.0))


def least_person_ridge(eps_c: float) -> float:
    r"""Return :math:`1/\epsilon_c`, below which no quadratic zone is left for persons' rows."""
    return 1.0 / eps_c


class Loss(Protocol):
    """A convex loss f; f' is bounded by ``lipschitz`` over the length of a row.

    Each function of u takes the lengths of the rows, None for 1, and their targets, which a loss of
    the residual alone does without.
    """

    #: Whether f' has one sign for each record.
    one_sided: ClassVar[bool]
    #: Whether f is u^2/2 somewhere, so that least squares are a start.
    squares: ClassVar[bool]

    @property
    def lipschitz(self) -> float:
        """The largest slope L of a row of length 1."""

    @property
    def bend(self) -> float:
        """The largest curvature of any row."""

    @property
    def size(self) -> float:
        """What slopes are differences of: they are computed to some units of rounding of it."""

    @property
    def constants(self) -> tuple[float, ...] | None:
        """Numbers that the compiled passes compute slopes and curvatures from; None for NumPy."""

    def slope(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f'(u)."""

    def curvature(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f''(u)."""

    def secant(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return the curvature of a parabola that touches f at u and is nowhere below it."""

    def leaves(self, u: FloatArray, lengths: FloatArray | None = None) -> BoolArray:
        """Return where f is not u^2/2."""

    def is_calibrated(self, ridge: float, eps_c: float) -> bool:
        """Whether f'' is at most ridge (exp(eps_c (1 - |f'|/L)) - 1) everywhere."""


@dataclass(frozen=True)
class _Huber(ABC):
    """A loss that is u^2/2 in a zone around 0, and bends less outside.

    A subclass gives the loss for rows of a length up to ``longest``. A longer row counts as if it,
    and its target, were shortened to ``longest``.
    """

    lipschitz: float  #: The largest slope L of a row of length 1: the longest gradient of any row.
    ridge: float  #: The ridge of the objective.
    eps_c: float  #: The epsilon that the curvature is calibrated to.
    longest: float = 1.0  #: Length up to which a row has its full weight.

    one_sided: ClassVar[bool] = False
    squares: ClassVar[bool] = True
    bend: ClassVar[float] = 1.0
    size: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        for name in ("lipschitz", "ridge", "eps_c", "longest"):
            check_real(name, getattr(self, name), above=0.0)
        least = self._least_ridge(self.eps_c) * max(1.0, self.longest) ** 2
        if self.ridge < least:
            condition = f"be at least {least:.6g} for this eps_c and rows of this length"
            raise value_error("ridge", condition, self.ridge)

    def slope(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f'(u)."""
        if lengths is None:
            return self._slope(u, 1.0)
        weights = np.minimum(1.0, self.longest / lengths)
        return weights * self._slope(weights * u, weights * lengths)

    def curvature(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f''(u)."""
        if lengths is None:
            return self._curvature(u, 1.0)
        weights = np.minimum(1.0, self.longest / lengths)
        return weights**2 * self._curvature(weights * u, weights * lengths)

    def secant(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f'(u)/u."""
        weights = self.curvature(u, lengths)
        leaves = self.leaves(u, lengths) & (u != 0.0)
        weights[leaves] = (self.slope(u, lengths) / np.where(leaves, u, 1.0))[leaves]
        return weights

    def leaves(self, u: FloatArray, lengths: FloatArray | None = None) -> BoolArray:
        """Return where f is not u^2/2."""
        if lengths is None:
            return np.asarray(np.abs(u) > self.zone)
        inside = np.abs(u) <= self._zone(lengths)
        return np.asarray(~inside | (lengths > self.longest))

    def is_calibrated(self, ridge: float, eps_c: float) -> bool:
        """Whether the loss was made for a ridge and an eps_c no larger than these."""
        return self.ridge <= ridge and self.eps_c <= eps_c

    @property
    def zone(self) -> float:
        r""":math:`\tau_0 L`, the end of the zone for rows of length 1."""
        return float(self._zone(1.0))

    @staticmethod
    @abstractmethod
    def _least_ridge(eps_c: float) -> float:
        """Return the ridge below which no zone is left for rows of length 1."""

    @abstractmethod
    def _zone(self, lengths: Any) -> Any:
        """Return the end of the zone for rows of these lengths, at most ``longest``."""

    @abstractmethod
    def _slope(self, u: FloatArray, lengths: Any) -> FloatArray:
        """Return f'(u) for rows of these lengths, at most ``longest``."""

    @abstractmethod
    def _curvature(self, u: FloatArray, lengths: Any) -> FloatArray:
        """Return f''(u) for rows of these lengths, at most ``longest``."""


@dataclass(frozen=True)
class CalibratedHuber(_Huber):
    r"""The squared loss with the largest curvature outside that privacy allows.

    Up to :math:`|u| = \tau_0 L`, :math:`\tau_0 = 1 - \log(1 + 1/\lambda)/\epsilon_c`, it is
    :math:`u^2/2`; outside, :math:`f'' = \lambda (e^{\epsilon_c (1 - |f'|/L)} - 1)` with equality,
    which gives :math:`|f'| = L (1 + \log(1 - e^{-\epsilon_c \lambda (|u| - \tau_0 L)/L} /
    (1 + \lambda))/\epsilon_c)`.

    This is for rows of length 1. A row of length :math:`\rho` up to ``longest`` has the loss for
    :math:`L/\rho` and :math:`\lambda/\rho^2`, so that L bounds the gradient of every row;
    :math:`\lambda` is the ridge.

    Paper: beyond it; docs/proofs/objective.md, Sections 3 and 7.
    """

    _least_ridge = staticmethod(least_ridge)

    @property
    def zone(self) -> float:
        r""":math:`\tau_0 L`."""
        return self.lipschitz * (1.0 - math.log1p(1.0 / self.ridge) / self.eps_c)

    @property
    def constants(self) -> tuple[float, ...]:
        """The end of the zone, L, the rate of the exponential, the ridge, L/eps_c and longest."""
        scale = self.lipschitz / self.eps_c
        return self.zone, self.lipschitz, self.ridge / scale, self.ridge, scale, self.longest

    def _zone(self, lengths: Any) -> Any:
        share = 1.0 - np.log1p(np.square(lengths) / self.ridge) / self.eps_c
        return self.lipschitz / lengths * share

    def _excess(self, u: FloatArray, lengths: Any) -> tuple[FloatArray, FloatArray]:
        """Return e = exp(-rate (|u| - zone)) / (1 + ridge), and 1 - e without cancellation."""
        ridge = self.ridge / np.square(lengths)
        rate = self.eps_c * ridge * lengths / self.lipschitz
        power = -rate * np.maximum(np.abs(u) - self._zone(lengths), 0.0)
        return np.exp(power) / (1.0 + ridge), (ridge - np.expm1(power)) / (1.0 + ridge)

    def _slope(self, u: FloatArray, lengths: Any) -> FloatArray:
        excess, rest = self._excess(u, lengths)
        share = 1.0 + np.where(excess < 0.5, np.log1p(-excess), np.log(rest)) / self.eps_c
        outside = self.lipschitz / lengths * share
        return np.where(np.abs(u) <= self._zone(lengths), u, np.copysign(outside, u))

    def _curvature(self, u: FloatArray, lengths: Any) -> FloatArray:
        excess, rest = self._excess(u, lengths)
        ridge = self.ridge / np.square(lengths)
        return np.where(np.abs(u) <= self._zone(lengths), 1.0, ridge * excess / rest)


@dataclass(frozen=True)
class LinearHuber(_Huber):
    r"""The squared loss with the largest curvature outside that persons of several rows allow.

    Up to :math:`|u| = \tau_0 L`, :math:`\tau_0 = 1 - 1/(\lambda\epsilon_c)`, it is :math:`u^2/2`;
    outside, :math:`f'' = \lambda\epsilon_c (1 - |f'|/L)` with equality, which gives
    :math:`f'' = e^{-\lambda\epsilon_c (|u| - \tau_0 L)/L}` and
    :math:`|f'| = L (1 - f''/(\lambda\epsilon_c))`.

    Rows of other lengths than 1 are as in `CalibratedHuber`. The compiled passes do not know this
    loss: rows of persons have weights, which NumPy adds up.

    Paper: beyond it; docs/proofs/people.md, Section 4.
    """

    #: Whether the curvature obeys the bound that persons of several rows need.
    linear: ClassVar[bool] = True
    constants: ClassVar[None] = None
    _least_ridge = staticmethod(least_person_ridge)

    def _zone(self, lengths: Any) -> Any:
        return self.lipschitz / lengths * (1.0 - np.square(lengths) / (self.ridge * self.eps_c))

    def _curvature(self, u: FloatArray, lengths: Any) -> FloatArray:
        rate = self.ridge * self.eps_c / (lengths * self.lipschitz)
        beyond = np.maximum(np.abs(u) - self._zone(lengths), 0.0)
        return np.asarray(np.exp(-rate * beyond))

    def _slope(self, u: FloatArray, lengths: Any) -> FloatArray:
        share = np.square(lengths) / (self.ridge * self.eps_c)
        outside = self.lipschitz / lengths * (1.0 - share * self._curvature(u, lengths))
        return np.where(np.abs(u) <= self._zone(lengths), u, np.copysign(outside, u))
