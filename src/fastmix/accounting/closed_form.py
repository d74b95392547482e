"""The paper's closed-form guarantees and noise levels; gamma must come from released values."""

import math

from fastmix._validation import check_integer, check_probability, check_real


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
