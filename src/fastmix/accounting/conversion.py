"""From Rényi-DP curves to (epsilon, delta) and back.

Every order gives a valid bound, so the minimum over the orders that were looked at is on the
private side whatever the search does; the search only decides how tight it is.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_probability, check_real, type_error, value_error

RdpCurve: TypeAlias = Callable[[FloatArray], Any]

#: alpha - 1 of the first, coarse look at a curve, five per decade.
_COARSE = np.logspace(-4.0, 9.0, 66)


def rdp_to_epsilon(
    rdp: RdpCurve | npt.ArrayLike, delta: float, *, orders: npt.ArrayLike | None = None
) -> float:
    r"""Convert an RDP curve to the epsilon of (epsilon, ``delta``)-DP.

    The curve is a function of an array of orders, or holds its values at ``orders``; by default a
    function is optimised over all real orders above 1. Epsilon is :math:`\min_\alpha r(\alpha) +
    \log(1 - 1/\alpha) - \log(\alpha\delta)/(\alpha-1)`, at least 0, and ``inf`` for a curve that is
    infinite everywhere.

    Paper: Proposition 1 (Canonne, Kamath and Steinke, Proposition 12).
    Deviation: epsilon is 0 when some order has :math:`\delta^2 > 1 - e^{-r}`, because total
    variation is at most :math:`\sqrt{1 - e^{-KL}}` (Bretagnolle and Huber).
    """
    delta = check_probability("delta", delta)

    def epsilon(alpha: FloatArray, r: FloatArray) -> Any:
        bound = r + np.log1p(-1.0 / alpha) - (np.log(delta) + np.log(alpha)) / (alpha - 1.0)
        return np.where(delta**2 + np.expm1(-r) > 0.0, 0.0, bound)

    return max(0.0, _minimise(epsilon, rdp, orders))


def rdp_to_delta(
    rdp: RdpCurve | npt.ArrayLike, epsilon: float, *, orders: npt.ArrayLike | None = None
) -> float:
    r"""Convert an RDP curve, given as to `rdp_to_epsilon`, to a delta of (epsilon, delta)-DP.

    Paper: Proposition 1 solved for delta.
    Deviation: also :math:`\sqrt{1 - e^{-r}}`, as in `rdp_to_epsilon`.
    """
    epsilon = check_real("epsilon", epsilon, at_least=0.0)

    def log_delta(alpha: FloatArray, r: FloatArray) -> Any:
        bound = (alpha - 1.0) * (r - epsilon + np.log1p(-1.0 / alpha)) - np.log(alpha)
        with np.errstate(divide="ignore"):
            variation = 0.5 * np.log(-np.expm1(-r))
        return np.minimum(bound, variation)

    return min(1.0, float(np.exp(min(0.0, _minimise(log_delta, rdp, orders)))))


def _minimise(
    bound: Callable[[FloatArray, FloatArray], Any],
    rdp: RdpCurve | npt.ArrayLike,
    orders: npt.ArrayLike | None,
) -> float:
    """Minimise ``bound(alpha, rdp(alpha))`` over given orders, or over all of (1, inf)."""

    def evaluate(alpha: FloatArray, values: Any) -> FloatArray:
        r = np.asarray(values, dtype=np.float64)
        usable = (alpha > 1.0) & np.isfinite(alpha) & np.isfinite(r) & (r >= 0.0)
        value = bound(np.where(usable, alpha, 2.0), np.where(usable, r, 0.0))
        return np.where(usable, value, np.inf)

    if orders is not None:
        alpha = np.atleast_1d(np.asarray(orders, dtype=np.float64))
        r = np.atleast_1d(np.asarray(rdp(alpha) if callable(rdp) else rdp, dtype=np.float64))
        if alpha.shape != r.shape:
            raise value_error("orders", "have one entry for each value of rdp", alpha)
        return float(evaluate(alpha, r).min(initial=np.inf))
    if not callable(rdp):
        raise type_error("rdp", "be callable when no orders are given", rdp)

    # Zoom in on the best order; at a smooth minimum the value is then right to about 1e-12.
    best, shift = np.inf, _COARSE
    while True:
        value = evaluate(1.0 + shift, rdp(1.0 + shift))
        at = int(value.argmin())
        best = min(best, float(value[at]))
        low, high = shift[max(at - 1, 0)], shift[min(at + 1, shift.size - 1)]
        if not np.isfinite(best) or high < low * (1.0 + 3e-6):
            return best
        shift = np.geomspace(low, high, 65)
