"""The active budget: a fit that is given none is charged to the ``with`` block around it.

A block holds for everything that is started inside it.  The thread that opened it knows it by a
context variable; other threads of the process find it in a list of the open blocks; processes that
the process has started find it in a file under the number of the process, in a folder of the user
at a place that does not depend on the environment, which a process may be started without.
Where that leaves more than one budget, a fit is refused: it must be given its budget.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
import threading
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fastmix._system import WINDOWS, is_owned, lineage, local_folder, times_are_exact
from fastmix.errors import BudgetError

if TYPE_CHECKING:
    from fastmix.accounting.budget import BudgetAccountant

T = TypeVar("T")

#: The blocks around this context, outermost first.
_STACK: ContextVar[tuple[BudgetAccountant, ...]] = ContextVar("fastmix_budgets", default=())
#: The open blocks of this process, each with the blocks around it.
_OPEN: list[tuple[BudgetAccountant, ...]] = []
_LOCK = threading.RLock()
#: Places to look for the folder of the user; the first usable one is written to.
_PLACES = ("/dev/shm", "/tmp", "/var/tmp")


def enter(budget: BudgetAccountant) -> None:
    """Open a block."""
    stack = (*_STACK.get(), budget)
    with _LOCK:
        _OPEN.append(stack)
        try:
            _publish()
        except BaseException:
            _OPEN.remove(stack)
            raise
    _STACK.set(stack)


def leave(budget: BudgetAccountant) -> None:
    """Close a block."""
    # The last entry of this object, not of all: generators may leave blocks in any order.
    stack = _STACK.get()
    at = max((i for i, each in enumerate(stack) if each is budget), default=len(stack))
    _STACK.set(stack[:at] + stack[at + 1 :])
    with _LOCK:
        for each in reversed(_OPEN):
            if each[-1] is budget:
                _OPEN.remove(each)
                break
        _publish()


def current() -> BudgetAccountant | None:
    """Return the budget of the innermost block around this context, thread or process."""
    stack = _STACK.get()
    if stack:
        return stack[-1]
    with _LOCK:
        budgets = _innermost()
    return _only(budgets) if budgets else None


def inherited() -> str | None:
    """Return the ledger of the block around an ancestor of this process, if there is one."""
    folders = [folder for folder in _folders() if _is_private(folder)]
    found = {path.name: path for folder in reversed(folders) for path in folder.iterdir()}
    if not found:
        return None
    exact = times_are_exact()
    for process in lineage():
        if process in found:
            with suppress(FileNotFoundError):  # the block has just been left
                ledgers: list[str] = json.loads(found[process].read_text(encoding="ascii"))
                return _only(ledgers)
        number = process.partition("-")[0]
        doubtful = [path for name, path in found.items() if name.startswith(f"{number}-")]
        if doubtful and not exact:
            raise BudgetError(
                f"accountant must be given to a fit, or the file {str(doubtful[0])!r} removed: it "
                f"belongs to a budget of process {number}, which was started at another time than "
                "the process of that number above this one. Nothing was charged and nothing was "
                "drawn."
            )
    return None


def _innermost() -> list[BudgetAccountant]:
    """Return the budgets of the open blocks that have no other open block inside them."""
    outer = {tuple(map(id, stack[:-1])) for stack in _OPEN}
    return [stack[-1] for stack in _OPEN if tuple(map(id, stack)) not in outer]


def _only(budgets: list[T]) -> T:
    if any(budget != budgets[0] for budget in budgets):
        raise BudgetError(
            "accountant must be given to a fit while several budgets are active in other threads; "
            f"got accountant=None with {len(budgets)} open budgets. Nothing was charged and "
            "nothing was drawn."
        )
    return budgets[0]


def _publish() -> None:
    """Record the open blocks of this process in a file, for its child processes."""
    name = lineage()[0]
    ledgers = list(dict.fromkeys(budget.ledger for budget in _innermost()))
    if not ledgers:
        for folder in filter(_is_private, _folders()):
            (folder / name).unlink(missing_ok=True)
        return
    folder = _usable_folder()
    temporary = folder / f".{name}"
    temporary.write_text(json.dumps(ledgers), encoding="ascii")
    os.replace(temporary, folder / name)


def _folders() -> list[Path]:
    """Return the folders that may have the records of this user's blocks."""
    if WINDOWS:
        return [local_folder() / "fastmix-budgets"]
    places = dict.fromkeys((*_PLACES, tempfile.gettempdir()))
    return [Path(place) / f"fastmix-budgets-{os.getuid()}" for place in places]


def _usable_folder() -> Path:
    """Return the first folder that exists or can be created, private to this user."""
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(mode=0o700)
        if _is_private(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise PermissionError(
        f"One of the folders {', '.join(map(repr, map(str, _folders())))} must be private to this "
        "user: remove it. Processes started inside the block could not find their budget."
    )


def _is_private(folder: Path) -> bool:
    """Whether a folder exists, and nobody else can have written to it."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    # On Windows the folder above is the user's own.
    others = 0 if WINDOWS else found.st_mode & 0o077
    return stat.S_ISDIR(found.st_mode) and is_owned(found) and not others
