r"""Objective perturbation: what the minimiser of a perturbed objective costs.

With noise :math:`b \sim N(0, (L/\mu)^2 I)` and a loss whose curvature is at most
:math:`\lambda (e^{\epsilon_c (1 - |f'|/L)} - 1)`, the privacy loss of the minimiser is at most
:math:`\max(\epsilon_c, \mu Z + \mu^2/2)` with the record in the first data set, and
:math:`\mu |Z| + \mu^2/2` with the record in the second; Z is standard normal
(docs/proofs/objective.md).  It is no Gaussian release: just below :math:`\epsilon_c` its delta is
hundreds of times that of one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from fastmix._validation import check_probability, check_real
from fastmix.accounting.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
    least_epsilon,
)

__all__ = [
    "objective_delta",
    "objective_epsilon",
    "objective_mu",
    "objective_split",
    "rdp_objective",
]

#: Relative slack, so that rounding in an account cannot exceed its target.
_SLACK = 1e-9


def objective_delta(
    epsilon: float, mu: float, eps_c: float, mu_gaussian: float = 0.0, *, one_sided: bool = False
) -> float:
    r"""Delta of one objective release beside Gaussian releases, at a given epsilon.

    Parameters
    ----------
    epsilon : float
        Target epsilon, at least 0.
    mu : float
        Ratio of the slope bound to the noise of the objective.
    eps_c : float
        Epsilon that the curvature of the loss is calibrated to.
    mu_gaussian : float, default 0.0
        Ratio of sensitivity to noise of all Gaussian releases together.
    one_sided : bool, default False
        Whether the slope of the loss has one sign for each record, as that of the logistic loss.

    Returns
    -------
    float
        With :math:`\mu_t^2 = \mu^2 + \mu_G^2`, the larger of :math:`\delta_{\mu_t}(\epsilon) +
        \delta_{\mu_G}(\epsilon - \epsilon_c)` and :math:`2\delta_{\mu_t}(\epsilon)`.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Theorem 2.
    """
    epsilon = check_real("epsilon", epsilon, at_least=0.0)
    total = gaussian_delta(1.0, epsilon, math.hypot(mu, mu_gaussian))
    less = epsilon - eps_c
    rest = gaussian_delta(1.0, abs(less), mu_gaussian)
    if less < 0.0:  # the profile of a symmetric pair at a negative epsilon
        rest = -math.expm1(less) + math.exp(less) * rest
    return min(1.0, total + rest if one_sided else max(total + rest, 2.0 * total))


def objective_epsilon(
    delta: float, mu: float, eps_c: float, mu_gaussian: float = 0.0, *, one_sided: bool = False
) -> float:
    """Return the least epsilon with `objective_delta` at most delta, rounded up by 1e-10."""

    def gap(epsilon: float) -> float:
        return objective_delta(epsilon, mu, eps_c, mu_gaussian, one_sided=one_sided) - delta

    return least_epsilon(gap)


def objective_mu(epsilon: float, delta: float, *, one_sided: bool = False) -> float:
    r"""Largest ratio :math:`\mu_t` of one objective release with all that goes with it.

    Parameters
    ----------
    epsilon : float
        Target epsilon, above 0.
    delta : float
        Target delta, strictly between 0 and 1.
    one_sided : bool, default False
        Whether the slope of the loss has one sign for each record.

    Returns
    -------
    float
        The root of :math:`2 \delta_\mu(\epsilon) = \delta`, rounded down by at most 1e-10 relative;
        without the 2 if the slope has one sign and nothing else is released.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Theorem 2.
    """
    share = check_probability("delta", delta) * (1.0 if one_sided else 0.5)
    return 1.0 / gaussian_sigma(epsilon, share)


def objective_split(epsilon: float, delta: float, share: float) -> tuple[float, float, float]:
    r"""Split a budget between Gaussian releases and one objective release.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    share : float
        Share of :math:`\mu_t^2` for the Gaussian releases, strictly between 0 and 1.

    Returns
    -------
    mu, eps_c, mu_gaussian : float
        Ratio and calibration of the objective release, and the ratio of the Gaussian releases
        together; :math:`\epsilon_c` leaves :math:`\delta_{\mu_G}(\epsilon - \epsilon_c) =
        \delta/2`. It is 0 or less if the share is too large.
    """
    share = check_probability("share", share)
    total = objective_mu(epsilon, delta) * (1.0 - _SLACK)
    mu_gaussian = math.sqrt(share) * total
    eps_c = epsilon - gaussian_epsilon(1.0, delta / 2.0 * (1.0 - _SLACK), mu_gaussian)
    return math.sqrt(1.0 - share) * total, eps_c, mu_gaussian


def rdp_objective(alpha: npt.ArrayLike, mu: float, eps_c: float, *, one_sided: bool = False) -> Any:
    r"""Rényi divergence of one objective release.

    Parameters
    ----------
    alpha : array_like
        Rényi orders; ``inf`` is returned at orders of 1 or less and at infinity.
    mu : float
        Ratio of the slope bound to the noise of the objective.
    eps_c : float
        Epsilon that the curvature of the loss is calibrated to.
    one_sided : bool, default False
        Whether the slope of the loss has one sign for each record.

    Returns
    -------
    float or numpy.ndarray
        :math:`\frac{1}{\alpha-1} \log \mathrm{E}\, e^{(\alpha-1) W}` for the larger of the two
        bounds W on the privacy loss.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Section 4.
    """
    order = np.asarray(alpha, dtype=np.float64)
    valid = np.isfinite(order) & (order > 1.0)
    # The curve grows with the order; next to 1, where it would be rounding noise, it is that of a
    # slightly larger one.
    less = np.maximum(np.where(valid, order, 2.0) - 1.0, 1e-6)
    curve = less * (less + 1.0) * mu**2 / 2.0
    at = eps_c / mu - mu / 2.0  # where the Gaussian part takes over from eps_c
    floor = np.logaddexp(less * eps_c + log_ndtr(at), curve + log_ndtr(less * mu - at))
    if not one_sided:
        floor = np.maximum(floor, math.log(2.0) + curve + log_ndtr(less * mu))
    value = np.where(valid, floor / less, np.inf)
    return float(value) if value.ndim == 0 else value
