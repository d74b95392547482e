"""Charges of a budget, and how a ledger stores them."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import uuid4

from fastmix._validation import (
    check_bool,
    check_integer,
    check_probability,
    check_real,
    type_error,
    value_error,
)
from fastmix.accounting.account import PrivacySpent
from fastmix.accounting.events import GaussianEvent, LaplaceEvent, PrivacyEvent, SketchEvent
from fastmix.accounting.filters import Filter, filter_from_dict, fits
from fastmix.accounting.ledger import OpenLedger, plain
from fastmix.errors import BudgetError

#: How a refusal ends.
NOTHING_CHARGED = "Nothing was charged and no noise was drawn."
#: Units that a budget may protect: persons only, or the unit of each fit.
UNITS = (None, "person")
#: Warning of a ledger in which charges for one table protect rows, and others persons.
MIXED_PERSONS = (
    "This ledger charges fits that protect single rows and fits that protect persons with several "
    "rows, for what may be the same table. Its total protects single rows only. To protect "
    "persons, charge only fits with groups (--person) to it."
)
#: Warning of a ledger in which some charges for one table hide the number of rows.
MIXED_ROWS = (
    "This ledger charges fits with a public number of rows and fits that hide it, for what may be "
    "the same table. Its total does not hide the number of rows. To hide it, charge only fits "
    "with public_rows=False (--private-rows) to it."
)


#: How a budget for persons refuses a fit for rows.
ROWS_REFUSED = (
    "This budget protects persons (unit='person'), and the fit protects single rows: a person with "
    "several rows would get less protection than the budget states. Pass groups and "
    "max_rows_per_group (--person and --max-rows). If every person has one row in this table, fit "
    "inside 'with fastmix.accounting.one_row_per_person():', or pass --max-rows 1. For fits that "
    "protect rows, use another ledger."
)
#: Whether the caller states that tables have one row per person.
_ONE_ROW: ContextVar[bool] = ContextVar("fastmix_one_row_per_person", default=False)


@contextmanager
def one_row_per_person() -> Iterator[None]:
    """Charge fits of single rows in this block as fits of persons with one row each.

    Open the block only if no person has several rows in the tables that are fitted in it: a fit
    that protects rows then protects persons. The ledger notes that the caller stated this.

    Examples
    --------
    >>> from fastmix import BudgetAccountant
    >>> from fastmix.accounting import LaplaceEvent, Part, PrivacySpent, one_row_per_person
    >>> budget = BudgetAccountant(1.0, 1e-6, unit="person")
    >>> with one_row_per_person():
    ...     budget.spend(PrivacySpent([Part("mean", [LaplaceEvent(4.0)], 0.0)]), label="mean")
    >>> budget.charges[0].rows_per_person
    1
    """
    token = _ONE_ROW.set(True)
    try:
        yield
    finally:
        _ONE_ROW.reset(token)


def check_unit(unit: object) -> None:
    """Refuse anything but "person" and None as the unit of a budget."""
    if unit not in UNITS:
        raise value_error("unit", "be 'person' or None", unit)


def charged_unit(unit: str | None, charge: "Charge") -> "Charge":
    """Return the charge in the form that a budget for this unit accepts, or refuse it."""
    if charge.rows_per_person is not None:
        return charge
    if _ONE_ROW.get():
        notes = (*charge.notes, ("stated", "one row per person"))
        return charge._replace(rows_per_person=1, notes=notes)
    if unit == "person":
        raise BudgetError(f"{ROWS_REFUSED} {NOTHING_CHARGED}")
    return charge


class Total(NamedTuple):
    """An epsilon, spent or left, and the delta at which the budget's rule counts it."""

    epsilon: float
    delta: float


class Left(Total):
    """An epsilon that is left, which says for which kind of fit."""

    __slots__ = ()

    def __repr__(self) -> str:
        return (
            f"epsilon {self.epsilon:.6g} at delta {self.delta:.3g}, for one more fit of IHM, "
            "FastIHM or AdaSSP; a default fit gets a little less"
        )


class Charge(NamedTuple):
    """One entry of the ledger; ``leaks`` are the reasons why its guarantee is void, if it is.

    ``notes`` say what the charge was for: pairs of "file", "target" or "model" and a name.
    ``rows_per_person`` is None if the charge protects single rows, and otherwise how many rows of a
    person count at most; ``public_rows`` is False if it hides the number of rows.
    """

    label: str
    spent: PrivacySpent
    time: str = ""
    leaks: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    rows_per_person: int | None = None
    public_rows: bool = True

    @property
    def persons(self) -> bool:
        """Whether it protects persons with several rows."""
        return self.rows_per_person is not None


