"""The file behind a budget: a header, then one JSON line for each charge, only ever appended to.

::

    {"format": "fastmix-ledger", "version": 1, "epsilon": 1.0, "delta": 1e-06, ...}
    {"id": "5f0c...", "label": "first fit", "time": "2025-01-31T12:00:00+00:00", "spent": {...}}

Everything happens under a lock on ``<ledger>.lock``, which keeps processes and threads apart,
and a charge is on the disk before the lock is released.  A charge is written before its noise is
drawn, so a last line that a killed process left unfinished stands for a release that never
happened: it is cut off.  Damage anywhere else is an error, because it may hide a release.

Infinity is written as ``Infinity``, as Python's ``json`` does.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import FileLock

from fastmix._validation import value_error

__all__ = ["Ledger", "OpenLedger", "write_atomically"]

FORMAT, VERSION = "fastmix-ledger", 1

#: Seconds to wait for the lock before giving up, and between two attempts to take it.
LOCK_TIMEOUT, LOCK_POLL = 120.0, 0.002


class Ledger:
    """A ledger file, known by its path; nothing is kept open or in memory between calls.

    Parameters
    ----------
    path : str or path-like
        Where the file is. Symbolic links are resolved, so that all names share one lock.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).resolve()

    def create(self, epsilon: float, delta: float, *, mode: int = 0o666) -> None:
        """Create the file with its header, atomically; leave a file that exists as it is."""
        if not self.path.parent.is_dir():
            raise value_error("ledger", "lie in a directory that exists", str(self.path))
        self._refuse_devices()
        header = {
            "format": FORMAT,
            "version": VERSION,
            "epsilon": epsilon,
            "delta": delta,
            "neighboring_relation": "zero-out",
        }
        with self._lock():
            if not self.path.exists():
                write_atomically(self.path, _encode(header), mode)

    @contextmanager
    def open(self) -> Iterator[OpenLedger]:
        """Hold the lock and give the repaired contents, to read and to append to."""
        if not self.path.exists():  # before the lock, which would leave its own file behind
            raise self._missing()
        self._refuse_devices()
        with self._lock():
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            except FileNotFoundError:
                raise self._missing() from None
            try:
                yield OpenLedger(self.path, fd)
            finally:
                os.close(fd)

    def copy(self, path: str | os.PathLike[str]) -> None:
        """Copy the file to ``path`` atomically; never over charges that are not in it."""
        target = Ledger(path)
        with self.open() as ledger:
            content = ledger.content
        if target.path == self.path:
            return
        if not target.path.parent.is_dir():
            raise value_error("path", "lie in a directory that exists", str(target.path))
        with target._lock():
            if target.path.exists() and not content.startswith(target.path.read_bytes()):
                raise value_error(
                    "path", "be new or hold an earlier copy of this ledger", str(target.path)
                )
            write_atomically(target.path, content, 0o666)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        # A lock object for each use: two threads then exclude each other as two processes do.
        lock = FileLock(f"{self.path}.lock")
        with lock.acquire(timeout=LOCK_TIMEOUT, poll_interval=LOCK_POLL):
            yield

    def _refuse_devices(self) -> None:
        """Refuse a path that is there and no file: a device can have no end, or no memory."""
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise value_error("ledger", "be a file", str(self.path))

    def _missing(self) -> FileNotFoundError:
        return FileNotFoundError(
            f"ledger must exist; got ledger={str(self.path)!r}. A budget made with ledger=None "
            "keeps its charges in a temporary file of the process that made it, on that machine "
            "and for as long as that budget lives; give a path to keep them."
        )


class OpenLedger:
    """The contents of a ledger while its lock is held.

    Parameters
    ----------
    path : Path
        Name of the file, for errors.
    fd : int
        Descriptor of the file, open for reading and appending.

    Attributes
    ----------
    content : bytes
        The file after repair.
    epsilon, delta : float
        The budget in the header.
    charges : list of dict
        The charges in order, as they were given to `append`.
    """

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd
        self.content = b"".join(iter(lambda: os.read(fd, 1 << 20), b""))
        # The header first: a file that is no ledger must not be repaired.
        self.epsilon, self.delta = self._read_header()
        self._cut_torn_tail()
        lines = self.content.split(b"\n")[1:-1]
        self.charges = [self._decode(at, line) for at, line in enumerate(lines, start=2)]

    def append(self, charge: dict[str, Any]) -> None:
        """Add a charge; it is on the disk on return, and not in the file after an error."""
        line = _encode(charge)
        try:
            _write(self._fd, line)
        except BaseException as error:
            # If this fails too, the charge may stay and count: an error on the private side.
            with suppress(OSError):
                os.ftruncate(self._fd, len(self.content))
            error.add_note(f"ledger={str(self._path)!r} was not charged and nothing was drawn.")
            raise
        self.content += line
        self.charges.append(charge)

    def damaged(self, line: int) -> ValueError:
        """Build the error for a line that cannot be read."""
        return ValueError(
            f"ledger must hold a whole charge in every line; got ledger={str(self._path)!r} with "
            f"line {line} damaged. A charge may be hidden there: restore the file from a copy."
        )

    def _read_header(self) -> tuple[float, float]:
        line, newline, _ = self.content.partition(b"\n")
        header = _parse(line) if newline else None
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise value_error("ledger", "be the ledger of a budget", str(self._path))
        if header.get("version") != VERSION:
            raise value_error("ledger", f"be of format version {VERSION}", str(self._path))
        try:
            return float(header["epsilon"]), float(header["delta"])
        except (KeyError, TypeError, ValueError):
            raise self.damaged(1) from None

    def _cut_torn_tail(self) -> None:
        """Drop a last line that has no end or is not JSON."""
        end = self.content.rfind(b"\n") + 1
        if end == len(self.content):
            start = self.content.rfind(b"\n", 0, end - 1) + 1
            if _parse(self.content[start:end]) is not None:
                return
            end = start
        os.ftruncate(self._fd, end)
        os.fsync(self._fd)
        self.content = self.content[:end]

    def _decode(self, number: int, line: bytes) -> dict[str, Any]:
        record = _parse(line)
        if not isinstance(record, dict):
            raise self.damaged(number)
        return record


def _parse(line: bytes) -> Any:
    """Return the JSON value of a line, ``None`` if it is not JSON."""
    try:
        return json.loads(line.decode())
    except ValueError:
        return None


def _encode(record: dict[str, Any]) -> bytes:
    return json.dumps(record, default=_plain).encode("ascii") + b"\n"


def _plain(value: object) -> int | float:
    """Turn a NumPy scalar into the number it stands for."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"spent must hold numbers and strings; got spent with {type(value)}.")


def _write(fd: int, content: bytes) -> None:
    """Write all of ``content`` and wait until it is on the disk."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.fsync(fd)


def write_atomically(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Replace ``path`` by ``content`` as a whole, or leave it as it was."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            _write(fd, content)
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
