"""Rényi-DP curves, one function per lemma.

Every function maps Rényi orders ``alpha`` to a bound on the divergence of *one* release (one row of
a sketch) and is vectorised over ``alpha``.  Where its lemma does not apply the value is ``inf``: a
curve may always be used at every order.  A ``gamma`` and a ``row_bound_sq`` must come from released
values.

The divergences are differences of nearly equal logarithms.  They are written with

    excess(w) = -log(1 - w) - w  =  w^2/2 + w^3/3 + ...

so that the linear parts cancel on paper and not in floating point.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import BoolArray, FloatArray
from fastmix._validation import check_real


def _excess(w: FloatArray) -> FloatArray:
    """Return -log(1 - w) - w for 0 <= w < 1 without cancellation."""
    small = np.where(w < 0.1, w, 0.0)
    series = np.zeros_like(small)
    for power in range(18, 1, -1):
        series = series * small + 1.0 / power
    large = np.where(w < 0.1, 0.5, w)
    return np.where(w < 0.1, series * small**2, -np.log1p(-large) - large)


def _finish(value: FloatArray, alpha: FloatArray, valid: BoolArray) -> Any:
    result = np.where(valid & (alpha > 1.0), value, np.inf)
    return float(result) if result.ndim == 0 else result


def rdp_gauss_mix(alpha: npt.ArrayLike, gamma: float) -> Any:
    r"""Rényi divergence :math:`\varphi(\alpha; \gamma)` of one row of the Gaussian sketch.

    For rows of norm at most 1, gamma is a lower bound on :math:`\lambda_{\min}(X^\top X) +
    \sigma^2`; the value is ``inf`` unless ``gamma > 1`` and ``1 < alpha < gamma``.

    Paper: Proposition 2, :math:`\varphi = \frac{1}{2(\alpha-1)} [\alpha \log(1 - 1/\gamma) - \log(1
    - \alpha/\gamma)]`.
    """
    return _rank_two_bound(alpha, check_real("gamma", gamma, allow_inf=True), 0.0)


def rdp_fast_mix(alpha: npt.ArrayLike, gamma: float, row_bound_sq: float | None = None) -> Any:
    r"""Rényi divergence of one row of the FastMix sketch, for sketches with unit columns.

    It is :math:`\phi(\alpha; \gamma, C^2)` with ``row_bound_sq`` :math:`C^2 = 1 + 2 m`, or
    :math:`\bar\phi(\alpha; \gamma)` for every :math:`C^2`; gamma is a lower bound on
    :math:`(\lambda_{\min}(Z^\top Z) + \sigma^2) / C^2`. The value is ``inf`` outside
    :math:`1 < \alpha < \gamma/\bar\gamma`, :math:`\gamma > \bar\gamma`.

    Paper: Appendix C.1, the displays that define :math:`\phi` and :math:`\bar\phi`.
    Deviation: valid for unit columns only (docs/corrections.md), which sketches here guarantee.
    """
    gamma = check_real("gamma", gamma, allow_inf=True)
    if row_bound_sq is None:
        return _rank_two_bound(alpha, gamma, 1.0)
    c_sq = check_real("row_bound_sq", row_bound_sq, at_least=1.0, allow_inf=True)
    return _rank_two_bound(alpha, gamma, (1.0 / c_sq - 1.0) ** 2)


def _rank_two_bound(alpha: npt.ArrayLike, gamma: float, b: float) -> Any:
    r"""Evaluate :math:`\frac{1}{2(\alpha-1)}[\alpha\log(1-w(1)) - \log(1-w(\alpha))]`.

    Here :math:`w(a) = a/\gamma + b a^2/(4\gamma^2)` and ``b`` is :math:`((1 - C^2)/C^2)^2`: 0 for
    the Gaussian sketch, 1 for the uniform bound.
    """
    alpha = np.asarray(alpha, dtype=np.float64)
    nowhere = np.zeros(alpha.shape, dtype=bool)

    def w(order: FloatArray | float) -> FloatArray:
        return np.asarray(order / gamma + 0.25 * b * (order / gamma) * (order / gamma))

    if not (gamma > 1.0 and w(1.0) < 1.0):
        return _finish(np.zeros_like(alpha), alpha, nowhere)
    # Divergences do not decrease in the order, so an order next to 1, where the quotient is
    # rounding noise, takes the value of a slightly larger one.
    a = np.where(np.isfinite(alpha), np.maximum(alpha, 1.0 + 1e-6), np.inf)
    valid = np.isfinite(a) & (w(np.where(np.isfinite(a), a, 1.0)) < 1.0)
    a = np.where(valid, a, 1.0 + 1e-6)
    valid &= w(a) < 1.0
    # alpha log(1-w(1)) - log(1-w(alpha)) with the terms linear in alpha cancelled by hand.
    linear = 0.25 * b * (a / gamma) * ((a - 1.0) / gamma)
    bracket = linear + _excess(np.where(valid, w(a), 0.0)) - a * _excess(w(1.0))
    return _finish(np.maximum(bracket, 0.0) / (2.0 * (a - 1.0)), alpha, valid)


def rdp_fast_mix_sharp(alpha: npt.ArrayLike, gamma: float) -> Any:
    """Sharper Rényi divergence of one row of the FastMix sketch, for unit columns.

    It is the curve of the dense Gaussian sketch at the gamma of `rdp_fast_mix`.

    Paper: beyond it; never above the paper's phi (docs/proofs/sharp_lemma.md).
    Deviation: the linear and the quadratic term of phi are bounded together.
    """
    return rdp_gauss_mix(alpha, gamma)


def rdp_fast_mix_unbounded(alpha: npt.ArrayLike, gamma: float) -> Any:
    r"""Rényi divergence of one row of the FastMix sketch when nothing is known of :math:`C^2`.

    Here gamma is a lower bound on :math:`\lambda_{\min}(Z^\top Z) + \sigma^2`, not divided by
    :math:`C^2`; the value is ``inf`` unless it is above 1 and ``alpha < gamma / (2 sqrt(gamma) -
    1)``.

    Paper: Appendix C.2; equal to :math:`\varphi(\alpha; g)` with :math:`1/g = 2/\sqrt\gamma -
    1/\gamma` (Appendix D.2).
    Deviation: columns have norm 1 (docs/corrections.md).
    """
    gamma = check_real("gamma", gamma, allow_inf=True)
    return rdp_gauss_mix(alpha, unbounded_level(gamma) if gamma > 1.0 else 1.0)


def unbounded_level(gamma: float) -> float:
    r"""Return the g with :math:`1/g = 2/\sqrt\gamma - 1/\gamma`.

    Paper: Appendix D.2; docs/proofs/unbounded.md.
    """
    return gamma / (2.0 * math.sqrt(gamma) - 1.0) if math.isfinite(gamma) else math.inf


def rdp_gaussian(alpha: npt.ArrayLike, sigma: float, sensitivity: float = 1.0) -> Any:
    r"""Rényi divergence :math:`\alpha\, s^2 / (2 \sigma^2)` of the Gaussian mechanism.

    Paper: Lemma 7 (Mironov), for :math:`\ell_2` sensitivity s.
    """
    alpha = np.asarray(alpha, dtype=np.float64)
    sigma = check_real("sigma", sigma, above=0.0, allow_inf=True)
    sensitivity = check_real("sensitivity", sensitivity, at_least=0.0)
    valid = np.isfinite(alpha)
    ratio = sensitivity / sigma
    return _finish(np.where(valid, alpha, 0.0) * ratio * ratio / 2.0, alpha, valid)


def rdp_laplace(alpha: npt.ArrayLike, scale: float, sensitivity: float = 1.0) -> Any:
    r"""Rényi divergence of the Laplace mechanism; at order ``inf`` its pure-DP epsilon.

    With :math:`t` the :math:`\ell_1` sensitivity over the scale, it is
    :math:`\frac{1}{\alpha-1}\log[ \frac{\alpha}{2\alpha-1}e^{(\alpha-1)t} +
    \frac{\alpha-1}{2\alpha-1}e^{-\alpha t}]`.

    Paper: uses the pure guarantee :math:`t` only; this is Mironov (2017), Table II.
    """
    alpha = np.asarray(alpha, dtype=np.float64)
    t = check_real("sensitivity", sensitivity, at_least=0.0) / check_real("scale", scale, above=0.0)
    finite = np.isfinite(alpha) & (alpha > 1.0)
    a = np.where(finite, alpha, 2.0)
    # The bracket is 1 + p (e^{(a-1)t} - 1) + q (e^{-a t} - 1) with p + q = 1; for small t its
    # linear terms cancel (p (a-1) = q a), so they are left out of both factors.
    p, q = a / (2.0 * a - 1.0), (a - 1.0) / (2.0 * a - 1.0)
    up, down = (a - 1.0) * t, -a * t
    small, large = np.maximum(up, -down) < 1e-2, up > 1.0
    tiny = p * _expm1_minus(np.where(small, up, 0.0)) + q * _expm1_minus(np.where(small, down, 0.0))
    plain = p * np.expm1(np.where(large, 0.0, up)) + q * np.expm1(down)
    value = np.where(
        large,
        np.logaddexp(np.log(p) + up, np.log(q) + down),
        np.log1p(np.maximum(np.where(small, tiny, plain), 0.0)),
    ) / (a - 1.0)
    # By data processing, the divergence is at most the pure epsilon, in spite of rounding.
    value = np.where(np.isposinf(alpha), t, np.minimum(np.maximum(value, 0.0), t))
    return _finish(value, alpha, finite | np.isposinf(alpha))


def _expm1_minus(x: FloatArray) -> FloatArray:
    """Return e^x - 1 - x for abs(x) < 1e-2 without cancellation."""
    series = np.zeros_like(x)
    for term in range(9, 1, -1):
        series = (series * x / (term + 1)) + 1.0
    return np.asarray(series * x**2 / 2.0)
