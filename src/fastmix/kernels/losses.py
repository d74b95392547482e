"""Convex losses of a residual with bounded slope: their slopes and curvatures.

A loss is a frozen value.  The compiled passes know it by its ``constants``; the functions here are
the same in NumPy.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error


def least_ridge(eps_c: float) -> float:
    r"""Return :math:`1/(e^{\epsilon_c} - 1)`, below which no quadratic zone is left."""
    return 1.0 / math.expm1(min(eps_c, 700.0))


class Loss(Protocol):
    """A convex loss f of a residual u; f' is bounded by ``lipschitz`` and f'' by 1."""

    #: Whether f' has one sign for each record.
    one_sided: ClassVar[bool]

    @property
    def lipschitz(self) -> float:
        """The largest slope L."""

    @property
    def zone(self) -> float:
        """The loss is u^2/2 up to here, exactly."""

    @property
    def constants(self) -> tuple[float, ...]:
        """Numbers that the compiled passes compute slopes and curvatures from."""

    def slope(self, u: FloatArray) -> FloatArray:
        """Return f'(u)."""

    def curvature(self, u: FloatArray) -> FloatArray:
        """Return f''(u)."""

    def is_calibrated(self, ridge: float, eps_c: float) -> bool:
        """Whether f'' is at most ridge (exp(eps_c (1 - |f'|/L)) - 1) everywhere."""


@dataclass(frozen=True)
class CalibratedHuber:
    r"""The squared loss with the largest curvature outside that privacy allows.

    Up to :math:`|u| = \tau_0 L`, :math:`\tau_0 = 1 - \log(1 + 1/\lambda)/\epsilon_c`, it is
    :math:`u^2/2`; outside, :math:`f'' = \lambda (e^{\epsilon_c (1 - |f'|/L)} - 1)` with equality,
    which gives :math:`|f'| = L (1 + \log(1 - e^{-\epsilon_c \lambda (|u| - \tau_0 L)/L} /
    (1 + \lambda))/\epsilon_c)`.

    Parameters
    ----------
    lipschitz : float
        The largest slope L.
    ridge : float
        The ridge :math:`\lambda` of the objective.
    eps_c : float
        The epsilon that the curvature is calibrated to.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Section 3.
    """

    lipschitz: float
    ridge: float
    eps_c: float

    one_sided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("lipschitz", "ridge", "eps_c"):
            check_real(name, getattr(self, name), above=0.0)
        if self.zone < 0.0:
            least = least_ridge(self.eps_c)
            raise value_error("ridge", f"be at least {least:.6g} for this eps_c", self.ridge)

    @property
    def zone(self) -> float:
        r""":math:`\tau_0 L`."""
        return self.lipschitz * (1.0 - math.log1p(1.0 / self.ridge) / self.eps_c)

    @property
    def constants(self) -> tuple[float, ...]:
        """The end of the zone, L, the rate of the exponential, the ridge, and L/eps_c."""
        scale = self.lipschitz / self.eps_c
        return self.zone, self.lipschitz, self.ridge / scale, self.ridge, scale

    def _excess(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return e = exp(-rate (|u| - zone)) / (1 + ridge), and 1 - e without cancellation."""
        zone, _, rate, ridge, _ = self.constants
        power = -rate * np.maximum(np.abs(u) - zone, 0.0)
        return np.exp(power) / (1.0 + ridge), (ridge - np.expm1(power)) / (1.0 + ridge)

    def slope(self, u: FloatArray) -> FloatArray:
        """Return f'(u)."""
        zone, most, _, _, scale = self.constants
        excess, rest = self._excess(u)
        outside = most + scale * np.where(excess < 0.5, np.log1p(-excess), np.log(rest))
        return np.where(np.abs(u) <= zone, u, np.copysign(outside, u))

    def curvature(self, u: FloatArray) -> FloatArray:
        """Return f''(u)."""
        excess, rest = self._excess(u)
        return np.where(np.abs(u) <= self.zone, 1.0, self.ridge * excess / rest)

    def is_calibrated(self, ridge: float, eps_c: float) -> bool:
        """Whether the loss was made for a ridge and an eps_c no larger than these."""
        return self.ridge <= ridge and self.eps_c <= eps_c
