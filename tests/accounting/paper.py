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
