"""Convex losses with bounded slope: their slopes and curvatures.

A loss is a frozen value, the same for all rows, or adapted to the length of each.  It is a function
of the residual ``u = y - x' theta``, or of ``x' theta = y - u`` and the target.  The compiled
passes know it by its ``constants``; the functions here are the same in NumPy.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import expit

from fastmix._types import BoolArray, FloatArray
from fastmix._validation import check_probability, check_real, value_error


def least_ridge(eps_c: float) -> float:
    r"""Return :math:`1/(e^{\epsilon_c} - 1)`, below which no quadratic zone is left."""
    return 1.0 / math.expm1(min(eps_c, 700.0))


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
    def constants(self) -> tuple[float, ...]:
        """Numbers that the compiled passes compute slopes and curvatures from."""

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
class CalibratedHuber:
    r"""The squared loss with the largest curvature outside that privacy allows.

    Up to :math:`|u| = \tau_0 L`, :math:`\tau_0 = 1 - \log(1 + 1/\lambda)/\epsilon_c`, it is
    :math:`u^2/2`; outside, :math:`f'' = \lambda (e^{\epsilon_c (1 - |f'|/L)} - 1)` with equality,
    which gives :math:`|f'| = L (1 + \log(1 - e^{-\epsilon_c \lambda (|u| - \tau_0 L)/L} /
    (1 + \lambda))/\epsilon_c)`.

    This is for rows of length 1. A row of length :math:`\rho` up to ``longest`` has the loss for
    :math:`L/\rho` and :math:`\lambda/\rho^2`, so that L bounds the gradient of every row. A longer
    row counts as if it, and its target, were shortened to ``longest``.

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
    Paper: beyond it; docs/proofs/objective.md, Sections 3 and 7.
    """

    lipschitz: float
    ridge: float
    eps_c: float
    longest: float = 1.0

    one_sided: ClassVar[bool] = False
    squares: ClassVar[bool] = True

    bend: ClassVar[float] = 1.0
    size: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        for name in ("lipschitz", "ridge", "eps_c", "longest"):
            check_real(name, getattr(self, name), above=0.0)
        least = least_ridge(self.eps_c) * max(1.0, self.longest) ** 2
        if self.ridge < least:
            condition = f"be at least {least:.6g} for this eps_c and rows of this length"
            raise value_error("ridge", condition, self.ridge)

    @property
    def zone(self) -> float:
        r""":math:`\tau_0 L`."""
        return self.lipschitz * (1.0 - math.log1p(1.0 / self.ridge) / self.eps_c)

    @property
    def constants(self) -> tuple[float, ...]:
        """The end of the zone, L, the rate of the exponential, the ridge, L/eps_c and longest."""
        scale = self.lipschitz / self.eps_c
        return self.zone, self.lipschitz, self.ridge / scale, self.ridge, scale, self.longest

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
        return secant(self, u, lengths)

    def leaves(self, u: FloatArray, lengths: FloatArray | None = None) -> BoolArray:
        """Return where f is not u^2/2."""
        if lengths is None:
            return np.asarray(np.abs(u) > self.zone)
        inside = np.abs(u) <= self._zone(lengths)
        return np.asarray(~inside | (lengths > self.longest))

    def is_calibrated(self, ridge: float, eps_c: float) -> bool:
        """Whether the loss was made for a ridge and an eps_c no larger than these."""
        return self.ridge <= ridge and self.eps_c <= eps_c

    def _zone(self, lengths: FloatArray | float) -> Any:
        """Return the end of the zone for rows of these lengths, at most ``longest``."""
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


def secant(loss: Loss, u: FloatArray, lengths: FloatArray | None) -> FloatArray:
    """Return f'(u)/u for a loss that is u^2/2 inside."""
    weights = loss.curvature(u, lengths)
    leaves = loss.leaves(u, lengths) & (u != 0.0)
    weights[leaves] = (loss.slope(u, lengths) / np.where(leaves, u, 1.0))[leaves]
    return weights


@dataclass(frozen=True)
class _Calibrated:
    """What losses with the slope of a sigmoid share: L, the ridge and eps_c they are made for."""

    lipschitz: float
    ridge: float
    eps_c: float

    squares: ClassVar[bool] = False
    size: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        for name in ("lipschitz", "ridge", "eps_c"):
            check_real(name, getattr(self, name), above=0.0)

    def leaves(self, u: FloatArray, lengths: FloatArray | None = None) -> BoolArray:
        """Return True everywhere."""
        return np.full(np.shape(u), True)

    def is_calibrated(self, ridge: float, eps_c: float) -> bool:
        """Whether the loss was made for a ridge and an eps_c no larger than these."""
        return self.ridge <= ridge and self.eps_c <= eps_c

    def _bounds(self, lengths: FloatArray | None) -> tuple[Any, Any]:
        """Return the largest slope of rows, and the curvature that is allowed at slope 0."""
        rho = 1.0 if lengths is None else lengths
        return self.lipschitz / rho, self.ridge * self.eps_c / np.square(rho)


