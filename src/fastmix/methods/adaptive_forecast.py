"""What an adaptive fit is expected to give, from public sizes and a guess at the spectrum."""

import math

from fastmix._types import FloatArray
from fastmix.methods.adaptive_plan import AdaptivePlan
from fastmix.methods.first_stage import ROOM, SQUARES, least_eigenvalue
from fastmix.methods.plan import Forecast


def expected(
    plan: AdaptivePlan,
    n: int,
    eigenvalues: FloatArray,
    theta_squared: FloatArray,
    *,
    level: float,
    ridge: float,
    curvature: float = 1.0,
    reached: float = 1.0,
    missed: float = 0.0,
    limited: float = 0.0,
    unit: float = 1.0,
) -> Forecast:
    r"""Return the mean square by which predictions are off, times ``unit``: noise, and bias.

    A row has the mean ``curvature``, and a share of the rows is ``reached``. The noise of
    gradients has the standard deviation :math:`L/\mu`; the ridge keeps a share of what the centre
    of the objective misses, which is at least the share ``missed`` of the signal. Rows whose
    gradients are limited cost the share ``limited`` of the signal, however small the noise is.
    """
    d, noise = len(eigenvalues), level / plan.mu
    hidden = SQUARES * n / d
    if plan.moment_sigma is not None:
        floor = least_eigenvalue(plan.moment_sigma, d + 1)
        hidden = floor * min(1.0, ROOM * (d + 1) * floor / n) ** (plan.n_rounds - 1)
    seen = reached * n * eigenvalues / (eigenvalues + hidden)
    bent = curvature * seen
    left = ridge / (bent + ridge)
    if plan.n_rounds:
        left = left * (hidden / (eigenvalues + hidden) + math.sqrt(missed))
    bias = float(eigenvalues @ ((left**2 + limited) * theta_squared)) / n
    return Forecast(
        eta=math.sqrt(ridge),
        gradient_noise=noise,
        noise_risk=unit * noise**2 * float((seen / (bent + ridge) ** 2).sum()) / n,
        bias_risk=unit * bias,
    )
