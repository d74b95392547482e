r"""Objective perturbation: what the minimiser of a perturbed objective costs.

With noise :math:`b \sim N(0, (L/\mu)^2 I)` and a loss whose curvature is at most
:math:`\lambda (e^{\epsilon_c (1 - |f'|/L)} - 1)`, the privacy loss of the minimiser is at most
:math:`\max(\epsilon_c, \mu Z + \mu^2/2)` with the record in the first data set, and
:math:`\mu |Z| + \mu^2/2` with the record in the second; Z is standard normal
(docs/proofs/objective.md).  It is no Gaussian release: just below :math:`\epsilon_c` its delta is
hundreds of times that of one.

For a person with several rows, whose weights add up to 1 at most, the loss is at most an average of
such variables (docs/proofs/people.md).
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, log_ndtr, ndtr

from fastmix._types import FloatArray
from fastmix._validation import check_integer, check_probability, check_real
from fastmix.accounting.gaussian import gaussian_epsilon, gaussian_sigma, profile

#: Relative slack, so that rounding in an account cannot exceed its target.
_SLACK = 1e-9
#: Share of delta for the Gaussian releases beyond epsilon - eps_c, for slopes of one sign.
_REST = 0.1


def objective_delta(
    epsilon: float,
    mu: float,
    eps_c: float,
    mu_gaussian: float = 0.0,
    *,
    one_sided: bool = False,
    rows_per_person: int = 1,
) -> float:
    r"""Delta of one objective release beside Gaussian releases of ratio ``mu_gaussian`` together.

    ``mu`` and ``eps_c`` are those of `ObjectiveEvent`. With :math:`\mu_t^2 = \mu^2 + \mu_G^2` it is
    the larger of :math:`\delta_{\mu_t}(\epsilon) + \delta_{\mu_G}(\epsilon - \epsilon_c)` and
    :math:`2\delta_{\mu_t}(\epsilon)`; the first if the slope of the loss has one sign for each
    record, as that of the logistic loss (``one_sided``). For a person of up to k rows
    :math:`\delta_{\mu_t}` counts k times, or what holds for any number of rows if that is less.

    Paper: beyond it; docs/proofs/objective.md, Theorem 2, and docs/proofs/people.md, Theorem 2.
    """
    epsilon = check_real("epsilon", epsilon, at_least=0.0)
    mu_total = math.hypot(mu, mu_gaussian)
    total = rows_per_person * profile(mu_total, epsilon)
    less = epsilon - eps_c
    rest = profile(mu_gaussian, abs(less))
    if less < 0.0:  # the profile of a symmetric pair at a negative epsilon
        rest = -math.expm1(less) + math.exp(less) * rest
    first, second = total + rest, 2.0 * total
    if rows_per_person > 1:
        slope, start = _hinges(epsilon)
        gaussian = _mean_excess(mu_total**2 / 2.0, mu_total, start)
        floor = _mean_excess(eps_c + mu_gaussian**2 / 2.0, mu_gaussian, start)
        first = min(first, float(np.min(slope * (gaussian + floor))))
        second = min(second, float(np.min(slope * 2.0 * gaussian)))
    return min(1.0, first if one_sided else max(first, second))


#: Parameters of the hinges of `_hinges`, and relative slack for rounding in them.
_HINGES, _HINGE_SLACK = np.geomspace(1e-4, 8.0, 600), 1e-9


def _hinges(epsilon: float) -> tuple[FloatArray, FloatArray]:
    r"""Return hinges :math:`a (l - t)_+` that are nowhere below :math:`(1 - e^{\epsilon - l})_+`.

    The tangent at :math:`\epsilon + x` has slope :math:`e^{-x}` and meets 0 at
    :math:`\epsilon - (e^x - 1 - x)`: slopes and starts.
    """
    return np.exp(-_HINGES), epsilon - (np.expm1(_HINGES) - _HINGES)


def _mean_excess(mean: float, scale: float, start: FloatArray) -> FloatArray:
    """Return E (V - t)_+ for a normal V, rounded up."""
    if scale == 0.0:
        return np.maximum(mean - start, 0.0)
    z = (mean - start) / scale
    # phi(z) + z Phi(z), the second by Mills' ratio where both cancel.
    density = np.exp(-(z**2) / 2.0) / math.sqrt(2.0 * math.pi)
    mills = math.sqrt(math.pi / 2.0) * erfcx(-np.minimum(z, 0.0) / math.sqrt(2.0))
    low = density * (1.0 + np.minimum(z, 0.0) * mills + 1e-14)
    value = np.where(z < 0.0, low, density + z * ndtr(z))
    return np.asarray(scale * value * (1.0 + _HINGE_SLACK))


def objective_mu(
    epsilon: float, delta: float, *, one_sided: bool = False, rows_per_person: int = 1
) -> float:
    r"""Largest ratio :math:`\mu_t` of one objective release with its Gaussian releases.

    It is the root of :math:`2 \delta_\mu(\epsilon) = \delta`, rounded down by at most 1e-10
    relative; without the 2 if the slope has one sign and nothing else is released.

    Paper: beyond it; docs/proofs/objective.md, Theorem 2, and docs/proofs/people.md, Theorem 2.
    """
    epsilon = check_real("epsilon", epsilon, above=0.0)
    delta = check_probability("delta", delta)
    k = check_integer("rows_per_person", rows_per_person, at_least=1)
    return _objective_mu(epsilon, delta, one_sided, k)


@lru_cache(maxsize=4096)
def _objective_mu(epsilon: float, delta: float, one_sided: bool, k: int) -> float:
    """Return `objective_mu` for k rows per person; plans of one fit ask for the same ones often."""
    share = delta * (1.0 if one_sided else 0.5)
    mu = 1.0 / gaussian_sigma(epsilon, share / k)
    if k == 1 or one_sided:
        return mu
    # What holds for any number of rows: a ratio of more than that for one row cannot meet it.
    low, high = mu, 1.0 / gaussian_sigma(epsilon, share)
    for _ in range(60):
        middle = (low + high) / 2.0
        # Without the floor in the other direction, which `objective_split` sees to.
        met = objective_delta(epsilon, middle, 1e-300, rows_per_person=k) <= delta
        low, high = (middle, high) if met else (low, middle)
    return low


def objective_split(
    epsilon: float,
    delta: float,
    share: float,
    *,
    one_sided: bool = False,
    rows_per_person: int = 1,
) -> tuple[float, float, float]:
    r"""Split a budget: Gaussian releases get a share of :math:`\mu_t^2`, an objective the rest.

    Returns ``(mu, eps_c, mu_gaussian)``: ratio and calibration of the objective release, and the
    ratio of the Gaussian releases together. :math:`\epsilon_c` leaves
    :math:`\delta_{\mu_G}(\epsilon - \epsilon_c) = \delta/2`, and is 0 or less if the share is too
    large. If the slope has one sign, that is a tenth of delta unless delta is so large that half of
    it is needed, and :math:`\mu_t` has the rest.
    """
    epsilon = check_real("epsilon", epsilon, above=0.0)
    delta, share = check_probability("delta", delta), check_probability("share", share)
    k = check_integer("rows_per_person", rows_per_person, at_least=1)
    if k > 1:
        return _split_for_persons(epsilon, delta, share, k)
    for rest in (_REST, 0.5) if one_sided else (0.5,):
        # Two-sided, the half that is left for mu counts twice.
        most = objective_mu(epsilon, delta * (1.0 - rest), one_sided=True)
        total = most * (1.0 - _SLACK)
        mu_gaussian = math.sqrt(share) * total
        eps_c = epsilon - gaussian_epsilon(1.0, delta * rest * (1.0 - _SLACK), mu_gaussian)
        if eps_c >= 0.3 * epsilon:
            break
    return math.sqrt(1.0 - share) * total, eps_c, mu_gaussian


@lru_cache(maxsize=4096)
def _split_for_persons(
    epsilon: float, delta: float, share: float, rows_per_person: int
) -> tuple[float, float, float]:
    """Return the ratios and ``eps_c`` of `objective_split` for persons with several rows."""
    total = objective_mu(epsilon, delta, rows_per_person=rows_per_person) * (1.0 - _SLACK)
    mu, mu_gaussian = math.sqrt(1.0 - share) * total, math.sqrt(share) * total
    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2.0
        certified = objective_delta(
            epsilon, mu, middle, mu_gaussian, rows_per_person=rows_per_person
        )
        met = certified <= delta * (1.0 - _SLACK)
        low, high = (middle, high) if met else (low, middle)
    return mu, low, mu_gaussian


def rdp_objective(
    alpha: npt.ArrayLike,
    mu: float,
    eps_c: float,
    *,
    one_sided: bool = False,
    rows_per_person: int = 1,
) -> Any:
    r"""Rényi divergence of one objective release, with ``mu`` and ``eps_c`` of `ObjectiveEvent`.

    It is :math:`\frac{1}{\alpha-1} \log \mathrm{E}\, e^{(\alpha-1) W}` for the larger of the two
    bounds W on the privacy loss, or for each of the two the bound of `_by_slopes` where that is
    smaller; ``inf`` at orders of 1 or less and at infinity. For a person with several rows the loss
    is an average of such W, so the first bound holds, and the second is not known to hold.

    Paper: beyond it; docs/proofs/objective.md, Section 4.
    """
    order = np.asarray(alpha, dtype=np.float64)
    valid = np.isfinite(order) & (order > 1.0)
    # The curve grows with the order; next to 1, where it would be rounding noise, it is that of a
    # slightly larger one.
    less = np.maximum(np.where(valid, order, 2.0) - 1.0, 1e-6)
    curve = less * (less + 1.0) * mu**2 / 2.0

    def above(floor: float) -> FloatArray:
        """Return log E exp((alpha - 1) max(floor, V))."""
        at = floor / mu - mu / 2.0  # where the Gaussian part takes over from the floor
        return np.logaddexp(less * floor + log_ndtr(at), curve + log_ndtr(less * mu - at))

    first = above(eps_c)
    second = above(0.0) if one_sided else math.log(2.0) + curve + log_ndtr(less * mu)
    if rows_per_person == 1:
        width = mu * (1.0 if one_sided else 2.0)
        first = np.minimum(first, _by_slopes(less, less + 1.0, mu, eps_c, width))
        second = np.minimum(second, _by_slopes(less, -less, mu, eps_c, width))
    value = np.where(valid, np.maximum(first, second) / less, np.inf)
    return float(value) if value.ndim == 0 else value


#: Cells of the integral of `_by_slopes`, how many constants A are tried, and the largest exponent.
_CELLS, _TRIED, _STEEPEST = 512, 9, 300.0
#: The least ``eps_c`` that `_by_slopes` counts with: in units of mu, and at all.
_LEAST_SHARE, _LEAST_EPS_C = 1e-6, 1e-100


def _by_slopes(
    less: FloatArray, power: FloatArray, mu: float, eps_c: float, width: float
) -> FloatArray:
    r"""Return a bound on :math:`\log \mathrm{E}\, e^{(\alpha-1)\ell}`, ``inf`` where there is none.

    With :math:`m = \alpha(\alpha-1)\mu^2/2`, :math:`S(r) = e^{\epsilon_c r} - 1`, and p the
    ``power``, :math:`\alpha` with the record in the first data set and :math:`1 - \alpha` with it
    in the second, it is the logarithm of the least :math:`e^m \bigl(A + \frac{w}{\sqrt{2\pi}}
    \int_0^1 [e^{-m(2r - r^2)} (1 + S)^p - A (1 + p S)]_+ \frac{dr}{S}\bigr)` over A of at least 1;
    w is the ``width`` of the range of slopes times mu. The integral is an upper sum.

    Paper: beyond it; docs/proofs/objective.md, Theorem 5 and the sum after it.
    """
    shape, less, power = np.shape(less), np.atleast_1d(less), np.atleast_1d(power)  # of one sign
    # A loss that is calibrated to a smaller eps_c is calibrated to this one; 1/S overflows at 0.
    eps_c = max(eps_c, _LEAST_SHARE * mu, _LEAST_EPS_C)
    m = less * (less + 1.0) * mu**2 / 2.0
    largest = np.maximum(2.0 * m, (less + 1.0) * eps_c)
    bound, usable = np.full(less.shape, np.inf), largest <= _STEEPEST
    if not usable.any():
        return bound.reshape(shape)
    p, m, rounding = (v[usable, None] for v in (power, m, 2.0**-48 * (16.0 + largest)))
    r = (np.arange(_CELLS + 1) / _CELLS) ** 2
    S = np.expm1(eps_c * r)
    line, grown = 1.0 + p * S, p * eps_c * r - m * (2.0 * r - r**2)
    over = grown - np.log(np.where(line > 0.0, line, np.inf))
    highest = np.maximum(over.max(axis=-1, keepdims=True), 0.0)
    # Integrals of 1/S over cells, and of r/S over the first one relative to its end, rounded up.
    weights = np.diff(np.log(-np.expm1(-eps_c * r[1:])), prepend=0.0) / eps_c
    weights[0] = 1.0 / eps_c
    weights *= width / math.sqrt(2.0 * math.pi) * (1.0 + 2.0**-36)
    ratio, value = np.exp(over) * (1.0 + rounding), np.exp(grown) * (1.0 + rounding)
    most, error = _larger(ratio), 2.0 * rounding * (1.0 + np.abs(p) * S)
    least = np.full(highest.shape, np.inf)
    for share in np.linspace(0.0, 1.0, _TRIED):
        A = np.exp(share * highest)
        if power[0] > 0.0:  # at most the line's end times the larger ratio of a cell
            cells = line[:, 1:] * np.maximum(most - A * (1.0 - rounding), 0.0)
            cells[:, 0] = np.where(cells[:, 0] > 0.0, line[:, 1] * (most[:, 0] - 1.0), 0.0)
        else:  # convex
            ends = np.maximum(value - A * (line - error), 0.0)
            cells = _larger(ends)
            cells[:, 0] = ends[:, 1]
        least = np.minimum(least, m + np.log(A + cells @ weights[:, None]) + rounding)
    bound[usable] = least[:, 0]
    return bound.reshape(shape)


def _larger(ends: FloatArray) -> FloatArray:
    """Return the larger of the values at the two ends of each cell."""
    return np.asarray(np.maximum(ends[:, 1:], ends[:, :-1]))


@lru_cache(maxsize=1024)
def composing_eps_c(
    mu: float, order: float, most: float, *, one_sided: bool = False, rows_per_person: int = 1
) -> float:
    """Largest ``eps_c`` of an objective release that composes well, for a given ratio ``mu``.

    At the order, its Rényi divergence is at most ``most`` times that with an ``eps_c`` of nearly 0,
    which for single rows is the divergence of a Gaussian release of ratio ``mu``.
    """
    form: Any = {"one_sided": one_sided, "rows_per_person": rows_per_person}
    low, high = 1e-3 * mu, 50.0
    allowed = check_real("most", most, above=1.0) * rdp_objective(order, mu, low, **form)
    for _ in range(40):
        middle = math.sqrt(low * high)
        met = rdp_objective(order, mu, middle, **form) <= allowed
        low, high = (middle, high) if met else (low, middle)
    return low
