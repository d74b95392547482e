"""What a forecast means, by the family of the model."""

import math
from dataclasses import dataclass

from fastmix._validation import check_choice, check_integer, check_probability, value_error
from fastmix.methods import (
    METHODS,
    HuberObjective,
    LogisticObjective,
    Method,
    QuantileObjective,
    choose_method,
)
from fastmix.methods.forecast import Outlook
from fastmix.methods.robust import DENSITY, TYPICAL
from fastmix.planning.people import size_in_words

FAMILIES = ("linear", "logistic", "quantile", "huber")


@dataclass(frozen=True)
class Family:
    """A family of models, with the parameters that its forecast depends on."""

    name: str = "linear"
    n_classes: int = 2
    quantile: float = 0.5

    def __post_init__(self) -> None:
        check_choice("family", self.name, FAMILIES)
        check_integer("n_classes", self.n_classes, at_least=2, at_most=1000)
        check_probability("quantile", self.quantile)
        if self.n_classes != 2 and self.name != "logistic":
            raise value_error("n_classes", "be 2 unless family is logistic", self.n_classes)
        if self.quantile != 0.5 and self.name != "quantile":
            raise value_error("quantile", "be 0.5 unless family is quantile", self.quantile)

    @property
    def title(self) -> str:
        """The model in words."""
        return {
            "linear": "private regression",
            "logistic": "private logistic regression",
            "quantile": f"private regression of the {self.quantile:g} quantile",
            "huber": "private robust regression",
        }[self.name]

    @property
    def measure(self) -> str:
        """What a forecast is of."""
        return {"logistic": "excess log-loss", "quantile": "excess pinball loss"}.get(
            self.name, "excess risk"
        )

    @property
    def reference(self) -> str:
        """The fit without privacy, which errors are beyond."""
        return "least squares" if self.name == "linear" else "the fit without privacy"

    def chosen(self, method: str, columns: int) -> tuple[str, str]:
        """Return the name of the method for so many columns, and why it is that one."""
        if self.name != "linear":
            if method not in ("auto", self.name):
                raise value_error("method", "be 'auto' for a family other than linear", method)
            return self.name, f"{self.name}: the method of this family."
        return choose_method(columns) if method == "auto" else (method, f"{method}: asked for.")

    def method(self, name: str) -> Method:
        """Return a method by its name, with the parameters of the family."""
        if self.name == "logistic":
            return LogisticObjective(n_classes=self.n_classes)
        if self.name == "quantile":
            return QuantileObjective(quantile=self.quantile)
        return HuberObjective() if self.name == "huber" else METHODS[name]()

    def error(self, risk: float, half: float) -> float:
        """Return an excess risk as an error, for targets in bounds of so much half width."""
        if self.name == "logistic":
            return risk
        return half * (risk if self.name == "quantile" else math.sqrt(risk))

    def points(self, risk: float) -> float:
        r"""Return the percentage points by which what is predicted is off, at most.

        Of probabilities p and q, Pinsker's inequality says that the excess log-loss is at least
        :math:`2(p - q)^2`; this is for two classes. A quantile that is off by :math:`\Delta` has an
        excess pinball loss of :math:`f \Delta^2/2` for the density f of residuals, and
        :math:`f \Delta` more or fewer rows below.
        """
        if self.name == "quantile":
            return 100.0 * min(1.0, math.sqrt(2.0 * risk * DENSITY / TYPICAL))
        return 100.0 * min(1.0, math.sqrt(risk / 2.0))

    def in_points(self, risk: float) -> str:
        """Say what an excess risk means in percentage points; nothing for errors in units."""
        if self.name not in ("logistic", "quantile"):
            return ""
        off = f"{self.points(risk):.2g} percentage points"
        if self.name == "quantile":
            return f"The share of rows below the fitted quantile is then off by at most {off}."
        return (
            f"Predicted probabilities are then off by at most {off} (root mean square, if the "
            "logistic model is right), and accuracy falls by at most twice as many, usually by "
            "far less."
        )

    def meaning(self, at: Outlook, method: str) -> str:
        """Say what an excess log-loss or pinball loss means for predictions."""
        lost = [min(1.0, risk / at.nothing) for risk in (at.typical, at.low, at.high)]
        what = "log-loss" if self.name == "logistic" else "pinball loss"
        scaled = "" if self.name == "logistic" else ", for a target scaled to [-1, 1] by its bounds"
        return (
            f"{self.measure.capitalize()} is what privacy adds to the mean {what}{scaled}. On "
            f"typical data a model lowers the {what} by {at.nothing:.2g} against one without "
            f"features; {method} loses about {lost[0]:.2g} of that: between {lost[1]:.1g} "
            "(uncorrelated features that fill their bounds) and "
            f"{lost[2]:.1g} (strongly correlated features, or bounds much wider than the data). "
            "At 1, the fit is of no use. " + self.in_points(at.typical)
        )


class Described:
    """What a plan and a dry run say alike: of which family they are, and for which table."""

    n: int
    n_persons: int | None
    family: str
    n_classes: int
    quantile: float

    @property
    def _family(self) -> Family:
        return Family(self.family, self.n_classes, self.quantile)

    @property
    def size(self) -> str:
        """The number of rows in words, and of the persons whose rows they are."""
        return size_in_words(self.n, self.n_persons)
