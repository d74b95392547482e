"""The exact account of a Gaussian sketch with Gaussian releases, where the worst pair is known.

K rows of a dense Gaussian sketch are dominated by one pair, N(0, 1)^K against N(0, 1 - 1/gamma)^K,
whose privacy loss is a shifted and scaled chi-square; Gaussian releases add a normal loss. Delta is
then an integral in one dimension, and in two when one of several options is chosen from a Gaussian
release (docs/proofs/exact_account.md). The Rényi conversion is 5 to 15% above it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import gammainccinv, gammaincinv, log_ndtr, ndtr, ndtri

from fastmix.accounting.events import ChoiceEvent, GaussianEvent, PrivacyEvent, SketchEvent

__all__ = ["Mixture", "exact_delta", "exact_epsilon", "mixture"]

FloatArray = npt.NDArray[np.float64]

#: Least nodes of the trapezoidal rule for the chi-square loss, most of them, and for the normal.
_LEAST_NODES, _MOST_NODES, _NORMAL_NODES = 160, 2000, 100
#: Relative error that is granted to the quadrature and added to delta.
_ERROR = 5e-4


@dataclass(frozen=True)
class Option:
    """A Gaussian sketch of ``rows`` rows at level ``gamma`` (0 rows: none) with Gaussian releases.

    ``mu`` is the ratio of sensitivity to noise of all the Gaussian releases together.
    """

    gamma: float
    rows: int
    mu: float

    @property
    def n_nodes(self) -> int:
        """Nodes that resolve the chi-square loss to a fraction of the normal one's width."""
        spread = math.sqrt(self.rows / 2.0) / self.gamma
        return max(_LEAST_NODES, math.ceil(40.0 * spread / self.mu)) if self.mu else _MOST_NODES + 1


@dataclass(frozen=True)
class Mixture:
    """A Gaussian release with ratio ``mu``, from which one of the options is chosen."""

    mu: float
    options: tuple[Option, ...]


def mixture(events: Sequence[PrivacyEvent]) -> Mixture | None:
    """Return the events as a `Mixture`, or None where no exact account is known."""
    choices = [event for event in events if isinstance(event, ChoiceEvent)]
    rest = [event for event in events if not isinstance(event, ChoiceEvent)]
    option = _option(rest)
    if option is None or len(choices) > 1 or (choices and option.rows):
        return None
    if not choices:
        return Mixture(0.0, (option,)) if option.rows else None
    options = [_option(tuple(each)) for each in choices[0].options]
    known = tuple(each for each in options if each is not None)
    return Mixture(option.mu, known) if len(known) == len(options) else None


def _option(events: Sequence[PrivacyEvent]) -> Option | None:
    """Return sketches of one level and Gaussian releases as an `Option`, or None."""
    sketches = [e for e in events if isinstance(e, SketchEvent) and e.bound == "gauss_mix"]
    gaussians = [e for e in events if isinstance(e, GaussianEvent)]
    others = len(events) - len(sketches) - len(gaussians)
    if others != sum(e.pure_epsilon == 0.0 for e in events) or len({e.gamma for e in sketches}) > 1:
        return None
    option = Option(
        gamma=sketches[0].gamma if sketches else math.inf,
        rows=sum(event.rows for event in sketches),
        mu=math.sqrt(math.fsum(event.mu_squared for event in gaussians)),
    )
    return option if not option.rows or option.n_nodes <= _MOST_NODES else None


@lru_cache(maxsize=4096)
def exact_delta(mixture: Mixture, epsilon: float) -> float:
    r"""Return the exact delta of a mixture at an epsilon, for both directions.

    Parameters
    ----------
    mixture : Mixture
        The releases.
    epsilon : float
        Target epsilon.

    Returns
    -------
    float
        :math:`\mathrm{E}_z \max_j \mathrm{E}_x\, \delta_{\mu_j}(\epsilon - \mu^2/2 - \mu z -
        L_j(x))` with z standard normal, x chi-square and :math:`\delta_\mu` the profile of the
        Gaussian mechanism; the larger of the two directions.

    Notes
    -----
    Paper: beyond it; Proposition 2 bounds the same pair through RDP.
    Deviation: the error of the quadrature is added, and the mass that it leaves out.
    Sensitive inputs: none.
    """
    return max(_delta(mixture, epsilon, sign) for sign in (1.0, -1.0))