@dataclass(frozen=True)
class Logistic(_Calibrated):
    r"""The logistic loss of the margin, with the slope limited as privacy asks for.

    A target is :math:`\pm w`: the sign is the label, :math:`0 \le w \le 1` the weight of the row.
    The loss is :math:`w \log(1 + e^{v})`, :math:`v = \mp x^\top\theta`, up to where its curvature
    is :math:`\frac{\lambda\epsilon_c}{\rho^2} (1 - |f'| \rho/L)` for a row of length
    :math:`\rho`; from there on the slope goes to the smaller of w and :math:`L/\rho`. With
    :math:`\rho \le L` and :math:`\lambda \ge L^2/\epsilon_c` it is the logistic loss everywhere.

    Parameters
    ----------
    lipschitz : float
        The longest gradient L of any row.
    ridge : float
        The ridge :math:`\lambda` of the objective.
    eps_c : float
        The epsilon that the curvature is calibrated to.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Section 8.
    """

    one_sided: ClassVar[bool] = True
    bend: ClassVar[float] = 0.25

    @property
    def constants(self) -> tuple[float, ...]:
        """Level and width of the sigmoid, L, ridge times eps_c, and that it is of the margin."""
        return 0.0, 1.0, self.lipschitz, self.ridge * self.eps_c, 1.0

    def slope(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f'(u)."""
        return self._parts(u, lengths, y)[0]

    def curvature(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f''(u)."""
        return self._parts(u, lengths, y)[1]

    def secant(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return the largest curvature."""
        return np.asarray(0.25 * np.abs(_labels(y)) + np.zeros_like(u))

    @staticmethod
    def free(u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the slope without its limit."""
        sign = np.copysign(1.0, y)
        return np.asarray(y * expit(sign * (u - y)))

    def _parts(
        self, u: FloatArray, lengths: FloatArray | None, y: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        bound, room = self._bounds(lengths)
        labels = _labels(y)
        sign = np.copysign(1.0, labels)
        slope, curvature = _rising(sign * (u - labels), 0.0, 1.0, np.abs(labels), bound, room)
        return sign * slope, curvature


@dataclass(frozen=True)
class SmoothedQuantile(_Calibrated):
    r"""The quantile loss, smoothed by a logistic law, with the slope limited as privacy asks for.

    The slope is :math:`\sigma(u/h) - (1 - q)` up to where its curvature is
    :math:`\frac{\lambda\epsilon_c}{\rho^2} (1 - |f'| \rho/L)`, and from there goes to its own end
    or to :math:`L/\rho`, if that is less. For rows so long that the curvature is more than that at
    slope 0, the width h is larger.

    Parameters
    ----------
    lipschitz, ridge, eps_c : float
        As for `Logistic`.
    quantile : float, default=0.5
        The quantile q.
    width : float, default=0.1
        Scale h of the logistic law.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Section 8.
    """

    quantile: float = 0.5
    width: float = 0.1

    one_sided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_probability("quantile", self.quantile)
        check_real("width", self.width, above=0.0)

    @property
    def bend(self) -> float:
        """The largest curvature of any row."""
        return 0.25 / self.width

    @property
    def constants(self) -> tuple[float, ...]:
        """Level and width of the sigmoid, L, ridge times eps_c, and that it is of the residual."""
        return 1.0 - self.quantile, self.width, self.lipschitz, self.ridge * self.eps_c, 0.0

    def slope(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f'(u)."""
        return self._parts(u, lengths)[0]

    def curvature(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return f''(u)."""
        return self._parts(u, lengths)[1]

    def secant(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return the largest curvature for rows of these lengths."""
        return np.asarray(0.25 / self._width(self._bounds(lengths)[1]) + np.zeros_like(u))

    def free(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the slope without its limit."""
        return np.asarray(expit(u / self.width) - (1.0 - self.quantile))

    def _width(self, room: Any) -> Any:
        """Return the width for rows with this curvature allowed at slope 0."""
        level = 1.0 - self.quantile
        return np.maximum(self.width, level * (1.0 - level) / room)

    def _parts(self, u: FloatArray, lengths: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        bound, room = self._bounds(lengths)
        width, level = self._width(room), 1.0 - self.quantile
        falls = expit(u / width) < level
        sign, own = np.where(falls, -1.0, 1.0), np.where(falls, 1.0 - level, level)
        slope, curvature = _rising(sign * u, own, width, 1.0, bound, room)
        return sign * slope, curvature


def _labels(y: FloatArray | None) -> Any:
    """Return targets; none are labels of 1."""
    return 1.0 if y is None else y


def _rising(
    v: FloatArray, level: Any, width: Any, weight: Any, bound: Any, room: Any
) -> tuple[FloatArray, FloatArray]:
    """Return slope and curvature of a sigmoid less its level where that is not negative.

    The slope is ``weight (sigma(v/width) - level)`` up to where its curvature is ``room`` times one
    minus its share of ``bound``: with s the sigmoid that is a quadratic equation, whose smaller
    root counts unless both are below the level. From there on the curvature is ``room`` times one
    minus the slope's share of what it goes to: ``bound``, or the end of the sigmoid if it is less.
    """
    with np.errstate(all="ignore"):
        rate = room / bound
        c = width * rate
        share, top = c / (1.0 + c), bound / weight + level
        square = 1.0 - 4.0 * share * top / (1.0 + c)
        s = np.maximum(level, 2.0 * share * top / (1.0 + np.sqrt(square)))
        meets = (square >= 0.0) & (level < 0.5 * (1.0 + c)) & (s < 1.0)
        edge = np.where(meets, width * (np.log(s) - np.log1p(-s)), np.inf)
        most = np.minimum(bound, weight * (1.0 - level))
        left = (most - weight * (s - level)) * np.exp(-room / most * (v - edge))
        beyond = v > edge
        s = expit(v / width)
        slope = np.where(beyond, most - left, weight * (s - level))
        curvature = np.where(beyond, room / most * left, weight * s * expit(-v / width) / width)
    return slope, curvature
