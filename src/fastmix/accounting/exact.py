"""The exact account of a Gaussian sketch with Gaussian releases, where the worst pair is known.

K rows of a dense Gaussian sketch are dominated by one pair, N(0, 1)^K against N(0, 1 - 1/gamma)^K,
whose privacy loss is a shifted and scaled chi-square; Gaussian releases add a normal loss. Delta is
then an integral in one dimension, and in two when one of several options is chosen from a Gaussian
release (docs/proofs/exact_account.md). The Rényi conversion is 5% and more above it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv, log_ndtr, ndtr, ndtri

from fastmix._types import FloatArray
from fastmix.accounting.events import ChoiceEvent, GaussianEvent, PrivacyEvent, SketchEvent

#: Nodes for the chi-square loss and for the normal one; more of them only make the bound tighter.
_CHI_SQUARE_NODES, _NORMAL_NODES = 400, 120
#: Probability beyond the first and beyond the last node.
_OUTSIDE = 1e-25
#: Relative rounding error that is granted to the profile of the Gaussian mechanism.
_ROUNDING = 2e-5
#: Below this ratio the profile loses too many digits.
_SMALLEST_MU = 1e-6


@dataclass(frozen=True)
class Option:
    """A Gaussian sketch at level ``gamma``, or none, with Gaussian releases of ratio ``mu``."""

    gamma: float
    rows: int
    mu: float


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
    return option if option.mu >= _SMALLEST_MU else None


@lru_cache(maxsize=4096)
def exact_delta(mixture: Mixture, epsilon: float) -> float:
    r"""Return the exact delta of a mixture at an epsilon: the larger of the two directions.

    It is :math:`\mathrm{E}_z \max_j \mathrm{E}_x\, \delta_{\mu_j}(\epsilon - \mu^2/2 - \mu z -
    L_j(x))` with z standard normal, x chi-square and :math:`\delta_\mu` the profile of the Gaussian
    mechanism, bounded from above.

    Paper: beyond it; Proposition 2 bounds the same pair through RDP.
    Deviation: integrals are replaced by upper sums, and the mass that they leave out is added.
    """
    loss, weights = _normal_rule(mixture.mu)
    profiles = [
        [_option_delta(option, epsilon - loss, sign) for option in mixture.options]
        for sign in (1.0, -1.0)
    ]
    outside = _OUTSIDE if mixture.mu else 0.0
    return min(1.0, max(float(weights @ np.max(each, axis=0)) for each in profiles) + outside)


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


def _option_delta(option: Option, epsilon: FloatArray, sign: float) -> FloatArray:
    r"""Return :math:`\mathrm{E}_x\, \delta_\mu(\epsilon - L(x))`, or a little more, each."""
    if option.rows == 0:
        return _gaussian_profile(option.mu, epsilon)
    loss, weights = _chi_square_rule(option.gamma, option.rows, sign)
    return _gaussian_profile(option.mu, epsilon[:, None] - loss) @ weights + _OUTSIDE


def _gaussian_profile(mu: float, epsilon: FloatArray) -> FloatArray:
    r"""Return :math:`\Phi(\mu/2 - \epsilon/\mu) - e^\epsilon \Phi(-\mu/2 - \epsilon/\mu)`."""
    first = log_ndtr(mu / 2.0 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2.0 - epsilon / mu)
    profile = np.exp(first) * -np.expm1(np.minimum(second - first, 0.0))
    return np.asarray(np.minimum(1.0, profile * (1.0 + _ROUNDING)))


@lru_cache(maxsize=64)
def _normal_rule(mu: float) -> tuple[FloatArray, FloatArray]:
    """Return losses and weights that bound the expectation over N(mu, 1) against N(0, 1)."""
    if mu == 0.0:
        return np.zeros(1), np.ones(1)
    z = _nodes(_NORMAL_NODES)
    loss = mu**2 / 2.0 + mu * z
    return loss, _chords(loss, _normal_cells(z), _normal_cells(z + mu))


@lru_cache(maxsize=64)
def _chi_square_rule(gamma: float, rows: int, sign: float) -> tuple[FloatArray, FloatArray]:
    """Return losses and weights for N(0, 1)^K against N(0, 1 - 1/gamma)^K, or the reverse.

    Nodes are values of the squared norm over the variance under the first law of the pair, which is
    chi-square; under the second it is that times 1 - 1/gamma, or divided by it.
    """
    s, half = 1.0 / gamma, rows / 2.0
    u = _nodes(_CHI_SQUARE_NODES)
    x = 2.0 * np.where(u < 0.0, gammaincinv(half, ndtr(u)), gammainccinv(half, ndtr(-u)))
    if sign > 0.0:
        loss = half * math.log1p(-s) + s / (2.0 * (1.0 - s)) * x
        other = _chi_square_cells(half, x / (1.0 - s))
        return loss, _chords(loss, _normal_cells(u), other)
    loss = -half * math.log1p(-s) - s / 2.0 * x
    other = _chi_square_cells(half, x * (1.0 - s))
    # In the order of growing losses.
    return loss[::-1], _chords(loss[::-1], _normal_cells(u)[::-1], other[::-1])


def _chords(loss: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    r"""Return weights w with :math:`\sum_i w_i D(\ell_i) \ge \mathrm{E}_P D(\ell)` for profiles D.

    ``p`` and ``q`` are the masses of the cells between the growing losses :math:`\ell_i`.

    Paper: beyond it (docs/proofs/exact_account.md): with :math:`t = e^\ell = p/q` the integrand
    is :math:`F(t)\,dQ`, F convex, and lies below its chord on each cell.
    Deviation: where rounding leaves the position on the chord unclear, the larger end is taken.
    """
    width = np.diff(loss)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        position = np.exp(loss[:-1] + width + np.log(q) - np.log(p)) - 1.0
        lower = position / np.expm1(width)
    lower = np.clip(np.where((width > 1e-7) & np.isfinite(lower), lower, 0.0), 0.0, 1.0)
    weights = np.zeros_like(loss)
    weights[:-1] += p * lower
    weights[1:] += p * (1.0 - lower)
    # Below the first node the profile is at most what it is there.
    weights[0] += _OUTSIDE
    return weights


def _nodes(count: int) -> FloatArray:
    end = -float(ndtri(_OUTSIDE))
    return np.linspace(-end, end, count)


def _normal_cells(z: FloatArray) -> FloatArray:
    """Return the probabilities between nodes, each from the nearer tail."""
    return np.where(z[1:] <= 0.0, np.diff(ndtr(z)), -np.diff(ndtr(-z)))


def _chi_square_cells(half: float, x: FloatArray) -> FloatArray:
    lower, upper = gammainc(half, x / 2.0), gammaincc(half, x / 2.0)
    return np.where(lower[1:] < 0.5, np.diff(lower), -np.diff(upper))
