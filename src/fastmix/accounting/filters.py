"""Rules by which a budget decides, charge by charge, whether a further release still fits.

A later release may be chosen after looking at earlier ones, so a rule must be a *filter*: it fixes
everything that it optimises over before the first release (docs/proofs/filters.md).
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from fastmix._validation import check_choice, check_real, value_error
from fastmix.accounting.account import PrivacySpent
from fastmix.accounting.events import ComposedEvent, GaussianEvent, PrivacyEvent
from fastmix.accounting.gaussian import gaussian_epsilon, gaussian_sigma

#: Relative slack when a total is compared with the budget: accounts are rounded up by up to 1e-10.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Filter(ABC):
    """A rule with its constants; ``epsilon`` and ``delta`` are those of the budget."""

    epsilon: float
    delta: float
    rule: ClassVar[str]

    @property
    def refusal(self) -> str:
        """Why the rule refuses charges that it would allow one by one, and what to do."""
        return (
            f"the deltas of all fits together would exceed what the rule {self.rule!r} allows. "
            "Choose a smaller delta for the fit."
        )

    @abstractmethod
    def total(self, charges: Sequence[PrivacySpent]) -> float:
        """Return the epsilon of these charges by the rule; ``inf`` if it bounds none."""

    @abstractmethod
    def remaining(self, charges: Sequence[PrivacySpent]) -> float:
        """Return the epsilon of the largest single Gaussian release that would still fit."""

    def lists(self, spent: PrivacySpent) -> bool:
        """Whether the rule covers a charge with this account."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the rule and its constants as plain JSON types."""
        _, _, *constants = fields(self)
        return {"rule": self.rule} | {each.name: getattr(self, each.name) for each in constants}


def fits(rule: Filter, charges: Sequence[PrivacySpent]) -> bool:
    """Whether these charges are within the budget by its rule."""
    return rule.total(charges) <= rule.epsilon * (1.0 + TOLERANCE)


@dataclass(frozen=True)
class BasicFilter(Filter):
    """Epsilons add up, while the sum of the deltas is within the budget's."""

    rule = "basic"

    def total(self, charges: Sequence[PrivacySpent]) -> float:
        if math.fsum(spent.delta for spent in charges) > self.delta * (1.0 + TOLERANCE):
            return math.inf
        return math.fsum(spent.epsilon for spent in charges)

    def remaining(self, charges: Sequence[PrivacySpent]) -> float:
        return max(0.0, self.epsilon - self.total(charges))


@dataclass(frozen=True)
class GaussianFilter(Filter):
    """Squared ratios of Gaussian releases add up; a release of another kind is infinite.

    Paper: beyond it (Smith and Thakurta, 2022; docs/proofs/filters.md).
    """

    rule = "gaussian"
    refusal = (
        "the rule 'gaussian' covers Gaussian releases only. Use IHM, AdaSSP or DPGradientDescent, "
        "or a budget with the rule 'renyi'."
    )

    def total(self, charges: Sequence[PrivacySpent]) -> float:
        together = _profile_epsilon(_mu_squared(_events(charges)), self.delta)
        return min(together, _alone(charges, self.delta))

    def remaining(self, charges: Sequence[PrivacySpent]) -> float:
        limit = gaussian_sigma(self.epsilon, self.delta) ** -2
        return _profile_epsilon(limit - _mu_squared(_events(charges)), self.delta)


@dataclass(frozen=True)
class RenyiFilter(Filter):
    """The Rényi curve at one fixed order adds up; a release may fit by basic composition instead.

    ``conversion``, ``tails`` and ``basic`` are shares of delta: for converting the curve at its
    order, for rare events, and for the deltas of basic composition.

    Paper: Proposition 1 at one order.
    Deviation: a filter (Feldman and Zrnic, 2021; docs/proofs/filters.md).
    """

    order: float
    conversion: float
    tails: float
    basic: float
    rule = "renyi"

    def __post_init__(self) -> None:
        check_real("order", self.order, above=1.0)
        shares = (self.conversion, self.tails, self.basic)
        for share in shares:
            check_real("shares of delta", share, at_least=0.0)
        if not (self.conversion > 0.0 and math.fsum(shares) <= 1.0 + TOLERANCE):
            raise value_error("shares of delta", "add up to at most 1", shares)

    def total(self, charges: Sequence[PrivacySpent]) -> float:
        together = self._curve(charges) + self._overhead
        return max(0.0, min(together, self._basic.total(charges), _alone(charges, self.delta)))

    def remaining(self, charges: Sequence[PrivacySpent]) -> float:
        left = self.epsilon - self._overhead - self._curve(charges)
        by_curve = _profile_epsilon(2.0 * left / self.order, self.delta)
        return min(self.epsilon, max(by_curve, self._basic.remaining(charges)))

    @property
    def _basic(self) -> BasicFilter:
        return BasicFilter(self.epsilon, self.basic * self.delta)

    @property
    def _overhead(self) -> float:
        """Epsilon that Proposition 1 adds to the Rényi divergence at the fixed order."""
        return float(_conversion(np.asarray(self.order), self.conversion * self.delta))

    def _curve(self, charges: Sequence[PrivacySpent]) -> float:
        """Return the sum of the curves, ``inf`` if rare events exceed their share."""
        if math.fsum(spent.tail for spent in charges) > self.tails * self.delta * (1 + TOLERANCE):
            return math.inf
        return math.fsum(_renyi(spent, self.order) for spent in charges)


