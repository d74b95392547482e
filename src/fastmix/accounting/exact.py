"""The exact account of a sketch with Gaussian releases, where the worst pair is known.

K rows of a dense Gaussian sketch are dominated by one pair, N(0, 1)^K against N(0, 1 - 1/gamma)^K,
whose privacy loss is a shifted and scaled chi-square; Gaussian releases add a normal loss. Delta is
then an integral in one dimension (docs/proofs/exact_account.md). K rows of a fast sketch are
dominated, at every epsilon, by the larger of the two directions of the same pair
(docs/proofs/fast_account.md). The Rényi conversion is 4% and more above it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, gammainc, gammaincc, gammainccinv, gammaincinv, ndtr, ndtri

from fastmix._types import FloatArray
from fastmix.accounting.events import GaussianEvent, PrivacyEvent, SketchEvent
from fastmix.accounting.rdp import unbounded_level

#: Nodes for the chi-square loss; more of them only make the bound tighter.
_NODES = 400
#: Probability beyond the first and beyond the last node.
_OUTSIDE = 1e-25
#: Allowance for the relative rounding error of the profile of the Gaussian mechanism.
_ROUNDING = 2e-5
#: Below this ratio the profile loses too many digits.
_SMALLEST_MU = 1e-6
#: Curves whose pair is known, with its level: N(0, 1) against N(0, 1 - 1/level).
_KNOWN: dict[str, Callable[[float], float]] = {
    "gauss_mix": lambda gamma: gamma,
    "fast_mix_sharp": lambda gamma: gamma,
    "fast_mix_unbounded": unbounded_level,
}


@dataclass(frozen=True)
class WorstPair:
    """The worst pair of a sketch at level ``gamma`` with Gaussian releases of ratio ``mu``.

    ``fast`` says that it is the sketch of a fast sketch, for which both directions count at once.
    """

    gamma: float
    rows: int
    mu: float
    fast: bool = False


def known_pair(events: Sequence[PrivacyEvent]) -> WorstPair | None:
    """Return the pair of Gaussian sketches of one level, or of one fast sketch, or None.

    None means that no exact account is known; Gaussian releases must be among the events.
    """
    sketches = [e for e in events if isinstance(e, SketchEvent) and e.bound in _KNOWN]
    gaussians = [e for e in events if isinstance(e, GaussianEvent)]
    fast = any(e.bound != "gauss_mix" for e in sketches)
    others = len(events) - len(sketches) - len(gaussians)
    if others != sum(e.pure_epsilon == 0.0 for e in events):
        return None
    # Several fast sketches of the same data are not one sketch with more rows.
    if len(sketches) > 1 and (fast or len({e.gamma for e in sketches}) > 1):
        return None
    if not sketches:
        return None
    level = _KNOWN[sketches[0].bound](sketches[0].gamma)
    if not level > 1.0:  # rounded to 1, where there is no bound
        return None
    pair = WorstPair(
        gamma=level,
        rows=sum(event.rows for event in sketches),
        mu=math.sqrt(math.fsum(event.mu_squared for event in gaussians)),
        fast=fast,
    )
    return pair if pair.mu >= _SMALLEST_MU else None


def exact_delta(pair: WorstPair, epsilon: float) -> float:
    r"""Return the delta of a pair at an epsilon: the larger of the two directions.

    It is :math:`\mathrm{E}_x\, \delta_\mu(\epsilon - L(x))` with x chi-square and
    :math:`\delta_\mu` the profile of the Gaussian mechanism, bounded from above.

    Paper: beyond it; Proposition 2 bounds the same pair through RDP.
    Deviation: integrals are replaced by upper sums, and the mass that they leave out is added.
    """
    return max(_delta(pair, epsilon, sign) for sign in _signs(pair))


@lru_cache(maxsize=1024)
def exact_epsilon(pair: WorstPair, delta: float, largest: float) -> float:
    """Return the least epsilon at most ``largest`` with `exact_delta` at most ``delta``."""
    if delta <= 0.0 or not exact_delta(pair, largest) <= delta:
        return math.inf

    def gap(epsilon: float, sign: float) -> float:
        return math.log(max(_delta(pair, epsilon, sign), 1e-300) / delta)

    # The direction that is larger at the end is nearly always larger at the root. Search it alone,
    # and check the result in both.
    for sign in sorted(_signs(pair), key=lambda sign: -_delta(pair, largest, sign)):
        low = next((low for low in (0.8 * largest, 0.0) if gap(low, sign) > 0.0), None)
        root = 0.0
        if low is not None:
            root = float(brentq(gap, low, largest, (sign,), xtol=1e-14 * largest, rtol=1e-12))
        for slack in (0.0, 1e-11, 1e-9, 1e-6):
            if exact_delta(pair, root * (1.0 + slack)) <= delta:
                return root * (1.0 + slack)
    return math.inf


def _signs(pair: WorstPair) -> tuple[float, ...]:
    """Return the directions that differ; fast sketches have both in one."""
    return (1.0,) if pair.fast else (1.0, -1.0)


@lru_cache(maxsize=4096)
def _delta(pair: WorstPair, epsilon: float, sign: float) -> float:
    """Return the delta of one direction, or a little more."""
    loss, weights = _sketch_rule(pair.gamma, pair.rows, 0.0 if pair.fast else sign)
    return min(1.0, float(_gaussian_profile(pair.mu, epsilon - loss) @ weights) + _OUTSIDE)


def _gaussian_profile(mu: float, epsilon: FloatArray) -> FloatArray:
    r"""Return :math:`\Phi(\mu/2 - \epsilon/\mu) - e^\epsilon \Phi(-\mu/2 - \epsilon/\mu)`."""
    # At e = |epsilon| both terms are exp(-x^2) erfcx(.) / 2, and the profile at -e is
    # 1 - exp(-e) and exp(-e) times the one at e. Beyond the ends of x it is 1, or below 1e-290.
    x = np.clip((np.abs(epsilon) / mu - mu / 2.0) * math.sqrt(0.5), -26.0, 26.0)
    profile = np.exp(-x * x) * (erfcx(x) - erfcx(x + mu * math.sqrt(0.5))) / 2.0
    negative = epsilon < 0.0
    below = epsilon[negative]
    profile[negative] = np.exp(below) * profile[negative] - np.expm1(below)
    return np.asarray(np.minimum(1.0, profile * (1.0 + _ROUNDING)))


class Cells(NamedTuple):
    """Growing losses, and the masses between them under both laws of a pair."""

    loss: FloatArray
    p: FloatArray
    q: FloatArray


@lru_cache(maxsize=64)
def _sketch_rule(gamma: float, rows: int, sign: float) -> tuple[FloatArray, FloatArray]:
    """Return losses and weights for N(0, 1)^K against N(0, 1 - 1/gamma)^K, or the reverse.

    A sign of 0 stands for the larger of both, which is the first above a loss of 0 and the second
    below it (docs/proofs/fast_account.md).
    """
    nodes = _nodes(_NODES)
    if sign:
        cells = _chi_square_cells(gamma, rows, sign, nodes)
        return cells.loss, _chords(*cells)
    s, half = 1.0 / gamma, rows / 2.0
    pair = []
    for sign, rate in ((-1.0, s / 2.0), (1.0, s / (2.0 * (1.0 - s)))):
        zero = -half * math.log1p(-s) / rate  # where the loss is 0
        lower, upper = gammainc(half, zero / 2.0), gammaincc(half, zero / 2.0)
        at = float(ndtri(lower) if lower < 0.5 else -ndtri(upper))
        cells = _chi_square_cells(gamma, rows, sign, np.sort(np.append(nodes, at)))
        cells.loss[np.abs(cells.loss).argmin()] = 0.0
        pair.append(cells)
    below, above = pair[0].loss <= 0.0, pair[1].loss >= 0.0
    # The rest of the mass lies between the two, at losses of 0.
    p = np.concatenate([pair[0].p[below[1:]], [0.0], pair[1].p[above[:-1]]])
    q = np.concatenate([pair[0].q[below[1:]], [0.0], pair[1].q[above[:-1]]])
    loss = np.concatenate([pair[0].loss[below], pair[1].loss[above]])
    weights = _chords(loss, p, q)
    weights[np.count_nonzero(below)] += max(0.0, 1.0 - math.fsum(p)) + _OUTSIDE
    return loss, weights


def _chi_square_cells(gamma: float, rows: int, sign: float, u: FloatArray) -> Cells:
    """Return the cells of N(0, 1)^K against N(0, 1 - 1/gamma)^K, or of the reverse.

    Nodes are values of the squared norm over the variance under the first law of the pair, which is
    chi-square, with the probabilities of normal values u; under the second it is that times
    1 - 1/gamma, or divided by it.
    """
    s, half = 1.0 / gamma, rows / 2.0
    x = 2.0 * np.where(u < 0.0, gammaincinv(half, ndtr(u)), gammainccinv(half, ndtr(-u)))
    if sign > 0.0:
        loss = half * math.log1p(-s) + s / (2.0 * (1.0 - s)) * x
        return Cells(loss, _normal_cells(u), _gamma_cells(half, x / (1.0 - s) / 2.0))
    loss = -half * math.log1p(-s) - s / 2.0 * x
    cells = Cells(loss, _normal_cells(u), _gamma_cells(half, x * (1.0 - s) / 2.0))
    return Cells(*(each[::-1] for each in cells))  # in the order of growing losses


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
    # Below the first node, the profile is at most its value there.
    weights[0] += _OUTSIDE
    return weights


def _nodes(count: int) -> FloatArray:
    end = -float(ndtri(_OUTSIDE))
    return np.linspace(-end, end, count)


def _normal_cells(z: FloatArray) -> FloatArray:
    """Return the probabilities between nodes, each from the nearer tail."""
    return np.where(z[1:] <= 0.0, np.diff(ndtr(z)), -np.diff(ndtr(-z)))


def _gamma_cells(half: float, x: FloatArray) -> FloatArray:
    lower, upper = gammainc(half, x), gammaincc(half, x)
    return np.where(lower[1:] < 0.5, np.diff(lower), -np.diff(upper))
