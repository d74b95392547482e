"""From (epsilon, delta) to noise levels: one search for all methods."""

import math
from collections.abc import Callable
from typing import TypeAlias

from scipy.optimize import brentq

from fastmix._validation import check_choice
from fastmix.accounting.account import PrivacySpent, joint_delta
from fastmix.accounting.gaussian import gaussian_epsilon, gaussian_sigma
from fastmix.errors import CalibrationError

#: The account of the releases at a budget, or None if they have none.
Account: TypeAlias = Callable[[float], PrivacySpent | None]

#: Relative distance to the target at which a search aims, on the private side, so that rounding in
#: one part of a budget cannot push the sum of the parts above it; and the precision of the search
#: in the logarithm of the budget. A joint account costs more to evaluate.
_SEARCH = {"delta": (1e-8, 1e-9), "epsilon": (5e-9, 1e-12)}
#: Logarithms of the least and the largest budget that are tried.
_LEAST, _LARGEST = -80.0, 30.0


def calibrate(
    account: Account, epsilon: float, delta: float, *, by: str = "delta", start: float | None = None
) -> float:
    r"""Return the largest budget at which releases are (epsilon, delta)-DP.

    The answer is put back into the account, and a `CalibrationError` if that misses the target.

    ``account`` gives the account of the releases at a budget x, whose noise falls as x grows, so
    that their epsilon and delta grow; None where the noise is too small for any account. Compared
    ``by`` "delta", a joint account has one delta at the epsilon of the target; ``by`` "epsilon", an
    account of several parts has one epsilon, at the deltas of the parts. The search begins at
    ``start``, by default the :math:`\rho` of concentrated DP, :math:`\epsilon = \rho +
    2\sqrt{\rho\log(1/\delta)}`.
    """
    slack, precision = _SEARCH[check_choice("by", by, tuple(_SEARCH))]
    target = delta if by == "delta" else epsilon

    def gap(log_budget: float) -> float:
        spent = account(math.exp(log_budget))
        if spent is None:
            return math.log(1.0 / delta) if by == "delta" else 700.0
        value = joint_delta(spent.events, epsilon) if by == "delta" else spent.epsilon
        return math.log(max(value, 1e-300) / target) + slack if value < 1e300 else 700.0

    if start is None:
        log = math.log(1.0 / delta)
        start = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    low = high = math.log(start)
    while gap(low) > 0.0:
        low -= 0.5
        if low < _LEAST:
            raise CalibrationError(
                f"No noise level was found for epsilon={epsilon:g} and delta={delta:g}."
            )
    while gap(high) <= 0.0 and high < _LARGEST:
        high += 0.5
    root = high if high >= _LARGEST else float(brentq(gap, low, high, xtol=precision, maxiter=500))
    for _ in range(4):
        if gap(root) <= slack / 2.0:
            return math.exp(root)
        root -= 1e-9
    raise CalibrationError(
        f"No noise level was found that spends at most epsilon={epsilon:g} at delta={delta:g}."
    )


def calibrate_gaussian(epsilon: float, delta: float, count: int, *, slack: float = 5e-9) -> float:
    """Return the noise of ``count`` Gaussian releases that together are (epsilon, delta)-DP.

    It is in units of the sensitivity of each; ``slack`` is the relative distance to epsilon that is
    left on the private side.
    """
    sigma = math.sqrt(count) * gaussian_sigma(epsilon * (1.0 - slack), delta)
    for _ in range(4):
        if gaussian_epsilon(sigma, delta, math.sqrt(count)) <= epsilon * (1.0 - slack / 2.0):
            return sigma
        sigma *= 1.0 + 2.0 * slack
    raise CalibrationError(f"No sigma was found that spends at most epsilon={epsilon:g}.")
