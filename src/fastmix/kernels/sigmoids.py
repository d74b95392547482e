"""Losses whose slope is a sigmoid: the logistic loss and the smoothed quantile loss."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from fastmix._types import BoolArray, FloatArray
from fastmix._validation import check_probability, check_real


@dataclass(frozen=True)
class _Calibrated(ABC):
    """What losses with the slope of a sigmoid share: L, the ridge and eps_c they are made for."""

    lipschitz: float  #: The longest gradient L of any row.
    ridge: float  #: The ridge of the objective.
    eps_c: float  #: The epsilon that the curvature is calibrated to.

    squares: ClassVar[bool] = False
    size: ClassVar[float] = 1.0
    #: The curvature obeys the linear bound, which persons of several rows need.
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("lipschitz", "ridge", "eps_c"):
            check_real(name, getattr(self, name), above=0.0)

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

    def leaves(self, u: FloatArray, lengths: FloatArray | None = None) -> BoolArray:
        """Return True everywhere."""
        return np.full(np.shape(u), True)

    def is_calibrated(self, ridge: float, eps_c: float) -> bool:
        """Whether the loss was made for a ridge and an eps_c no larger than these."""
        return self.ridge <= ridge and self.eps_c <= eps_c

    @abstractmethod
    def _parts(
        self, u: FloatArray, lengths: FloatArray | None, y: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return f'(u) and f''(u)."""

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
    :math:`\rho \le L` and :math:`\lambda \ge L^2/\epsilon_c` it is the logistic loss everywhere;
    :math:`\lambda` is the ridge.

    Paper: beyond it; docs/proofs/objective.md, Section 8.
    """

    one_sided: ClassVar[bool] = True
    bend: ClassVar[float] = 0.25

    @property
    def constants(self) -> tuple[float, ...] | None:
        """Level and width of the sigmoid, L, ridge times eps_c, and that it is of the margin."""
        return 0.0, 1.0, self.lipschitz, self.ridge * self.eps_c, 1.0

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
class UpperLogistic(Logistic):
    """The logistic loss with its largest curvature, a quarter of the weight, everywhere.

    Intervals of tables release this curvature: it does not depend on the label, and noise hides
    less of it. The compiled passes do not know it.
    """

    @property
    def constants(self) -> None:
        """None: its curvature is not that of the logistic loss."""

    def curvature(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return a quarter of the weights."""
        return self.secant(u, lengths, y)


@dataclass(frozen=True)
class SmoothedQuantile(_Calibrated):
    r"""The quantile loss, smoothed by a logistic law, with the slope limited as privacy asks for.

    The slope is :math:`w(\sigma(u/h) - (1 - q))` up to where its curvature is
    :math:`\frac{\lambda\epsilon_c}{\rho^2} (1 - |f'| \rho/L)`, and from there goes to its own end.
    The weight w is 1, or :math:`L/(\rho \max(q, 1 - q))` if that is less: a long row counts less,
    and its quantile stays the same. For rows so long that the curvature is more than that at slope
    0, the width h is larger. The limit makes one side of the law that smooths longer; u is moved by
    the mean of that law, so that the law has mean 0.

    Paper: beyond it; docs/proofs/objective.md, Section 8.
    """

    quantile: float = 0.5  #: The quantile q.
    width: float = 0.1  #: Scale h of the logistic law.

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

    def secant(
        self, u: FloatArray, lengths: FloatArray | None = None, y: FloatArray | None = None
    ) -> FloatArray:
        """Return the largest curvature for rows of these lengths."""
        weight, width = self._shape(*self._bounds(lengths))
        return np.asarray(0.25 * weight / width + np.zeros_like(u))

    def free(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the slope without its limit."""
        return np.asarray(expit(u / self.width) - (1.0 - self.quantile))

    def _shape(self, bound: Any, room: Any) -> tuple[Any, Any]:
        """Return weight and width for rows with these limits of slopes and curvature."""
        level = 1.0 - self.quantile
        weight = np.minimum(1.0, bound / max(level, 1.0 - level))
        return weight, np.maximum(self.width, weight * level * (1.0 - level) / room)

    def _parts(
        self, u: FloatArray, lengths: FloatArray | None, y: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        bound, room = self._bounds(lengths)
        (weight, width), level = self._shape(bound, room), 1.0 - self.quantile
        limits = width, weight, bound, room
        u = u + (_tail(level, *limits) - _tail(1.0 - level, *limits))
        falls = expit(u / width) < level
        sign, own = np.where(falls, -1.0, 1.0), np.where(falls, 1.0 - level, level)
        slope, curvature = _rising(sign * u, own, *limits)
        return sign * slope, curvature


def _labels(y: FloatArray | None) -> Any:
    """Return targets; none are labels of 1."""
    return 1.0 if y is None else y


def _meeting(level: Any, width: Any, weight: Any, bound: Any, room: Any) -> tuple[Any, Any]:
    """Return where a sigmoid less its level has the largest curvature allowed, and if it does.

    With s the sigmoid, the curvature is ``room`` times one minus the slope's share of ``bound``
    where a quadratic equation holds. Its smaller root counts, unless both are below the level.
    """
    c = width * (room / bound)
    share, top = c / (1.0 + c), bound / weight + level
    square = 1.0 - 4.0 * share * top / (1.0 + c)
    s = np.maximum(level, 2.0 * share * top / (1.0 + np.sqrt(square)))
    return s, (square >= 0.0) & (level < 0.5 * (1.0 + c)) & (s < 1.0)


def _tail(level: Any, width: Any, weight: Any, bound: Any, room: Any) -> Any:
    """Return how much farther the limit moves the mean of a sigmoid's law, on its rising side."""
    with np.errstate(all="ignore"):
        s, meets = _meeting(level, width, weight, bound, room)
        most = np.minimum(bound, weight * (1.0 - level))
        farther = (most - weight * (s - level)) * most / (weight * room) + width * np.log(s)
        return np.where(meets, farther, 0.0)


def _rising(
    v: FloatArray, level: Any, width: Any, weight: Any, bound: Any, room: Any
) -> tuple[FloatArray, FloatArray]:
    """Return slope and curvature of a sigmoid less its level where that is not negative.

    The slope is ``weight (sigma(v/width) - level)`` up to where its curvature is ``room`` times one
    minus its share of ``bound``. From there on the curvature is ``room`` times one minus the
    slope's share of what it goes to: ``bound``, or the end of the sigmoid if it is less.
    """
    with np.errstate(all="ignore"):
        s, meets = _meeting(level, width, weight, bound, room)
        edge = np.where(meets, width * (np.log(s) - np.log1p(-s)), np.inf)
        most = np.minimum(bound, weight * (1.0 - level))
        left = (most - weight * (s - level)) * np.exp(-room / most * (v - edge))
        beyond = v > edge
        s = expit(v / width)
        slope = np.where(beyond, most - left, weight * (s - level))
        curvature = np.where(beyond, room / most * left, weight * s * expit(-v / width) / width)
    return slope, curvature