def mixed(charges: Iterable[Charge]) -> tuple[str, ...]:
    """Return remarks on charges that protect different units of the same table, by its file."""
    files: dict[str | None, list[Charge]] = {}
    for charge in charges:
        files.setdefault(dict(charge.notes).get("file"), []).append(charge)
    persons = any(len({each.persons for each in same}) > 1 for same in files.values())
    rows = any(len({each.public_rows for each in same}) > 1 for same in files.values())
    said = {MIXED_PERSONS: persons, MIXED_ROWS: rows}
    return tuple(message for message, holds in said.items() if holds)


def check_units(rows_per_person: int | None, public_rows: bool) -> tuple[int | None, bool]:
    """Return the units that a charge protects, checked."""
    if rows_per_person is not None:
        rows_per_person = check_integer("rows_per_person", rows_per_person, at_least=1)
    check_bool("public_rows", public_rows)
    return rows_per_person, bool(public_rows)


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


def read_unit(ledger: OpenLedger) -> str | None:
    """Return "person" for a ledger that takes fits for persons only, None for any other."""
    unit = ledger.budget.get("unit")
    if unit not in UNITS:
        raise ledger.damaged(2)
    return unit


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
                    tuple((str(k), str(v)) for k, v in record.get("notes", {}).items()),
                    *check_units(record.get("rows_per_person"), record.get("public_rows", True)),
                )
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ledger.damaged(line) from error
    return tuple(charges)


def record_of(charge: Charge) -> dict[str, Any]:
    """Return a charge as a ledger stores it; refuse one that would be read back differently."""
    spent = charge.spent.to_dict()
    if PrivacySpent.from_dict(json.loads(json.dumps(spent, default=plain))) != charge.spent:
        raise type_error("spent", "hold events of this package, and strings for names", spent)
    return {
        "id": uuid4().hex,
        "label": charge.label,
        "time": charge.time,
        "leaks": list(charge.leaks),
        **({"notes": dict(charge.notes)} if charge.notes else {}),
        **({"rows_per_person": charge.rows_per_person} if charge.persons else {}),
        **({} if charge.public_rows else {"public_rows": False}),
        "spent": spent,
    }


def merged(events: Iterable[PrivacyEvent]) -> Iterator[PrivacyEvent]:
    """Join equal events with the same account, so that long lists of similar fits stay fast.

    Equal fast sketches stay apart: the exact account of one sketch does not hold for the rows of
    two (docs/proofs/fast_account.md).
    """
    for event, times in Counter(events).items():
        if isinstance(event, GaussianEvent | LaplaceEvent):
            yield replace(event, count=times * event.count)
        elif isinstance(event, SketchEvent) and event.bound in ("gauss_mix", "fast_mix"):
            yield replace(event, rows=times * event.rows)
        else:
            yield from [event] * times


def total_of(rule: Filter, charges: Sequence[Charge]) -> float:
    """Return the epsilon of charges together, by a rule; infinite if one has no guarantee."""
    if any(charge.leaks for charge in charges):
        return math.inf
    return rule.total([charge.spent for charge in charges])


def left_of(rule: Filter, charges: Sequence[Charge]) -> float:
    """Return the epsilon of the largest Gaussian release that still fits after these charges."""
    if math.isinf(rule.epsilon):
        return math.inf
    if math.isinf(total_of(rule, charges)):
        return 0.0
    return rule.remaining([charge.spent for charge in charges])


def check_covered(rule: Filter, charge: Charge, charges: Sequence[Charge]) -> None:
    """Raise `BudgetError` if a budget does not cover a charge after the others."""
    if math.isinf(rule.epsilon):
        return
    if charge.leaks:
        raise BudgetError(
            "A budget of finite epsilon cannot cover this fit, because its guarantee is void: "
            f"{'; '.join(charge.leaks)}. {NOTHING_CHARGED} A budget with epsilon=inf only "
            "records, and takes such a fit."
        )
    after = [*(each.spent for each in charges), charge.spent]
    if not (charge.spent.epsilon < math.inf and fits(rule, after)):
        raise BudgetError(f"{_refusal(rule, after)} {NOTHING_CHARGED}")


def _refusal(rule: Filter, spent: list[PrivacySpent]) -> str:
    """Return why a budget does not cover the last of these accounts."""
    asked = spent[-1].epsilon
    total = rule.total(spent) if asked < math.inf else math.inf
    if math.isfinite(total):
        reason = (
            f"with it the total would be epsilon={total:.10g} at delta={rule.delta:.10g} by "
            f"the rule {rule.rule!r}. Choose a smaller epsilon: 'fastmix ledger show' says "
            "what is left for a default fit, and remaining() what is left for Gaussian "
            "releases."
        )
    elif math.isinf(asked):
        reason = "the fit itself guarantees no finite epsilon. Give it more noise."
    else:
        reason = rule.refusal
    return (
        f"The budget (epsilon={rule.epsilon:.10g}, delta={rule.delta:.10g}) does not cover "
        f"this fit (epsilon={asked:.10g}, delta={spent[-1].delta:.10g}): {reason}"
    )
