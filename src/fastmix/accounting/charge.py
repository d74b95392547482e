"""Charges of a budget: what they are, and how a ledger holds them."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import uuid4

from fastmix._validation import check_probability, check_real, type_error
from fastmix.accounting.account import PrivacySpent
from fastmix.accounting.events import GaussianEvent, LaplaceEvent, PrivacyEvent, SketchEvent
from fastmix.accounting.filters import DeclaredFilter, Filter, GaussianFilter, filter_from_dict
from fastmix.accounting.ledger import OpenLedger, plain


class Spent(NamedTuple):
    """What all charges count together, by the budget's rule."""

    epsilon: float
    delta: float


class Remaining(Spent):
    """The epsilon that is left for one more release, and the delta at which it is counted."""


class Charge(NamedTuple):
    """One entry of the ledger; ``leaks`` are the reasons why its guarantee is void, if it is."""

    label: str
    spent: PrivacySpent
    time: str = ""
    leaks: tuple[str, ...] = ()


def check_spent(spent: PrivacySpent) -> PrivacySpent:
    """Return ``spent`` if it is an account."""
    if not isinstance(spent, PrivacySpent):
        raise type_error("spent", "be a PrivacySpent", spent)
    return spent


def read_rule(ledger: OpenLedger) -> Filter:
    """Return the rule of a ledger, with the budget that it was made for."""
    try:
        epsilon, delta = ledger.budget["epsilon"], ledger.budget["delta"]
        return filter_from_dict(
            ledger.budget["rule"],
            check_real("epsilon", epsilon, above=0.0, allow_inf=True),
            check_probability("delta", delta),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ledger.damaged(2) from error


def read_charges(ledger: OpenLedger) -> tuple[Charge, ...]:
    """Return the charges of a ledger in order."""
    charges = []
    for line, record in enumerate(ledger.charges, start=3):
        try:
            charges.append(
                Charge(
                    str(record["label"]),
                    PrivacySpent.from_dict(record["spent"]),
                    str(record["time"]),
                    tuple(map(str, record["leaks"])),
                )
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ledger.damaged(line) from error
    return tuple(charges)


def record_of(charge: Charge) -> dict[str, Any]:
    """Return a charge as a ledger keeps it; refuse one that would be read as another."""
    spent = charge.spent.to_dict()
    if PrivacySpent.from_dict(json.loads(json.dumps(spent, default=plain))) != charge.spent:
        raise type_error("spent", "hold events of this package, and strings for names", spent)
    return {
        "id": uuid4().hex,
        "label": charge.label,
        "time": charge.time,
        "leaks": list(charge.leaks),
        "spent": spent,
    }


def merged(events: Iterable[PrivacyEvent]) -> Iterator[PrivacyEvent]:
    """Join equal events: the same curve, and a long list of like fits stays quick."""
    for event, times in Counter(events).items():
        if isinstance(event, GaussianEvent | LaplaceEvent):
            yield replace(event, count=times * event.count)
        elif isinstance(event, SketchEvent):
            yield replace(event, rows=times * event.rows)
        else:
            yield from [event] * times


def obstacle(rule: Filter, asked: float, total: float) -> str:
    """Say why a charge of ``asked``, ``total`` with the others, is refused, and what to do."""
    if math.isfinite(total):
        return (
            f"with it the total would be epsilon={total:.10g} at delta={rule.delta:.10g} by the "
            f"rule {rule.rule!r}. Choose a smaller epsilon; 'fastmix ledger show' and remaining() "
            "tell what is left."
        )
    if math.isinf(asked):
        return "the fit itself guarantees no finite epsilon. Give it more noise."
    if isinstance(rule, DeclaredFilter):
        return (
            "it is not on the declared list, or was already fitted as often as the list says. "
            "Charge it to the budget itself."
        )
    if isinstance(rule, GaussianFilter):
        return (
            "the rule 'gaussian' covers Gaussian releases only. Use AdaSSP or DPGradientDescent, "
            "or a budget with the rule 'renyi'."
        )
    return (
        f"the deltas of all fits together would exceed what the rule {rule.rule!r} allows. Choose "
        "a smaller delta for the fit."
    )
