"""A privacy budget shared by several fits, processes and sessions."""

import math
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Self

from fastmix._validation import check_probability, check_real, type_error, value_error
from fastmix.accounting import _active
from fastmix.accounting.account import Part, PrivacySpent
from fastmix.accounting.charge import (
    Charge,
    Left,
    Total,
    charged_unit,
    check_covered,
    check_spent,
    check_unit,
    check_units,
    left_of,
    merged,
    mixed,
    read_charges,
    read_rule,
    read_unit,
    record_of,
    total_of,
)
from fastmix.accounting.filters import DeclaredFilter, Filter, make_filter
from fastmix.accounting.ledger import Ledger, OpenLedger
from fastmix.accounting.notes import current_notes
from fastmix.errors import MixedUnitsWarning


class BudgetAccountant:
    r"""A privacy budget that several fits draw on.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    All fits together are (epsilon, delta)-DP, also when each fit is chosen after looking at the
    results of the earlier ones. The charges are kept in a file, the ledger: all copies of the
    accountant, pickled ones in worker processes on the same machine too, are one budget, and
    threads and processes may share it. In a ``with`` block the accountant is the default of all
    fits that are started inside the block, also in other threads and in worker processes.

    Parameters
    ----------
    epsilon : float
        Epsilon of the budget, positive; ``inf`` for a ledger that only records.
    delta : float
        Delta of the budget, strictly between 0 and 1.
    ledger : str or path-like, optional
        File to create or to continue; it must be on a local disk, and a file to continue must
        have been made for the same epsilon, delta and rule. By default a private temporary file,
        which goes when the process that made it drops the accountant.
    rule : {"renyi", "gaussian", "basic"}, optional
        How charges add up, fixed when the ledger is made; "renyi" for a new ledger by default.
        "renyi" takes every method and adds up Rényi divergences at one order. "gaussian" is
        tighter and takes Gaussian releases only (`IHM`, `AdaSSP`). "basic" adds up epsilons and
        deltas.
    unit : {"person"}, optional
        With "person" the budget refuses fits that protect single rows, unless they run inside
        `one_row_per_person`. The ledger stores it; None takes that of a ledger to continue.

    Notes
    -----
    Paper: Proposition 1 composes Rényi curves; basic composition is standard.
    Deviation: the order is fixed with the budget, which makes the rule a filter
    (docs/proofs/filters.md). The first charge may use the whole budget by its own account; then
    nothing else fits.

    Examples
    --------
    >>> from fastmix.accounting import BudgetAccountant, LaplaceEvent, Part, PrivacySpent
    >>> budget = BudgetAccountant(1.0, 1e-6)
    >>> budget.spend(PrivacySpent([Part("mean", [LaplaceEvent(4.0)], 0.0)]), label="mean")
    >>> round(budget.remaining().epsilon, 4)
    0.75
    """

    _filter: Filter
    _ledger: Ledger
    _identity: str
    _unit: str | None

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        ledger: str | os.PathLike[str] | None = None,
        rule: str | None = None,
        unit: str | None = None,
    ) -> None:
        epsilon = check_real("epsilon", epsilon, above=0.0, allow_inf=True)
        delta = check_probability("delta", delta)
        if ledger is not None and not isinstance(ledger, str | os.PathLike):
            raise type_error("ledger", "be a path or None", ledger)
        check_unit(unit)
        self._create(make_filter("renyi" if rule is None else rule, epsilon, delta), ledger, unit)
        found = self._filter
        others = rule not in (None, found.rule) or unit not in (None, self._unit)
        if (found.epsilon, found.delta) != (epsilon, delta) or others:
            raise value_error(
                "ledger",
                f"have been made for epsilon={epsilon!r}, delta={delta!r}, rule="
                f"{rule or found.rule!r} and unit={unit or self._unit!r}; it is for epsilon="
                f"{found.epsilon!r}, delta={found.delta!r}, rule={found.rule!r} and "
                f"unit={self._unit!r}",
                self.ledger,
            )

    def _create(
        self, rule: Filter, ledger: str | os.PathLike[str] | None, unit: str | None
    ) -> None:
        """Create the ledger unless it exists, and read its identity."""
        mode = 0o666
        if ledger is None:
            directory, mode = tempfile.mkdtemp(prefix="fastmix-budget-"), 0o600
            weakref.finalize(self, _remove, directory, os.getpid())
            ledger = os.path.join(directory, "ledger.jsonl")
        Ledger(ledger).create(rule.epsilon, rule.delta, rule.to_dict(), unit=unit, mode=mode)
        self._attach(ledger)

    def _attach(self, ledger: str | os.PathLike[str]) -> None:
        self._ledger = Ledger(ledger)
        with self._ledger.open() as opened:
            self._filter, self._identity = read_rule(opened), opened.identity
            self._unit = read_unit(opened)

    @property
    def epsilon(self) -> float:
        """Epsilon of the budget."""
        return self._filter.epsilon

    @property
    def delta(self) -> float:
        """Delta of the budget."""
        return self._filter.delta

    @property
    def rule(self) -> str:
        """How charges add up."""
        return self._filter.rule

    @property
    def order(self) -> float | None:
        """Rényi order that fits are calibrated for: the one at which charges add up.

        It is None for rules that do not add up divergences, and for a budget that only records.
        """
        order: float | None = getattr(self._filter, "order", None)
        return order if math.isfinite(self.epsilon) else None

    def lists(self, spent: PrivacySpent) -> bool:
        """Whether the budget takes a fit with this account: declared lists take only their fits."""
        return self._filter.lists(spent)

    @property
    def unit(self) -> str | None:
        """Unit that every charge must protect: "person", or None for the unit of each fit."""
        return self._unit

    @property
    def ledger(self) -> str:
        """Path of the ledger file."""
        return str(self._ledger.path)

    @property
    def identity(self) -> str:
        """Random name of the ledger, which certificates repeat."""
        return self._identity

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges so far."""
        with self._open() as ledger:
            return read_charges(ledger)

    def check(self, *spent: PrivacySpent, leaks: Sequence[str] = ()) -> None:
        """Raise `BudgetError` if the budget does not cover these charges; write nothing."""
        charges = self.charges
        for each in spent:
            charge = Charge("", check_spent(each), leaks=tuple(leaks))
            check_covered(self._filter, charge, charges)
            charges += (charge,)

    def spend(
        self,
        spent: PrivacySpent,
        label: str = "",
        *,
        leaks: Sequence[str] = (),
        rows_per_person: int | None = None,
        public_rows: bool = True,
    ) -> None:
        """Charge ``spent`` before any noise is drawn; ``label`` names it in the ledger.

        ``leaks`` are reasons why the account does not hold: no finite budget covers such a release.
        ``rows_per_person`` says that the account is for persons with up to that many rows, and
        ``public_rows=False`` that it hides the number of rows; a ledger that mixes these warns.
        Raises `BudgetError` if the budget does not cover it, and `OSError` if the ledger cannot be
        written; nothing is charged then. Notes of `noted` blocks go with it.
        """
        if not isinstance(label, str):
            raise type_error("label", "be a string", label)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        notes = current_notes()
        label = notes.pop("label", label)
        units = check_units(rows_per_person, public_rows)
        charge = Charge(label, check_spent(spent), now, tuple(leaks), tuple(notes.items()), *units)
        charge = charged_unit(self._unit, charge)
        record = record_of(charge)
        check_covered(self._filter, charge, before := self.charges)
        # Warn before the charge and the lock, because users may turn warnings into errors.
        for message in mixed([*before, charge]):
            if message not in mixed(before):
                warnings.warn(message, MixedUnitsWarning, stacklevel=2)
        with self._open(write=True) as ledger:
            check_covered(self._filter, charge, read_charges(ledger))
            ledger.append(record)

    def declare(
        self,
        declared: Iterable[PrivacySpent],
        *,
        delta: float | None = None,
        label: str = "",
        **units: Any,
    ) -> Self:
        """Charge a list of fits as one, and return a budget that pays for these fits only.

        Fits that are fixed before the first of them can be accounted together, which is the
        tightest account there is: as the first charge it may use the whole budget.

        ``declared`` holds the account of each fit, as an estimator's ``account`` returns it; the
        list is accounted at ``delta``, by default the budget's, and named ``label`` in the ledger;
        accounts that are made inside the budget's block, or with it as ``accountant``, cost least.
        ``units`` are the ``rows_per_person`` and ``public_rows`` of `spend`.
        The budget that is returned takes each of the fits once, in any order. It lives in a
        temporary file: what has not been fitted when it goes is lost.
        """
        whole = tuple(map(check_spent, declared))
        if not whole:
            raise value_error("declared", "hold at least one account", whole)
        delta = self.delta if delta is None else check_probability("delta", delta)
        events = merged(event for spent in whole for event in spent.events)
        joint = PrivacySpent([Part("declared together", events, delta)])
        paid = type(self).__new__(type(self))
        rule = DeclaredFilter(joint.epsilon, delta, whole, self.order)
        paid._create(rule, None, self._unit)
        self.spend(joint, label=label or f"{len(whole)} fits declared together", **units)
        return paid

    def total(self) -> Total:
        """Return the total of all charges by the rule; infinite if one has no guarantee."""
        return Total(total_of(self._filter, self.charges), self.delta)

    def remaining(self) -> Left:
        """Return the epsilon of the largest Gaussian release that would still fit.

        A default fit gets a little less: in a budget of the rule "renyi" it is calibrated so that
        it costs at most 1.25 times as much as Gaussian releases (docs/budget.md). `check` decides
        for a given release, and ``fastmix ledger show`` prints what is left for a default fit.
        """
        return Left(left_of(self._filter, self.charges), self.delta)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger to ``path`` atomically; never over charges that are not in it."""
        self._ledger.copy(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Open a ledger file that exists; later charges are appended to it."""
        budget = cls.__new__(cls)
        budget._attach(path)
        return budget

    @staticmethod
    def current() -> "BudgetAccountant | None":
        """Return the accountant of the ``with`` block around the caller, its thread or process."""
        found = _active.current()
        if found is not None:
            return found
        ledger = _active.inherited()
        return None if ledger is None else BudgetAccountant.load(ledger)

    def __enter__(self) -> Self:
        _active.enter(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _active.leave(self)

    def __len__(self) -> int:
        return len(self.charges)

    def __bool__(self) -> bool:
        return True  # a budget without charges is not the same as no budget

    def __deepcopy__(self, memo: Any = None) -> Self:
        return self

    __copy__ = __deepcopy__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BudgetAccountant):
            return NotImplemented
        return self.ledger == other.ledger

    def __hash__(self) -> int:
        return hash(self.ledger)

    def __repr__(self) -> str:
        budget = f"epsilon={self.epsilon!r}, delta={self.delta!r}, rule={self.rule!r}"
        budget += "" if self._unit is None else f", unit={self._unit!r}"
        try:
            charges = self.charges
        except (OSError, ValueError):
            return f"BudgetAccountant({budget}, ledger cannot be read)"
        spent, left = total_of(self._filter, charges), left_of(self._filter, charges)
        return (
            f"BudgetAccountant({budget}, charges={len(charges)}, "
            f"spent={spent:.6g}, remaining={left:.6g})"
        )

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[OpenLedger]:
        """Open the ledger, and check that it is still the ledger of this budget."""
        with self._ledger.open(write=write) as ledger:
            if (read_rule(ledger), ledger.identity) != (self._filter, self._identity):
                raise value_error("ledger", "still be the one of this budget", self.ledger)
            yield ledger


def _remove(directory: str, owner: int) -> None:
    """Remove a temporary ledger, unless this is a child that was forked from its owner."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
