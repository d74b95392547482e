"""The file behind a budget: two lines about it, then one JSON line for each charge.

::

    {"format": "fastmix-ledger", "version": 2, "charges":          1}
    {"epsilon": 1.0, "delta": 1e-06, "rule": {...}, ..., "digest": "9c1f..."}
    {"id": "5f0c...", "label": "first fit", "time": "...", "spent": {...}, "digest": "07be..."}

The digest of a line covers the line and the digest before it, so a line that was changed, removed
or moved shows.  The first line counts the completed charges, so lines that are missing at the end
show too.  A ledger that is damaged is refused and left as it is.

A charge is written in two steps, each on the disk before the next begins: first its line, then the
count.  Noise is drawn after both.  So an unfinished line beyond the count belongs to a release that
never happened, and the next charge replaces it; a finished line beyond the count is a charge.
Everything happens under a lock on the file itself, not on a name, which keeps processes and threads
apart whatever the file is called.

Infinity is written as ``Infinity``, as Python's ``json`` does.
"""

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from pathlib import Path
from typing import Any
from uuid import uuid4

from fastmix._system import (
    WINDOWS,
    is_named,
    open_file,
    rename_new,
    sync_folder,
    try_lock,
    unlock,
    write_at,
)
from fastmix._validation import value_error

FORMAT, VERSION = "fastmix-ledger", 2

#: Seconds to wait for the lock before giving up, and between two attempts to take it.
LOCK_TIMEOUT, LOCK_POLL = 120.0, 0.002

#: The first line: everything in it but the count is the same in all ledgers.
_COUNT = '{"format": "%s", "version": %d, "charges": %10d}\n'
_COUNT_LENGTH = len(_COUNT % (FORMAT, VERSION, 0))
_DIGEST = re.compile(rb'(.*), "digest": "([0-9a-f]{64})"\}', re.DOTALL)


