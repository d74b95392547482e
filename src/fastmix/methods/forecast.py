"""What a planned fit is expected to give, from public sizes alone: a range."""

from dataclasses import dataclass

import numpy as np

from fastmix._types import FloatArray
from fastmix.methods.plan import Forecast, Method, Plan


@dataclass(frozen=True)
class Case:
    """Data that a forecast is made for.

    ``spread`` is the smallest over the largest eigenvalue of the Gram matrix: 1 for uncorrelated
    features that use their bounds fully, less for correlated ones and for bounds much wider than
    the data. ``size`` is the mean squared norm of the scaled rows, ``signal`` the mean square of
    the best predictions, of which every eigenvector explains the same part.
    """

    spread: float
    size: float
    signal: float

    def problem(self, n: int, columns: int) -> tuple[FloatArray, FloatArray]:
        """Return the eigenvalues and the squared coefficients in their eigenvectors."""
        values = np.geomspace(self.spread, 1.0, columns) if columns > 1 else np.ones(1)
        values *= n * self.size / values.sum()
        return values, self.signal * n / (values * columns)


#: The range of a forecast, set on six sets and tested on twelve others: docs/forecasts.md.
CASES = {
    "best": Case(spread=1.0, size=1.0, signal=0.03),
    "typical": Case(spread=3e-4, size=0.5, signal=0.03),
    "hard": Case(spread=1e-5, size=0.5, signal=0.3),
}


@dataclass(frozen=True)
class Outlook:
    """A range of excess risk on easy to hard data, for targets in [-1, 1].

    ``forecast`` is the one behind ``typical``.
    """

    low: float
    typical: float
    high: float
    forecast: Forecast


def outlook(method: Method, plan: Plan, n: int, columns: int) -> Outlook | None:
    """Return the range of what a planned fit is expected to give; None without a forecast.

    It goes from half of the least noise in any of the cases, for data with nothing to learn, to the
    largest error in any of them.
    """
    cases = {
        name: method.forecast(plan, n, *case.problem(n, columns)) for name, case in CASES.items()
    }
    known = {name: case for name, case in cases.items() if case is not None}
    if not known:
        return None
    return Outlook(
        low=min(case.noise_risk for case in known.values()) / 2.0,
        typical=known["typical"].excess_risk,
        high=max(case.excess_risk for case in known.values()),
        forecast=known["typical"],
    )
