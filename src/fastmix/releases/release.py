"""Releases: a statistic of the rows, its sensitivity and its noise, as one value.

`Noise.release` is the only way to draw one. It checks the given values, charges the events of the
release, draws, and writes the transcript. `Release.density` is the law that an audit needs.
Statistics are functions of raw data: their values never leave a release without noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from fastmix._types import FloatArray
from fastmix._validation import check_choice
from fastmix.accounting import GaussianEvent, LaplaceEvent, PrivacyEvent, TailEvent
from fastmix.releases.checks import Check, laws, not_negative, positive

if TYPE_CHECKING:
    from fastmix.releases.noise import Noise


class Public(NamedTuple):
    """What is public about rows: their number, their columns, and the bound of their norms.

    ``constant`` is the value of the last column if that is constant, else 0; ``weighted`` tells
    whether rows have weights, and ``views`` counts views of the same rows, such as one with a
    target for each class. ``most`` bounds the number of records, and ``additions`` that of the
    additions that a record's term of a sum goes through; both are for rounding.
    """

    n: int
    d: int
    bound: float
    constant: float
    weighted: bool = False
    views: int = 1
    most: int = 0
    additions: int = 0

    @classmethod
    def of(cls, rows: Any) -> Public:
        """Return what is public about rows, or about a tuple of views of the same rows."""
        views = rows if isinstance(rows, tuple) else (rows,)
        first = views[0]
        weighted = getattr(first, "persons", None) is not None
        shape = first.n, first.d, first.bound, first.constant
        return cls(*shape, weighted, len(views), first.most, first.additions)


def as_drawn(value: Any, public: Public, **given: Any) -> Any:
    """Return a copy of a noisy value: what callers do to it does not change the transcript."""
    return value.copy() if isinstance(value, np.ndarray) else value


def number(value: FloatArray, public: Public, **given: Any) -> float:
    """Return the only entry of a noisy value."""
    return float(value[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(ABC):
    """What is released, in name and words, and the checks of the values that it is given.

    All given values must be public or already released. ``finish`` turns a noisy value into what
    the caller gets, from public values alone: ``finish(value, public, **given)``.
    """

    name: str
    statement: str  #: What the release says about the data, in one line.
    proof: str  #: Where its sensitivity or its theorem is proved.
    given: Mapping[str, Check] = field(default_factory=dict)
    finish: Callable[..., Any] = as_drawn

    def checked(self, public: Public, given: dict[str, Any]) -> dict[str, Any]:
        """Return the given values, each checked, or raise an error that names the first bad one."""
        checks = self._checks()
        if given.keys() != checks.keys():
            wanted, found = ", ".join(sorted(checks)), ", ".join(sorted(given))
            raise TypeError(f"the release {self.name!r} must be given {wanted}; got {found}.")
        return {name: check(name, given[name], public) for name, check in checks.items()}

    def _checks(self) -> dict[str, Check]:
        return dict(self.given)

    @abstractmethod
    def charged(self, given: dict[str, Any]) -> tuple[PrivacyEvent, ...]:
        """Return the events of one release with these values."""

    @abstractmethod
    def draw(self, noise: Noise, rows: Any, public: Public, given: dict[str, Any]) -> Any:
        """Return the noisy value of rows, which are sensitive."""

    @abstractmethod
    def density(self, value: Any, rows: Any, public: Public, given: dict[str, Any]) -> float:
        """Return the log-density of a noisy value, up to a term that is the same for all data."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Gaussian(Release):
    """A statistic with Gaussian noise of ``sigma`` times its l2 sensitivity.

    ``statistic(rows, **given)`` is an array, and ``sensitivity(public, **given)`` bounds what one
    record can change in it. A ``symmetric`` matrix is released by its diagonal and the entries
    above it times sqrt(2), a vector of the same norm: noise has half the variance off the diagonal.
    """

    statistic: Callable[..., Any]
    sensitivity: Callable[..., float]
    symmetric: bool = False

    def event(self, sigma: float, count: int = 1) -> GaussianEvent:
        """Return the event of ``count`` releases at noise ``sigma``, before any data is seen."""
        return GaussianEvent(sigma, 1.0, count)

    def events(self, sigmas: Iterable[float]) -> list[PrivacyEvent]:
        """Return the events of several releases, one for each level of noise."""
        return [self.event(sigma, count) for sigma, count in Counter(sigmas).items()]

    def _checks(self) -> dict[str, Check]:
        return {"sigma": positive, **self.given}

    def charged(self, given: dict[str, Any]) -> tuple[PrivacyEvent, ...]:
        return (self.event(given["sigma"]),)

    def draw(self, noise: Noise, rows: Any, public: Public, given: dict[str, Any]) -> Any:
        rest = {name: value for name, value in given.items() if name != "sigma"}
        value_hat = self.statistic(rows, **rest)
        return self.noisy(value_hat, noise, public, given["sigma"], rest)

    def density(self, value: Any, rows: Any, public: Public, given: dict[str, Any]) -> float:
        rest = {name: each for name, each in given.items() if name != "sigma"}
        value_hat = self.statistic(rows, **rest)
        return self.log_density(value, value_hat, public, given["sigma"], rest)

    def noisy(
        self, value_hat: Any, noise: Noise, public: Public, sigma: float, rest: dict[str, Any]
    ) -> FloatArray:
        """Add noise to a statistic, which is sensitive."""
        value_hat = folded(value_hat) if self.symmetric else value_hat
        noisy = noise._gaussian(value_hat, self.sensitivity(public, **rest), sigma)
        return unfolded(noisy) if self.symmetric else noisy

    def log_density(
        self, value: Any, value_hat: Any, public: Public, sigma: float, rest: dict[str, Any]
    ) -> float:
        """Return the log-density of a noisy value around a statistic."""
        difference = (value - value_hat) / (sigma * self.sensitivity(public, **rest))
        return -0.5 * float(np.sum((folded(difference) if self.symmetric else difference) ** 2))


