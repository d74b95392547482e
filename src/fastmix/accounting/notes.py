"""Notes for the ledger: which file, which target, which model a charge was for."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from fastmix._validation import type_error

#: What a note may be about.
_KINDS = ("label", "file", "target", "model")

_NOTES: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("fastmix_notes", default=())


@contextmanager
def noted(
    *,
    label: str | None = None,
    file: str | None = None,
    target: str | None = None,
    model: str | None = None,
) -> Iterator[None]:
    """Let the ledger keep public notes with every charge inside a ``with`` block.

    Parameters
    ----------
    label : str, optional
        Name of the charge, in place of the estimator's.
    file : str, optional
        The table that is fitted.
    target : str, optional
        The column that is predicted.
    model : str, optional
        Where the model is kept.

    Yields
    ------
    None
        Nothing; the notes end with the block.

    Examples
    --------
    >>> from fastmix.accounting import BudgetAccountant, LaplaceEvent, Part, PrivacySpent, noted
    >>> budget = BudgetAccountant(1.0, 1e-6)
    >>> with noted(label="mean income", file="people.csv"):
    ...     budget.spend(PrivacySpent([Part("mean", [LaplaceEvent(4.0)], 0.0)]))
    >>> budget.charges[0].label, budget.charges[0].notes
    ('mean income', (('file', 'people.csv'),))
    """
    given = dict(zip(_KINDS, (label, file, target, model), strict=True))
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise type_error(name, "be a string or None", value)
    notes = {name: value for name, value in given.items() if value is not None}
    token = _NOTES.set(tuple({**dict(_NOTES.get()), **notes}.items()))
    try:
        yield
    finally:
        _NOTES.reset(token)


def current_notes() -> dict[str, str]:
    """Return the notes of the blocks around the caller."""
    return dict(_NOTES.get())
