"""A privacy budget shared by several fits, processes and sessions."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

from fastmix._validation import check_probability, check_real, type_error
from fastmix.accounting._ledger import Ledger, OpenLedger
from fastmix.accounting.accountant import RdpAccountant
from fastmix.accounting.events import GaussianEvent, LaplaceEvent, PrivacyEvent, SketchEvent
from fastmix.accounting.spent import PrivacySpent
from fastmix.errors import BudgetError

__all__ = ["BudgetAccountant", "Charge", "Remaining", "Spent"]

#: Relative slack when a total is compared with the budget: rounding, nothing more.
TOLERANCE = 1e-9

_ACTIVE: ContextVar[tuple[BudgetAccountant, ...]] = ContextVar("fastmix_budgets", default=())


class Spent(NamedTuple):
    """The composed account of all charges."""

    epsilon: float
    delta: float


class Remaining(NamedTuple):
    """The epsilon that is left, and the delta at which it is counted."""

    epsilon: float
    delta: float


class Charge(NamedTuple):
    """One entry of the ledger."""

    label: str
    spent: PrivacySpent


class BudgetAccountant:
    r"""A privacy budget that several fits draw on.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    The charges are kept in a file, the ledger, so that all copies of the accountant are one
    budget: a copy made by scikit-learn's ``clone`` is the same object, and a pickled one in a
    worker process on the same machine uses the same file. Threads and processes may share it.
    In a ``with`` block the accountant is the default of all fits in that context. Threads and
    worker processes do not inherit the context: hand them the accountant itself.

    Parameters
    ----------
    epsilon : float
        Epsilon of the budget, positive; ``inf`` for a ledger that only records.
    delta : float
        Delta of the budget, strictly between 0 and 1.
    ledger : str or path-like, optional
        File to create or to continue; it must be on a local disk, and a file to continue must
        have been made for the same epsilon and delta. By default a private temporary file, which
        goes when the process that made it drops the accountant.

    Notes
    -----
    Paper: Proposition 1 composes Rényi curves; basic composition is standard.
    Deviation: both are formed and the least counts. A total within a relative 1e-9 of the budget
    is taken to fit it, in epsilon and in delta, so that rounding refuses nothing.
    Sensitive inputs: none.

    Examples
    --------
    >>> from fastmix.accounting import BudgetAccountant, LaplaceEvent, Part, PrivacySpent
    >>> budget = BudgetAccountant(1.0, 1e-6)
    >>> budget.spend(PrivacySpent([Part("mean", [LaplaceEvent(4.0)], 0.0)]), label="mean")
    >>> round(budget.remaining().epsilon, 4)
    0.75
    """

    def __init__(
        self, epsilon: float, delta: float, *, ledger: str | os.PathLike[str] | None = None
    ) -> None:
        self._epsilon = check_real("epsilon", epsilon, above=0.0, allow_inf=True)
        self._delta = check_probability("delta", delta)
        self._known: dict[PrivacySpent, float] = {}
        if ledger is None:
            directory = tempfile.mkdtemp(prefix="fastmix-budget-")
            weakref.finalize(self, _remove, directory, os.getpid())
            self._ledger = Ledger(os.path.join(directory, "ledger.jsonl"))
        elif isinstance(ledger, str | os.PathLike):
            self._ledger = Ledger(ledger)
        else:
            raise type_error("ledger", "be a path or None", ledger)
        self._ledger.create(self._epsilon, self._delta, mode=0o600 if ledger is None else 0o666)
        with self._open():
            pass

    @property
    def epsilon(self) -> float:
        """Epsilon of the budget."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """Delta of the budget."""
        return self._delta

    @property
    def ledger(self) -> str:
        """Path of the ledger file."""
        return str(self._ledger.path)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges so far, as pairs of a label and a `PrivacySpent`."""
        with self._open() as ledger:
            return _charges(ledger)

    def check(self, spent: PrivacySpent) -> None:
        """Raise `BudgetError` if the budget does not cover ``spent``; write nothing."""
        self._check(_check_spent(spent), self.charges)

    def spend(self, spent: PrivacySpent, label: str = "") -> None:
        """Charge ``spent``, to be called before any noise is drawn.

        Parameters
        ----------
        spent : PrivacySpent
            The account of the release.
        label : str
            A name for it in the ledger.

        Raises
        ------
        BudgetError
            If the budget does not cover it; nothing is written then.
        OSError
            If the ledger cannot be written; the charge is not made then.
        """
        if not isinstance(label, str):
            raise type_error("label", "be a string", label)
        record = {
            "id": uuid4().hex,
            "label": label,
            "time": datetime.now(UTC).isoformat(),
            "spent": _check_spent(spent).to_dict(),
        }
        with self._open() as ledger:
            self._check(spent, _charges(ledger))
            ledger.append(record)

    def total(self, delta: float | None = None) -> Spent:
        """Return the account of all charges together.

        Parameters
        ----------
        delta : float, optional
            Delta at which epsilon is computed; the budget's by default.

        Returns
        -------
        Spent
            ``(epsilon, delta)``; ``(0.0, 0.0)`` without a charge, and an infinite epsilon when
            nothing is certified at this delta.
        """
        at = self._delta if delta is None else check_probability("delta", delta)
        return self._compose([charge.spent for charge in self.charges], at)

    def remaining(self) -> Remaining:
        """Return the epsilon that is left at the budget's delta, at least 0.

        Delta is shared by all charges, not used up by them. How much a further release adds
        depends on how it composes with the others: `check` decides.
        """
        return Remaining(self._left(self.total()), self._delta)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger to ``path``, all or nothing.

        A file that is there must be an earlier copy: charges of another ledger are not lost.
        """
        self._ledger.copy(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BudgetAccountant:
        """Open a ledger file that exists; later charges are appended to it."""
        with Ledger(path).open() as ledger:
            epsilon, delta = ledger.epsilon, ledger.delta
        return _attach(cls, path, epsilon, delta)

    @staticmethod
    def current() -> BudgetAccountant | None:
        """Return the accountant of the innermost ``with`` block of this context, if any."""
        active = _ACTIVE.get()
        return active[-1] if active else None

    def __enter__(self) -> BudgetAccountant:
        _ACTIVE.set((*_ACTIVE.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        # The last entry of this object, not the last of all: a generator may leave out of turn.
        active = _ACTIVE.get()
        at = max((i for i, budget in enumerate(active) if budget is self), default=len(active))
        _ACTIVE.set(active[:at] + active[at + 1 :])

    def __len__(self) -> int:
        return len(self.charges)

    def __bool__(self) -> bool:
        """Return True: a budget without charges is not the same as no budget."""
        return True

    def __copy__(self) -> BudgetAccountant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BudgetAccountant:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _attach, (type(self), self.ledger, self._epsilon, self._delta)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BudgetAccountant):
            return NotImplemented
        return self.ledger == other.ledger

    def __hash__(self) -> int:
        return hash(self.ledger)

    def __repr__(self) -> str:
        budget = f"epsilon={self._epsilon!r}, delta={self._delta!r}"
        try:
            charges = [charge.spent for charge in self.charges]
            total = self._compose(charges, self._delta)
        except (OSError, ValueError):
            return f"BudgetAccountant({budget}, ledger cannot be read)"
        return (
            f"BudgetAccountant({budget}, charges={len(charges)}, "
            f"spent={total.epsilon:.6g}, remaining={self._left(total):.6g})"
        )

    @contextmanager
    def _open(self) -> Iterator[OpenLedger]:
        """Open the ledger and make sure that it still is the ledger of this budget."""
        with self._ledger.open() as ledger:
            if (ledger.epsilon, ledger.delta) != (self._epsilon, self._delta):
                raise ValueError(
                    f"epsilon and delta must be those of the ledger, ({ledger.epsilon!r}, "
                    f"{ledger.delta!r}); got epsilon={self._epsilon!r}, delta={self._delta!r} "
                    f"with ledger={self.ledger!r}."
                )
            yield ledger

    def _check(self, spent: PrivacySpent, charges: Iterable[Charge]) -> None:
        if math.isinf(self._epsilon):
            return
        after = [*(charge.spent for charge in charges), spent]
        limit = self._epsilon * (1.0 + TOLERANCE)
        if self._basic(after, self._delta) <= limit:  # quick, and enough for most ledgers
            return
        asked = self._certified(spent)
        total = self._compose(after, self._delta).epsilon if asked < math.inf else math.inf
        if not total <= limit:
            raise BudgetError(
                f"spent must fit the budget of (epsilon={self._epsilon:.10g}, "
                f"delta={self._delta:.10g}); got spent=(epsilon={asked:.10g}, "
                f"delta={spent.delta:.10g}), which would make the total (epsilon={total:.10g}, "
                f"delta={self._delta:.10g}). Nothing was charged and nothing was drawn."
            )

    def _compose(self, charges: list[PrivacySpent], delta: float) -> Spent:
        """Return the least of basic and joint composition at ``delta``."""
        if not charges:
            return Spent(0.0, 0.0)
        events = _merged(event for spent in charges for event in spent.events)
        joint = RdpAccountant(events).get_epsilon(delta)
        return Spent(min(self._basic(charges, delta), joint), delta)

    def _basic(self, charges: list[PrivacySpent], delta: float) -> float:
        """Return the sum of the certified epsilons, ``inf`` if their deltas exceed ``delta``."""
        if math.fsum(spent.delta for spent in charges) > delta * (1.0 + TOLERANCE):
            return math.inf
        return math.fsum(self._certified(spent) for spent in charges)

    def _certified(self, spent: PrivacySpent) -> float:
        """Return the epsilon of one charge, computed once for charges that are alike."""
        if spent not in self._known:
            self._known[spent] = spent.epsilon
        return self._known[spent]

    def _left(self, total: Spent) -> float:
        if math.isinf(self._epsilon):
            return math.inf
        return max(0.0, self._epsilon - total.epsilon)


def _attach(
    cls: type[BudgetAccountant], path: str | os.PathLike[str], epsilon: float, delta: float
) -> BudgetAccountant:
    """Return an accountant on a ledger that must exist: it is never made anew here."""
    budget = cls.__new__(cls)
    budget._epsilon, budget._delta, budget._known = epsilon, delta, {}
    budget._ledger = Ledger(path)
    with budget._open():
        return budget


def _remove(directory: str, owner: int) -> None:
    """Remove a temporary ledger, unless this is a child that was forked from its owner."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def _check_spent(spent: PrivacySpent) -> PrivacySpent:
    if not isinstance(spent, PrivacySpent):
        raise type_error("spent", "be a PrivacySpent", spent)
    return spent


def _charges(ledger: OpenLedger) -> tuple[Charge, ...]:
    charges = []
    for line, record in enumerate(ledger.charges, start=2):
        try:
            charges.append(Charge(str(record["label"]), PrivacySpent.from_dict(record["spent"])))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ledger.damaged(line) from error
    return tuple(charges)


def _merged(events: Iterable[PrivacyEvent]) -> Iterator[PrivacyEvent]:
    """Join equal events: the same curve, and a long ledger of like fits stays quick."""
    for event, times in Counter(events).items():
        if isinstance(event, GaussianEvent | LaplaceEvent):
            yield replace(event, count=times * event.count)
        elif isinstance(event, SketchEvent):
            yield replace(event, rows=times * event.rows)
        else:
            yield from [event] * times