def folded(matrix: FloatArray) -> FloatArray:
    """Return the diagonal, joined by the entries above it times sqrt(2)."""
    above = np.triu_indices(len(matrix), 1)
    return np.concatenate((np.diag(matrix), math.sqrt(2.0) * matrix[above]))


def unfolded(entries: FloatArray) -> FloatArray:
    """Return the symmetric matrix that `folded` made a vector of."""
    size = (math.isqrt(8 * len(entries) + 1) - 1) // 2
    above = np.triu_indices(size, 1)
    matrix = np.diag(entries[:size])
    matrix[above] = matrix.T[above] = entries[size:] / math.sqrt(2.0)
    return matrix


@dataclass(frozen=True, eq=False, kw_only=True)
class Joint(Release):
    """Several Gaussian releases whose statistics one pass over the rows computes together.

    ``statistic(rows, **given)`` returns the statistics of all ``parts``, whose sensitivities and
    noise are those of the parts. ``sigma`` is one level for all, or one for each.
    """

    statistic: Callable[..., Any]
    parts: tuple[Gaussian, ...]

    def event(self, sigma: float) -> GaussianEvent:
        """Return the event of a release with the same ``sigma`` for all parts."""
        return GaussianEvent(sigma, 1.0, len(self.parts))

    def _checks(self) -> dict[str, Check]:
        return {"sigma": self._levels, **self.given}

    def _levels(self, name: str, value: Any, public: Public) -> tuple[float, ...]:
        levels = value if isinstance(value, tuple) else (value,) * len(self.parts)
        return tuple(positive(name, each, public) for each in levels)

    def charged(self, given: dict[str, Any]) -> tuple[PrivacyEvent, ...]:
        pairs = zip(self.parts, given["sigma"], strict=True)
        return tuple(part.event(sigma) for part, sigma in pairs)

    def _each(self, rows: Any, given: dict[str, Any]) -> tuple[Iterable[Any], dict[str, Any]]:
        rest = {name: value for name, value in given.items() if name != "sigma"}
        values_hat = self.statistic(rows, **rest)
        return zip(self.parts, given["sigma"], values_hat, strict=True), rest

    def draw(self, noise: Noise, rows: Any, public: Public, given: dict[str, Any]) -> Any:
        each, rest = self._each(rows, given)
        return tuple(part.noisy(hat, noise, public, sigma, rest) for part, sigma, hat in each)

    def density(self, value: Any, rows: Any, public: Public, given: dict[str, Any]) -> float:
        each, rest = self._each(rows, given)
        return math.fsum(
            part.log_density(one, hat, public, sigma, rest)
            for one, (part, sigma, hat) in zip(value, each, strict=True)
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Bound(Release):
    r"""A private bound on a number: :math:`\max\{0, \hat v \pm \omega\Delta (\tau - z)\}`.

    ``sigma`` is omega, the noise in units of the sensitivity; the shift ``tau`` sets how rarely
    the bound fails, which its event carries as a tail. The ``law`` of z is "laplace" or "gaussian".
    """

    statistic: Callable[..., float]
    sensitivity: Callable[..., float]
    above: bool

    def _checks(self) -> dict[str, Check]:
        return {"sigma": positive, "tau": not_negative, "law": laws, **self.given}

    def charged(self, given: dict[str, Any]) -> tuple[PrivacyEvent, ...]:
        levels = {"tau": given["tau"], "omega": given["sigma"]}
        return tuple(spectral_events(given["law"], **levels, count=1))

    def _values(
        self, rows: Any, public: Public, given: dict[str, Any]
    ) -> tuple[float, float, float, str]:
        """Return the statistic, its sensitivity, the shift and the law."""
        rest = {name: each for name, each in given.items() if name not in ("sigma", "tau", "law")}
        value_hat, sensitivity = self.statistic(rows, **rest), self.sensitivity(public, **rest)
        return value_hat, sensitivity, given["tau"], given["law"]

    def draw(self, noise: Noise, rows: Any, public: Public, given: dict[str, Any]) -> float:
        value_hat, sensitivity, tau, law = self._values(rows, public, given)
        return noise._bound(value_hat, self.above, sensitivity, given["sigma"], tau, law)

    def density(self, value: float, rows: Any, public: Public, given: dict[str, Any]) -> float:
        value_hat, sensitivity, tau, law = self._values(rows, public, given)
        scale = given["sigma"] * sensitivity
        location = value_hat + (scale * tau if self.above else -scale * tau)
        return one_sided(value, location, scale, law)


@dataclass(frozen=True, eq=False, kw_only=True)
class Laplace(Bound):
    """A number with Laplace noise of ``sigma`` times its sensitivity, at least 0."""

    above: bool = True

    def event(self, sigma: float) -> LaplaceEvent:
        """Return the event of a release at noise ``sigma``, before any data is seen."""
        return LaplaceEvent(sigma, 1.0)

    def _checks(self) -> dict[str, Check]:
        return {"sigma": positive, **self.given}

    def charged(self, given: dict[str, Any]) -> tuple[PrivacyEvent, ...]:
        return (self.event(given["sigma"]),)

    def _values(
        self, rows: Any, public: Public, given: dict[str, Any]
    ) -> tuple[float, float, float, str]:
        return super()._values(rows, public, {**given, "tau": 0.0, "law": "laplace"})


def one_sided(value: float, location: float, scale: float, law: str) -> float:
    """Return the log-density of ``max(0, location + scale z)`` (Algorithm 1, lines 2 and 3)."""
    z, at_zero = (value - location) / scale, -location / scale
    if law == "gaussian":
        normal = -0.5 * z**2 - 0.5 * math.log(2.0 * math.pi)
        return float(normal - math.log(scale) if value > 0.0 else log_ndtr(at_zero))
    # In logarithms throughout: a release of a broken mechanism can be far out.
    if value > 0.0:
        return -abs(z) - math.log(2.0 * scale)
    return at_zero - math.log(2.0) if at_zero < 0.0 else math.log1p(-0.5 * math.exp(-at_zero))


def spectral_events(law: str, *, tau: float, omega: float, count: int) -> list[PrivacyEvent]:
    """Return the events of ``count`` shifted releases at noise ``omega`` times sensitivity.

    Paper: Appendix C.4, the tails of z and the cost 1/omega of each release.
    """
    if check_choice("law", law, ("laplace", "gaussian")) == "laplace":
        tail = 0.5 * math.exp(-tau) if tau >= 0.0 else 1.0 - 0.5 * math.exp(tau)
        return [LaplaceEvent(scale=omega, count=count), TailEvent(count * tail)]
    return [GaussianEvent(sigma=omega, count=count), TailEvent(count * float(ndtr(-tau)))]
