"""What to expect of a planned fit, from public sizes: a range, and warnings before a charge."""

import warnings
from dataclasses import dataclass

import numpy as np

from fastmix._types import FloatArray
from fastmix.errors import LowAccuracyWarning, WeakPrivacyWarning
from fastmix.methods.levels import least_rows
from fastmix.methods.plan import Forecast, Method, Plan, Sizes, Target

#: Beyond this a guarantee says little: an attacker's odds may grow by a factor of e^10 = 22,000.
LARGEST_EPSILON = 10.0
#: Variance of a scaled target that is typical: a standard deviation of a third of its scale.
TARGET_VARIANCE = 1.0 / 9.0
#: A fit that is expected to lose this part of what there is to learn is worth a warning.
MOST = 0.5
#: Longest step of gradient descent that is stable whatever the data: rows have norm 1 at most.
LONGEST_STEP = 2.0


@dataclass(frozen=True)
class Case:
    """Data that a forecast is made for; every eigenvector explains the same part of the signal.

    The spread is 1 for uncorrelated features that use their bounds fully, less for correlated ones
    and for bounds much wider than the data.
    """

    spread: float  #: Smallest over largest eigenvalue of the Gram matrix.
    size: float  #: Mean squared norm of the scaled rows.
    signal: float  #: Mean square of the best predictions.

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

    ``forecast`` is the one behind ``typical``; ``nothing`` is the excess risk of a model without
    features on such data.
    """

    low: float
    typical: float
    high: float
    forecast: Forecast
    nothing: float = CASES["typical"].signal


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
        nothing=method.risk_of_nothing * CASES["typical"].signal,
    )


def concerns(
    epsilon: float,
    delta: float,
    n: int,
    columns: int,
    expected: Outlook | None,
    unit: str = "rows",
) -> list[tuple[type[Warning], str]]:
    """Return what is worth a warning in public quantities, each with its class."""
    found: list[tuple[type[Warning], str]] = []
    if epsilon > LARGEST_EPSILON:
        message = (
            f"epsilon={epsilon:g} protects hardly anyone: the odds that someone assigns to a fact "
            f"about a person may change by a factor of e^{epsilon:g}. Use a smaller "
            f"epsilon: values up to 1 are strong, values above {LARGEST_EPSILON:g} are weak."
        )
        found.append((WeakPrivacyWarning, message))
    if n > 1 and delta >= 1.0 / n:
        message = (
            f"delta={delta:g} is not below 1/n for n={n:,} {unit}: a method that publishes whole "
            "records of some people would meet this guarantee. Use a delta far below 1/n; the "
            "default is 1/n^2."
        )
        found.append((WeakPrivacyWarning, message))
    lost = 0.0 if expected is None else expected.typical / expected.nothing
    if lost >= MOST:
        noun = "column" if columns == 1 else "columns"
        part = "all" if lost >= 1.0 else f"about {lost:.0%}"
        message = (
            f"n={n:,} {unit} are too few for {columns} {noun} (counting the intercept) at "
            f"epsilon={epsilon:g}: on typical data, privacy costs {part} of what a model could "
            f"explain. Use more {unit}, fewer columns or a larger epsilon; see "
            "'fastmix plan'."
        )
        found.append((LowAccuracyWarning, message))
    return found


def advise(method: Method, plan: Plan, sizes: Sizes, target: Target) -> None:
    """Warn of a weak guarantee or a useless fit, before anything is charged."""
    if not plan.is_private:
        return
    expected = outlook(method, plan, sizes.n, sizes.d)
    found = concerns(target.epsilon, target.delta, sizes.n, sizes.d, expected)
    rows = getattr(plan, "k1", getattr(plan, "k", 0))
    least = least_rows(sizes.d, fresh=True)
    if getattr(method, "variant", "") == "paper" and rows < least:
        message = (
            f"gaussian_size={rows} is below {least} for {sizes.d} columns (counting the "
            "intercept): the steps of variant='paper' may diverge."
        )
        found.append((LowAccuracyWarning, message))
    rate = getattr(method, "learning_rate", 0.0)
    if rate > LONGEST_STEP:
        message = (
            f"learning_rate={rate:g} is above {LONGEST_STEP:g}: steps may diverge, unless all "
            "eigenvalues of the mean Gram matrix of the scaled rows are below "
            f"{LONGEST_STEP / rate:.2g}."
        )
        found.append((LowAccuracyWarning, message))
    for category, message in found:
        warnings.warn(message, category, stacklevel=5)  # the caller of `fit`