@dataclass(frozen=True)
class DeclaredFilter(Filter):
    """Fits that were declared together and paid for as one: each of them once, nothing else."""

    fits: tuple[PrivacySpent, ...]
    #: The order of the budget that paid for them.
    order: float | None = None
    rule = "declared"
    refusal = (
        "it is not on the declared list, or was already fitted as often as the list says. Charge "
        "it to the budget itself."
    )

    def total(self, charges: Sequence[PrivacySpent]) -> float:
        if Counter(charges) - Counter(self.fits):
            return math.inf
        return self.epsilon if charges else 0.0

    def remaining(self, charges: Sequence[PrivacySpent]) -> float:
        return self.epsilon if len(charges) < len(self.fits) else 0.0

    def lists(self, spent: PrivacySpent) -> bool:
        return spent in self.fits

    def to_dict(self) -> dict[str, Any]:
        fits = [spent.to_dict() for spent in self.fits]
        return {"rule": self.rule, "fits": fits, "order": self.order}


_KINDS: dict[str, Callable[..., Filter]] = {
    kind.rule: kind for kind in (RenyiFilter, GaussianFilter, BasicFilter, DeclaredFilter)
}
#: Rules that a user can ask for.
RULES = (RenyiFilter.rule, GaussianFilter.rule, BasicFilter.rule)

#: Shares of delta of a new Rényi filter. A fit's rare events have a twentieth of its delta at most.
_SHARES = {"conversion": 0.75, "tails": 0.1, "basic": 0.15}


def make_filter(rule: str, epsilon: float, delta: float) -> Filter:
    """Return a rule for a new budget."""
    if check_choice("rule", rule, RULES) == RenyiFilter.rule:
        return RenyiFilter(epsilon, delta, order=_best_order(epsilon, delta), **_SHARES)
    return _KINDS[rule](epsilon, delta)


def filter_from_dict(data: dict[str, Any], epsilon: float, delta: float) -> Filter:
    """Rebuild a rule from what `Filter.to_dict` returned."""
    constants = dict(data)
    rule = check_choice("rule", constants.pop("rule", None), tuple(_KINDS))
    if rule == DeclaredFilter.rule:
        constants["fits"] = tuple(map(PrivacySpent.from_dict, constants["fits"]))
    return _KINDS[rule](epsilon, delta, **constants)


def _alone(charges: Sequence[PrivacySpent], delta: float) -> float:
    """Return the epsilon of the first charge alone; ``inf`` if there are others.

    Nothing was released before it, so it may use the whole budget; then no other charge fits.
    """
    if len(charges) != 1 or charges[0].delta > delta * (1.0 + TOLERANCE):
        return math.inf
    return charges[0].epsilon


def _best_order(epsilon: float, delta: float) -> float:
    r"""Return the order at which the budget takes the most Gaussian releases.

    Their curve is :math:`\alpha \mu^2 / 2`, so the order maximises :math:`(\epsilon -
    c(\alpha)) / \alpha`, where c is what the conversion adds.
    """
    # A budget without a limit, which only records charges, gets the order of a large budget.
    target = min(epsilon, 100.0)
    shift = np.logspace(-6.0, 9.0, 1501)
    for _ in range(3):
        share = (target - _conversion(1.0 + shift, _SHARES["conversion"] * delta)) / (1.0 + shift)
        at = int(share.argmax())
        low, high = shift[max(at - 1, 0)], shift[min(at + 1, shift.size - 1)]
        best = float(shift[at])
        shift = np.geomspace(low, high, 101)
    return 1.0 + best


def _conversion(order: Any, delta: float) -> Any:
    r"""Return :math:`\log(1 - 1/\alpha) - \log(\alpha\delta)/(\alpha - 1)` of Proposition 1."""
    return np.log1p(-1.0 / order) - (np.log(order) + math.log(delta)) / (order - 1.0)


def _profile_epsilon(mu_squared: float, delta: float) -> float:
    """Return the epsilon of a Gaussian release; 0 for none, ``inf`` for no noise."""
    if mu_squared <= 0.0:
        return 0.0
    return gaussian_epsilon(mu_squared**-0.5, delta) if mu_squared < 1e12 else math.inf


def _events(charges: Sequence[PrivacySpent]) -> ComposedEvent:
    return ComposedEvent(event for spent in charges for event in spent.events)


def _mu_squared(event: PrivacyEvent) -> float:
    """Return the squared ratio of a Gaussian release, ``inf`` for any other release."""
    if isinstance(event, GaussianEvent):
        return event.mu_squared
    if isinstance(event, ComposedEvent):
        return math.fsum(map(_mu_squared, event.events))
    return math.inf


@lru_cache(maxsize=4096)
def _renyi(spent: PrivacySpent, order: float) -> float:
    """Return the curve at the order, ``inf`` where it is not a number."""
    value = float(spent.rdp(order))
    return math.inf if math.isnan(value) else value