class Ledger:
    """A ledger file, known by its path; nothing is kept open or in memory between calls."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).resolve()

    def create(
        self,
        epsilon: float,
        delta: float,
        rule: dict[str, Any],
        *,
        unit: str | None = None,
        mode: int = 0o666,
    ) -> None:
        """Create the file, atomically; leave a file that exists as it is.

        ``unit`` is "person" if all charges are to protect persons.
        """
        if not self.path.parent.is_dir():
            raise value_error("ledger", "lie in a directory that exists", str(self.path))
        self._refuse_devices()
        budget = {
            "id": uuid4().hex,
            "epsilon": epsilon,
            "delta": delta,
            "rule": rule,
            "neighboring_relation": "zero-out",
            **({} if unit is None else {"unit": unit}),
        }
        if not self.path.exists():
            content = _count(0) + _seal(budget, "")[0]
            try:
                write_atomically(self.path, content, mode, replace=False)
            except FileExistsError:
                pass
            except OSError as error:
                # Name the ledger, not the temporary file beside it.
                raise OSError(error.errno, error.strerror, str(self.path)) from None

    @contextmanager
    def open(self, *, write: bool = False) -> Iterator["OpenLedger"]:
        """Hold the lock and give the contents, to read or also to append to."""
        self._refuse_devices()
        fd = self._locked(write)
        try:
            yield OpenLedger(self.path, fd)
        finally:
            try:
                unlock(fd)
            finally:  # also after an interrupt: an open descriptor keeps the lock
                os.close(fd)

    def copy(self, path: str | os.PathLike[str]) -> None:
        """Copy the file to ``path`` atomically; never over charges that are not in it."""
        target = Ledger(path)
        if not target.path.parent.is_dir():
            raise value_error("path", "lie in a directory that exists", str(target.path))
        with self.open() as ledger:
            content = ledger.content
        if not target.path.exists():
            write_atomically(target.path, content, replace=False)
        elif not target.path.samefile(self.path):
            if WINDOWS:  # it lets nobody replace a file whose lock is held
                raise value_error("path", "be new on Windows", str(target.path))
            with target.open(write=True) as earlier:
                if not content[_COUNT_LENGTH:].startswith(earlier.content[_COUNT_LENGTH:]):
                    raise value_error(
                        "path", "be new or hold an earlier copy of this ledger", str(target.path)
                    )
                write_atomically(target.path, content)

    def _locked(self, write: bool) -> int:
        """Return a descriptor of the file that the path names while the lock is held."""
        deadline = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                fd = open_file(self.path, os.O_RDWR if write else os.O_RDONLY)
            except FileNotFoundError:
                raise FileNotFoundError(
                    f"ledger must exist; got ledger={str(self.path)!r}. Make one with 'fastmix "
                    "ledger new', or check the path. A budget made with ledger=None keeps its "
                    "charges in a temporary file only as long as the process that made it."
                ) from None
            try:
                while not try_lock(fd, shared=not write):
                    if time.monotonic() > deadline:
                        raise TimeoutError(
                            f"Another process has been using the ledger {str(self.path)!r} for "
                            f"more than {LOCK_TIMEOUT:g} seconds. Nothing was charged."
                        )
                    time.sleep(LOCK_POLL)
                if is_named(fd, self.path):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            # The file was replaced while we waited: a charge here would go to the old file.
            os.close(fd)

    def _refuse_devices(self) -> None:
        """Refuse an existing path that is not a regular file, such as a device or a folder."""
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise value_error("ledger", "be a file", str(self.path))


class OpenLedger:
    """The contents of a ledger, less an unfinished last line, while its lock is held."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd
        content = b"".join(iter(lambda: os.read(fd, 1 << 20), b""))
        self._counted = counted = self._read_count(content)
        *lines, rest = content[_COUNT_LENGTH:].split(b"\n")
        # A finished charge that lost its line end is a charge; one that was never finished is not.
        if _DIGEST.fullmatch(rest):
            lines.append(rest)
        # One line more than the count: whoever wrote it was stopped before the count.
        if not counted + 1 <= len(lines) <= counted + 2:
            raise ValueError(
                f"ledger must hold the {counted} charges that its first line counts; got "
                f"ledger={str(path)!r} with {max(len(lines) - 1, 0)}. Charges were removed or "
                "added: restore the file from a copy."
            )
        self._digest = ""
        self.budget, *self.charges = [
            self._unseal(line, at) for at, line in enumerate(lines, start=2)
        ]
        # This ledger and its copies share an id that no other ledger has.
        self.identity = str(self.budget.get("id"))
        self.content = _count(len(self.charges)) + b"".join(line + b"\n" for line in lines)

    def append(self, charge: dict[str, Any]) -> None:
        """Add a charge; it is on the disk on return, and not in the file after an error."""
        line, digest = _seal(charge, self._digest)
        charges, end = len(self.charges), len(self.content)
        counting = False
        try:
            # At most one line is ever beyond the count.
            if self._counted < charges:
                self._write_count(charges)
            # Restore the line end of the last charge, and remove an unfinished line.
            write_at(self._fd, b"\n", end - 1)
            os.ftruncate(self._fd, end)
            write_at(self._fd, line, end)
            os.fsync(self._fd)
            counting = True
            self._write_count(charges + 1)
        except BaseException as error:
            # If this fails too, the charge may stay and count: an error on the private side.
            with suppress(OSError):
                if counting:
                    write_at(self._fd, _count(charges), 0)
                os.ftruncate(self._fd, end)
                os.fsync(self._fd)
            error.add_note(f"ledger={str(self._path)!r} was not charged and nothing was drawn.")
            raise
        self.content = _count(len(self.charges) + 1) + self.content[_COUNT_LENGTH:] + line
        self.charges.append(charge)
        self._digest = digest

    def _write_count(self, charges: int) -> None:
        write_at(self._fd, _count(charges), 0)
        os.fsync(self._fd)
        self._counted = charges

    def damaged(self, line: int) -> ValueError:
        """Build the error for a line that cannot be read."""
        return ValueError(
            f"ledger must hold a whole charge in every line; got ledger={str(self._path)!r} with "
            f"line {line} damaged. The line may hide a charge: restore the file from a copy."
        )

    def _read_count(self, content: bytes) -> int:
        first = _parse(content.partition(b"\n")[0])
        if not isinstance(first, dict) or first.get("format") != FORMAT:
            raise ValueError(
                f"ledger must be a file made by 'fastmix ledger new' or BudgetAccountant; got "
                f"ledger={str(self._path)!r}."
            )
        if first.get("version") != VERSION:
            raise value_error("ledger", f"be of format version {VERSION}", str(self._path))
        counted = first.get("charges")
        if type(counted) is not int or counted < 0 or not content.startswith(_count(counted)):
            raise self.damaged(1)
        return counted

    def _unseal(self, line: bytes, number: int) -> dict[str, Any]:
        match = _DIGEST.fullmatch(line)
        if match is None:
            raise self.damaged(number)
        digest = _chain(self._digest, match[1] + b"}")
        record = _parse(match[1] + b"}")
        if digest != match[2].decode() or not isinstance(record, dict):
            raise self.damaged(number)
        self._digest = digest
        return record


def _count(charges: int) -> bytes:
    return (_COUNT % (FORMAT, VERSION, charges)).encode()


def _seal(record: dict[str, Any], before: str) -> tuple[bytes, str]:
    """Return the line of a record and its digest, which continues the one ``before``."""
    body = json.dumps(record, default=plain).encode("ascii")
    digest = _chain(before, body)
    return b'%s, "digest": "%s"}\n' % (body[:-1], digest.encode()), digest


def _chain(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + body).hexdigest()


def _parse(line: bytes) -> Any:
    """Return the JSON value of a line, ``None`` if it is not JSON."""
    try:
        return json.loads(line.decode())
    except (RecursionError, ValueError):
        return None


def plain(value: object) -> int | float:
    """Turn a NumPy scalar into the number it stands for."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"spent must hold numbers and strings; got spent with {type(value)}.")


def write_atomically(
    path: Path, content: bytes, mode: int = 0o666, *, replace: bool = True
) -> None:
    """Write the whole ``content`` to ``path``, or leave the old file unchanged.

    Without ``replace``, a file that exists raises `FileExistsError`.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        fd = open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            write_at(fd, content, 0)
            os.fsync(fd)
        finally:
            os.close(fd)
        if replace:
            os.replace(temporary, path)
        else:
            rename_new(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
