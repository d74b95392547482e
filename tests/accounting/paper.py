"""Bounds of the paper that the library has better ones for; accounts are held against them."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_integer, check_probability, check_real
from fastmix.accounting.rdp import _finish


def _sizes(rows: int, delta: float) -> tuple[int, float]:
    k = check_integer("rows", rows, at_least=1)
    return k, math.log(1.0 / check_probability("delta", delta))


def rdp_fast_mix_simple(alpha: npt.ArrayLike, gamma: float) -> Any:
    r"""Linear bound :math:`25 \alpha / (32 \gamma^2)` on `rdp_fast_mix`.

    It holds for ``gamma > 25/8`` and ``1 < alpha < 8 gamma / 25``.

    Paper: Lemma 1.
    Deviation: columns have norm 1 (docs/corrections.md).
    """
    alpha = np.asarray(alpha, dtype=np.float64)
    gamma = check_real("gamma", gamma, allow_inf=True)
    if not gamma > 25.0 / 8.0:
        return _finish(np.zeros_like(alpha), alpha, np.zeros(alpha.shape, dtype=bool))
    valid = alpha < 8.0 * gamma / 25.0
    return _finish(25.0 * (np.where(valid, alpha, 0.0) / gamma) / (32.0 * gamma), alpha, valid)


def closed_form_epsilon(gamma: float, rows: int, delta: float) -> float:
    r"""Closed-form epsilon of ``rows`` rows of FastMix at a delta; ``inf`` unless gamma > 25/8.

    Here :math:`\gamma_f = (\lambda_{\min} + \sigma^2)/C^2`.

    Paper: Theorem 1 (with delta/3 for delta) and Appendix D.3, second display.
    Deviation: the display writes :math:`\lambda_{\min}+\sigma^2` where :math:`\gamma_f` is meant
    (docs/corrections.md).
    """
    gamma = check_real("gamma", gamma)
    k, log_term = _sizes(rows, delta)
    if not gamma > 25.0 / 8.0:
        return math.inf
    rate = 25.0 * k / (32.0 * gamma**2)
    if log_term <= (8.0 * gamma / 25.0 - 1.0) ** 2 * rate:
        return rate + 2.0 * math.sqrt(rate * log_term)
    return k / (4.0 * gamma) + 25.0 * log_term / (8.0 * gamma - 25.0)


def closed_form_epsilon_unbounded(gamma: float, rows: int, delta: float) -> float:
    r"""Closed-form epsilon of ``rows`` rows of FastMix when nothing is known of :math:`C^2`.

    Here gamma is :math:`\lambda_{\min} + \sigma^2`; the bound is ``inf`` unless it is above 25.

    Paper: Appendix D.3, first display.
    """
    gamma = check_real("gamma", gamma)
    k, log_term = _sizes(rows, delta)
    if not gamma > 25.0:
        return math.inf
    root = math.sqrt(gamma)
    if log_term < (root / 5.0 - 1.0) ** 2 * 2.0 * k / gamma:
        return 2.0 * k / gamma + math.sqrt(8.0 * k * log_term / gamma)
    return 2.0 * k / (5.0 * root) + 5.0 * log_term / (root - 5.0)


def closed_form_gamma(epsilon: float, delta: float, rows: int) -> float:
    r"""Smallest gamma whose closed-form epsilon is at most ``epsilon``, for the rows of all steps.

    It is :math:`\gamma_1` where the first case of the closed form applies to it, otherwise the root
    of the second case.

    Paper: Appendix E, :math:`\gamma_1` and :math:`\gamma_2` (with epsilon/3, delta/3, k1 T).
    Deviation: the printed :math:`\gamma_2` spends about three times its share
    (docs/corrections.md). Here it is the larger root of :math:`k/(4\gamma) + 25L/(8\gamma-25) =
    \epsilon`, a quadratic in :math:`8\gamma`.
    """
    e = check_real("epsilon", epsilon, above=0.0)
    k = check_integer("rows", rows, at_least=1)
    log_term = math.log(1.0 / check_probability("delta", delta))
    factor = 1.0 + math.sqrt(1.0 + e / log_term)
    gamma_1 = 5.0 * math.sqrt(2.0 * k * log_term) / (8.0 * e) * factor
    if gamma_1 > 25.0 / 8.0 and log_term <= (8.0 * gamma_1 / 25.0 - 1.0) ** 2 * 25.0 * k / (
        32.0 * gamma_1**2
    ):
        return gamma_1
    b = 25.0 * e + 2.0 * k + 25.0 * log_term
    return (b + math.sqrt(b**2 - 200.0 * k * e)) / (16.0 * e)


def closed_form_gradient_sigma(
    epsilon: float, delta: float, n_steps: int, clip: float = 1.0
) -> float:
    r"""Noise of ``n_steps`` gradients clipped at C that together are (epsilon, delta)-DP.

    It is the :math:`\sigma` with :math:`C\sqrt{2TL}/\sigma + TC^2/(2\sigma^2) = \epsilon`,
    :math:`L = \log(1/\delta)`.

    Paper: Appendix E, :math:`\sigma` (with epsilon/3 and delta/3).
    """
    e = check_real("epsilon", epsilon, above=0.0)
    log_term = math.log(1.0 / check_probability("delta", delta))
    steps = check_integer("n_steps", n_steps, at_least=1)
    c = check_real("clip", clip, above=0.0)
    factor = 1.0 + math.sqrt(1.0 + e / log_term)
    return c * math.sqrt(steps * log_term) / (math.sqrt(2.0) * e) * factor
