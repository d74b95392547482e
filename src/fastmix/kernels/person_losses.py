"""A loss for persons with several rows: its curvature obeys a linear bound."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fastmix._types import BoolArray, FloatArray
from fastmix._validation import check_real, value_error
from fastmix.kernels.losses import secant


def least_person_ridge(eps_c: float) -> float:
    r"""Return :math:`1/\epsilon_c`, below which no quadratic zone is left."""
    return 1.0 / eps_c


@dataclass(frozen=True)
class LinearHuber:
    r"""The squared loss with the largest curvature outside that persons of several rows allow.

    Up to :math:`|u| = \tau_0 L`, :math:`\tau_0 = 1 - 1/(\lambda\epsilon_c)`, it is :math:`u^2/2`;
    outside, :math:`f'' = \lambda\epsilon_c (1 - |f'|/L)` with equality, which gives
    :math:`f'' = e^{-\lambda\epsilon_c (|u| - \tau_0 L)/L}` and
    :math:`|f'| = L (1 - f''/(\lambda\epsilon_c))`.

    This is for rows of length 1. Other rows are as in `CalibratedHuber`: a row of length
    :math:`\rho` has the loss for :math:`L/\rho` and :math:`\lambda/\rho^2`, one that is longer than
    ``longest`` counts as if it, and its target, were shortened.

    Parameters
    ----------
    lipschitz : float
        The largest slope L of a row of length 1: the longest gradient of any row.
    ridge : float
        The ridge :math:`\lambda` of the objective.
    eps_c : float
        The epsilon that the curvature is calibrated to.
    longest : float, default=1.0
        Length up to which a row has its full weight.

    Notes
    -----
    Paper: beyond it; docs/proofs/people.md, Section 4.
    """

    lipschitz: float
    ridge: float
    eps_c: float
    longest: float = 1.0

    one_sided: ClassVar[bool] = False
    squares: ClassVar[bool] = True
    bend: ClassVar[float] = 1.0
    size: ClassVar[float] = 0.0
    #: Whether the curvature obeys the bound that persons of several rows need.
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("lipschitz", "ridge", "eps_c", "longest"):
            check_real(name, getattr(self, name), above=0.0)
        least = least_person_ridge(self.eps_c) * max(1.0, self.longest) ** 2
        if self.ridge < least:
            condition = f"be at least {least:.6g} for this eps_c and rows of this length"
            raise value_error("ridge", condition, self.ridge)

    @property
    def zone(self) -> float:
        r""":math:`\tau_0 L`."""
        return float(self._zone(1.0))

    @property
    def constants(self) -> tuple[float, ...]:
        """Refuse: the compiled passes do not know this loss."""
        raise value_error("loss", "be one that the compiled passes know", type(self).__name__)

    def slope(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f'(u)."""
        weights, lengths = self._shortened(u, lengths)
        return np.asarray(weights * self._slope(weights * u, lengths))

    def curvature(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f''(u)."""
        weights, lengths = self._shortened(u, lengths)
        return np.asarray(weights**2 * self._fall(weights * u, lengths))

    def secant(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f'(u)/u."""
        return secant(self, u, lengths)

    def leaves(self, u: FloatArray, lengths: FloatArray | None = None) -> BoolArray:
        """Return where f is not u^2/2."""
        weights, lengths = self._shortened(u, lengths)
        return np.asarray((np.abs(u) > self._zone(lengths)) | (weights < 1.0))

    def is_calibrated(self, ridge: float, eps_c: float) -> bool:
        """Whether the loss was made for a ridge and an eps_c no larger than these."""
        return self.ridge <= ridge and self.eps_c <= eps_c

    def _shortened(self, u: FloatArray, lengths: FloatArray | None) -> tuple[Any, Any]:
        """Return the weights that shorten rows to ``longest``, and their lengths then."""
        if lengths is None:
            return np.ones_like(u), np.ones_like(u)
        weights = np.minimum(1.0, self.longest / lengths)
        return weights, weights * lengths

    def _zone(self, lengths: Any) -> Any:
        """Return the end of the zone for rows of these lengths, at most ``longest``."""
        return self.lipschitz / lengths * (1.0 - np.square(lengths) / (self.ridge * self.eps_c))

    def _fall(self, u: FloatArray, lengths: Any) -> FloatArray:
        """Return the curvature: 1 in the zone, falling exponentially outside."""
        rate = self.ridge * self.eps_c / (lengths * self.lipschitz)
        beyond = np.maximum(np.abs(u) - self._zone(lengths), 0.0)
        return np.asarray(np.exp(-rate * beyond))

    def _slope(self, u: FloatArray, lengths: Any) -> FloatArray:
        share = np.square(lengths) / (self.ridge * self.eps_c)
        outside = self.lipschitz / lengths * (1.0 - share * self._fall(u, lengths))
        return np.where(np.abs(u) <= self._zone(lengths), u, np.copysign(outside, u))