@lru_cache(maxsize=1024)
def exact_epsilon(mixture: Mixture, delta: float, largest: float) -> float:
    """Return the least epsilon at most ``largest`` with `exact_delta` at most ``delta``."""
    if delta <= 0.0 or not exact_delta(mixture, largest) <= delta:
        return math.inf
    if exact_delta(mixture, 0.0) <= delta:
        return 0.0

    def gap(epsilon: float) -> float:
        return math.log(max(exact_delta(mixture, epsilon), 1e-300) / delta)

    root = float(brentq(gap, 0.0, largest, xtol=1e-14 * largest, rtol=1e-12))
    for slack in (0.0, 1e-11, 1e-9, 1e-6):
        if exact_delta(mixture, root * (1.0 + slack)) <= delta:
            return root * (1.0 + slack)
    return math.inf


def _delta(mixture: Mixture, epsilon: float, sign: float) -> float:
    z, weights, outside = _normal_rule(_NORMAL_NODES if mixture.mu else 1)
    left = epsilon - mixture.mu**2 / 2.0 - mixture.mu * z
    profiles = [_option_delta(option, left, sign) for option in mixture.options]
    return min(1.0, float(weights @ np.max(profiles, axis=0)) * (1.0 + _ERROR) + outside)


def _option_delta(option: Option, epsilon: FloatArray, sign: float) -> FloatArray:
    r"""Return :math:`\mathrm{E}_x\, \delta_\mu(\epsilon - L(x))` for each epsilon.

    The loss of a row is :math:`\pm\tfrac12\log(1-s)` and :math:`\pm s x^2/2` with s = 1/gamma, the
    second divided by 1 - s where the row of variance 1 is the numerator.
    """
    if option.rows == 0:
        return _gaussian_profile(option.mu, epsilon)
    s = 1.0 / option.gamma
    u, weights, outside = _normal_rule(option.n_nodes)
    half = option.rows / 2.0
    chi_square = 2.0 * np.where(u < 0.0, gammaincinv(half, ndtr(u)), gammainccinv(half, ndtr(-u)))
    quadratic = s / (2.0 * (1.0 - s)) if sign > 0.0 else s / 2.0
    loss = sign * (half * math.log1p(-s) + quadratic * chi_square)
    return _gaussian_profile(option.mu, epsilon[:, None] - loss) @ weights + outside


def _gaussian_profile(mu: float, epsilon: FloatArray) -> FloatArray:
    r"""Return :math:`\Phi(\mu/2 - \epsilon/\mu) - e^\epsilon \Phi(-\mu/2 - \epsilon/\mu)`."""
    if mu == 0.0:
        return np.asarray(np.maximum(0.0, -np.expm1(np.minimum(epsilon, 0.0))))
    first = log_ndtr(mu / 2.0 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2.0 - epsilon / mu)
    return np.asarray(np.exp(first) * -np.expm1(np.minimum(second - first, 0.0)))


@lru_cache(maxsize=8)
def _normal_rule(n_nodes: int, outside: float = 1e-30) -> tuple[FloatArray, FloatArray, float]:
    """Return nodes and weights for a standard normal, and the mass beyond the last node."""
    if n_nodes == 1:
        return np.zeros(1), np.ones(1), 0.0
    end = -float(ndtri(outside / 2.0))
    nodes = np.linspace(-end, end, n_nodes)
    density = np.exp(-(nodes**2) / 2.0) / math.sqrt(2.0 * math.pi)
    return nodes, density * (nodes[1] - nodes[0]), outside
