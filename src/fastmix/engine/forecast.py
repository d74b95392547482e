"""What to expect of a planned fit, from public sizes: a range of errors, and warnings."""

import math
from dataclasses import dataclass

import numpy as np

from fastmix._types import FloatArray
from fastmix.engine.adaptive_plan import AdaptivePlan
from fastmix.engine.first_stage import ROOM, SQUARES, least_eigenvalue
from fastmix.engine.plan import Forecast, Method, Plan, Sizes, Target
from fastmix.errors import LowAccuracyWarning, WeakPrivacyWarning

#: Beyond this a guarantee says little: an attacker's odds may grow by a factor of e^10 = 22,000.
LARGEST_EPSILON = 10.0
#: A fit warns if it is expected to lose this share of what there is to learn.
MOST = 0.5
#: With a known spectrum, errors lie within this factor of their forecast.
FACTOR = 3.0


@dataclass(frozen=True)
class Case:
    """Data that a forecast is made for; every eigenvector explains the same part of the signal.

    The spread is 1 for uncorrelated features that use their bounds fully, less for correlated ones
    and for bounds much wider than the data.
    """

    spread: float  #: Smallest over largest eigenvalue of the Gram matrix.
    size: float  #: Mean squared norm of the scaled rows.
    signal: float  #: Mean square of the best predictions.
    limited: float = 0.0  #: Share of the signal that rows with limited gradients cost.

    def problem(self, n: int, columns: int) -> tuple[FloatArray, FloatArray]:
        """Return the eigenvalues and the squared coefficients in their eigenvectors."""
        values = np.geomspace(self.spread, 1.0, columns) if columns > 1 else np.ones(1)
        values *= n * self.size / values.sum()
        return values, self.signal * n / (values * columns)


#: The range of a forecast, set on six sets and tested on others: docs/forecasts.md. The limited
#: share is the largest that large tables of the six sets lose (protein), rounded.
CASES = {
    "best": Case(spread=1.0, size=1.0, signal=0.03),
    "typical": Case(spread=3e-4, size=0.5, signal=0.03),
    "hard": Case(spread=1e-5, size=0.5, signal=0.3, limited=0.005),
}


@dataclass(frozen=True)
class Outlook:
    """A range of excess risk on easy to hard data, for targets in [-1, 1].

    ``forecast`` is the one behind ``typical``, if it comes from a formula; ``nothing`` is the
    excess risk of a model without features on typical data.
    """

    low: float
    typical: float
    high: float
    forecast: Forecast | None
    nothing: float

    @property
    def lost(self) -> float:
        """Share of what a model could explain on typical data that privacy costs, at most 1."""
        return min(1.0, self.typical / self.nothing)


def outlook(
    method: Method,
    plan: Plan,
    n: int,
    columns: int,
    spectrum: tuple[FloatArray, FloatArray] | None = None,
) -> Outlook | None:
    """Return the range of errors that a planned fit is expected to have; None without a forecast.

    The range goes from half of the least noise in any of the cases, for data with nothing to learn,
    to the largest error in any of them. A known ``spectrum``, as `Case.problem` returns it,
    replaces the cases.
    """
    if spectrum is not None:
        known = method.forecast(plan, n, *spectrum)
        if known is None:
            return None
        risk, signal = known.excess_risk, float(spectrum[0] @ spectrum[1]) / n
        nothing = method.risk_of_nothing * signal
        return Outlook(risk / FACTOR, risk, FACTOR * risk, known, nothing)
    cases = {
        name: method.forecast(plan, n, *case.problem(n, columns)) for name, case in CASES.items()
    }
    found = {name: case for name, case in cases.items() if case is not None}
    if not found:
        return None
    return Outlook(
        low=min(case.noise_risk for case in found.values()) / 2.0,
        typical=found["typical"].excess_risk,
        high=max(
            case.excess_risk + method.risk_of_nothing * CASES[name].limited * CASES[name].signal
            for name, case in found.items()
        ),
        forecast=found["typical"],
        nothing=method.risk_of_nothing * CASES["typical"].signal,
    )


def weak_guarantee(epsilon: float, delta: float, n: int, unit: str = "rows") -> list[str]:
    """Return why a guarantee protects little, if it does."""
    found = []
    if epsilon > LARGEST_EPSILON:
        found.append(
            f"epsilon={epsilon:g} protects hardly anyone: the odds that someone assigns to a fact "
            f"about a person may change by a factor of e^{epsilon:g}. Use a smaller "
            f"epsilon: values up to 1 are strong, values above {LARGEST_EPSILON:g} are weak."
        )
    if n > 1 and delta >= 1.0 / n:
        found.append(
            f"delta={delta:g} is not below 1/n for n={n:,} {unit}: a method that publishes whole "
            "records of some people would meet this guarantee. Use a delta far below 1/n; the "
            "default is 1/n^2."
        )
    return found


def concerns(
    method: Method, plan: Plan, sizes: Sizes, target: Target
) -> list[tuple[type[Warning], str]]:
    """Return the warnings of a fit, each with its class, from public quantities only."""
    if not plan.is_private:
        return []
    n, d, unit = sizes.n, sizes.d, sizes.population.units
    weak = weak_guarantee(target.epsilon, target.delta, n, unit)
    poor = []
    expected = outlook(method, plan, n, d)
    if expected is not None and expected.lost >= MOST:
        noun = "column" if d == 1 else "columns"
        part = "all" if expected.lost >= 1.0 else f"about {expected.lost:.0%}"
        poor.append(
            f"n={n:,} {unit} are too few for {d} {noun} (counting the intercept) at "
            f"epsilon={target.epsilon:g}: on typical data, privacy costs {part} of what a model "
            f"could explain. Use more {unit}, fewer columns or a larger epsilon; see "
            "'fastmix plan'."
        )
    poor += method.cautions(plan, d)
    return [
        *((WeakPrivacyWarning, message) for message in weak),
        *((LowAccuracyWarning, message) for message in poor),
    ]


def adaptive_forecast(
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
